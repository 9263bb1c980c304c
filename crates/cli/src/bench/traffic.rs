//! The data itself: tasks that write and read streams, and counters of what they did.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch::{Connection, RecvStream, SendStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::cpu;
use super::protocol::{Figures, Request};

/// Bytes written and read at a time.
pub(super) const PIECE: usize = 128 << 10;

/// Both halves of one data stream.
pub(super) type Halves = (SendStream, RecvStream);

/// Counts what one stream carries.
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// Bytes written, but for those that wait for room on the paths while more is being written.
    pub(super) sent: AtomicU64,
    pub(super) received: AtomicU64,
}

/// One side's traffic under way.
#[derive(Debug)]
pub(super) struct Traffic {
    tasks: JoinSet<io::Result<Done>>,
    meters: Vec<Arc<Meter>>,
    started: Instant,
    cpu: Option<f64>,
    sent_for: Duration,
    received_for: Duration,
}

/// What a task did, and for how long.
#[derive(Debug)]
enum Done {
    Sent(Duration),
    Received(Duration),
}

/// How much one side sends.
#[derive(Clone, Debug)]
struct Budget {
    deadline: Instant,
    /// Bytes that no stream has taken yet.
    left: Option<Arc<AtomicU64>>,
}

impl Traffic {
    /// Starts reading every stream, and writing it if this side `sends`.
    pub(super) fn start(streams: Vec<Halves>, request: &Request, sends: bool) -> Self {
        let started = Instant::now();
        // Whoever counts bytes has no deadline but the longest there is.
        let seconds = Duration::try_from_secs_f64(request.seconds).unwrap_or_default();
        let left = request.bytes.map(|bytes| Arc::new(AtomicU64::new(bytes)));
        let budget = Budget { deadline: started + seconds, left };
        let mut traffic = Traffic {
            tasks: JoinSet::new(),
            meters: Vec::new(),
            started,
            cpu: cpu::seconds(),
            sent_for: Duration::ZERO,
            received_for: Duration::ZERO,
        };
        for (send, receive) in streams {
            let meter = Arc::new(Meter::default());
            traffic.meters.push(Arc::clone(&meter));
            traffic.tasks.spawn(read(receive, Arc::clone(&meter), started));
            if sends {
                traffic.tasks.spawn(write(send, meter, budget.clone(), started));
            } else {
                traffic.tasks.spawn(end(send));
            }
        }
        traffic
    }

    /// What each stream has carried so far: sent, received.
    pub(super) fn totals(&self) -> Vec<(u64, u64)> {
        let load = |meter: &Arc<Meter>| {
            (meter.sent.load(Ordering::Relaxed), meter.received.load(Ordering::Relaxed))
        };
        self.meters.iter().map(load).collect()
    }

    /// When it began.
    pub(super) fn started(&self) -> Instant {
        self.started
    }

    /// Ready when all streams have ended both ways. Dropping it loses nothing.
    ///
    /// # Errors
    /// The first stream that failed.
    pub(super) async fn ended(&mut self) -> io::Result<()> {
        while let Some(task) = self.tasks.join_next().await {
            match task.map_err(io::Error::other)?? {
                Done::Sent(time) => self.sent_for = self.sent_for.max(time),
                Done::Received(time) => self.received_for = self.received_for.max(time),
            }
        }
        Ok(())
    }

    /// This side's figures, once all has ended or been stopped.
    pub(super) fn figures(&self, connection: &Connection) -> Figures {
        let (sent, received): (Vec<u64>, Vec<u64>) = self.totals().into_iter().unzip();
        // A transfer that has not ended counts the time until now.
        let time = |bytes: &[u64], time: Duration| match time {
            Duration::ZERO if bytes.iter().any(|bytes| *bytes > 0) => self.started.elapsed(),
            time => time,
        };
        let sent_for = time(&sent, self.sent_for);
        let received_for = time(&received, self.received_for);
        let stats = connection.stats();
        let totals = stats.as_ref().map(|stats| stats.sent).unwrap_or_default();
        let paths = connection.named_paths();
        Figures {
            sent,
            received,
            sent_seconds: sent_for.as_secs_f64(),
            received_seconds: received_for.as_secs_f64(),
            cpu_seconds: match (self.cpu, cpu::seconds()) {
                (Some(before), Some(now)) => now - before,
                _ => 0.0,
            },
            symbols: totals.sources + totals.repairs,
            repairs: totals.repairs,
            lost_packets: paths.iter().map(|path| path.stats.counters.lost_packets).sum(),
        }
    }
}

impl Budget {
    /// Bytes to write next, at most a piece; `None` when there is nothing left.
    fn take(&self) -> Option<usize> {
        let Some(left) = &self.left else { return Some(PIECE) };
        let mut taken = 0;
        // The closure may run again, with what another stream has left.
        let _ = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            taken = left.min(PIECE as u64);
            Some(left - taken)
        });
        (taken > 0).then_some(taken as usize)
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
        let Some(mut left) = budget.take() else { break };
        while left > 0 {
            let part = piece.get(..left).unwrap_or(&piece);
            match timeout_at(budget.deadline, stream.write(part)).await {
                Ok(taken) => {
                    let taken = taken?;
                    left = left.saturating_sub(taken);
                    written += taken as u64;
                    // The first byte of the stream opened it.
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

/// Nothing to send.
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
