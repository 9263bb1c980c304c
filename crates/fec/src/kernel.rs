//! Sums of scaled byte rows over GF(2^8), the inner loop of every code in this crate.
//!
//! A product computes `output[r] = Σ_j coefficient(r, j) · input[j]` byte by byte. [`Kernel`] is
//! one implementation of it; [`Kernel::best`] picks the fastest one that this processor can run.
//! All kernels give the same bytes. The vector kernels follow the shuffle method of Plank, Greenan
//! and Miller, "Screaming Fast Galois Field Arithmetic Using Intel SIMD Instructions" (FAST 2013),
//! and, with GFNI, one affine instruction per vector with an 8 × 8 bit matrix per factor. AArch64's
//! table instruction does what the shuffle does.
//!
//! Outputs are computed in tiles of a few rows by a few vectors, which stay in registers while
//! every input is read once. So each input byte is loaded once per tile of rows.

mod portable;

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "vector instructions and loads")]
mod gfni;
#[cfg(target_arch = "aarch64")]
#[expect(unsafe_code, reason = "vector instructions and loads")]
mod neon;
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "vector instructions and loads")]
mod shuffle;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[expect(unsafe_code, reason = "vector instructions and loads")]
mod tile;

use core::fmt;
use core::ops::Range;
use std::sync::OnceLock;

/// The most output rows a kernel takes in one tile.
const MAX_TILE_ROWS: usize = 12;

/// Bytes that a [`Matrix`] may write from the start of a tile's column. There are at least as many
/// as rows in a tile, so that a [`Matrix`] can write columns in whole vectors.
const COLUMN_SLACK: usize = 16;
const _: () = assert!(MAX_TILE_ROWS <= COLUMN_SLACK);

/// Sizes of tables for a tile's coefficients; the last is enough for any tile.
const SMALL_TABLE: usize = 256;
const MIDDLE_TABLE: usize = 1024;
const LARGE_TABLE: usize = MAX_TILE_ROWS * MAX_INPUTS + COLUMN_SLACK;

/// The most inputs a product takes: the number of symbols a block can have.
pub const MAX_INPUTS: usize = 255;

/// One implementation of products over GF(2^8). Copying it is free.
#[derive(Clone, Copy)]
pub struct Kernel(&'static Implementation);

impl Kernel {
    /// The fastest kernel that this processor can run. The choice is made once per process.
    pub fn best() -> Self {
        static BEST: OnceLock<Kernel> = OnceLock::new();
        *BEST.get_or_init(|| Kernel::available().next().unwrap_or(Kernel::portable()))
    }

    /// The kernel that runs on every machine.
    pub const fn portable() -> Self {
        Kernel(&portable::PORTABLE)
    }

    /// Every kernel that this processor can run, fastest first; the portable one is last.
    pub fn available() -> impl Iterator<Item = Self> {
        IMPLEMENTATIONS
            .iter()
            .filter(|implementation| (implementation.is_supported)())
            .map(|implementation| Kernel(implementation))
    }

    /// The kernel called `name`, if it exists and this processor can run it.
    pub fn named(name: &str) -> Option<Self> {
        Kernel::available().find(|kernel| kernel.name() == name)
    }

    /// The kernel's name: `gfni-avx512`, `gfni-avx2`, `avx2`, `ssse3`, `neon` or `portable`.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// Overwrites `outputs[r]` with `Σ_j coefficient(r, j) · inputs[j]`.
    ///
    /// An input shorter than the outputs counts as extended with zeros.
    ///
    /// # Panics
    /// If the outputs differ in length, an input is longer than they are, or there are more than
    /// [`MAX_INPUTS`] inputs.
    pub fn multiply(
        self,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
        coefficient: impl Fn(usize, usize) -> u8,
    ) {
        self.product(Start::Zero, inputs, outputs, Each(coefficient));
    }

    /// Adds `Σ_j coefficient(r, j) · inputs[j]` to `outputs[r]`. A shorter input counts as extended
    /// with zeros.
    ///
    /// # Panics
    /// As [`Kernel::multiply`].
    pub fn multiply_add(
        self,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
        coefficient: impl Fn(usize, usize) -> u8,
    ) {
        self.product(Start::Outputs, inputs, outputs, Each(coefficient));
    }

    /// [`Kernel::multiply`] with coefficients that `matrix` writes column by column.
    ///
    /// # Panics
    /// As [`Kernel::multiply`].
    pub(crate) fn multiply_by(
        self,
        matrix: impl Matrix,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) {
        self.product(Start::Zero, inputs, outputs, matrix);
    }

    /// Overwrites `outputs[r]` with `addends[r] + Σ_j matrix(r, j) · inputs[j]`: what copying
    /// the addends and then [`Kernel::multiply_add`] would give, without the copies.
    ///
    /// # Panics
    /// As [`Kernel::multiply`], or if there are not as many addends as outputs, of their length.
    pub(crate) fn multiply_and_add(
        self,
        addends: &[&[u8]],
        matrix: impl Matrix,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) {
        self.product(Start::Addends(addends), inputs, outputs, matrix);
    }

    fn product(
        self,
        start: Start<'_>,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
        matrix: impl Matrix,
    ) {
        let Some(length) = outputs.first().map(|output| output.len()) else {
            return;
        };
        // The vector kernels' memory safety rests on these checks.
        assert!(inputs.len() <= MAX_INPUTS, "more than {MAX_INPUTS} inputs");
        assert!(outputs.iter().all(|output| output.len() == length), "outputs differ in length");
        assert!(inputs.iter().all(|input| input.len() <= length), "an input exceeds the outputs");
        if let Start::Addends(addends) = start {
            assert!(addends.len() == outputs.len(), "addends and outputs differ in number");
            assert!(
                addends.iter().all(|addend| addend.len() == length),
                "addends differ in length"
            );
        }

        // Tiles of nearly equal height: a tile of few rows does less work for each input it loads.
        let tiles = outputs.len().div_ceil(self.0.max_rows);
        let height = outputs.len().div_ceil(tiles);
        for (tile, outputs) in outputs.chunks_mut(height).enumerate() {
            let first = tile * height;
            let start = match start {
                Start::Addends(addends) => Start::Addends(&addends[first..first + outputs.len()]),
                other => other,
            };
            // Clearing the largest table would measurably slow down small blocks.
            let entries = inputs.len() * outputs.len() + COLUMN_SLACK;
            if entries <= SMALL_TABLE {
                self.tile::<SMALL_TABLE>(start, inputs, outputs, &matrix, first);
            } else if entries <= MIDDLE_TABLE {
                self.tile::<MIDDLE_TABLE>(start, inputs, outputs, &matrix, first);
            } else {
                self.tile::<LARGE_TABLE>(start, inputs, outputs, &matrix, first);
            }
        }
    }

    /// Computes the tile of rows that begins with row `first`, with a table of `SIZE` bytes for its coefficients and
    /// the slack after them. The caller has checked all lengths and counts.
    #[expect(clippy::too_many_arguments, reason = "the operands of a matrix product")]
    fn tile<const SIZE: usize>(
        self,
        start: Start<'_>,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
        matrix: &impl Matrix,
        first: usize,
    ) {
        let rows = outputs.len();
        let mut table = [0; SIZE];
        for input in 0..inputs.len() {
            matrix.write_column(input, first..first + rows, &mut table[input * rows..]);
        }
        let table = &table[..inputs.len() * rows];
        self.run(&mut Job { start, coefficients: table, inputs, outputs });
    }

    #[expect(unsafe_code, reason = "the kernels are unsafe functions")]
    fn run(self, job: &mut Job<'_, '_>) {
        // SAFETY: a `Kernel` is only made from an implementation that this processor supports
        // (`available`, `portable`), and `product` has checked and built the job as `Job` demands.
        unsafe { (self.0.run)(job) }
    }
}

/// The coefficients of a product by columns: one column holds the factors of one input.
pub(crate) trait Matrix {
    /// Writes the coefficients of input `input` in rows `rows` to the front of `column`, which has
    /// room for [`COLUMN_SLACK`] bytes; the bytes after those of `rows` may have any value.
    fn write_column(&self, input: usize, rows: Range<usize>, column: &mut [u8]);
}

/// A matrix whose elements a function computes from row and input.
struct Each<F>(F);

impl<F: Fn(usize, usize) -> u8> Matrix for Each<F> {
    #[inline(always)]
    fn write_column(&self, input: usize, rows: Range<usize>, column: &mut [u8]) {
        for (row, entry) in rows.zip(column) {
            *entry = (self.0)(row, input);
        }
    }
}

impl Default for Kernel {
    fn default() -> Self {
        Kernel::best()
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kernel").field(&self.name()).finish()
    }
}

impl PartialEq for Kernel {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Kernel {}

/// A kernel's code and its requirements.
struct Implementation {
    name: &'static str,
    /// The most rows in a tile, in `1..=MAX_TILE_ROWS`.
    max_rows: usize,
    /// Whether this processor has the instructions.
    is_supported: fn() -> bool,
    /// Computes one tile.
    ///
    /// # Safety
    /// `is_supported` must have answered true, and the job must be as [`Job`] demands.
    run: unsafe fn(&mut Job<'_, '_>),
}

/// One tile of rows, over the whole length.
///
/// Invariants: 1 to `max_rows` outputs, all of one length; no input longer than that; as many
/// coefficients as inputs times outputs; as many addends, if any, as outputs and of their length.
struct Job<'a, 'b> {
    start: Start<'a>,
    /// Input by input, one coefficient per output.
    coefficients: &'a [u8],
    inputs: &'a [&'a [u8]],
    outputs: &'a mut [&'b mut [u8]],
}

/// Initial values of the output sums.
#[derive(Clone, Copy)]
enum Start<'a> {
    Zero,
    /// The current contents of the outputs.
    Outputs,
    /// One row for each output.
    Addends(&'a [&'a [u8]]),
}

/// The kernels of this architecture, fastest first.
static IMPLEMENTATIONS: &[&Implementation] = &[
    #[cfg(target_arch = "x86_64")]
    &gfni::AVX512,
    #[cfg(target_arch = "x86_64")]
    &gfni::AVX2,
    #[cfg(target_arch = "x86_64")]
    &shuffle::AVX2,
    #[cfg(target_arch = "x86_64")]
    &shuffle::SSSE3,
    #[cfg(target_arch = "aarch64")]
    &neon::NEON,
    &portable::PORTABLE,
];

#[cfg(test)]
mod tests;
