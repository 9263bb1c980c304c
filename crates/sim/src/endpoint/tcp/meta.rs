//! The two ends of a data stream over several TCP subflows as agents: a port for each subflow.

use anabranch_policy::{PolicyError, PolicySpec};
use anabranch_tcp::WireFormat;
use anabranch_tcp::meta::{MetaConfig, MetaReceiver, MetaSender};
use anabranch_types::Time;

use crate::engine::{Agent, Arrival, Outbox, Payload, PortId};
use crate::link::Ecn;

/// The sending end, with the application above it. Its n-th port is its n-th subflow.
#[derive(Debug)]
pub struct MetaTcpSender {
    sender: MetaSender,
    wire: WireFormat,
    ports: Vec<PortId>,
    left: Option<u64>,
    started: Option<Time>,
    finished: Option<Time>,
}

impl MetaTcpSender {
    /// A sender of `bytes`, or without end, over a subflow for each of `controls`.
    ///
    /// # Errors
    /// When a scheduler or controller does not exist, or an option of one is wrong.
    pub fn new(
        config: &MetaConfig,
        controls: &[PolicySpec],
        bytes: Option<u64>,
    ) -> Result<Self, PolicyError> {
        Ok(MetaTcpSender {
            sender: MetaSender::new(config, controls)?,
            wire: config.subflow.wire,
            ports: Vec::new(),
            left: bytes,
            started: None,
            finished: None,
        })
    }

    /// The sender itself, for its subflows and counters.
    pub fn sender(&self) -> &MetaSender {
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

    fn drive(&mut self, now: Time, out: &mut Outbox<'_>) {
        if self.started.is_none() {
            return;
        }
        match &mut self.left {
            None => {
                self.sender.write(u64::MAX / 4);
            }
            Some(left) => *left -= self.sender.write(*left),
        }
        while let Some((index, segment)) = self.sender.poll_transmit(now) {
            if let Some(port) = self.ports.get(index) {
                super::send(out, *port, 0, &self.wire, segment);
            }
        }
        if self.finished.is_none() && self.left == Some(0) && self.sender.is_drained() {
            self.finished = Some(now);
        }
    }
}

/// The subflow of a port.
fn subflow(ports: &[PortId], port: PortId) -> Option<usize> {
    ports.iter().position(|own| *own == port)
}

impl Agent for MetaTcpSender {
    fn attach(&mut self, port: PortId) {
        self.ports.push(port);
    }

    fn handle_packet(&mut self, arrival: Arrival<'_>, out: &mut Outbox<'_>) {
        if let Payload::Segment(segment) = arrival.payload
            && let Some(index) = subflow(&self.ports, arrival.port)
        {
            self.sender.handle_segment(arrival.now, index, segment);
            self.drive(arrival.now, out);
        }
    }

    fn handle_timer(&mut self, now: Time, out: &mut Outbox<'_>) {
        self.started = self.started.or(Some(now));
        self.sender.handle_timeout(now);
        self.drive(now, out);
    }

    fn next_timer(&self) -> Option<Time> {
        self.sender.next_timeout()
    }
}

/// The receiving end. Its n-th port is its n-th subflow.
#[derive(Debug)]
pub struct MetaTcpReceiver {
    receiver: MetaReceiver,
    wire: WireFormat,
    ports: Vec<PortId>,
}

impl MetaTcpReceiver {
    /// The receiving end of a stream over so many subflows.
    pub fn new(config: &MetaConfig, subflows: usize) -> Self {
        let receiver = MetaReceiver::new(config, subflows);
        MetaTcpReceiver { receiver, wire: config.subflow.wire, ports: Vec::new() }
    }

    /// The receiver itself, for its counters.
    pub fn receiver(&self) -> &MetaReceiver {
        &self.receiver
    }

    /// The receiver itself, to read from it. Wake the agent afterwards.
    pub fn receiver_mut(&mut self) -> &mut MetaReceiver {
        &mut self.receiver
    }

    fn drive(&mut self, now: Time, out: &mut Outbox<'_>) {
        while let Some((index, segment)) = self.receiver.poll_transmit(now) {
            if let Some(port) = self.ports.get(index) {
                super::send(out, *port, 0, &self.wire, segment);
            }
        }
    }
}

impl Agent for MetaTcpReceiver {
    fn attach(&mut self, port: PortId) {
        self.ports.push(port);
    }

    fn handle_packet(&mut self, arrival: Arrival<'_>, out: &mut Outbox<'_>) {
        if let Payload::Segment(segment) = arrival.payload
            && let Some(index) = subflow(&self.ports, arrival.port)
        {
            let marked = arrival.ecn == Ecn::Ce;
            self.receiver.handle_segment(arrival.now, index, segment, marked);
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
