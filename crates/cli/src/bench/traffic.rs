//! Test traffic: tasks that write and read streams, and their counters.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch::{Connection, RecvStream, SendStream};
use anabranch_types::Bitrate;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::cpu;
use super::datagrams::{self, Counts};
use super::inbox::Seen;
use super::protocol::{Figures, Request};
use crate::limit::Limit;

/// Bytes written and read at a time.
pub(super) const PIECE: usize = 128 << 10;

/// Both halves of one data stream.
pub(super) type Halves = (SendStream, RecvStream);

/// Counts what one stream carries.
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// Bytes written, except for those that wait for room on the paths while more is being written.
    pub(super) sent: AtomicU64,
    pub(super) received: AtomicU64,
}

/// One side's traffic under way.
#[derive(Debug)]
pub(super) struct Traffic {
    connection: Connection,
    tasks: JoinSet<io::Result<Done>>,
    meters: Vec<Arc<Meter>>,
    datagrams: Counts,
    started: Instant,
    /// Totals before counting began, and the time when it began.
    before: Mark,
    omit: Option<Duration>,
    sent_for: Duration,
    received_for: Duration,
}

/// Totals at some time.
#[derive(Clone, Debug)]
struct Mark {
    totals: Vec<(u64, u64)>,
    time: Duration,
    cpu: Option<f64>,
    symbols: u64,
    repairs: u64,
    lost_packets: u64,
    datagrams_sent: u64,
}

/// Direction of a task that has ended, and how long it took.
#[derive(Debug)]
pub(super) enum Done {
    Sent(Duration),
    Received(Duration),
}

/// How much one side sends, and how fast.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    pub(super) deadline: Instant,
    /// Bytes that no stream has taken yet.
    left: Option<Arc<AtomicU64>>,
    limit: Option<Limit>,
}

impl Traffic {
    /// Starts reading every stream, and writing it if this side `sends`; or sending and receiving datagrams.
    pub(super) fn start(
        connection: &Connection,
        streams: Vec<Halves>,
        request: &Request,
        sends: bool,
    ) -> Self {
        let started = Instant::now();
        let seconds = |seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default();
        // With a number of bytes, the only deadline is the longest one allowed.
        let (time, omit) = (seconds(request.seconds), seconds(request.omit));
        let budget = Budget::new(request, started + omit + time);
        let mut traffic = Traffic {
            connection: connection.clone(),
            tasks: JoinSet::new(),
            meters: Vec::new(),
            datagrams: Counts::default(),
            started,
            before: Mark::of(connection, Vec::new(), 0, Duration::ZERO),
            omit: Some(omit).filter(|omit| !omit.is_zero()),
            sent_for: Duration::ZERO,
            received_for: Duration::ZERO,
        };
        for halves in streams {
            let meter = Arc::new(Meter::default());
            traffic.meters.push(Arc::clone(&meter));
            let budget = sends.then(|| budget.clone());
            if request.datagrams {
                traffic.carry_datagrams(halves, &meter, budget);
            } else {
                traffic.carry_stream(halves, &meter, budget);
            }
        }
        traffic
    }

    fn carry_stream(
        &mut self,
        (send, receive): Halves,
        meter: &Arc<Meter>,
        budget: Option<Budget>,
    ) {
        self.tasks.spawn(read(receive, Arc::clone(meter), self.started));
        match budget {
            Some(budget) => self.tasks.spawn(write(send, Arc::clone(meter), budget, self.started)),
            None => self.tasks.spawn(end(send)),
        };
    }

    fn carry_datagrams(
        &mut self,
        (send, receive): Halves,
        meter: &Arc<Meter>,
        budget: Option<Budget>,
    ) {
        let counts = || (Arc::clone(meter), self.datagrams.clone());
        let (connection, started) = (&self.connection, self.started);
        let receiving = datagrams::receive(connection.clone(), receive, counts(), started);
        self.tasks.spawn(receiving);
        match budget {
            Some(budget) => {
                let sending = datagrams::send(connection.clone(), send, counts(), budget, started);
                self.tasks.spawn(sending)
            }
            None => self.tasks.spawn(end(send)),
        };
    }

    /// Bytes that each stream has carried so far: sent, received.
    pub(super) fn totals(&self) -> Vec<(u64, u64)> {
        let load = |meter: &Arc<Meter>| {
            (meter.sent.load(Ordering::Relaxed), meter.received.load(Ordering::Relaxed))
        };
        self.meters.iter().map(load).collect()
    }

    /// Datagrams sent so far, and what has been seen of the other side's.
    pub(super) fn datagrams(&self) -> (u64, Seen) {
        (self.datagrams.sent(), self.datagrams.inbox().seen())
    }

    /// When the traffic began.
    pub(super) fn started(&self) -> Instant {
        self.started
    }

    /// Waits until all streams have ended both ways, and returns `true`; or until the time that does not count is over,
    /// and returns `false`: the caller then calls [`omit`](Self::omit). Dropping the future loses nothing.
    ///
    /// # Errors
    /// The error of the first stream that failed.
    pub(super) async fn ended(&mut self) -> io::Result<bool> {
        let omitted = self.omit.map(|omit| self.started + omit);
        let omitted = async {
            match omitted {
                Some(time) => sleep_until(time).await,
                None => pending().await,
            }
        };
        tokio::pin!(omitted);
        loop {
            let task = tokio::select! {
                () = &mut omitted => return Ok(false),
                task = self.tasks.join_next() => task,
            };
            let Some(task) = task else { return Ok(true) };
            match task.map_err(io::Error::other)?? {
                Done::Sent(time) => self.sent_for = self.sent_for.max(time),
                Done::Received(time) => self.received_for = self.received_for.max(time),
            }
        }
    }

    /// Whether what is carried now is left out of the results.
    pub(super) fn is_omitting(&self) -> bool {
        self.omit.is_some()
    }

    /// Starts to count: what is carried from now on is in the results.
    pub(super) fn omit(&mut self) {
        let time = self.omit.take().unwrap_or_default();
        self.before = Mark::of(&self.connection, self.totals(), self.datagrams.sent(), time);
        self.datagrams.inbox().omit();
    }

    /// This side's figures, once all has ended or been stopped.
    pub(super) fn figures(&self) -> Figures {
        let before = &self.before;
        let mark = Mark::of(&self.connection, self.totals(), self.datagrams.sent(), before.time);
        let earlier = before.totals.iter().chain(std::iter::repeat(&(0, 0)));
        let counted =
            mark.totals.iter().zip(earlier).map(|(now, before)| {
                (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1))
            });
        let (sent, received): (Vec<u64>, Vec<u64>) = counted.unzip();
        // A transfer that has not ended counts the time until now.
        let time = |bytes: &[u64], time: Duration| {
            let time = match time {
                Duration::ZERO if bytes.iter().any(|bytes| *bytes > 0) => self.started.elapsed(),
                time => time,
            };
            time.saturating_sub(before.time).as_secs_f64()
        };
        Figures {
            sent_seconds: time(&sent, self.sent_for),
            received_seconds: time(&received, self.received_for),
            sent,
            received,
            cpu_seconds: match (before.cpu, mark.cpu) {
                (Some(before), Some(now)) => now - before,
                _ => 0.0,
            },
            symbols: mark.symbols - before.symbols.min(mark.symbols),
            repairs: mark.repairs - before.repairs.min(mark.repairs),
            lost_packets: mark.lost_packets - before.lost_packets.min(mark.lost_packets),
            datagrams_sent: mark.datagrams_sent - before.datagrams_sent.min(mark.datagrams_sent),
            datagrams_seen: self.datagrams.inbox().seen(),
        }
    }
}

impl Mark {
    fn of(
        connection: &Connection,
        totals: Vec<(u64, u64)>,
        datagrams_sent: u64,
        time: Duration,
    ) -> Self {
        let stats = connection.stats();
        let sent = stats.as_ref().map(|stats| stats.sent).unwrap_or_default();
        let paths = connection.named_paths();
        Mark {
            totals,
            time,
            cpu: cpu::seconds(),
            symbols: sent.sources + sent.repairs,
            repairs: sent.repairs,
            lost_packets: paths.iter().map(|path| path.stats.counters.lost_packets).sum(),
            datagrams_sent,
        }
    }
}

impl Budget {
    fn new(request: &Request, deadline: Instant) -> Self {
        let left = request.bytes.map(|bytes| Arc::new(AtomicU64::new(bytes)));
        let limit = request.bitrate.map(|rate| Limit::new(Bitrate::from_bps(rate)));
        Budget { deadline, left, limit }
    }

    /// Bytes to send next, at most `most`; `None` when there is nothing left.
    pub(super) fn take(&self, most: usize) -> Option<usize> {
        let Some(left) = &self.left else { return Some(most) };
        let mut taken = 0;
        // The closure runs again if another stream has taken bytes meanwhile.
        let _ = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            taken = left.min(most as u64);
            Some(left - taken)
        });
        (taken > 0).then_some(taken as usize)
    }

    /// Bytes that a stream sends at a time.
    fn piece(&self) -> usize {
        self.limit.as_ref().map_or(PIECE, |limit| limit.piece().min(PIECE))
    }

    /// Waits until this many bytes may be sent.
    pub(super) async fn pace(&self, bytes: usize) {
        if let Some(limit) = &self.limit {
            limit.wait(bytes).await;
        }
    }
}

async fn write(
    mut stream: SendStream,
    meter: Arc<Meter>,
    budget: Budget,
    started: Instant,
) -> io::Result<Done> {
    let piece = vec![0x5a; PIECE];
    let mut written = 0;
    'all: while Instant::now() < budget.deadline {
        let Some(mut left) = budget.take(budget.piece()) else { break };
        if timeout_at(budget.deadline, budget.pace(left)).await.is_err() {
            break;
        }
        while left > 0 {
            let part = piece.get(..left).unwrap_or(&piece);
            match timeout_at(budget.deadline, stream.write(part)).await {
                Ok(taken) => {
                    let taken = taken?;
                    left = left.saturating_sub(taken);
                    written += taken as u64;
                    // The first byte of the stream, which opened it, is not counted.
                    let sent = stream.sent().map_or(written, |sent| sent.saturating_sub(1));
                    meter.sent.store(sent, Ordering::Relaxed);
                }
                Err(_) => break 'all,
            }
        }
    }
    let took = started.elapsed();
    stream.finish()?;
    stream.acked().await?;
    meter.sent.store(written, Ordering::Relaxed);
    Ok(Done::Sent(took))
}

/// Ends a stream on which this side has nothing to send.
async fn end(mut stream: SendStream) -> io::Result<Done> {
    stream.finish()?;
    Ok(Done::Sent(Duration::ZERO))
}

async fn read(mut stream: RecvStream, meter: Arc<Meter>, started: Instant) -> io::Result<Done> {
    let mut piece = vec![0; PIECE];
    let mut last = Duration::ZERO;
    while let Some(count) = stream.read(&mut piece).await? {
        meter.received.fetch_add(count as u64, Ordering::Relaxed);
        last = started.elapsed();
    }
    Ok(Done::Received(last))
}
