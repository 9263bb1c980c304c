//! The sender's record of outstanding segments (RFC 6675 §3 and §4).
//!
//! A ring holds one slot for each segment, and the SACKed offsets are kept as ranges beside it. A
//! slot changes state a bounded number of times, and every walk starts where the last one ended, so
//! the cost per segment does not depend on the window.

mod slot;

use anabranch_types::Time;
use core::time::Duration;
use std::collections::VecDeque;

use crate::ranges::Ranges;
use slot::{EVER_RESENT, FIN, LOST, NOTICED, RESENT, SACKED, Slot};

/// The segments that an acknowledgement reported for the first time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delivered {
    pub(crate) bytes: u64,
    pub(crate) segments: u32,
    /// When the newest of the segments was sent, and where it ends.
    pub(crate) newest_sent: Option<(Time, u64)>,
    /// Whether the newest segment had been retransmitted.
    pub(crate) newest_resent: bool,
    /// Absolute index of the newest segment's slot, for tables beside the board.
    pub(crate) newest_index: u64,
}

/// The fate of the segment in flight at a stream offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The receiver reported the segment.
    Delivered,
    /// A transmission of the segment, the first or a later one, was declared lost.
    Lost,
}

/// The outstanding segments.
#[derive(Clone, Debug)]
pub(crate) struct Scoreboard {
    slots: VecDeque<Slot>,
    /// Slots that have left at the front since the start.
    popped: u64,
    /// Full segment size, from which the index of a slot is guessed.
    mss: u32,
    sacked: Ranges,
    /// Offset below which everything that is not SACKed has been declared lost.
    judged: u64,
    /// Offset below which no slot waits for a retransmission.
    cursor: u64,
    /// Slots that wait for a retransmission.
    waiting: u64,
    pipe: u64,
    /// Offset at which the newest segment ends.
    end: u64,
    /// Offset below which first transmissions have been judged by time.
    timed_until: u64,
    /// Retransmissions in the order of sending, with their offsets; kept where losses are found by
    /// time.
    copies: VecDeque<(Time, u64)>,
    tracks_copies: bool,
    /// Fates since they were last taken, by the segment's first offset; `None` if they are not tracked.
    fates: Option<Vec<(u64, Fate)>>,
}

impl Scoreboard {
    pub(crate) fn new(mss: u32) -> Self {
        Scoreboard {
            slots: VecDeque::new(),
            popped: 0,
            mss: mss.max(1),
            sacked: Ranges::new(),
            judged: 0,
            cursor: 0,
            waiting: 0,
            pipe: 0,
            end: 0,
            timed_until: 0,
            copies: VecDeque::new(),
            tracks_copies: false,
            fates: None,
        }
    }

    pub(crate) fn pipe(&self) -> u64 {
        self.pipe
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn front(&self) -> Option<&Slot> {
        self.slots.front()
    }

    /// Bytes SACKed above the cumulative acknowledgement.
    pub(crate) fn sacked_bytes(&self) -> u64 {
        self.sacked.covered()
    }

    /// The end of the highest SACKed range.
    pub(crate) fn highest_sacked(&self) -> Option<u64> {
        self.sacked.last().map(|range| range.1)
    }

    /// Whether a segment waits for its retransmission.
    pub(crate) fn any_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// A new segment left; it follows the last one.
    pub(crate) fn push(&mut self, start: u64, len: u32, fin: bool, now: Time) -> u64 {
        let slot = Slot { start, sent: now, len, state: if fin { FIN } else { 0 } };
        self.end = slot.end();
        self.pipe += u64::from(len);
        self.slots.push_back(slot);
        self.popped + self.slots.len() as u64 - 1
    }

    fn index_of(&self, offset: u64) -> Option<usize> {
        let front = self.slots.front()?;
        if offset < front.start || offset >= self.end {
            return None;
        }
        let guess = (offset - front.start) / u64::from(self.mss);
        let guess = usize::try_from(guess).unwrap_or(usize::MAX);
        match self.slots.get(guess) {
            Some(slot) if slot.start <= offset && offset < slot.end() => Some(guess),
            _ => Some(self.slots.partition_point(|slot| slot.end() <= offset)),
        }
    }

    /// Everything below `offset` has arrived. Adds newly reported segments to `delivered`.
    pub(crate) fn acknowledge(&mut self, offset: u64, delivered: &mut Delivered) {
        while let Some(slot) = self.slots.front().copied() {
            if slot.end() > offset {
                break;
            }
            self.settle(&slot, self.popped, delivered);
            self.slots.pop_front();
            self.popped += 1;
        }
        if let Some(slot) = self.slots.front_mut()
            && slot.start < offset
        {
            // Part of a segment: the rest stays outstanding.
            let before = slot.in_pipe();
            let part = u32::try_from(offset - slot.start).unwrap_or(slot.len).min(slot.len);
            slot.start = offset;
            slot.len -= part;
            self.pipe -= before - slot.in_pipe();
            delivered.bytes += u64::from(part);
        }
        self.sacked.remove_below(offset);
        self.judged = self.judged.max(offset);
        self.cursor = self.cursor.max(offset);
        self.timed_until = self.timed_until.max(offset);
    }

    fn settle(&mut self, slot: &Slot, index: u64, delivered: &mut Delivered) {
        self.pipe -= slot.in_pipe();
        self.waiting -= u64::from(slot.waits_for_resending());
        if slot.is(SACKED) {
            return;
        }
        self.note(slot.start, Fate::Delivered);
        delivered.bytes += u64::from(slot.len);
        delivered.segments += 1;
        if delivered.newest_sent.is_none_or(|newest| newest <= (slot.sent, slot.end())) {
            delivered.newest_sent = Some((slot.sent, slot.end()));
            delivered.newest_resent = slot.ever_resent();
            delivered.newest_index = index;
        }
    }

    /// `[start, end)` has arrived above the cumulative acknowledgement. Offsets that are not
    /// outstanding are ignored. Adds newly reported segments to `delivered`.
    pub(crate) fn sack(&mut self, start: u64, end: u64, delivered: &mut Delivered) {
        let Some(front) = self.slots.front() else { return };
        let (start, end) = (start.max(front.start), end.min(self.end));
        if start >= end {
            return;
        }
        let mut ranges = core::mem::take(&mut self.sacked);
        ranges.insert(start, end, |from, to| self.sack_fresh(from, to, delivered));
        self.sacked = ranges;
    }

    fn sack_fresh(&mut self, from: u64, to: u64, delivered: &mut Delivered) {
        let Some(mut index) = self.index_of(from) else { return };
        while let Some(slot) = self.slots.get(index).copied() {
            if slot.start >= to {
                break;
            }
            // Only whole segments count; a part of one says nothing about the rest.
            if slot.start >= from && slot.end() <= to && !slot.is(SACKED) {
                self.settle(&slot, self.popped + index as u64, delivered);
                if let Some(slot) = self.slots.get_mut(index) {
                    slot.state |= SACKED;
                }
            }
            index += 1;
        }
    }

    /// Declares a segment lost if `threshold` separate SACKed ranges, or more SACKed bytes than
    /// `threshold − 1` full segments, lie above it (RFC 6675 §4, IsLost). Returns how many segments
    /// are newly lost.
    pub(crate) fn judge(&mut self, threshold: u32) -> u32 {
        if self.sacked.is_empty() {
            return 0;
        }
        let enough = u64::from(threshold.saturating_sub(1)) * u64::from(self.mss);
        let (mut bytes, mut runs, mut frontier) = (0, 0, None);
        for (start, end) in self.sacked.iter().rev() {
            bytes += end - start;
            runs += 1;
            if bytes > enough || runs >= threshold {
                frontier = Some(start);
                break;
            }
        }
        frontier.map_or(0, |frontier| self.declare_below(frontier))
    }

    /// Declares lost all segments below `frontier` that are not SACKed and have not been judged
    /// yet. Returns how many are newly lost.
    pub(crate) fn declare_below(&mut self, frontier: u64) -> u32 {
        if frontier <= self.judged {
            return 0;
        }
        let mut newly = 0;
        let mut index = self.index_of(self.judged).unwrap_or(0);
        while let Some(slot) = self.slots.get(index).copied() {
            if slot.start >= frontier {
                break;
            }
            newly += u32::from(self.declare(index));
            index += 1;
        }
        self.judged = frontier;
        newly
    }

    /// Declares the first outstanding segment lost. Returns true if it is newly lost.
    pub(crate) fn declare_first(&mut self) -> bool {
        let waits = self.slots.front().is_some_and(|slot| !slot.is(SACKED));
        waits && self.declare(0)
    }

    /// A notice says that the segment at `offset` was lost by corruption. A retransmission of it
    /// that is in flight counts as lost too. Returns true if the segment will be retransmitted.
    pub(crate) fn notice(&mut self, offset: u64) -> bool {
        let Some(index) = self.index_of(offset) else { return false };
        self.forget_copy(index);
        let declared = self.declare(index);
        if let Some(slot) = self.slots.get_mut(index) {
            slot.state |= NOTICED;
        }
        declared || self.slots.get(index).is_some_and(Slot::waits_for_resending)
    }

    /// Whether the first outstanding segment's loss is explained by a notice.
    pub(crate) fn first_was_noticed(&self) -> bool {
        self.slots.front().is_some_and(|slot| slot.is(NOTICED))
    }

    fn declare(&mut self, index: usize) -> bool {
        let Some(slot) = self.slots.get_mut(index) else { return false };
        if slot.is(SACKED) || slot.is(LOST) {
            return false;
        }
        let before = slot.in_pipe();
        slot.state |= LOST;
        self.pipe -= before - slot.in_pipe();
        let start = slot.start;
        // A retransmission may be in flight already; then none waits.
        if slot.waits_for_resending() {
            self.waiting += 1;
            self.cursor = self.cursor.min(start);
            self.note(start, Fate::Lost);
        }
        true
    }

    /// The retransmission in flight is lost: the segment waits to be sent again.
    pub(crate) fn forget_copy(&mut self, index: usize) {
        if let Some(slot) = self.slots.get_mut(index)
            && slot.is(RESENT)
            && !slot.is(SACKED)
        {
            let before = slot.in_pipe();
            slot.state = (slot.state & !RESENT) | LOST;
            self.pipe -= before - slot.in_pipe();
            self.waiting += 1;
            let start = slot.start;
            self.cursor = self.cursor.min(start);
            self.note(start, Fate::Lost);
        }
    }

    /// A timeout: everything outstanding that is not SACKed is lost, retransmissions included. With
    /// `forget`, the SACKs are discarded too (RFC 2018 §8).
    pub(crate) fn declare_all(&mut self, forget: bool) {
        if forget {
            self.sacked.clear();
        }
        self.pipe = 0;
        self.waiting = 0;
        self.copies.clear();
        for slot in &mut self.slots {
            if forget {
                slot.state &= !SACKED;
            }
            if !slot.is(SACKED) {
                if let Some(fates) = &mut self.fates
                    && !slot.waits_for_resending()
                {
                    fates.push((slot.start, Fate::Lost));
                }
                slot.state = (slot.state & !(RESENT | NOTICED)) | LOST;
                self.waiting += 1;
            }
        }
        self.judged = self.end;
        self.cursor = self.slots.front().map_or(self.end, |slot| slot.start);
    }

    /// Counts segments that were declared lost and not sent again as in flight once more. RACK may declare them lost later.
    pub(crate) fn forgive(&mut self) {
        for slot in self.slots.iter_mut().filter(|slot| slot.waits_for_resending()) {
            slot.state &= !LOST;
            self.pipe += slot.in_pipe();
        }
        self.waiting = 0;
        self.timed_until = self.slots.front().map_or(self.end, |slot| slot.start);
    }

    /// The first segment that waits for its retransmission, by its index.
    pub(crate) fn next_waiting(&mut self) -> Option<usize> {
        if self.waiting == 0 {
            return None;
        }
        let mut index = self.index_of(self.cursor).unwrap_or(0);
        while let Some(slot) = self.slots.get(index) {
            if slot.waits_for_resending() {
                self.cursor = slot.start;
                return Some(index);
            }
            index += 1;
        }
        None
    }

    /// The first segment, at `from` or above, that is not SACKed and lies below one that is.
    pub(crate) fn next_hole(&self, from: u64) -> Option<usize> {
        let highest = self.highest_sacked()?;
        let from = from.max(self.slots.front()?.start);
        let hole = self.sacked.containing(from).map_or(from, |range| range.1);
        if hole < highest { self.index_of(hole) } else { None }
    }

    /// Declares lost every transmission, first or repeated, that left before `newest` (send time,
    /// then end offset) and more than `age` ago (RFC 8985 §6.2, step 5). Returns how many these
    /// are, and the time until the next one will count as lost, if any.
    pub(crate) fn declare_sent_before(
        &mut self,
        newest: (Time, u64),
        age: Duration,
        now: Time,
    ) -> (u32, Option<Duration>) {
        let (mut newly, mut wait): (u32, Option<Duration>) = (0, None);
        let expired = |sent: Time| now.since(sent) > age;
        let left = |sent: Time| age.saturating_sub(now.since(sent)) + Duration::from_nanos(1);
        // First transmissions left in the order of offsets: go on where the last walk stopped.
        let mut index = self.index_of(self.timed_until).unwrap_or(0);
        while let Some(slot) = self.slots.get(index).copied() {
            if !slot.ever_resent() && !slot.is(SACKED) && !slot.is(LOST) {
                if (slot.sent, slot.end()) >= newest {
                    break;
                }
                if !expired(slot.sent) {
                    wait = Some(left(slot.sent));
                    break;
                }
                newly += u32::from(self.declare(index));
            } else if slot.start >= newest.1 && slot.sent > newest.0 {
                break;
            }
            index += 1;
            self.timed_until = slot.end();
        }
        // Retransmissions left in the order of this queue.
        while let Some(&(sent, start)) = self.copies.front() {
            let found = self.index_of(start);
            let slot = found.and_then(|index| self.slots.get(index));
            let live = slot.is_some_and(|s| s.sent == sent && s.is(RESENT) && !s.is(SACKED));
            if live {
                if slot.is_some_and(|slot| (sent, slot.end()) >= newest) {
                    break;
                }
                if !expired(sent) {
                    wait = Some(wait.map_or(left(sent), |wait| wait.min(left(sent))));
                    break;
                }
                if let Some(index) = found {
                    self.forget_copy(index);
                    newly += 1;
                }
            }
            self.copies.pop_front();
        }
        (newly, wait)
    }

    /// Keeps the order of retransmissions from now on, for losses found by time.
    pub(crate) fn track_copies(&mut self) {
        self.tracks_copies = true;
    }

    /// Keeps the fate of every segment from now on, for [`Scoreboard::swap_fates`].
    pub(crate) fn track_fates(&mut self) {
        self.fates = Some(Vec::new());
    }

    /// Exchanges the fates since the last call, oldest first, for an empty list.
    pub(crate) fn swap_fates(&mut self, taken: &mut Vec<(u64, Fate)>) {
        if let Some(fates) = &mut self.fates {
            core::mem::swap(fates, taken);
        }
    }

    fn note(&mut self, start: u64, fate: Fate) {
        if let Some(fates) = &mut self.fates {
            fates.push((start, fate));
        }
    }

    /// The slot at `index`.
    pub(crate) fn slot(&self, index: usize) -> Option<&Slot> {
        self.slots.get(index)
    }

    /// Absolute index of the slot at `index`.
    pub(crate) fn absolute(&self, index: usize) -> u64 {
        self.popped + index as u64
    }

    /// Absolute index of the first slot.
    pub(crate) fn first_absolute(&self) -> u64 {
        self.popped
    }

    /// The segment at `index` was sent again.
    pub(crate) fn resent(&mut self, index: usize, now: Time) {
        if let Some(slot) = self.slots.get_mut(index) {
            let before = slot.in_pipe();
            self.waiting -= u64::from(slot.waits_for_resending());
            slot.state |= RESENT | EVER_RESENT;
            slot.sent = now;
            self.pipe += slot.in_pipe() - before;
            if self.tracks_copies {
                self.copies.push_back((now, slot.start));
            }
        }
    }
}

#[cfg(test)]
mod tests;
