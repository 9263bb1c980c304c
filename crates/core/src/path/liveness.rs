//! Whether a path is alive, and the packets sent only to find that out.

use anabranch_policy::view::PathState;
use anabranch_types::{Time, math};
use core::time::Duration;

use super::Path;

/// Longest probe interval of a path that does not answer. It bounds the delay until the path's
/// return is noticed.
const MAX_PROBE_INTERVAL: Duration = Duration::from_millis(500);
/// Longest timeout, unless twice the least round-trip time is longer. With this bound, twenty
/// probes are sent within an idle timeout of 30 s even if the estimated round-trip time has grown
/// very long.
const MAX_TIMEOUT: Duration = Duration::from_millis(1500);
/// A silent path is probed again after the length of its silence divided by this number, but not
/// sooner than the timeout before back-off. The end of an outage is thus noticed after at most 1/16
/// of the outage's length.
const PROBE_DIVISOR: u32 = 16;
/// A silent path is suspected if random loss alone would cause the silence with less than this
/// probability.
const SILENCE_BY_CHANCE: f64 = 0.01;
/// Least loss assumed, because the loss estimate of a path with few packets is poor.
const SUPPOSED_LOSS: f64 = 0.3;
/// Number of consecutive timeouts that no loss explains.
const MOST_TIMEOUTS: u32 = 6;
/// Age of the round-trip time at which a side that only acknowledges measures it again.
const RTT_REFRESH: Duration = Duration::from_millis(500);

/// A probe timeout as the loss detector sees it.
#[derive(Clone, Copy, Debug)]
pub struct ProbeTimeout {
    /// The timeout before back-off.
    pub base: Duration,
    /// How often the timeout may double.
    pub doublings: u32,
    /// The longest timeout after doubling; `base` itself may be longer.
    pub longest: Duration,
}

impl ProbeTimeout {
    /// A timeout of `estimate`, at most `MAX_TIMEOUT` or twice `least_rtt`, that may double `doublings` times.
    ///
    /// The bound stops a feedback loop: a packet that is acknowledged only with the next probe
    /// makes the estimate as long as the probe interval, which delays the following probe even
    /// more.
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

/// When a path last sent and last received feedback, and the probes to be sent on it.
#[derive(Debug)]
pub struct Liveness {
    /// Number of consecutive timeouts, and the times of the first and the last of them.
    timeouts: u32,
    first_timeout: Time,
    last_timeout: Time,
    /// Ack-eliciting packets sent since the last feedback.
    sent_in_silence: u32,
    /// Packets that had been unacknowledged for a whole timeout when the timer last fired.
    overdue: u32,
    /// Probes that may still be sent beyond the window.
    probes: u8,
    /// Whether a small probe packet without data has to be sent.
    asks: bool,
    last_feedback: Time,
    /// Start of the probe timer for packets that were in flight at the last feedback.
    restarted: Time,
    /// Last time that an ack-eliciting packet was sent or a probe was requested.
    last_sent: Time,
    /// Last time that a packet was made ack-eliciting only to measure the round-trip time.
    asked: Time,
    /// Packets from this number on were sent after a probe was requested.
    asked_from: u64,
}

impl Liveness {
    /// Creates the state of a path that opens now.
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

    /// Number of consecutive timeouts.
    pub fn timeouts(&self) -> u32 {
        self.timeouts
    }

    /// Time of the first of the consecutive timeouts, if there are any.
    pub fn first_timeout(&self) -> Option<Time> {
        (self.timeouts > 0).then_some(self.first_timeout)
    }

    /// Number of probes that must be sent even if the window is full.
    pub fn probes(&self) -> u8 {
        self.probes
    }

    /// When an ack-eliciting packet was last sent or a probe was last requested.
    pub fn last_sent(&self) -> Time {
        self.last_sent
    }

    /// When the path last sent or received feedback.
    pub fn last_active(&self) -> Time {
        self.last_sent.max(self.last_feedback)
    }

    /// Notes that an ack-eliciting packet is sent.
    pub fn on_sent(&mut self, now: Time) {
        self.last_sent = now;
        self.sent_in_silence = self.sent_in_silence.saturating_add(1);
    }

    /// Processes an acknowledgement. The oldest packet in flight was sent `later` after the newest
    /// acknowledged one.
    ///
    /// The probe timer restarts (RFC 6298 §5.3). To start it now would give the oldest packet more
    /// time than it needs. The timer therefore starts `later` before now, but at most half of the
    /// timeout before now.
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

    /// Processes a timeout without feedback, during which `overdue` packets stayed unacknowledged.
    /// Requests `probes` probes. Returns the number of consecutive timeouts.
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

    /// Requests this many additional probes.
    pub fn add_probes(&mut self, count: u8) {
        self.probes = self.probes.saturating_add(count);
    }

    /// Requests a probe unless one is pending. The request counts as use of the path.
    pub fn ask_for_sign(&mut self, now: Time) {
        self.probes = self.probes.max(1);
        self.last_sent = now;
    }

    /// Requests a probe. Only the acknowledgement of packet `next` or a later one is an answer to
    /// it.
    pub fn ask_from(&mut self, now: Time, next: u64) {
        self.ask_for_sign(now);
        self.asked_from = next;
    }

    /// Whether the acknowledgement of packet `acked` answers the latest probe requested by
    /// [`ask_from`](Self::ask_from).
    pub fn is_answer(&self, acked: u64) -> bool {
        acked >= self.asked_from
    }

    /// Restarts the probe timer. Suspicion shortens the timeout; without the restart, the shorter
    /// timeout could have expired already.
    pub fn restart_timer(&mut self, now: Time) {
        (self.restarted, self.last_timeout) = (now, now);
    }

    /// Takes one probe to be sent. Returns how many are left.
    pub fn take_probe(&mut self) -> u8 {
        self.probes = self.probes.saturating_sub(1);
        self.probes
    }

    /// Whether the round-trip time is old enough to be measured again.
    pub fn wants_rtt(&self, now: Time) -> bool {
        self.asked.max(self.last_feedback) + RTT_REFRESH <= now
    }

    /// Notes that a packet is made ack-eliciting to measure the round-trip time.
    pub fn on_asked(&mut self, now: Time) {
        self.asked = now;
    }

    /// Whether the number of consecutive timeouts is too high to be explained by loss.
    pub fn is_long_silent(&self) -> bool {
        self.timeouts >= MOST_TIMEOUTS
    }

    /// Whether the path has timed out and a loss probability of `loss` does not explain its
    /// silence.
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

    /// When the probe timer fires. The timer starts at `oldest`, when the oldest packet in flight
    /// was sent, and restarts with feedback or a timeout. Later packets do not restart it, because
    /// a stream with few packets would then postpone it until the window is full.
    pub fn timeout_at(&self, oldest: Time, base: ProbeTimeout) -> Time {
        self.counts_from(oldest) + self.timeout(base)
    }

    fn counts_from(&self, oldest: Time) -> Time {
        oldest.max(if self.timeouts == 0 { self.restarted } else { self.last_timeout })
    }

    /// When a suspected path is probed again. The interval is short even if the round-trip time is
    /// long, so that the path's return is noticed soon.
    pub fn probe_at(&self, oldest: Time, base: ProbeTimeout) -> Time {
        self.counts_from(oldest) + self.timeout(base).min(MAX_PROBE_INTERVAL)
    }

    /// When a small probe packet is sent on a path that has timed out.
    ///
    /// A timeout sends full packets, and the interval between timeouts doubles. The small packets
    /// in between cost little. They also help if the path loses a fixed number of packets in a row,
    /// whatever time this takes.
    pub fn ask_at(&self, base: ProbeTimeout) -> Time {
        let last = self.last_active();
        let share = last.since(self.last_feedback) / PROBE_DIVISOR;
        last + base.base.max(share)
    }

    /// Requests a small probe packet.
    pub fn ask_in_silence(&mut self, now: Time) {
        (self.asks, self.last_sent) = (true, now);
    }

    /// Whether a small probe packet is requested. Clears the request.
    pub fn take_question(&mut self) -> bool {
        core::mem::take(&mut self.asks)
    }

    /// Resets the silence because the route to the peer has changed.
    pub fn start_over(&mut self, now: Time) {
        self.hear(now, now);
    }

    /// Cancels all probes because the path is closed.
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

    /// When the probe timer fires, which means a timeout without feedback while packets are in
    /// flight.
    pub fn timeout_at(&self) -> Option<Time> {
        let base = self.base_timeout();
        let oldest = self.sent.oldest_open()?;
        Some(match self.state {
            PathState::Suspect => self.liveness.probe_at(oldest, base),
            _ => self.liveness.timeout_at(oldest, base),
        })
    }

    /// When a small packet probes whether a path that has timed out works again. `None` if the loss
    /// detector sends no probes.
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
        // The last acknowledgement let one packet leave. The packets sent before it are overdue as
        // well.
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
        assert_eq!(fires(0, 110, 10), at(260)); // a later packet was acknowledged
        assert_eq!(fires(10, 110, 10), at(260));
        assert_eq!(fires(30, 110, 10), at(240));
        assert_eq!(fires(60, 110, 10), at(210)); // the packet's own timeout
        assert_eq!(fires(90, 110, 10), at(240));
        assert_eq!(fires(200, 400, 10), at(475)); // half of the timeout from now
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
        // The timer no longer waits for packets that were in flight at the timeout.
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
        // A probe every 40 ms while 40 ms is more than 1/16 of the silence, then 11.4 probes in
        // each doubling of the silence.
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
