//! Addresses of paths: how they are proven, and how a path moves from one address to another.
//!
//! A path uses a proven address until the peer has proven the next one (RFC 9000 §9). A packet from
//! another address may be a copy by an observer, so this side only challenges that address.
//! Measurements of the route to the previous address are kept in case the peer returns to it or the
//! new address falls silent.

use anabranch_types::{PathId, Time};
use core::time::Duration;

use super::egress::Transmit;
use super::packet::PacketBuilder;
use super::paths::PathIndex;
use super::{Connection, Event};
use crate::crypto::TAG_LEN;
use crate::path::learnt::Learnt;
use crate::path::received::Ecn;
use crate::path::{PathAddress, UDP_OVERHEAD};
use crate::wire::{ControlFrame, HEADER_LEN, Role};

/// Longest wait before an unanswered challenge is repeated; the path carries no data until it is
/// answered.
const LONGEST_CHALLENGE_WAIT: Duration = Duration::from_millis(200);
/// Length of a packet to an address that is probed: a challenge and a response.
const INQUIRY_LEN: usize = HEADER_LEN + 2 * 9 + TAG_LEN;
/// [`INQUIRY_LEN`] with IP and UDP headers.
const INQUIRY_WIRE: u64 = INQUIRY_LEN as u64 + UDP_OVERHEAD;
/// Most answers to challenges in flight on a path; the peer repeats challenges that are not
/// answered.
const MOST_RESPONSES: usize = 64;
/// After this many timeouts in a row, a path's previous address is probed for the peer.
const SILENT: u32 = 2;

impl Connection {
    /// Moves a path to another socket or address, for example because its interface has a new
    /// address or the socket had to be replaced. The path keeps its identifier and its state at the
    /// peer; the peer proves the new address. Unknown paths are ignored.
    ///
    /// An initiator follows a responder only to announced addresses:
    /// [`announce_address`](Self::announce_address).
    pub fn move_path(&mut self, now: Time, path: PathId, address: PathAddress) {
        let Some(slot) = self.paths.open(path) else { return };
        let path = &self.paths[slot];
        let (before, was_usable) = (path.address, path.is_usable());
        // The route may be another one even if the addresses are the same.
        self.lead_to(now, slot, address, true);
        if self.identity.role == Role::Responder && before.remote == address.remote {
            // The peer has not moved; the challenge shows whether it receives this side's packets.
            self.challenge(now, slot);
            return;
        }
        self.paths[slot].on_moved();
        if self.identity.role == Role::Initiator {
            self.paths[slot].validation.trust();
        }
        self.challenge(now, slot);
        if was_usable {
            self.went_down(now, slot);
        }
    }

    /// Counts a packet with this number and this many bytes of payload for its source address. If
    /// this is not the path's address, and the number is higher than all from the path's address,
    /// the peer may have moved.
    pub(super) fn note_source(
        &mut self,
        slot: PathIndex,
        from: PathAddress,
        bytes: u64,
        number: u64,
    ) {
        let follows = self.follows(from);
        self.addresses.heard += bytes;
        let path = &mut self.paths[slot];
        path.count_received(bytes);
        if path.address == from {
            path.validation.on_received(bytes);
            path.newest_here = path.newest_here.max(Some(number));
        } else if follows && path.is_news(number) {
            path.candidates.heard(from, bytes, number);
        }
    }

    /// Whether the peer may move a path to an address: an initiator sends only to addresses that it
    /// chose or that the responder announced.
    fn follows(&self, to: PathAddress) -> bool {
        self.identity.role == Role::Responder || self.addresses.has(to.remote)
    }

    /// Asks the peer to prove that it receives at the path's address.
    pub(super) fn challenge(&mut self, now: Time, slot: PathIndex) {
        let again = self.ask_again_at(now, slot);
        let random = &mut self.random;
        let data = self.paths[slot].validation.challenge(again, || random.next_u64().to_le_bytes());
        let question = ControlFrame::PathChallenge { data };
        if !self.paths[slot].control_queue.contains(&question) {
            let introduction = self.introduction(slot);
            self.paths[slot].control_queue.extend(introduction.into_iter().chain([question]));
        }
    }

    fn ask_again_at(&self, now: Time, slot: PathIndex) -> Time {
        now + self.paths[slot].base_timeout().base.min(LONGEST_CHALLENGE_WAIT)
    }

    /// Processes a challenge from the peer, which is answered to `from`.
    pub(super) fn on_challenge(&mut self, slot: PathIndex, from: PathAddress, data: [u8; 8]) {
        let path = &mut self.paths[slot];
        if path.address != from && path.candidates.on_challenge(from, data) {
            return;
        }
        // A flood of challenges must not fill the queue or, if the answers are not acknowledged,
        // the memory.
        if path.control_queue.len() < 8 && path.control.responses() < MOST_RESPONSES {
            path.control_queue.push_back(ControlFrame::PathResponse { data });
        }
    }

    /// Processes an answer to a challenge, which arrived from an address.
    pub(super) fn on_response(
        &mut self,
        now: Time,
        slot: PathIndex,
        from: PathAddress,
        data: [u8; 8],
    ) {
        let path = &self.paths[slot];
        if path.validation.is_answer(data) {
            self.validated(now, slot);
        } else if path.address != from || !path.is_proven() {
            // A peer that still sends from the path's address has not moved: somebody relayed the
            // challenge.
            if let Some(address) = path.candidates.proven_by(data) {
                self.peer_moved(now, slot, address);
            }
        }
    }

    /// Notes that the peer has proven that it receives at the path's address.
    pub(super) fn validated(&mut self, now: Time, slot: PathIndex) {
        if self.paths[slot].on_proven() {
            self.path_is_up(now, slot, "its address is proven");
        }
    }

    /// Handles the peer's proof that it receives at another address.
    fn peer_moved(&mut self, now: Time, slot: PathIndex, address: PathAddress) {
        let path = &self.paths[slot];
        let (before, was_usable) = (path.address, path.is_usable());
        // A change of the port alone is caused by an address translator, and the route stays the
        // same.
        let rerouted = !same_host(before, address);
        self.lead_to(now, slot, address, rerouted);
        if was_usable && rerouted {
            self.went_down(now, slot);
        }
        self.paths[slot].on_reached();
        if !was_usable || rerouted {
            self.path_is_up(now, slot, "the address it moved to is proven");
        }
    }

    /// Moves the path to another address. If it is rerouted, the measurements of the old route do
    /// not apply to the new one (RFC 9000 §9.4), and the packets in flight are reinjected.
    fn lead_to(&mut self, now: Time, slot: PathIndex, address: PathAddress, rerouted: bool) {
        let path = &mut self.paths[slot];
        let keep = path.is_proven() && !same_host(path.address, address);
        let earlier = path.previous.take_if(|way| same_host(way.address, address));
        if let Some(number) = path.candidates.remove(address) {
            path.newest_here = Some(number);
        }
        self.reinject(now, slot);
        if rerouted {
            let way = earlier.map(|way| *way).or_else(|| self.unknown_way(slot, address));
            if let Some(mut way) = way {
                self.paths[slot].lead_to(now, &mut way);
                self.paths[slot].previous = keep.then(|| Box::new(way));
            }
        }
        let path = &mut self.paths[slot];
        path.address = address;
        path.liveness.start_over(now);
        let id = path.id;
        self.changed();
        self.emit(Event::PathMoved(id));
    }

    fn unknown_way(&self, slot: PathIndex, address: PathAddress) -> Option<Learnt> {
        let mtu = self.initial_mtu(&address);
        let packet = u64::from(mtu.size()) + UDP_OVERHEAD;
        let congestion = self.make_congestion(slot, packet).ok()?;
        Some(Learnt::new(address, congestion, mtu))
    }

    /// Looks for the peer of a silent path at the path's previous address and at the announced
    /// addresses.
    pub(super) fn look_elsewhere(&mut self, slot: PathIndex) {
        let path = &mut self.paths[slot];
        if path.liveness.timeouts() < SILENT {
            return;
        }
        if let Some(way) = &path.previous {
            path.candidates.ask_again(way.address);
        }
        if self.identity.role == Role::Initiator {
            self.addresses.ask(path.address, &mut path.candidates, INQUIRY_WIRE);
        }
    }

    /// A packet for an address that is to be probed or answered, if there is one. It counts neither
    /// as in flight nor as lost, since its fate shows nothing about the route to the path's
    /// address.
    pub(super) fn write_inquiry(
        &mut self,
        now: Time,
        slot: PathIndex,
        buffer: &mut [u8],
    ) -> Option<Transmit> {
        let (at, address) = self.paths[slot].candidates.next(INQUIRY_WIRE)?;
        let again = self.ask_again_at(now, slot);
        let random = &mut self.random;
        let inquiry = self.paths[slot]
            .candidates
            .take(at, INQUIRY_WIRE, again, || random.next_u64().to_le_bytes());
        let mut packet = PacketBuilder::new(now, slot, buffer, INQUIRY_LEN as u16);
        let challenge = inquiry.challenge.map(|data| ControlFrame::PathChallenge { data });
        let response = inquiry.response.map(|data| ControlFrame::PathResponse { data });
        for frame in [challenge, response].into_iter().flatten() {
            packet.append(|writer| frame.encode(writer)).ok()?;
        }
        Some(self.seal_aside(packet, address))
    }

    fn seal_aside(&mut self, packet: PacketBuilder<'_>, address: PathAddress) -> Transmit {
        let PacketBuilder { now, slot, .. } = packet;
        let path = &mut self.paths[slot];
        let (id, number) = (path.id, path.on_sent_aside(now, packet.len()));
        let bytes = packet.into_bytes();
        let (len, connection) = (bytes.len(), path.remote_id());
        if self.observer.is_some() {
            let frames = bytes.get(HEADER_LEN..len.saturating_sub(TAG_LEN)).unwrap_or_default();
            self.watch_sent(now, slot, (number, frames), len);
        }
        self.keys.seal_train(connection, id, number, bytes, len);
        let PathAddress { socket, remote } = address;
        Transmit { socket, remote, ecn: Ecn::NotEct, len, segment: len, mtu_probe: false }
    }
}

/// Whether two addresses differ at most in the peer's port, so that the route is the same.
fn same_host(one: PathAddress, other: PathAddress) -> bool {
    (one.socket, one.remote.ip()) == (other.socket, other.remote.ip())
}
