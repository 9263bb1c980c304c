//! The unknowns of a decoder's equations, and the column of coefficients that each has.

/// The most missing sources that the equations of a decoder may contain.
pub const MOST: usize = 512;

/// The missing sources that the equations contain. Each takes one column, however far apart their numbers are.
#[derive(Debug)]
pub(super) struct Columns {
    /// Sources and their columns, by number.
    taken: Vec<(u64, u16)>,
    free: Vec<u16>,
}

impl Columns {
    pub(super) fn new() -> Self {
        Columns { taken: Vec::with_capacity(MOST), free: (0..MOST as u16).rev().collect() }
    }

    /// How many sources have a column.
    pub(super) fn len(&self) -> usize {
        self.taken.len()
    }

    /// Sources and their columns, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u16)> + '_ {
        self.taken.iter().copied()
    }

    /// The column of a source.
    pub(super) fn of(&self, number: u64) -> Option<u16> {
        self.find(number).ok().map(|at| self.taken[at].1)
    }

    /// The source to which a column belongs.
    pub(super) fn source(&self, column: u16) -> Option<u64> {
        self.iter().find(|(_, taken)| *taken == column).map(|(number, _)| number)
    }

    /// The column of a source, which gets a free one if it has none yet; `None` if no column is free.
    pub(super) fn take(&mut self, number: u64) -> Option<u16> {
        match self.find(number) {
            Ok(at) => Some(self.taken[at].1),
            Err(at) => {
                let column = self.free.pop()?;
                self.taken.insert(at, (number, column));
                Some(column)
            }
        }
    }

    /// Frees the column of a source that no equation contains any more.
    pub(super) fn release(&mut self, number: u64) {
        if let Ok(at) = self.find(number) {
            self.free.push(self.taken.remove(at).1);
        }
    }

    /// Frees the columns for which `in_use` returns false.
    pub(super) fn retain(&mut self, in_use: impl Fn(u16) -> bool) {
        let free = &mut self.free;
        self.taken.retain(|(_, column)| {
            let kept = in_use(*column);
            if !kept {
                free.push(*column);
            }
            kept
        });
    }

    /// The place of the source in `taken`: `Ok` if it is there, else `Err` with the place where it belongs.
    fn find(&self, number: u64) -> Result<usize, usize> {
        // Most of the sources looked up are newer than all in `taken`.
        if self.taken.last().is_none_or(|(newest, _)| *newest < number) {
            return Err(self.taken.len());
        }
        self.taken.binary_search_by_key(&number, |(taken, _)| *taken)
    }
}
