//! Credit and other control frames of streams, in both directions.

use core::time::Duration;
use std::collections::VecDeque;

use anabranch_types::Time;

use super::error::Violation;
use super::events::EventSet;
use super::streams::{Stream, StreamLimits, Streams};
use crate::wire::codec::MAX_VARINT;
use crate::wire::control::MAX_STREAM_COUNT;
use crate::wire::{ControlFrame, StreamId};

/// Bit set of the kinds of control frame that wait on a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DueSet(u8);

impl DueSet {
    pub(super) const RESET: DueSet = DueSet(1);
    pub(super) const STOP_SENDING: DueSet = DueSet(1 << 1);
    const MAX_STREAM_DATA: DueSet = DueSet(1 << 2);

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Removes and returns the first kind in the order of the constants.
    const fn pop(&mut self) -> DueSet {
        let lowest = DueSet(self.0 & self.0.wrapping_neg());
        self.0 &= !lowest.0;
        lowest
    }
}

/// A limit that this side raises as the application reads data or closes streams.
#[derive(Clone, Copy, Debug)]
struct Credit {
    /// The limit that was announced to the peer.
    announced: u64,
    /// Whether the limit has to be announced (again).
    due: bool,
}

/// Control frames to be sent. The values are filled in when a frame is taken, so that they are up
/// to date.
#[derive(Debug)]
pub(super) struct ControlQueue {
    max_data: Credit,
    max_streams: Credit,
    /// Lost resets of streams that no longer exist. They have to be sent again.
    resets: VecDeque<ControlFrame>,
    /// Streams with waiting frames, each once.
    streams: VecDeque<StreamId>,
}

impl ControlQueue {
    pub(super) const fn new(limits: &StreamLimits) -> Self {
        ControlQueue {
            max_data: Credit { announced: limits.max_data, due: false },
            max_streams: Credit { announced: limits.max_streams, due: false },
            resets: VecDeque::new(),
            streams: VecDeque::new(),
        }
    }

    /// Credit of the peer over all streams.
    pub(super) const fn max_data(&self) -> u64 {
        self.max_data.announced
    }

    /// Total number of streams that the peer may open.
    pub(super) const fn max_streams(&self) -> u64 {
        self.max_streams.announced
    }

    /// Queues a frame of a stream.
    pub(super) fn add(&mut self, id: StreamId, stream: &mut Stream, kind: DueSet) {
        if stream.due.is_empty() {
            self.streams.push_back(id);
        }
        stream.due.0 |= kind.0;
    }
}

/// Whether `limit` exceeds `announced` by at least half of `credit`, which is enough to send a
/// frame.
const fn worth_telling(limit: u64, announced: u64, credit: u64) -> bool {
    let half = if credit < 2 { 1 } else { credit / 2 };
    limit.saturating_sub(announced) >= half
}

const fn raised(base: u64, credit: u64, most: u64) -> u64 {
    let limit = base.saturating_add(credit);
    if limit < most { limit } else { most }
}

impl Streams {
    /// Whether a control frame has to be sent.
    pub fn has_control(&self) -> bool {
        let control = &self.control;
        let credit = control.max_data.due || control.max_streams.due;
        credit || !control.resets.is_empty() || !control.streams.is_empty()
    }

    /// Takes the next control frame to be sent, with its current value.
    pub fn poll_control(&mut self) -> Option<ControlFrame> {
        if core::mem::take(&mut self.control.max_data.due) {
            let limit = self.new_max_data();
            self.control.max_data.announced = limit;
            return Some(ControlFrame::MaxData { limit });
        }
        if core::mem::take(&mut self.control.max_streams.due) {
            let count = self.new_max_streams();
            self.control.max_streams.announced = count;
            return Some(ControlFrame::MaxStreams { count });
        }
        self.control.resets.pop_front().or_else(|| self.poll_stream_control())
    }

    fn poll_stream_control(&mut self) -> Option<ControlFrame> {
        let credit = self.stream_credit();
        while let Some(id) = self.control.streams.front().copied() {
            let Some(stream) = self.streams.get_mut(&id) else {
                self.control.streams.pop_front();
                continue;
            };
            let kind = stream.due.pop();
            let emptied = stream.due.is_empty();
            let frame = stream.control_frame(id, kind, credit);
            if emptied {
                self.control.streams.pop_front();
                if stream.is_over() {
                    self.retire(id);
                }
            }
            if frame.is_some() {
                return frame;
            }
        }
        None
    }

    /// Processes the loss of a packet with `frame`. The frame is queued again unless a newer value
    /// or the end of the stream makes it unnecessary.
    pub fn on_control_lost(&mut self, frame: &ControlFrame) {
        match *frame {
            ControlFrame::MaxData { limit } => {
                self.control.max_data.due |= limit >= self.control.max_data.announced;
            }
            ControlFrame::MaxStreams { count } => {
                self.control.max_streams.due |= count >= self.control.max_streams.announced;
            }
            ControlFrame::MaxStreamData { stream: id, limit } => {
                if let Some(stream) = self.streams.get_mut(&id)
                    && limit >= stream.receive.limit
                {
                    self.control.add(id, stream, DueSet::MAX_STREAM_DATA);
                }
            }
            ControlFrame::StopSending { stream: id, .. } => {
                if let Some(stream) = self.streams.get_mut(&id) {
                    self.control.add(id, stream, DueSet::STOP_SENDING);
                }
            }
            ControlFrame::ResetStream { stream: id, .. } => match self.streams.get_mut(&id) {
                Some(stream) => self.control.add(id, stream, DueSet::RESET),
                None => self.control.resets.push_back(*frame),
            },
            _ => {}
        }
    }

    /// Processes a MAX_DATA frame, which raises the credit over all streams.
    pub fn on_max_data(&mut self, limit: u64) {
        self.sent_limit = self.sent_limit.max(limit);
    }

    /// Processes a MAX_STREAM_DATA frame, which raises the credit of a stream.
    ///
    /// # Errors
    /// Returns an error if the peer may not send such a frame for that stream.
    pub fn on_max_stream_data(&mut self, id: StreamId, limit: u64) -> Result<(), Violation> {
        self.check_receiver(id)?;
        self.admit(id)?;
        self.raise_stream_limit(id, limit);
        Ok(())
    }

    /// Processes a MAX_STREAMS frame, which raises the number of streams that this side may open.
    pub fn on_max_streams(&mut self, count: u64) {
        self.may_open = self.may_open.max(count.min(MAX_STREAM_COUNT));
        if self.may_open() && core::mem::take(&mut self.wants_open) {
            self.notices.openable = true;
        }
    }

    /// Processes a STOP_SENDING frame: the peer's application will not read further. Unless the end
    /// of the stream has been put into a symbol already, the stream is reset with the same code
    /// (RFC 9000 §3.5).
    ///
    /// # Errors
    /// Returns an error if the peer may not send such a frame for that stream.
    pub fn on_stop_sending(&mut self, id: StreamId, code: u64) -> Result<(), Violation> {
        self.check_receiver(id)?;
        self.admit(id)?;
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        let send = &mut stream.send;
        if send.done || send.reset.is_some() || send.stopped.is_some() {
            return Ok(());
        }
        send.stopped = Some(code);
        let fin_sent = send.fin_sent;
        stream.events.remove(EventSet::WRITABLE);
        if !fin_sent {
            self.abort_sending(id, code);
        }
        self.notify(id, EventSet::STOPPED);
        Ok(())
    }

    /// Whether the peer receives on `id`.
    const fn check_receiver(&self, id: StreamId) -> Result<(), Violation> {
        let receives = id.carries_from(self.role);
        if receives { Ok(()) } else { Err(Violation::StreamState(id)) }
    }

    pub(super) fn raise_stream_limit(&mut self, id: StreamId, limit: u64) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.send.raise_limit(limit);
            self.recount(id);
        }
    }

    /// Queues a MAX_DATA frame if enough data was consumed since the last one.
    pub(super) fn refresh_max_data(&mut self) {
        let announced = self.control.max_data.announced;
        if worth_telling(self.new_max_data(), announced, self.connection_credit()) {
            self.control.max_data.due = true;
        }
    }

    /// Queues a MAX_STREAMS frame if enough streams were closed since the last one. Enough is half
    /// of the limit or, if fewer than half are left, a quarter of the streams left. A peer that
    /// keeps many streams open for long thus eventually learns of each closed stream.
    pub(super) fn refresh_max_streams(&mut self) {
        let (limit, announced) = (self.new_max_streams(), self.control.max_streams.announced);
        let left = announced.saturating_sub(self.peer_opened.total());
        let few = left < self.limits.max_streams.div_ceil(2) && limit > announced;
        let soon = few && (limit - announced).saturating_mul(4) >= left;
        if soon || worth_telling(limit, announced, self.limits.max_streams) {
            self.control.max_streams.due = true;
        }
    }

    /// Queues a MAX_STREAM_DATA frame if enough of the stream was read since the last one.
    pub(super) fn refresh_max_stream_data(&mut self, id: StreamId) {
        let credit = self.stream_credit();
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let receive = &stream.receive;
        let limit = raised(receive.read, credit, MAX_VARINT);
        if receive.final_size.is_none() && worth_telling(limit, receive.limit, credit) {
            self.control.add(id, stream, DueSet::MAX_STREAM_DATA);
        }
    }

    /// Credit over all streams, bytes.
    const fn connection_credit(&self) -> u64 {
        self.limits.max_data.saturating_mul(self.growth.factor())
    }

    /// Credit of each stream, bytes.
    const fn stream_credit(&self) -> u64 {
        self.limits.max_stream_data.saturating_mul(self.growth.factor())
    }

    /// Whether [`measure_reading`](Self::measure_reading) has to be called now.
    #[inline]
    pub fn is_measurement_due(&self, now: Time) -> bool {
        self.growth.is_due(now)
    }

    /// Lets the credit grow if the application reads so much per `round_trip` that the credit would
    /// limit the peer. If the credit grows, returns the new total factor of growth.
    pub fn measure_reading(&mut self, now: Time, round_trip: Duration) -> Option<u64> {
        let credit = self.stream_credit();
        let grows = self.growth.measure(now, round_trip, self.consumed, credit);
        grows.then(|| self.growth.factor())
    }

    fn new_max_data(&self) -> u64 {
        raised(self.consumed, self.connection_credit(), MAX_VARINT)
    }

    fn new_max_streams(&self) -> u64 {
        raised(self.peer_closed, self.limits.max_streams, MAX_STREAM_COUNT)
    }
}

impl Stream {
    /// The control frame of `kind` to be sent, if the peer still needs it.
    fn control_frame(&mut self, id: StreamId, kind: DueSet, credit: u64) -> Option<ControlFrame> {
        match kind {
            DueSet::RESET => {
                let code = self.send.reset?;
                // The send side needs nothing else. If this frame is lost, it is queued again.
                self.send.done = true;
                Some(ControlFrame::ResetStream { stream: id, code, final_size: self.send.sent })
            }
            DueSet::STOP_SENDING if self.receive.final_size.is_none() => {
                let code = self.receive.stopped?;
                Some(ControlFrame::StopSending { stream: id, code })
            }
            DueSet::MAX_STREAM_DATA
                if self.receive.final_size.is_none() && !self.receive.discards() =>
            {
                let limit = raised(self.receive.read, credit, MAX_VARINT);
                self.receive.limit = limit;
                Some(ControlFrame::MaxStreamData { stream: id, limit })
            }
            _ => None,
        }
    }
}
