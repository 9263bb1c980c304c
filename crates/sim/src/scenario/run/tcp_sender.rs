//! The sending end of a TCP flow: a connection for every transfer.

use core::time::Duration;
use std::collections::VecDeque;

use anabranch_policy::congestion;
use anabranch_tcp::{Flags, Segment, Sender, SenderStatistics};
use anabranch_types::Time;

use super::gauge::Log;
use crate::agent::{Agent, Arrival, Loss, Outbox};
use crate::engine::{Payload, PortId};
use crate::link::{DropCause, Ecn};
use crate::scenario::profiles::TcpProtocol;
use crate::traffic::{Source, Traffic, Transfer};

/// What an endless transfer may write ahead: more than any run sends.
const ENDLESS: u64 = 1 << 60;

/// Opens a connection for every transfer of its application, each a conversation of its own.
#[derive(Debug)]
pub(super) struct TcpSource {
    protocol: TcpProtocol,
    source: Source,
    /// Whether it sends one transfer without end or pause.
    bulk: bool,
    port: Option<PortId>,
    started: bool,
    sessions: Vec<Session>,
    /// Statistics of connections that are complete.
    closed: SenderStatistics,
    /// When each transfer was opened, by number.
    pub opened: Vec<Time>,
    /// Loss notices under way: when, of which transfer, which offset.
    notices: VecDeque<(Time, u64, u64)>,
    pub log: Option<Log>,
    /// A controller could not be built; cannot happen for a protocol that was checked.
    pub failure: Option<String>,
}

/// A connection that is open.
#[derive(Debug)]
struct Session {
    number: u64,
    sender: Sender,
    /// Bytes to be written yet; `None` for a transfer without end.
    left: Option<u64>,
    written: u64,
    logged: u64,
}

impl TcpSource {
    /// An application of `traffic` over `protocol`, its draws named after `name`.
    pub(super) fn new(protocol: &TcpProtocol, traffic: Traffic, seed: u64, name: &str) -> Self {
        TcpSource {
            protocol: protocol.clone(),
            bulk: traffic == Traffic::Bulk,
            source: Source::new(traffic, seed, name),
            port: None,
            started: false,
            sessions: Vec::new(),
            closed: SenderStatistics::default(),
            opened: Vec::new(),
            notices: VecDeque::new(),
            log: None,
            failure: None,
        }
    }

    /// Counters of all connections so far.
    pub(super) fn statistics(&self) -> SenderStatistics {
        let open = self.sessions.iter().map(|session| *session.sender.statistics());
        open.fold(self.closed, |sum, one| add(&sum, &one))
    }

    /// The connections that are open.
    pub(super) fn senders(&self) -> impl Iterator<Item = &Sender> {
        self.sessions.iter().map(|session| &session.sender)
    }

    /// Payload of a full segment, bytes.
    pub(super) fn mss(&self) -> u64 {
        u64::from(self.protocol.config.mss)
    }

    fn open(&mut self, transfer: Transfer) {
        let mss = u64::from(self.protocol.config.mss);
        let controller = match congestion::build(&self.protocol.control, mss) {
            Ok(controller) => controller,
            Err(error) => {
                self.failure = Some(error.to_string());
                return;
            }
        };
        let sender = Sender::new(&self.protocol.config, controller);
        self.opened.push(transfer.opened);
        let (number, left) = (transfer.number, transfer.bytes);
        self.sessions.push(Session { number, sender, left, written: 0, logged: 0 });
    }

    fn drive(&mut self, now: Time, out: &mut Outbox<'_>) {
        if !self.started {
            return;
        }
        self.source.handle(now);
        loop {
            while let Some(transfer) = self.source.next_transfer() {
                self.open(transfer);
            }
            self.offer();
            self.transmit(now, out);
            if !self.close(now) {
                return;
            }
        }
    }

    /// Writes what the application has and the send buffers take.
    fn offer(&mut self) {
        for session in &mut self.sessions {
            match &mut session.left {
                Some(0) => {}
                Some(left) => {
                    *left -= session.sender.write(*left);
                    if *left == 0 {
                        session.sender.finish();
                    }
                }
                None if self.bulk => {
                    session.sender.write(ENDLESS);
                }
                None => {
                    let ahead = session.written.saturating_sub(session.sender.sent());
                    // It may fall silent at any time, so it must not write far ahead.
                    let room = (2 * session.sender.window()).saturating_sub(ahead);
                    let taken = session.sender.write(self.source.offered().min(room));
                    session.written += taken;
                    self.source.take(taken);
                }
            }
        }
    }

    fn transmit(&mut self, now: Time, out: &mut Outbox<'_>) {
        let Some(port) = self.port else { return };
        let wire = self.protocol.config.wire;
        for session in &mut self.sessions {
            let stream = session.number as u32;
            while let Some(segment) = session.sender.poll_transmit(now) {
                let size = segment.wire_size(&wire);
                out.send_in(port, stream, size, codepoint(&segment), Payload::Segment(segment));
            }
            while session.sender.poll_event().is_some() {}
            let sent = session.sender.sent();
            if let Some(log) = &mut self.log
                && sent > session.logged
            {
                session.logged = sent;
                log.sent.push((session.number, sent, now));
            }
        }
    }

    /// Closes connections that are complete; says whether the application has more to open at once.
    fn close(&mut self, now: Time) -> bool {
        let before = self.sessions.len();
        let (source, closed) = (&mut self.source, &mut self.closed);
        self.sessions.retain(|session| {
            let complete = session.left == Some(0) && session.sender.is_drained();
            if complete {
                *closed = add(closed, session.sender.statistics());
                source.complete(now);
            }
            !complete
        });
        self.sessions.len() < before
    }

    fn hear_notices(&mut self, now: Time) {
        while let Some((_, number, offset)) = self.notices.front().copied().filter(|n| n.0 <= now) {
            self.notices.pop_front();
            if let Some(session) = self.sessions.iter_mut().find(|s| s.number == number) {
                session.sender.handle_loss_notice(now, offset);
            }
        }
    }
}

impl Agent for TcpSource {
    fn attach(&mut self, port: PortId) {
        self.port = self.port.or(Some(port));
    }

    fn handle_packet(&mut self, arrival: Arrival<'_>, out: &mut Outbox<'_>) {
        let Payload::Segment(segment) = arrival.payload else { return };
        self.hear_notices(arrival.now);
        let number = u64::from(arrival.stream);
        if let Some(session) = self.sessions.iter_mut().find(|session| session.number == number) {
            session.sender.handle_segment(arrival.now, segment);
            self.drive(arrival.now, out);
        }
    }

    fn handle_timer(&mut self, now: Time, out: &mut Outbox<'_>) {
        if !self.started {
            self.started = true;
            self.source.start(now);
        }
        self.hear_notices(now);
        for session in &mut self.sessions {
            session.sender.handle_timeout(now);
        }
        self.drive(now, out);
    }

    fn next_timer(&self) -> Option<Time> {
        let notice = self.notices.front().map(|(due, _, _)| *due);
        let timeouts = self.sessions.iter().filter_map(|session| session.sender.next_timeout());
        timeouts.chain(notice).chain(self.source.next_event()).min()
    }

    fn handle_loss(&mut self, loss: Loss<'_>, _out: &mut Outbox<'_>) {
        if let Payload::Segment(segment) = loss.payload
            && self.protocol.loss_notices
            && loss.cause == DropCause::Random
            && segment.len > 0
        {
            let number = u64::from(loss.stream);
            let session = self.sessions.iter().find(|session| session.number == number);
            let rtt = session.and_then(|session| session.sender.smoothed_rtt());
            let due = (loss.sent + rtt.unwrap_or(Duration::ZERO)).max(loss.now);
            self.notices.push_back((due, number, segment.seq));
        }
    }
}

/// The codepoint that a segment asks for.
pub(super) fn codepoint(segment: &Segment) -> Ecn {
    if segment.flags.has(Flags::ECT) { Ecn::Ect0 } else { Ecn::NotEct }
}

fn add(a: &SenderStatistics, b: &SenderStatistics) -> SenderStatistics {
    SenderStatistics {
        data_segments: a.data_segments + b.data_segments,
        retransmissions: a.retransmissions + b.retransmissions,
        data_bytes: a.data_bytes + b.data_bytes,
        timeouts: a.timeouts + b.timeouts,
        recoveries: a.recoveries + b.recoveries,
        window_cuts: a.window_cuts + b.window_cuts,
        ecn_responses: a.ecn_responses + b.ecn_responses,
        acks: a.acks + b.acks,
        duplicate_acks: a.duplicate_acks + b.duplicate_acks,
        window_probes: a.window_probes + b.window_probes,
        tail_probes: a.tail_probes + b.tail_probes,
        loss_notices: a.loss_notices + b.loss_notices,
    }
}
