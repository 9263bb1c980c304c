//! The grid of times at which rounds may begin.

use core::time::Duration;

use super::{Forecast, MAX_ROUNDS};

/// The steps of time, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    pub(super) rtt: u64,
    pub(super) half: u64,
    /// Time from one round to the next if the timer has to fire.
    pub(super) restart: u64,
}

impl Clock {
    /// `None` if half the round-trip time is below 1 ns.
    pub(super) fn new(path: &Forecast) -> Option<Self> {
        // Times are capped at 2.3 years, so that sums of a few do not overflow.
        let nanos =
            |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).min(1 << 56);
        let rtt = nanos(path.rtt).min((1 << 56) / u64::from(MAX_ROUNDS));
        let clock = Clock { rtt, half: rtt / 2, restart: nanos(path.rto) + rtt / 2 };
        (clock.half > 0).then_some(clock)
    }

    pub(super) fn horizon(&self, time: Duration) -> u64 {
        u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).min(self.rtt * u64::from(MAX_ROUNDS))
    }

    /// Time until the packets of a second round have arrived.
    pub(super) fn second_round(&self) -> u64 {
        self.rtt + self.half
    }
}

/// The times at which rounds may begin: after up to `rounds` round trips and up to `timeouts` timeouts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    pub(super) clock: Clock,
    pub(super) time: u64,
    pub(super) rounds: u32,
    pub(super) timeouts: u32,
}

impl Grid {
    pub(super) fn new(clock: Clock, time: u64) -> Self {
        let most = |step: u64| (time / step) as u32;
        Grid { clock, time, rounds: most(clock.rtt), timeouts: most(clock.restart) }
    }

    /// The first turn after this many timeouts; `None` if the time ends before it.
    pub(super) fn first(&self, timeouts: u32) -> Option<Turn> {
        let left = self.time.checked_sub(self.clock.restart * u64::from(timeouts))?;
        Some(self.turn(0, left))
    }

    /// The turn a round trip later; `None` if the time ends before it.
    pub(super) fn next(&self, turn: &Turn) -> Option<Turn> {
        let left = turn.left.checked_sub(self.clock.rtt)?;
        Some(self.turn(turn.rounds + 1, left))
    }

    fn turn(&self, rounds: usize, left: u64) -> Turn {
        let Clock { rtt, half, restart } = self.clock;
        Turn {
            rounds,
            left,
            arrives: left >= half,
            more: (left.saturating_sub(half) / rtt) as u32,
            timed_out: left >= restart,
        }
    }
}

/// A time at which rounds may begin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// Round trips until this time, and the time that is left then, ns.
    pub(super) rounds: usize,
    pub(super) left: u64,
    /// Whether the packets of a round that begins at this time arrive in time.
    pub(super) arrives: bool,
    /// Number of later rounds whose packets arrive in time if nothing is lost.
    pub(super) more: u32,
    /// Whether the round after a timeout begins before the time is over.
    pub(super) timed_out: bool,
}

impl Turn {
    /// The share of a last round's packets that arrives.
    pub(super) fn last(&self, loss: f64) -> f64 {
        if self.arrives { 1.0 - loss } else { 0.0 }
    }
}
