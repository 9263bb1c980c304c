//! Round-trip latency of small messages, idle and under load.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anabranch::{RecvStream, SendStream, TrafficClass};
use anabranch_sim::probe::quantile;
use serde::Serialize;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

/// Bytes of a message.
const MESSAGE: usize = 64;
/// Interval between two messages.
const EVERY: Duration = Duration::from_millis(100);
/// Messages that have to be back before the load begins.
const IDLE: usize = 10;
/// Longest wait for those messages, and for the last ones at the end.
const PATIENCE: Duration = Duration::from_secs(5);
const LAST: Duration = Duration::from_secs(2);
/// Interval at which to check whether messages are back.
const LOOK: Duration = Duration::from_millis(20);

/// A message that came back.
#[derive(Clone, Copy, Debug)]
struct Sample {
    sent: Instant,
    took: Duration,
}

#[derive(Debug, Default)]
struct State {
    on_their_way: VecDeque<Instant>,
    back: Vec<Sample>,
}

/// Sends messages until it is dropped.
#[derive(Debug)]
pub(super) struct Prober {
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

impl Prober {
    /// Starts to send messages on a stream whose other end sends back what it reads.
    pub(super) fn start(halves: (SendStream, RecvStream)) -> Self {
        let state = Arc::<Mutex<State>>::default();
        let task = tokio::spawn(probe(halves, Arc::clone(&state)));
        Prober { state, task }
    }

    /// Waits until enough messages have come back while nothing else is sent.
    pub(super) async fn idle(&self) {
        let known = async {
            while lock(&self.state).back.len() < IDLE {
                sleep(LOOK).await;
            }
        };
        // If fewer messages come back in time, the result is less exact.
        let _ = timeout(PATIENCE, known).await;
    }

    /// Round-trip times before the load began, and of messages that were sent under load, between `from` and `until`.
    pub(super) async fn end(&self, (begun, from, until): (Instant, Instant, Instant)) -> Latency {
        let back = async {
            while lock(&self.state).on_their_way.front().is_some_and(|sent| *sent < until) {
                sleep(LOOK).await;
            }
        };
        let _ = timeout(LAST, back).await;
        let state = lock(&self.state);
        let between = |from: Option<Instant>, until: Instant| {
            let samples = state.back.iter().filter(|sample| {
                from.is_none_or(|from| sample.sent >= from) && sample.sent < until
            });
            RoundTrips::new(samples.map(|sample| sample.took).collect())
        };
        Latency {
            message_bytes: MESSAGE,
            interval_seconds: EVERY.as_secs_f64(),
            idle: between(None, begun),
            loaded: between(Some(from), until),
        }
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends messages and measures when they come back. Returns when the connection ends; the caller
/// learns of that elsewhere.
async fn probe((mut send, mut receive): (SendStream, RecvStream), state: Arc<Mutex<State>>) {
    let writing = async {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            lock(&state).on_their_way.push_back(Instant::now());
            if send.write_all(&[0x5a; MESSAGE]).await.is_err() {
                return;
            }
        }
    };
    let reading = async {
        let mut message = [0; MESSAGE];
        while receive.read_exact(&mut message).await.is_ok() {
            let mut state = lock(&state);
            if let Some(sent) = state.on_their_way.pop_front() {
                state.back.push(Sample { sent, took: sent.elapsed() });
            }
        }
    };
    tokio::join!(writing, reading);
}

/// Sends back what is read, in the class `interactive`.
pub(super) async fn echo((mut send, mut receive): (SendStream, RecvStream)) {
    let mut bytes = [0; 16 * MESSAGE];
    if send.set_class(TrafficClass::Interactive).is_err() {
        return;
    }
    while let Ok(Some(count)) = receive.read(&mut bytes).await {
        let Some(bytes) = bytes.get(..count) else { return };
        if send.write_all(bytes).await.is_err() {
            return;
        }
    }
    // The client has ended the stream, or the connection is over.
    let _ = send.finish();
}

/// Round-trip times over the idle and the loaded connection.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Latency {
    message_bytes: usize,
    interval_seconds: f64,
    pub(super) idle: Option<RoundTrips>,
    pub(super) loaded: Option<RoundTrips>,
}

/// Statistics of the messages' round-trip times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct RoundTrips {
    pub(super) count: usize,
    pub(super) min_ms: f64,
    pub(super) median_ms: f64,
    pub(super) p95_ms: f64,
    pub(super) max_ms: f64,
    /// 60 s divided by the mean of all but the slowest 5 %, as in draft-ietf-ippm-responsiveness.
    pub(super) round_trips_per_minute: f64,
}

impl RoundTrips {
    /// `None` without a message.
    fn new(mut took: Vec<Duration>) -> Option<Self> {
        took.sort_unstable();
        let ms: Vec<f64> = took.iter().map(|took| took.as_secs_f64() * 1e3).collect();
        let count = ms.len();
        let kept = ms.get(..((count as f64 * 0.95).ceil() as usize).max(1).min(count))?;
        let mean = kept.iter().sum::<f64>() / kept.len() as f64;
        Some(RoundTrips {
            count,
            min_ms: *ms.first()?,
            median_ms: quantile(&ms, 0.5),
            p95_ms: quantile(&ms, 0.95),
            max_ms: *ms.last()?,
            round_trips_per_minute: 60_000.0 / mean.max(1e-6),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_leave_out_the_slowest() {
        assert_eq!(RoundTrips::new(Vec::new()), None);
        let mut took: Vec<Duration> = (1..=19).map(|_| Duration::from_millis(20)).collect();
        took.push(Duration::from_secs(5));
        let seen = RoundTrips::new(took).unwrap();
        assert_eq!((seen.count, seen.min_ms, seen.median_ms, seen.p95_ms), (20, 20.0, 20.0, 20.0));
        assert_eq!(seen.max_ms, 5000.0);
        assert!((seen.round_trips_per_minute - 3000.0).abs() < 1e-6);
        let one = RoundTrips::new(vec![Duration::from_millis(60)]).unwrap();
        assert!((one.round_trips_per_minute - 1000.0).abs() < 1e-6);
        assert_eq!((one.median_ms, one.p95_ms, one.max_ms), (60.0, 60.0, 60.0));
    }
}
