use std::collections::VecDeque;

/// Connections by their number. Each number is used once, and numbers rise, so a row is found by
/// its distance from the oldest row, and a number that is gone is never taken for a new connection.
/// The oldest row is stored inline, so that an endpoint with one connection needs no other memory.
#[derive(Debug)]
pub(super) struct Table<T> {
    /// The number of `oldest`; `later` holds the numbers that follow.
    base: u32,
    oldest: Row<T>,
    later: VecDeque<Row<T>>,
}

#[derive(Debug)]
enum Row<T> {
    /// The number has not been used yet.
    Unused,
    Live(T),
    Gone,
}

impl<T> Table<T> {
    pub(super) fn new() -> Self {
        Table { base: 0, oldest: Row::Unused, later: VecDeque::new() }
    }

    pub(super) fn get(&self, number: u32) -> Option<&T> {
        let row = match number.checked_sub(self.base)? {
            0 => &self.oldest,
            distance => self.later.get(distance as usize - 1)?,
        };
        match row {
            Row::Live(connection) => Some(connection),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        match self.row(number)? {
            Row::Live(connection) => Some(connection),
            _ => None,
        }
    }

    /// The connection of this number, which is made if the number is used for the first time.
    /// `None` if the connection was removed.
    #[inline]
    pub(super) fn get_or_insert_with(
        &mut self,
        number: u32,
        make: impl FnOnce() -> T,
    ) -> Option<&mut T> {
        let distance = number.checked_sub(self.base)? as usize;
        if self.later.len() < distance {
            self.later.resize_with(distance, || Row::Unused);
        }
        let row = self.row(number)?;
        if let Row::Unused = row {
            *row = Row::Live(make());
        }
        match row {
            Row::Live(connection) => Some(connection),
            _ => None,
        }
    }

    /// Takes a connection out; its number is not used again.
    pub(super) fn remove(&mut self, number: u32) -> Option<T> {
        let row = core::mem::replace(self.row(number)?, Row::Gone);
        while let Row::Gone = self.oldest {
            self.oldest = self.later.pop_front().unwrap_or(Row::Unused);
            self.base += 1;
        }
        match row {
            Row::Live(connection) => Some(connection),
            _ => None,
        }
    }

    /// Calls `act` for every live connection, the oldest first.
    #[inline]
    pub(super) fn for_each(&mut self, mut act: impl FnMut(u32, &mut T)) {
        if let Row::Live(connection) = &mut self.oldest {
            act(self.base, connection);
        }
        if !self.later.is_empty() {
            for (number, row) in (self.base + 1..).zip(&mut self.later) {
                if let Row::Live(connection) = row {
                    act(number, connection);
                }
            }
        }
    }

    /// Calls `look` for every live connection, the oldest first.
    #[inline]
    pub(super) fn inspect(&self, mut look: impl FnMut(&T)) {
        if let Row::Live(connection) = &self.oldest {
            look(connection);
        }
        if !self.later.is_empty() {
            self.later.iter().for_each(|row| {
                if let Row::Live(connection) = row {
                    look(connection);
                }
            });
        }
    }

    /// Live connections with their numbers, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let rows = core::iter::once(&self.oldest).chain(&self.later);
        (self.base..).zip(rows).filter_map(|(number, row)| match row {
            Row::Live(connection) => Some((number, connection)),
            _ => None,
        })
    }

    #[inline]
    fn row(&mut self, number: u32) -> Option<&mut Row<T>> {
        match number.checked_sub(self.base)? {
            0 => Some(&mut self.oldest),
            distance => self.later.get_mut(distance as usize - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_in_any_order_and_never_again() {
        let mut table = Table::new();
        for number in [2, 0, 1] {
            assert_eq!(table.get_or_insert_with(number, || number * 10), Some(&mut (number * 10)));
        }
        assert_eq!(table.iter().map(|(number, _)| number).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(table.remove(1), Some(10));
        assert_eq!(table.get_or_insert_with(1, || 99), None);
        assert_eq!(table.remove(0), Some(0));
        assert_eq!((table.base, table.later.len()), (2, 0));
        assert_eq!(table.get_or_insert_with(0, || 99), None);
        assert_eq!(table.get_mut(2), Some(&mut 20));
        assert_eq!(table.get_mut(7), None);
    }
}
