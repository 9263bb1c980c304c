//! Delivery-rate samples in which lost packets count as if they had crossed the bottleneck.
//!
//! Bytes sent between two acknowledged packets crossed the bottleneck between the receptions of
//! these packets, even if they were lost after it. These bytes, divided by the time between the
//! receptions on the receiver's clock, give the bottleneck's rate even at 75 % loss and with
//! acknowledgements on changing return paths. (With a full drop-tail queue, packets lost *before*
//! the bottleneck count too; controllers distinguish the cases by the standing queue.)

use super::sent::{RateSnapshot, SentPacket};
use anabranch_policy::congestion::RateSample;
use anabranch_types::Time;
use core::time::Duration;

/// Delivery state of one path.
#[derive(Clone, Debug, Default)]
pub struct RateSampler {
    /// Bytes sent in ack-eliciting packets.
    sent: u64,
    /// Bytes acknowledged.
    pub delivered: u64,
    /// The newest acknowledged packet: bytes sent up to it, its receive time and its send time.
    acked_offset: u64,
    acked_at: u64,
    first_sent: Time,
    app_limited_until: Option<u64>,
}

impl RateSampler {
    /// Notes that a packet of `bytes` is sent now. Returns the snapshot to keep with the packet.
    pub fn on_sent(&mut self, now: Time, bytes: u64, idle: bool) -> RateSnapshot {
        if idle && self.is_app_limited() {
            // Nothing was in flight because the application had no data, so the gap before this
            // packet says nothing about the path. If a whole window is acknowledged at once,
            // nothing is in flight either, but the sender is not app-limited.
            self.first_sent = now;
            self.acked_at = 0;
        }
        let snapshot = RateSnapshot {
            delivered: self.delivered,
            acked_offset: self.acked_offset,
            acked_at: self.acked_at,
            first_sent: self.first_sent,
            offset: self.sent,
            app_limited: self.app_limited_until.is_some(),
        };
        self.sent += bytes;
        snapshot
    }

    /// Notes that there is nothing to send although the window has room. Samples are lower bounds
    /// until all bytes now in flight are acknowledged.
    pub fn on_app_limited(&mut self) {
        self.app_limited_until = Some(self.sent);
    }

    /// Whether samples are lower bounds now.
    pub fn is_app_limited(&self) -> bool {
        self.app_limited_until.is_some()
    }

    /// Counts acknowledged bytes, once per packet.
    pub fn on_delivered(&mut self, bytes: u64) {
        self.delivered += bytes;
    }

    /// Processes the newest packet acknowledged by an ACK frame, which the peer received at
    /// `received_at` (unwrapped microseconds of its clock). Returns a sample if there is an earlier
    /// reception to measure from.
    pub fn sample(&mut self, packet: &SentPacket, received_at: u64) -> Option<RateSample> {
        let snapshot = packet.snapshot;
        if self.app_limited_until.is_some_and(|until| snapshot.offset >= until) {
            self.app_limited_until = None;
        }
        self.acked_offset = snapshot.offset;
        self.acked_at = received_at;
        self.first_sent = packet.sent;
        if snapshot.acked_at == 0 || received_at <= snapshot.acked_at {
            return None;
        }
        let span = snapshot.offset.checked_sub(snapshot.acked_offset)?;
        let arrival = Duration::from_micros(received_at - snapshot.acked_at);
        let departure = packet.sent.since(snapshot.first_sent);
        let delivered = self.delivered.saturating_sub(snapshot.delivered).min(span);
        Some(RateSample {
            delivered,
            lost: span - delivered,
            departure,
            arrival,
            app_limited: snapshot.app_limited,
            prior_delivered: snapshot.delivered,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::sent::Fate;
    use super::*;

    #[test]
    fn lost_packets_do_not_lower_the_rate() {
        // 1 packet of 1250 B per millisecond = 10 Mb/s; only every fourth is acknowledged, 20 ms later.
        let mut sampler = RateSampler::default();
        let mut packets = Vec::new();
        let mut last = None;
        for ms in 0..400_u64 {
            let now = Time::from_millis(ms);
            if ms >= 20 && (ms - 20) % 4 == 0 {
                let packet: &SentPacket = &packets[(ms - 20) as usize];
                sampler.on_delivered(1250);
                last = sampler.sample(packet, 5_000_000 + (ms - 10) * 1000).or(last);
            }
            packets.push(packet(now, sampler.on_sent(now, 1250, false)));
        }
        let sample = last.unwrap();
        let mbps = sample.resolved_rate().as_mbps();
        assert!((mbps - 10.0).abs() < 0.1, "{mbps}");
        assert!((sample.delivery_rate().as_mbps() - 2.5).abs() < 0.6);
    }

    fn packet(sent: Time, snapshot: RateSnapshot) -> SentPacket {
        let (fate, ack_eliciting) = (Fate::InFlight, true);
        SentPacket { fate, ack_eliciting, snapshot, ..SentPacket::unwatched(sent, 1250) }
    }

    #[test]
    fn a_window_that_is_acknowledged_at_once_is_measured_from_the_one_before() {
        // Bursts of 10 packets every millisecond, each acknowledged as a whole: nothing is in flight between.
        let mut sampler = RateSampler::default();
        let mut last = None;
        for ms in 0..20_u64 {
            let now = Time::from_millis(ms);
            let sent = core::array::from_fn::<_, 10, _>(|place| {
                packet(now, sampler.on_sent(now, 1250, place == 0))
            });
            sampler.on_delivered(10 * 1250);
            last = sampler.sample(&sent[9], 5_000_000 + ms * 1000).or(last);
        }
        let mbps = last.unwrap().delivery_rate().as_mbps();
        assert!((mbps - 100.0).abs() < 1.0, "{mbps}");
    }

    #[test]
    fn a_pause_of_the_application_is_not_measured() {
        let mut sampler = RateSampler::default();
        let first = packet(Time::ZERO, sampler.on_sent(Time::ZERO, 1250, true));
        sampler.on_delivered(1250);
        assert!(sampler.sample(&first, 5_000_000).is_none());
        sampler.on_app_limited();
        let later = Time::from_millis(1000);
        let second = packet(later, sampler.on_sent(later, 1250, true));
        sampler.on_delivered(1250);
        assert!(sampler.sample(&second, 6_000_000).is_none());
    }
}
