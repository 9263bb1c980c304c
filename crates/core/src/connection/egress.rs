//! Packets going out.

use anabranch_policy::scheduler::{Pull, Reason, Work};
use anabranch_policy::view::{PathState, SymbolId};
use anabranch_types::Time;
use core::time::Duration;
use std::net::SocketAddr;

use super::Connection;
use super::queue::Assigned;
use crate::coding::send::Taken;
use crate::crypto::TAG_LEN;
use crate::observe::Observation;
use crate::path::received::Ecn;
use crate::path::sent::Carried;
use crate::path::{EcnState, PacketSent, PathAddress, SocketId, UDP_OVERHEAD};
use crate::wire::header;
use crate::wire::transport_parameters::MIN_UDP_PAYLOAD;
use crate::wire::{
    AckHeader, CloseFrame, ControlFrame, DataHeader, HEADER_LEN, RankEntry, RankFrame, RepairFrame,
    Writer,
};

/// Bytes that reports leave for the frames after them: the longest CLOSE fits.
const ROOM_AFTER_ACKS: usize = 300;
/// Room without which no packet is begun: one challenge and its answer fit.
const SMALLEST_PACKET: usize = HEADER_LEN + 24 + TAG_LEN;
/// Most windows of either kind, lacking or recovered, that a report names.
const MAX_RANKS: usize = 8;
/// Numbers resolved since the last announced floor that make a new one worth its bytes.
const FLOOR_STEP: u64 = 64;

/// A datagram to be sent; its payload is in the caller's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Local socket.
    pub socket: SocketId,
    /// Destination.
    pub remote: SocketAddr,
    /// Mark.
    pub ecn: Ecn,
    /// Bytes of the buffer that are the payload.
    pub len: usize,
    /// Longer than the path is known to carry, to find out: refusals concern this datagram alone.
    pub mtu_probe: bool,
}

/// What a packet under construction contains so far.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) ack_eliciting: bool,
    /// Control frames, which are kept with the path under the packet's number.
    pub(super) has_control: bool,
    /// Nothing but a probe of the path's MTU.
    pub(super) mtu_probe: bool,
    pub(super) carried: Option<Carried>,
}

/// What became of a scheduler's picks.
enum Picked {
    /// This symbol leaves now.
    Now(Assigned),
    /// They wait in queues.
    Queued,
    /// They named nothing that exists.
    Nothing,
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
        if self.is_closed() {
            return self.poll_close(now, writable, buffer);
        }
        self.collect_control();
        self.provision_rest(now);
        self.flush_window(now);
        self.fit_windows(now);
        let count = self.paths.len();
        loop {
            let changes = self.changes;
            for step in 0..count {
                let slot = (self.next_slot + step) % count;
                let path = &self.paths[slot];
                if path.state == PathState::Closed || !writable(path.address.socket) {
                    continue;
                }
                if let Some(transmit) = self.build(now, slot, buffer) {
                    self.next_slot = slot;
                    return Some(transmit);
                }
            }
            // A path may have been given work by one that was asked after it.
            if self.changes == changes {
                break;
            }
        }
        self.next_slot = if count > 0 { (self.next_slot + 1) % count } else { 0 };
        None
    }

    /// Control frames that streams and the decoder want sent.
    fn collect_control(&mut self) {
        while let Some(frame) = self.streams.poll_control() {
            self.control.push_back(frame);
        }
        if let Some(limit) = self.receive.new_limit() {
            self.control.push_back(ControlFrame::MaxSymbols { limit });
        }
        // Symbols tell the floor, but without credit there may be none to tell it, and without the
        // floor there will be no credit.
        let SymbolId(floor) = self.send.oldest_needed();
        if floor > self.floor_told && self.symbol_credit() == 0 && self.streams.pending().bytes > 0
        {
            self.floor_told = floor;
            let first = SymbolId(0);
            self.control.push_back(ControlFrame::Abandon { first, count: floor });
        }
    }

    fn poll_close(
        &mut self,
        now: Time,
        writable: &dyn Fn(SocketId) -> bool,
        buffer: &mut [u8],
    ) -> Option<Transmit> {
        for slot in 0..self.paths.len() {
            let path = &self.paths[slot];
            if path.state == PathState::Closed
                || !writable(path.address.socket)
                || !path.may_amplify(100)
                || !self.closing.take_announcement(slot)
            {
                continue;
            }
            let reason = self.closing.reason()?.clone();
            let mut writer = self.body(slot, buffer);
            // What arrived is acknowledged with the last word, or the peer could not know.
            self.write_acks(now, u16::MAX, &mut writer);
            let frame = CloseFrame {
                code: reason.code,
                application: reason.code >= crate::wire::CloseCode::FIRST_APPLICATION,
                reason: &reason.reason,
            };
            frame.encode(&mut writer).ok()?;
            let end = HEADER_LEN + writer.position();
            return Some(self.seal(now, slot, buffer, end, Contents::default()));
        }
        None
    }

    /// The part of the buffer that holds reports and control frames: these pass on every path.
    fn body<'a>(&self, slot: usize, buffer: &'a mut [u8]) -> Writer<'a> {
        let most = self.paths[slot].mtu.size().min(MIN_UDP_PAYLOAD);
        let end = usize::from(most).min(buffer.len()) - TAG_LEN;
        Writer::new(&mut buffer[HEADER_LEN..end])
    }

    /// Where the frames of a full packet end.
    fn frames_end(&self, slot: usize, buffer: &[u8]) -> usize {
        usize::from(self.paths[slot].mtu.size()).min(buffer.len()) - TAG_LEN
    }

    fn build(&mut self, now: Time, slot: usize, buffer: &mut [u8]) -> Option<Transmit> {
        // To an address that is not proven, as much leaves as it has earned: a question always fits.
        let room = self.paths[slot].amplification_room().saturating_sub(UDP_OVERHEAD);
        let room = usize::try_from(room).map_or(buffer.len(), |room| room.min(buffer.len()));
        if room < SMALLEST_PACKET {
            return None;
        }
        if let Some(probe) = self.write_mtu_probe(now, slot, &mut buffer[..room]) {
            return Some(probe);
        }
        let buffer = &mut buffer[..room];
        let mut contents = Contents::default();
        let mut end = HEADER_LEN;
        self.write_small(now, slot, buffer, &mut end, &mut contents);
        if self.may_carry_data(slot) {
            if self.paths[slot].probes > 0 {
                self.write_probe(slot, buffer, &mut end, &mut contents);
            } else if self.paths[slot].ready(now) {
                self.write_data(now, slot, buffer, &mut end, &mut contents);
            }
        } else if self.paths[slot].probes > 0 {
            self.write_probe(slot, buffer, &mut end, &mut contents);
        }
        (end > HEADER_LEN).then(|| self.seal(now, slot, buffer, end, contents))
    }

    pub(super) fn may_carry_data(&self, slot: usize) -> bool {
        self.is_usable(slot) && self.fits(slot)
    }

    /// Reports about the paths whose bits are set in `about`, as long as there is room for them and for
    /// what follows; returns the bits that are left.
    fn write_acks(&mut self, now: Time, about: u16, writer: &mut Writer<'_>) -> u16 {
        let mut left = about;
        for (slot, path) in self.paths.iter_mut().enumerate() {
            let bit = 1 << slot;
            if left & bit == 0 {
                continue;
            }
            let received = &mut path.received;
            let header = AckHeader {
                path: path.id,
                received_at: received.largest_at.as_micros() as u32,
                delay_us: now.since(received.largest_at).as_micros() as u64,
                ect0: received.ect0,
                ect1: received.ect1,
                ce: received.ce,
            };
            if writer.remaining() < ROOM_AFTER_ACKS
                || header.encode(received.ranges(), writer).is_err()
            {
                break;
            }
            received.pending = 0;
            path.ack_due = None;
            path.ack_routed = None;
            left &= !bit;
        }
        left
    }

    /// Whether no usable path is known to be quicker: credit that takes a slow path stalls a fast one.
    fn is_quickest(&self, slot: usize) -> bool {
        let delay = |slot: usize| {
            let rtt = self.paths[slot].rtt.view();
            if rtt.samples > 0 { rtt.min } else { Duration::MAX }
        };
        let own = delay(slot);
        (0..self.paths.len()).all(|other| !self.may_carry_data(other) || delay(other) >= own)
    }

    /// Acknowledgements and control frames that are due on this path.
    fn write_small(
        &mut self,
        now: Time,
        slot: usize,
        buffer: &mut [u8],
        end: &mut usize,
        contents: &mut Contents,
    ) {
        let due = core::mem::take(&mut self.paths[slot].acks_due_about);
        if due == 0 && self.path_control[slot].is_empty() && self.control.is_empty() {
            return;
        }
        let mut writer = self.body(slot, buffer);
        let left = self.write_acks(now, due, &mut writer);
        self.paths[slot].acks_due_about = left;
        // Only beside an acknowledgement: alone it would be sent again and again where none fits.
        if left != due {
            let deficits = self.receive.deficits().take(MAX_RANKS);
            let recovered = self.receive.recovered().take(MAX_RANKS).map(|first| (first, 0));
            let entries =
                deficits.chain(recovered).map(|(first, missing)| RankEntry { first, missing });
            let first = self.receive.first_missing();
            let _ = RankFrame::encode_entries(first, entries, &mut writer);
        }
        let path = &self.paths[slot];
        let floor = path.sent.floor();
        if floor >= path.floor_announced + FLOOR_STEP && (due != 0 || !self.control.is_empty()) {
            self.paths[slot].floor_announced = floor;
            let frame = ControlFrame::AckFloor { path: self.paths[slot].id, floor };
            self.path_control[slot].push_back(frame);
        }
        let usable = self.may_carry_data(slot) && self.is_quickest(slot);
        loop {
            let own = self.path_control[slot].front();
            let frame = match own.or(if usable { self.control.front() } else { None }) {
                Some(frame) if frame.encode(&mut writer).is_ok() => *frame,
                _ => break,
            };
            if self.path_control[slot].pop_front().is_none() {
                self.control.pop_front();
            }
            let path = &mut self.paths[slot];
            path.control.push(path.sent.next_number(), frame);
            contents.has_control = true;
            contents.ack_eliciting = true;
        }
        *end = HEADER_LEN + writer.position();
    }

    /// A probe elicits feedback beyond the window; it carries the oldest symbol in flight if it can, or
    /// what is due (RFC 9002 §6.2.4): bare probes would hold a window of one packet shut against it.
    fn write_probe(
        &mut self,
        slot: usize,
        buffer: &mut [u8],
        end: &mut usize,
        contents: &mut Contents,
    ) {
        self.paths[slot].probes -= 1;
        // The last of several is bare: full packets may be what does not pass any more.
        let bare = self.paths[slot].mtu.adapts() && self.paths[slot].probes == 0;
        let oldest = self.paths[slot].sent.open().find_map(|(_, packet)| packet.carried);
        if let Some(Carried::Source(..)) = oldest
            && !bare
            && let Some(carried) = oldest
            && let Some(taken) = self.send.again(carried)
            && self.write_symbol(slot, &taken, buffer, end, contents)
        {
            return;
        }
        // Where there is another path, this one's silence is a reason to prefer that.
        if self.may_carry_data(slot)
            && !bare
            && !self.has_alternative(slot)
            && self.write_due(slot, buffer, end, contents)
        {
            return;
        }
        if !contents.ack_eliciting {
            let limit = self.frames_end(slot, buffer);
            let mut writer = Writer::new(&mut buffer[*end..limit]);
            if ControlFrame::Ping.encode(&mut writer).is_ok() {
                *end += writer.position();
                contents.ack_eliciting = true;
            }
        }
    }

    /// The oldest symbol that is due, whatever the scheduler thinks. False if there is none, or no room.
    fn write_due(
        &mut self,
        slot: usize,
        buffer: &mut [u8],
        end: &mut usize,
        contents: &mut Contents,
    ) -> bool {
        let window = self.send.views().iter().find(|view| view.has_work());
        let Some(work) = window.map(|view| Work::Window(view.id)) else { return false };
        let Some(taken) = self.send.take(work, slot as u8) else { return false };
        let written = self.write_symbol(slot, &taken, buffer, end, contents);
        if !written {
            let (not_before, reason) = (Time::ZERO, "due, but the probe was full");
            self.put_first(slot, Assigned { work, taken, not_before, reason });
        }
        written
    }

    /// Data, if the scheduler wants any on this path.
    fn write_data(
        &mut self,
        now: Time,
        slot: usize,
        buffer: &mut [u8],
        end: &mut usize,
        contents: &mut Contents,
    ) {
        let Some(next) = self.next_symbol(now, slot) else { return };
        if self.write_symbol(slot, &next.taken, buffer, end, contents) {
            self.explain(now, slot, &next);
        } else {
            // No room beside what is in the packet already: first thing in the next one.
            self.put_first(slot, next);
        }
    }

    /// The symbol to send on this path now: from its queue, or else what the scheduler says.
    fn next_symbol(&mut self, now: Time, slot: usize) -> Option<Assigned> {
        loop {
            if let Some(assigned) = self.next_assigned(now, slot) {
                return Some(assigned);
            }
            let path = &self.paths[slot];
            if path.idle_at == self.changes || path.hold_until.is_some_and(|until| until > now) {
                return None;
            }
            match self.pull(now, slot) {
                Pull::Send(reason) => match self.take_picks(now, slot, reason) {
                    Picked::Now(assigned) => return Some(assigned),
                    // Each round takes a symbol at least, so there is an end to it.
                    Picked::Queued => {}
                    Picked::Nothing => return self.idle(slot),
                },
                Pull::Hold(until, reason) if until > now => {
                    self.paths[slot].hold_until = Some(until);
                    let path = self.paths[slot].id;
                    self.observe(now, Observation::Held { path, until, reason });
                    return None;
                }
                Pull::Hold(..) | Pull::Idle(_) => return self.idle(slot),
            }
        }
    }

    /// The scheduler has nothing for this path until something changes.
    fn idle(&mut self, slot: usize) -> Option<Assigned> {
        let path = &mut self.paths[slot];
        path.idle_at = self.changes;
        // The window has room and there is nothing to fill it with.
        if path.window_open() {
            path.rate.on_app_limited();
        }
        None
    }

    /// Carries out the picks that the scheduler left. A single symbol for this path need not queue.
    fn take_picks(&mut self, now: Time, slot: usize, reason: Reason) -> Picked {
        let picks = core::mem::take(&mut self.scratch.picks);
        let mut picked = Picked::Nothing;
        if let [pick] = picks[..]
            && (pick.path, pick.count) == (self.paths[slot].id, 1)
            && pick.not_before <= now
        {
            let (work, not_before) = (pick.work, pick.not_before);
            if let Some(taken) = self.take_for(now, work, slot) {
                picked = Picked::Now(Assigned { work, taken, not_before, reason });
            }
        } else {
            for pick in &picks {
                if self.assign(now, *pick, reason) {
                    picked = Picked::Queued;
                }
            }
        }
        self.scratch.picks = picks;
        picked
    }

    fn explain(&mut self, now: Time, slot: usize, sent: &Assigned) {
        if self.observer.is_none() {
            return;
        }
        let what = match (sent.taken.carried, sent.work) {
            (Carried::Repair(..), _) => "repair",
            (Carried::Source(..), Work::Fresh) => "source",
            (Carried::Source(..), _) => "resend",
        };
        let path = self.paths[slot].id;
        let symbol = sent.taken.coverage.first.0;
        self.observe(now, Observation::Scheduled { path, what, symbol, reason: sent.reason });
    }

    /// Appends a symbol to the packet. False if it does not fit.
    fn write_symbol(
        &mut self,
        slot: usize,
        taken: &Taken,
        buffer: &mut [u8],
        end: &mut usize,
        contents: &mut Contents,
    ) -> bool {
        let limit = self.frames_end(slot, buffer);
        let mut writer = Writer::new(&mut buffer[*end..limit]);
        let floor = self.send.oldest_needed().min(taken.coverage.first);
        let head = match taken.carried {
            Carried::Source(_, symbol) => {
                crate::wire::SourceFrame { symbol, floor, payload: &[] }.encode_to_end(&mut writer)
            }
            Carried::Repair(_, key) => RepairFrame {
                first: taken.coverage.first,
                floor,
                count: taken.coverage.count,
                key,
                payload: &[],
            }
            .encode_head(None, &mut writer),
        };
        let written = head
            .and_then(|()| writer.reserve(usize::from(taken.length)))
            .is_ok_and(|payload| self.send.write(taken, payload).is_ok());
        if !written {
            return false;
        }
        *end += writer.position();
        self.floor_told = self.floor_told.max(floor.0);
        contents.ack_eliciting = true;
        contents.carried = Some(taken.carried);
        true
    }

    /// Completes a packet of `end` bytes before the tag, and records that it left.
    pub(super) fn seal(
        &mut self,
        now: Time,
        slot: usize,
        buffer: &mut [u8],
        end: usize,
        contents: Contents,
    ) -> Transmit {
        let path = &self.paths[slot];
        let (id, number) = (path.id, path.sent.next_number());
        let header = DataHeader {
            connection: self.remote_id,
            epoch: self.session.sealer.epoch(),
            path: id.0 as u8,
            number: number as u32,
        };
        let len = end + TAG_LEN;
        let packet = &mut buffer[..len];
        // The buffer holds the header: its length was reserved when the frames were written.
        let _ = header.encode(&mut Writer::new(packet));
        self.session.sealer.seal(id, number, packet, HEADER_LEN);
        if let Some(sample) = header::sample(packet) {
            let mask = self.session.sealer.mask(sample);
            header::protect(packet, mask);
        }
        if self.session.sealer.remaining() == 0 {
            self.session.sealer.advance();
        }
        let path = &mut self.paths[slot];
        let marked = self.config.ecn && path.ecn == EcnState::Capable && contents.ack_eliciting;
        let ecn = if marked { Ecn::Ect0 } else { Ecn::NotEct };
        path.on_sent(
            now,
            PacketSent {
                payload: len,
                ecn,
                ack_eliciting: contents.ack_eliciting,
                has_control: contents.has_control,
                mtu_probe: contents.mtu_probe,
                carried: contents.carried,
            },
        );
        if let Some(carried) = contents.carried {
            self.send.on_sent(carried, slot as u8);
            self.policies.estimator.on_sent(id, Some(carried.window()), 1);
            self.changed();
        }
        let PathAddress { socket, remote } = self.paths[slot].address;
        Transmit { socket, remote, ecn, len, mtu_probe: contents.mtu_probe }
    }
}
