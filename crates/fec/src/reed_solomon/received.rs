use super::{Error, MAX_SYMBOLS, Role};

/// The symbols of one block that arrived: checked, none twice, known sources before repairs.
///
/// Everything is held in arrays with room for blocks of up to `MAX` sources, since no more symbols
/// than sources are kept: surplus repairs are only checked and counted.
pub(super) struct Received<'a, const MAX: usize> {
    sources: usize,
    symbol_length: usize,
    known_count: usize,
    count: usize,
    indices: [u8; MAX],
    symbols: [&'a [u8]; MAX],
    /// By source index, then by repair index.
    seen: [bool; MAX_SYMBOLS],
}

impl<'a, const MAX: usize> Received<'a, MAX> {
    /// A block of `sources` source symbols whose repairs have `symbol_length` bytes; nothing of it has arrived.
    #[inline]
    pub(super) fn new(sources: usize, symbol_length: usize) -> Self {
        // Copying a constant is faster than filling an array of references one by one.
        let none: &'static [&'static [u8]; MAX] = const { &[&[]; MAX] };
        Received {
            sources,
            symbol_length,
            known_count: 0,
            count: 0,
            indices: [0; MAX],
            symbols: *none,
            seen: [false; MAX_SYMBOLS],
        }
    }

    /// Takes in and checks the symbols that arrived. Fills `self` in place, since moving a value of this size
    /// would take as long as encoding a symbol.
    pub(super) fn collect(
        &mut self,
        known: impl IntoIterator<Item = (u8, &'a [u8])>,
        repairs: impl IntoIterator<Item = (u8, &'a [u8])>,
    ) -> Result<(), Error> {
        if self.sources == 0 {
            return Err(Error::NoSources);
        }
        if self.sources > MAX.min(MAX_SYMBOLS) {
            return Err(Error::TooManySymbols { sources: self.sources, repairs: 0 });
        }
        for (index, symbol) in known {
            self.add_source(index, symbol)?;
        }
        self.known_count = self.count;
        for (index, symbol) in repairs {
            self.add_repair(index, symbol)?;
        }
        let (missing, repairs) = (self.missing_count(), self.count - self.known_count);
        if repairs < missing {
            return Err(Error::NotEnoughSymbols { missing, repairs });
        }
        Ok(())
    }

    /// How many sources are missing.
    pub(super) fn missing_count(&self) -> usize {
        self.sources - self.known_count
    }

    /// Writes the missing sources' indices, ascending, to the front of `missing`.
    pub(super) fn find_missing(&self, missing: &mut [u8; MAX_SYMBOLS]) {
        let mut count = 0;
        // The index is written whether the source is missing or not: losses are random, so the
        // processor would mispredict a branch.
        for (index, seen) in self.seen[..self.sources].iter().enumerate() {
            missing[count] = index as u8;
            count += usize::from(!seen);
        }
    }

    /// The known sources' indices, in the order in which they were given.
    pub(super) fn known_indices(&self) -> &[u8] {
        &self.indices[..self.known_count]
    }

    /// The known sources, in the order in which they were given.
    pub(super) fn known(&self) -> &[&'a [u8]] {
        &self.symbols[..self.known_count]
    }

    /// The indices of the first repairs, as many as sources are missing.
    pub(super) fn repair_indices(&self) -> &[u8] {
        &self.indices[self.known_count..self.sources]
    }

    /// The first repairs, as many as sources are missing.
    pub(super) fn repairs(&self) -> &[&'a [u8]] {
        &self.symbols[self.known_count..self.sources]
    }

    /// The known sources and then the repairs: as many as the block has sources.
    pub(super) fn known_and_repairs(&self) -> &[&'a [u8]] {
        &self.symbols[..self.sources]
    }

    fn add_source(&mut self, index: u8, symbol: &'a [u8]) -> Result<(), Error> {
        if usize::from(index) >= self.sources {
            return Err(self.out_of_range(Role::Source, index));
        }
        if symbol.len() > self.symbol_length {
            let (length, limit) = (symbol.len(), self.symbol_length);
            return Err(Error::SourceTooLong { index, length, limit });
        }
        self.add(Role::Source, usize::from(index), index, symbol)
    }

    fn add_repair(&mut self, index: u8, symbol: &'a [u8]) -> Result<(), Error> {
        let place = self.sources + usize::from(index);
        if place >= MAX_SYMBOLS {
            return Err(self.out_of_range(Role::Repair, index));
        }
        if symbol.len() != self.symbol_length {
            let (length, expected) = (symbol.len(), self.symbol_length);
            return Err(Error::RepairLength { length, expected });
        }
        self.add(Role::Repair, place, index, symbol)
    }

    /// Takes in a symbol whose place in `seen` is `place`, below [`MAX_SYMBOLS`].
    fn add(&mut self, role: Role, place: usize, index: u8, symbol: &'a [u8]) -> Result<(), Error> {
        if core::mem::replace(&mut self.seen[place], true) {
            return Err(Error::Duplicate { role, index });
        }
        // Sources always fit, since none is taken in twice.
        if self.count < self.sources {
            self.indices[self.count] = index;
            self.symbols[self.count] = symbol;
        }
        self.count += 1;
        Ok(())
    }

    fn out_of_range(&self, role: Role, index: u8) -> Error {
        Error::IndexOutOfRange { role, index, sources: self.sources }
    }
}
