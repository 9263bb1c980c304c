//! A controller like C4 (Christian's Congestion Control Code), for comparison: derived from the text of its drafts,
//! not from its code.
//!
//! Two values describe a path: the *nominal rate*, which measurements raise and congestion lowers,
//! and the *nominal longest round trip*, a decaying maximum of what is seen while no more than that
//! rate is sent. Their product is the window. Time is divided into *eras* of a round trip. The
//! higher the rate of a flow, the sooner it takes delay and loss for congestion, so that flows at
//! one bottleneck converge to equal rates.
//!
//! The drafts do not say how to answer congestion marks; here they count as losses. They do not say
//! either what to do when no feedback arrives; here, several timeouts in a row restart the
//! controller.

use anabranch_types::{Bitrate, Time, math};

use crate::congestion::cwnd::MAX_CWND;
use crate::congestion::{AckEvent, CongestionController, TimeoutEvent};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::view::PathView;

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "c4",
    summary: "like C4: a window of rate times the longest round trip, which decays; faster paths react sooner",
    source: "derived from draft-huitema-ccwg-c4-spec-02 and -design-01",
    options: &[option("initial", "initial window, packets", "10")],
};

/// Coefficients α of the states (spec, table of alpha).
const INITIAL: f64 = 2.0;
const RECOVERY: f64 = 15.0 / 16.0;
const CRUISING: f64 = 1.0;
const BOLD_PUSH: f64 = 5.0 / 4.0;
const TIMID_PUSH: f64 = 17.0 / 16.0;
/// Eras of cruising before a push, and eras without growth that end the initial state.
const CRUISING_ERAS: u32 = 4;
const FLAT_ERAS: u32 = 3;
/// Number of pushes in a row that must raise the rate for the initial state to be entered again.
const PUSHES: u32 = 3;
/// A round trip counts as longer than the least by at most this, s (spec: MAX_JITTER).
const MAX_JITTER: f64 = 0.25;
/// Largest delay threshold, s.
const MAX_THRESHOLD: f64 = 0.025;
/// Largest share of the rate that one congestion signal takes off.
const MAX_CUT: f64 = 0.25;
/// Jitter is high if the least round trip is below this share of the longest.
const HIGH_JITTER: f64 = 0.4;
/// Packets that must have arrived before losses end the initial state.
const ENOUGH_PACKETS: u64 = 20;
/// Timeouts in a row after which all measurements are discarded, as for persistent congestion (RFC 9002 §7.6).
const DEAD_TIMEOUTS: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Initial,
    Recovery,
    Cruising,
    Pushing,
}

/// A round trip: it ends when a packet that left in it is acknowledged.
#[derive(Clone, Copy, Debug)]
struct Era {
    start: Time,
    /// Shortest and longest round-trip time acknowledged in the era, s.
    min_rtt: f64,
    max_rtt: f64,
    /// Nominal rate when the era began.
    rate: f64,
    app_limited: bool,
}

/// A controller like C4; the module's documentation describes it.
#[derive(Clone, Debug)]
pub struct C4 {
    packet: u64,
    initial: u64,
    state: State,
    /// Bytes per second; 0 before the first measurement.
    rate: f64,
    /// Longest and least round trip, s; 0 before the first.
    max_rtt: f64,
    min_rtt: f64,
    /// α for packets sent now, and in the era whose packets are acknowledged now.
    alpha: f64,
    alpha_before: f64,
    era: Era,
    /// Eras that cruising has lasted, and eras in a row of the initial state without growth.
    eras: u32,
    flat: u32,
    /// Whether congestion caused the current recovery or was seen during it. Measurements then do
    /// not raise the rate.
    congested: bool,
    /// The α of the push before the current recovery, if there was one, and the rate before that
    /// push.
    push: Option<f64>,
    before_push: f64,
    /// Whether the last push raised the rate by enough, and how many in a row did.
    pushed: bool,
    pushes: u32,
    /// Smoothed share of packets lost or marked.
    loss: f64,
    acked: u64,
    /// Whether the initial state was entered again because of high jitter, which happens only once.
    restarted: bool,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn CongestionController>, PolicyError> {
    let initial = options.integer("initial", 1..=1000)?;
    Ok(Box::new(C4::new(initial, options.packet_size().clamp(1, MAX_CWND / 1024))))
}

/// Sensitivity to signs of congestion at a rate in bytes per second, 0 to 1 (spec, "Variable
/// Sensitivity").
fn sensitivity(rate: f64) -> f64 {
    let between = |from: f64, to: f64| ((rate - from) / (to - from)).clamp(0.0, 1.0);
    0.92 * between(50e3, 1e6) + 0.08 * between(1e6, 10e6)
}

impl C4 {
    fn new(initial: u64, packet: u64) -> Self {
        let start = Time::ZERO;
        let era =
            Era { start, min_rtt: f64::INFINITY, max_rtt: 0.0, rate: 0.0, app_limited: false };
        C4 {
            packet,
            initial,
            state: State::Initial,
            rate: 0.0,
            max_rtt: 0.0,
            min_rtt: 0.0,
            alpha: INITIAL,
            alpha_before: INITIAL,
            era,
            eras: 0,
            flat: 0,
            congested: false,
            push: None,
            before_push: 0.0,
            pushed: true,
            pushes: 0,
            loss: 0.0,
            acked: 0,
            restarted: false,
        }
    }

    /// By how much a round trip must exceed the nominal longest one to count as congestion, s.
    fn delay_threshold(&self) -> f64 {
        let fraction = 1.0 / 16.0 + (1.0 - sensitivity(self.rate)) * 3.0 / 16.0;
        (fraction * self.max_rtt).min(MAX_THRESHOLD)
    }

    fn enter(&mut self, state: State, alpha: f64, now: Time) {
        (self.state, self.eras) = (state, 0);
        self.begin_era(alpha, now);
    }

    fn begin_era(&mut self, alpha: f64, now: Time) {
        (self.alpha_before, self.alpha) = (self.alpha, alpha);
        let (min_rtt, max_rtt) = (f64::INFINITY, 0.0);
        self.era = Era { start: now, min_rtt, max_rtt, rate: self.rate, app_limited: false };
    }

    fn recover(&mut self, congested: bool, now: Time) {
        self.push = (self.state == State::Pushing).then_some(self.alpha);
        self.congested = congested;
        self.enter(State::Recovery, RECOVERY, now);
    }

    /// Processes the measurements of an acknowledgement; returns the round trip, s.
    fn measure(&mut self, event: &AckEvent) -> Option<f64> {
        if event.acked_packets == 0 || event.rtt.samples == 0 {
            return None;
        }
        let rtt = event.rtt.latest.as_secs_f64();
        if self.max_rtt == 0.0 {
            (self.min_rtt, self.max_rtt) = (rtt, rtt);
        }
        self.era.min_rtt = self.era.min_rtt.min(rtt);
        self.era.max_rtt = self.era.max_rtt.max(rtt);
        if let Some(sample) = event.rate.filter(|_| !self.congested) {
            self.rate = self.rate.max(sample.delivery_rate().as_bps() as f64 / 8.0);
        }
        Some(rtt)
    }

    /// The share of the rate by which the event's congestion reduces it; `None` without congestion.
    fn congestion(&mut self, event: &AckEvent, rtt: Option<f64>) -> Option<f64> {
        self.acked = self.acked.saturating_add(event.acked_packets.into());
        let bad = event.lost_packets.saturating_add(event.ce_packets);
        let keep = |packets: u32| math::pow(15.0 / 16.0, packets.min(1000).into());
        self.loss *= keep(event.acked_packets.saturating_sub(event.ce_packets));
        self.loss = 1.0 - (1.0 - self.loss) * keep(bad);
        let most = 0.02 + 0.5 * (1.0 - sensitivity(self.rate));
        let enough = self.state != State::Initial || self.acked > ENOUGH_PACKETS;
        if bad > 0 && self.loss > most && enough {
            return Some(MAX_CUT);
        }
        let threshold = self.delay_threshold();
        let beyond = rtt.unwrap_or(0.0) - (self.max_rtt + threshold);
        let counts = self.state != State::Initial || self.flat >= FLAT_ERAS - 1;
        (beyond > 0.0 && counts).then(|| (beyond / threshold.max(1e-6)).min(MAX_CUT))
    }

    fn answer(&mut self, event: &AckEvent, cut: f64) {
        match self.state {
            // The rate is not cut again, since most of this congestion affected packets that left
            // before recovery began.
            State::Recovery => self.congested = true,
            State::Initial => self.recover(true, event.now),
            State::Cruising | State::Pushing => {
                let by_push = self.state == State::Pushing
                    && event.largest_acked_sent.max(event.largest_lost_sent) >= self.era.start;
                self.rate *= if by_push { 1.0 } else { 1.0 - cut };
                self.recover(true, event.now);
            }
        }
    }

    /// The nominal longest round trip rises at once to that of the era, or else falls by an eighth
    /// of the difference. The least falls at once, or else rises by an eighth of the difference.
    /// Eras in which more than the nominal rate was sent change neither.
    fn end_era(&mut self) {
        let Era { min_rtt, max_rtt, .. } = self.era;
        if self.alpha_before > CRUISING || max_rtt == 0.0 {
            return;
        }
        let smoothed = (7.0 * self.min_rtt + min_rtt) / 8.0;
        self.min_rtt = if min_rtt < self.min_rtt { min_rtt } else { smoothed };
        let max_rtt = max_rtt.min(self.min_rtt + MAX_JITTER);
        let smoothed = (7.0 * self.max_rtt + max_rtt) / 8.0;
        self.max_rtt = if max_rtt > self.max_rtt { max_rtt } else { smoothed };
    }

    /// Ends an era, and the state if it is over too.
    fn advance(&mut self, now: Time) {
        self.end_era();
        match self.state {
            State::Initial => {
                let grew = self.rate > self.era.rate;
                self.flat = match (grew, self.era.app_limited) {
                    (true, _) => 0,
                    (false, true) => self.flat,
                    (false, false) => self.flat + 1,
                };
                if self.flat >= FLAT_ERAS {
                    return self.recover(false, now);
                }
            }
            State::Recovery => return self.end_recovery(now),
            State::Cruising => {
                self.eras += 1;
                if self.eras >= CRUISING_ERAS && !self.era.app_limited {
                    self.before_push = self.rate;
                    let alpha = if self.pushed { BOLD_PUSH } else { TIMID_PUSH };
                    return self.enter(State::Pushing, alpha, now);
                }
            }
            State::Pushing => return self.recover(false, now),
        }
        self.begin_era(self.alpha, now);
    }

    fn end_recovery(&mut self, now: Time) {
        if let Some(alpha) = self.push.take() {
            let wanted = if alpha > TIMID_PUSH { (alpha - 1.0) / 4.0 } else { 0.0 };
            let grown = self.rate - self.before_push;
            self.pushed = !self.congested && grown > wanted * self.before_push;
            self.pushes = if self.pushed { self.pushes + 1 } else { 0 };
        } else if self.congested {
            (self.pushed, self.pushes) = (false, 0);
        }
        self.congested = false;
        let jittery = !self.restarted && self.min_rtt < HIGH_JITTER * self.max_rtt;
        if jittery || self.pushes >= PUSHES {
            self.restarted |= jittery;
            (self.flat, self.pushes) = (0, 0);
            self.enter(State::Initial, INITIAL, now);
        } else {
            self.enter(State::Cruising, CRUISING, now);
        }
    }
}

impl CongestionController for C4 {
    fn needs_rate(&self) -> bool {
        true
    }

    fn on_ack(&mut self, event: &AckEvent, _siblings: &[PathView]) {
        let rtt = self.measure(event);
        self.era.app_limited |= event.app_limited;
        if let Some(cut) = self.congestion(event, rtt) {
            self.answer(event, cut);
        } else if event.acked_packets > 0 && event.largest_acked_sent >= self.era.start {
            self.advance(event.now);
        }
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        if event.consecutive >= DEAD_TIMEOUTS {
            *self = C4::new(self.initial, self.packet);
        }
    }

    fn set_packet_size(&mut self, bytes: u64) {
        self.packet = bytes.clamp(1, MAX_CWND / 1024);
    }

    fn cwnd(&self) -> u64 {
        let window = self.alpha * self.rate * self.max_rtt;
        let least = if window > 0.0 { 2 } else { self.initial };
        (window as u64).clamp(least * self.packet, MAX_CWND)
    }

    fn pacing_rate(&self) -> Option<Bitrate> {
        let rate = (self.alpha * self.rate * 8.0) as u64;
        (rate > 0).then(|| Bitrate::from_bps(rate))
    }

    fn bandwidth(&self) -> Option<Bitrate> {
        let rate = (self.rate * 8.0) as u64;
        (rate > 0).then(|| Bitrate::from_bps(rate))
    }

    fn phase(&self) -> &'static str {
        match self.state {
            State::Initial => "initial",
            State::Recovery => "recovery",
            State::Cruising => "cruising",
            State::Pushing => "pushing",
        }
    }
}
