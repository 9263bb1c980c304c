//! TCP's two ends as agents.

mod meta;
mod pause;

use anabranch_policy::{PolicyError, PolicySpec, congestion};
use anabranch_tcp::{Config, Flags, Receiver, Segment, Sender, SenderEvent, WireFormat};
use anabranch_types::Time;
use core::time::Duration;
use std::collections::VecDeque;

pub use meta::{MetaTcpReceiver, MetaTcpSender};
pub(crate) use pause::Pause;

use crate::engine::{Agent, Arrival, Loss, Outbox, Payload, PortId};
use crate::link::{DropCause, Ecn};

/// The sending end of a connection, with the application above it.
#[derive(Debug)]
pub struct TcpSender {
    sender: Sender,
    wire: WireFormat,
    port: Option<PortId>,
    /// Bytes that the application has not written yet; `None` without end.
    left: Option<u64>,
    started: Option<Time>,
    finished: Option<Time>,
    /// Whether corruption losses are reported one round trip later, and those under way.
    notices: bool,
    pending: VecDeque<(Time, u64)>,
    overhead: Option<Pause>,
}

impl TcpSender {
    /// A sender of `bytes`, or without end, controlled as `control` says.
    ///
    /// # Errors
    /// When there is no such congestion controller, or an option of it is wrong.
    pub fn new(
        config: &Config,
        control: &PolicySpec,
        bytes: Option<u64>,
    ) -> Result<Self, PolicyError> {
        let controller = congestion::build(control, u64::from(config.mss))?;
        Ok(TcpSender {
            sender: Sender::new(config, controller),
            wire: config.wire,
            port: None,
            left: bytes,
            started: None,
            finished: None,
            notices: false,
            pending: VecDeque::new(),
            overhead: None,
        })
    }

    /// The same on a host that takes a random time up to `most`, uniformly, before it sends: without
    /// it flows of equal round trips fall into step (Floyd and Jacobson 1991). Its draws are the
    /// substream of `seed` called `agent.<name>`.
    #[must_use]
    pub fn with_overhead(mut self, most: Duration, seed: u64, name: &str) -> Self {
        self.overhead = Some(Pause::new(most, seed, name));
        self
    }

    /// The same with explicit loss notification: one round trip after a segment was lost at random,
    /// not to a queue, the sender hears which one it was.
    #[must_use]
    pub fn with_loss_notices(mut self) -> Self {
        self.notices = true;
        self
    }

    /// Adds bytes to what the application sends; without effect on one without end. Wake the agent
    /// afterwards.
    pub fn add_bytes(&mut self, bytes: u64) {
        self.left = self.left.map(|left| left.saturating_add(bytes));
    }

    /// The sender itself, for its windows, round-trip times and counters.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// Bytes acknowledged in order.
    pub fn acknowledged(&self) -> u64 {
        self.sender.acknowledged()
    }

    /// When it started.
    pub fn started(&self) -> Option<Time> {
        self.started
    }

    /// When its last byte was acknowledged.
    pub fn finished(&self) -> Option<Time> {
        self.finished
    }

    fn write(&mut self) {
        match &mut self.left {
            None => {
                self.sender.write(u64::MAX / 4);
            }
            Some(left) => *left -= self.sender.write(*left),
        }
    }

    fn drive(&mut self, now: Time, out: &mut Outbox<'_>) {
        if self.started.is_none() {
            return;
        }
        self.write();
        if self.overhead.as_mut().is_none_or(|pause| pause.is_over(now))
            && let Some(port) = self.port
        {
            while let Some(segment) = self.sender.poll_transmit(now) {
                send(out, port, 0, &self.wire, segment);
            }
        }
        while let Some(event) = self.sender.poll_event() {
            if event == SenderEvent::Drained && self.left == Some(0) {
                self.finished = Some(now);
            }
        }
    }

    fn hear_notices(&mut self, now: Time) {
        while let Some(&(due, offset)) = self.pending.front()
            && due <= now
        {
            self.pending.pop_front();
            self.sender.handle_loss_notice(now, offset);
        }
    }
}

impl Agent for TcpSender {
    fn attach(&mut self, port: PortId) {
        self.port = self.port.or(Some(port));
    }

    fn handle_packet(&mut self, arrival: Arrival<'_>, out: &mut Outbox<'_>) {
        if let Payload::Segment(segment) = arrival.payload {
            self.hear_notices(arrival.now);
            self.sender.handle_segment(arrival.now, segment);
            self.drive(arrival.now, out);
        }
    }

    fn handle_timer(&mut self, now: Time, out: &mut Outbox<'_>) {
        self.started = self.started.or(Some(now));
        self.hear_notices(now);
        self.sender.handle_timeout(now);
        self.drive(now, out);
    }

    fn next_timer(&self) -> Option<Time> {
        let notice = self.pending.front().map(|(due, _)| *due);
        let overhead = self.overhead.as_ref().and_then(Pause::until);
        [notice, overhead, self.sender.next_timeout()].into_iter().flatten().min()
    }

    fn handle_loss(&mut self, loss: Loss<'_>, _out: &mut Outbox<'_>) {
        if let Payload::Segment(segment) = loss.payload
            && self.notices
            && loss.cause == DropCause::Random
            && segment.len > 0
        {
            let rtt = self.sender.smoothed_rtt().unwrap_or(Duration::ZERO);
            self.pending.push_back(((loss.sent + rtt).max(loss.now), segment.seq));
        }
    }
}

/// The receiving end of a connection. Its application reads at once, or at a given rate.
#[derive(Debug)]
pub struct TcpReceiver {
    receiver: Receiver,
    wire: WireFormat,
    port: Option<PortId>,
}

impl TcpReceiver {
    /// The receiving end of a connection with this configuration.
    pub fn new(config: &Config) -> Self {
        TcpReceiver { receiver: Receiver::new(config), wire: config.wire, port: None }
    }

    /// The receiver itself, for its counters.
    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// The receiver itself, to read from it. Wake the agent afterwards.
    pub fn receiver_mut(&mut self) -> &mut Receiver {
        &mut self.receiver
    }

    fn drive(&mut self, now: Time, out: &mut Outbox<'_>) {
        let Some(port) = self.port else { return };
        while let Some(segment) = self.receiver.poll_transmit(now) {
            send(out, port, 0, &self.wire, segment);
        }
    }
}

impl Agent for TcpReceiver {
    fn attach(&mut self, port: PortId) {
        self.port = self.port.or(Some(port));
    }

    fn handle_packet(&mut self, arrival: Arrival<'_>, out: &mut Outbox<'_>) {
        if let Payload::Segment(segment) = arrival.payload {
            let marked = arrival.ecn == Ecn::Ce;
            self.receiver.handle_segment(arrival.now, segment, marked);
            self.drive(arrival.now, out);
        }
    }

    fn handle_timer(&mut self, now: Time, out: &mut Outbox<'_>) {
        self.receiver.handle_timeout(now);
        self.drive(now, out);
    }

    fn next_timer(&self) -> Option<Time> {
        self.receiver.next_timeout()
    }
}

/// Puts a segment of the conversation `stream` on the wire, at the size and with the codepoint that it
/// asks for.
pub(crate) fn send(
    out: &mut Outbox<'_>,
    port: PortId,
    stream: u32,
    wire: &WireFormat,
    segment: Segment,
) {
    let ecn = if segment.flags.has(Flags::ECT) { Ecn::Ect0 } else { Ecn::NotEct };
    out.send_in(port, stream, segment.wire_size(wire), ecn, Payload::Segment(segment));
}

#[cfg(test)]
mod tests;
