//! One affine instruction per vector: a factor is an 8 × 8 bit matrix over GF(2).
//!
//! The GFNI multiplication instruction is of no use here, since it multiplies modulo 0x11B.

use core::arch::x86_64::*;

use super::tile::{self, Vector};
use super::{Implementation, Job};
use crate::gf256::BIT_MATRICES;

/// 512-bit vectors with masked tails: AVX-512F, AVX-512BW and GFNI.
pub(super) static AVX512: Implementation = Implementation {
    name: "gfni-avx512",
    max_rows: WIDE_ROWS.len(),
    is_supported: || {
        is_x86_feature_detected!("gfni")
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
    },
    run: run_wide,
};

/// 256-bit vectors: AVX2 and GFNI.
pub(super) static AVX2: Implementation = Implementation {
    name: "gfni-avx2",
    max_rows: NARROW_ROWS.len(),
    is_supported: || is_x86_feature_detected!("gfni") && is_x86_feature_detected!("avx2"),
    run: run_narrow,
};

/// Indexed by the number of rows minus one. Sums fill at most 24 of the 32 registers. Tiles of few
/// rows take many vectors of each input at once: inputs larger than the first-level cache are then
/// read in long runs, which suit the processor's prefetchers.
static WIDE_ROWS: [unsafe fn(&mut Job<'_, '_>); 12] = [
    wide::<1, 16>,
    wide::<2, 8>,
    wide::<3, 6>,
    wide::<4, 4>,
    wide::<5, 4>,
    wide::<6, 3>,
    wide::<7, 3>,
    wide::<8, 2>,
    wide::<9, 2>,
    wide::<10, 2>,
    wide::<11, 2>,
    wide::<12, 2>,
];

/// Indexed by the number of rows minus one. Sums fill at most 12 of the 16 registers.
static NARROW_ROWS: [unsafe fn(&mut Job<'_, '_>); 6] = [
    narrow::<1, 4>,
    narrow::<2, 4>,
    narrow::<3, 4>,
    narrow::<4, 2>,
    narrow::<5, 2>,
    narrow::<6, 2>,
];

/// # Safety
/// As [`Implementation::run`] of [`AVX512`].
unsafe fn run_wide(job: &mut Job<'_, '_>) {
    // SAFETY: the caller guarantees the same; the index is in range, since a job has 1 to `max_rows` outputs.
    unsafe { WIDE_ROWS[job.outputs.len() - 1](job) }
}

/// # Safety
/// As [`Implementation::run`] of [`AVX2`].
unsafe fn run_narrow(job: &mut Job<'_, '_>) {
    // SAFETY: the caller guarantees the same; the index is in range, since a job has 1 to `max_rows` outputs.
    unsafe { NARROW_ROWS[job.outputs.len() - 1](job) }
}

#[target_feature(enable = "avx512f,avx512bw,gfni")]
unsafe fn wide<const ROWS: usize, const LANES: usize>(job: &mut Job<'_, '_>) {
    // SAFETY: this function enables the required CPU features; the caller guarantees that the job is as `Job`
    // demands.
    unsafe { tile::rows::<Wide, ROWS, LANES>(job) }
}

#[target_feature(enable = "avx2,gfni")]
unsafe fn narrow<const ROWS: usize, const LANES: usize>(job: &mut Job<'_, '_>) {
    // SAFETY: this function enables the required CPU features; the caller guarantees that the job is as `Job`
    // demands.
    unsafe { tile::rows::<Narrow, ROWS, LANES>(job) }
}

/// A mask of the first `count` bytes, 1 to 64.
const fn first(count: usize) -> __mmask64 {
    u64::MAX >> (64 - count)
}

#[derive(Clone, Copy)]
struct Wide(__m512i);

// SAFETY of every block: the trait's contract guarantees the CPU features and valid pointers.
impl Vector for Wide {
    const WIDTH: usize = 64;
    type Factor = __m512i;
    type Operand = __m512i;

    #[inline(always)]
    unsafe fn zero() -> Self {
        Wide(unsafe { _mm512_setzero_si512() })
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        Wide(unsafe { _mm512_loadu_si512(from.cast()) })
    }

    #[inline(always)]
    unsafe fn load_first(from: *const u8, count: usize) -> Self {
        // Masked-off bytes are not accessed.
        Wide(unsafe { _mm512_maskz_loadu_epi8(first(count), from.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        unsafe { _mm512_storeu_si512(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn store_first(self, to: *mut u8, count: usize) {
        unsafe { _mm512_mask_storeu_epi8(to.cast(), first(count), self.0) }
    }

    #[inline(always)]
    unsafe fn factor(factor: u8) -> __m512i {
        unsafe { _mm512_set1_epi64(BIT_MATRICES[usize::from(factor)].cast_signed()) }
    }

    #[inline(always)]
    unsafe fn operand(self) -> __m512i {
        self.0
    }

    #[inline(always)]
    unsafe fn add_product(self, operand: __m512i, factor: __m512i) -> Self {
        unsafe {
            Wide(_mm512_xor_si512(self.0, _mm512_gf2p8affine_epi64_epi8::<0>(operand, factor)))
        }
    }

    const MASKS: bool = true;
    const PAIRS: bool = true;

    /// One three-way exclusive or replaces two: on AMD's Zen 4 exclusive ors use the same execution ports as the
    /// affine instructions.
    #[inline(always)]
    unsafe fn add_two_products(self, operands: [__m512i; 2], factors: [__m512i; 2]) -> Self {
        const XOR: i32 = 0x96;
        unsafe {
            let first = _mm512_gf2p8affine_epi64_epi8::<0>(operands[0], factors[0]);
            let second = _mm512_gf2p8affine_epi64_epi8::<0>(operands[1], factors[1]);
            Wide(_mm512_ternarylogic_epi64::<XOR>(self.0, first, second))
        }
    }
}

#[derive(Clone, Copy)]
struct Narrow(__m256i);

// SAFETY of every block: the trait's contract guarantees the CPU features and valid pointers.
impl Vector for Narrow {
    const WIDTH: usize = 32;
    type Factor = __m256i;
    type Operand = __m256i;

    #[inline(always)]
    unsafe fn zero() -> Self {
        Narrow(unsafe { _mm256_setzero_si256() })
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        Narrow(unsafe { _mm256_loadu_si256(from.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        unsafe { _mm256_storeu_si256(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn factor(factor: u8) -> __m256i {
        unsafe { _mm256_set1_epi64x(BIT_MATRICES[usize::from(factor)].cast_signed()) }
    }

    #[inline(always)]
    unsafe fn operand(self) -> __m256i {
        self.0
    }

    #[inline(always)]
    unsafe fn add_product(self, operand: __m256i, factor: __m256i) -> Self {
        unsafe {
            Narrow(_mm256_xor_si256(self.0, _mm256_gf2p8affine_epi64_epi8::<0>(operand, factor)))
        }
    }
}
