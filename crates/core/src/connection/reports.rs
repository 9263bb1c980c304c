//! Outgoing reports and control frames.

use core::time::Duration;

use super::Connection;
use super::packet::PacketBuilder;
use super::paths::PathIndex;
use crate::wire::{AckHeader, ControlFrame, RankEntry, RankFrame};

/// Bytes that reports leave for the frames after them, so that the longest CLOSE fits.
const ROOM_AFTER_ACKS: usize = 300;
/// Most incomplete blocks, and most recovered blocks, in a report.
const MAX_RANKS: usize = 8;
/// Most control frames in flight on a path; further ones wait. Each grants some thousands of bytes
/// of credit or some streams, so a peer that acknowledges never causes this many.
const MOST_IN_FLIGHT: usize = 512;
/// A new floor of packet numbers is announced once it is at least this far above the one announced last.
const FLOOR_STEP: u64 = 64;

impl Connection {
    /// Writes reports about the paths whose bits are set in `about`, as long as there is room for
    /// them and for the frames that follow; returns the bits that are left.
    pub(super) fn write_acks(&mut self, about: u16, packet: &mut PacketBuilder<'_>) -> u16 {
        let mut left = about;
        for slot in self.paths.indices() {
            let bit = slot.bit();
            if left & bit == 0 {
                continue;
            }
            let path = &mut self.paths[slot];
            let received = &mut path.received;
            let header = AckHeader {
                path: path.id,
                received_at: received.largest_at.as_micros() as u32,
                delay_us: packet.now.since(received.largest_at).as_micros() as u64,
                ect0: received.ect0,
                ect1: received.ect1,
                ce: received.ce,
            };
            if packet.small_room() < ROOM_AFTER_ACKS
                || packet.append_small(|w| header.encode(received.ranges(), w)).is_err()
            {
                break;
            }
            received.pending = 0;
            path.acks.on_reported();
            left &= !bit;
        }
        left
    }

    /// Whether no usable path is known to be quicker. Credit sent over a slow path arrives too late
    /// for a fast one, and over a path that has timed out it may be lost.
    fn is_quickest(&self, slot: PathIndex) -> bool {
        let delay = |slot: PathIndex| {
            let (rtt, timeouts) =
                (self.paths[slot].rtt.view(), self.paths[slot].liveness.timeouts());
            (timeouts > 0, if rtt.samples > 0 { rtt.min } else { Duration::MAX })
        };
        let own = delay(slot);
        self.paths.indices().all(|other| !self.may_carry_data(other) || delay(other) >= own)
    }

    /// Writes acknowledgements and control frames that are due on the packet's path.
    pub(super) fn write_small(&mut self, packet: &mut PacketBuilder<'_>) {
        let slot = packet.slot;
        let due = self.paths[slot].acks.take();
        if due == 0 && self.paths[slot].control_queue.is_empty() && self.control.is_empty() {
            return;
        }
        let left = self.write_acks(due, packet);
        self.paths[slot].acks.carry(left);
        // Ranks are written only together with an acknowledgement. Otherwise they would be sent
        // repeatedly while no acknowledgement fits.
        if left != due {
            self.write_ranks(packet);
        }
        let path = &mut self.paths[slot];
        if (due != 0 || !self.control.is_empty())
            && let Some(floor) = path.sent.announce_floor(FLOOR_STEP)
        {
            path.control_queue.push_back(ControlFrame::AckFloor { path: path.id, floor });
        }
        self.write_control(packet);
    }

    /// Writes how many symbols incomplete blocks lack, and which blocks are recovered.
    fn write_ranks(&mut self, packet: &mut PacketBuilder<'_>) {
        for blocks in self.receive.iter() {
            let deficits = blocks.deficits().take(MAX_RANKS);
            let recovered = blocks.recovered().take(MAX_RANKS).map(|first| (first, 0));
            let entries =
                deficits.chain(recovered).map(|(first, missing)| RankEntry { first, missing });
            let first = blocks.first_missing();
            let _ = packet.append_small(|w| RankFrame::encode_entries(first, entries, w));
        }
    }

    /// Writes control frames that wait for the packet's path, then those that may leave on any
    /// path.
    fn write_control(&mut self, packet: &mut PacketBuilder<'_>) {
        let slot = packet.slot;
        let usable = self.may_carry_data(slot) && self.is_quickest(slot);
        while self.paths[slot].control.len() < MOST_IN_FLIGHT {
            let own = self.paths[slot].control_queue.front();
            let frame = match own.or(if usable { self.control.front() } else { None }) {
                Some(frame) if packet.append_small(|w| frame.encode(w)).is_ok() => *frame,
                _ => break,
            };
            if self.paths[slot].control_queue.pop_front().is_none() {
                self.control.pop_front();
            }
            let path = &mut self.paths[slot];
            path.control.push(path.sent.next_number(), frame);
            packet.has_control = true;
            packet.ack_eliciting = true;
        }
    }
}
