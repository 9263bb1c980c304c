//! A pool of symbol buffers: after the first round trip, no buffer is allocated.

use core::ops::{Deref, DerefMut};

/// The bytes of a symbol, aligned to a cache line. Making repairs reads all symbols of a block by
/// vector registers, and a vector that straddles two lines takes two accesses.
#[derive(Debug)]
pub struct Buffer {
    room: Box<[u8]>,
    start: usize,
    size: usize,
}

/// Bytes of a cache line.
const LINE: usize = 64;

impl Buffer {
    fn new(size: usize) -> Self {
        let room = vec![0; size + LINE - 1].into_boxed_slice();
        // `align_offset` may fail to find the offset; an unaligned start only costs time.
        let start = room.as_ptr().align_offset(LINE).min(LINE - 1);
        Buffer { room, start, size }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.room[self.start..self.start + self.size]
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.room[self.start..self.start + self.size]
    }
}

/// How many free buffers are kept beyond twice the number in use.
const SPARE: usize = 512;

/// A stack of free buffers of one size, and the number of those in use.
#[derive(Debug)]
pub struct Pool {
    free: Vec<Buffer>,
    size: usize,
    in_use: usize,
}

impl Pool {
    /// An empty pool of buffers of `size` bytes.
    pub fn new(size: usize) -> Self {
        Pool { free: Vec::new(), size, in_use: 0 }
    }

    /// Bytes in each buffer.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Buffers that were taken and not given back.
    #[cfg(any(test, feature = "testing"))]
    pub fn in_use(&self) -> usize {
        self.in_use
    }

    /// Bytes of all buffers, free and in use.
    pub fn memory(&self) -> u64 {
        (self.in_use + self.free.len()) as u64 * (self.size + LINE) as u64
    }

    /// Takes a buffer. Its content is arbitrary.
    #[inline]
    pub fn take(&mut self) -> Buffer {
        self.in_use += 1;
        self.free.pop().unwrap_or_else(|| Buffer::new(self.size))
    }

    /// Gives a buffer back. Free buffers beyond twice the number in use plus `SPARE` are dropped,
    /// so that a burst holds no memory for long.
    #[inline]
    pub fn put(&mut self, buffer: Buffer) {
        if buffer.size != self.size {
            return;
        }
        self.in_use = self.in_use.saturating_sub(1);
        self.free.push(buffer);
        self.free.truncate(2 * self.in_use + SPARE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_begin_with_a_cache_line_and_come_back() {
        for size in [1, 63, 64, 1200] {
            let mut pool = Pool::new(size);
            let mut buffers: Vec<Buffer> = (0..5).map(|_| pool.take()).collect();
            for buffer in &mut buffers {
                assert_eq!((buffer.len(), buffer.as_ptr().align_offset(LINE)), (size, 0));
                buffer.fill(7);
            }
            buffers.into_iter().for_each(|buffer| pool.put(buffer));
            assert_eq!(pool.take()[..], vec![7; size]);
            pool.put(Buffer::new(size + 1));
            assert_eq!(pool.take().len(), size, "of another pool");
        }
    }

    #[test]
    fn what_a_burst_took_is_given_back() {
        let mut pool = Pool::new(1000);
        let burst: Vec<Buffer> = (0..10_000).map(|_| pool.take()).collect();
        assert_eq!((pool.in_use(), pool.memory()), (10_000, 10_000 * 1064));
        let mut left = burst.into_iter();
        left.by_ref().take(6000).for_each(|buffer| pool.put(buffer));
        assert_eq!((pool.in_use(), pool.free.len()), (4000, 6000), "they may be needed again");
        left.for_each(|buffer| pool.put(buffer));
        assert_eq!((pool.in_use(), pool.free.len()), (0, SPARE));
    }
}
