use super::inverse::{CauchyInverse, MAX_ERASURES};
use super::{Error, MAX_SYMBOLS, Role, coefficient};
use crate::kernel::Kernel;

/// Scratch rows start this many bytes apart, so that vectors do not straddle cache lines.
const ROW_ALIGNMENT: usize = 64;

/// Rebuilds missing source symbols. Its scratch space is kept from block to block: once it has
/// grown to the largest block, decoding allocates nothing.
#[derive(Debug, Default)]
pub struct Decoder {
    kernel: Kernel,
    syndromes: Vec<u8>,
    recovered: Vec<u8>,
    missing: Vec<u8>,
}

impl Decoder {
    /// A decoder with the fastest kernel.
    pub fn new() -> Self {
        Decoder::default()
    }

    /// A decoder with a given kernel.
    pub fn with_kernel(kernel: Kernel) -> Self {
        Decoder { kernel, ..Decoder::default() }
    }

    /// Rebuilds the source symbols that are not in `known`, for a block of `sources` source
    /// symbols whose repairs have `symbol_length` bytes.
    ///
    /// `known` are source symbols by index, of at most `symbol_length` bytes; `repairs` are repair
    /// symbols by index, each of exactly that length. If there are more repairs than needed, the
    /// first ones are used. The order of either does not matter. Recovered symbols have
    /// `symbol_length` bytes, with the zeros that encoding supposed after a shorter source.
    ///
    /// The first step takes the known sources' part out of each repair; what is left is a square
    /// Cauchy system in the missing sources alone, solved by its closed-form inverse. Both steps
    /// together multiply as many bytes as encoding that many repairs.
    ///
    /// # Errors
    /// Any index out of range or given twice, any wrong length, or fewer than `sources` symbols.
    pub fn decode<'a>(
        &mut self,
        sources: usize,
        symbol_length: usize,
        known: impl IntoIterator<Item = (u8, &'a [u8])>,
        repairs: impl IntoIterator<Item = (u8, &'a [u8])>,
    ) -> Result<Recovered<'_>, Error> {
        if sources == 0 {
            return Err(Error::NoSources);
        }
        if sources > MAX_SYMBOLS {
            return Err(Error::TooManySymbols { sources, repairs: 0 });
        }
        let mut present = Symbols::new(Role::Source, sources, symbol_length);
        for (index, bytes) in known {
            present.add(index, bytes)?;
        }
        let mut extra = Symbols::new(Role::Repair, sources, symbol_length);
        for (index, bytes) in repairs {
            extra.add(index, bytes)?;
        }
        let missing = sources - present.count;
        if extra.count < missing {
            return Err(Error::NotEnoughSymbols { missing, repairs: extra.count });
        }
        extra.count = missing;
        self.missing.clear();
        self.missing.extend((0..sources as u8).filter(|index| !present.seen[usize::from(*index)]));

        let stride = symbol_length.next_multiple_of(ROW_ALIGNMENT).max(ROW_ALIGNMENT);
        self.compute_syndromes(stride, symbol_length, &present, &extra);
        self.solve(stride, symbol_length, &extra);
        Ok(Recovered { indices: &self.missing, rows: &self.recovered, stride, symbol_length })
    }

    /// Each repair less the known sources' part in it.
    fn compute_syndromes(
        &mut self,
        stride: usize,
        symbol_length: usize,
        known: &Symbols<'_>,
        repairs: &Symbols<'_>,
    ) {
        grow(&mut self.syndromes, stride * repairs.count);
        let mut rows = rows_mut(&mut self.syndromes, stride, symbol_length);
        let rows = &mut rows[..repairs.count];
        for (row, repair) in rows.iter_mut().zip(repairs.bytes()) {
            row.copy_from_slice(repair);
        }
        let (repair_indices, known_indices) = (repairs.indices(), known.indices());
        self.kernel.multiply_add(known.bytes(), rows, |row, input| {
            coefficient(repair_indices[row], known_indices[input])
        });
    }

    /// The missing sources from the syndromes.
    fn solve(&mut self, stride: usize, symbol_length: usize, repairs: &Symbols<'_>) {
        let count = repairs.count;
        grow(&mut self.recovered, stride * count);
        let mut outputs = rows_mut(&mut self.recovered, stride, symbol_length);
        let mut inputs: [&[u8]; MAX_ERASURES] = [&[]; MAX_ERASURES];
        for (input, row) in inputs.iter_mut().zip(self.syndromes.chunks_exact(stride)) {
            *input = &row[..symbol_length];
        }
        let mut points = [0; MAX_ERASURES];
        for (point, index) in points.iter_mut().zip(repairs.indices()) {
            *point = !index;
        }
        let inverse = CauchyInverse::new(&points[..count], &self.missing);
        self.kernel.multiply(&inputs[..count], &mut outputs[..count], |row, column| {
            inverse.element(row, column)
        });
    }
}

/// The source symbols that a [`Decoder`] rebuilt, by index in ascending order. The bytes lie in
/// the decoder until its next block.
#[derive(Clone, Debug)]
pub struct Recovered<'a> {
    indices: &'a [u8],
    rows: &'a [u8],
    stride: usize,
    symbol_length: usize,
}

impl<'a> Iterator for Recovered<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (index, indices) = self.indices.split_first()?;
        let (row, rows) = self.rows.split_at_checked(self.stride)?;
        self.indices = indices;
        self.rows = rows;
        Some((*index, row.get(..self.symbol_length)?))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.indices.len(), Some(self.indices.len()))
    }
}

impl ExactSizeIterator for Recovered<'_> {}

/// Symbols of one role, checked, without duplicates, in the order they were given.
struct Symbols<'a> {
    role: Role,
    /// Source symbols in the block.
    sources: usize,
    symbol_length: usize,
    count: usize,
    all_indices: [u8; MAX_SYMBOLS],
    all_bytes: [&'a [u8]; MAX_SYMBOLS],
    seen: [bool; MAX_SYMBOLS],
}

impl<'a> Symbols<'a> {
    fn new(role: Role, sources: usize, symbol_length: usize) -> Self {
        Symbols {
            role,
            sources,
            symbol_length,
            count: 0,
            all_indices: [0; MAX_SYMBOLS],
            all_bytes: [&[]; MAX_SYMBOLS],
            seen: [false; MAX_SYMBOLS],
        }
    }

    fn add(&mut self, index: u8, bytes: &'a [u8]) -> Result<(), Error> {
        let (role, sources, length) = (self.role, self.sources, bytes.len());
        let limit = match role {
            Role::Source => sources,
            Role::Repair => MAX_SYMBOLS - sources,
        };
        if usize::from(index) >= limit {
            return Err(Error::IndexOutOfRange { role, index, sources });
        }
        if role == Role::Source && length > self.symbol_length {
            return Err(Error::SourceTooLong { index, length, limit: self.symbol_length });
        }
        if role == Role::Repair && length != self.symbol_length {
            return Err(Error::RepairLength { length, expected: self.symbol_length });
        }
        if core::mem::replace(&mut self.seen[usize::from(index)], true) {
            return Err(Error::Duplicate { role, index });
        }
        // The count stays below `MAX_SYMBOLS`: every index does, and comes once.
        self.all_indices[self.count] = index;
        self.all_bytes[self.count] = bytes;
        self.count += 1;
        Ok(())
    }

    fn indices(&self) -> &[u8] {
        &self.all_indices[..self.count]
    }

    fn bytes(&self) -> &[&'a [u8]] {
        &self.all_bytes[..self.count]
    }
}

/// Makes `scratch` at least `length` bytes long.
fn grow(scratch: &mut Vec<u8>, length: usize) {
    if scratch.len() < length {
        scratch.resize(length, 0);
    }
}

/// The first `symbol_length` bytes of every `stride` bytes of `scratch`.
fn rows_mut(scratch: &mut [u8], stride: usize, symbol_length: usize) -> [&mut [u8]; MAX_ERASURES] {
    let mut rows = scratch.chunks_exact_mut(stride);
    core::array::from_fn(|_| match rows.next() {
        Some(row) => &mut row[..symbol_length],
        None => &mut [],
    })
}
