//! How many packets a TCP window delivers within a time, losses, fast retransmissions and timeouts
//! included: LATE's forecast.
//!
//! A round sends a window w. If all of it arrives, the next round begins after a round trip R, with 2w packets
//! below the slow-start threshold and w + 1 above. If some packets are lost but at least three arrive, the lost ones
//! are retransmitted fast: the next round begins after 2R, with w/2. If fewer than three arrive, the timer has to
//! fire: the next round begins after RTO + R/2, with one packet.

mod grid;
mod odds;
mod place;
mod step;

use anabranch_types::math;
use core::time::Duration;

use grid::{Clock, Grid, Turn};
use odds::OddsTable;
use place::{Place, State};
use step::Step;

/// A path whose deliveries are forecast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// Round-trip time R, above zero.
    pub rtt: Duration,
    /// Retransmission timeout.
    pub rto: Duration,
    /// Packet loss l, `[0, 1]`.
    pub loss: f64,
    /// Largest window W the path may reach, packets; at most [`MAX_WINDOW`] is used.
    pub cap: u32,
}

/// Larger windows are forecast as windows of this many packets.
pub const MAX_WINDOW: u32 = 512;

/// Longer times are forecast as this many round trips.
pub const MAX_ROUNDS: u32 = 200;

/// Forecasts for a scheduler do not follow sequences of outcomes that are less probable than this.
pub const PRUNED: f64 = 1e-6;

/// The three ways in which a round may end, each with its chance and the mean number of packets that are then
/// delivered within the whole time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcomes {
    /// Nothing is lost.
    pub clean: (f64, f64),
    /// Some packets are lost and retransmitted fast.
    pub repaired: (f64, f64),
    /// So many are lost that the retransmission timer has to fire. If the time ends before it does,
    /// only the packets of this round that arrive are counted.
    pub timed_out: (f64, f64),
}

impl Forecast {
    /// N(T, w, s): the mean number of packets delivered within `time` from a window of `window`
    /// packets with slow-start threshold `ssthresh` (LATE eqs 1–23).
    ///
    /// Where the printed equations differ from the model they describe, this follows the model: the
    /// recursive terms carry the probability of their branch, and thresholds are at least 2.
    pub fn packets(&self, time: Duration, window: u32, ssthresh: u32) -> f64 {
        Forecaster::exact().packets(self, time, window, ssthresh)
    }

    /// The packets delivered within `time` if each round has its likelier outcome: no loss, if the
    /// chance of no loss is a half or more, else fast retransmission. In the last round the
    /// likeliest number of packets is lost. There are no timeouts.
    ///
    /// LATE §II describes DPSAF's forecast in this way. The rule for the last round is not
    /// published; it is derived here.
    pub fn likeliest(&self, time: Duration, window: u32, ssthresh: u32) -> f64 {
        let Some(clock) = Clock::new(self) else { return 0.0 };
        let (mut left, mut packets) = (clock.horizon(time), 0.0);
        let mut state = State::new(window, ssthresh, self.largest());
        while left >= clock.half {
            let window = f64::from(state.window);
            if left < clock.second_round() {
                return packets + (window - ((window + 1.0) * self.loss).floor()).max(0.0);
            }
            packets += window;
            let is_clean = math::pow(1.0 - self.loss, window) >= 0.5;
            let (took, next) = match is_clean {
                true => (clock.rtt, state.clean(self.largest())),
                false => (2 * clock.rtt, State::new(state.window / 2, 0, MAX_WINDOW)),
            };
            (left, state) = (left.saturating_sub(took), next);
        }
        packets
    }

    /// The branches of the first round, for `time` of at least 3/2 round trips. In a shorter time
    /// there is no second round, and all branches are zero.
    pub fn outcomes(&self, time: Duration, window: u32, ssthresh: u32) -> Outcomes {
        let Some(clock) = Clock::new(self).filter(|c| c.horizon(time) >= c.second_round()) else {
            return Outcomes::default();
        };
        let time = clock.horizon(time);
        let state = State::new(window, ssthresh, self.largest());
        let odds = OddsTable::of(self.loss, state.window);
        let all = |left: Option<u64>, next: State| {
            let later = left.map_or(0.0, |left| {
                self.packets(Duration::from_nanos(left), next.window, next.ssthresh)
            });
            f64::from(state.window) + later
        };
        let given = |chance: f64, mean: f64| if chance > 0.0 { (chance, mean) } else { (0.0, 0.0) };
        let restarted = time.checked_sub(clock.restart);
        Outcomes {
            clean: given(odds.clean, all(time.checked_sub(clock.rtt), state.clean(self.largest()))),
            repaired: given(odds.repaired, all(time.checked_sub(2 * clock.rtt), state.repaired())),
            timed_out: match restarted {
                Some(_) => given(odds.timed_out, all(restarted, State::timed_out(state.window, 2))),
                None => given(odds.timed_out, odds.survivors / odds.timed_out),
            },
        }
    }

    fn largest(&self) -> u32 {
        self.cap.clamp(1, MAX_WINDOW)
    }
}

/// How the paper's equations are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// The model that the paper's text and its figure 5 describe.
    #[default]
    Model,
    /// The equations as printed. The recursive terms of eqs 9, 14 and 22 are not weighted by the chance of their
    /// branch, so that their result grows without bound; a window of one or two packets times out although nothing is
    /// lost (eqs 15, 16 and 18); windows and thresholds may fall to 0 (eqs 12 and 21).
    Literal,
}

/// Makes forecasts, and keeps its tables from one forecast to the next.
#[derive(Clone, Debug, Default)]
pub struct Forecaster {
    pruned: f64,
    odds: OddsTable,
    /// The possible states after each number of round trips, with the number of timeouts being evaluated.
    row: Vec<Place>,
    /// The possible states with one more timeout.
    next_row: Vec<Place>,
}

impl Forecaster {
    /// Makes a forecaster that does not follow sequences of outcomes less probable than [`PRUNED`].
    /// It assumes that such a sequence continues without losses and without growth.
    pub fn pruning(reading: Reading) -> Self {
        let odds = OddsTable::new(reading, 0.0);
        Forecaster { pruned: PRUNED, odds, ..Self::default() }
    }

    /// Makes a forecaster that follows every sequence of outcomes.
    pub fn exact() -> Self {
        Forecaster::default()
    }

    /// See [`Forecast::packets`].
    pub fn packets(&mut self, path: &Forecast, time: Duration, window: u32, ssthresh: u32) -> f64 {
        let Some(clock) = Clock::new(path) else { return 0.0 };
        let grid = Grid::new(clock, clock.horizon(time));
        self.odds.prepare(path.loss);
        // Two places beyond the last, for the states that follow the last rounds.
        for row in [&mut self.row, &mut self.next_row] {
            row.resize_with(row.len().max(grid.rounds as usize + 3), Place::default);
        }
        self.row[0].add(State::new(window, ssthresh, path.largest()), 1.0);
        let mut packets = 0.0;
        // In this order, a place is complete before its rounds are evaluated.
        for timeouts in 0..=grid.timeouts {
            let mut turn = grid.first(timeouts);
            while let Some(at) = turn {
                packets += self.step(path, at);
                turn = grid.next(&at);
                if turn.is_none() {
                    // Rounds that begin after the last turn begin too late to deliver anything.
                    self.row[at.rounds + 1].take_packets();
                }
            }
            core::mem::swap(&mut self.row, &mut self.next_row);
        }
        packets
    }

    /// Mean number of packets that the rounds beginning at `turn` deliver. Enters the states that follow them.
    fn step(&mut self, path: &Forecast, turn: Turn) -> f64 {
        let (until, later) = self.row.split_at_mut(turn.rounds + 1);
        let ([.., place], [clean, repaired, ..]) = (until, later) else { return 0.0 };
        let timed_out = self.next_row.get_mut(turn.rounds);
        let mut step = Step {
            turn,
            loss: path.loss,
            largest: path.largest(),
            pruned: self.pruned,
            odds: &mut self.odds,
            clean,
            repaired,
            timed_out: timed_out.filter(|_| turn.timed_out),
        };
        step.all(place)
    }
}
