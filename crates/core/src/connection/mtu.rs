//! Packets are as large as their path carries, and symbols as large as all paths in use carry.
//!
//! A symbol never changes, even if its packets exceed a path's MTU. A path whose MTU is too small
//! for symbols that are still needed carries no symbols until those are no longer needed. If no
//! path carries them, these symbols' blocks are released, their bytes are cut into new symbols, and
//! the peer is told not to wait for the old ones.

use anabranch_policy::scheduler::SchedulerEvent;
use anabranch_types::Time;

use super::egress::Transmit;
use super::packet::PacketBuilder;
use super::paths::PathIndex;
use super::{CloseReason, Connection};
use crate::config::TransportConfig;
use crate::observe::Observation;
use crate::path::mtu::{Narrowing, PathMtu};
use crate::path::sent::{Fate, Probe};
use crate::path::{Path, PathAddress, UDP_OVERHEAD, ip_udp_headers};
use crate::wire::header::DATA_OVERHEAD;
use crate::wire::symbol::datagram_len;
use crate::wire::transport_parameters::MIN_UDP_PAYLOAD;
use crate::wire::{CloseCode, ControlFrame, REPAIR_OVERHEAD, TransportParameters};

/// Reason for giving up a path on which packets of the least size are lost.
const TOO_NARROW: &str = "it does not carry UDP payloads of 1200 bytes: its MTU is too small";
/// The reason of a PATH_ABANDON of such a path.
const REASON_TOO_NARROW: u64 = CloseCode::ALL_PATHS_DOWN.0;

/// Payload of the longest symbol, source or repair, in a packet of `size` bytes.
pub(super) fn symbol_room(size: u16) -> u16 {
    size.saturating_sub((DATA_OVERHEAD + REPAIR_OVERHEAD) as u16)
}

/// Payload of the longest symbol in a packet on a path.
pub(super) fn room_of(path: &Path) -> u16 {
    symbol_room(path.mtu.size())
}

/// The longest datagram that a symbol holds on every path that can be used.
pub(super) fn datagram_limit(config: &TransportConfig, peer: &TransportParameters) -> usize {
    let base = config.max_datagram.min(peer.max_udp_payload);
    let least = if config.mtu_limit.is_some() { base.min(MIN_UDP_PAYLOAD) } else { base };
    let room = usize::from(symbol_room(least));
    room.saturating_sub(datagram_len(room) - room)
}

impl Connection {
    /// MTU state of a path to `address` on which nothing was sent yet.
    pub(super) fn initial_mtu(&self, address: &PathAddress) -> PathMtu {
        let most = self.peer_parameters.max_udp_payload;
        let base = self.config.max_datagram.min(most);
        let limit = self.config.mtu_limit.map(|mtu| mtu.saturating_sub(ip_udp_headers(address)));
        PathMtu::new(base, limit.map(|limit| limit.min(most).max(base)))
    }

    /// Whether every symbol that is still needed fits into a packet on this path.
    pub(super) fn fits(&self, slot: PathIndex) -> bool {
        self.send.widest() <= room_of(&self.paths[slot])
    }

    /// Most payload of a new symbol, such that all usable paths carry it.
    pub(super) fn symbol_capacity(&self) -> u16 {
        let usable = self.paths.iter().filter(|path| path.is_usable());
        let narrowest = usable.map(|path| path.mtu.size()).min();
        let base = self.config.max_datagram.min(self.peer_parameters.max_udp_payload);
        // Overheads are computed for ids below 2^30; each of two larger ids takes four bytes more.
        let ordinals = self.send.iter().map(|send| send.next_symbol().ordinal());
        let next = ordinals.max().unwrap_or_default();
        let larger = if next >= (1 << 30) - (1 << 16) { 8 } else { 0 };
        symbol_room(narrowest.unwrap_or(base)).saturating_sub(larger)
    }

    /// Releases blocks whose symbols no usable path carries; their bytes are put into new symbols.
    pub(super) fn resegment_oversized(&mut self, now: Time) {
        let widest = self.send.widest();
        if self.paths.iter().all(|path| !path.is_usable() || room_of(path) >= widest) {
            return;
        }
        let most = self.paths.iter().filter(|path| path.is_usable()).map(room_of).max();
        let most = most.unwrap_or_default();
        if self.send.measure() <= most {
            return;
        }
        let mut released = Vec::new();
        for send in self.send.iter_mut() {
            let streams = &mut self.streams;
            send.release_oversized(
                most,
                |view| released.push(*view),
                |class, symbol, was_sent| {
                    streams.take_back(class, symbol, was_sent);
                },
            );
            streams.on_floor(send.floor());
        }
        for view in released {
            let (first, count) = (view.first, u64::from(view.sources));
            if count > 0 {
                self.control.push_back(ControlFrame::Abandon { first, count });
            }
            self.tell_scheduler(now, [SchedulerEvent::Recovered(view.id)]);
        }
        self.changed();
    }

    /// A probe of the path's MTU, if one is due. The probe is alone in its packet, so no data is
    /// lost with it.
    pub(super) fn write_mtu_probe(
        &mut self,
        now: Time,
        slot: PathIndex,
        buffer: &mut [u8],
    ) -> Option<Transmit> {
        let size = self.mtu_probe_due(now, slot)?;
        if !self.paths[slot].ready(now) {
            return None;
        }
        if usize::from(size) > buffer.len() {
            return None;
        }
        let mut packet = PacketBuilder::new(now, slot, buffer, size);
        packet.ping();
        packet.pad();
        packet.probe = Some(Probe::Mtu);
        let deadline = now + self.paths[slot].base_timeout().base * 2;
        self.paths[slot].mtu.on_probe_sent(size, deadline);
        Some(self.seal(packet))
    }

    /// The size of the probe that a path waits to send. Sides that send no data need no large
    /// packets, and data does not wait for a probe that would fill the window.
    pub(super) fn mtu_probe_due(&self, now: Time, slot: PathIndex) -> Option<u16> {
        let path = &self.paths[slot];
        let size = path.mtu.probe_due(now)?;
        let has_room = path.congestion.cwnd() >= 2 * (u64::from(size) + UDP_OVERHEAD);
        let answers = path.liveness.timeouts() == 0 && path.liveness.probes() == 0;
        let asks =
            has_room && answers && self.paths[slot].is_usable() && self.send.totals().sources > 0;
        asks.then_some(size)
    }

    pub(super) fn mtu_probe_acked(&mut self, now: Time, slot: PathIndex, size: u16) {
        if self.paths[slot].mtu.on_probe_acked(now, size) {
            self.resized(now, slot, "a probe arrived");
        }
    }

    /// Treats the probe in flight as lost if it has been in flight for too long.
    pub(super) fn mtu_timer(&mut self, now: Time, slot: PathIndex) {
        let path = &mut self.paths[slot];
        if path.mtu.deadline().is_none_or(|deadline| deadline > now) {
            return;
        }
        let probe = path.sent.open().find(|(_, packet)| packet.is_mtu_probe());
        let probe = probe.map(|(number, _)| number);
        if let Some(number) = probe {
            path.sent.resolve(number, Fate::Lost);
        }
        path.mtu.on_timer(now, path.loss.mean);
        self.changed();
    }

    /// Handles a path that no longer carries full packets: the packets become smaller, or the path
    /// is given up.
    pub(super) fn on_mtu_decreased(&mut self, now: Time, slot: PathIndex, narrowing: Narrowing) {
        match narrowing {
            Narrowing::Shrunk => {
                self.take_back(slot, 0);
                self.resized(now, slot, "full packets are lost, shorter ones pass");
            }
            Narrowing::Unusable if self.paths.count_open() == 1 => {
                let reason = CloseReason::local(CloseCode::ALL_PATHS_DOWN, TOO_NARROW);
                self.start_close(now, reason);
            }
            Narrowing::Unusable => {
                let path = self.paths[slot].id;
                self.close_path(now, slot, TOO_NARROW);
                self.control
                    .push_back(ControlFrame::PathAbandon { path, reason: REASON_TOO_NARROW });
            }
        }
    }

    fn resized(&mut self, now: Time, slot: PathIndex, reason: &'static str) {
        let path = &mut self.paths[slot];
        path.take_packet_size();
        path.update_pacing(now);
        let (path, bytes) = (path.id, path.ip_mtu());
        self.observe(now, Observation::PathMtu { path, bytes, reason });
        self.changed();
    }
}
