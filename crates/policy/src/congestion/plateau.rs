//! Limits the window once the delivery rate stops growing.
//!
//! With deep buffers, a window grows far beyond the path's bandwidth-delay product. The delivery
//! rate shows this: once the window exceeds that product, acknowledgements arrive no faster however
//! much is sent (pTCP §6, congestion window and bandwidth-delay product).

use anabranch_types::Time;
use core::time::Duration;

use crate::congestion::AckEvent;
use crate::congestion::delay::Rounds;

/// Limit of the window, in bandwidth-delay products at the best recent rate. The half beyond one
/// product keeps the path filled although the rates of rounds vary, and for most of the time after
/// a loss has halved the window.
const MOST: f64 = 1.5;
/// Number of recent rounds whose best rate counts.
const MEMORY: usize = 10;
/// In slow start, the window and the rate double from round to round. If the rate grows by less
/// than this factor, the path is full.
const GROWING: f64 = 1.25;
/// When the limit has held for `LOOK_EVERY`, a *look* of `LOOK_ROUNDS` rounds drains the queue to
/// measure the round trip without it. The path may have become longer, and a limit for the old
/// round trip would starve the flow.
const LOOK_EVERY: Duration = Duration::from_secs(10);
const LOOK_ROUNDS: u32 = 2;

/// Measures the delivery rate of each round trip.
#[derive(Clone, Debug, Default)]
pub(super) struct Plateau {
    rounds: Rounds,
    /// The current round: when it began, bytes acknowledged in it, and whether the window was
    /// sometimes not filled.
    began: Time,
    bytes: u64,
    unused: bool,
    /// Bytes per second of the last rounds in which the window was always filled, the newest first.
    rates: [f64; MEMORY],
    /// Least round-trip time, s, since the last look; 0 before there is one.
    base: f64,
    /// Since when the limit has held.
    since: Option<Time>,
    /// Rounds left of a look, and whether anything has been lost since it began.
    looking: u32,
    lost: bool,
    /// Whether a look has just ended: unless something was lost, the window goes back to the limit.
    restore: bool,
    /// The most that the window may be, bytes.
    limit: Option<u64>,
}

impl Plateau {
    /// Processes an acknowledgement. Returns the new size of a window of `cwnd` bytes, if it is to
    /// change.
    pub(super) fn take(&mut self, event: &AckEvent, cwnd: u64, slow_start: bool) -> Option<u64> {
        // The acknowledgement that ends a round belongs to the next one.
        if let Some(round) = self.rounds.take(event) {
            self.end_round(event.now, round.rtt.as_secs_f64(), slow_start);
            (self.began, self.bytes, self.unused) = (event.now, 0, false);
        }
        self.bytes += event.acked_bytes;
        self.unused |= event.app_limited;
        self.lost |= event.lost_packets > 0 || event.ce_packets > 0;
        let restore = core::mem::take(&mut self.restore) && !self.lost;
        let limit = self.limit.filter(|limit| (restore || *limit <= cwnd) && !event.app_limited);
        if limit.is_some() && self.since.is_none() {
            self.since = Some(event.now);
        }
        limit
    }

    fn end_round(&mut self, now: Time, rtt: f64, slow_start: bool) {
        let looked = self.looking == 1;
        self.looking = self.looking.saturating_sub(1);
        self.base = if self.base == 0.0 || looked { rtt } else { self.base.min(rtt) };
        let before = self.rates[0];
        if !self.unused && self.began > Time::ZERO {
            let took = now.since(self.began).as_secs_f64().max(1e-9);
            self.rates.rotate_right(1);
            self.rates[0] = self.bytes as f64 / took;
        }
        let grows = slow_start && self.rates[0] > GROWING * before;
        let held = self.rates.iter().fold(0.0, |best: f64, rate| best.max(*rate)) * self.base;
        if self.since.is_some_and(|since| now.since(since) >= LOOK_EVERY) {
            (self.since, self.looking, self.lost) = (None, LOOK_ROUNDS, false);
        }
        self.restore = looked;
        let share = if self.looking > 0 { MOST / 2.0 } else { MOST };
        self.limit = (held > 0.0 && !grows).then_some((share * held) as u64);
    }
}
