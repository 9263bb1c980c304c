//! How many packets a TCP window delivers within a time, losses, fast retransmissions and timeouts
//! included: LATE's forecast.
//!
//! A round sends a window w. If all of it arrives, the next round begins after a round trip R, with 2w packets
//! below the slow-start threshold and w + 1 above. If some is lost, but three packets arrive, the rest is
//! retransmitted fast: the next round begins after 2R, with w/2. If fewer than three arrive, the timer has to fire:
//! the next round begins after RTO + R/2, with one packet.

use anabranch_types::math;
use core::time::Duration;

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
    /// How LATE §II describes DPSAF's forecast; the last round is derived.
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
                false => (clock.rtt.saturating_mul(2), State::new(state.window / 2, 0, MAX_WINDOW)),
            };
            (left, state) = (left.saturating_sub(took), next);
        }
        packets
    }

    /// The branches of the first round, for `time` of at least 3/2 round trips; before that there
    /// is no second round to branch into, and all are zero.
    pub fn outcomes(&self, time: Duration, window: u32, ssthresh: u32) -> Outcomes {
        let Some(clock) = Clock::new(self).filter(|clock| time >= clock.second_round()) else {
            return Outcomes::default();
        };
        let time = clock.horizon(time);
        let state = State::new(window, ssthresh, self.largest());
        let odds = OddsTable { loss: self.loss, ..OddsTable::default() }.of(state.window);
        let all = |left: Option<Duration>, next: State| {
            let later = left.map_or(0.0, |left| self.packets(left, next.window, next.ssthresh));
            f64::from(state.window) + later
        };
        let given = |chance: f64, mean: f64| if chance > 0.0 { (chance, mean) } else { (0.0, 0.0) };
        let restarted = time.checked_sub(clock.restart);
        Outcomes {
            clean: given(odds.clean, all(time.checked_sub(clock.rtt), state.clean(self.largest()))),
            repaired: given(
                odds.repaired,
                all(time.checked_sub(clock.rtt.saturating_mul(2)), state.repaired()),
            ),
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
}

impl Forecaster {
    /// Follows no course of events that is less probable than [`PRUNED`]: it counts as one that goes on without a
    /// loss and without growth.
    pub fn pruning(reading: Reading) -> Self {
        let odds = OddsTable { reading, ..OddsTable::default() };
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
            for rounds in 0..=grid.rounds {
                let Some(turn) = grid.turn(rounds, timeouts) else { break };
                let mut place = core::mem::take(&mut self.row[rounds as usize]);
                place.drain(|state, chance| packets += self.round(path, &turn, state, chance));
                self.row[rounds as usize] = place;
            }
            core::mem::swap(&mut self.row, &mut self.next_row);
        }
        packets
    }

    /// The packets of one round, by the chance that there is such a round; what may be next is noted.
    fn round(&mut self, path: &Forecast, turn: &Turn, state: State, chance: f64) -> f64 {
        let window = f64::from(state.window);
        if turn.more == 0 {
            let arrives = if turn.arrives { 1.0 - path.loss } else { 0.0 };
            return chance * window * arrives;
        }
        if chance < self.pruned {
            return chance * window * f64::from(turn.more + 1);
        }
        let odds = self.odds.of(state.window);
        let literal = self.odds.reading == Reading::Literal;
        let negligible = self.pruned * self.pruned;
        let then = |place: Option<&mut Place>, odds: f64, next: State| {
            let chance = if literal { chance } else { chance * odds };
            if let Some(place) = place
                && chance > negligible
            {
                place.add(next, chance);
            }
        };
        let at = turn.rounds;
        then(turn.clean.then(|| &mut self.row[at + 1]), odds.clean, state.clean(path.largest()));
        then(turn.repaired.then(|| &mut self.row[at + 2]), odds.repaired, state.repaired());
        let least = if literal { 0 } else { 2 };
        let restarted = turn.timed_out.then(|| &mut self.next_row[at]);
        then(restarted, odds.timed_out, state.timed_out(least));
        let late = if turn.timed_out { window * odds.timed_out } else { odds.survivors };
        chance * (window * (odds.clean + odds.repaired) + late)
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
    /// Beyond slow start, by window; others than those from `low` to below `high` are 0.
    steady: Vec<f64>,
    low: usize,
    high: usize,
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
        if self.low == self.high {
            (self.low, self.high) = (window, window);
        }
        (self.low, self.high) = (self.low.min(window), self.high.max(window + 1));
        if self.steady.len() <= window {
            self.steady.resize(window + 1, 0.0);
        }
        self.steady[window] += chance;
    }

    /// Takes out each state once.
    fn drain(&mut self, mut each: impl FnMut(State, f64)) {
        self.starting.sort_unstable_by_key(|(state, _)| *state);
        let mut starting = self.starting.drain(..).peekable();
        while let Some((state, mut chance)) = starting.next() {
            while let Some((_, more)) = starting.next_if(|(other, _)| *other == state) {
                chance += more;
            }
            each(state, chance);
        }
        for window in self.low..self.high {
            let chance = core::mem::take(&mut self.steady[window]);
            if chance > 0.0 {
                each(State { window: window as u32, ssthresh: 0 }, chance);
            }
        }
        (self.low, self.high) = (0, 0);
    }
}

/// The steps of time.
#[derive(Clone, Copy, Debug)]
struct Clock {
    rtt: Duration,
    half: Duration,
    /// From a round to the next if the timer has to fire.
    restart: Duration,
}

impl Clock {
    /// `None` if the path takes no time.
    fn new(path: &Forecast) -> Option<Self> {
        let half = path.rtt / 2;
        let clock = Clock { rtt: path.rtt, half, restart: path.rto.saturating_add(half) };
        (!half.is_zero()).then_some(clock)
    }

    fn horizon(&self, time: Duration) -> Duration {
        time.min(self.rtt.saturating_mul(MAX_ROUNDS))
    }

    /// Until the packets of the second round have arrived.
    fn second_round(&self) -> Duration {
        self.rtt.saturating_add(self.half)
    }
}

/// The times at which rounds may begin: after so many round trips and so many timeouts.
#[derive(Clone, Copy, Debug)]
struct Grid {
    clock: Clock,
    time: Duration,
    rounds: u32,
    timeouts: u32,
}

impl Grid {
    fn new(clock: Clock, time: Duration) -> Self {
        let most = |step: Duration| (time.as_nanos() / step.as_nanos()) as u32;
        Grid { clock, time, rounds: most(clock.rtt), timeouts: most(clock.restart) }
    }

    fn left(&self, rounds: u32, timeouts: u32) -> Option<Duration> {
        let left = self.time.checked_sub(self.clock.rtt.checked_mul(rounds)?)?;
        left.checked_sub(self.clock.restart.checked_mul(timeouts)?)
    }

    /// One of them; `None` if the time is over before.
    fn turn(&self, rounds: u32, timeouts: u32) -> Option<Turn> {
        let left = self.left(rounds, timeouts)?;
        let more = left.saturating_sub(self.clock.half).as_nanos() / self.clock.rtt.as_nanos();
        Some(Turn {
            rounds: rounds as usize,
            arrives: left >= self.clock.half,
            more: more as u32,
            clean: self.left(rounds + 1, timeouts).is_some(),
            repaired: self.left(rounds + 2, timeouts).is_some(),
            timed_out: self.left(rounds, timeouts + 1).is_some(),
        })
    }
}

/// A time at which rounds may begin.
#[derive(Clone, Copy, Debug)]
struct Turn {
    /// Round trips until then.
    rounds: usize,
    /// Whether the packets of a round that begins then arrive in time.
    arrives: bool,
    /// Rounds without losses that begin later and whose packets arrive in time as well.
    more: u32,
    /// Whether the round after it begins before the time is over, by how it ends.
    clean: bool,
    repaired: bool,
    timed_out: bool,
}

/// The chances of how a round ends.
#[derive(Clone, Copy, Debug)]
struct Odds {
    clean: f64,
    repaired: f64,
    timed_out: f64,
    /// Packets of a round that times out which arrive, by the chance that it does.
    survivors: f64,
}

/// Odds by window, for one loss probability.
#[derive(Clone, Debug, Default)]
struct OddsTable {
    reading: Reading,
    loss: f64,
    odds: Vec<Odds>,
    /// Powers of the chances that a packet arrives and that it is lost.
    arrived: Vec<f64>,
    lost: Vec<f64>,
}

impl OddsTable {
    /// Empties the table if it is for another loss probability.
    fn prepare(&mut self, loss: f64) {
        if self.loss != loss {
            self.loss = loss;
            self.odds.clear();
            self.arrived.clear();
            self.lost.clear();
        }
    }

    fn of(&mut self, window: u32) -> Odds {
        while self.odds.len() <= window as usize {
            let next = |powers: &[f64], base| powers.last().map_or(1.0, |last| last * base);
            self.arrived.push(next(&self.arrived, 1.0 - self.loss));
            self.lost.push(next(&self.lost, self.loss));
            self.odds.push(self.compute(self.odds.len()));
        }
        self.odds[window as usize]
    }

    /// Eqs 5, 10 and 15.
    fn compute(&self, window: usize) -> Odds {
        let clean = self.arrived[window];
        // Three that arrive are three duplicate acknowledgements.
        let literal = self.reading == Reading::Literal;
        let few = if literal { window + 1 } else { window }.min(3);
        let (mut timed_out, mut survivors) = (0.0, 0.0);
        let mut ways = 1.0;
        for arrived in 0..few {
            let chance = ways * self.arrived[arrived] * self.lost[window - arrived];
            timed_out += chance;
            survivors += chance * arrived as f64;
            ways *= (window - arrived) as f64 / (arrived + 1) as f64;
        }
        let repaired = if window < 4 { 0.0 } else { (1.0 - clean - timed_out).max(0.0) };
        Odds { clean, repaired, timed_out, survivors }
    }
}
