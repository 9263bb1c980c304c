//! The sending end of a TCP flow: a connection for every transfer.

use core::time::Duration;
use std::collections::VecDeque;

use anabranch_tcp::SenderStatistics;
use anabranch_types::Time;

use super::conversation::{Speaker, config, wire};
use super::gauge::Log;
use crate::endpoint::{Pause, send};
use crate::engine::{Agent, Arrival, Loss, Outbox, Payload, PortId};
use crate::link::DropCause;
use crate::scenario::profiles::TcpProtocol;
use crate::traffic::{Source, Traffic, Transfer};

/// What an endless transfer may write ahead: more than any run sends.
const ENDLESS: u64 = 1 << 60;

/// Opens a connection for every transfer of its application, each a conversation of its own, over all
/// its ports if the protocol uses several.
#[derive(Debug)]
pub(super) struct TcpSource {
    protocol: TcpProtocol,
    source: Source,
    /// Whether it sends one transfer without end or pause.
    bulk: bool,
    ports: Vec<PortId>,
    started: bool,
    sessions: Vec<Session>,
    /// Statistics of connections that are complete.
    closed: SenderStatistics,
    /// When each transfer was opened, by number.
    pub opened: Vec<Time>,
    notices: VecDeque<Notice>,
    pause: Option<Pause>,
    pub log: Option<Log>,
    /// A connection could not be built; cannot happen for a protocol that was checked.
    pub failure: Option<String>,
}

/// A connection that is open.
#[derive(Debug)]
struct Session {
    number: u64,
    speaker: Speaker,
    /// Bytes to be written yet; `None` for a transfer without end.
    left: Option<u64>,
    written: u64,
    logged: u64,
}

/// A notice of a random loss on its way to the sender.
#[derive(Clone, Copy, Debug)]
struct Notice {
    due: Time,
    number: u64,
    path: usize,
    offset: u64,
}

impl TcpSource {
    /// An application of `traffic` over `protocol`, its draws named after `name`.
    pub(super) fn new(protocol: &TcpProtocol, traffic: Traffic, seed: u64, name: &str) -> Self {
        let jitter = protocol.send_jitter;
        let pause = (!jitter.is_zero()).then(|| Pause::new(jitter, seed, name));
        TcpSource {
            protocol: protocol.clone(),
            bulk: traffic == Traffic::Bulk,
            source: Source::new(traffic, seed, name),
            ports: Vec::new(),
            started: false,
            sessions: Vec::new(),
            closed: SenderStatistics::default(),
            opened: Vec::new(),
            notices: VecDeque::new(),
            pause,
            log: None,
            failure: None,
        }
    }

    /// Counters of all connections so far.
    pub(super) fn statistics(&self) -> SenderStatistics {
        let mut sum = self.closed;
        self.speakers().for_each(|speaker| sum += speaker.statistics());
        sum
    }

    /// The connections that are open.
    pub(super) fn speakers(&self) -> impl Iterator<Item = &Speaker> {
        self.sessions.iter().map(|session| &session.speaker)
    }

    /// Payload of a full segment, bytes.
    pub(super) fn mss(&self) -> u64 {
        u64::from(config(&self.protocol).mss)
    }

    fn open(&mut self, transfer: Transfer) {
        match Speaker::new(&self.protocol, self.ports.len()) {
            Ok(speaker) => {
                self.opened.push(transfer.opened);
                let (number, left) = (transfer.number, transfer.bytes);
                self.sessions.push(Session { number, speaker, left, written: 0, logged: 0 });
            }
            Err(error) => self.failure = Some(error.to_string()),
        }
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
            if self.pause.as_mut().is_none_or(|pause| pause.is_over(now)) {
                self.transmit(now, out);
            }
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
                    *left -= session.speaker.write(*left);
                    if *left == 0 {
                        session.speaker.finish();
                    }
                }
                None if self.bulk => {
                    session.speaker.write(ENDLESS);
                }
                None => {
                    let ahead = session.written.saturating_sub(session.speaker.sent());
                    // It may fall silent at any time, so it must not write far ahead.
                    let room = (2 * session.speaker.window()).saturating_sub(ahead);
                    let taken = session.speaker.write(self.source.offered().min(room));
                    session.written += taken;
                    self.source.take(taken);
                }
            }
        }
    }

    fn transmit(&mut self, now: Time, out: &mut Outbox<'_>) {
        let wire = wire(&self.protocol);
        for session in &mut self.sessions {
            let stream = session.number as u32;
            while let Some((path, segment)) = session.speaker.poll_transmit(now) {
                let Some(port) = self.ports.get(path) else { continue };
                send(out, *port, stream, &wire, segment);
            }
            let sent = session.speaker.sent();
            if let Some(log) = &mut self.log
                && sent > session.logged
            {
                session.logged = sent;
                log.sent.push((session.number, sent, now));
            }
        }
    }

    /// Closes connections that are complete; says whether there were any.
    fn close(&mut self, now: Time) -> bool {
        let before = self.sessions.len();
        let (source, closed) = (&mut self.source, &mut self.closed);
        self.sessions.retain(|session| {
            let complete = session.left == Some(0) && session.speaker.is_drained();
            if complete {
                *closed += session.speaker.statistics();
                source.complete(now);
            }
            !complete
        });
        self.sessions.len() < before
    }

    fn hear_notices(&mut self, now: Time) {
        while let Some(notice) = self.notices.front().copied().filter(|notice| notice.due <= now) {
            self.notices.pop_front();
            let Notice { number, path, offset, .. } = notice;
            if let Some(session) = self.sessions.iter_mut().find(|s| s.number == number) {
                session.speaker.handle_loss_notice(now, path, offset);
            }
        }
    }

    fn path(&self, port: PortId) -> Option<usize> {
        self.ports.iter().position(|own| *own == port)
    }
}

impl Agent for TcpSource {
    fn attach(&mut self, port: PortId) {
        self.ports.push(port);
    }

    fn handle_packet(&mut self, arrival: Arrival<'_>, out: &mut Outbox<'_>) {
        let (now, number) = (arrival.now, u64::from(arrival.stream));
        let Payload::Segment(segment) = arrival.payload else { return };
        let Some(path) = self.path(arrival.port) else { return };
        self.hear_notices(now);
        if let Some(session) = self.sessions.iter_mut().find(|session| session.number == number) {
            session.speaker.handle_segment(now, path, segment);
            self.drive(now, out);
        }
    }

    fn handle_timer(&mut self, now: Time, out: &mut Outbox<'_>) {
        if !self.started {
            self.started = true;
            self.source.start(now);
        }
        self.hear_notices(now);
        for session in &mut self.sessions {
            session.speaker.handle_timeout(now);
        }
        self.drive(now, out);
    }

    fn next_timer(&self) -> Option<Time> {
        let others = [
            self.notices.front().map(|notice| notice.due),
            self.pause.as_ref().and_then(Pause::until),
            self.source.next_event(),
        ];
        let timeouts = self.sessions.iter().filter_map(|session| session.speaker.next_timeout());
        timeouts.chain(others.into_iter().flatten()).min()
    }

    fn handle_loss(&mut self, loss: Loss<'_>, _out: &mut Outbox<'_>) {
        if let Payload::Segment(segment) = loss.payload
            && self.protocol.loss_notices
            && loss.cause == DropCause::Random
            && segment.len > 0
            && let Some(path) = self.path(loss.port)
        {
            let number = u64::from(loss.stream);
            let session = self.sessions.iter().find(|session| session.number == number);
            let rtt = session.and_then(|session| session.speaker.smoothed_rtt(path));
            let due = (loss.sent + rtt.unwrap_or(Duration::ZERO)).max(loss.now);
            self.notices.push_back(Notice { due, number, path, offset: segment.seq });
        }
    }
}
