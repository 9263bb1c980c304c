//! The receiver of a connection.

use anabranch_types::Time;
use std::sync::Arc;

use crate::config::{Config, WindowUpdates};
use crate::ranges::Ranges;
use crate::segment::{Flags, MAX_SACK_BLOCKS, Segment, Timestamps};

/// Counters of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverStatistics {
    /// Segments with payload or FIN taken in.
    pub segments: u64,
    /// Of those, segments that brought nothing new.
    pub duplicates: u64,
    /// Payload bytes of the duplicates.
    pub duplicate_bytes: u64,
    /// Arrivals beyond the next expected offset, duplicates excluded.
    pub out_of_order: u64,
    /// Largest number of bytes that waited for earlier ones.
    pub peak_waiting: u64,
    /// Segments that arrived with a Congestion Experienced mark.
    pub marked: u64,
    /// Segments refused because the buffer was full.
    pub refused: u64,
    /// Acknowledgements sent.
    pub acks: u64,
}

/// The receiving half of a connection: it takes in segments and yields acknowledgements, and
/// in-order bytes can be read from it.
///
/// After each `handle_*` or `read`, call [`poll_transmit`](Self::poll_transmit) until it yields
/// nothing, so that each arrival out of order gets an acknowledgement of its own.
#[derive(Clone, Debug)]
pub struct Receiver {
    config: Arc<Config>,
    opened: bool,
    /// First offset that has not arrived, and how far the application has read.
    next: u64,
    read: u64,
    fin_at: Option<u64>,
    waiting: Ranges,
    /// Offsets inside the ranges that changed last, newest first.
    recent: [u64; MAX_SACK_BLOCKS],
    recent_count: usize,
    /// Number of in-order segments not acknowledged yet, and when they must be acknowledged.
    unacknowledged: u32,
    ack_at: Option<Time>,
    ack_due: bool,
    syn_ack_due: bool,
    /// The range that arrived again, to be reported.
    duplicate: Option<(u64, u64)>,
    echo_mark: bool,
    /// Timestamp to echo (RFC 7323 §4.3, TS.Recent) and the last acknowledgement sent.
    recent_timestamp: Time,
    last_ack: u64,
    /// Right end of the window as last announced.
    announced: u64,
    statistics: ReceiverStatistics,
}

impl Receiver {
    /// The receiving half of a connection as `config` describes it.
    pub fn new(config: impl Into<Arc<Config>>) -> Self {
        let config = config.into();
        Receiver {
            opened: !config.handshake,
            next: 0,
            read: 0,
            fin_at: None,
            waiting: Ranges::new(),
            recent: [0; MAX_SACK_BLOCKS],
            recent_count: 0,
            unacknowledged: 0,
            ack_at: None,
            ack_due: false,
            syn_ack_due: false,
            duplicate: None,
            echo_mark: false,
            recent_timestamp: Time::MAX,
            last_ack: 0,
            announced: config.receive_buffer,
            statistics: ReceiverStatistics::default(),
            config,
        }
    }

    /// Takes in a segment; `marked` if its packet carried Congestion Experienced.
    pub fn handle_segment(&mut self, now: Time, segment: &Segment, marked: bool) {
        if !segment.carries_data() {
            return;
        }
        if let Some(timestamps) = segment.timestamps
            && segment.seq <= self.last_ack
            && (self.recent_timestamp == Time::MAX || timestamps.value >= self.recent_timestamp)
        {
            self.recent_timestamp = timestamps.value;
        }
        if segment.flags.has(Flags::SYN) {
            self.open(segment);
            return;
        }
        if !self.opened {
            return;
        }
        if segment.flags.has(Flags::CWR) {
            self.echo_mark = false;
        }
        if marked {
            self.statistics.marked += 1;
            self.echo_mark = self.config.ecn;
        }
        if segment.flags.has(Flags::PROBE) && segment.len == 0 {
            self.ack_due = true;
            return;
        }
        self.statistics.segments += 1;
        self.take(now, segment);
    }

    /// Handles a SYN. A SYN beyond everything received opens a new connection in the place of the
    /// old one. Late segments of the old connection lie below the new stream and are ignored.
    fn open(&mut self, syn: &Segment) {
        let end = self.waiting.last().map_or(self.next, |last| last.1);
        if !self.opened || end < syn.seq {
            self.waiting.clear();
            (self.next, self.read, self.last_ack) = (syn.seq, syn.seq, syn.seq);
            (self.recent_count, self.unacknowledged) = (0, 0);
            (self.fin_at, self.ack_at, self.echo_mark) = (None, None, false);
            self.recent_timestamp = syn.timestamps.map_or(Time::MAX, |stamps| stamps.value);
        }
        self.opened = true;
        self.syn_ack_due = true;
    }

    fn take(&mut self, now: Time, segment: &Segment) {
        let end = segment.end();
        if segment.flags.has(Flags::FIN) {
            self.fin_at = Some(end - 1);
        }
        let room = self.read.saturating_add(self.config.receive_buffer);
        let in_order = segment.seq <= self.next && end > self.next;
        let fresh = in_order || (segment.seq > self.next && !self.has(segment.seq, end));
        if !fresh {
            self.statistics.duplicates += 1;
            self.statistics.duplicate_bytes += u64::from(segment.len);
            self.duplicate = self.config.undo.then_some((segment.seq, end));
            self.ack_due = true;
            return;
        }
        if segment.seq.saturating_add(u64::from(segment.len)) > room {
            self.statistics.refused += 1;
            self.ack_due = true;
            return;
        }
        if !in_order {
            self.statistics.out_of_order += 1;
            self.waiting.insert(segment.seq, end, |_, _| {});
            self.statistics.peak_waiting = self.statistics.peak_waiting.max(self.waiting.covered());
            self.note_recent(segment.seq);
            self.ack_due = true;
            return;
        }
        let in_gap = !self.waiting.is_empty();
        self.next = end;
        if let Some((start, end)) = self.waiting.first() {
            if start <= self.next {
                self.next = self.next.max(end);
            }
            self.waiting.remove_below(self.next);
        }
        if self.config.read_at_once {
            self.read = self.stream_end();
        }
        self.schedule_ack(now, in_gap || self.is_finished());
    }

    fn has(&self, start: u64, end: u64) -> bool {
        self.waiting.containing(start).is_some_and(|range| range.1 >= end)
    }

    /// Schedules the acknowledgement of an arrival in order: at once if it fills a gap (RFC 5681
    /// §4.2), else with every n-th segment or after a timeout.
    fn schedule_ack(&mut self, now: Time, at_once: bool) {
        self.unacknowledged += 1;
        if at_once || self.unacknowledged >= self.config.delayed_ack.every {
            self.ack_due = true;
        } else if self.ack_at.is_none() {
            self.ack_at = Some(now + self.config.delayed_ack.timeout);
        }
    }

    fn note_recent(&mut self, offset: u64) {
        let range = self.waiting.containing(offset);
        let mut kept = [offset; MAX_SACK_BLOCKS];
        let mut count = 1;
        for old in self.recent.iter().take(self.recent_count) {
            let same = range.is_some_and(|(start, end)| (start..end).contains(old));
            if !same && count < MAX_SACK_BLOCKS {
                if let Some(slot) = kept.get_mut(count) {
                    *slot = *old;
                }
                count += 1;
            }
        }
        self.recent = kept;
        self.recent_count = count;
    }

    /// Does everything that is due at `now`. It may be called when nothing is due.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.ack_at.is_some_and(|at| at <= now) {
            self.ack_at = None;
            self.ack_due = true;
        }
    }

    /// The next time at which [`handle_timeout`](Self::handle_timeout) has something to do.
    pub fn next_timeout(&self) -> Option<Time> {
        self.ack_at
    }

    /// The next acknowledgement to send now, if any.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        let mut flags = Flags::ACK;
        if core::mem::take(&mut self.syn_ack_due) {
            flags = flags.with(Flags::SYN);
        } else if !core::mem::take(&mut self.ack_due) {
            return None;
        }
        self.unacknowledged = 0;
        self.ack_at = None;
        if self.echo_mark {
            flags = flags.with(Flags::ECE);
        }
        let mut segment = Segment { flags, ack: self.next, ..Segment::EMPTY };
        segment.window = self.window();
        if self.config.timestamps {
            segment.timestamps = Some(Timestamps { value: now, echo: self.recent_timestamp });
        }
        if self.config.recovery.uses_sack() {
            if let Some((start, end)) = self.duplicate.take() {
                segment.sack.push_duplicate(self.next, start, end);
            }
            self.report_ranges(&mut segment);
        }
        self.last_ack = self.next;
        self.announced = self.next.saturating_add(segment.window);
        self.statistics.acks += 1;
        Some(segment)
    }

    /// Adds the ranges that changed last, newest first (RFC 2018 §4), as many as fit after a
    /// reported duplicate.
    fn report_ranges(&mut self, segment: &mut Segment) {
        if self.waiting.is_empty() {
            self.recent_count = 0;
            return;
        }
        let most = if self.config.timestamps { MAX_SACK_BLOCKS - 1 } else { MAX_SACK_BLOCKS };
        let most = most - segment.sack.len();
        for offset in self.recent.iter().take(self.recent_count.min(most)) {
            if let Some((start, end)) = self.waiting.containing(*offset) {
                segment.sack.push(self.next, start, end);
            }
        }
    }

    /// Bytes that the receiver still has room for, from the next expected offset on.
    pub fn window(&self) -> u64 {
        self.read.saturating_add(self.config.receive_buffer).saturating_sub(self.next)
    }

    fn stream_end(&self) -> u64 {
        self.fin_at.map_or(self.next, |fin| self.next.min(fin))
    }

    /// Bytes in order and not read yet.
    pub fn readable(&self) -> u64 {
        self.stream_end().saturating_sub(self.read)
    }

    /// The application takes up to `bytes`; returns how many it got. A window update is sent when the room
    /// has grown by two segments or half the buffer (RFC 9293 §3.8.6.2.2), or as
    /// [`WindowUpdates`] says.
    pub fn read(&mut self, bytes: u64) -> u64 {
        let taken = bytes.min(self.readable());
        self.read += taken;
        let right = self.read.saturating_add(self.config.receive_buffer);
        let step = (2 * u64::from(self.config.mss)).min(self.config.receive_buffer / 2).max(1);
        let told = match self.config.window_updates {
            WindowUpdates::Each => true,
            WindowUpdates::Opening => self.announced <= self.next,
        };
        if taken > 0 && told && right.saturating_sub(self.announced) >= step {
            self.ack_due = self.opened;
        }
        taken
    }

    /// Requests an acknowledgement beyond those that arrivals make due, such as when a window has opened.
    pub fn request_ack(&mut self) {
        self.ack_due |= self.opened;
    }

    /// Stream bytes that have arrived in order.
    pub fn delivered(&self) -> u64 {
        self.stream_end()
    }

    /// Bytes that wait for earlier ones.
    pub fn waiting(&self) -> u64 {
        self.waiting.covered()
    }

    /// Whether the stream's end and everything before it have arrived.
    pub fn is_finished(&self) -> bool {
        self.fin_at.is_some_and(|fin| self.next > fin)
    }

    /// Counters since the start.
    pub fn statistics(&self) -> &ReceiverStatistics {
        &self.statistics
    }
}

#[cfg(test)]
mod tests;
