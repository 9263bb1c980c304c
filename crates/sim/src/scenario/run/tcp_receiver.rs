//! The receiving end of a TCP flow: a connection for every transfer.

use std::collections::BTreeMap;

use anabranch_tcp::ranges::Ranges;
use anabranch_tcp::{Config, Receiver};
use anabranch_types::Time;

use super::gauge::{Gauge, Log};
use super::tcp_sender::codepoint;
use crate::agent::{Agent, Arrival, Outbox};
use crate::engine::{Payload, PortId};
use crate::link::Ecn;

/// Accepts every conversation, reads at once, and measures.
#[derive(Debug)]
pub(super) struct TcpSink {
    config: Config,
    port: Option<PortId>,
    /// By number of the transfer. Those that are complete stay: their end may be asked for again.
    sessions: BTreeMap<u64, Session>,
    /// Numbers of those that are not complete.
    open: Vec<u64>,
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
    receiver: Receiver,
    delivered: u64,
    /// What has arrived, and how many bytes of each slice from `first_slice` on, if it is logged.
    seen: Ranges,
    slices: Vec<u64>,
}

impl TcpSink {
    pub(super) fn new(config: &Config, gap_from: Time) -> Self {
        TcpSink {
            config: config.clone(),
            port: None,
            sessions: BTreeMap::new(),
            open: Vec::new(),
            delivered: 0,
            completed: Vec::new(),
            gauge: Gauge::new(gap_from),
            log: None,
            slice: 1,
        }
    }

    /// Arrivals beyond the next expected byte, of all connections.
    pub(super) fn out_of_order(&self) -> u64 {
        self.sessions.values().map(|session| session.receiver.statistics().out_of_order).sum()
    }

    fn after(&mut self, now: Time, number: u64, out: &mut Outbox<'_>) {
        let (Some(port), Some(session)) = (self.port, self.sessions.get_mut(&number)) else {
            return;
        };
        while let Some(segment) = session.receiver.poll_transmit(now) {
            let size = segment.wire_size(&self.config.wire);
            let payload = Payload::Segment(segment);
            out.send_in(port, number as u32, size, codepoint(&segment), payload);
        }
        let delivered = session.receiver.delivered();
        if delivered > session.delivered {
            self.delivered += delivered - session.delivered;
            session.delivered = delivered;
            self.gauge.deliver(now, self.delivered);
            if let Some(log) = &mut self.log {
                log.delivered.push((number, delivered, now));
                session.seen.remove_below(delivered);
            }
        }
        if session.receiver.is_finished()
            && let Some(index) = self.open.iter().position(|open| *open == number)
        {
            self.open.swap_remove(index);
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
        self.port = self.port.or(Some(port));
        self.gauge.attach(port);
    }

    fn handle_packet(&mut self, arrival: Arrival<'_>, out: &mut Outbox<'_>) {
        let (now, number) = (arrival.now, u64::from(arrival.stream));
        self.gauge.arrive(arrival.port, arrival.size);
        let Payload::Segment(segment) = arrival.payload else { return };
        let (config, open) = (&self.config, &mut self.open);
        let session = self.sessions.entry(number).or_insert_with(|| {
            open.push(number);
            let receiver = Receiver::new(config);
            Session { receiver, delivered: 0, seen: Ranges::new(), slices: Vec::new() }
        });
        if let Some(log) = &mut self.log {
            let end = segment.seq + u64::from(segment.len);
            let whole = &mut log.whole;
            session.note(segment.seq, end, self.slice, |slice| whole.push((number, slice, now)));
        }
        session.receiver.handle_segment(now, segment, arrival.ecn == Ecn::Ce);
        self.after(now, number, out);
    }

    fn handle_timer(&mut self, now: Time, out: &mut Outbox<'_>) {
        for number in self.open.clone() {
            if let Some(session) = self.sessions.get_mut(&number)
                && session.receiver.next_timeout().is_some_and(|due| due <= now)
            {
                session.receiver.handle_timeout(now);
                self.after(now, number, out);
            }
        }
    }

    fn next_timer(&self) -> Option<Time> {
        let sessions = self.open.iter().filter_map(|number| self.sessions.get(number));
        sessions.filter_map(|session| session.receiver.next_timeout()).min()
    }
}
