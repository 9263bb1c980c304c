//! Round-trip times (RFC 9002 §5), and the forward queueing delay, measured from receive times.

use anabranch_policy::view::RttView;
use anabranch_types::Time;
use core::time::Duration;

/// Window of the minima. A minimum expires after half to all of this time, so that a route change
/// shows.
const MIN_WINDOW: Duration = Duration::from_secs(60);
/// Assumed round-trip time before the first sample.
const INITIAL: Duration = Duration::from_millis(200);
/// Number of queue samples kept, which exceeds the number of later acknowledgements after which a
/// packet counts as lost.
const QUEUES: usize = 8;

/// The least of a signal over the last [`MIN_WINDOW`], kept as two half-window minima.
#[derive(Clone, Copy, Debug)]
struct WindowedMin {
    current: i64,
    previous: i64,
    turned: Time,
}

impl WindowedMin {
    const fn new() -> Self {
        WindowedMin { current: i64::MAX, previous: i64::MAX, turned: Time::ZERO }
    }

    fn update(&mut self, now: Time, value: i64) {
        if now.since(self.turned) > MIN_WINDOW / 2 {
            self.previous = self.current;
            self.current = i64::MAX;
            self.turned = now;
        }
        self.current = self.current.min(value);
    }

    fn value(&self) -> i64 {
        self.current.min(self.previous)
    }
}

/// Ages of packets that one acknowledgement reports. The age is the time since the packet was sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ages {
    count: u32,
    sum: Duration,
    /// Sum of the distances from the smoothed round-trip time.
    distances: Duration,
}

impl Ages {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a packet's age; `smoothed` is the smoothed round-trip time.
    pub fn add(&mut self, age: Duration, smoothed: Duration) {
        self.count += 1;
        self.sum += age;
        self.distances += age.abs_diff(smoothed);
    }

    /// The mean age, and the mean distance from the smoothed round-trip time.
    fn mean(&self) -> (Duration, Duration) {
        let count = self.count.max(1);
        (self.sum / count, self.distances / count)
    }
}

/// Smoothed round-trip time, its variation and minimum, and the forward queueing delay.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    view: RttView,
    min: WindowedMin,
    forward_min: WindowedMin,
    /// Forward transit time (with unknown clock offset) of the newest sample, unwrapped
    /// microseconds.
    forward: Option<i64>,
    /// A ring of the newest samples: when each packet was sent, and the queueing delay that it met.
    /// `next_queue` is the index of the oldest.
    queues: [Option<(Time, Duration)>; QUEUES],
    next_queue: usize,
}

impl Default for RttEstimator {
    fn default() -> Self {
        RttEstimator {
            view: RttView {
                latest: INITIAL,
                smoothed: INITIAL,
                variation: INITIAL / 2,
                min: INITIAL,
                queue: Duration::ZERO,
                forward: 0,
                samples: 0,
            },
            min: WindowedMin::new(),
            forward_min: WindowedMin::new(),
            forward: None,
            queues: [None; QUEUES],
            next_queue: 0,
        }
    }
}

impl RttEstimator {
    /// The current values.
    pub fn view(&self) -> RttView {
        self.view
    }

    /// The values after the path has been idle for this long. The queue drains meanwhile, although
    /// no acknowledgement shows it.
    pub fn view_after(&self, idle: Duration) -> RttView {
        RttView { queue: self.view.queue.saturating_sub(idle), ..self.view }
    }

    /// Processes a packet that was sent at `sent` and is acknowledged now. The receiver delayed the
    /// acknowledgement by `delay`.
    pub fn on_sample(&mut self, now: Time, sent: Time, delay: Duration) {
        let latest = now.since(sent);
        self.see(now, latest);
        // The peer reports the delay, which must not reduce the sample below the minimum.
        let adjusted = if latest >= self.view.min + delay { latest - delay } else { latest };
        self.smooth(adjusted, self.view.smoothed.abs_diff(adjusted));
    }

    /// Processes packets of these ages, some of them late, that are acknowledged now. Returns their
    /// mean send time.
    ///
    /// RFC 9002 takes samples only from the largest packet number. With reordering, that packet is
    /// always a fast one, and half of the others take longer than the variation of such samples
    /// allows for.
    pub fn on_late(&mut self, now: Time, ages: &Ages) -> Time {
        let (mean, distance) = ages.mean();
        self.see(now, mean);
        self.smooth(mean, distance);
        now - mean
    }

    fn see(&mut self, now: Time, latest: Duration) {
        self.min.update(now, i64::try_from(latest.as_nanos()).unwrap_or(i64::MAX));
        self.view.latest = latest;
        self.view.min = Duration::from_nanos(self.min.value().max(0) as u64);
    }

    fn smooth(&mut self, sample: Duration, distance: Duration) {
        let view = &mut self.view;
        if view.samples == 0 {
            view.smoothed = sample;
            view.variation = sample / 2;
        } else {
            view.variation = view.variation.mul_f64(0.75) + distance.mul_f64(0.25);
            view.smoothed = view.smoothed.mul_f64(0.875) + sample.mul_f64(0.125);
        }
        view.samples += 1;
    }

    /// Processes a packet that was sent at `sent` and received when the peer's clock (32 bits of
    /// microseconds) showed `received_at`. Only differences are used, so the clocks need not be
    /// synchronised.
    pub fn on_forward(&mut self, now: Time, sent: Time, received_at: u32) {
        let transit = i64::from(received_at.wrapping_sub(sent.as_micros() as u32) as i32);
        // Unwrap against the previous sample: the 32-bit difference of two transits is small.
        let transit = match self.forward {
            Some(previous) => previous + i64::from((transit as i32).wrapping_sub(previous as i32)),
            None => transit,
        };
        self.forward = Some(transit);
        self.forward_min.update(now, transit);
        let queue = transit.saturating_sub(self.forward_min.value()).max(0);
        self.view.forward = self.forward_min.value();
        self.view.queue = Duration::from_micros(queue as u64);
        self.queues[self.next_queue % QUEUES] = Some((sent, self.view.queue));
        self.next_queue = (self.next_queue + 1) % QUEUES;
    }

    /// Estimate of the queueing delay that an unacknowledged packet sent at `sent` met: the longer
    /// delay of the last sampled packet before it and the first one after it. A packet dropped by a
    /// full queue is found lost when later packets arrive; if the sender paused, these meet a short
    /// queue.
    pub fn queue_met(&self, sent: Time) -> Duration {
        let samples = || self.queues.iter().flatten();
        let before = samples().filter(|(at, _)| *at <= sent).max_by_key(|(at, _)| *at);
        let after = samples().filter(|(at, _)| *at >= sent).min_by_key(|(at, _)| *at);
        let queue = |sample: Option<&(Time, Duration)>| sample.map_or(Duration::ZERO, |(_, q)| *q);
        queue(before).max(queue(after))
    }

    /// Discards all samples because the path was dead or its address changed.
    pub fn reset(&mut self) {
        *self = RttEstimator::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forward_queue_survives_clock_offset_and_wrap() {
        let mut rtt = RttEstimator::default();
        // The peer's 32-bit clock wraps between the two samples.
        let offset = u32::MAX - 60_000;
        for (sent_ms, transit_us) in [(10_u64, 20_000_u32), (40, 20_000), (70, 33_000)] {
            let sent = Time::from_millis(sent_ms);
            let received = offset.wrapping_add(sent.as_micros() as u32).wrapping_add(transit_us);
            rtt.on_forward(sent + Duration::from_millis(50), sent, received);
        }
        assert_eq!(rtt.view().queue, Duration::from_millis(13));
        let after = |millis| rtt.view_after(Duration::from_millis(millis)).queue;
        assert_eq!(
            (after(0), after(5), after(20)),
            (rtt.view().queue, Duration::from_millis(8), Duration::ZERO)
        );
    }

    /// A full queue of 30 ms, a pause until the queue is empty, and the first packet after the
    /// pause.
    #[test]
    fn a_packet_without_room_met_the_queue_that_its_neighbours_met() {
        let mut rtt = RttEstimator::default();
        let at = Time::from_millis;
        assert_eq!(rtt.queue_met(at(5)), Duration::ZERO);
        for (sent, transit) in [(0, 20_000), (40, 50_000), (41, 50_000), (90, 20_000)] {
            rtt.on_forward(at(sent + 60), at(sent), sent as u32 * 1000 + transit);
        }
        assert_eq!(rtt.view().queue, Duration::ZERO);
        let met = |sent| rtt.queue_met(at(sent)).as_millis();
        assert_eq!((met(20), met(40), met(42), met(89)), (30, 30, 30, 30));
        assert_eq!((met(90), met(95)), (0, 0));
        // Newer samples replace these.
        for sent in 100..108 {
            rtt.on_forward(at(sent + 60), at(sent), sent as u32 * 1000 + 20_000);
        }
        assert_eq!(rtt.queue_met(at(42)), Duration::ZERO);
    }

    #[test]
    fn samples_follow_rfc_6298_weights() {
        let mut rtt = RttEstimator::default();
        rtt.on_sample(Time::from_millis(100), Time::ZERO, Duration::ZERO);
        rtt.on_sample(Time::from_millis(280), Time::from_millis(100), Duration::ZERO);
        assert_eq!(rtt.view().smoothed, Duration::from_millis(110));
        assert_eq!(rtt.view().variation.as_micros(), 57_500);
        assert_eq!(rtt.view().min, Duration::from_millis(100));
    }

    #[test]
    fn packets_that_came_late_count_with_their_mean_age() {
        let mut rtt = RttEstimator::default();
        rtt.on_sample(Time::from_millis(100), Time::ZERO, Duration::ZERO);
        let mut ages = Ages::default();
        for age in [80, 200] {
            ages.add(Duration::from_millis(age), rtt.view().smoothed);
        }
        let sent = rtt.on_late(Time::from_millis(300), &ages);
        assert_eq!(sent, Time::from_millis(160));
        // 7/8 · 100 + 1/8 · 140 ms; 3/4 · 50 + 1/4 · (20 + 100)/2 ms.
        assert_eq!(rtt.view().smoothed, Duration::from_millis(105));
        assert_eq!(rtt.view().variation.as_micros(), 52_500);
        assert_eq!(rtt.view().latest, Duration::from_millis(140));
    }
}
