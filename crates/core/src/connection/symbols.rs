//! Symbols going out.

use anabranch_policy::code::Coverage;
use anabranch_policy::scheduler::{Pull, Reason, Work};
use anabranch_types::Time;

use super::Connection;
use super::packet::PacketBuilder;
use super::queue::Assigned;
use crate::coding::send::Taken;
use crate::observe::Observation;
use crate::path::sent::Carried;
use crate::wire::codec::NoSpace;
use crate::wire::{RepairFrame, SourceFrame};

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
    /// A probe elicits feedback beyond the window; it carries the oldest symbol in flight if it can, or
    /// what is due (RFC 9002 §6.2.4): bare probes would hold a window of one packet shut against it.
    pub(super) fn write_probe(&mut self, packet: &mut PacketBuilder<'_>) {
        let slot = packet.slot;
        self.paths[slot].probes -= 1;
        // The last of several is bare: full packets may be what does not pass any more.
        let bare = self.paths[slot].mtu.adapts() && self.paths[slot].probes == 0;
        let oldest = self.paths[slot].sent.open().find_map(|(_, packet)| packet.carried);
        if let Some(Carried::Source(..)) = oldest
            && !bare
            && let Some(carried) = oldest
            && let Some(taken) = self.send.again(carried)
            && self.write_symbol(&taken, packet)
        {
            return;
        }
        // Where there is another path, this one's silence is a reason to prefer that.
        if self.may_carry_data(slot)
            && !bare
            && !self.has_alternative(slot)
            && self.write_due(packet)
        {
            return;
        }
        if !packet.ack_eliciting {
            packet.ping();
        }
    }

    /// The oldest symbol that is due, whatever the scheduler thinks. False if there is none, or no room.
    fn write_due(&mut self, packet: &mut PacketBuilder<'_>) -> bool {
        let slot = packet.slot;
        let window = self.send.views().iter().find(|view| view.has_work());
        let Some(work) = window.map(|view| Work::Window(view.id)) else { return false };
        let Some(taken) = self.send.take(work, slot as u8) else { return false };
        let written = self.write_symbol(&taken, packet);
        if !written {
            let (not_before, reason) = (Time::ZERO, "due, but the probe was full");
            self.put_first(slot, Assigned { work, taken, not_before, reason });
        }
        written
    }

    /// Data, if the scheduler wants any on this path.
    pub(super) fn write_data(&mut self, packet: &mut PacketBuilder<'_>) {
        let Some(next) = self.next_symbol(packet.now, packet.slot) else { return };
        if self.write_symbol(&next.taken, packet) {
            self.explain(packet.now, packet.slot, &next);
        } else {
            // No room beside what is in the packet already: first thing in the next one.
            self.put_first(packet.slot, next);
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
    fn write_symbol(&mut self, taken: &Taken, packet: &mut PacketBuilder<'_>) -> bool {
        let floor = self.send.oldest_needed().min(taken.coverage.first);
        let send = &mut self.send;
        let written = packet.append(|writer| {
            match taken.carried {
                Carried::Source(_, symbol) => {
                    SourceFrame { symbol, floor, payload: &[] }.encode_to_end(writer)?;
                }
                Carried::Repair(_, key) => {
                    let Coverage { first, count } = taken.coverage;
                    RepairFrame { first, floor, count, key, payload: &[] }
                        .encode_head(None, writer)?;
                }
            }
            let payload = writer.reserve(usize::from(taken.length))?;
            send.write(taken, payload).map_err(|_| NoSpace)
        });
        if written.is_err() {
            return false;
        }
        self.floor_told = self.floor_told.max(floor.0);
        packet.ack_eliciting = true;
        packet.carried = Some(taken.carried);
        true
    }
}
