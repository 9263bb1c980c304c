//! Reassembles datagrams that came in pieces.

use std::collections::VecDeque;

use super::MAX_DATAGRAM;
use super::frame::{Head, MAX_PIECES, Piece};

/// Most incomplete datagrams of a connection.
const MAX_PARTIAL: usize = 64;
/// Most bytes of all incomplete datagrams of a connection: enough for two of the greatest length, or 64 usual ones.
const MAX_BYTES: usize = 192 << 10;
/// Overhead in memory that each piece counts for, bytes.
const PIECE_COST: usize = 64;

/// The incomplete datagrams of a connection, the oldest first. A datagram of which a piece was lost stays until
/// others need its room.
#[derive(Default)]
pub(super) struct Joiner {
    partial: VecDeque<Partial>,
    bytes: usize,
}

/// A datagram of which pieces are missing.
struct Partial {
    stream: u64,
    flow: u64,
    datagram: u64,
    /// Pieces that have arrived, at their places; missing ones are empty.
    pieces: Vec<Vec<u8>>,
    /// How many pieces there are, once the last has arrived.
    count: Option<usize>,
    bytes: usize,
}

impl Joiner {
    /// Takes a piece of a datagram of the request and flow in `head`, and returns the whole datagram once its last missing
    /// piece has come.
    ///
    /// A piece is dropped if it is empty, a repetition, beyond the last piece, or would make the datagram longer than
    /// UDP carries.
    pub(super) fn take(&mut self, head: Head, piece: Piece, payload: Vec<u8>) -> Option<Vec<u8>> {
        if payload.is_empty() || piece.place >= MAX_PIECES {
            return None;
        }
        let index = self.index(head, piece.datagram);
        let partial = self.partial.get_mut(index)?;
        let cost = partial.insert(piece, payload)?;
        if partial.is_complete() {
            let partial = self.partial.remove(index)?;
            self.bytes -= partial.bytes;
            return Some(partial.pieces.concat());
        }
        partial.bytes += cost;
        self.bytes += cost;
        while self.bytes > MAX_BYTES && !self.partial.is_empty() {
            self.give_up_oldest();
        }
        None
    }

    fn give_up_oldest(&mut self) {
        if let Some(oldest) = self.partial.pop_front() {
            self.bytes -= oldest.bytes;
        }
    }

    /// The index of the datagram, which is appended if it is new.
    fn index(&mut self, head: Head, datagram: u64) -> usize {
        let same = |partial: &Partial| {
            (partial.stream, partial.flow, partial.datagram) == (head.stream, head.flow, datagram)
        };
        // Usually the datagram is one of the newest.
        if let Some(index) = self.partial.iter().rposition(same) {
            return index;
        }
        if self.partial.len() >= MAX_PARTIAL {
            self.give_up_oldest();
        }
        let Head { stream, flow, .. } = head;
        let (pieces, count, bytes) = (Vec::new(), None, 0);
        self.partial.push_back(Partial { stream, flow, datagram, pieces, count, bytes });
        self.partial.len() - 1
    }
}

impl Partial {
    /// Puts a piece in its place and returns the bytes that it counts for; `None` if it is dropped.
    fn insert(&mut self, piece: Piece, payload: Vec<u8>) -> Option<usize> {
        let beyond = self.count.is_some_and(|count| piece.place >= count);
        let cut = piece.last && self.pieces.len() > piece.place + 1;
        let contradicts = piece.last && self.count.is_some_and(|count| count != piece.place + 1);
        let there = self.pieces.get(piece.place).is_some_and(|there| !there.is_empty());
        let len: usize = self.pieces.iter().map(Vec::len).sum();
        if beyond || cut || contradicts || there || len + payload.len() > MAX_DATAGRAM {
            return None;
        }
        if piece.last {
            self.count = Some(piece.place + 1);
        }
        if self.pieces.len() <= piece.place {
            self.pieces.resize_with(piece.place + 1, Vec::new);
        }
        let cost = payload.capacity() + PIECE_COST;
        *self.pieces.get_mut(piece.place)? = payload;
        Some(cost)
    }

    fn is_complete(&self) -> bool {
        self.count == Some(self.pieces.len()) && self.pieces.iter().all(|piece| !piece.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEAD: Head = Head { stream: 4, flow: 0, piece: None };

    /// A datagram in pieces of at most `size` bytes.
    fn cut(datagram: u64, bytes: &[u8], size: usize) -> Vec<(Piece, Vec<u8>)> {
        let count = bytes.len().div_ceil(size);
        let pieces = bytes.chunks(size).enumerate();
        let piece = |place| Piece { datagram, place, last: place + 1 == count };
        pieces.map(|(place, bytes)| (piece(place), bytes.to_vec())).collect()
    }

    proptest! {
        /// If pieces are lost, repeated or reordered, only datagrams that were sent come out, among
        /// them every one whose pieces all arrive.
        #[test]
        fn datagrams_come_out_as_they_went_in(
            lengths in proptest::collection::vec((1..3000_usize, 100..1200_usize), 1..20),
            order in proptest::collection::vec((0..u64::MAX, 0..3_usize), 400),
        ) {
            let mut pieces = Vec::new();
            let mut sent = Vec::new();
            for (number, (len, size)) in lengths.into_iter().enumerate() {
                let bytes: Vec<u8> = (0..len).map(|n| (n * 31 + number) as u8).collect();
                pieces.extend(cut(number as u64, &bytes, size.max(len.div_ceil(MAX_PIECES))));
                sent.push(bytes);
            }
            // Each piece comes not at all, once or twice, at random times.
            let mut arrivals = Vec::new();
            let mut came = vec![true; sent.len()];
            for ((piece, bytes), (at, times)) in pieces.into_iter().zip(order) {
                came[piece.datagram as usize] &= times > 0;
                for n in 0..times {
                    arrivals.push((at.rotate_left(n as u32 * 7), piece, bytes.clone()));
                }
            }
            arrivals.sort_by_key(|(at, ..)| *at);
            let (mut joiner, mut out) = (Joiner::default(), vec![0; sent.len()]);
            for (_, piece, bytes) in arrivals {
                if let Some(joined) = joiner.take(HEAD, piece, bytes) {
                    prop_assert_eq!(&joined, &sent[piece.datagram as usize]);
                    out[piece.datagram as usize] += 1;
                }
            }
            for (came, out) in came.into_iter().zip(out) {
                prop_assert_eq!(came, out > 0);
            }
        }

        /// Whatever pieces a hostile peer sends, memory stays bounded, and nothing longer than UDP carries comes out.
        #[test]
        fn made_up_pieces_take_little(
            pieces in proptest::collection::vec(
                (0..200_u64, 0..MAX_PIECES, any::<bool>(), 0..1500_usize), 1..2000),
        ) {
            let mut joiner = Joiner::default();
            for (datagram, place, last, len) in pieces {
                let joined = joiner.take(HEAD, Piece { datagram, place, last }, vec![0; len]);
                prop_assert!(joined.is_none_or(|joined| joined.len() <= MAX_DATAGRAM));
                let held = joiner.partial.iter().flat_map(|partial| &partial.pieces);
                let bytes: usize = held.map(|piece| piece.capacity()).sum();
                prop_assert!(bytes <= joiner.bytes && joiner.bytes <= MAX_BYTES);
                prop_assert_eq!(joiner.partial.iter().map(|it| it.bytes).sum::<usize>(), joiner.bytes);
                prop_assert!(joiner.partial.len() <= MAX_PARTIAL);
            }
        }
    }

    /// Pieces lost long ago do not keep a later datagram out.
    #[test]
    fn the_oldest_makes_room() {
        let mut joiner = Joiner::default();
        let bytes = vec![7; 60_000];
        for number in 0..100 {
            for (piece, payload) in cut(number, &bytes, 1100).into_iter().skip(1) {
                assert!(joiner.take(HEAD, piece, payload).is_none());
            }
        }
        let pieces = cut(100, &bytes, 1100);
        let last = pieces.into_iter().rev().filter_map(|it| joiner.take(HEAD, it.0, it.1)).last();
        assert_eq!(last, Some(bytes));
    }
}
