//! The bound that congestion marks set, in bytes per round trip: additive increase, multiplicative
//! decrease.
//!
//! A marking queue signals all flows that share it alike when it is long enough. So flows that
//! reduce their bound in proportion share it fairly, whatever rates they have estimated.

use anabranch_types::{Bitrate, Time};
use core::time::Duration;

use crate::congestion::AckEvent;
use crate::congestion::cwnd::MAX_CWND;

/// Factor on the bound at a mark (RFC 8511 §3.1).
const KEPT: f64 = 0.8;
/// Packets by which the bound grows in a round trip, so that its mean is that of a flow which halves and grows by
/// one: 3·(1 − b)/(1 + b), where b is the share kept (RFC 9438 §4.3).
const GROWTH: f64 = 1.0 / 3.0;
/// A bound below this many packets grows in proportion to itself: a third of a packet is a large step for a flow of
/// two packets, and many such flows would keep the queue marking every other packet.
const SMALL: f64 = 8.0;
/// A bound of any size grows back to where it met the mark within this many round trips.
const BACK_IN: f64 = 32.0;
/// Above this many times the bytes at which the last mark was met, that mark says nothing about the
/// free capacity: the bound then grows by the share [`EXPLORING`] of itself in a round trip.
const BEYOND: f64 = 1.5;
const EXPLORING: f64 = 0.125;
/// Least bound, packets. Below one packet, the pacer sends less than one packet in a round trip.
const LEAST: f64 = 0.25;
/// Largest loss for which growth is compensated.
const MAX_LOSS: f64 = 0.9;

/// Bytes that may leave in a round trip, once marks have been seen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MarkBound(Option<Bound>);

#[derive(Clone, Copy, Debug)]
struct Bound {
    bytes: f64,
    /// The bound, or the bytes in flight if there was none, when the last mark was met.
    met: f64,
    cut_at: Time,
}

impl MarkBound {
    /// Processes an acknowledgement on a path with packets of `packet` bytes; returns whether its
    /// marks lowered the bound. Packets sent before the last reduction change nothing.
    pub(super) fn on_ack(&mut self, event: &AckEvent, packet: u64) -> bool {
        let packet = packet as f64;
        if self.0.is_some_and(|bound| event.largest_acked_sent <= bound.cut_at) {
            return false;
        }
        if event.ce_packets > 0 {
            let met = self.0.map_or(event.prior_in_flight as f64, |bound| bound.bytes);
            let bytes = (met * KEPT).clamp(LEAST * packet, MAX_CWND as f64);
            self.0 = Some(Bound { bytes, met, cut_at: event.now });
            return true;
        }
        if let Some(bound) = &mut self.0
            && !event.app_limited
        {
            // Lost bytes count too, since they passed the queue without a mark.
            let passed = event.acked_bytes as f64 / (1.0 - event.loss.mean.clamp(0.0, MAX_LOSS));
            let rounds = (passed / bound.bytes.max(packet)).min(1.0);
            bound.bytes = (bound.bytes + bound.growth(packet) * rounds).min(MAX_CWND as f64);
        }
        false
    }

    /// Drops the bound when it has grown beyond `cwnd`, since marks then no longer limit the path.
    pub(super) fn release_above(&mut self, cwnd: u64) {
        self.0 = self.0.filter(|bound| bound.bytes <= cwnd as f64);
    }

    /// The bound, if there is one.
    pub(super) fn bytes(&self) -> Option<u64> {
        self.0.map(|bound| bound.bytes as u64)
    }

    /// The bound as a rate over round trips of `smoothed`.
    pub(super) fn rate(&self, smoothed: Duration) -> Option<Bitrate> {
        self.bytes().map(|bytes| Bitrate::from_transfer(bytes, smoothed))
    }
}

impl Bound {
    /// Bytes by which the bound grows in a round trip without a mark.
    fn growth(&self, packet: f64) -> f64 {
        if self.bytes > self.met * BEYOND {
            return self.bytes * EXPLORING;
        }
        let additive = GROWTH * packet * (self.bytes / (SMALL * packet)).min(1.0);
        additive.max(self.met * (1.0 - KEPT) / BACK_IN)
    }
}

#[cfg(test)]
mod tests;
