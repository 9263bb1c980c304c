//! Outgoing symbols.

use anabranch_policy::code::Coverage;
use anabranch_policy::scheduler::{Pick, Pull, Reason, Work};
use anabranch_policy::view::{PathState, SymbolSpace};
use anabranch_types::Time;

use super::Connection;
use super::packet::PacketBuilder;
use super::paths::PathIndex;
use crate::coding::send::OutgoingSymbol;
use crate::observe::Observation;
use crate::path::queue::{Granted, QueuedSymbol};
use crate::path::sent::{Carried, Probe};
use crate::wire::codec::NoSpace;
use crate::wire::{REPAIR_OVERHEAD, RepairFrame, SourceFrame};

/// Most bytes of a symbol's frame in addition to its payload, including the length.
const SYMBOL_HEAD: usize = REPAIR_OVERHEAD + 2;
/// Least bytes free in a packet for a further symbol.
const LEAST_ROOM: usize = SYMBOL_HEAD + 16;

/// Where the next symbol of a path goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// Into a packet.
    Packet,
    /// Into a packet of a train.
    Train,
    /// Next to another symbol, with this many bytes for its payload.
    Beside(usize),
}

impl Room {
    /// The bytes for the payload next to another symbol.
    fn beside(self) -> Option<usize> {
        match self {
            Room::Beside(room) => Some(room),
            Room::Packet | Room::Train => None,
        }
    }
}

/// The fate of a scheduler's picks.
enum Picked {
    /// The symbol leaves now.
    Now(QueuedSymbol),
    /// The picks wait in queues.
    Queued,
    /// The picks named work that does not exist.
    Nothing,
}

impl Connection {
    /// Writes a probe, which elicits feedback beyond the window. It carries the oldest symbol in
    /// flight if possible, or a due symbol (RFC 9002 §6.2.4), since bare probes would fill a window
    /// of one packet and delay data.
    pub(super) fn write_probe(&mut self, packet: &mut PacketBuilder<'_>) {
        let slot = packet.slot;
        let left = self.paths[slot].liveness.take_probe();
        // The last of several probes is bare, since the path may no longer carry full packets.
        // After many timeouts all probes are bare, since data would hardly arrive.
        let path = &self.paths[slot];
        let bare = path.liveness.is_long_silent() || (path.mtu.adapts() && left == 0);
        if !bare && self.write_oldest(packet) {
            return;
        }
        // If there is another usable path, due symbols are better sent there than on this silent
        // path.
        if self.may_carry_data(slot)
            && !bare
            && !self.has_alternative(slot)
            && self.write_due(packet)
        {
            return;
        }
        if !packet.ack_eliciting {
            packet.ping();
            // Losses of a suspect path, which carries no data, do not count in its loss estimate.
            let is_unused = self.paths[slot].state() == PathState::Suspect;
            packet.probe = is_unused.then_some(Probe::Life);
        }
    }

    /// Writes the source symbols of the oldest packet in flight that carries any symbols, as far as
    /// they are still needed and fit. Returns false if none is written.
    fn write_oldest(&mut self, packet: &mut PacketBuilder<'_>) -> bool {
        let slot = packet.slot;
        let oldest = self.paths[slot].sent.oldest_with_symbols();
        let Some((number, oldest)) = oldest else { return false };
        let mut written = false;
        let mut nth = 0;
        while packet.symbols_left > 0
            && let Some(carried) = self.paths[slot].sent.symbol(number, &oldest, nth)
        {
            if let Carried::Source(..) = carried
                && let Some(symbol) = self.send[carried.space()].again(carried)
            {
                written |= self.write_symbol(&symbol, packet);
            }
            nth += 1;
        }
        written
    }

    /// Writes the oldest due symbol without asking the scheduler. Returns false if there is none or
    /// no room.
    fn write_due(&mut self, packet: &mut PacketBuilder<'_>) -> bool {
        let slot = packet.slot;
        let block = self.send.views().iter().find(|view| view.has_work());
        let Some(id) = block.map(|view| view.id) else { return false };
        let taken = self.send[id.space()].take(Work::Block(id), slot.0);
        let Some(symbol) = taken else { return false };
        let written = self.write_symbol(&symbol, packet);
        if !written {
            let (not_before, reason) = (Time::ZERO, "due, but the probe was full");
            self.put_first(slot, QueuedSymbol { symbol, not_before, reason });
        }
        written
    }

    /// Writes data, if the scheduler assigns any to this path: one symbol, or as many as may share
    /// the packet.
    pub(super) fn write_data(&mut self, packet: &mut PacketBuilder<'_>) {
        let room = if packet.in_train { Room::Train } else { Room::Packet };
        let Some(first) = self.next_symbol(packet.now, packet.slot, room) else { return };
        if self.write_next(first, packet) {
            while packet.symbols_left > 0
                && packet.room() >= LEAST_ROOM
                && let Some(next) = self.next_beside(packet)
                && self.write_next(next, packet)
            {}
        }
    }

    /// Writes the next symbol of this path. Returns false if it does not fit into the packet.
    #[inline(always)] // once for each packet
    fn write_next(&mut self, next: QueuedSymbol, packet: &mut PacketBuilder<'_>) -> bool {
        let written = self.write_symbol(&next.symbol, packet);
        if written {
            self.explain(packet.now, packet.slot, &next);
        } else {
            // A symbol that does not fit comes first in the next packet.
            self.put_first(packet.slot, next);
        }
        written
    }

    /// A further symbol for a packet that already has one, if the path's next symbol fits.
    #[cold]
    fn next_beside(&mut self, packet: &PacketBuilder<'_>) -> Option<QueuedSymbol> {
        let (now, slot, room) = (packet.now, packet.slot, packet.room() - SYMBOL_HEAD);
        let queue = &mut self.paths[slot].queue;
        queue.ripen(now);
        if queue.front().is_some_and(|front| usize::from(front.symbol.length) > room) {
            return None;
        }
        // The symbol just written may have been the block's last, so that the block's repairs are
        // next.
        self.flush_blocks(now);
        self.next_symbol(now, slot, Room::Beside(room))
    }

    /// The symbol to send on this path now: from its queue, or else as the scheduler decides.
    #[inline(always)] // once for each packet; `next_beside` calls it too
    fn next_symbol(&mut self, now: Time, slot: PathIndex, room: Room) -> Option<QueuedSymbol> {
        let idle = |connection: &mut Self| match room {
            Room::Packet | Room::Train => connection.idle(slot),
            // Only after the packet has left is it known whether the path has further room.
            Room::Beside(_) => None,
        };
        loop {
            if let Some(assigned) = self.next_assigned(now, slot) {
                return Some(assigned);
            }
            if !self.paths[slot].turn.may_ask(now, self.attention.changes()) {
                return None;
            }
            match self.pull(now, slot) {
                Pull::Send(reason) => match self.take_picks(now, slot, reason, room) {
                    Picked::Now(assigned) => return Some(assigned),
                    // Each iteration takes at least one symbol, so the loop ends.
                    Picked::Queued => {}
                    Picked::Nothing => return idle(self),
                },
                Pull::Hold(until, reason) if until > now => {
                    self.paths[slot].turn.hold(until);
                    let path = self.paths[slot].id;
                    self.observe(now, Observation::Held { path, until, reason });
                    return None;
                }
                Pull::Hold(..) | Pull::Idle(_) => return idle(self),
            }
        }
    }

    /// Notes that the scheduler has nothing for this path until something changes.
    fn idle(&mut self, slot: PathIndex) -> Option<QueuedSymbol> {
        let path = &mut self.paths[slot];
        path.turn.idle(self.attention.changes());
        // The window has room, but there is no data to fill it.
        if path.cwnd_open() {
            path.rate.on_app_limited();
        }
        None
    }

    /// Carries out the scheduler's picks. A single symbol for this path need not be queued, and
    /// neither need symbols that leave in one train.
    fn take_picks(&mut self, now: Time, slot: PathIndex, reason: Reason, room: Room) -> Picked {
        let picks = core::mem::take(&mut self.scratch.picks);
        let mut picked = Picked::Nothing;
        if let [pick] = picks[..]
            && pick.path == self.paths[slot].id
            && pick.work != Work::Ahead
            && (pick.count == 1 || (room == Room::Train && self.can_grant(&pick)))
            && pick.not_before <= now
        {
            let Pick { work, not_before, count, .. } = pick;
            if let Some(symbol) = self.take_for(now, work, slot, room.beside()) {
                let left = count.saturating_sub(1);
                self.paths[slot].queue.grant(Granted { left, reason });
                picked = Picked::Now(QueuedSymbol { symbol, not_before, reason });
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

    pub(super) fn explain(&mut self, now: Time, slot: PathIndex, sent: &QueuedSymbol) {
        if self.observer.is_none() {
            return;
        }
        self.watch_work(now);
        let what = match sent.symbol.carried {
            Carried::Repair(..) => "repair",
            Carried::Source(..) if sent.symbol.again => "resend",
            Carried::Source(..) => "source",
        };
        let path = self.paths[slot].id;
        let symbol = sent.symbol.coverage.first;
        self.observe(now, Observation::Scheduled { path, what, symbol, reason: sent.reason });
    }

    /// Appends a symbol to the packet; the symbol then counts as sent. Returns false if it does not
    /// fit.
    pub(super) fn write_symbol(
        &mut self,
        symbol: &OutgoingSymbol,
        packet: &mut PacketBuilder<'_>,
    ) -> bool {
        if !packet.takes(symbol.carried) {
            return false;
        }
        let length = usize::from(symbol.length);
        // A symbol without its length must be the packet's last frame.
        let least_room = SYMBOL_HEAD + length + LEAST_ROOM;
        let prefix = packet.symbols_left > 1 && packet.room() >= least_room;
        let space = symbol.carried.space();
        let send = &mut self.send[space];
        let floor = send.oldest_needed().min(symbol.coverage.first);
        let tells_ends = self.peer_parameters.whole_blocks;
        let written = packet.append(|writer| {
            match symbol.carried {
                Carried::Source(_, symbol) => {
                    let last = tells_ends && space == SymbolSpace::Main && send.ends_block(symbol);
                    SourceFrame { symbol, floor, payload: &[], last }
                        .encode_head(prefix.then_some(length), writer)?;
                }
                Carried::Repair(_, key) => {
                    let Coverage { first, count } = symbol.coverage;
                    RepairFrame { first, floor, count, key, payload: &[] }
                        .encode_head(prefix.then_some(length), writer)?;
                }
            }
            let payload = writer.reserve(length)?;
            send.write(symbol, payload).map_err(|_| NoSpace)
        });
        let Ok(written) = written else { return false };
        self.credit[space as usize].on_told(floor);
        packet.ack_eliciting = true;
        packet.symbols_left = if prefix { packet.symbols_left - 1 } else { 0 };
        match packet.carried {
            None => packet.carried = Some(symbol.carried),
            Some(_) => self.paths[packet.slot].sent.carry_beside(symbol.carried),
        }
        packet.early &= self.send[space].on_written(written, packet.slot.0);
        self.changed();
        true
    }
}
