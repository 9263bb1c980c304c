//! Loss-compensated, delay-bounded, ECN-aware control for real links.
//!
//! The rate is the bottleneck's, measured with lost packets counted as passed, so random loss does not
//! lower it. Congestion is a standing queue, a mark, or losses that come with our own probing. Bytes in
//! flight are bounded so that our own queue stays within a target, unless someone else keeps the queue
//! full anyway: then the bound is that of a loss-based competitor.

use anabranch_types::{Bitrate, Time};
use core::time::Duration;

use crate::congestion::cwnd::MAX_CWND;
use crate::congestion::marked::MarkBound;
use crate::congestion::{AckEvent, CongestionController, RateSample, TimeoutEvent};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::view::PathView;

/// What the registry says about it.
pub const ENTRY: Entry = Entry {
    name: "compensated",
    summary: "bottleneck rate with losses counted as passed; own queue bounded; answers marks",
    source: "own; filters and phases after BBR (Cardwell et al. 2016), mode switch after Copa (2018)",
    options: &[
        option("initial", "initial window, packets", "10"),
        option("queue", "longest queue of our own", "12ms"),
    ],
};

/// Startup gain: doubles the rate every round trip.
const STARTUP_GAIN: f64 = 2.77;
/// Startup ends when three rounds bring less than this growth.
const STARTUP_GROWTH: f64 = 1.25;
/// Gains of the phases of a probing cycle: up, down, then cruise for the rest.
const UP_GAIN: f64 = 1.25;
const DOWN_GAIN: f64 = 0.75;
/// Growth of the rate during the up phase that means that all of the probing went through.
const FOLLOWED: f64 = 1.15;
/// Rounds of a cycle.
const CYCLE_ROUNDS: u32 = 8;
/// Rounds that the rate filter remembers.
const RATE_ROUNDS: usize = 10;
/// Queue target as a share of the least round-trip time, and its least value.
const TARGET_SHARE: f64 = 0.4;
const LEAST_TARGET: Duration = Duration::from_millis(3);
/// Cycles without a drained queue after which someone else must be holding it.
const HELD_CYCLES: u32 = 2;
/// Cycles with a drained queue after which nobody holds it any more: a loss-based competitor drains it
/// for a moment whenever it backs off.
const CLEAR_CYCLES: u32 = 4;
/// Bandwidth-delay products in flight beside a competitor that fills the buffer.
const COMPETING_PRODUCTS: f64 = 1.8;
/// Least window, packets.
const MIN_PACKETS: u64 = 4;
/// Loss that comes with probing up, beyond that of probing down, that means a shallow buffer.
const EXCESS_LOSS: f64 = 0.1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Startup,
    Drain,
    Up,
    Down,
    Cruise,
}

/// Packets resolved while the sending rate was raised or lowered.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    acked: f64,
    lost: f64,
}

impl Tally {
    fn add(&mut self, event: &AckEvent) {
        self.acked += f64::from(event.acked_packets);
        self.lost += f64::from(event.lost_packets);
    }

    fn loss(&self) -> Option<f64> {
        let total = self.acked + self.lost;
        (total >= 32.0).then(|| self.lost / total)
    }

    fn fade(&mut self) {
        self.acked *= 0.75;
        self.lost *= 0.75;
    }
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Compensated {
    phase: Phase,
    packet: u64,
    initial: u64,
    longest_queue: Duration,
    cwnd: u64,
    pacing: Option<Bitrate>,
    /// Largest rate of each of the last rounds, bits per second, by round modulo the length.
    rates: [u64; RATE_ROUNDS],
    round: u64,
    round_end: u64,
    round_started: Time,
    full_rate: u64,
    full_rounds: u32,
    /// Round of the cycle that is under way.
    cycle_round: u32,
    /// Least queue seen in the cycle.
    least_queue: Duration,
    held_cycles: u32,
    clear_cycles: u32,
    competing: bool,
    marks: MarkBound,
    /// The bound that marks set, as a rate.
    marked: Option<Bitrate>,
    up: Tally,
    down: Tally,
    up_gain: f64,
    /// Largest delivery rate, without the lost packets, of each of the last rounds. It tells whether
    /// sending more brings more; the rate above cannot, once packets are dropped before the bottleneck.
    deliveries: [u64; RATE_ROUNDS],
    /// Delivery rate when the cycle began.
    cycle_delivery: u64,
    /// Last time that the queue stood above the target.
    queued_at: Time,
}

/// Makes it from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn CongestionController>, PolicyError> {
    let initial = options.integer("initial", 1..=1000)?;
    let longest_queue =
        options.duration("queue", Duration::from_millis(1)..=Duration::from_secs(1))?;
    let packet = options.packet_size().clamp(1, MAX_CWND / 1024);
    Ok(Box::new(Compensated {
        phase: Phase::Startup,
        packet,
        initial,
        longest_queue,
        cwnd: initial * packet,
        pacing: None,
        rates: [0; RATE_ROUNDS],
        round: 0,
        round_end: 0,
        round_started: Time::ZERO,
        full_rate: 0,
        full_rounds: 0,
        cycle_round: 0,
        least_queue: Duration::MAX,
        held_cycles: 0,
        clear_cycles: 0,
        competing: false,
        marks: MarkBound::default(),
        marked: None,
        up: Tally::default(),
        down: Tally::default(),
        up_gain: UP_GAIN,
        deliveries: [0; RATE_ROUNDS],
        cycle_delivery: 0,
        queued_at: Time::ZERO,
    }))
}

impl Compensated {
    fn rate(&self) -> u64 {
        self.rates.iter().copied().max().unwrap_or(0)
    }

    fn delivery(&self) -> u64 {
        self.deliveries.iter().copied().max().unwrap_or(0)
    }

    fn slot(&self) -> usize {
        (self.round % RATE_ROUNDS as u64) as usize
    }

    /// The queue that we allow ourselves.
    fn target(&self, event: &AckEvent) -> Duration {
        let own = event.rtt.min.mul_f64(TARGET_SHARE).min(self.longest_queue);
        own.max(LEAST_TARGET)
    }

    /// Takes a rate sample; returns whether a round trip has ended.
    fn update_rate(&mut self, event: &AckEvent) -> bool {
        if event.rtt.queue > self.target(event) {
            self.queued_at = event.now;
        }
        let Some(sample) = event.rate else { return false };
        let mut round_over = false;
        if sample.prior_delivered >= self.round_end {
            self.round += 1;
            self.round_end = event.total_delivered;
            self.round_started = event.now;
            self.rates[self.slot()] = 0;
            self.deliveries[self.slot()] = 0;
            round_over = true;
        }
        let rate = self.bottleneck_rate(event, &sample).as_bps();
        if !sample.app_limited || rate > self.rate() {
            let slot = self.slot();
            self.rates[slot] = self.rates[slot].max(rate);
        }
        let slot = self.slot();
        self.deliveries[slot] = self.deliveries[slot].max(sample.delivery_rate().as_bps());
        round_over
    }

    /// What left the bottleneck. If a long queue stood within the sample, some of the lost packets may have been dropped
    /// before it, so then only as many count as random loss explains.
    fn bottleneck_rate(&self, event: &AckEvent, sample: &RateSample) -> Bitrate {
        let passed = sample.resolved_rate();
        if event.largest_acked_sent > self.queued_at {
            return passed;
        }
        let loss = event.loss.mean.clamp(0.0, 0.95);
        passed.min(sample.delivery_rate().mul_f64(1.0 / (1.0 - loss)))
    }

    fn answer_marks(&mut self, event: &AckEvent) {
        if self.marks.on_ack(event, self.packet) {
            match self.phase {
                Phase::Startup => self.enter(Phase::Drain),
                Phase::Up => self.enter(Phase::Down),
                _ => {}
            }
        }
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
    }

    fn advance(&mut self, event: &AckEvent, round_over: bool) {
        self.least_queue = self.least_queue.min(event.rtt.queue);
        let target = self.target(event);
        match self.phase {
            Phase::Startup => {
                if round_over {
                    self.check_full(event);
                }
                if event.rtt.queue > target.max(event.rtt.min / 2) && self.rate() > 0 {
                    self.enter(Phase::Drain);
                }
            }
            Phase::Drain => {
                if event.rtt.queue < target / 2 || event.bytes_in_flight <= self.product(event) {
                    self.start_cycle();
                }
            }
            Phase::Up => {
                self.up.add(event);
                let full = event.rtt.queue >= target && !self.competing;
                let followed = self.delivery() as f64 >= self.cycle_delivery as f64 * FOLLOWED;
                if full || (round_over && self.cycle_round >= 1) {
                    self.enter(Phase::Down);
                    if followed && event.rtt.queue < target {
                        // All that was added went through: there is more room than probing would find soon.
                        self.full_rate = self.delivery();
                        self.full_rounds = 0;
                        self.enter(Phase::Startup);
                    }
                }
            }
            Phase::Down => {
                self.down.add(event);
                if event.rtt.queue < target / 4 || (round_over && self.cycle_round >= 2) {
                    self.enter(Phase::Cruise);
                }
            }
            Phase::Cruise => {
                if self.cycle_round >= CYCLE_ROUNDS {
                    self.end_cycle(event);
                }
            }
        }
        if round_over {
            self.cycle_round += 1;
        }
    }

    fn check_full(&mut self, event: &AckEvent) {
        if event.rate.is_some_and(|sample| sample.app_limited) {
            return;
        }
        let rate = self.delivery();
        if rate as f64 >= self.full_rate as f64 * STARTUP_GROWTH {
            self.full_rate = rate;
            self.full_rounds = 0;
        } else {
            self.full_rounds += 1;
            if self.full_rounds >= 3 {
                self.enter(Phase::Drain);
            }
        }
    }

    fn start_cycle(&mut self) {
        self.cycle_round = 0;
        self.cycle_delivery = self.delivery();
        self.least_queue = Duration::MAX;
        self.enter(Phase::Up);
    }

    fn end_cycle(&mut self, event: &AckEvent) {
        if self.least_queue > self.target(event) {
            self.clear_cycles = 0;
            self.held_cycles += 1;
            self.competing |= self.held_cycles >= HELD_CYCLES;
        } else {
            self.held_cycles = 0;
            self.clear_cycles += u32::from(self.least_queue < self.target(event) / 2);
            self.competing &= self.clear_cycles < CLEAR_CYCLES;
        }
        // A buffer shallower than our target never shows a queue: it shows losses when we probe.
        let excess = match (self.up.loss(), self.down.loss()) {
            (Some(up), Some(down)) => up - down,
            _ => 0.0,
        };
        self.up_gain = if excess > EXCESS_LOSS { 1.05 } else { UP_GAIN };
        if excess > EXCESS_LOSS {
            for rate in &mut self.rates {
                *rate = (*rate as f64 * (1.0 - excess / 2.0)) as u64;
            }
        }
        self.up.fade();
        self.down.fade();
        self.start_cycle();
    }

    /// Bytes that fill the path without a queue, the delay of acknowledgements included.
    fn product(&self, event: &AckEvent) -> u64 {
        let base = event.rtt.smoothed.saturating_sub(event.rtt.queue).max(event.rtt.min);
        Bitrate::from_bps(self.rate()).bytes_in(base.min(event.rtt.min * 2))
    }

    fn update_cwnd(&mut self, event: &AckEvent) {
        let rate = Bitrate::from_bps(self.rate());
        if rate == Bitrate::ZERO {
            return;
        }
        let product = self.product(event);
        // Lost packets stay in flight until three later ones have arrived.
        let undetected = 3.0 / (1.0 - event.loss.mean.min(0.9)) * self.packet as f64;
        let slack = undetected as u64 + 2 * self.packet;
        let cwnd = match self.phase {
            Phase::Startup => (product as f64 * STARTUP_GAIN) as u64 + slack,
            _ if self.competing => (COMPETING_PRODUCTS * product as f64) as u64 + slack,
            _ => product + rate.bytes_in(self.target(event)) + slack,
        };
        let least = match self.phase {
            Phase::Startup => self.initial.max(MIN_PACKETS) * self.packet,
            _ => MIN_PACKETS * self.packet,
        };
        let cwnd = cwnd.clamp(least, MAX_CWND);
        self.marks.release_above(2 * cwnd);
        let marked = self.marks.bytes().map_or(MAX_CWND, |bound| bound + slack);
        self.cwnd = cwnd.min(marked).max(self.packet);
    }

    fn update_pacing(&mut self, event: &AckEvent) {
        let gain = match self.phase {
            Phase::Startup => STARTUP_GAIN,
            Phase::Drain => 0.5,
            Phase::Up => self.up_gain,
            Phase::Down => DOWN_GAIN,
            Phase::Cruise => 1.0,
        };
        let mut rate = Bitrate::from_bps(self.rate());
        if self.phase == Phase::Startup && event.rtt.samples > 0 {
            // First samples come from single packets and say little: never pace below the window.
            rate = rate.max(Bitrate::from_transfer(self.cwnd, event.rtt.smoothed));
        }
        // A few packets a round trip, whatever was measured: without them nothing would be measured.
        let least = Bitrate::from_transfer(MIN_PACKETS * self.packet, event.rtt.smoothed);
        let modelled = (rate > Bitrate::ZERO).then(|| rate.mul_f64(gain).max(least));
        self.marked = self.marks.rate(event.rtt.smoothed);
        self.pacing = match (modelled, self.marked) {
            (Some(modelled), Some(marked)) => Some(modelled.min(marked)),
            (modelled, marked) => modelled.or(marked),
        };
    }
}

impl CongestionController for Compensated {
    fn on_ack(&mut self, event: &AckEvent, _siblings: &[PathView]) {
        let round_over = self.update_rate(event);
        self.answer_marks(event);
        self.advance(event, round_over);
        self.update_cwnd(event);
        self.update_pacing(event);
    }

    fn on_timeout(&mut self, _event: &TimeoutEvent) {
        // Whatever was known about the path is out of date. Start over small, so that a path that returns
        // is loaded gradually.
        self.rates = [0; RATE_ROUNDS];
        self.deliveries = [0; RATE_ROUNDS];
        self.full_rate = 0;
        self.full_rounds = 0;
        self.competing = false;
        self.cwnd = MIN_PACKETS * self.packet;
        self.pacing = None;
        self.enter(Phase::Startup);
    }

    fn penalise(&mut self) {
        self.cwnd = (self.cwnd / 2).max(MIN_PACKETS * self.packet);
    }

    fn set_packet_size(&mut self, bytes: u64) {
        self.packet = bytes.clamp(1, MAX_CWND / 1024);
        self.cwnd = self.cwnd.max(MIN_PACKETS * self.packet);
    }

    fn cwnd(&self) -> u64 {
        self.cwnd
    }

    fn pacing_rate(&self) -> Option<Bitrate> {
        self.pacing
    }

    fn bandwidth(&self) -> Option<Bitrate> {
        let measured = (self.rate() > 0).then(|| Bitrate::from_bps(self.rate()));
        measured.map(|rate| self.marked.map_or(rate, |marked| rate.min(marked)))
    }

    fn phase(&self) -> &'static str {
        match self.phase {
            Phase::Startup => "startup",
            Phase::Drain => "drain",
            _ if self.competing => "competing",
            Phase::Up => "probe-up",
            Phase::Down => "probe-down",
            Phase::Cruise => "cruise",
        }
    }
}
