//! Outgoing packets.

use anabranch_types::Time;
use std::net::SocketAddr;

use super::Connection;
use super::packet::PacketBuilder;
use super::paths::PathIndex;
use crate::crypto::TAG_LEN;
use crate::path::received::Ecn;
use crate::path::sent::Probe;
use crate::path::{SocketId, UDP_OVERHEAD};
use crate::wire::{CloseCode, CloseFrame, ControlFrame, HEADER_LEN};

/// Least room for a packet, into which one challenge and its answer fit.
const SMALLEST_PACKET: usize = HEADER_LEN + 24 + TAG_LEN;

/// While this many control frames wait, streams are not asked for more.
const MOST_WAITING: usize = 256;

/// A datagram to be sent, or a train of them; the payloads are in the caller's buffer, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Local socket.
    pub socket: SocketId,
    /// Destination.
    pub remote: SocketAddr,
    /// ECN mark.
    pub ecn: Ecn,
    /// Bytes of the buffer that are payload.
    pub len: usize,
    /// Payload of each datagram, bytes; the last may have less.
    pub segment: usize,
    /// Whether this is a path MTU probe, which is longer than the path is known to carry. An error
    /// in sending a probe does not concern other datagrams.
    pub mtu_probe: bool,
}

impl Connection {
    /// Builds the next packet that some writable path can send now. `buffer` must hold
    /// [`TransportConfig::largest_datagram`](crate::config::TransportConfig::largest_datagram) bytes.
    pub fn poll_transmit(
        &mut self,
        now: Time,
        writable: &dyn Fn(SocketId) -> bool,
        buffer: &mut [u8],
    ) -> Option<Transmit> {
        self.poll_train(now, writable, buffer, 1)
    }

    /// Builds the next packets that some writable path can send now: at most `most` packets of one
    /// length, of which the last may be shorter, as segmentation offload requires. They are the
    /// packets that as many calls of [`poll_transmit`](Self::poll_transmit) would give, but their
    /// common properties are decided once. `buffer` must hold one packet of
    /// [`TransportConfig::largest_datagram`](crate::config::TransportConfig::largest_datagram)
    /// bytes; the train ends at the end of the buffer.
    pub fn poll_train(
        &mut self,
        now: Time,
        writable: &dyn Fn(SocketId) -> bool,
        buffer: &mut [u8],
        most: usize,
    ) -> Option<Transmit> {
        self.renew_keys(now);
        if self.is_closed() {
            return self.poll_close(now, writable, buffer);
        }
        self.grow_credit(now);
        self.collect_control();
        self.provision_rest(now);
        self.flush_blocks(now);
        self.resegment_oversized(now);
        loop {
            let changes = self.attention.changes();
            for step in 0..self.paths.count() {
                let slot = self.paths.at_turn(step);
                let path = &self.paths[slot];
                if !path.can_send() || !writable(path.address.socket) {
                    continue;
                }
                if let Some(transmit) = self.build(now, slot, buffer, most) {
                    self.paths.set_turn(slot);
                    return Some(transmit);
                }
            }
            // After a change, all paths are asked again, since a later path may have given work to
            // an earlier one.
            if self.attention.changes() == changes {
                break;
            }
        }
        self.paths.set_turn(self.paths.at_turn(1));
        self.watch_wait(now);
        None
    }

    /// Lets the peer's credit grow with the amount that the application reads within the longest
    /// round trip.
    #[inline]
    fn grow_credit(&mut self, now: Time) {
        if self.memory.is_scarce() || !self.streams.is_measurement_due(now) {
            return;
        }
        let usable = self.paths.iter().filter(|path| path.is_usable());
        let round_trip = usable.map(|path| path.rtt.view().smoothed).max();
        let grown = self.streams.measure_reading(now, round_trip.unwrap_or_default());
        if let Some(factor) = grown {
            let main = self.config.receive_symbols.saturating_mul(factor);
            let live = self.config.live_receive_symbols().saturating_mul(factor);
            self.receive.raise_credit(main, live);
        }
    }

    /// Collects the control frames that streams and the decoder want to send.
    fn collect_control(&mut self) {
        // While many frames wait, further ones stay in the streams, so that their values are
        // current when they can leave.
        while self.control.len() < MOST_WAITING
            && let Some(frame) = self.streams.poll_control()
        {
            self.control.push_back(frame);
        }
        for blocks in self.receive.iter_mut() {
            if let Some(limit) = blocks.new_limit() {
                let space = blocks.space();
                self.control.push_back(ControlFrame::MaxSymbols { space, limit });
            }
        }
        // Without credit, no symbol can carry the new floor, and without the floor, the peer grants
        // no credit. An ABANDON frame then carries the floor.
        for space in self.send.names() {
            let floor = self.send[space].oldest_needed();
            if self.credit[space as usize].is_news(floor)
                && self.symbol_credit(space) == 0
                && self.is_waiting(space)
            {
                self.credit[space as usize].on_told(floor);
                let (first, count) = (space.symbol(0), floor.ordinal());
                self.control.push_back(ControlFrame::Abandon { first, count });
            }
        }
    }

    fn poll_close(
        &mut self,
        now: Time,
        writable: &dyn Fn(SocketId) -> bool,
        buffer: &mut [u8],
    ) -> Option<Transmit> {
        for slot in self.paths.indices() {
            let path = &self.paths[slot];
            if path.can_send()
                && writable(path.address.socket)
                && path.may_amplify(SMALLEST_PACKET as u64 + UDP_OVERHEAD)
                && self.closing.take_announcement(slot)
                && let Some(transmit) = self.write_close(now, slot, buffer)
            {
                return Some(transmit);
            }
        }
        None
    }

    fn write_close(&mut self, now: Time, slot: PathIndex, buffer: &mut [u8]) -> Option<Transmit> {
        let reason = self.closing.reason()?.clone();
        let buffer = self.earned(slot, buffer)?;
        let mut packet = self.begin(now, slot, buffer);
        // The packet with CLOSE also acknowledges, since no later packet tells the peer what has
        // arrived.
        self.write_acks(u16::MAX, &mut packet);
        let application = reason.code >= CloseCode::FIRST_APPLICATION;
        let frame =
            CloseFrame { code: reason.code, application, reason: reason.reason.as_untrusted() };
        let bare = CloseFrame { reason: "", ..frame };
        packet
            .append_small(|writer| frame.encode(writer))
            .or_else(|_| packet.append_small(|writer| bare.encode(writer)))
            .ok()?;
        Some(self.seal(packet))
    }

    /// An empty packet for a path, of at most the size that the path carries.
    fn begin<'a>(&self, now: Time, slot: PathIndex, buffer: &'a mut [u8]) -> PacketBuilder<'a> {
        let mut packet = PacketBuilder::new(now, slot, buffer, self.paths[slot].mtu.size());
        packet.symbols_left = self.policies.redundancy.symbols_per_packet().max(1);
        packet
    }

    /// The part of the buffer that may be sent now: an unproven address gets no more bytes than its
    /// packets allow (amplification limit). `None` if not even a challenge and its answer fit.
    fn earned<'a>(&self, slot: PathIndex, buffer: &'a mut [u8]) -> Option<&'a mut [u8]> {
        let room = self.paths[slot].amplification_room().saturating_sub(UDP_OVERHEAD);
        let room = usize::try_from(room).map_or(buffer.len(), |room| room.min(buffer.len()));
        if room < SMALLEST_PACKET { None } else { buffer.get_mut(..room) }
    }

    fn build(
        &mut self,
        now: Time,
        slot: PathIndex,
        buffer: &mut [u8],
        most: usize,
    ) -> Option<Transmit> {
        if let Some(inquiry) = self.write_inquiry(now, slot, buffer) {
            return Some(inquiry);
        }
        let buffer = self.earned(slot, buffer)?;
        self.skip_number_if_due(now, slot);
        if let Some(probe) = self.write_mtu_probe(now, slot, buffer) {
            return Some(probe);
        }
        let mut packet = self.begin(now, slot, buffer);
        packet.in_train = most > 1 && packet.symbols_left == 1;
        self.write_small(&mut packet);
        if self.paths[slot].liveness.probes() > 0 {
            self.write_probe(&mut packet);
        } else if self.paths[slot].liveness.take_question() && !packet.ack_eliciting {
            packet.ping();
            packet.probe = Some(Probe::Life);
        } else if self.may_carry_data(slot) && self.paths[slot].ready(now) {
            self.write_data(&mut packet);
        }
        if packet.is_empty() {
            return None;
        }
        if packet.in_train && packet.carried.is_some() {
            let first = self.record(&packet);
            return Some(self.lengthen(now, first, buffer, most));
        }
        Some(self.seal(packet))
    }

    fn skip_number_if_due(&mut self, now: Time, slot: PathIndex) {
        let path = &self.paths[slot];
        if path.skips.left(path.sent.next_number()) == 0 {
            let random = &mut self.random;
            self.paths[slot].skip_number(now, |below| random.below(below));
        }
    }

    pub(super) fn may_carry_data(&self, slot: PathIndex) -> bool {
        self.paths[slot].is_usable() && self.fits(slot)
    }
}
