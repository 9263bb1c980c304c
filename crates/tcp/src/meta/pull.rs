//! Pulling: a subflow with room in its window asks for data, and the scheduler decides what is sent
//! where.

use anabranch_policy::scheduler::{Pick, Pull, Work};
use anabranch_policy::view::{BlockId, Demand, SchedulerView};
use anabranch_types::{PathId, Time};

use super::binding::Chunk;
use super::sender::MetaSender;
use crate::segment::{Flags, Segment};

/// Most times in a row that a subflow asks for data without a segment leaving.
const MOST_PULLS: usize = 64;

impl MetaSender {
    /// The next segment to send now, and the subflow on which it leaves.
    pub fn poll_transmit(&mut self, now: Time) -> Option<(usize, Segment)> {
        self.now = now;
        self.close_subflows();
        if let Some(sent) = self.poll_subflows(now) {
            return Some(sent);
        }
        for index in 0..self.subflows.len() {
            if !self.may_send {
                break;
            }
            for _ in 0..MOST_PULLS {
                let changes = self.changes;
                let asks = self.subflows.get(index).is_some_and(|s| s.may_pull(now, changes));
                if !asks || !self.pull(now, index) {
                    break;
                }
                // The scheduler may have given another subflow something as well.
                if let Some(sent) = self.poll_subflows(now) {
                    return Some(sent);
                }
            }
        }
        self.watch_window(now)
    }

    fn poll_subflows(&mut self, now: Time) -> Option<(usize, Segment)> {
        (0..self.subflows.len())
            .find_map(|index| self.poll_subflow(now, index).map(|segment| (index, segment)))
    }

    /// The next segment that a subflow has to send without asking the scheduler: a retransmission,
    /// or data assigned to it.
    fn poll_subflow(&mut self, now: Time, index: usize) -> Option<Segment> {
        let subflow = self.subflows.get_mut(index).filter(|subflow| subflow.is_joined())?;
        let slot = index as u8;
        while subflow.sender.wants_data(now)
            && let Some(chunk) = subflow.queue.pop(now)
        {
            self.changes += 1;
            self.views_at = None;
            if self.chunks.has_arrived(chunk.id) {
                self.chunks.on_unqueued(chunk.id, slot);
                continue;
            }
            subflow.bind(chunk);
            self.chunks.on_bound(chunk.id, slot);
            self.chunks.on_unqueued(chunk.id, slot);
        }
        if self.freezes(now, index) {
            return None;
        }
        let segment = self.subflows.get_mut(index)?.sender.poll_transmit(now)?;
        self.changed();
        Some(self.map(now, index, segment))
    }

    /// Whether a subflow's next retransmission must wait, because its data was taken back and there
    /// is no other data for its place. It is sent nevertheless, with meaningless bytes if need be,
    /// if the subflow has other chunks that wait behind it, if there is data but of another length,
    /// or if the connection closes.
    fn freezes(&mut self, now: Time, index: usize) -> bool {
        let slot = index as u8;
        let closing = self.closes() && self.is_drained();
        let Some(subflow) = self.subflows.get_mut(index) else { return false };
        if closing || !subflow.bindings.any_unbound() || self.chunks.waiting_on(slot) > 0 {
            return false;
        }
        let Some(offset) = subflow.sender.next_retransmission(now) else { return false };
        let Some(len) = subflow.bindings.unbound_at(offset) else { return false };
        let replaced = self.shared.next_len() > 0 || self.shared.cuttable() >= len;
        if replaced || self.chunks.any_due_for(slot) {
            return false;
        }
        subflow.sender.freeze();
        subflow.frozen_at = Some(self.changes);
        true
    }

    /// Writes the data sequence number into a segment. A segment whose data was taken back is given
    /// other data.
    fn map(&mut self, now: Time, index: usize, segment: Segment) -> Segment {
        if segment.flags.has(Flags::SYN) {
            return self.mark_syn(segment);
        }
        if segment.flags.has(Flags::FIN) {
            return self.mark_fin(segment);
        }
        if segment.len == 0 {
            return self.mark_header(segment);
        }
        let slot = index as u8;
        let unbound =
            self.subflows.get(index).and_then(|subflow| subflow.bindings.unbound_at(segment.seq));
        if let Some(chunk) = unbound.and_then(|len| self.take_for(slot, len))
            && let Some(subflow) = self.subflows.get_mut(index)
        {
            subflow.bindings.rebind(segment.seq, chunk);
            self.chunks.on_bound(chunk.id, slot);
        }
        let bound =
            self.subflows.get(index).and_then(|subflow| subflow.bindings.lookup(segment.seq));
        // If there is no data for this place, the subflow's stream goes on with meaningless bytes.
        let Some((chunk, data)) = bound else { return self.mark_header(segment) };
        if !self.chunks.on_sent(chunk.id, slot, now) {
            // The chunk is sent again without having been declared lost, as in Fall and Floyd's
            // recovery: it counts as lost now.
            self.resolve(now, index, 0, 1);
        }
        if self.is_plain() {
            debug_assert_eq!(data, segment.seq);
            return segment;
        }
        let ends = if self.ends_data(chunk.end()) { Flags::DATA_FIN } else { Flags::NONE };
        Segment { data, flags: segment.flags.with(Flags::MAPPED).with(ends), ..segment }
    }

    /// Data to fill a run of exactly `len` bytes of a subflow's stream: a due chunk, else new data.
    fn take_for(&mut self, slot: u8, len: u64) -> Option<Chunk> {
        if let Some(chunk) = self.chunks.due_of(len, slot).and_then(|id| self.chunks.take_due(id)) {
            self.statistics.rebound_bytes += len;
            return Some(chunk);
        }
        (self.shared.cuttable() >= len).then(|| self.cut(len))
    }

    fn cut(&mut self, len: u64) -> Chunk {
        let chunk = self.chunks.cut(self.shared.next, len);
        self.shared.next += len;
        self.statistics.bound_bytes += len;
        chunk
    }

    /// Asks the scheduler for data for a subflow with room in its window (pTCP's `send`; if nothing
    /// is assigned, `freeze`). Returns true if anything may have been assigned.
    fn pull(&mut self, now: Time, index: usize) -> bool {
        let acted = self.note_limits(now);
        self.refresh_views(now);
        let mut picks = core::mem::take(&mut self.picks);
        picks.clear();
        let view = SchedulerView {
            now,
            paths: &self.views,
            fresh: self.shared.fresh(self.chunks.next()),
            blocks: self.chunks.show(Some(index as u8)),
            demand: Demand::default(),
        };
        let answer = self.scheduler.pull(PathId(index as u32), &view, &mut picks);
        let mut assigned = false;
        match answer {
            Pull::Send(_) => {
                for pick in &picks {
                    assigned |= self.assign(pick);
                }
            }
            Pull::Hold(until, _) if until > now => {
                if let Some(subflow) = self.subflows.get_mut(index) {
                    subflow.hold_until = Some(until);
                }
                self.picks = picks;
                return acted;
            }
            Pull::Hold(..) | Pull::Idle(_) => {}
        }
        self.picks = picks;
        if !assigned && let Some(subflow) = self.subflows.get_mut(index) {
            subflow.sender.starve();
            subflow.idle_at = self.changes;
            subflow.frozen_at = Some(self.changes);
        }
        assigned || acted
    }

    /// Puts the picked chunks that exist into the queue of their subflow. Returns false if there
    /// are none.
    pub(super) fn assign(&mut self, pick: &Pick) -> bool {
        if pick.work == Work::Ahead {
            return !self.is_plain() && self.cut_ahead(pick.count);
        }
        let Some(index) = self.index_of(pick.path) else { return false };
        let not_before = if self.is_plain() { Time::ZERO } else { pick.not_before };
        let mut assigned = false;
        for _ in 0..pick.count {
            if !self.subflows.get(index).is_some_and(|subflow| subflow.is_open()) {
                break;
            }
            let Some(chunk) = self.choose(pick.work, index as u8) else { break };
            self.chunks.on_queued(chunk.id, index as u8);
            if let Some(subflow) = self.subflows.get_mut(index) {
                subflow.queue.push(chunk, not_before);
            }
            assigned = true;
        }
        if assigned {
            self.changed();
        }
        assigned
    }

    /// Cuts up to `count` new chunks, as far as there is data, and makes them due. Returns true if
    /// there was any data.
    fn cut_ahead(&mut self, count: u16) -> bool {
        let mut any = false;
        for _ in 0..count {
            let len = self.shared.next_len();
            if len == 0 {
                break;
            }
            let chunk = self.cut(len);
            any |= self.chunks.make_due(chunk.id, 0);
        }
        if any {
            self.changed();
        }
        any
    }

    /// The stream of plain TCP is the data, so the oldest chunk leaves next, whichever one a
    /// scheduler names, and there are no copies.
    fn in_order(&self, work: Work) -> Option<Work> {
        matches!(work, Work::Fresh | Work::Block(_))
            .then(|| self.chunks.oldest_due().map_or(Work::Fresh, |id| Work::Block(BlockId(id))))
    }

    /// Takes the chunk that `work` names.
    fn choose(&mut self, work: Work, slot: u8) -> Option<Chunk> {
        let work = if self.is_plain() { self.in_order(work)? } else { work };
        let chunk = match work {
            Work::Fresh => {
                let len = self.shared.next_len();
                return (len > 0).then(|| self.cut(len));
            }
            // A subflow is not given a chunk that it has to retransmit by itself.
            Work::Block(id) if self.chunks.is_on(id.0, slot) => return None,
            Work::Block(id) => self.chunks.take_due(id.0)?,
            Work::Copy(id) => self.chunks.take_copy(id.0, slot)?,
            Work::Ahead | Work::Repair(_) => return None,
        };
        self.statistics.rebound_bytes += chunk.len;
        Some(chunk)
    }
}
