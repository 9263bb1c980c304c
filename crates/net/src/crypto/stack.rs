//! Overwrites what the derivation of keys leaves on the stack.
//!
//! Otherwise secrets could get from the stack to the heap: a large value that moves there takes
//! along its padding, which holds what was on the stack before. Nothing erases that when the memory
//! is freed.

/// Bytes of the stack that are overwritten: more than the derivation of keys uses.
const REACH: usize = 32 << 10;

/// Runs `derive`, then overwrites what it has left on the stack. Secrets in its result have to be on the heap.
pub(super) fn washed<T>(derive: impl FnOnce() -> T) -> T {
    let outcome = below(derive);
    wash();
    outcome
}

/// Overwrites what earlier calls have left on the stack below the caller's frame.
#[inline(never)]
pub(super) fn wash() {
    core::hint::black_box(&mut [0_u8; REACH]);
}

/// Has a frame of its own, which ends before the stack is overwritten.
#[inline(never)]
fn below<T>(derive: impl FnOnce() -> T) -> T {
    derive()
}
