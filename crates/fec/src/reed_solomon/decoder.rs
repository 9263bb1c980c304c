use super::inverse::{CauchyInverse, MAX_ERASURES, run};
use super::received::Received;
use super::{Error, MAX_SYMBOLS, Repairs, coefficient};
use crate::gf256::{EXP, LOG, ORDER};
use crate::kernel::{Kernel, Matrix};
use core::ops::Range;

/// Scratch rows start this many bytes apart, so that vectors do not straddle cache lines.
const ROW_ALIGNMENT: usize = 64;

/// The most sources of blocks that are decoded with small and with middling arrays.
const SMALL_BLOCK: usize = 32;
const MIDDLING_BLOCK: usize = 64;

/// Rebuilds missing source symbols. Its scratch space is kept from block to block: once it has
/// grown to the largest block, decoding allocates nothing.
#[derive(Debug)]
pub struct Decoder {
    kernel: Kernel,
    syndromes: Vec<u8>,
    recovered: Vec<u8>,
    missing: [u8; MAX_SYMBOLS],
}

impl Decoder {
    /// A decoder with the fastest kernel.
    pub fn new() -> Self {
        Decoder::with_kernel(Kernel::best())
    }

    /// A decoder with a given kernel.
    pub fn with_kernel(kernel: Kernel) -> Self {
        Decoder { kernel, syndromes: Vec::new(), recovered: Vec::new(), missing: [0; MAX_SYMBOLS] }
    }

    /// A decoder with the fastest kernel that uses the given scratch space.
    /// [`Decoder::into_buffers`] gives the space back, so that a caller can decode many blocks with
    /// the same space.
    pub fn with_buffers((syndromes, recovered): (Vec<u8>, Vec<u8>)) -> Self {
        Decoder { syndromes, recovered, ..Decoder::new() }
    }

    /// The scratch space, for another decoder.
    pub fn into_buffers(self) -> (Vec<u8>, Vec<u8>) {
        (self.syndromes, self.recovered)
    }

    /// Rebuilds the source symbols that are not in `known`, for a block of `sources` source
    /// symbols whose repairs have `symbol_length` bytes.
    ///
    /// `known` are source symbols by index, of at most `symbol_length` bytes; `repairs` are repair
    /// symbols by index, each of exactly that length. If there are more repairs than needed, the
    /// first ones are used. The order of either does not matter. Recovered symbols have
    /// `symbol_length` bytes; a source that was shorter ends with the zeros that encoding assumed.
    ///
    /// The first step takes the known sources' part out of each repair; what is left is a square
    /// Cauchy system in the missing sources alone, solved by its closed-form inverse. Both steps
    /// together multiply as many bytes as encoding that many repairs.
    ///
    /// # Errors
    /// If an index is out of range or given twice, a length is wrong, or there are fewer than
    /// `sources` symbols.
    pub fn decode<'a>(
        &mut self,
        sources: usize,
        symbol_length: usize,
        known: impl IntoIterator<Item = (u8, &'a [u8])>,
        repairs: impl IntoIterator<Item = (u8, &'a [u8])>,
    ) -> Result<Recovered<'_>, Error> {
        // An array for every possible symbol would cost a small block a tenth of its time.
        if sources <= SMALL_BLOCK {
            self.decode_up_to::<SMALL_BLOCK>(sources, symbol_length, known, repairs)
        } else if sources <= MIDDLING_BLOCK {
            self.decode_up_to::<MIDDLING_BLOCK>(sources, symbol_length, known, repairs)
        } else {
            self.decode_up_to::<MAX_SYMBOLS>(sources, symbol_length, known, repairs)
        }
    }

    /// [`Decoder::decode`] with arrays for `MAX` sources.
    fn decode_up_to<'a, const MAX: usize>(
        &mut self,
        sources: usize,
        symbol_length: usize,
        known: impl IntoIterator<Item = (u8, &'a [u8])>,
        repairs: impl IntoIterator<Item = (u8, &'a [u8])>,
    ) -> Result<Recovered<'_>, Error> {
        let mut received = Received::<MAX>::new(sources, symbol_length);
        received.collect(known, repairs)?;
        received.find_missing(&mut self.missing);
        let count = received.missing_count();
        let shape = Shape {
            count,
            stride: symbol_length.next_multiple_of(ROW_ALIGNMENT).max(ROW_ALIGNMENT),
            symbol_length,
        };
        shape.make_room(&mut self.recovered);
        match count {
            0 => {}
            1 => self.solve_one(&received, shape),
            2..=8 => self.solve_several::<8, MAX>(&received, shape),
            9..=32 => self.solve_several::<32, MAX>(&received, shape),
            _ => self.solve_several::<MAX_ERASURES, MAX>(&received, shape),
        }
        Ok(Recovered { indices: &self.missing[..count], rows: &self.recovered, shape })
    }

    /// Rebuilds the only missing source in one step, since solving the system is a single division.
    fn solve_one<const SOURCES: usize>(&mut self, received: &Received<'_, SOURCES>, shape: Shape) {
        let (Some(repair), missing) = (received.repair_indices().first(), self.missing[0]) else {
            return;
        };
        let known_indices = received.known_indices();
        let divisor = LOG[usize::from(coefficient(*repair, missing))];
        let scale = ORDER - usize::from(divisor);
        let output = &mut self.recovered[..shape.symbol_length];
        self.kernel.multiply(received.known_and_repairs(), &mut [output], |_, input| {
            // Known sources come first; the one input after them is the repair itself.
            let factor = known_indices.get(input).map_or(1, |index| coefficient(*repair, *index));
            EXP[scale + usize::from(LOG[usize::from(factor)])]
        });
    }

    /// Rebuilds up to `MAX` missing sources: first computes the syndromes, then solves the square
    /// system.
    fn solve_several<const MAX: usize, const SOURCES: usize>(
        &mut self,
        received: &Received<'_, SOURCES>,
        shape: Shape,
    ) {
        shape.make_room(&mut self.syndromes);
        let (repair_indices, known_indices) = (received.repair_indices(), received.known_indices());
        let mut syndromes = shape.rows_mut::<MAX>(&mut self.syndromes);
        let syndromes = &mut syndromes[..shape.count];
        let (repairs, known) = (received.repairs(), received.known());
        let run = run(repair_indices).map(|run| Repairs { first: run.start });
        let matrix = KnownPart { repairs: repair_indices, known: known_indices, run };
        self.kernel.multiply_and_add(repairs, matrix, known, syndromes);

        let missing = &self.missing[..shape.count];
        let inverse = CauchyInverse::<MAX>::new(repair_indices, missing, known_indices);
        // Rows extend to the start of the next row, so that the kernel has no partial vector to
        // handle. The products of the extra bytes are never used.
        let whole = Shape { symbol_length: shape.stride, ..shape };
        let inputs = whole.rows::<MAX>(&self.syndromes);
        let mut outputs = whole.rows_mut::<MAX>(&mut self.recovered);
        self.kernel.multiply_by(inverse, &inputs[..shape.count], &mut outputs[..shape.count]);
    }
}

/// The code's matrix at the repairs that are used and the sources that are known.
struct KnownPart<'a> {
    repairs: &'a [u8],
    known: &'a [u8],
    /// `repairs` as a run if they are consecutive, as they mostly are, since the first ones are
    /// used.
    run: Option<Repairs>,
}

impl Matrix for KnownPart<'_> {
    #[inline(always)]
    fn write_column(&self, input: usize, rows: Range<usize>, column: &mut [u8]) {
        let source = self.known[input];
        if let Some(run) = &self.run {
            run.write_column(source.into(), rows, column);
            return;
        }
        for (repair, entry) in self.repairs[rows].iter().zip(column) {
            *entry = coefficient(*repair, source);
        }
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder::new()
    }
}

/// The source symbols that a [`Decoder`] rebuilt, by index in ascending order. The bytes stay in
/// the decoder until its next block.
#[derive(Clone, Debug)]
pub struct Recovered<'a> {
    indices: &'a [u8],
    rows: &'a [u8],
    shape: Shape,
}

impl<'a> Iterator for Recovered<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (index, indices) = self.indices.split_first()?;
        let (row, rows) = self.rows.split_at_checked(self.shape.stride)?;
        self.indices = indices;
        self.rows = rows;
        Some((*index, row.get(..self.shape.symbol_length)?))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.indices.len(), Some(self.indices.len()))
    }
}

impl ExactSizeIterator for Recovered<'_> {}

/// The layout of rows in scratch space: `count` rows, at most [`MAX_ERASURES`], start `stride`
/// bytes apart, and the first `symbol_length` bytes of each are used.
#[derive(Clone, Copy, Debug)]
struct Shape {
    count: usize,
    stride: usize,
    symbol_length: usize,
}

impl Shape {
    fn make_room(self, scratch: &mut Vec<u8>) {
        let length = self.count * self.stride;
        if scratch.len() < length {
            scratch.resize(length, 0);
        }
    }

    /// The rows of `scratch`, at the front of the array.
    // Inlined, so that the array is built where it is used.
    #[inline(always)]
    fn rows<const MAX: usize>(self, scratch: &[u8]) -> [&[u8]; MAX] {
        let mut rows: [&[u8]; MAX] = [&[]; MAX];
        for (row, space) in rows[..self.count].iter_mut().zip(scratch.chunks_exact(self.stride)) {
            *row = &space[..self.symbol_length];
        }
        rows
    }

    /// The rows of `scratch`, at the front of the array.
    #[inline(always)]
    fn rows_mut<const MAX: usize>(self, scratch: &mut [u8]) -> [&mut [u8]; MAX] {
        let mut rows: [&mut [u8]; MAX] = core::array::from_fn(|_| Default::default());
        let spaces = scratch.chunks_exact_mut(self.stride);
        for (row, space) in rows[..self.count].iter_mut().zip(spaces) {
            *row = &mut space[..self.symbol_length];
        }
        rows
    }
}
