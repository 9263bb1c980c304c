//! Pacing by credit. Timers are coarse, so the packets that were due before a late timer fired may
//! leave in a short burst.

use anabranch_types::{Bitrate, Time};
use core::time::Duration;

/// Most credit that may accumulate, as time at the pacing rate: two ticks of a millisecond timer.
const BURST_TIME: Duration = Duration::from_millis(2);
/// Credit that may accumulate even at a low rate, in packets.
const BURST_PACKETS: u64 = 2;

/// A token bucket of sending credit in bytes.
#[derive(Clone, Debug, Default)]
pub struct Pacer {
    rate: Option<Bitrate>,
    credit: u64,
    /// Credit is accounted up to this time.
    updated: Time,
    /// When credit was last accounted at the current rate. At the same time there is nothing to
    /// add.
    refilled: Option<Time>,
}

impl Pacer {
    /// Sets the rate from now on; `None` disables pacing.
    pub fn set_rate(&mut self, now: Time, rate: Option<Bitrate>, packet: u64) {
        if self.rate != rate {
            self.refill(now, packet);
            self.rate = rate;
            self.refilled = None;
        }
    }

    fn burst(&self, rate: Bitrate, packet: u64) -> u64 {
        rate.bytes_in(BURST_TIME).max(BURST_PACKETS * packet)
    }

    fn refill(&mut self, now: Time, packet: u64) {
        let Some(rate) = self.rate else {
            self.updated = now;
            return;
        };
        let burst = self.burst(rate, packet);
        let earned = rate.bytes_in(now.since(self.updated));
        if self.credit + earned >= burst {
            self.credit = burst;
            self.updated = now;
        } else if earned > 0 {
            self.credit += earned;
            // Advance only by the time of the whole bytes, so that no fraction is lost.
            self.updated = (self.updated + rate.time_to_send(earned)).min(now);
        }
    }

    /// Credit in bytes at the time of the last packet; `u64::MAX` without pacing.
    pub fn credit(&self) -> u64 {
        if self.rate.is_some() { self.credit } else { u64::MAX }
    }

    /// When a packet of `packet` bytes may leave; `Time::ZERO` if at once.
    pub fn next_send(&self, packet: u64) -> Time {
        match self.rate {
            None => Time::ZERO,
            Some(_) if self.credit >= packet => Time::ZERO,
            Some(rate) => self.updated + rate.time_to_send(packet - self.credit),
        }
    }

    /// Notes that `bytes` were sent. A full packet has `packet` bytes.
    pub fn on_sent(&mut self, now: Time, bytes: u64, packet: u64) {
        if self.refilled != Some(now) {
            self.refill(now, packet);
            self.refilled = Some(now);
        }
        self.credit = self.credit.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_run_rate_is_exact() {
        let mut pacer = Pacer::default();
        let rate = Bitrate::from_mbps(7.0);
        pacer.set_rate(Time::ZERO, Some(rate), 1200);
        let mut now = Time::ZERO;
        for _ in 0..10_000 {
            now = now.max(pacer.next_send(1200));
            pacer.on_sent(now, 1200, 1200);
        }
        let ideal = rate.time_to_send(1200 * 10_000).as_secs_f64();
        assert!((now.as_secs_f64() / ideal - 1.0).abs() < 1e-3, "{now} {ideal}");
    }

    #[test]
    fn a_late_timer_is_caught_up_but_idle_time_is_not() {
        let mut pacer = Pacer::default();
        pacer.set_rate(Time::ZERO, Some(Bitrate::from_mbps(96.0)), 1200);
        let mut sent = 0;
        let now = Time::from_secs(5);
        while pacer.next_send(1200) <= now {
            pacer.on_sent(now, 1200, 1200);
            sent += 1;
            assert!(sent < 100);
        }
        assert_eq!(sent, 20);
    }
}
