//! Newly acknowledged packets, and the path's samples that they give.

use anabranch_policy::congestion::RateSample;
use anabranch_types::Time;
use core::time::Duration;

use super::Connection;
use super::feedback::AckOutcome;
use super::paths::PathIndex;
use crate::path::UDP_OVERHEAD;
use crate::path::sent::{Fate, SentPacket};
use crate::wire::AckFrame;

impl Connection {
    /// Processes the packets that this frame is the first to acknowledge. Each packet is processed
    /// once, however often it is acknowledged.
    pub(super) fn take_acked(
        &mut self,
        now: Time,
        slot: PathIndex,
        ack: &AckFrame<'_>,
        outcome: &mut AckOutcome,
    ) {
        let oldest = self.paths[slot].sent.oldest();
        let mut runs = core::mem::take(&mut self.scratch.runs);
        for range in ack.ranges() {
            if *range.end() < oldest {
                break;
            }
            runs.clear();
            self.paths[slot].sent.acknowledge(range, |run| runs.push(run));
            self.watch_acknowledged(now, slot, &runs);
            outcome.largest_is_news |= runs.last().is_some_and(|run| run.contains(&ack.largest));
            for number in runs.iter().rev().flat_map(|run| run.clone().rev()) {
                let resolved = self.paths[slot].sent.resolve(number, Fate::Acked);
                let Some(packet) = resolved.filter(|packet| packet.ack_eliciting) else { continue };
                outcome.newest = outcome.newest.or(Some(number));
                self.packet_acked(now, slot, (number, &packet), outcome);
            }
        }
        self.scratch.runs = runs;
        self.tell_estimator(now, slot);
    }

    /// Processes a packet that is acknowledged for the first time.
    #[inline]
    fn packet_acked(
        &mut self,
        now: Time,
        slot: PathIndex,
        (number, packet): (u64, &SentPacket),
        outcome: &mut AckOutcome,
    ) {
        let path = &mut self.paths[slot];
        let payload = (u64::from(packet.bytes) - UDP_OVERHEAD) as u16;
        path.sent.on_acked(now, number);
        path.counters.acked_packets += 1;
        path.ecn.on_acked(number);
        path.rate.on_delivered(u64::from(packet.bytes));
        path.mtu.on_acked(payload, packet.sent);
        if path.note_lateness(now, number, packet) {
            outcome.late.add(now.since(packet.sent), path.rtt.view().smoothed);
        }
        outcome.largest_acked_sent = outcome.largest_acked_sent.max(packet.sent);
        if packet.fate == Fate::Lost && packet.probe.is_none() {
            path.counters.spurious_losses += 1;
            if packet.counted_lost {
                let event = self.resolution(now, slot, packet.block(), (0, 1));
                self.policies.estimator.on_spurious(&event);
            }
        } else {
            outcome.acked_bytes += u64::from(packet.bytes);
            outcome.acked_packets += 1;
        }
        if packet.is_mtu_probe() {
            self.mtu_probe_acked(now, slot, payload);
        }
        self.packet_resolved(now, slot, (number, packet), true);
        if packet.has_control {
            while self.paths[slot].control.take(number).is_some() {}
        }
    }

    /// Takes round-trip, forward-delay and rate samples from the newest packet acknowledged and
    /// from packets that arrived late. Without the late packets, only packets that overtake others
    /// would be measured.
    pub(super) fn sample(
        &mut self,
        now: Time,
        slot: PathIndex,
        ack: &AckFrame<'_>,
        outcome: &AckOutcome,
    ) -> Option<RateSample> {
        let path = &mut self.paths[slot];
        let number = outcome.newest?;
        let packet = *path.sent.get(number)?;
        let mut late = outcome.late;
        if !late.is_empty() {
            if packet.overtaken.is_none() {
                late.add(now.since(packet.sent), path.rtt.view().smoothed);
            }
            let sent = path.rtt.on_late(now, &late);
            // A late packet is reported at once, so it was received when the report was made.
            path.rtt.on_forward(now, sent, ack.received_at.wrapping_add(ack.delay_us as u32));
        } else if let Some(largest) = path.sent.get(ack.largest).filter(|_| outcome.largest_is_news)
        {
            // The largest packet is sampled even if it only acknowledges, since some sides send
            // little else (RFC 9002 §5.1).
            let (sent, claimed) = (largest.sent, Duration::from_micros(ack.delay_us));
            path.rtt.on_sample(now, sent, claimed.min(self.peer_parameters.max_ack_delay));
            path.rtt.on_forward(now, sent, ack.received_at);
        }
        if number < ack.largest {
            return None;
        }
        let received_at = path.peer_clock.unwrap(ack.received_at);
        path.rate.sample(&packet, received_at)
    }

    pub(super) fn take_ecn(
        &mut self,
        slot: PathIndex,
        ack: &AckFrame<'_>,
        outcome: &mut AckOutcome,
    ) {
        let path = &mut self.paths[slot];
        let marks = path.ecn.on_report(ack.ect0, ack.ce).min(u64::from(u32::MAX));
        path.counters.ce_marks += marks;
        outcome.ce_packets = marks as u32;
    }
}
