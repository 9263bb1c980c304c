//! The receiving end of a TCP flow: a connection for every transfer.

use std::collections::BTreeMap;

use anabranch_tcp::ranges::Ranges;
use anabranch_types::Time;

use super::conversation::{Listener, wire};
use super::gauge::{Gauge, Log};
use crate::endpoint::send;
use crate::engine::{Agent, Arrival, Outbox, Payload, PortId};
use crate::link::Ecn;
use crate::scenario::profiles::TcpProtocol;

/// Accepts every conversation, reads at once, and measures.
#[derive(Debug)]
pub(super) struct TcpSink {
    protocol: TcpProtocol,
    /// Bytes of a transfer; 0 for one without end.
    transfer: u64,
    ports: Vec<PortId>,
    /// By number of the transfer. Those that are complete stay: their end may be asked for again.
    sessions: BTreeMap<u64, Session>,
    /// Numbers of those whose timer may run.
    waiting: Vec<u64>,
    delivered: u64,
    /// Transfers that are complete, and when, in that order.
    pub completed: Vec<(u64, Time)>,
    pub gauge: Gauge,
    pub log: Option<Log>,
    /// Bytes of the slices that are logged.
    pub slice: u64,
}

/// One connection.
#[derive(Debug)]
struct Session {
    listener: Listener,
    delivered: u64,
    /// What has arrived, and how many bytes of each slice from `first_slice` on, if it is logged.
    seen: Ranges,
    slices: Vec<u64>,
}

impl TcpSink {
    /// `transfer` is the size of a transfer, 0 for one without end.
    pub(super) fn new(protocol: &TcpProtocol, transfer: u64, gap_from: Time) -> Self {
        TcpSink {
            protocol: protocol.clone(),
            transfer,
            ports: Vec::new(),
            sessions: BTreeMap::new(),
            waiting: Vec::new(),
            delivered: 0,
            completed: Vec::new(),
            gauge: Gauge::new(gap_from),
            log: None,
            slice: 1,
        }
    }

    /// Arrivals beyond the next expected byte, of all connections.
    pub(super) fn out_of_order(&self) -> u64 {
        self.sessions.values().map(|session| session.listener.out_of_order()).sum()
    }

    /// Looks after the timer of a session, if it has one.
    fn arm(&mut self, number: u64) {
        let timer = self.sessions.get(&number).and_then(|session| session.listener.next_timeout());
        if timer.is_some() && !self.waiting.contains(&number) {
            self.waiting.push(number);
        }
    }

    fn after(&mut self, now: Time, number: u64, out: &mut Outbox<'_>) {
        let wire = wire(&self.protocol);
        let Some(session) = self.sessions.get_mut(&number) else { return };
        while let Some((path, segment)) = session.listener.poll_transmit(now) {
            let Some(port) = self.ports.get(path) else { continue };
            send(out, *port, number as u32, &wire, segment);
        }
        let delivered = session.listener.delivered();
        if delivered <= session.delivered {
            return;
        }
        self.delivered += delivered - session.delivered;
        session.delivered = delivered;
        self.gauge.deliver(now, self.delivered);
        if let Some(log) = &mut self.log {
            log.delivered.push((number, delivered, now));
            session.seen.remove_below(delivered);
        }
        if self.transfer > 0 && delivered >= self.transfer {
            self.completed.push((number, now));
        }
    }
}

impl Session {
    /// Notes which slices a segment makes whole.
    fn note(&mut self, start: u64, end: u64, slice: u64, mut whole: impl FnMut(u64)) {
        let start = start.max(self.delivered);
        let slices = &mut self.slices;
        if start >= end {
            return;
        }
        self.seen.insert(start, end, |from, to| {
            let mut at = from;
            while at < to {
                let number = at / slice;
                let until = to.min((number + 1) * slice);
                let index = usize::try_from(number).unwrap_or(usize::MAX - 1);
                if slices.len() <= index {
                    slices.resize(index + 1, 0);
                }
                if let Some(bytes) = slices.get_mut(index) {
                    *bytes += until - at;
                    if *bytes == slice {
                        whole(number);
                    }
                }
                at = until;
            }
        });
    }
}

impl Agent for TcpSink {
    fn attach(&mut self, port: PortId) {
        self.ports.push(port);
        self.gauge.attach(port);
    }

    fn handle_packet(&mut self, arrival: Arrival<'_>, out: &mut Outbox<'_>) {
        let (now, number) = (arrival.now, u64::from(arrival.stream));
        self.gauge.arrive(arrival.port, arrival.size);
        let Payload::Segment(segment) = arrival.payload else { return };
        let Some(path) = self.ports.iter().position(|port| *port == arrival.port) else { return };
        let (protocol, paths) = (&self.protocol, self.ports.len());
        let session = self.sessions.entry(number).or_insert_with(|| Session {
            listener: Listener::new(protocol, paths),
            delivered: 0,
            seen: Ranges::new(),
            slices: Vec::new(),
        });
        if let Some(log) = &mut self.log {
            let start = match protocol.meta {
                None => Some(segment.seq),
                // What carries no data of the stream is not part of it.
                Some(_) => segment.data_sequence(),
            };
            if let Some(start) = start {
                let (end, whole) = (start + u64::from(segment.len), &mut log.whole);
                session.note(start, end, self.slice, |slice| whole.push((number, slice, now)));
            }
        }
        session.listener.handle_segment(now, path, segment, arrival.ecn == Ecn::Ce);
        self.after(now, number, out);
        self.arm(number);
    }

    fn handle_timer(&mut self, now: Time, out: &mut Outbox<'_>) {
        for number in core::mem::take(&mut self.waiting) {
            if let Some(session) = self.sessions.get_mut(&number) {
                session.listener.handle_timeout(now);
                self.after(now, number, out);
                self.arm(number);
            }
        }
    }

    fn next_timer(&self) -> Option<Time> {
        let sessions = self.waiting.iter().filter_map(|number| self.sessions.get(number));
        sessions.filter_map(|session| session.listener.next_timeout()).min()
    }
}
