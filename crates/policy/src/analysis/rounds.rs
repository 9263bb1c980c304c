//! How many packets a TCP window delivers within a time, losses, fast retransmissions and timeouts
//! included: LATE's forecast.
//!
//! A round sends a window w. If all of it arrives, the next round begins after a round trip R, with 2w packets
//! below the slow-start threshold and w + 1 above. If some is lost, but three packets arrive, the rest is
//! retransmitted fast: the next round begins after 2R, with w/2. If fewer than three arrive, the timer has to fire:
//! the next round begins after RTO + R/2, with one packet.

mod grid;
mod odds;

use anabranch_types::math;
use core::time::Duration;

use grid::{Clock, Grid, Turn};
use odds::OddsTable;

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

/// Windows beyond this many packets are forecast as this many.
pub const MAX_WINDOW: u32 = 512;

/// Times beyond this many round trips are forecast as this many.
pub const MAX_ROUNDS: u32 = 200;

/// Courses of events that are less probable than this are left out of what a scheduler asks for.
pub const PRUNED: f64 = 1e-6;

/// The three ways in which a round may end, each with its chance and the packets delivered in all the
/// time, given that way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcomes {
    /// Nothing is lost.
    pub clean: (f64, f64),
    /// Some packets are lost and retransmitted fast.
    pub repaired: (f64, f64),
    /// So many are lost that the retransmission timer has to fire. Where the time is too short for
    /// that the packets are those of the round that arrive.
    pub timed_out: (f64, f64),
}

impl Forecast {
    /// N(T, w, s): the mean number of packets delivered within `time` from a window of `window`
    /// packets with slow-start threshold `ssthresh` (LATE eqs 1–23).
    ///
    /// Where the printed equations differ from the model they describe this follows the model: the
    /// recursive terms carry the probability of their branch, and thresholds are at least 2.
    pub fn packets(&self, time: Duration, window: u32, ssthresh: u32) -> f64 {
        Forecaster::exact().packets(self, time, window, ssthresh)
    }

    /// The packets delivered within `time` if each round ends as it most likely does: without a loss, if the chance of
    /// that is a half or more, else repaired fast. Of the last round as many are lost as is likeliest. Knows no timeouts.
    ///
    /// LATE §II describes DPSAF's forecast so; what it does in the last round is not published, and derived here.
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

    /// The branches of the first round, for `time` of at least 3/2 round trips; before that there
    /// is no second round to branch into, and all are zero.
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
                Some(_) => given(odds.timed_out, all(restarted, state.timed_out(2))),
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
    /// As the model that its text and its figure 5 describe.
    #[default]
    Model,
    /// As they are printed. The recursive terms of eqs 9, 14 and 22 are not weighted by the chance of their branch, so
    /// that what they give grows beyond all bounds; a window of one or two packets times out although nothing is lost
    /// (eqs 15, 16 and 18); windows and thresholds may fall to 0 (eqs 12 and 21).
    Literal,
}

/// Makes forecasts, and keeps its tables from one to the next.
#[derive(Clone, Debug, Default)]
pub struct Forecaster {
    pruned: f64,
    odds: OddsTable,
    /// What a path may be doing after each number of round trips, and as many timeouts as are looked at.
    row: Vec<Place>,
    /// The same after one timeout more.
    next_row: Vec<Place>,
    spans: Vec<(usize, usize)>,
}

impl Forecaster {
    /// Follows no course of events that is less probable than [`PRUNED`]: it counts as one that goes on without a
    /// loss and without growth.
    pub fn pruning(reading: Reading) -> Self {
        let odds = OddsTable::new(reading, 0.0);
        Forecaster { pruned: PRUNED, odds, ..Self::default() }
    }

    /// Follows every course of events.
    pub fn exact() -> Self {
        Forecaster::default()
    }

    /// See [`Forecast::packets`].
    pub fn packets(&mut self, path: &Forecast, time: Duration, window: u32, ssthresh: u32) -> f64 {
        let Some(clock) = Clock::new(path) else { return 0.0 };
        let grid = Grid::new(clock, clock.horizon(time));
        self.odds.prepare(path.loss);
        for row in [&mut self.row, &mut self.next_row] {
            row.resize_with(row.len().max(grid.rounds as usize + 1), Place::default);
        }
        self.row[0].add(State::new(window, ssthresh, path.largest()), 1.0);
        let mut packets = 0.0;
        // Whatever leads to a time lies before it in this order.
        for timeouts in 0..=grid.timeouts {
            let mut turn = grid.first(timeouts);
            while let Some(at) = turn {
                let mut place = core::mem::take(&mut self.row[at.rounds]);
                place.drain(|state, chance| packets += self.round(path, &at, state, chance));
                packets += self.steady(path, &at, &mut place);
                self.row[at.rounds] = place;
                turn = grid.next(&at);
            }
            core::mem::swap(&mut self.row, &mut self.next_row);
        }
        packets
    }

    /// As [`round`](Self::round) for every state of `place` that is beyond slow start, which it takes out.
    fn steady(&mut self, path: &Forecast, turn: &Turn, place: &mut Place) -> f64 {
        let mut spans = core::mem::take(&mut self.spans);
        spans.clear();
        spans.append(&mut place.spans);
        spans.sort_unstable();
        let (mut packets, mut from) = (0.0, 0);
        while let Some(&(low, mut high)) = spans.get(from) {
            from += 1;
            while let Some((_, end)) = spans.get(from).filter(|(next, _)| *next <= high) {
                (high, from) = (high.max(*end), from + 1);
            }
            packets += self.span(path, turn, &mut place.steady, (low, high));
        }
        self.spans = spans;
        packets
    }

    /// The same for windows from `low` to below `high`.
    fn span(
        &mut self,
        path: &Forecast,
        turn: &Turn,
        steady: &mut [f64],
        (mut low, mut high): (usize, usize),
    ) -> f64 {
        // Improbable ends are cut off; in the last round everything ends.
        let (scale, limit) = match turn.more {
            0 => (turn.last(path.loss), f64::INFINITY),
            more => (f64::from(more + 1), self.pruned),
        };
        let mut packets = 0.0;
        while low < high && steady[low] < limit {
            packets += core::mem::take(&mut steady[low]) * low as f64 * scale;
            low += 1;
        }
        while low < high && steady[high - 1] < limit {
            high -= 1;
            packets += core::mem::take(&mut steady[high]) * high as f64 * scale;
        }
        if low == high {
            return packets;
        }
        self.odds.extend(high as u32);
        let (effects, chances) = (&self.odds.effects[low..high], &mut steady[low..high]);
        let rounds = || chances.iter().zip(effects);
        packets += rounds().map(|(chance, effect)| chance * effect.delivered(turn)).sum::<f64>();
        if turn.clean {
            let next = self.row[turn.rounds + 1].cover(low + 1, high + 1);
            for (next, (chance, effect)) in next.iter_mut().zip(rounds()) {
                *next += chance * effect.clean;
            }
            self.row[turn.rounds + 1].bound(path.largest() as usize);
        }
        if turn.repaired {
            let next = self.row[turn.rounds + 2].cover(low / 2, high.div_ceil(2));
            for (at, (chance, effect)) in (low % 2..).zip(rounds()) {
                next[at / 2] += chance * effect.repaired;
            }
        }
        if turn.timed_out {
            let (least, negligible) = (self.odds.least_threshold(), self.pruned * self.pruned);
            for (window, (chance, effect)) in (low as u32..).zip(rounds()) {
                if chance * effect.timed_out > negligible {
                    let state = State { window, ssthresh: 0 }.timed_out(least);
                    self.next_row[turn.rounds].add(state, chance * effect.timed_out);
                }
            }
        }
        chances.fill(0.0);
        packets
    }

    /// The packets of one round, by the chance that there is such a round; what may be next is noted.
    fn round(&mut self, path: &Forecast, turn: &Turn, state: State, chance: f64) -> f64 {
        let window = f64::from(state.window);
        if turn.more == 0 {
            return chance * window * turn.last(path.loss);
        }
        if chance < self.pruned {
            return chance * window * f64::from(turn.more + 1);
        }
        let at = self.odds.extend(state.window);
        let (effect, negligible) = (self.odds.effects[at], self.pruned * self.pruned);
        let then = |place: Option<&mut Place>, odds: f64, next: State| {
            if let Some(place) = place
                && chance * odds > negligible
            {
                place.add(next, chance * odds);
            }
        };
        let rounds = turn.rounds;
        let clean = turn.clean.then(|| &mut self.row[rounds + 1]);
        then(clean, effect.clean, state.clean(path.largest()));
        let repaired = turn.repaired.then(|| &mut self.row[rounds + 2]);
        then(repaired, effect.repaired, state.repaired());
        let restarted = turn.timed_out.then(|| &mut self.next_row[rounds]);
        then(restarted, effect.timed_out, state.timed_out(self.odds.least_threshold()));
        chance * effect.delivered(turn)
    }
}

/// What a path is doing: its window and slow-start threshold, packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    window: u32,
    /// 0 once the window has reached it: then it decides nothing any more, and states that differ in it alone are one.
    ssthresh: u32,
}

impl State {
    fn new(window: u32, ssthresh: u32, largest: u32) -> Self {
        let window = window.clamp(1, largest);
        let ssthresh = if window < ssthresh { ssthresh.min(largest + 1) } else { 0 };
        State { window, ssthresh }
    }

    /// After a round without a loss (eqs 7 and 8).
    fn clean(self, largest: u32) -> Self {
        let State { window, ssthresh } = self;
        State::new(if window < ssthresh { 2 * window } else { window + 1 }, ssthresh, largest)
    }

    /// After one whose losses are retransmitted fast (eqs 12 and 13).
    fn repaired(self) -> Self {
        State { window: self.window / 2, ssthresh: 0 }
    }

    /// After one that the timer ends (eqs 20 and 21).
    fn timed_out(self, least: u32) -> Self {
        State::new(1, (self.window / 2).max(least), MAX_WINDOW)
    }
}

/// What a path may be doing at a time, each with its chance.
#[derive(Clone, Debug, Default)]
struct Place {
    /// Beyond slow start, by window; others than those in `spans` are 0.
    steady: Vec<f64>,
    /// From a window to below another, in no order; they may overlap.
    spans: Vec<(usize, usize)>,
    /// In slow start, in no order; the same may be there several times.
    starting: Vec<(State, f64)>,
}

impl Place {
    fn add(&mut self, state: State, chance: f64) {
        if state.ssthresh > 0 {
            match self.starting.last_mut() {
                Some((last, sum)) if *last == state => *sum += chance,
                _ => self.starting.push((state, chance)),
            }
            return;
        }
        let window = state.window as usize;
        self.cover(window, window + 1)[0] += chance;
    }

    /// The chances of windows from `low` to below `high`, to be added to.
    fn cover(&mut self, low: usize, high: usize) -> &mut [f64] {
        if self.steady.len() < high {
            self.steady.resize(high, 0.0);
        }
        match self.spans.last_mut() {
            Some((first, end)) if low <= *end && *first <= high => {
                (*first, *end) = (low.min(*first), high.max(*end));
            }
            _ => self.spans.push((low, high)),
        }
        &mut self.steady[low..high]
    }

    /// No window of the chances added last is larger than `largest`: those of one more count as that.
    fn bound(&mut self, largest: usize) {
        if let Some(beyond) = self.steady.get_mut(largest + 1).map(core::mem::take) {
            self.steady[largest] += beyond;
        }
        if let Some((low, high)) = self.spans.last_mut() {
            (*low, *high) = ((*low).min(largest), (*high).min(largest + 1));
        }
    }

    /// Takes out each state that is in slow start once.
    fn drain(&mut self, mut each: impl FnMut(State, f64)) {
        self.starting.sort_unstable_by_key(|(state, _)| *state);
        let mut starting = self.starting.drain(..).peekable();
        while let Some((state, mut chance)) = starting.next() {
            while let Some((_, more)) = starting.next_if(|(other, _)| *other == state) {
                chance += more;
            }
            each(state, chance);
        }
    }
}
