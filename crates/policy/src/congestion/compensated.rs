//! Loss-compensated, delay-bounded, ECN-aware control for real links.
//!
//! The controller estimates three things, each in a file of its own, as is the end of startup. The bottleneck's
//! *rate*: packets lost at random count as delivered, so that such loss does not lower it. The *delay*: what remains
//! while we send less than the path carries is the floor, the road's own delay or another flow's queue; what rises
//! above the floor is our queue, and is kept short. The *losses*: those beyond random loss while the queue is longest
//! are congestion's, and so are all losses that grow with what we send; then a CUBIC window bounds ours.
//!
//! The pacing rate goes up and down around the rate in cycles: up to find more, down until our own queue is gone, which
//! shows the floor, then at the rate for some round trips. `answer` tells how a queue changes while we send less. If it
//! shrinks but never empties, it belongs to another flow: then we compete with a window alone. `bounds` has the window
//! and the rate of each phase.

mod answer;
mod bounds;
mod delay;
mod excess;
mod random;
mod rate;
mod response;
mod rival;
mod startup;

use anabranch_types::Bitrate;
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
use rate::Rate;
use response::Response;
use rival::Rival;
use startup::Startup;

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

/// Growth of what is delivered while probing up that means that all of the probing went through.
const FOLLOWED: f64 = 1.15;
/// Rounds of a cycle at the rate itself, and up to how many more: flows whose cycles are equally long would
/// probe in the same order for ever. A queue may end them, but not before this many.
const CRUISE_ROUNDS: u32 = 8;
const MORE_CRUISE: u64 = 5;
const LEAST_CRUISE: u32 = 3;
/// Rounds after which acknowledgements show what another rate does: those of the first were sent before.
const SHOWN_ROUNDS: u32 = 2;
/// Rounds of sending less after which a queue that still drains is not ours.
const DOWN_ROUNDS: u32 = 4;
/// Rounds of sending less at most.
const DRAIN_ROUNDS: u32 = 12;
/// Rounds between two looks whether a rival still holds the queue.
const COMPETE_ROUNDS: u32 = 16;
/// Share of what we did not send by which the delay must have shrunk if it comes from a queue, and the share from
/// which all of that queue is ours.
const RESPONDS: f64 = 0.3;
const ALL_OURS: f64 = 0.8;
/// Share of the rate that was sent that arrives, if the bottleneck has not become slower.
const ARRIVES: f64 = 0.85;
/// Delays, in units of the time that one packet takes to pass the bottleneck. Below the first, none of our packets is
/// taken to wait. Below the second, no other flow is taken to hold a queue, since our own packets leave in trains and
/// wait for each other.
const FEW: f64 = 2.0;
const TRAIN: f64 = 8.0;
/// Queue target as a share of the round-trip time, and its least value, s.
const TARGET_SHARE: f64 = 0.2;
const LEAST_TARGET: f64 = 0.003;
/// Timeouts in a row after which the controller starts over. Fewer may come from a run of losses that took the probes
/// too: such a run ends after a number of packets, not after a time, and then the path is as it was.
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

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Compensated {
    packet: u64,
    initial: u64,
    /// Most that our queue may add to the delay, s.
    longest_queue: f64,
    phase: Phase,
    /// The previous phase.
    before: Phase,
    /// Rounds that the phase has lasted, and that cruising lasts.
    rounds: u32,
    cruise_rounds: u32,
    cwnd: u64,
    pacing: Option<Bitrate>,
    gain: f64,
    rate: Rate,
    delay: Delay,
    rival: Rival,
    response: Response,
    startup: Startup,
    /// Delivery rate when the up phase began, bits per second.
    before_up: f64,
    /// How the queue answers while we send less.
    answer: Answer,
    /// Whether a full queue dropped packets in this round.
    congested: bool,
    marks: MarkBound,
    /// The bound that marks set, as a rate.
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
        rounds: 0,
        cruise_rounds: CRUISE_ROUNDS,
        cwnd: initial * packet,
        pacing: None,
        gain: startup::GAIN,
        rate: Rate::default(),
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
    /// The queue that we allow ourselves, s.
    fn target(&self) -> f64 {
        (self.delay.typical() * TARGET_SHARE).min(self.longest_queue).max(LEAST_TARGET)
    }

    /// Bytes that leave in `rtt` seconds.
    fn product(&self, rtt: f64) -> f64 {
        self.rate.bps() / 8.0 * rtt
    }

    /// How long so many packets take to pass the bottleneck, s.
    fn passing(&self, packets: f64) -> f64 {
        packets * self.packet as f64 * 8.0 / self.rate.bps().max(1.0)
    }

    /// Whether the delay is one that another flow's queue explains, and trains of our own packets do not.
    fn is_rivals(&self) -> bool {
        self.delay.is_steady() && self.delay.level() > self.passing(TRAIN)
    }

    /// Whether so little is in flight that nothing of ours can wait.
    fn is_empty(&self, event: &AckEvent) -> bool {
        event.bytes_in_flight as f64 <= self.product(self.delay.typical())
    }

    fn enter(&mut self, event: &AckEvent, phase: Phase) {
        (self.before, self.phase, self.rounds) = (self.phase, phase, 0);
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
                // By the time, so that a run repeats.
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
            Phase::Compete if self.rounds >= COMPETE_ROUNDS => {
                self.rate.settle();
                self.enter(event, Phase::Down);
            }
            Phase::Cruise | Phase::Compete => {}
        }
    }

    fn start_up(&mut self, event: &AckEvent, round_over: bool) {
        let queue = self.target().max(self.delay.typical() / 3.0);
        if self.delay.level_beyond() > queue && self.rate.bps() > 0.0 {
            self.startup.end_by_delay(event, &self.delay, self.rate.delivery());
            self.enter(event, Phase::Drain);
            return;
        }
        // A train that arrives slower than it left shows the bottleneck's rate, although little was sent.
        let shows = |sample: RateSample| !sample.app_limited || self.rate.is_stretched();
        if round_over && event.rate.is_none_or(shows) && self.startup.is_full(self.rate.delivery())
        {
            self.enter(event, Phase::Drain);
        }
    }

    /// Goes on with startup, which ended too early, unless a full queue has dropped packets since.
    fn resume_startup(&mut self, event: &AckEvent) -> bool {
        let resumes = !self.congested && self.startup.resume(&mut self.delay);
        if resumes {
            self.enter(event, Phase::Startup);
        }
        resumes
    }

    /// Goes on at the rate while what arrives follows what is sent, which it does as long as no queue grows.
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
            self.rate.confirm();
            self.enter(event, Phase::Up);
        }
    }

    fn probe(&mut self, event: &AckEvent) {
        if self.rounds < SHOWN_ROUNDS && self.delay.beyond(event) < self.target() {
            return;
        }
        let followed = self.rate.delivery() >= self.before_up * FOLLOWED;
        // If all that was added went through, there is more room than probing would find soon.
        let more = followed && self.delay.own() < self.target();
        self.enter(event, if more { Phase::Startup } else { Phase::Down });
    }

    /// Sends less, and looks what that does to the queue.
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

    /// Whether we have sent less for so long that a queue that is left must be another flow's.
    fn is_held(&self) -> bool {
        self.phase == Phase::Down && (self.rounds >= DOWN_ROUNDS || self.before == Phase::Compete)
    }

    /// The delay does not fall although we send less: either the bottleneck has become slower still, or
    /// others take what we leave, or the road has become longer.
    fn unresponsive(&mut self, event: &AckEvent) {
        let sent = if self.phase == Phase::Drain { DRAIN_GAIN } else { DOWN_GAIN };
        let less = self.rate.last_two().map(|rate| rate < ARRIVES * sent * self.rate.bps());
        if less == [true, true] && self.delay.holds_up_all() {
            self.rate.fall_to_last();
            self.rounds = 0;
            self.answer = Answer::since(event.now);
        } else if !less[0] {
            // Where less arrives for one round trip only, the road may be becoming longer: the next tells.
            let is_queue = self.delay.is_queue(event) && self.is_rivals();
            let goes_on = !is_queue && self.startup.delivers_more(self.rate.delivery());
            if goes_on && self.resume_startup(event) {
                return;
            }
            self.enter(event, if is_queue { Phase::Compete } else { Phase::Cruise });
        }
    }

    /// If loss responds to our sending rate, lowers the rate to what passes, and begins a window there.
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
        // Draining already answers what startup overfilled, and going down what probing did.
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
        let random = self.rival.random().share();
        // While a queue of ours stands, losses beyond random loss in its better times may be drops of that queue.
        let least = if self.delay.own() > 0.0 { self.rival.random().least() } else { random };
        let round_over = self.rate.on_ack(event, random, least, starting);
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
        // Whatever was known about the path is out of date. Start over small, so that a path that returns
        // is loaded gradually.
        (self.rate, self.delay, self.rival, self.response) = Default::default();
        self.startup = Startup::default();
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
