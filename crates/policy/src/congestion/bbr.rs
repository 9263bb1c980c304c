//! BBR version 1: paces at the estimated bottleneck rate and holds twice the estimated
//! bandwidth-delay product in flight.

use anabranch_types::{Bitrate, Time};
use core::time::Duration;

use crate::congestion::cwnd::MAX_CWND;
use crate::congestion::{AckEvent, CongestionController, SentEvent, TimeoutEvent};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::view::PathView;

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "bbr",
    summary: "BBRv1 as deployed: rate by the largest delivery rate, 10 rounds; least RTT, 10 s",
    source: "Cardwell et al., BBR: Congestion-Based Congestion Control (2016), and its v1 draft",
    options: &[option("initial", "initial window, packets", "10")],
};

/// Gain that doubles the rate every round: 2/ln 2.
const HIGH_GAIN: f64 = 2.885;
/// Pacing gains of the eight phases of bandwidth probing, one round trip each.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Window outside startup, as a multiple of the bandwidth-delay product.
const CWND_GAIN: f64 = 2.0;
/// Rounds that the bandwidth filter remembers.
const BANDWIDTH_ROUNDS: usize = 10;
/// Age at which the least RTT expires.
const RTT_WINDOW: Duration = Duration::from_secs(10);
/// How long the window stays small while the least RTT is measured anew.
const PROBE_RTT: Duration = Duration::from_millis(200);
/// Least window, packets.
const MIN_PACKETS: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRtt,
}

/// BBRv1. Losses change the window for a round trip only; congestion marks have no effect.
#[derive(Clone, Debug)]
pub struct Bbr {
    state: State,
    packet: u64,
    initial: u64,
    cwnd: u64,
    pacing: Option<Bitrate>,
    gain: f64,
    /// Largest delivery rate of each of the last rounds, bits per second, indexed by the round's
    /// number modulo the length.
    rates: [u64; BANDWIDTH_ROUNDS],
    round: u64,
    /// The round ends when a packet sent after this many delivered bytes is acknowledged.
    round_end: u64,
    min_rtt: Option<Duration>,
    min_rtt_at: Time,
    full_rate: u64,
    full_rounds: u32,
    filled: bool,
    phase: usize,
    phase_at: Time,
    /// Window before loss recovery or RTT probing, which is restored afterwards.
    saved: u64,
    recovery: Option<Recovery>,
    probe_rtt_done: Option<Time>,
    probe_rtt_round: u64,
    /// Whether the connection went idle: the first packets are then paced at the estimate in any
    /// phase.
    idle_restart: bool,
}

#[derive(Clone, Copy, Debug)]
struct Recovery {
    /// Recovery ends when a packet sent after this time is acknowledged.
    started: Time,
    /// Packet conservation holds through this round.
    round: u64,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn CongestionController>, PolicyError> {
    let initial = options.integer("initial", 1..=1000)?;
    let packet = options.packet_size().clamp(1, MAX_CWND / 1024);
    Ok(Box::new(Bbr {
        state: State::Startup,
        packet,
        initial,
        cwnd: initial * packet,
        pacing: None,
        gain: HIGH_GAIN,
        rates: [0; BANDWIDTH_ROUNDS],
        round: 0,
        round_end: 0,
        min_rtt: None,
        min_rtt_at: Time::ZERO,
        full_rate: 0,
        full_rounds: 0,
        filled: false,
        phase: 2,
        phase_at: Time::ZERO,
        saved: 0,
        recovery: None,
        probe_rtt_done: None,
        probe_rtt_round: 0,
        idle_restart: false,
    }))
}

impl CongestionController for Bbr {
    fn on_sent(&mut self, event: &SentEvent) {
        if event.bytes_in_flight <= event.bytes && self.state == State::ProbeBandwidth {
            self.idle_restart = true;
            self.set_pacing(1.0);
        }
    }

    fn on_ack(&mut self, event: &AckEvent, _siblings: &[PathView]) {
        let round_start = self.update_rate(event);
        self.update_min_rtt(event);
        self.update_recovery(event);
        if round_start {
            self.check_full_pipe(event);
        }
        self.advance(event);
        if event.acked_packets > 0 {
            self.idle_restart = false;
        }
        self.set_pacing(self.gain);
        self.update_cwnd(event);
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        if self.recovery.is_none() && self.state != State::ProbeRtt {
            self.saved = self.cwnd;
        }
        self.recovery = Some(Recovery { started: event.now, round: self.round });
        self.cwnd = self.packet;
        self.full_rate = 0;
        self.full_rounds = 0;
    }

    fn penalise(&mut self) {
        self.cwnd = (self.cwnd / 2).max(self.packet);
    }

    fn set_packet_size(&mut self, bytes: u64) {
        self.packet = bytes.clamp(1, MAX_CWND / 1024);
        self.cwnd = self.cwnd.max(self.packet);
    }

    fn cwnd(&self) -> u64 {
        self.cwnd
    }

    fn pacing_rate(&self) -> Option<Bitrate> {
        self.pacing
    }

    fn bandwidth(&self) -> Option<Bitrate> {
        let rate = self.rate();
        (rate > 0).then_some(Bitrate::from_bps(rate))
    }

    fn needs_rate(&self) -> bool {
        true
    }

    fn governs_recovery(&self) -> bool {
        true
    }

    fn phase(&self) -> &'static str {
        match self.state {
            State::Startup => "startup",
            State::Drain => "drain",
            State::ProbeBandwidth => "probe-bw",
            State::ProbeRtt => "probe-rtt",
        }
    }
}

impl Bbr {
    /// The largest delivery rate of the last rounds, bits per second.
    fn rate(&self) -> u64 {
        self.rates.iter().copied().fold(0, u64::max)
    }

    /// `gain` times the bandwidth-delay product, bytes; the initial window until both are measured.
    fn product(&self, gain: f64) -> u64 {
        match self.min_rtt {
            Some(rtt) if self.rate() > 0 => {
                (Bitrate::from_bps(self.rate()).bytes_in(rtt) as f64 * gain) as u64
            }
            _ => self.initial * self.packet,
        }
    }

    /// Processes the rate sample. Returns true if it begins a round trip and is not app-limited.
    fn update_rate(&mut self, event: &AckEvent) -> bool {
        let Some(sample) = event.rate else { return false };
        let round_start = sample.prior_delivered >= self.round_end && event.acked_packets > 0;
        if round_start {
            self.round += 1;
            self.round_end = event.total_delivered;
            self.rates[self.round as usize % BANDWIDTH_ROUNDS] = 0;
        }
        let rate = sample.delivery_rate().as_bps();
        if !sample.app_limited || rate >= self.rate() {
            let slot = &mut self.rates[self.round as usize % BANDWIDTH_ROUNDS];
            *slot = rate.max(*slot);
        }
        round_start && !sample.app_limited
    }

    fn update_min_rtt(&mut self, event: &AckEvent) {
        let expired = event.now > self.min_rtt_at + RTT_WINDOW;
        let known = event.rtt.samples > 0 && event.acked_packets > 0;
        if known && (expired || self.min_rtt.is_none_or(|rtt| event.rtt.latest <= rtt)) {
            let had_one = self.min_rtt.is_some();
            self.min_rtt = Some(event.rtt.latest);
            self.min_rtt_at = event.now;
            if expired && had_one && !self.idle_restart && self.state != State::ProbeRtt {
                self.saved = if self.recovery.is_some() { self.saved } else { self.cwnd };
                self.state = State::ProbeRtt;
                self.gain = 1.0;
                self.probe_rtt_done = None;
            }
        }
    }

    /// Enters recovery on a loss, conserving packets for a round; leaves it a round trip later.
    fn update_recovery(&mut self, event: &AckEvent) {
        if let Some(recovery) = self.recovery
            && event.acked_packets > 0
            && event.largest_acked_sent > recovery.started
        {
            self.recovery = None;
            if self.state != State::ProbeRtt {
                self.cwnd = self.cwnd.max(self.saved);
            }
        }
        if event.lost_packets > 0 && self.recovery.is_none() {
            if self.state != State::ProbeRtt {
                self.saved = self.cwnd;
            }
            self.recovery = Some(Recovery { started: event.now, round: self.round });
            self.cwnd = event.bytes_in_flight.saturating_add(event.acked_bytes).min(MAX_CWND);
        }
    }

    /// The path is full when the rate has not grown by 25 % in three rounds.
    fn check_full_pipe(&mut self, _event: &AckEvent) {
        if self.filled {
            return;
        }
        let rate = self.rate();
        if rate as f64 >= self.full_rate as f64 * 1.25 {
            self.full_rate = rate;
            self.full_rounds = 0;
        } else {
            self.full_rounds += 1;
            self.filled = self.full_rounds >= 3;
        }
    }

    fn advance(&mut self, event: &AckEvent) {
        match self.state {
            State::Startup if self.filled => {
                self.state = State::Drain;
                self.gain = 1.0 / HIGH_GAIN;
            }
            State::Drain if event.bytes_in_flight <= self.product(1.0) => {
                self.start_probing(event.now);
            }
            State::ProbeBandwidth => self.cycle(event),
            State::ProbeRtt => self.probe_rtt(event),
            State::Startup | State::Drain => {}
        }
    }

    /// Begins at any phase but the draining one. The time determines the phase, so that flows that
    /// start at different times do not probe together, and simulations are reproducible.
    fn start_probing(&mut self, now: Time) {
        self.state = State::ProbeBandwidth;
        let offset = (now.as_micros() % 7) as usize;
        self.phase = if offset == 0 { 0 } else { offset + 1 };
        self.phase_at = now;
        self.gain = CYCLE[self.phase];
    }

    fn cycle(&mut self, event: &AckEvent) {
        let elapsed = event.now.since(self.phase_at) > self.min_rtt.unwrap_or(event.rtt.min);
        let next = if self.gain > 1.0 {
            // Probing up goes on until it has filled the path, unless losses show that the buffer
            // is short.
            let filled = event.prior_in_flight >= self.product(self.gain);
            elapsed && (filled || event.lost_packets > 0)
        } else if self.gain < 1.0 {
            elapsed || event.prior_in_flight <= self.product(1.0)
        } else {
            elapsed
        };
        if next {
            self.phase = (self.phase + 1) % CYCLE.len();
            self.phase_at = event.now;
            self.gain = CYCLE[self.phase];
        }
    }

    /// Holds four packets in flight for 200 ms and a round, then returns.
    fn probe_rtt(&mut self, event: &AckEvent) {
        match self.probe_rtt_done {
            None if event.bytes_in_flight <= MIN_PACKETS * self.packet => {
                self.probe_rtt_done = Some(event.now + PROBE_RTT);
                self.probe_rtt_round = self.round;
            }
            Some(done) if event.now >= done && self.round > self.probe_rtt_round => {
                self.min_rtt_at = event.now;
                self.cwnd = self.cwnd.max(self.saved);
                if self.filled {
                    self.start_probing(event.now);
                } else {
                    self.state = State::Startup;
                    self.gain = HIGH_GAIN;
                }
            }
            _ => {}
        }
    }

    /// Paces at `gain` times the estimate; until the pipe is full the rate only rises.
    fn set_pacing(&mut self, gain: f64) {
        let rate = self.rate();
        let wanted = if rate > 0 {
            Bitrate::from_bps(rate).mul_f64(gain)
        } else if let Some(rtt) = self.min_rtt {
            Bitrate::from_transfer(self.initial * self.packet, rtt).mul_f64(gain)
        } else {
            return;
        };
        if self.filled || self.pacing.is_none_or(|pacing| wanted > pacing) {
            self.pacing = Some(wanted);
        }
    }

    fn update_cwnd(&mut self, event: &AckEvent) {
        let gain = match self.state {
            State::Startup | State::Drain => HIGH_GAIN,
            State::ProbeBandwidth | State::ProbeRtt => CWND_GAIN,
        };
        // Three packets of slack keep delayed and batched acknowledgements from stalling the sender.
        let target = self.product(gain).saturating_add(3 * self.packet);
        let acked = event.acked_bytes.min(MAX_CWND);
        if let Some(recovery) = self.recovery {
            self.cwnd = self.cwnd.saturating_sub(event.lost_bytes).max(self.packet);
            if recovery.round == self.round {
                let conserved = event.bytes_in_flight.min(MAX_CWND) + acked;
                self.cwnd = self.cwnd.max(conserved).min(MAX_CWND);
                return;
            }
        }
        if self.filled {
            self.cwnd = (self.cwnd + acked).min(target);
        } else if self.cwnd < target || event.total_delivered < self.initial * self.packet {
            self.cwnd += acked;
        }
        self.cwnd = self.cwnd.clamp(MIN_PACKETS * self.packet, MAX_CWND);
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(MIN_PACKETS * self.packet);
        }
    }
}
