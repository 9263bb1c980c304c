/// Detects duplicates by their number, as in ns-2. The index of a number in the table is its
/// remainder by the table's size, and each entry keeps the latest number.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent {
    numbers: Vec<u64>,
}

/// Number of entries in the table.
const REMEMBERED: usize = 1024;

impl Recent {
    /// Enters a number, which must be at least 1. Returns whether the table did not contain it.
    pub(super) fn is_new(&mut self, number: u64) -> bool {
        self.numbers.resize(REMEMBERED, 0);
        let place = self.numbers.get_mut(number as usize % REMEMBERED);
        place.is_some_and(|place| core::mem::replace(place, number) != number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_new_until_it_comes_and_again_once_another_has_its_place() {
        let mut recent = Recent::default();
        assert!(recent.is_new(7) && recent.is_new(8));
        assert!(!recent.is_new(7) && !recent.is_new(8));
        assert!(recent.is_new(7 + REMEMBERED as u64));
        assert!(recent.is_new(7));
    }
}
