use super::{Bits, Error, ROWS, WORDS, bit, coefficients};
use crate::kernel::{Kernel, MAX_INPUTS};

/// Entry of a column in which no row has its pivot.
const NONE: u16 = u16::MAX;

/// A sum of repairs: which sources it contains, and which repairs were added up to make it.
#[derive(Clone, Copy, Debug)]
struct Row {
    sources: Bits,
    repairs: Bits,
}

impl Row {
    fn add(&mut self, other: &Row) {
        for (word, other) in self.sources.iter_mut().zip(other.sources) {
            *word ^= other;
        }
        for (word, other) in self.repairs.iter_mut().zip(other.repairs) {
            *word ^= other;
        }
    }

    /// The first source in the row, from index `from` on, that is not among the `known`.
    fn first_unknown(&self, known: &Bits, from: usize) -> Option<usize> {
        let mut mask = u64::MAX << (from % 64);
        for (at, (word, known)) in self.sources.iter().zip(known).enumerate().skip(from / 64) {
            let unknown = word & !known & mask;
            if unknown != 0 {
                return Some(at * 64 + unknown.trailing_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
    }
}

/// The symbols of a block that a receiver holds.
#[derive(Clone, Copy, Debug)]
pub struct Held<'a> {
    /// Bytes of a repair.
    pub length: usize,
    /// The sources that have arrived, by rising index, none longer than a repair.
    pub known: &'a [(u16, &'a [u8])],
    /// The repairs that [`Equations::repair`] kept, in the order in which they arrived.
    pub repairs: &'a [&'a [u8]],
}

/// The symbols of one block that have arrived, as equations in the missing sources. They are kept
/// in echelon form: the first unknown of each row, its pivot, is the first unknown of no other row.
///
/// Memory is kept from block to block: at most 256 bytes for each source of the largest.
#[derive(Debug)]
pub struct Equations {
    sources: usize,
    known: Bits,
    missing: usize,
    rows: Vec<Row>,
    /// By source: the row whose pivot it is, or [`NONE`].
    row_of: Vec<u16>,
    /// How many repairs were kept.
    kept: usize,
}

impl Default for Equations {
    fn default() -> Self {
        Equations {
            sources: 0,
            known: [0; WORDS],
            missing: 0,
            rows: Vec::new(),
            row_of: Vec::new(),
            kept: 0,
        }
    }
}

impl Equations {
    /// Starts a new block of `sources` source symbols, of which none has arrived.
    ///
    /// # Errors
    /// If a block cannot have this many sources.
    pub fn begin(&mut self, sources: usize) -> Result<(), Error> {
        if sources == 0 || sources > super::MAX_SOURCES {
            return Err(Error::Sources(sources));
        }
        self.rows.clear();
        self.row_of.clear();
        self.row_of.resize(sources, NONE);
        (self.sources, self.missing, self.kept) = (sources, sources, 0);
        self.known = [0; WORDS];
        Ok(())
    }

    /// How many independent symbols are still needed.
    pub fn deficit(&self) -> usize {
        self.missing - self.rows.len()
    }

    /// The source at `index` has arrived.
    pub fn source(&mut self, index: usize) {
        if index >= self.sources || bit(&self.known, index) {
            return;
        }
        self.known[index / 64] |= 1 << (index % 64);
        self.missing -= 1;
        let at = core::mem::replace(&mut self.row_of[index], NONE);
        if at != NONE {
            // The row has lost its pivot: it gets another, or is dropped if no unknown is left.
            let row = self.rows.swap_remove(at.into());
            if let Some(moved) = self.rows.get(usize::from(at))
                && let Some(pivot) = moved.first_unknown(&self.known, 0)
            {
                self.row_of[pivot] = at;
            }
            self.insert(row, index);
        }
    }

    /// The repair with `key` has arrived. Returns false if the other symbols already imply it.
    /// Otherwise it is kept, and its bytes have to be given to [`rebuild`](Self::rebuild).
    pub fn repair(&mut self, key: u32) -> bool {
        if self.deficit() == 0 {
            return false;
        }
        let mut row = Row { sources: coefficients(key, self.sources), repairs: [0; WORDS] };
        // Every repair that was kept raised the rank, so no more are kept than the block has
        // sources.
        if let Some(word) = row.repairs.get_mut(self.kept / 64) {
            *word |= 1 << (self.kept % 64);
        }
        let helps = self.insert(row, 0);
        self.kept += usize::from(helps);
        helps
    }

    /// Reduces a row without unknowns below `from` to echelon form and adds it. Returns false if no unknown is left
    /// in it.
    fn insert(&mut self, mut row: Row, from: usize) -> bool {
        let mut from = from;
        while let Some(pivot) = row.first_unknown(&self.known, from) {
            from = pivot;
            match self.row_of[pivot] {
                NONE => {
                    self.row_of[pivot] = self.rows.len() as u16;
                    self.rows.push(row);
                    return true;
                }
                at => row.add(&self.rows[usize::from(at)]),
            }
        }
        false
    }

    /// Rebuilds the missing sources: `out` is called with the index of each and its bytes, as long as a repair.
    /// `buffer` is scratch space, which grows as needed; nothing else is allocated.
    ///
    /// # Errors
    /// If the symbols do not suffice, are not those that were announced, or have a wrong length.
    pub fn rebuild(
        &mut self,
        held: &Held<'_>,
        buffer: &mut Vec<u8>,
        mut out: impl FnMut(u16, &[u8]),
    ) -> Result<(), Error> {
        let Held { length, known, repairs } = *held;
        if self.deficit() > 0 || known.len() + self.missing != self.sources {
            return Err(Error::NotEnough);
        }
        let announced = known.iter().all(|(index, _)| bit(&self.known, usize::from(*index)));
        if repairs.len() != self.kept || !announced {
            return Err(Error::NotEnough);
        }
        if repairs.iter().any(|repair| repair.len() != length)
            || known.iter().any(|(_, source)| source.len() > length)
        {
            return Err(Error::Length);
        }
        self.substitute_back();
        let room = ROWS * length;
        if buffer.len() < room {
            buffer.resize(room, 0);
        }
        let mut missing = (0..self.sources).filter(|index| !bit(&self.known, *index));
        loop {
            let mut batch = [0; ROWS];
            let mut count = 0;
            for (entry, index) in batch.iter_mut().zip(&mut missing) {
                *entry = index;
                count += 1;
            }
            let Some(batch) = batch.get(..count).filter(|batch| !batch.is_empty()) else {
                return Ok(());
            };
            self.combine_batch(batch, held, &mut buffer[..room]);
            for (index, bytes) in batch.iter().zip(buffer.chunks_exact(length.max(1))) {
                out(*index as u16, bytes.get(..length).unwrap_or_default());
            }
        }
    }

    /// Reduces every row until its pivot is its only unknown.
    fn substitute_back(&mut self) {
        for pivot in (0..self.sources).rev() {
            let at = self.row_of[pivot];
            if at == NONE {
                continue;
            }
            let mut row = self.rows[usize::from(at)];
            let mut from = pivot + 1;
            while from < self.sources
                && let Some(next) = row.first_unknown(&self.known, from)
            {
                // Rows of higher pivots hold no other unknown by now.
                row.add(&self.rows[usize::from(self.row_of[next])]);
                from = next + 1;
            }
            self.rows[usize::from(at)] = row;
        }
    }

    /// Writes the missing sources of `batch` into consecutive rows of `buffer`.
    fn combine_batch(&self, batch: &[usize], held: &Held<'_>, buffer: &mut [u8]) {
        let Held { length, known, repairs } = *held;
        let mut rows: [&mut [u8]; ROWS] = Default::default();
        for (row, space) in rows.iter_mut().zip(buffer.chunks_exact_mut(length.max(1))) {
            *row = space;
        }
        let Some(rows) = rows.get_mut(..batch.len()) else { return };
        let equation = |row: usize| &self.rows[usize::from(self.row_of[batch[row]])];
        let mut inputs: [&[u8]; MAX_INPUTS] = [&[]; MAX_INPUTS];
        let mut chosen = [(false, 0_usize); MAX_INPUTS];
        let sources = known.iter().map(|(index, bytes)| (false, usize::from(*index), *bytes));
        let all = repairs.iter().enumerate().map(|(at, bytes)| (true, at, *bytes)).chain(sources);
        let mut all = all.peekable();
        rows.iter_mut().for_each(|row| row.fill(0));
        while all.peek().is_some() {
            let mut count = 0;
            for (slot, (is_repair, at, bytes)) in (&mut all).take(MAX_INPUTS).enumerate() {
                inputs[slot] = bytes;
                chosen[slot] = (is_repair, at);
                count += 1;
            }
            Kernel::best().multiply_add(&inputs[..count], rows, |row, input| {
                let (is_repair, at) = chosen[input];
                let row = equation(row);
                u8::from(bit(if is_repair { &row.repairs } else { &row.sources }, at))
            });
        }
    }
}
