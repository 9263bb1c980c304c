//! A packet under construction.

use anabranch_types::Time;

use super::Connection;
use super::allowance::{MAX_FRAMES, MAX_REPAIRS, MAX_SOURCES};
use super::egress::Transmit;
use super::paths::PathIndex;
use crate::crypto::TAG_LEN;
use crate::path::PathAddress;
use crate::path::received::Ecn;
use crate::path::sent::{Carried, PacketSent, Probe};
use crate::wire::codec::NoSpace;
use crate::wire::transport_parameters::MIN_UDP_PAYLOAD;
use crate::wire::{ControlFrame, HEADER_LEN, Writer};

/// A packet that is being filled with frames, and the state to be recorded when it is sent.
#[derive(Debug)]
pub(super) struct PacketBuilder<'a> {
    /// When the packet leaves.
    pub(super) now: Time,
    /// The path on which the packet leaves.
    pub(super) slot: PathIndex,
    /// Whether the packet asks for an acknowledgement.
    pub(super) ack_eliciting: bool,
    /// Whether the packet has control frames, which the path keeps under the packet's number.
    pub(super) has_control: bool,
    /// Kind of probe, if the packet is only a probe.
    pub(super) probe: Option<Probe>,
    /// Whether every symbol in the packet is an early copy.
    pub(super) early: bool,
    /// The first symbol in the packet; the path keeps the others under the packet's number.
    pub(super) carried: Option<Carried>,
    /// How many symbols may still be added.
    pub(super) symbols_left: u16,
    /// Whether the packet belongs to a train. The scheduler's picks for this path then go directly
    /// into the packet, not into the path's queue.
    pub(super) in_train: bool,
    buffer: &'a mut [u8],
    /// How many frames may still be added, and how many of them may be source symbols and repairs.
    frames_left: u16,
    sources_left: u16,
    repairs_left: u16,
    /// Where the frames written so far end, counted from the start of the header.
    end: usize,
    /// Where the frames of a packet of the greatest length end.
    limit: usize,
}

impl<'a> PacketBuilder<'a> {
    /// An empty packet of at most `size` bytes, and at most as many as the buffer has.
    pub(super) fn new(now: Time, slot: PathIndex, buffer: &'a mut [u8], size: u16) -> Self {
        PacketBuilder {
            now,
            slot,
            ack_eliciting: false,
            has_control: false,
            probe: None,
            early: true,
            carried: None,
            symbols_left: 1,
            in_train: false,
            frames_left: MAX_FRAMES,
            sources_left: MAX_SOURCES,
            repairs_left: MAX_REPAIRS,
            end: HEADER_LEN,
            limit: usize::from(size).min(buffer.len()).saturating_sub(TAG_LEN),
            buffer,
        }
    }

    /// Whether no frame has been written.
    pub(super) fn is_empty(&self) -> bool {
        self.end == HEADER_LEN
    }

    /// Appends what `write` writes. If it fails, the packet stays as it was.
    #[inline]
    pub(super) fn append<T>(
        &mut self,
        write: impl FnOnce(&mut Writer<'_>) -> Result<T, NoSpace>,
    ) -> Result<T, NoSpace> {
        self.append_up_to(self.limit, write)
    }

    /// Like [`append`](Self::append), but for reports and control frames, which must fit into the
    /// packet length that every path carries.
    #[inline]
    pub(super) fn append_small<T>(
        &mut self,
        write: impl FnOnce(&mut Writer<'_>) -> Result<T, NoSpace>,
    ) -> Result<T, NoSpace> {
        self.append_up_to(self.small_limit(), write)
    }

    /// Counts a symbol that is to be added. Returns false if it may not be added.
    pub(super) fn takes(&mut self, symbol: Carried) -> bool {
        let left = match symbol {
            Carried::Source(..) => &mut self.sources_left,
            Carried::Repair(..) => &mut self.repairs_left,
        };
        let takes = *left > 0;
        *left = left.saturating_sub(1);
        takes
    }

    /// Bytes of the packet as it is, header and tag included.
    pub(super) fn len(&self) -> usize {
        self.end + TAG_LEN
    }

    /// The packet's bytes, to be sealed.
    pub(super) fn into_bytes(self) -> &'a mut [u8] {
        let len = self.len();
        &mut self.buffer[..len]
    }

    /// Bytes that [`append`](Self::append) can still write.
    pub(super) fn room(&self) -> usize {
        self.limit.saturating_sub(self.end)
    }

    /// Bytes that [`append_small`](Self::append_small) can still write.
    pub(super) fn small_room(&self) -> usize {
        self.small_limit().saturating_sub(self.end)
    }

    fn small_limit(&self) -> usize {
        self.limit.min(usize::from(MIN_UDP_PAYLOAD) - TAG_LEN)
    }

    #[inline]
    fn append_up_to<T>(
        &mut self,
        limit: usize,
        write: impl FnOnce(&mut Writer<'_>) -> Result<T, NoSpace>,
    ) -> Result<T, NoSpace> {
        if self.frames_left == 0 {
            return Err(NoSpace);
        }
        let mut writer = Writer::new(self.buffer.get_mut(self.end..limit).ok_or(NoSpace)?);
        let written = write(&mut writer)?;
        self.frames_left -= 1;
        self.end += writer.position();
        Ok(written)
    }

    /// Appends a frame that only asks for an acknowledgement, if there is room.
    pub(super) fn ping(&mut self) {
        if self.append(|writer| ControlFrame::Ping.encode(writer)).is_ok() {
            self.ack_eliciting = true;
        }
    }

    /// Appends PADDING until the packet has its full size.
    pub(super) fn pad(&mut self) {
        let _ = self.append(|writer| writer.reserve(writer.remaining()).map(|rest| rest.fill(0)));
    }
}

/// A packet that is recorded as sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departed {
    pub(super) slot: PathIndex,
    pub(super) number: u64,
    /// Length of the UDP payload, bytes.
    pub(super) len: usize,
    pub(super) ecn: Ecn,
}

impl Connection {
    /// Completes a packet, and records that it left.
    pub(super) fn seal(&mut self, packet: PacketBuilder<'_>) -> Transmit {
        let Departed { slot, number, len, ecn } = self.record(&packet);
        let mtu_probe = packet.probe == Some(Probe::Mtu);
        let path = &self.paths[slot];
        let PathAddress { socket, remote } = path.address;
        self.keys.seal_train(path.remote_id(), path.id, number, &mut packet.buffer[..len], len);
        Transmit { socket, remote, ecn, len, segment: len, mtu_probe }
    }

    /// Records a packet as sent on its path. The packet is sealed afterwards.
    #[inline]
    pub(super) fn record(&mut self, packet: &PacketBuilder<'_>) -> Departed {
        let &PacketBuilder { now, slot, end, ack_eliciting, probe, early, carried, .. } = packet;
        let len = end + TAG_LEN;
        let path = &mut self.paths[slot];
        let marked = self.config.ecn && path.ecn.is_capable() && ack_eliciting;
        let ecn = if marked { Ecn::Ect0 } else { Ecn::NotEct };
        let has_control = packet.has_control;
        let payload = len;
        let sent = PacketSent { payload, ecn, ack_eliciting, has_control, probe, early, carried };
        let number = path.on_sent(now, sent);
        if self.observer.is_some() {
            let frames = packet.buffer.get(HEADER_LEN..end).unwrap_or_default();
            self.watch_sent(now, slot, (number, frames), len);
        }
        if let Some(carried) = carried {
            let path = &self.paths[slot];
            self.policies.estimator.on_sent(path.id, Some(carried.block()), 1);
        }
        Departed { slot, number, len, ecn }
    }
}
