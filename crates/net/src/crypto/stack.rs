//! What the derivation of keys leaves on the stack is overwritten.
//!
//! It would not stay there: a large value that moves from the stack to the heap takes along what lies between its fields,
//! and the heap gives that back without erasing it.

/// Bytes of the stack that are overwritten: more than the derivation of keys reaches down.
const REACH: usize = 32 << 10;

/// Does what leaves secrets on the stack, and overwrites them. What it returns must hold its own secrets on the heap.
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

/// In a frame of its own, which is left before the stack is overwritten.
#[inline(never)]
fn below<T>(derive: impl FnOnce() -> T) -> T {
    derive()
}
