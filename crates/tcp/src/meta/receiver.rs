//! The receiver, which puts one stream together from the segments of several subflows.

use anabranch_policy::view::MAX_PATHS;
use anabranch_types::Time;

use super::MetaConfig;
use super::autotune::ReceiveTuner;
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
    /// Bytes that arrived more than once.
    pub duplicate_bytes: u64,
    /// Segments refused because the shared buffer was full.
    pub refused: u64,
    /// Largest number of bytes that waited for earlier ones.
    pub peak_waiting: u64,
}

/// The receiving half of a data stream over subflows. Use it like a [`Receiver`].
#[derive(Clone, Debug)]
pub struct MetaReceiver {
    config: MetaConfig,
    subflows: Vec<Receiver>,
    next: u64,
    read: u64,
    waiting: Ranges,
    /// Data sequence number at which the data ends, once it is known.
    end: Option<u64>,
    /// Right end of the shared window as last announced.
    announced: u64,
    /// Tunes the size of the buffer; `None` if it does not grow with the transfer.
    tuner: Option<ReceiveTuner>,
    /// Latest time seen.
    now: Time,
    /// Subflows whose SYN came without the option, by bit: their streams are the data, as in plain TCP.
    plain: u16,
    /// Subflows that had the option and have lost it, by bit: their data cannot be placed and is
    /// answered with a reset.
    broken: u16,
    /// Subflows on which a segment has arrived, by bit.
    heard: u16,
    /// How many subflows the sender asks for in its last SYN.
    wanted: u8,
    statistics: MetaReceiverStatistics,
}

impl MetaReceiver {
    /// A stream over `subflows` subflows.
    pub fn new(config: &MetaConfig, subflows: usize) -> Self {
        let subflow = config.unbounded_subflow();
        let mss = u64::from(subflow.mss);
        let tune = |initial| ReceiveTuner::new(initial, config.receive_buffer, mss);
        MetaReceiver {
            subflows: (0..subflows).map(|_| Receiver::new(&subflow)).collect(),
            next: 0,
            read: 0,
            waiting: Ranges::new(),
            end: None,
            announced: config.initial_receive_buffer(),
            tuner: config.autotune.map(tune),
            now: Time::ZERO,
            plain: 0,
            broken: 0,
            heard: 0,
            wanted: 0,
            statistics: MetaReceiverStatistics::default(),
            config: config.clone(),
        }
    }

    /// Takes in a segment that arrived on `subflow`; `marked` if its packet carried Congestion
    /// Experienced. A segment for which the shared buffer has no room is refused as a whole. A
    /// subflow that joins late is added with its first segment, up to [`MAX_PATHS`] subflows in
    /// all.
    pub fn handle_segment(&mut self, now: Time, subflow: usize, segment: &Segment, marked: bool) {
        self.now = now;
        while self.subflows.len() <= subflow && subflow < MAX_PATHS {
            self.subflows.push(Receiver::new(self.config.unbounded_subflow()));
        }
        let own = super::chunks::bit(subflow as u8);
        self.heard |= own;
        if segment.flags.has(Flags::SYN) {
            self.note_option(subflow, segment.flags.has(Flags::MULTIPATH));
            self.wanted = segment.subflows;
        }
        if self.misses_mapping(subflow, segment) {
            // If nothing has arrived before, this is plain TCP, and the subflow's stream is the data.
            let alone = self.heard == own && self.statistics.segments == 0;
            let to = if alone { &mut self.plain } else { &mut self.broken };
            *to |= own;
        }
        if self.broken & own != 0 {
            if let Some(receiver) = self.subflows.get_mut(subflow) {
                receiver.request_ack();
            }
            return;
        }
        let right = self.right();
        let data = self.data_of(subflow, segment);
        if segment.flags.has(Flags::DATA_FIN) {
            self.note_end(data, u64::from(segment.len));
        }
        let Some(receiver) = self.subflows.get_mut(subflow) else { return };
        if let Some(data) = data
            && segment.len > 0
        {
            if let Some(tuner) = &mut self.tuner {
                tuner.on_segment(now, subflow, segment);
            }
            let end = data.saturating_add(u64::from(segment.len));
            if end > right {
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

    /// A segment signals that the data ends after its payload. The first such segment counts,
    /// unless data beyond that end has arrived already.
    fn note_end(&mut self, data: Option<u64>, len: u64) {
        let end = data.map(|data| data.saturating_add(len));
        let arrived = self.waiting.last().map_or(self.next, |(_, end)| end);
        if self.end.is_none() {
            self.end = end.filter(|end| *end >= arrived);
        }
    }

    /// Whether all data and the signal of its end have arrived. On a plain connection the FIN is
    /// the signal.
    pub fn is_finished(&self) -> bool {
        let plain = (0_usize..)
            .zip(&self.subflows)
            .any(|(index, own)| self.is_plain(index) && own.is_finished());
        plain || self.end.is_some_and(|end| self.next >= end)
    }

    /// Right end of the shared window.
    fn right(&self) -> u64 {
        self.read.saturating_add(self.buffer())
    }

    /// Present size of the shared buffer, bytes.
    pub fn buffer(&self) -> u64 {
        match &self.tuner {
            Some(tuner) => tuner.buffer,
            None => {
                let heard = self.heard.count_ones() as usize;
                self.config.shared_buffer(self.config.receive_buffer, heard)
            }
        }
    }

    fn take(&mut self, data: u64, end: u64) {
        self.statistics.segments += 1;
        let (mut fresh, from) = (0, data.max(self.next));
        self.waiting.insert(from, end, |start, end| fresh += end - start);
        self.statistics.duplicate_bytes += end - data - fresh;
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
            self.tune();
        }
    }

    /// Does everything that is due at `now`. It may be called when nothing is due.
    pub fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        for receiver in &mut self.subflows {
            receiver.handle_timeout(now);
        }
    }

    /// The next time at which [`handle_timeout`](Self::handle_timeout) has something to do.
    pub fn next_timeout(&self) -> Option<Time> {
        self.subflows.iter().filter_map(Receiver::next_timeout).min()
    }

    /// The next acknowledgement to send now, and the subflow on which it leaves.
    pub fn poll_transmit(&mut self, now: Time) -> Option<(usize, Segment)> {
        for (index, receiver) in self.subflows.iter_mut().enumerate() {
            if let Some(segment) = receiver.poll_transmit(now) {
                return Some((index, self.answer(index, segment)));
            }
        }
        None
    }

    /// Adds the data acknowledgement, the window and options to a subflow's acknowledgement.
    fn answer(&mut self, index: usize, segment: Segment) -> Segment {
        let right = self.right();
        self.announced = right;
        let window = right.saturating_sub(self.next);
        if self.broken & super::chunks::bit(index as u8) != 0 {
            return Segment { window, flags: segment.flags.with(Flags::RESET), ..segment };
        }
        if self.is_plain(index) {
            return Segment { window, ..segment };
        }
        let mut flags = segment.flags.with(Flags::MAPPED);
        let mut subflows = 0;
        if flags.has(Flags::SYN) {
            flags = flags.with(Flags::MULTIPATH);
            subflows = self.config.most_subflows.unwrap_or(self.wanted);
            if self.config.most_subflows.is_some() {
                flags = flags.with(Flags::LIMITED);
            }
        }
        // The end of the data takes one number (RFC 8684 §3.3.3).
        let data = self.next + u64::from(self.end == Some(self.next));
        Segment { flags, window, data, subflows, ..segment }
    }

    /// A SYN has come on a subflow, with the option or without it (RFC 8684 §3.7). A sender gives
    /// up a joining subflow whose SYN is answered without the option, so only the first subflow can
    /// carry data as plain TCP.
    fn note_option(&mut self, subflow: usize, present: bool) {
        let own = super::chunks::bit(subflow as u8);
        self.plain = if present { self.plain & !own } else { self.plain | own };
        self.broken &= !own;
    }

    /// Whether new data has come without a mapping on a subflow that had the option, because a
    /// middlebox on its path now removes options. Late segments of an earlier subflow are not new
    /// data.
    fn misses_mapping(&self, subflow: usize, segment: &Segment) -> bool {
        let known = self.subflows.get(subflow).map_or(0, Receiver::delivered);
        let has_option =
            segment.flags.has(Flags::MULTIPATH) || self.data_of(subflow, segment).is_some();
        segment.len > 0 && segment.end() > known && !has_option
    }

    /// The data sequence number of a segment's first byte, if it carries any of the data.
    pub fn data_of(&self, subflow: usize, segment: &Segment) -> Option<u64> {
        segment.data_sequence().or(self.is_plain(subflow).then_some(segment.seq))
    }

    fn is_plain(&self, subflow: usize) -> bool {
        self.plain & super::chunks::bit(subflow as u8) != 0
    }

    /// Lets the buffer grow after the application has read.
    fn tune(&mut self) {
        if let Some(tuner) = &mut self.tuner {
            let above_gap = self.waiting.last().map_or(0, |(_, end)| end - self.next);
            tuner.on_read(self.now, self.read, above_gap);
        }
    }

    /// Bytes in order and not read yet.
    pub fn readable(&self) -> u64 {
        self.next - self.read
    }

    /// The application takes up to `bytes`; returns how many it got. When the room has grown by two
    /// segments or half the buffer, every subflow sends a window update.
    pub fn read(&mut self, bytes: u64) -> u64 {
        let taken = bytes.min(self.readable());
        self.read += taken;
        self.tune();
        let right = self.right();
        let two = 2 * u64::from(self.config.subflow.mss);
        let step = two.min(self.buffer() / 2).max(1);
        if taken > 0 && right.saturating_sub(self.announced) >= step {
            self.subflows.iter_mut().for_each(Receiver::request_ack);
        }
        taken
    }

    /// Bytes that have arrived in order.
    pub fn delivered(&self) -> u64 {
        self.next
    }

    /// Bytes that wait for earlier ones.
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
