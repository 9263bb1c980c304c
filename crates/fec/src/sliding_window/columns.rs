//! The unknowns of a decoder's equations, and the column of coefficients that each has.

/// Most missing sources that the repairs which a decoder keeps may cover.
pub const MOST: usize = 512;

/// Which missing sources the equations contain. However far these lie apart, each takes one column.
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

    /// How many there are.
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

    /// The source that has a column.
    pub(super) fn source(&self, column: u16) -> Option<u64> {
        self.iter().find(|(_, taken)| *taken == column).map(|(number, _)| number)
    }

    /// The column of a source. One that has none yet gets a free one; `None` if there is none.
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

    /// No equation contains the source any more.
    pub(super) fn release(&mut self, number: u64) {
        if let Ok(at) = self.find(number) {
            self.free.push(self.taken.remove(at).1);
        }
    }

    /// Frees the columns of which `in_use` says that no equation uses them.
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

    /// Where the source is in `taken`, or belongs.
    fn find(&self, number: u64) -> Result<usize, usize> {
        // Most that are asked for are newer than all of these.
        if self.taken.last().is_none_or(|(newest, _)| *newest < number) {
            return Err(self.taken.len());
        }
        self.taken.binary_search_by_key(&number, |(taken, _)| *taken)
    }
}
