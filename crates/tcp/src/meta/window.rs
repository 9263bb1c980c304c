//! The shared window: how much data may be cut into chunks, and what happens when the window is
//! shut.

use anabranch_policy::view::{Blocked, FreshView, SymbolId, TrafficClass};
use anabranch_types::Time;

use super::sender::MetaSender;
use super::subflow::Subflow;
use crate::segment::Segment;
use crate::sender::Sender;

/// The receiver's window, shared among the subflows, and the sender's buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shared {
    /// First data sequence number not acknowledged, first not cut, first not written.
    pub(super) una: u64,
    pub(super) next: u64,
    pub(super) written: u64,
    /// End of the receiver's window.
    pub(super) limit: u64,
    /// Whether nothing more will be written.
    pub(super) finished: bool,
    /// Whether the receiver has acknowledged the end of the data.
    pub(super) ended: bool,
    /// Whether the last write was more than the buffer took.
    pub(super) blocked: bool,
    mss: u64,
    pub(super) send_buffer: u64,
    receive_buffer: u64,
}

impl Shared {
    pub(super) fn new(mss: u64, send_buffer: u64, receive_buffer: u64) -> Self {
        let (una, next, written) = (0, 0, 0);
        let limit = receive_buffer;
        let (finished, ended, blocked) = (false, false, false);
        Shared {
            una,
            next,
            written,
            limit,
            finished,
            ended,
            blocked,
            mss,
            send_buffer,
            receive_buffer,
        }
    }

    /// Free room in the send buffer, bytes.
    pub(super) fn room(&self) -> u64 {
        self.send_buffer.saturating_sub(self.written - self.una)
    }

    /// Whether the send buffer is full and the application may have more.
    fn is_full(&self) -> bool {
        !self.finished && self.room() == 0
    }

    /// Whether only the send buffer holds the sender up: no chunk can be cut, and the application
    /// waits for room, because the free room is less than half of the outstanding data (Linux,
    /// `sk_stream_min_wspace`).
    pub(super) fn is_held_up(&self) -> bool {
        let held = self.blocked && !self.finished && 2 * self.room() < self.written - self.una;
        held && self.symbols() == 0 && !self.is_shut()
    }

    fn waiting(&self) -> u64 {
        self.written.saturating_sub(self.next)
    }

    fn usable(&self) -> u64 {
        self.limit.saturating_sub(self.next)
    }

    /// Bytes that may be cut: those written, as far as the window admits them.
    pub(super) fn cuttable(&self) -> u64 {
        self.waiting().min(self.usable())
    }

    /// Length of the next chunk, 0 if none may be cut now: a full segment, or less where silly
    /// window avoidance permits it (RFC 1122 §4.2.3.4).
    pub(super) fn next_len(&self) -> u64 {
        let len = self.cuttable().min(self.mss);
        if len == self.mss || self.may_be_short(len, self.next > self.una) { len } else { 0 }
    }

    /// Whether a chunk of `len` bytes, less than a segment, may be cut. If the window limits its
    /// length, the chunk must be at least half the receive buffer and nothing may be outstanding.
    /// If the data limits its length, the chunk may be cut, except while data is outstanding and
    /// the send buffer is full: the application will then fill the chunk.
    fn may_be_short(&self, len: u64, outstanding: bool) -> bool {
        if self.waiting() > self.usable() {
            !outstanding && len > 0 && len >= self.mss.min(self.receive_buffer / 2)
        } else {
            len > 0 && !(outstanding && self.is_full())
        }
    }

    /// Number of chunks that could be cut now.
    pub(super) fn symbols(&self) -> u64 {
        let bytes = self.cuttable();
        let (full, rest) = (bytes / self.mss, bytes % self.mss);
        let outstanding = full > 0 || self.next > self.una;
        full + u64::from(rest > 0 && self.may_be_short(rest, outstanding))
    }

    /// Whether more data waits than the receiver's window admits, and no chunk can be cut.
    pub(super) fn is_shut(&self) -> bool {
        self.waiting() > self.usable() && self.symbols() == 0
    }

    /// View of new data for a scheduler; the next chunk has the ordinal `next`.
    pub(super) fn fresh(&self, next: SymbolId) -> FreshView {
        let symbols = self.symbols();
        let blocked = (symbols == 0)
            .then(|| if self.is_shut() { Blocked::FlowControl } else { Blocked::Application });
        let kept = self.una.saturating_add(self.send_buffer).saturating_sub(self.next);
        let window = self.limit.saturating_sub(self.una).min(self.send_buffer);
        FreshView {
            symbols: u32::try_from(symbols).unwrap_or(u32::MAX),
            beyond: 0,
            next,
            more: self.is_full(),
            class: TrafficClass::Bulk,
            symbol_size: u16::try_from(self.mss).unwrap_or(u16::MAX),
            blocked,
            credit: u32::try_from(self.usable().min(kept) / self.mss).unwrap_or(u32::MAX),
            window: u32::try_from(window / self.mss).unwrap_or(u32::MAX),
        }
    }
}

/// The persist timer of the shared window (RFC 9293 §3.8.6.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Persist {
    pub(super) at: Option<Time>,
    /// Number of times that the timer has fired since the window was shut.
    fired: u32,
    due: bool,
}

impl Persist {
    /// The window has opened: stops the timer.
    pub(super) fn reset(&mut self) {
        *self = Persist::default();
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        if self.at.is_some_and(|at| at <= now) {
            *self = Persist { at: None, fired: self.fired.saturating_add(1), due: true };
        }
    }
}

impl MetaSender {
    /// Takes in a data acknowledgement and the window that begins there. Returns the ordinals of
    /// the chunks released.
    pub(super) fn take_data_ack(
        &mut self,
        acknowledged: u64,
        window: u64,
    ) -> core::ops::Range<u64> {
        let closes = self.closes();
        let shared = &mut self.shared;
        // The end of the data takes one number.
        let end = shared.written.saturating_add(1);
        let ended = closes && shared.next == shared.written && acknowledged == end;
        shared.ended |= ended;
        let acknowledged = acknowledged - u64::from(ended);
        if acknowledged > shared.next {
            return 0..0;
        }
        shared.una = shared.una.max(acknowledged);
        let limit = acknowledged.saturating_add(window);
        if limit > shared.limit {
            shared.limit = limit;
            self.persist.reset();
        }
        if shared.symbols() > 0 {
            self.receiver_limited = false;
        }
        self.chunks.release(shared.una)
    }

    /// Probes the shared window if it is shut and no data is outstanding whose acknowledgement
    /// could open it.
    pub(super) fn watch_window(&mut self, now: Time) -> Option<(usize, Segment)> {
        if !self.shared.is_shut() || self.shared.una < self.shared.next {
            return None;
        }
        if !self.persist.due && self.persist.at.is_some() {
            return None;
        }
        let index = self.probing()?;
        let sender = self.subflows.get_mut(index).map(|subflow| &mut subflow.sender)?;
        if core::mem::take(&mut self.persist.due) {
            self.statistics.window_probes += 1;
            let probe = sender.probe(now);
            return Some((index, self.mark_header(probe)));
        }
        if self.persist.at.is_none() {
            let timers = &self.config.subflow.timers;
            let wait = timers.persist_interval(sender.rto(), 1 << self.persist.fired.min(10));
            self.persist.at = Some(now + wait);
        }
        None
    }

    /// The subflow for the next probe of the shared window. After each unanswered probe the next
    /// one goes to another subflow, since the path of the first may be dead.
    fn probing(&self) -> Option<usize> {
        let mut open: Vec<usize> = (0..self.subflows.len())
            .filter(|index| self.subflows.get(*index).is_some_and(Subflow::is_open))
            .collect();
        open.sort_by_key(|index| self.subflow(*index).and_then(Sender::smoothed_rtt));
        let turn = self.persist.fired.saturating_sub(1) as usize % open.len().max(1);
        open.get(turn).copied()
    }
}
