//! Written bytes that stay in the application's memory until they are sent.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};

/// Length in bytes below which chunks are copied, because a reference would cost as much.
const LEAST: usize = 256;
/// Copied pieces are merged up to this length.
const GATHERED: usize = 4096;

/// Bytes in the order in which they were written.
#[derive(Debug, Default)]
pub(super) struct Segments(VecDeque<Segment>);

#[derive(Debug)]
enum Segment {
    Shared(Bytes),
    Copied(BytesMut),
}

impl Segments {
    /// Whether chunks of this length are copied.
    pub(super) const fn copies(length: usize) -> bool {
        length < LEAST
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends a chunk by reference. Its memory is kept until its last byte is taken.
    pub(super) fn share(&mut self, chunk: Bytes) {
        self.0.push_back(Segment::Shared(chunk));
    }

    /// Appends a copy of `bytes`.
    pub(super) fn copy(&mut self, bytes: &[u8]) {
        if let Some(Segment::Copied(last)) = self.0.back_mut()
            && last.len() + bytes.len() <= GATHERED
        {
            last.extend_from_slice(bytes);
        } else if !bytes.is_empty() {
            self.0.push_back(Segment::Copied(BytesMut::from(bytes)));
        }
    }

    /// Moves the first bytes into `out`, up to its length.
    pub(super) fn take(&mut self, mut out: &mut [u8]) {
        while let Some(first) = self.0.front_mut()
            && !out.is_empty()
        {
            let (bytes, is_over) = match first {
                Segment::Shared(chunk) => move_out(chunk, out),
                Segment::Copied(chunk) => move_out(chunk, out),
            };
            if is_over {
                self.0.pop_front();
            }
            out = out.get_mut(bytes..).unwrap_or_default();
        }
    }

    /// Discards all bytes and frees the memory.
    pub(super) fn release(&mut self) {
        self.0 = VecDeque::new();
    }
}

/// Moves the first bytes of `chunk` into `out`. Returns their number and whether none is left.
fn move_out(chunk: &mut impl Buf, out: &mut [u8]) -> (usize, bool) {
    let count = chunk.remaining().min(out.len());
    if let Some(out) = out.get_mut(..count) {
        chunk.copy_to_slice(out);
    }
    (count, !chunk.has_remaining())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_as_they_were_written() {
        let mut segments = Segments::default();
        let bytes: Vec<u8> = (0..10_000_u32).map(|number| number as u8).collect();
        segments.copy(&bytes[..10]);
        segments.copy(&bytes[10..50]);
        segments.share(Bytes::copy_from_slice(&bytes[50..5000]));
        segments.copy(&bytes[5000..5001]);
        segments.copy(&bytes[5001..]);
        assert_eq!(segments.0.len(), 4, "what is copied is gathered, up to a limit");
        let mut out = Vec::new();
        for length in [1, 0, 70, 3000, 2000, 4929] {
            let mut piece = vec![0; length];
            segments.take(&mut piece);
            out.extend(piece);
        }
        assert!(out == bytes && segments.is_empty());
    }

    #[test]
    fn a_chunk_lets_its_memory_go_with_its_last_byte() {
        let memory = Bytes::from(vec![7; 1000]);
        let mut segments = Segments::default();
        segments.share(memory.clone());
        segments.take(&mut [0; 999]);
        assert!(!memory.is_unique());
        segments.take(&mut [0; 1]);
        assert!(memory.is_unique());
        segments.share(memory.clone());
        segments.release();
        assert!(memory.is_unique());
    }
}
