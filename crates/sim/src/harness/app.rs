//! The applications at both ends: one writes a known pattern, the other checks it.

use anabranch_core::connection::Connection;
use anabranch_core::wire::StreamId;
use anabranch_policy::view::TrafficClass;
use anabranch_types::{Rng, Time};
use core::time::Duration;

use super::report::ProbeReport;
use super::spec::{Flow, Goal, Probes};

/// A prime, so that the pattern never lines up with symbols, buffers or power-of-two sizes.
const PATTERN: usize = 65_521;
const CHUNK: usize = 16_384;
/// Width of the bins of [`FlowReport::bins`](super::FlowReport::bins).
const BIN: Duration = Duration::from_millis(100);

/// Adds `amount` to the bin of `now`.
pub(super) fn add_to_bin(bins: &mut Vec<u64>, now: Time, amount: u64) {
    let bin = (now.as_nanos() / BIN.as_nanos() as u64) as usize;
    if bins.len() <= bin {
        bins.resize(bin + 1, 0);
    }
    bins[bin] += amount;
}

/// Random bytes that repeat after [`PATTERN`]; longer by a chunk so that slices never wrap.
#[derive(Debug)]
pub(super) struct Pattern(Vec<u8>);

impl Pattern {
    pub(super) fn new(seed: u64) -> Self {
        let mut bytes = vec![0; PATTERN];
        Rng::substream(seed, "harness.pattern").fill(&mut bytes);
        bytes.extend_from_within(..CHUNK);
        Pattern(bytes)
    }

    fn at(&self, offset: u64, len: usize) -> &[u8] {
        let start = (offset % PATTERN as u64) as usize;
        &self.0[start..start + len]
    }
}

/// The sending application of a flow.
#[derive(Debug)]
pub(super) struct Writer {
    goal: Goal,
    start: Time,
    stream: Option<StreamId>,
    pub(super) written: u64,
    pub(super) finished: bool,
    probes: Option<Probes>,
    next_probe: Time,
    pub(super) probes_sent: u64,
}

impl Writer {
    pub(super) fn new(flow: &Flow) -> Self {
        Writer {
            goal: flow.goal,
            start: flow.start,
            stream: None,
            written: 0,
            finished: false,
            probes: flow.probes,
            next_probe: Time::MAX,
            probes_sent: 0,
        }
    }

    /// When the writer wants to act although the connection does not move.
    pub(super) fn next_event(&self) -> Option<Time> {
        let end = match self.goal {
            Goal::Time(length) if !self.finished && self.stream.is_some() => {
                Some(self.start + length)
            }
            _ => None,
        };
        match (end, self.finished || self.stream.is_none()) {
            (end, true) => end,
            (Some(end), false) => Some(end.min(self.next_probe)),
            (None, false) => (self.next_probe < Time::MAX).then_some(self.next_probe),
        }
    }

    /// Writes what the connection takes.
    pub(super) fn pump(&mut self, now: Time, connection: &mut Connection, pattern: &Pattern) {
        if self.finished {
            return;
        }
        if self.stream.is_none() {
            self.stream = connection.open_stream(TrafficClass::Bulk).ok();
            if self.probes.is_some() {
                self.next_probe = now;
            }
        }
        let Some(stream) = self.stream else { return };
        let over = match self.goal {
            Goal::Bytes(bytes) => {
                self.write(stream, bytes, connection, pattern);
                self.written >= bytes
            }
            Goal::Time(length) => {
                let over = now >= self.start + length;
                if !over {
                    self.write(stream, u64::MAX, connection, pattern);
                }
                over
            }
        };
        if over {
            self.finished = connection.finish(stream).is_ok();
        } else {
            self.probe(now, connection);
        }
    }

    fn write(
        &mut self,
        stream: StreamId,
        until: u64,
        connection: &mut Connection,
        pattern: &Pattern,
    ) {
        while self.written < until {
            let len = usize::try_from(until - self.written).unwrap_or(CHUNK).min(CHUNK);
            match connection.write(stream, pattern.at(self.written, len)) {
                Ok(0) | Err(_) => return,
                Ok(taken) => self.written += taken as u64,
            }
        }
    }

    fn probe(&mut self, now: Time, connection: &mut Connection) {
        let Some(probes) = self.probes else { return };
        while self.next_probe <= now {
            let mut message = vec![0; probes.size.max(16)];
            message[..8].copy_from_slice(&now.as_nanos().to_be_bytes());
            message[8..16].copy_from_slice(&self.probes_sent.to_be_bytes());
            if connection.send_datagram(&message, TrafficClass::Interactive).is_ok() {
                self.probes_sent += 1;
            }
            let more = self.probes_sent < probes.most;
            self.next_probe = if more { self.next_probe + probes.interval } else { Time::MAX };
        }
    }
}

/// The receiving application of a flow.
#[derive(Debug)]
pub(super) struct Reader {
    stream: Option<StreamId>,
    pub(super) read: u64,
    pub(super) after_warm_up: u64,
    pub(super) last: Time,
    pub(super) finished: bool,
    pub(super) bins: Vec<u64>,
    pub(super) longest_gap: Duration,
    warm_up: Time,
    probes_seen: Vec<bool>,
    pub(super) delays: Vec<Duration>,
    buffer: Vec<u8>,
}

impl Reader {
    pub(super) fn new(warm_up: Duration) -> Self {
        Reader {
            stream: None,
            read: 0,
            after_warm_up: 0,
            last: Time::ZERO,
            finished: false,
            bins: Vec::new(),
            longest_gap: Duration::ZERO,
            warm_up: Time::ZERO + warm_up,
            probes_seen: Vec::new(),
            delays: Vec::new(),
            buffer: vec![0; CHUNK],
        }
    }

    pub(super) fn opened(&mut self, stream: StreamId) {
        self.stream = self.stream.or(Some(stream));
    }

    /// Reads everything there is; an error describes the first byte that is wrong.
    pub(super) fn pump(
        &mut self,
        now: Time,
        connection: &mut Connection,
        pattern: &Pattern,
    ) -> Result<(), String> {
        while let Some(len) = connection.recv_datagram(&mut self.buffer) {
            self.take_probe(now, len)?;
        }
        let Some(stream) = self.stream.filter(|_| !self.finished) else { return Ok(()) };
        loop {
            let outcome = match connection.read(stream, &mut self.buffer) {
                Ok(outcome) => outcome,
                Err(error) => return Err(format!("reading failed at {}: {error}", self.read)),
            };
            if self.buffer[..outcome.n] != *pattern.at(self.read, outcome.n) {
                return Err(format!("wrong bytes within {} of {}", outcome.n, self.read));
            }
            self.count(now, outcome.n as u64);
            if outcome.finished {
                self.finished = true;
            }
            if outcome.n == 0 || outcome.finished {
                return Ok(());
            }
        }
    }

    fn count(&mut self, now: Time, bytes: u64) {
        if bytes == 0 {
            return;
        }
        self.read += bytes;
        self.longest_gap = self.longest_gap.max(now.since(self.last.max(self.warm_up)));
        self.last = now;
        if now >= self.warm_up {
            self.after_warm_up += bytes;
        }
        add_to_bin(&mut self.bins, now, bytes);
    }

    fn take_probe(&mut self, now: Time, len: usize) -> Result<(), String> {
        let field = |at: usize| {
            let bytes = self.buffer.get(at..at + 8).filter(|_| len >= 16)?;
            bytes.try_into().ok().map(u64::from_be_bytes)
        };
        let (Some(sent), Some(number)) = (field(0), field(8)) else {
            return Err(format!("a datagram of {len} bytes is no probe"));
        };
        let index = number as usize;
        if self.probes_seen.len() <= index {
            self.probes_seen.resize(index + 1, false);
        }
        if core::mem::replace(&mut self.probes_seen[index], true) {
            return Err(format!("probe {number} arrived twice"));
        }
        self.delays.push(now.since(Time::from_nanos(sent)));
        Ok(())
    }

    pub(super) fn probe_report(&mut self, sent: u64) -> ProbeReport {
        let mut delays = core::mem::take(&mut self.delays);
        delays.sort_unstable();
        ProbeReport { sent, delays }
    }
}
