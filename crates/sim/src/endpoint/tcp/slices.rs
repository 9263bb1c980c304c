use anabranch_tcp::ranges::Ranges;

/// Tracks which slices of a stream have arrived completely.
#[derive(Clone, Debug)]
pub(super) struct Slices {
    /// Length of a slice, bytes.
    size: u64,
    seen: Ranges,
    /// Bytes that have arrived of each slice.
    arrived: Vec<u64>,
}

impl Slices {
    pub(super) fn new(size: u64) -> Self {
        Slices { size: size.max(1), seen: Ranges::new(), arrived: Vec::new() }
    }

    /// Records that the bytes from `start` to `end` (exclusive) have arrived. Calls `whole` for
    /// every slice that they complete.
    pub(super) fn insert(&mut self, start: u64, end: u64, mut whole: impl FnMut(u64)) {
        if start >= end {
            return;
        }
        let (size, slices) = (self.size, &mut self.arrived);
        self.seen.insert(start, end, |from, to| {
            let mut at = from;
            while at < to {
                let number = at / size;
                let until = to.min((number + 1) * size);
                let index = usize::try_from(number).unwrap_or(usize::MAX - 1);
                if slices.len() <= index {
                    slices.resize(index + 1, 0);
                }
                if let Some(bytes) = slices.get_mut(index) {
                    *bytes += until - at;
                    if *bytes == size {
                        whole(number);
                    }
                }
                at = until;
            }
        });
    }

    /// Forgets the ranges below `offset`, which have been delivered. The caller must not insert
    /// them again.
    pub(super) fn forget_below(&mut self, offset: u64) {
        self.seen.remove_below(offset);
    }
}
