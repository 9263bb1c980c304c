//! The receiving half: segments of several subflows in, one stream out.

use anabranch_policy::view::MAX_PATHS;
use anabranch_types::Time;

use super::MetaConfig;
use crate::ranges::Ranges;
use crate::receiver::Receiver;
use crate::segment::{Flags, Segment};

/// Counters of a meta receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetaReceiverStatistics {
    /// Segments with data taken in.
    pub segments: u64,
    /// Arrivals beyond the next expected data sequence number, duplicates excluded.
    pub out_of_order: u64,
    /// Segments that brought no new data.
    pub duplicates: u64,
    /// Segments refused because the shared buffer was full.
    pub refused: u64,
    /// Most bytes that waited for an earlier one.
    pub peak_waiting: u64,
}

/// The receiving half of a data stream over subflows. Used as a [`Receiver`].
#[derive(Clone, Debug)]
pub struct MetaReceiver {
    config: MetaConfig,
    subflows: Vec<Receiver>,
    next: u64,
    read: u64,
    waiting: Ranges,
    /// Right end of the shared window as last announced.
    announced: u64,
    statistics: MetaReceiverStatistics,
}

impl MetaReceiver {
    /// A stream over so many subflows.
    pub fn new(config: &MetaConfig, subflows: usize) -> Self {
        let subflow = config.unbounded_subflow();
        MetaReceiver {
            subflows: (0..subflows).map(|_| Receiver::new(&subflow)).collect(),
            next: 0,
            read: 0,
            waiting: Ranges::new(),
            announced: config.receive_buffer,
            statistics: MetaReceiverStatistics::default(),
            config: config.clone(),
        }
    }

    /// Takes in a segment that arrived on `subflow`; `marked` if its packet carried Congestion
    /// Experienced. What the shared buffer has no room for is refused as a whole. A subflow that joins
    /// late is taken in with its first segment, up to [`MAX_PATHS`] of them.
    pub fn handle_segment(&mut self, now: Time, subflow: usize, segment: &Segment, marked: bool) {
        while self.subflows.len() <= subflow && subflow < MAX_PATHS {
            self.subflows.push(Receiver::new(self.config.unbounded_subflow()));
        }
        let Some(receiver) = self.subflows.get_mut(subflow) else { return };
        if let Some(data) = segment.data_sequence()
            && segment.len > 0
        {
            let end = data.saturating_add(u64::from(segment.len));
            if end > self.read.saturating_add(self.config.receive_buffer) {
                self.statistics.refused += 1;
                receiver.request_ack();
                return;
            }
            receiver.handle_segment(now, segment, marked);
            self.take(data, end);
        } else {
            receiver.handle_segment(now, segment, marked);
        }
    }

    fn take(&mut self, data: u64, end: u64) {
        self.statistics.segments += 1;
        let (mut fresh, from) = (0, data.max(self.next));
        self.waiting.insert(from, end, |start, end| fresh += end - start);
        if fresh == 0 {
            self.statistics.duplicates += 1;
            return;
        }
        if data > self.next {
            self.statistics.out_of_order += 1;
        } else if let Some((start, end)) = self.waiting.first()
            && start <= self.next
        {
            self.next = end;
            self.waiting.remove_below(end);
        }
        let waiting = self.waiting.covered();
        self.statistics.peak_waiting = self.statistics.peak_waiting.max(waiting);
        if self.config.read_at_once {
            self.read = self.next;
        }
    }

    /// Does what is due at `now`; harmless if nothing is.
    pub fn handle_timeout(&mut self, now: Time) {
        for receiver in &mut self.subflows {
            receiver.handle_timeout(now);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do.
    pub fn next_timeout(&self) -> Option<Time> {
        self.subflows.iter().filter_map(Receiver::next_timeout).min()
    }

    /// The next acknowledgement to send now, and the subflow on which it leaves.
    pub fn poll_transmit(&mut self, now: Time) -> Option<(usize, Segment)> {
        for (index, receiver) in self.subflows.iter_mut().enumerate() {
            if let Some(segment) = receiver.poll_transmit(now) {
                let right = self.read.saturating_add(self.config.receive_buffer);
                self.announced = right;
                let flags = segment.flags.with(Flags::MAPPED);
                let window = right.saturating_sub(self.next);
                return Some((index, Segment { flags, window, data: self.next, ..segment }));
            }
        }
        None
    }

    /// Bytes in order and not read yet.
    pub fn readable(&self) -> u64 {
        self.next - self.read
    }

    /// The application takes up to `bytes`; returns how many it got. Every subflow tells the sender when
    /// the room has grown by two segments or half the buffer.
    pub fn read(&mut self, bytes: u64) -> u64 {
        let taken = bytes.min(self.readable());
        self.read += taken;
        let right = self.read.saturating_add(self.config.receive_buffer);
        let two = 2 * u64::from(self.config.subflow.mss);
        let step = two.min(self.config.receive_buffer / 2).max(1);
        if taken > 0 && right.saturating_sub(self.announced) >= step {
            self.subflows.iter_mut().for_each(Receiver::request_ack);
        }
        taken
    }

    /// Bytes that have arrived in order.
    pub fn delivered(&self) -> u64 {
        self.next
    }

    /// Bytes that wait for an earlier one.
    pub fn waiting(&self) -> u64 {
        self.waiting.covered()
    }

    /// The receiver of one subflow.
    pub fn subflow(&self, index: usize) -> Option<&Receiver> {
        self.subflows.get(index)
    }

    /// Counters since the start.
    pub fn statistics(&self) -> &MetaReceiverStatistics {
        &self.statistics
    }
}
