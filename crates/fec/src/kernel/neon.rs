//! Table look-up by byte shuffle on AArch64: a product is the sum of two entries of 16-entry tables.

use core::arch::aarch64::*;

use super::tile::{self, Vector};
use super::{Implementation, Job};
use crate::gf256::NIBBLE_PRODUCTS;

/// 128-bit vectors: Advanced SIMD.
pub(super) static NEON: Implementation = Implementation {
    name: "neon",
    max_rows: ROWS.len(),
    is_supported: || std::arch::is_aarch64_feature_detected!("neon"),
    run,
};

/// Indexed by the number of rows minus one. Sums, operands and tables together fill at most 26 of
/// the 32 registers.
static ROWS: [unsafe fn(&mut Job<'_, '_>); 8] = [
    neon::<1, 8>,
    neon::<2, 4>,
    neon::<3, 4>,
    neon::<4, 4>,
    neon::<5, 3>,
    neon::<6, 3>,
    neon::<7, 2>,
    neon::<8, 2>,
];

/// # Safety
/// As [`Implementation::run`] of [`NEON`].
unsafe fn run(job: &mut Job<'_, '_>) {
    // SAFETY: the caller guarantees the same; the index is in range, since a job has 1 to `max_rows` outputs.
    unsafe { ROWS[job.outputs.len() - 1](job) }
}

#[target_feature(enable = "neon")]
unsafe fn neon<const ROWS: usize, const LANES: usize>(job: &mut Job<'_, '_>) {
    // SAFETY: this function enables the required CPU features; the caller guarantees that the job is as `Job`
    // demands.
    unsafe { tile::rows::<V128, ROWS, LANES>(job) }
}

#[derive(Clone, Copy)]
struct V128(uint8x16_t);

// SAFETY of every block: the trait's contract guarantees the CPU features and valid pointers; tables have 16 bytes
// each. Loads and stores need no alignment.
impl Vector for V128 {
    const WIDTH: usize = 16;
    /// The products of a factor with the low and with the high half of a byte.
    type Factor = [uint8x16_t; 2];
    /// The low and the high halves of each byte, as indices.
    type Operand = [uint8x16_t; 2];

    #[inline(always)]
    unsafe fn zero() -> Self {
        V128(unsafe { vdupq_n_u8(0) })
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        V128(unsafe { vld1q_u8(from) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        unsafe { vst1q_u8(to, self.0) }
    }

    #[inline(always)]
    unsafe fn factor(factor: u8) -> [uint8x16_t; 2] {
        let tables = &NIBBLE_PRODUCTS[usize::from(factor)];
        unsafe { [vld1q_u8(tables.low.as_ptr()), vld1q_u8(tables.high.as_ptr())] }
    }

    #[inline(always)]
    unsafe fn operand(self) -> [uint8x16_t; 2] {
        unsafe { [vandq_u8(self.0, vdupq_n_u8(0x0F)), vshrq_n_u8::<4>(self.0)] }
    }

    #[inline(always)]
    unsafe fn add_product(self, operand: [uint8x16_t; 2], factor: [uint8x16_t; 2]) -> Self {
        unsafe {
            let low = vqtbl1q_u8(factor[0], operand[0]);
            let high = vqtbl1q_u8(factor[1], operand[1]);
            V128(veorq_u8(self.0, veorq_u8(low, high)))
        }
    }
}
