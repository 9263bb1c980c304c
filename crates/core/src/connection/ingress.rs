//! Incoming packets.

use anabranch_policy::ack::{AckTiming, ReceivedEvent};
use anabranch_policy::code::Coverage;
use anabranch_policy::view::SymbolId;
use anabranch_types::{PathId, Time};

use super::allowance::Allowance;
use super::inflow::Inflow;
use super::paths::PathIndex;
use super::{Connection, Event};
use crate::coding::receive::{Arrival, CodingViolation, ReceiveBlocks, SymbolSink};
use crate::path::PathAddress;
use crate::path::received::Ecn;
use crate::stream::Violation;
use crate::wire::{
    CloseCode, ControlFrame, Frame, Frames, HEADER_LEN, Role, WireError, expand_number,
};

/// A packet that was authenticated.
struct Opened {
    path: PathId,
    number: u64,
    /// Where the packet's payload ends.
    end: usize,
    /// Whether the packet arrived before, from another address.
    again: bool,
}

/// A rule that the peer broke; closes the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken {
    pub code: CloseCode,
    pub what: &'static str,
}

impl From<WireError> for Broken {
    fn from(_: WireError) -> Self {
        Broken { code: CloseCode::FRAME_ENCODING, what: "a frame does not parse" }
    }
}

impl From<CodingViolation> for Broken {
    fn from(violation: CodingViolation) -> Self {
        let what = match violation {
            CodingViolation::Credit => "a symbol beyond the credit",
            CodingViolation::Length => "a symbol of the wrong length",
            CodingViolation::Coverage => "a repair whose coverage contradicts another's",
            CodingViolation::Key => "a repair with a key out of range",
        };
        Broken { code: CloseCode::CODING, what }
    }
}

impl From<Violation> for Broken {
    fn from(violation: Violation) -> Self {
        Broken { code: violation.close_code(), what: "a stream rule was broken" }
    }
}

impl Connection {
    /// Processes a data packet for this connection. Packets that cannot be authenticated are
    /// dropped.
    pub fn handle_packet(&mut self, now: Time, address: PathAddress, ecn: Ecn, packet: &mut [u8]) {
        let Some(Opened { path, number, end, again }) = self.open(address, packet) else {
            self.dropped.unopened += 1;
            return;
        };
        self.memory.on_moved(packet.len());
        if self.is_closed() {
            if let Some(slot) = self.paths.open(path) {
                // The packet's bytes also count towards what may be sent to an unproven address,
                // such as a CLOSE.
                self.note_source(slot, address, packet.len() as u64, number);
                self.remind(slot);
            }
            return;
        }
        let Some(slot) = self.admit(now, path, address) else {
            self.dropped.refused += 1;
            return;
        };
        self.note_source(slot, address, packet.len() as u64, number);
        if again {
            return;
        }
        self.on_heard(now);
        if !self.established {
            self.established = true;
            self.emit(Event::Established);
        }
        let out_of_order = self.paths[slot].received.on_packet(now, number, ecn);
        self.receive.iter_mut().for_each(|blocks| blocks.on_packet(packet.len()));
        let eliciting = match self.apply(now, slot, address, &packet[HEADER_LEN..end]) {
            Ok(eliciting) => eliciting,
            Err(broken) => {
                let reason = super::CloseReason::local(broken.code, broken.what);
                self.start_close(now, reason);
                return;
            }
        };
        if self.observer.is_some() {
            self.watch_received(now, slot, (number, &packet[HEADER_LEN..end]), packet.len());
        }
        let (path, pending) = (self.paths[slot].id, 0);
        let (ack_eliciting, ce) = (eliciting, ecn == Ecn::Ce);
        let event = ReceivedEvent { now, path, ack_eliciting, out_of_order, ce, pending };
        self.schedule_ack(slot, event);
        if self.paths[slot].sent.is_clogged() {
            self.lose_flight(now, slot);
            // These packets filled the memory, so none is kept for late acknowledgements.
            self.paths[slot].sent.prune(now);
        }
        self.note_drained();
    }

    /// Authenticates and decrypts a packet from an address.
    fn open(&mut self, from: PathAddress, packet: &mut [u8]) -> Option<Opened> {
        let header = self.keys.unmask(packet)?;
        let known = self.paths.named(header.connection).map(|slot| &self.paths[slot]);
        let path = match known {
            Some(path) => path.id,
            None => self.ids.path_of(header.connection)?,
        };
        if path.0 as u8 != header.path {
            return None;
        }
        let number = expand_number(header.number, known.map_or(0, |path| path.received.expected()));
        let again = known.is_some_and(|path| path.received.is_replay(number));
        // If a packet arrived from two addresses, either may be that of a copy, so both are probed.
        let is_trace = known.is_some_and(|path| path.address != from && path.is_news(number));
        if again && !is_trace {
            return None;
        }
        let (end, is_first_of_epoch) = self.keys.open(header.epoch, path, number, packet)?;
        if is_first_of_epoch {
            self.keep_previous_key();
        }
        Some(Opened { path, number, end, again })
    }

    /// The path on which an authenticated packet arrived; new paths are opened here.
    fn admit(&mut self, now: Time, path: PathId, address: PathAddress) -> Option<PathIndex> {
        let slot = match self.paths.open(path) {
            Some(slot) => slot,
            None => {
                // The first packets of several paths overtake one another, so path ids appear in
                // any order. The peer has connection ids only for paths that it may open.
                let room = self.paths.count_open() < usize::from(self.config.max_paths);
                if self.identity.role == Role::Initiator || !room {
                    return None;
                }
                let slot = self.new_path(now, path, address).ok()?;
                self.challenge(now, slot);
                slot
            }
        };
        Some(slot)
    }

    /// Applies every frame of a packet from an address; returns whether it asks for an acknowledgement.
    fn apply(
        &mut self,
        now: Time,
        slot: PathIndex,
        from: PathAddress,
        payload: &[u8],
    ) -> Result<bool, Broken> {
        let mut eliciting = false;
        let mut allowance = Allowance::default();
        for frame in Frames::new(payload) {
            let frame = frame?;
            allowance.take(&frame)?;
            eliciting |= frame.is_ack_eliciting();
            match frame {
                Frame::Padding { .. } => {}
                Frame::Ack(ack) => self.on_ack(now, &ack, &mut allowance)?,
                Frame::Rank(rank) => self.on_rank(now, &rank),
                Frame::Symbol(symbol) => self.receive(symbol.floor, |blocks, sink| {
                    if symbol.last {
                        blocks.note_end(symbol.symbol);
                    }
                    blocks.on_source(symbol.symbol, symbol.payload, sink)
                })?,
                Frame::Repair(repair) => self.receive(repair.floor, |blocks, sink| {
                    let coverage = Coverage { first: repair.first, count: repair.count };
                    blocks.on_repair(coverage, repair.key, repair.payload, sink)
                })?,
                Frame::Control(control) => self.on_control(now, slot, from, control)?,
                Frame::Close(close) => self.on_peer_close(now, close.code, close.reason),
            }
        }
        Ok(eliciting)
    }

    /// Passes a symbol to the blocks by `take`; the streams get all symbols that can then be
    /// delivered.
    fn receive(
        &mut self,
        floor: SymbolId,
        take: impl FnOnce(&mut ReceiveBlocks, &mut dyn SymbolSink) -> Result<Arrival, CodingViolation>,
    ) -> Result<(), Broken> {
        let mut inflow = Inflow { streams: &mut self.streams, verdict: Ok(()) };
        let blocks = self.receive.open(floor.space())?;
        take(blocks, &mut inflow)?;
        inflow.verdict?;
        blocks.raise_floor(floor.0, &mut inflow);
        Ok(())
    }

    fn on_control(
        &mut self,
        now: Time,
        slot: PathIndex,
        from: PathAddress,
        frame: ControlFrame,
    ) -> Result<(), Broken> {
        match frame {
            ControlFrame::Ping => {}
            ControlFrame::Abandon { first, count } => {
                let mut inflow = Inflow { streams: &mut self.streams, verdict: Ok(()) };
                if let Ok(blocks) = self.receive.open(first.space()) {
                    blocks.abandon(first, count, &mut inflow);
                }
            }
            ControlFrame::AckFloor { path, floor } => {
                if let Some(about) = self.paths.open(path) {
                    self.paths[about].received.raise_floor(floor);
                }
            }
            ControlFrame::MaxData { limit } => self.streams.on_max_data(limit),
            ControlFrame::MaxStreamData { stream, limit } => {
                self.streams.on_max_stream_data(stream, limit)?;
            }
            ControlFrame::MaxStreams { count } => self.streams.on_max_streams(count),
            ControlFrame::MaxSymbols { space, limit } => {
                self.credit[space as usize].raise(limit);
            }
            ControlFrame::PathChallenge { data } => self.on_challenge(slot, from, data),
            ControlFrame::PathResponse { data } => self.on_response(now, slot, from, data),
            ControlFrame::PathStatus { path, sequence, status } => {
                if self.paths.is_new_status(sequence) {
                    self.use_as_backup(path, status == crate::wire::PathUse::Backup);
                }
            }
            ControlFrame::PathAbandon { path, .. } => self.on_path_abandon(now, path)?,
            ControlFrame::AddAddress { address } => self.on_add_address(address)?,
            ControlFrame::Rekey { epoch, message } => self.on_rekey(now, epoch, &message)?,
            ControlFrame::NewConnectionId { path, id } => self.on_new_connection_id(path, id)?,
            ControlFrame::ResetStream { stream, code, final_size } => {
                self.streams.on_reset(stream, code, final_size)?;
            }
            ControlFrame::StopSending { stream, code } => {
                self.streams.on_stop_sending(stream, code)?;
            }
        }
        self.changed();
        Ok(())
    }

    /// Asks the policy when to acknowledge this packet, which counts as pending on its path if it is ack-eliciting.
    fn schedule_ack(&mut self, slot: PathIndex, mut event: ReceivedEvent) {
        let pending = &mut self.paths[slot].received.pending;
        *pending += u32::from(event.ack_eliciting);
        event.pending = *pending;
        match self.policies.ack.on_received(&event) {
            AckTiming::None => {}
            AckTiming::Now => self.report(event.now, slot),
            AckTiming::By(time) => {
                self.paths[slot].acks.due_by(time);
            }
        }
    }

    /// Sends the report about `slot`, which is due.
    #[inline(always)] // once for each packet
    pub(super) fn report(&mut self, now: Time, slot: PathIndex) {
        if self.paths[slot].acks.route(now) {
            self.route_report(now, slot);
        }
    }

    /// Lets the policy choose the paths on which the report about `slot` leaves.
    fn route_report(&mut self, now: Time, slot: PathIndex) {
        self.refresh_views(now);
        let mut chosen = core::mem::take(&mut self.scratch.ack_paths);
        chosen.clear();
        let about = self.paths[slot].id;
        let reported = self.reported_with(slot);
        self.policies.ack.route(about, self.paths.views(), &mut self.rng, &mut chosen);
        let mut alive = false;
        for path in &chosen {
            if let Some(on) = self.paths.open(*path) {
                self.paths[on].acks.carry(reported);
                let silence = now.since(self.paths[on].received.largest_at);
                alive |= on == slot || silence <= self.config.max_ack_delay;
            }
        }
        // A path on which no packets arrive may have failed in the other direction too, and a side
        // that only acknowledges would not notice that. This path has just carried a packet.
        if !alive {
            self.paths[slot].acks.carry(reported);
        }
        self.scratch.ack_paths = chosen;
        self.refresh_rtt(now, slot);
    }

    /// The paths, as bits, on which an acknowledgement reports when the report about `slot` is due.
    /// If the policy reports every path, these are all paths on which a packet has arrived.
    fn reported_with(&self, slot: PathIndex) -> u16 {
        if !self.policies.ack.reports_every_path() {
            return slot.bit();
        }
        let heard = self.paths.indices().filter(|other| self.paths[*other].received.is_any());
        heard.fold(slot.bit(), |bits, other| bits | other.bit())
    }

    /// Occasionally asks for an answer, because a side that only acknowledges would otherwise get
    /// no round-trip samples.
    fn refresh_rtt(&mut self, now: Time, slot: PathIndex) {
        let path = &mut self.paths[slot];
        if path.liveness.wants_rtt(now) && path.may_amplify(1500) {
            path.liveness.on_asked(now);
            self.paths[slot].control_queue.push_back(ControlFrame::Ping);
        }
    }
}
