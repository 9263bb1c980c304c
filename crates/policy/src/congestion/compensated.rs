//! Loss-compensated, delay-bounded, ECN-aware control for real links.
//!
//! The controller makes three estimates, each in a module of its own; the end of startup has a
//! module too. The bottleneck's *rate*: packets lost at random count as delivered, so that such
//! loss does not lower it; `variation` measures how much it varies. The *delay*: what remains while
//! we send less than the path carries is the floor, which is the path's own delay or another flow's
//! queue; what rises above the floor is our own queue, which is kept short. The *losses*: losses
//! beyond random loss while the queue is longest are due to congestion, and so are all losses that
//! grow with our sending rate; a CUBIC window then limits what we send.
//!
//! The pacing rate follows a cycle: above the estimated rate to find more, below it until our own
//! queue is gone, which shows the floor, and then at the rate for some round trips. `answer`
//! measures how a queue changes while we send less. A queue that shrinks but never empties belongs
//! to another flow; we then compete with a window alone. `bounds` sets the window and the rate of
//! each phase.

mod answer;
mod bounds;
mod delay;
mod excess;
mod random;
mod rate;
mod response;
mod rival;
mod startup;
mod variation;

use anabranch_types::{Bitrate, Time};
use core::time::Duration;

use crate::congestion::coupling::flow_share;
use crate::congestion::cwnd::MAX_CWND;
use crate::congestion::marked::MarkBound;
use crate::congestion::{AckEvent, CongestionController, RateSample, TimeoutEvent};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::view::PathView;
use answer::Answer;
use bounds::{DOWN_GAIN, DRAIN_GAIN};
use delay::Delay;
use rate::{RandomLoss, Rate};
use response::Response;
use rival::Rival;
use startup::Startup;
use variation::Variation;

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "compensated",
    summary: "bottleneck rate with losses counted as passed; own queue bounded; answers marks",
    source: "own; phases after BBR (Cardwell et al. 2016), window beside rivals RFC 9438",
    options: &[
        option("initial", "initial window, packets", "10"),
        option("queue", "longest queue of our own", "12ms"),
    ],
};

/// If the delivery rate grows by this factor while probing up, the path carried all that was added.
const FOLLOWED: f64 = 1.15;
/// Rounds of a cycle at the rate itself, and below how many more: flows whose cycles are equally
/// long would always probe in the same order. A queue may end these rounds early, but not before
/// `LEAST_CRUISE`.
const CRUISE_ROUNDS: u32 = 8;
const MORE_CRUISE: u64 = 5;
const LEAST_CRUISE: u32 = 3;
/// Rounds after which acknowledgements show the effect of another rate. The packets acknowledged in
/// the first round were sent before the change.
const SHOWN_ROUNDS: u32 = 2;
/// Rounds of sending less after which a queue that still drains is not ours.
const DOWN_ROUNDS: u32 = 4;
/// Most rounds of sending less.
const DRAIN_ROUNDS: u32 = 12;
/// Rounds between two checks whether a rival still holds the queue, and most time between them:
/// where the path's rate has fallen, there is no rival, and round trips through the queue are long.
const COMPETE_ROUNDS: u32 = 16;
const COMPETE_TIME: Duration = Duration::from_secs(2);
/// A delay comes from a queue if it shrinks by at least the first share of what we did not send.
/// From the second share on, all of the queue is ours.
const RESPONDS: f64 = 0.3;
const ALL_OURS: f64 = 0.8;
/// At least this share of the sending rate arrives if the bottleneck has not become slower.
const ARRIVES: f64 = 0.85;
/// Delays, in units of the time that one packet takes to pass the bottleneck. Below the first, none of our packets is
/// taken to wait. Below the second, no other flow is taken to hold a queue, since our own packets leave in trains and
/// wait for each other.
const FEW: f64 = 2.0;
const TRAIN: f64 = 8.0;
/// Queue target as a share of the round-trip time, and its least value, s.
const TARGET_SHARE: f64 = 0.2;
const LEAST_TARGET: f64 = 0.003;
/// Timeouts in a row after which the controller starts over. Fewer may come from a run of losses
/// that includes the probes. Such a run ends after a number of packets, not after a time, and the
/// path is then unchanged.
const DEAD_TIMEOUTS: u32 = 3;
/// Least window, packets.
const MIN_PACKETS: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Startup,
    Drain,
    Cruise,
    Up,
    Down,
    Compete,
}

/// The loss-compensated, delay-bounded controller; the module's documentation describes it.
#[derive(Clone, Debug)]
pub struct Compensated {
    packet: u64,
    initial: u64,
    /// Most that our queue may add to the delay, s.
    longest_queue: f64,
    phase: Phase,
    /// The previous phase.
    before: Phase,
    /// When the phase began, rounds that it has lasted, and rounds that cruising lasts in this cycle.
    entered: Time,
    rounds: u32,
    cruise_rounds: u32,
    cwnd: u64,
    pacing: Option<Bitrate>,
    gain: f64,
    rate: Rate,
    variation: Variation,
    delay: Delay,
    rival: Rival,
    response: Response,
    startup: Startup,
    /// Delivery rate when the up phase began, bits per second.
    before_up: f64,
    /// How the queue changes while we send less.
    answer: Answer,
    /// Whether a full queue dropped packets in this round.
    congested: bool,
    marks: MarkBound,
    /// The bound set by congestion marks, as a rate.
    marked: Option<Bitrate>,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn CongestionController>, PolicyError> {
    let initial = options.integer("initial", 1..=1000)?;
    let longest_queue =
        options.duration("queue", Duration::from_millis(1)..=Duration::from_secs(1))?;
    let packet = options.packet_size().clamp(1, MAX_CWND / 1024);
    Ok(Box::new(Compensated {
        packet,
        initial,
        longest_queue: longest_queue.as_secs_f64(),
        phase: Phase::Startup,
        before: Phase::Startup,
        entered: Time::ZERO,
        rounds: 0,
        cruise_rounds: CRUISE_ROUNDS,
        cwnd: initial * packet,
        pacing: None,
        gain: startup::GAIN,
        rate: Rate::default(),
        variation: Variation::default(),
        delay: Delay::default(),
        rival: Rival::default(),
        response: Response::default(),
        startup: Startup::default(),
        before_up: 0.0,
        answer: Answer::default(),
        congested: false,
        marks: MarkBound::default(),
        marked: None,
    }))
}

impl Compensated {
    /// The longest queue of our own that we allow, s.
    fn target(&self) -> f64 {
        (self.delay.typical() * TARGET_SHARE).min(self.longest_queue).max(LEAST_TARGET)
    }

    /// Bytes sent at the estimated rate in `rtt` seconds.
    fn product(&self, rtt: f64) -> f64 {
        self.rate.bps() / 8.0 * rtt
    }

    /// How long this many packets take to pass the bottleneck, s.
    fn passing(&self, packets: f64) -> f64 {
        packets * self.packet as f64 * 8.0 / self.rate.bps().max(1.0)
    }

    /// Whether another flow's queue explains the delay and trains of our own packets do not.
    fn is_rivals(&self) -> bool {
        self.delay.is_steady() && self.delay.level() > self.passing(TRAIN)
    }

    /// Whether so little is in flight that none of our packets can be queued.
    fn is_empty(&self, event: &AckEvent) -> bool {
        event.bytes_in_flight as f64 <= self.product(self.delay.typical())
    }

    fn enter(&mut self, event: &AckEvent, phase: Phase) {
        (self.before, self.phase, self.rounds) = (self.phase, phase, 0);
        self.entered = event.now;
        self.response.end(event.now);
        match phase {
            Phase::Startup => {
                self.startup.begin(self.rate.delivery(), self.before == Phase::Up);
            }
            Phase::Up => {
                self.answer_response(event);
                self.response.send_more(event.now);
                self.before_up = self.rate.delivery();
            }
            Phase::Drain | Phase::Down => {
                self.response.send_less(event.now);
                self.answer = Answer::since(event.now);
            }
            Phase::Cruise => {
                self.response.send_at_rate(event.now);
                // The time gives the number of rounds, so that simulations are reproducible.
                self.cruise_rounds = CRUISE_ROUNDS + (event.now.as_micros() % MORE_CRUISE) as u32;
                self.rival.stop();
                self.delay.measure_floor(event);
            }
            Phase::Compete => {
                self.delay.forget_measurement();
                let all = self.product(self.delay.typical()) as u64;
                self.rival.start(event.bytes_in_flight.max(all), self.packet);
            }
        }
    }

    fn advance(&mut self, event: &AckEvent, round_over: bool) {
        self.rounds += u32::from(round_over);
        match self.phase {
            Phase::Startup => self.start_up(event, round_over),
            Phase::Drain | Phase::Down => self.send_less(event, round_over),
            Phase::Cruise if round_over => self.cruise(event),
            Phase::Up => self.probe(event),
            Phase::Compete => self.compete(event),
            Phase::Cruise => {}
        }
    }

    fn start_up(&mut self, event: &AckEvent, round_over: bool) {
        let queue = self.target().max(self.delay.typical() / 3.0);
        if self.delay.level_beyond() > queue && self.rate.bps() > 0.0 {
            self.startup.end_by_delay(event, &self.delay, self.rate.delivery());
            self.enter(event, Phase::Drain);
            return;
        }
        // A train that takes longer to arrive than to leave shows the bottleneck's rate, even if
        // little was sent.
        let shows = |sample: RateSample| !sample.app_limited || self.rate.is_stretched();
        if round_over && event.rate.is_none_or(shows) && self.startup.is_full(self.rate.delivery())
        {
            self.enter(event, Phase::Drain);
        }
    }

    /// Resumes startup, which ended too early, unless a full queue has dropped packets. Returns
    /// whether it resumes.
    fn resume_startup(&mut self, event: &AckEvent) -> bool {
        let resumes = !self.congested && self.startup.resume(&mut self.delay);
        if resumes {
            self.enter(event, Phase::Startup);
        }
        resumes
    }

    /// Ends cruising if startup ended too early or our queue is too long, or else after the cycle's
    /// rounds at the rate.
    fn cruise(&mut self, event: &AckEvent) {
        if self.rounds >= LEAST_CRUISE
            && self.startup.is_explained(&self.delay)
            && self.resume_startup(event)
        {
            return;
        }
        if self.rounds >= LEAST_CRUISE && (self.delay.own() > self.target() || self.congested) {
            self.rate.fall();
            if self.delay.own() > self.target() {
                self.enter(event, Phase::Down);
                return;
            }
        }
        if self.rounds >= self.cruise_rounds {
            self.enter(event, Phase::Up);
        }
    }

    /// Ends competing after a while, to check by sending less whether there is a rival.
    fn compete(&mut self, event: &AckEvent) {
        let is_long = event.now.since(self.entered) >= COMPETE_TIME;
        if is_long || self.rounds >= COMPETE_ROUNDS {
            self.rate.settle();
            self.enter(event, Phase::Down);
        }
    }

    fn probe(&mut self, event: &AckEvent) {
        if self.rounds < SHOWN_ROUNDS && self.delay.beyond(event) < self.target() {
            return;
        }
        let followed = self.rate.delivery() >= self.before_up * FOLLOWED;
        // If the path carried all that was added, it has more room than probing would find soon.
        let more = followed && self.delay.own() < self.target();
        self.enter(event, if more { Phase::Startup } else { Phase::Down });
    }

    /// Sends less, and observes what that does to the queue.
    fn send_less(&mut self, event: &AckEvent, round_over: bool) {
        if self.startup.waits_no_longer(event, &self.delay) && self.resume_startup(event) {
            return;
        }
        self.answer.on_ack(event, self.gain);
        if self.is_empty(event) {
            self.delay.measure_floor(event);
            if self.delay.level() < (self.target() / 4.0).max(self.passing(FEW)) {
                self.enter(event, Phase::Cruise);
                return;
            }
        }
        if !round_over {
            return;
        }
        let Some(share) = self.answer.share(self.delay.typical()) else { return };
        if share.most < RESPONDS {
            self.unresponsive(event);
        } else if share.most < ALL_OURS && self.is_held() && self.is_rivals() {
            self.enter(event, Phase::Compete);
        } else if self.rounds > DRAIN_ROUNDS {
            self.enter(event, Phase::Cruise);
        } else if share.least > RESPONDS {
            self.answer.go_on();
        }
    }

    /// Whether we have sent less for so long that a remaining queue must be another flow's.
    fn is_held(&self) -> bool {
        self.phase == Phase::Down && (self.rounds >= DOWN_ROUNDS || self.before == Phase::Compete)
    }

    /// Handles a delay that does not fall although we send less: either the bottleneck has become
    /// slower still, or others use what we leave, or the path's own delay has grown.
    fn unresponsive(&mut self, event: &AckEvent) {
        let sent = if self.phase == Phase::Drain { DRAIN_GAIN } else { DOWN_GAIN };
        let less = self.rate.last_two().map(|rate| rate < ARRIVES * sent * self.rate.bps());
        if less == [true, true] && self.delay.holds_up_all() {
            self.rate.fall_to_last();
            self.rounds = 0;
            self.answer = Answer::since(event.now);
        } else if !less[0] {
            // If less arrives in one round trip only, the path's own delay may be growing; the next
            // round trip decides.
            let is_queue = self.delay.is_queue(event) && self.is_rivals();
            let goes_on = !is_queue && self.startup.delivers_more(self.rate.delivery());
            if goes_on && self.resume_startup(event) {
                return;
            }
            self.enter(event, if is_queue { Phase::Compete } else { Phase::Cruise });
        }
    }

    /// If loss responds to our sending rate, lowers the rate to what the path carries, and starts a
    /// window of that size.
    fn answer_response(&mut self, event: &AckEvent) {
        let Some(random) = self.response.conclude() else { return };
        self.rate.fall_to(self.rate.delivery() / (1.0 - random.min(0.95)));
        self.rival.restart(event, random, self.product(self.delay.typical()) as u64, self.packet);
    }

    /// Responds to full queues and marks, which end startup and probing up.
    fn answer_congestion(&mut self, event: &AckEvent, round_over: bool) {
        let starting = self.phase == Phase::Startup;
        let packet = self.packet as f64 * 8.0 / self.rate.delivery().max(1.0);
        let dropped = self.rival.on_ack(event, round_over, &self.delay, packet);
        // Draining already corrects the overshoot of startup, and the down phase that of probing.
        let probed = || self.delay.varies() && self.response.probed(event.largest_lost_sent);
        if dropped && !starting && self.phase != Phase::Drain && !probed() {
            self.rival.cut(event, self.packet);
        }
        self.congested = dropped || (self.congested && !round_over);
        let marked = self.marks.on_ack(event, self.packet);
        let next = match self.phase {
            Phase::Startup => Phase::Drain,
            Phase::Up => Phase::Down,
            _ => return,
        };
        if dropped || marked {
            self.enter(event, next);
        }
    }
}

impl CongestionController for Compensated {
    fn needs_rate(&self) -> bool {
        true
    }

    fn on_ack(&mut self, event: &AckEvent, siblings: &[PathView]) {
        let starting = self.phase == Phase::Startup;
        let share = self.rival.random().share();
        // While we have a queue, it may have dropped the packets lost beyond the lower estimate of
        // random loss.
        let least = if self.delay.own() > 0.0 { self.rival.random().least() } else { share };
        let random = RandomLoss { share, least };
        let round_over = self.rate.on_ack(event, random, self.delay.typical(), starting);
        self.variation.on_ack(event, self.delay.typical(), starting);
        let rise = self.delay.on_ack(event);
        if rise != 0.0 {
            self.answer.recount(rise);
            self.startup.recount(rise);
            self.rival.recount(rise);
        }
        if round_over {
            self.delay.end_round();
        }
        self.response.on_ack(event);
        self.startup.on_ack(event, round_over);
        self.rival.set_share(flow_share(event, siblings));
        self.answer_congestion(event, round_over);
        self.advance(event, round_over);
        self.update_cwnd();
        self.update_pacing(event);
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        if event.consecutive < DEAD_TIMEOUTS {
            return;
        }
        // Whatever was known about the path is out of date. The controller starts over with a small
        // window, so that a path that returns is loaded gradually.
        (self.rate, self.delay, self.rival, self.response) = Default::default();
        (self.startup, self.variation) = Default::default();
        (self.phase, self.before, self.rounds) = (Phase::Startup, Phase::Startup, 0);
        self.cwnd = MIN_PACKETS * self.packet;
        self.pacing = None;
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
        let measured = self.rate.bps() as u64;
        let measured = (measured > 0).then(|| Bitrate::from_bps(measured));
        measured.map(|rate| self.marked.map_or(rate, |marked| rate.min(marked)))
    }

    fn own_queue(&self) -> Option<Duration> {
        let above = self.delay.level() - self.delay.floor();
        Some(Duration::try_from_secs_f64(above).unwrap_or_default())
    }

    fn couples(&self) -> bool {
        true
    }

    fn phase(&self) -> &'static str {
        match self.phase {
            Phase::Startup => "startup",
            Phase::Drain => "drain",
            Phase::Cruise => "cruise",
            Phase::Up => "probe-up",
            Phase::Down => "probe-down",
            Phase::Compete => "compete",
        }
    }
}

#[cfg(test)]
mod tests;
