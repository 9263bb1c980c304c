//! A ring buffer for a range of a byte stream, addressed by stream offset.

use core::fmt;
use core::ops::Range;

/// Least capacity of a buffer in use, bytes.
const MIN_CAPACITY: u64 = 1024;

/// Bytes of a stream, stored at `(offset - origin) mod capacity`. The caller knows which offsets
/// hold data; the distance between any two of them must be less than the capacity.
#[derive(Default)]
pub(super) struct Ring {
    /// Length 0 or a power of two.
    bytes: Vec<u8>,
    /// The stream offset stored at index 0.
    origin: u64,
}

impl Ring {
    /// Capacity, bytes.
    pub(super) fn capacity(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Makes room for `needed` bytes from `start` on and keeps the bytes of the `live` ranges.
    #[inline]
    pub(super) fn ensure(
        &mut self,
        start: u64,
        live: impl Iterator<Item = Range<u64>>,
        needed: u64,
    ) {
        if needed > self.capacity() {
            self.resize(start, live, needed);
        }
    }

    /// Frees the memory that is not needed for `needed` bytes from `start` on, and keeps the bytes
    /// of the `live` ranges.
    pub(super) fn fit(&mut self, start: u64, live: impl Iterator<Item = Range<u64>>, needed: u64) {
        if needed == 0 {
            self.release();
        } else if room_for(needed) < self.capacity() {
            self.resize(start, live, needed);
        }
    }

    /// Copies only the `live` ranges, so that gaps, which a peer can make as long as its credit,
    /// cost nothing.
    fn resize(&mut self, start: u64, live: impl Iterator<Item = Range<u64>>, needed: u64) {
        let bytes = vec![0; usize::try_from(room_for(needed)).unwrap_or(usize::MAX)];
        let old = core::mem::replace(self, Ring { bytes, origin: start });
        if old.bytes.is_empty() {
            return;
        }
        for Range { start: mut offset, end } in live {
            while offset < end {
                let run = old.run(offset, end - offset);
                self.write(offset, run);
                offset += run.len().max(1) as u64;
            }
        }
    }

    /// Stores `data` at `offset`.
    pub(super) fn write(&mut self, offset: u64, data: &[u8]) {
        let start = self.index(offset);
        let (head, tail) = data.split_at(data.len().min(self.bytes.len() - start));
        for (at, part) in [(start, head), (0, tail)] {
            if !part.is_empty()
                && let Some(target) = self.bytes.get_mut(at..at + part.len())
            {
                target.copy_from_slice(part);
            }
        }
    }

    /// Fills `out` with the bytes from `offset` on.
    pub(super) fn read(&self, offset: u64, out: &mut [u8]) {
        let head = self.run(offset, out.len() as u64);
        let (first, second) = out.split_at_mut(head.len());
        first.copy_from_slice(head);
        if !second.is_empty()
            && let Some(tail) = self.bytes.get(..second.len())
        {
            second.copy_from_slice(tail);
        }
    }

    /// Makes `next` the offset at index 0 and discards all bytes. Data that is read as soon as it
    /// arrives thus stays in a small part of the buffer, and in the CPU cache.
    pub(super) fn rewind(&mut self, next: u64) {
        self.origin = next;
    }

    /// Frees the memory and discards all bytes. [`ensure`](Self::ensure) must be called before the
    /// next write.
    pub(super) fn release(&mut self) {
        self.bytes = Vec::new();
    }

    /// The bytes from `offset` to the end of the buffer, at most `length`.
    fn run(&self, offset: u64, length: u64) -> &[u8] {
        let start = self.index(offset);
        let left = self.bytes.len() - start;
        let end = start + usize::try_from(length).map_or(left, |length| length.min(left));
        self.bytes.get(start..end).unwrap_or_default()
    }

    fn index(&self, offset: u64) -> usize {
        let place = offset.wrapping_sub(self.origin);
        (place & (self.bytes.len() as u64).saturating_sub(1)) as usize
    }
}

/// The least capacity that holds `needed` bytes.
fn room_for(needed: u64) -> u64 {
    needed.next_power_of_two().max(MIN_CAPACITY)
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ring({} bytes)", self.bytes.len())
    }
}
