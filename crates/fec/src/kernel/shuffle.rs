//! Table look-up by byte shuffle: a product is the sum of two entries of 16-entry tables.

use core::arch::x86_64::*;

use super::tile::{self, Vector};
use super::{Implementation, Job};
use crate::gf256::{NIBBLE_PRODUCTS, NibbleProducts};

/// 256-bit vectors: AVX2.
pub(super) static AVX2: Implementation = Implementation {
    name: "avx2",
    max_rows: AVX2_ROWS.len(),
    is_supported: || is_x86_feature_detected!("avx2"),
    run: run_avx2,
};

/// 128-bit vectors: SSSE3.
pub(super) static SSSE3: Implementation = Implementation {
    name: "ssse3",
    max_rows: SSSE3_ROWS.len(),
    is_supported: || is_x86_feature_detected!("ssse3"),
    run: run_ssse3,
};

/// Indexed by the number of rows minus one. Sums, operands and tables together fill the 16
/// registers.
static AVX2_ROWS: [unsafe fn(&mut Job<'_, '_>); 4] =
    [avx2::<1, 4>, avx2::<2, 2>, avx2::<3, 2>, avx2::<4, 2>];

/// Indexed by the number of rows minus one.
static SSSE3_ROWS: [unsafe fn(&mut Job<'_, '_>); 4] =
    [ssse3::<1, 4>, ssse3::<2, 2>, ssse3::<3, 2>, ssse3::<4, 2>];

/// # Safety
/// As [`Implementation::run`] of [`AVX2`].
unsafe fn run_avx2(job: &mut Job<'_, '_>) {
    // SAFETY: the caller guarantees the same; the index is in range, since a job has 1 to `max_rows` outputs.
    unsafe { AVX2_ROWS[job.outputs.len() - 1](job) }
}

/// # Safety
/// As [`Implementation::run`] of [`SSSE3`].
unsafe fn run_ssse3(job: &mut Job<'_, '_>) {
    // SAFETY: the caller guarantees the same; the index is in range, since a job has 1 to `max_rows` outputs.
    unsafe { SSSE3_ROWS[job.outputs.len() - 1](job) }
}

#[target_feature(enable = "avx2")]
unsafe fn avx2<const ROWS: usize, const LANES: usize>(job: &mut Job<'_, '_>) {
    // SAFETY: this function enables the required CPU features; the caller guarantees that the job is as `Job`
    // demands.
    unsafe { tile::rows::<V256, ROWS, LANES>(job) }
}

#[target_feature(enable = "ssse3")]
unsafe fn ssse3<const ROWS: usize, const LANES: usize>(job: &mut Job<'_, '_>) {
    // SAFETY: this function enables the required CPU features; the caller guarantees that the job is as `Job`
    // demands.
    unsafe { tile::rows::<V128, ROWS, LANES>(job) }
}

fn products(factor: u8) -> &'static NibbleProducts {
    &NIBBLE_PRODUCTS[usize::from(factor)]
}

#[derive(Clone, Copy)]
struct V256(__m256i);

// SAFETY of every block: the trait's contract guarantees the CPU features and valid pointers; tables have 16 bytes
// each and are aligned to 16.
impl Vector for V256 {
    const WIDTH: usize = 32;
    /// The products of a factor with the low and with the high half of a byte, each table in both
    /// 128-bit lanes.
    type Factor = [__m256i; 2];
    /// The low and the high halves of each byte, as indices.
    type Operand = [__m256i; 2];

    #[inline(always)]
    unsafe fn zero() -> Self {
        V256(unsafe { _mm256_setzero_si256() })
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        V256(unsafe { _mm256_loadu_si256(from.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        unsafe { _mm256_storeu_si256(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn factor(factor: u8) -> [__m256i; 2] {
        let tables = products(factor);
        unsafe {
            [
                _mm256_broadcastsi128_si256(_mm_load_si128(tables.low.as_ptr().cast())),
                _mm256_broadcastsi128_si256(_mm_load_si128(tables.high.as_ptr().cast())),
            ]
        }
    }

    #[inline(always)]
    unsafe fn operand(self) -> [__m256i; 2] {
        unsafe {
            let mask = _mm256_set1_epi8(0x0F);
            let high = _mm256_srli_epi64::<4>(self.0);
            [_mm256_and_si256(self.0, mask), _mm256_and_si256(high, mask)]
        }
    }

    #[inline(always)]
    unsafe fn add_product(self, operand: [__m256i; 2], factor: [__m256i; 2]) -> Self {
        unsafe {
            let low = _mm256_shuffle_epi8(factor[0], operand[0]);
            let high = _mm256_shuffle_epi8(factor[1], operand[1]);
            V256(_mm256_xor_si256(self.0, _mm256_xor_si256(low, high)))
        }
    }
}

#[derive(Clone, Copy)]
struct V128(__m128i);

// SAFETY of every block: the trait's contract guarantees the CPU features and valid pointers; tables have 16 bytes
// each and are aligned to 16.
impl Vector for V128 {
    const WIDTH: usize = 16;
    /// The products of a factor with the low and with the high half of a byte.
    type Factor = [__m128i; 2];
    /// The low and the high halves of each byte, as indices.
    type Operand = [__m128i; 2];

    #[inline(always)]
    unsafe fn zero() -> Self {
        V128(unsafe { _mm_setzero_si128() })
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        V128(unsafe { _mm_loadu_si128(from.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        unsafe { _mm_storeu_si128(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn factor(factor: u8) -> [__m128i; 2] {
        let tables = products(factor);
        unsafe {
            [
                _mm_load_si128(tables.low.as_ptr().cast()),
                _mm_load_si128(tables.high.as_ptr().cast()),
            ]
        }
    }

    #[inline(always)]
    unsafe fn operand(self) -> [__m128i; 2] {
        unsafe {
            let mask = _mm_set1_epi8(0x0F);
            let high = _mm_srli_epi64::<4>(self.0);
            [_mm_and_si128(self.0, mask), _mm_and_si128(high, mask)]
        }
    }

    #[inline(always)]
    unsafe fn add_product(self, operand: [__m128i; 2], factor: [__m128i; 2]) -> Self {
        unsafe {
            let low = _mm_shuffle_epi8(factor[0], operand[0]);
            let high = _mm_shuffle_epi8(factor[1], operand[1]);
            V128(_mm_xor_si128(self.0, _mm_xor_si128(low, high)))
        }
    }
}
