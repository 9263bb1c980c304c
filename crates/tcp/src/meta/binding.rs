//! Which data a subflow's stream offsets stand for.

use std::collections::VecDeque;

/// A run of data bound to a subflow: one segment's worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    /// First data sequence number.
    pub(super) data: u64,
    /// Bytes.
    pub(super) len: u64,
}

impl Chunk {
    pub(super) fn end(&self) -> u64 {
        self.data + self.len
    }
}

#[derive(Clone, Copy, Debug)]
struct Bound {
    offset: u64,
    /// `None` once it has been unbound.
    chunk: Option<Chunk>,
    len: u64,
}

/// The bindings of one subflow, in the order of its stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Bindings {
    list: VecDeque<Bound>,
}

impl Bindings {
    /// The subflow's next bytes, from `offset` on, stand for `chunk`.
    pub(super) fn push(&mut self, offset: u64, chunk: Chunk) {
        self.list.push_back(Bound { offset, chunk: Some(chunk), len: chunk.len });
    }

    fn find(&self, offset: u64) -> Option<usize> {
        let index = self.list.partition_point(|bound| bound.offset + bound.len <= offset);
        self.list.get(index).filter(|bound| bound.offset <= offset).map(|_| index)
    }

    /// The data sequence number of the byte at `offset`, if it is bound.
    pub(super) fn lookup(&self, offset: u64) -> Option<u64> {
        let bound = self.list.get(self.find(offset)?)?;
        bound.chunk.map(|chunk| chunk.data + (offset - bound.offset))
    }

    /// Length of the unbound run at `offset`, if it is one.
    pub(super) fn unbound_at(&self, offset: u64) -> Option<u64> {
        let bound = self.list.get(self.find(offset)?)?;
        (bound.chunk.is_none() && bound.offset == offset).then_some(bound.len)
    }

    /// Binds `chunk`, no longer than the run, to the unbound run at `offset`.
    pub(super) fn rebind(&mut self, offset: u64, chunk: Chunk) {
        if let Some(index) = self.find(offset)
            && let Some(bound) = self.list.get_mut(index)
        {
            bound.chunk = Some(chunk);
        }
    }

    /// Everything below `offset` has arrived.
    pub(super) fn release(&mut self, offset: u64) {
        while self.list.front().is_some_and(|bound| bound.offset + bound.len <= offset) {
            self.list.pop_front();
        }
    }

    /// All bound chunks from `offset` on.
    pub(super) fn from(&self, offset: u64) -> impl Iterator<Item = Chunk> + '_ {
        let start = self.list.partition_point(|bound| bound.offset + bound.len <= offset);
        self.list.range(start..).filter_map(|bound| bound.chunk)
    }

    /// Unbinds every chunk that begins at `offset` or beyond and hands it over.
    pub(super) fn unbind_from(&mut self, offset: u64, mut taken: impl FnMut(Chunk)) {
        let start = self.list.partition_point(|bound| bound.offset < offset);
        for bound in self.list.range_mut(start..) {
            if let Some(chunk) = bound.chunk.take() {
                taken(chunk);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bindings_move_with_the_stream() {
        let mut bindings = Bindings::default();
        for i in 0..4 {
            bindings.push(i * 10, Chunk { data: 100 * i, len: 10 });
        }
        assert_eq!(bindings.lookup(13), Some(103));
        bindings.release(10);
        assert_eq!((bindings.lookup(9), bindings.lookup(10)), (None, Some(100)));
        let mut taken = Vec::new();
        bindings.unbind_from(20, |chunk| taken.push(chunk.data));
        assert_eq!(taken, [200, 300]);
        assert_eq!(bindings.lookup(25), None);
        assert_eq!(bindings.unbound_at(20), Some(10));
        bindings.rebind(20, Chunk { data: 700, len: 10 });
        assert_eq!(bindings.lookup(25), Some(705));
        assert_eq!(bindings.from(0).map(|chunk| chunk.data).collect::<Vec<_>>(), [100, 700]);
    }
}
