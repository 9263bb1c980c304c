//! Maps offsets of a subflow's stream to data.

use std::collections::VecDeque;

/// A chunk of the data stream, the payload of one segment. Its boundaries never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    /// Ordinal of the chunk; the first one cut has 0.
    pub(super) id: u64,
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

/// A run of the subflow's stream.
#[derive(Clone, Copy, Debug)]
struct Run {
    offset: u64,
    len: u64,
    /// The data that the run carries; `None` once the data has been taken back.
    chunk: Option<Chunk>,
}

/// The bindings of one subflow, in the order of its stream. Lookups are binary searches.
#[derive(Clone, Debug, Default)]
pub(super) struct Bindings {
    runs: VecDeque<Run>,
    /// Number of runs whose data has been taken back.
    unbound: usize,
}

impl Bindings {
    /// The subflow's next bytes, from `offset` on, carry `chunk`.
    pub(super) fn push(&mut self, offset: u64, chunk: Chunk) {
        self.runs.push_back(Run { offset, len: chunk.len, chunk: Some(chunk) });
    }

    fn find(&self, offset: u64) -> Option<usize> {
        let index = self.runs.partition_point(|run| run.offset + run.len <= offset);
        self.runs.get(index).filter(|run| run.offset <= offset).map(|_| index)
    }

    /// The chunk that holds the byte at `offset`, and that byte's data sequence number.
    pub(super) fn lookup(&self, offset: u64) -> Option<(Chunk, u64)> {
        let run = self.runs.get(self.find(offset)?)?;
        run.chunk.map(|chunk| (chunk, chunk.data + (offset - run.offset)))
    }

    /// Length of the unbound run that begins at `offset`, if one does.
    pub(super) fn unbound_at(&self, offset: u64) -> Option<u64> {
        let run = self.runs.get(self.find(offset)?)?;
        (run.chunk.is_none() && run.offset == offset).then_some(run.len)
    }

    /// Binds `chunk` to the unbound run at `offset`, which has the same length.
    pub(super) fn rebind(&mut self, offset: u64, chunk: Chunk) {
        if let Some(index) = self.find(offset)
            && let Some(run) = self.runs.get_mut(index)
        {
            self.unbound -= usize::from(run.chunk.is_none());
            run.chunk = Some(chunk);
        }
    }

    /// Whether the data of any run has been taken back.
    pub(super) fn any_unbound(&self) -> bool {
        self.unbound > 0
    }

    /// Everything below `offset` has arrived: forgets those runs and hands over their chunks.
    pub(super) fn release(&mut self, offset: u64, mut released: impl FnMut(Chunk)) {
        while let Some(run) = self.runs.front().filter(|run| run.offset + run.len <= offset) {
            match run.chunk {
                Some(chunk) => released(chunk),
                None => self.unbound -= 1,
            }
            self.runs.pop_front();
        }
    }

    /// Bound chunks, in the order of the stream.
    pub(super) fn chunks(&self) -> impl Iterator<Item = Chunk> + '_ {
        self.runs.iter().filter_map(|run| run.chunk)
    }

    /// Whether, as far as bindings are kept, every offset of the stream equals its data sequence number.
    pub(super) fn are_in_order(&self) -> bool {
        self.runs.iter().all(|run| run.chunk.is_some_and(|chunk| chunk.data == run.offset))
    }

    /// Takes back and hands over every chunk whose run begins at `offset` or beyond.
    pub(super) fn unbind_from(&mut self, offset: u64, mut taken: impl FnMut(Chunk)) {
        let start = self.runs.partition_point(|run| run.offset < offset);
        for run in self.runs.range_mut(start..) {
            if let Some(chunk) = run.chunk.take() {
                self.unbound += 1;
                taken(chunk);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(data: u64) -> Chunk {
        Chunk { id: data / 10, data, len: 10 }
    }

    #[test]
    fn bindings_move_with_the_stream() {
        let mut bindings = Bindings::default();
        for i in 0..4 {
            bindings.push(i * 10, chunk(100 * i));
        }
        assert_eq!(bindings.lookup(13), Some((chunk(100), 103)));
        let mut released = Vec::new();
        bindings.release(10, |chunk| released.push(chunk.data));
        assert_eq!(released, [0]);
        assert_eq!((bindings.lookup(9), bindings.lookup(10)), (None, Some((chunk(100), 100))));
        let mut taken = Vec::new();
        bindings.unbind_from(20, |chunk| taken.push(chunk.data));
        assert_eq!(taken, [200, 300]);
        assert_eq!(bindings.lookup(25), None);
        assert_eq!(bindings.unbound_at(20), Some(10));
        assert!(bindings.any_unbound());
        bindings.rebind(20, chunk(700));
        assert_eq!(bindings.lookup(25), Some((chunk(700), 705)));
        assert_eq!(bindings.chunks().map(|chunk| chunk.data).collect::<Vec<_>>(), [100, 700]);
        bindings.release(40, |_| {});
        assert!(!bindings.any_unbound());
    }
}
