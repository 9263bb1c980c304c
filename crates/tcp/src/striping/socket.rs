//! One socket of the sending application.

use std::collections::VecDeque;

use anabranch_types::Time;

use crate::segment::{Flags, Segment};
use crate::sender::Sender;

/// A connection, and the packets that were written to it and are not delivered yet.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) sender: Sender,
    /// Application sequence numbers of these packets, oldest first, and how many packets were
    /// delivered before them.
    packets: VecDeque<u64>,
    delivered: u64,
    /// Free bytes at which a socket that was full is written to again, and whether the socket was
    /// full.
    low_water: u64,
    is_full: bool,
}

impl Socket {
    pub(super) fn new(sender: Sender, low_water: u64) -> Self {
        let config = sender.config();
        let low_water = low_water.max(u64::from(config.mss)).min(config.send_buffer);
        Socket { sender, packets: VecDeque::new(), delivered: 0, low_water, is_full: false }
    }

    fn mss(&self) -> u64 {
        u64::from(self.sender.config().mss)
    }

    /// Whether a packet of `len` bytes may be written.
    pub(super) fn has_room(&mut self, len: u64) -> bool {
        let writable = self.sender.writable();
        self.is_full = writable < if self.is_full { self.low_water } else { len };
        !self.is_full
    }

    /// Writes the packet `sequence` of `len` bytes, for which there is room. Only the last packet
    /// of the stream may be shorter than the MSS.
    pub(super) fn write(&mut self, sequence: u64, len: u64) {
        self.sender.write(len);
        self.packets.push_back(sequence);
    }

    /// Takes in an acknowledgement.
    pub(super) fn handle_segment(&mut self, now: Time, segment: &Segment) {
        self.sender.handle_segment(now, segment);
        let acknowledged = self.sender.acknowledged();
        let whole = match acknowledged == self.sender.written() {
            true => self.delivered + self.packets.len() as u64,
            false => acknowledged / self.mss(),
        };
        while self.delivered < whole && self.packets.pop_front().is_some() {
            self.delivered += 1;
        }
    }

    /// The next segment to send now, with the sequence number of its packet.
    pub(super) fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        let segment = self.sender.poll_transmit(now)?;
        if segment.len == 0 {
            return Some(segment);
        }
        debug_assert_eq!(segment.seq % self.mss(), 0, "segments carry whole packets");
        let place = (segment.seq / self.mss()).saturating_sub(self.delivered);
        let data = self.packets.get(usize::try_from(place).unwrap_or(usize::MAX)).copied();
        Some(Segment {
            data: data.unwrap_or_default(),
            flags: segment.flags.with(Flags::MAPPED),
            ..segment
        })
    }

    /// Sequence number of the oldest packet that has not been delivered completely.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.packets.front().copied()
    }

    /// Sequence number of the oldest packet that has never been sent.
    pub(super) fn oldest_unsent(&self) -> Option<u64> {
        let sent = self.sender.sent() / self.mss();
        let place = sent.saturating_sub(self.delivered);
        self.packets.get(usize::try_from(place).unwrap_or(usize::MAX)).copied()
    }
}
