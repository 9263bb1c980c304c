//! Whether a path is alive, and the packets sent only to find that out.

use anabranch_policy::view::PathState;
use anabranch_types::{Time, math};
use core::time::Duration;

use super::Path;

/// Longest probe interval of a path that does not answer: bounds how late its return is noticed.
const MAX_PROBE_INTERVAL: Duration = Duration::from_millis(500);
/// Longest timeout, unless the least round-trip time is more than half of it: twenty probes leave within an idle
/// timeout of 30 s, however long the estimate of the round-trip time has become.
const MAX_TIMEOUT: Duration = Duration::from_millis(1500);
/// A silent path is asked again after its silence so far divided by this, but not sooner than the timeout before
/// back-off. The end of an outage is thus noticed late by at most that part of the outage.
const PROBE_DIVISOR: u32 = 16;
/// A silent path is suspected when the silence would have less than this probability by loss alone.
const SILENCE_BY_CHANCE: f64 = 0.01;
/// Least loss assumed: a path that carries few packets has a poor estimate of its own.
const SUPPOSED_LOSS: f64 = 0.3;
/// Timeouts in a row that no loss explains.
const MOST_TIMEOUTS: u32 = 6;
/// Age at which the round-trip time is measured anew on a side that only acknowledges.
const RTT_REFRESH: Duration = Duration::from_millis(500);

/// A probe timeout as the loss detector sees it.
#[derive(Clone, Copy, Debug)]
pub struct ProbeTimeout {
    /// Before back-off.
    pub base: Duration,
    /// How often the timeout may double.
    pub doublings: u32,
    /// The longest timeout after doubling; `base` itself may be longer.
    pub longest: Duration,
}

impl ProbeTimeout {
    /// A timeout of `estimate`, at most `MAX_TIMEOUT` or twice `least_rtt`, that may double `doublings` times.
    ///
    /// A packet that arrives only with the next probe makes the estimate as long as the time between two probes, and
    /// the probe after that later still. The bound ends this.
    pub fn new(estimate: Duration, doublings: u32, least_rtt: Duration) -> Self {
        let base = estimate.min(MAX_TIMEOUT.max(least_rtt * 2));
        ProbeTimeout { base, doublings, longest: MAX_PROBE_INTERVAL }
    }

    /// This timeout, doubled up to `longest`.
    #[must_use]
    pub fn doubled_to(self, longest: Duration) -> Self {
        ProbeTimeout { longest, ..self }
    }
}

/// When a path was last used and heard of, and the probes that it owes.
#[derive(Debug)]
pub struct Liveness {
    /// Timeouts in a row, and when the first and the last of them were.
    timeouts: u32,
    first_timeout: Time,
    last_timeout: Time,
    /// Ack-eliciting packets sent since anything was heard.
    sent_in_silence: u32,
    /// Packets that had waited for an answer for a whole timeout when the timer last fired.
    overdue: u32,
    /// Packets that may be sent beyond the window.
    probes: u8,
    /// A bare packet is to ask for an answer.
    asks: bool,
    last_feedback: Time,
    /// From when the probe timer counts, for packets that were in flight at the last feedback.
    restarted: Time,
    /// Last time that an ack-eliciting packet left, or that probes were called for.
    last_sent: Time,
    /// Last time that the peer was asked for an answer only to measure the round trip.
    asked: Time,
    /// Packets from this number on left after a sign of life was asked for.
    asked_from: u64,
}

impl Liveness {
    /// A path that opens now.
    pub fn new(now: Time) -> Self {
        Liveness {
            timeouts: 0,
            first_timeout: now,
            last_timeout: now,
            sent_in_silence: 0,
            overdue: 0,
            probes: 0,
            asks: false,
            last_feedback: now,
            restarted: now,
            last_sent: now,
            asked: now,
            asked_from: 0,
        }
    }

    /// Timeouts in a row.
    pub fn timeouts(&self) -> u32 {
        self.timeouts
    }

    /// When the first of the timeouts in a row was, if there are any.
    pub fn first_timeout(&self) -> Option<Time> {
        (self.timeouts > 0).then_some(self.first_timeout)
    }

    /// Probes that are to be sent, whatever the window says.
    pub fn probes(&self) -> u8 {
        self.probes
    }

    /// When an ack-eliciting packet last left.
    pub fn last_sent(&self) -> Time {
        self.last_sent
    }

    /// When the path was last used or heard of.
    pub fn last_active(&self) -> Time {
        self.last_sent.max(self.last_feedback)
    }

    /// An ack-eliciting packet leaves.
    pub fn on_sent(&mut self, now: Time) {
        self.last_sent = now;
        self.sent_in_silence = self.sent_in_silence.saturating_add(1);
    }

    /// Packets were acknowledged. The oldest packet in flight left `later` than the newest acknowledged one.
    ///
    /// The probe timer starts again (RFC 6298 §5.3). If the oldest left much later than what was acknowledged, that
    /// would give it more time than it needs, so the timer counts from `later` before now, or from half of the timeout
    /// before now if that is less.
    pub fn on_feedback(&mut self, now: Time, later: Duration, base: ProbeTimeout) {
        self.hear(now, now - later.min(base.base / 2));
    }

    fn hear(&mut self, now: Time, restarted: Time) {
        self.last_feedback = now;
        self.restarted = restarted;
        self.timeouts = 0;
        self.sent_in_silence = 0;
        self.overdue = 0;
        self.asks = false;
    }

    /// Nothing was heard for a timeout, during which `overdue` packets waited for an answer.
    /// `probes` probes are to be sent. Returns the number of timeouts in a row.
    pub fn on_timeout(&mut self, now: Time, overdue: u32, probes: u8) -> u32 {
        if self.timeouts == 0 {
            self.first_timeout = now;
        }
        self.last_timeout = now;
        self.timeouts += 1;
        self.overdue = overdue;
        self.probes = probes;
        self.last_sent = now;
        self.timeouts
    }

    /// Asks for this many further probes.
    pub fn add_probes(&mut self, count: u8) {
        self.probes = self.probes.saturating_add(count);
    }

    /// Asks for a probe, unless there is one to come; counts as use of the path.
    pub fn ask_for_sign(&mut self, now: Time) {
        self.probes = self.probes.max(1);
        self.last_sent = now;
    }

    /// Asks for a sign of life; only the acknowledgement of packet `next` or a later one is an answer.
    pub fn ask_from(&mut self, now: Time, next: u64) {
        self.ask_for_sign(now);
        self.asked_from = next;
    }

    /// Whether the acknowledgement of packet `acked` answers the latest question.
    pub fn is_answer(&self, acked: u64) -> bool {
        acked >= self.asked_from
    }

    /// Restarts the probe timer. Suspicion shortens the timeout, so that it could otherwise have expired already.
    pub fn restart_timer(&mut self, now: Time) {
        (self.restarted, self.last_timeout) = (now, now);
    }

    /// A probe is being sent; returns how many are left.
    pub fn take_probe(&mut self) -> u8 {
        self.probes = self.probes.saturating_sub(1);
        self.probes
    }

    /// Whether the round-trip time is old enough to be measured anew.
    pub fn wants_rtt(&self, now: Time) -> bool {
        self.asked.max(self.last_feedback) + RTT_REFRESH <= now
    }

    /// The peer is asked for an answer to measure the round trip.
    pub fn on_asked(&mut self, now: Time) {
        self.asked = now;
    }

    /// Whether the path has timed out so often in a row that loss does not explain it.
    pub fn is_long_silent(&self) -> bool {
        self.timeouts >= MOST_TIMEOUTS
    }

    /// Whether the path has timed out, and loss of this probability does not explain its silence.
    pub fn seems_dead(&self, loss: f64) -> bool {
        let unanswered = self.sent_in_silence.max(self.overdue);
        let by_chance = math::pow(loss.max(SUPPOSED_LOSS), f64::from(unanswered));
        self.is_long_silent() || (self.timeouts > 0 && by_chance < SILENCE_BY_CHANCE)
    }

    /// Probe timeout with back-off.
    pub fn timeout(&self, base: ProbeTimeout) -> Duration {
        let doublings = self.timeouts.min(base.doublings).min(16);
        let doubled = base.base.saturating_mul(1 << doublings);
        doubled.min(base.longest.max(base.base))
    }

    /// When the probe timer fires. It starts when `oldest`, the oldest packet in flight, leaves, and again with
    /// feedback or a timeout. Later packets do not restart it: a thin stream would postpone it until the window fills.
    pub fn timeout_at(&self, oldest: Time, base: ProbeTimeout) -> Time {
        self.counts_from(oldest) + self.timeout(base)
    }

    fn counts_from(&self, oldest: Time) -> Time {
        oldest.max(if self.timeouts == 0 { self.restarted } else { self.last_timeout })
    }

    /// When a suspected path is probed again: soon even if its round trips are long, so that its
    /// return is not noticed late.
    pub fn probe_at(&self, oldest: Time, base: ProbeTimeout) -> Time {
        self.counts_from(oldest) + self.timeout(base).min(MAX_PROBE_INTERVAL)
    }

    /// When a path that has timed out is to be asked for an answer by a bare packet.
    ///
    /// The time between timeouts, which send full packets, doubles. Bare packets in between cost little. They also end
    /// a loss that lasts for a number of packets, however long these take.
    pub fn ask_at(&self, base: ProbeTimeout) -> Time {
        let last = self.last_active();
        let share = last.since(self.last_feedback) / PROBE_DIVISOR;
        last + base.base.max(share)
    }

    /// A bare packet is to ask for an answer.
    pub fn ask_in_silence(&mut self, now: Time) {
        (self.asks, self.last_sent) = (true, now);
    }

    /// Whether a bare packet is to ask now; ends the request.
    pub fn take_question(&mut self) -> bool {
        core::mem::take(&mut self.asks)
    }

    /// The way to the peer is another one now.
    pub fn start_over(&mut self, now: Time) {
        self.hear(now, now);
    }

    /// The path is closed.
    pub fn close(&mut self) {
        self.probes = 0;
        self.asks = false;
    }
}

impl Path {
    /// The probe timeout, before back-off.
    pub fn base_timeout(&self) -> ProbeTimeout {
        let rtt = self.rtt.view();
        let (timeout, doublings) = (self.detector.timeout(&rtt), self.detector.backoff_limit());
        let timeout = ProbeTimeout::new(timeout, doublings, rtt.min);
        self.detector.longest_timeout().map_or(timeout, |longest| timeout.doubled_to(longest))
    }

    /// When the probe timer fires: no feedback for a timeout while something is in flight.
    pub fn timeout_at(&self) -> Option<Time> {
        let base = self.base_timeout();
        let oldest = self.sent.oldest_open()?;
        Some(match self.state {
            PathState::Suspect => self.liveness.probe_at(oldest, base),
            _ => self.liveness.timeout_at(oldest, base),
        })
    }

    /// When a bare packet asks whether the path, which has timed out, carries packets again. Detectors that send no
    /// probes have none of these either.
    pub fn ask_at(&self) -> Option<Time> {
        if self.liveness.timeouts() == 0 || !self.is_proven() || self.detector.probes() == 0 {
            return None;
        }
        self.sent.oldest_open().map(|_| self.liveness.ask_at(self.base_timeout()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_probes_leave_within_the_idle_timeout() {
        let least = Duration::from_millis(56);
        let base = ProbeTimeout::new(Duration::from_secs(10), 3, least);
        let mut liveness = Liveness::new(Time::ZERO);
        liveness.on_sent(Time::ZERO);
        let mut timeouts = 0;
        loop {
            let at = liveness.timeout_at(Time::ZERO, base);
            if at > Time::from_secs(30) {
                break;
            }
            timeouts = liveness.on_timeout(at, 1, 2);
        }
        assert_eq!(timeouts, 20);
    }

    #[test]
    fn a_full_window_without_an_answer_is_no_chance() {
        let mut liveness = Liveness::new(Time::ZERO);
        // The last acknowledgement let one packet leave; those before it have waited as long.
        liveness.on_sent(Time::ZERO);
        let mut timed_out = |overdue| {
            liveness.start_over(Time::ZERO);
            liveness.on_timeout(Time::from_secs(1), overdue, 2);
            [0.01, 0.6].map(|loss| liveness.seems_dead(loss))
        };
        assert_eq!(timed_out(3), [false, false]);
        assert_eq!(timed_out(4), [true, false]);
        assert_eq!(timed_out(10), [true, true]);
    }

    #[test]
    fn the_timer_starts_again_with_feedback_about_packets_that_left_shortly_before() {
        let at = Time::from_millis;
        let base = ProbeTimeout::new(Duration::from_millis(150), 3, Duration::from_millis(100));
        let mut liveness = Liveness::new(at(0));
        let mut fires = |oldest, feedback, answered| {
            let oldest = at(oldest);
            liveness.on_feedback(at(feedback), oldest.since(at(answered)), base);
            liveness.timeout_at(oldest, base)
        };
        assert_eq!(fires(0, 110, 10), at(260)); // a packet that left later was answered
        assert_eq!(fires(10, 110, 10), at(260));
        assert_eq!(fires(30, 110, 10), at(240));
        assert_eq!(fires(60, 110, 10), at(210)); // that of the packet itself
        assert_eq!(fires(90, 110, 10), at(240));
        assert_eq!(fires(200, 400, 10), at(475)); // not in the past
        assert_eq!(fires(300, 110, 10), at(450));
    }

    #[test]
    fn what_leaves_later_does_not_postpone_a_timeout() {
        let at = Time::from_millis;
        let base = ProbeTimeout::new(Duration::from_millis(100), 3, Duration::from_millis(50));
        let mut liveness = Liveness::new(at(0));
        liveness.on_timeout(at(100), 1, 2);
        let mut fires = |oldest| {
            liveness.on_sent(at(250));
            liveness.timeout_at(oldest, base)
        };
        assert_eq!(fires(at(0)), at(300));
        // Packets in flight at the timeout are not waited for any more.
        assert_eq!(fires(at(240)), at(440));
    }

    #[test]
    fn a_silent_path_is_asked_more_and_more_seldom() {
        let base = ProbeTimeout::new(Duration::from_millis(40), 10, Duration::from_millis(20));
        let mut liveness = Liveness::new(Time::ZERO);
        liveness.on_timeout(Time::from_millis(40), 1, 2);
        let mut asked = Vec::new();
        while let at = liveness.ask_at(base)
            && at < Time::from_secs(8)
        {
            liveness.ask_in_silence(at);
            assert!(liveness.take_question() && !liveness.take_question());
            asked.push(at);
        }
        let within = |from, to| {
            let [from, to] = [from, to].map(Time::from_millis);
            asked.iter().filter(|at| (from..to).contains(at)).count()
        };
        // Every 40 ms while that is more than a sixteenth of the silence, then 11.4 times in each doubling of it.
        assert_eq!(within(0, 640), 14);
        for from in [1000, 2000, 4000] {
            assert!([11, 12].contains(&within(from, 2 * from)), "{asked:?}");
        }
    }

    #[test]
    fn a_path_that_is_not_used_is_probed_soon() {
        let second = Duration::from_secs(1);
        let base = ProbeTimeout::new(second, 3, second);
        let mut liveness = Liveness::new(Time::ZERO);
        liveness.on_sent(Time::ZERO);
        liveness.on_timeout(Time::from_secs(1), 1, 2);
        assert_eq!(liveness.timeout_at(Time::ZERO, base), Time::from_secs(2));
        assert_eq!(liveness.probe_at(Time::ZERO, base), Time::from_millis(1500));
    }

    #[test]
    fn an_answer_has_the_time_of_two_round_trips() {
        let [short, long] = [100, 4000].map(Duration::from_millis);
        let least = Duration::from_secs(3);
        assert_eq!(ProbeTimeout::new(short, 0, least).base, short);
        assert_eq!(ProbeTimeout::new(long, 0, least).base, long);
        assert_eq!(ProbeTimeout::new(long * 2, 0, least).base, least * 2);
    }
}
