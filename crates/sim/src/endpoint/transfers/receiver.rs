use anabranch_tcp::{Config, Receiver};
use anabranch_types::Time;

use super::super::tcp::send;
use super::slot_of;
use crate::engine::{Agent, Arrival, Outbox};
use crate::engine::{Payload, PortId};
use crate::link::Ecn;

/// The receiving ends of the connections of a [`TcpTransfers`](super::TcpTransfers).
#[derive(Debug)]
pub struct TcpTransfersReceiver {
    config: Config,
    port: Option<PortId>,
    slots: Vec<Option<Current>>,
    finished: Vec<(u32, Time)>,
    past_delivered: u64,
}

/// The last connection in a slot: it goes on acknowledging until the next one takes its place.
#[derive(Debug)]
struct Current {
    stream: u32,
    receiver: Box<Receiver>,
    finished: bool,
}

impl TcpTransfersReceiver {
    /// Receivers of this configuration.
    pub fn new(config: &Config) -> Self {
        TcpTransfersReceiver {
            config: config.clone(),
            port: None,
            slots: Vec::new(),
            finished: Vec::new(),
            past_delivered: 0,
        }
    }

    /// The number of each transfer that has arrived to its end, and when it had.
    pub fn finished(&self) -> &[(u32, Time)] {
        &self.finished
    }

    /// Bytes delivered in order, of all connections.
    pub fn delivered(&self) -> u64 {
        self.past_delivered + self.receivers().map(Receiver::delivered).sum::<u64>()
    }

    /// The receivers that are there now.
    pub fn receivers(&self) -> impl Iterator<Item = &Receiver> {
        self.slots.iter().flatten().map(|current| &*current.receiver)
    }

    /// The receiver of a connection. One of an earlier generation gives way; for a segment from an
    /// earlier one there is none.
    fn receiver(&mut self, stream: u32) -> Option<&mut Current> {
        let (index, generation) = slot_of(stream);
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || None);
        }
        let slot = self.slots.get_mut(index)?;
        if let Some(current) = slot
            && slot_of(current.stream).1 < generation
        {
            self.past_delivered += current.receiver.delivered();
            *slot = None;
        }
        let config = &self.config;
        let current = slot.get_or_insert_with(|| Current {
            stream,
            receiver: Box::new(Receiver::new(config)),
            finished: false,
        });
        (current.stream == stream).then_some(current)
    }
}

impl Agent for TcpTransfersReceiver {
    fn attach(&mut self, port: PortId) {
        self.port = self.port.or(Some(port));
    }

    fn handle_packet(&mut self, arrival: Arrival<'_>, out: &mut Outbox<'_>) {
        let (now, stream) = (arrival.now, arrival.stream);
        let (Payload::Segment(segment), Some(port)) = (arrival.payload, self.port) else { return };
        let wire = self.config.wire;
        let Some(current) = self.receiver(stream) else { return };
        current.receiver.handle_segment(now, segment, arrival.ecn == Ecn::Ce);
        while let Some(answer) = current.receiver.poll_transmit(now) {
            send(out, port, stream, &wire, answer);
        }
        if current.receiver.is_finished() && !current.finished {
            current.finished = true;
            self.finished.push((stream, now));
        }
    }

    fn handle_timer(&mut self, now: Time, out: &mut Outbox<'_>) {
        let Some(port) = self.port else { return };
        for current in self.slots.iter_mut().flatten() {
            current.receiver.handle_timeout(now);
            while let Some(answer) = current.receiver.poll_transmit(now) {
                send(out, port, current.stream, &self.config.wire, answer);
            }
        }
    }

    fn next_timer(&self) -> Option<Time> {
        self.receivers().filter_map(Receiver::next_timeout).min()
    }
}
