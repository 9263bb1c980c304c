//! Delivery rates, one sample per acknowledgement (draft-ietf-ccwg-bbr §4.1).

use anabranch_policy::congestion::RateSample;
use anabranch_types::Time;
use std::collections::VecDeque;

/// State of the sender when a segment left.
#[derive(Clone, Copy, Debug)]
struct Stamp {
    sent: Time,
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    lost: u64,
    app_limited: bool,
}

/// One stamp for each slot of the scoreboard, by the slot's absolute index.
#[derive(Clone, Debug, Default)]
pub(super) struct RateSampler {
    stamps: VecDeque<Stamp>,
    first: u64,
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    lost: u64,
    /// Until this many bytes are delivered, samples are limited by the application.
    app_limited_until: u64,
}

impl RateSampler {
    /// The slot with absolute index `index` was sent; `idle` if nothing was in flight before.
    pub(super) fn on_sent(&mut self, index: u64, now: Time, idle: bool) {
        if idle {
            self.first_sent = now;
            self.delivered_at = now;
        }
        let stamp = Stamp {
            sent: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            lost: self.lost,
            app_limited: self.delivered < self.app_limited_until,
        };
        let Ok(position) = usize::try_from(index.saturating_sub(self.first)) else { return };
        match self.stamps.get_mut(position) {
            Some(slot) => *slot = stamp,
            None => self.stamps.push_back(stamp),
        }
    }

    /// The sender ran out of data with `in_flight` bytes in the network.
    pub(super) fn on_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = (self.delivered + in_flight).max(1);
    }

    /// Bytes delivered so far, those above a gap included. [`RateSample::prior_delivered`] is this
    /// number as it was when a segment left.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// This many more bytes were declared lost.
    pub(super) fn on_lost(&mut self, bytes: u64) {
        self.lost += bytes;
    }

    /// `bytes` were newly delivered, and `newest` is the slot among them that was sent last. Slots
    /// below `first` are gone.
    pub(super) fn on_delivered(
        &mut self,
        now: Time,
        bytes: u64,
        newest: u64,
        first: u64,
    ) -> Option<RateSample> {
        let position = usize::try_from(newest.checked_sub(self.first)?).ok()?;
        let stamp = self.stamps.get(position).copied();
        while self.first < first {
            self.stamps.pop_front();
            self.first += 1;
        }
        self.delivered += bytes;
        self.delivered_at = now;
        let stamp = stamp?;
        self.first_sent = stamp.sent;
        let departure = stamp.sent.since(stamp.first_sent);
        let arrival = now.since(stamp.delivered_at);
        (!departure.max(arrival).is_zero()).then_some(RateSample {
            delivered: self.delivered - stamp.delivered,
            lost: self.lost - stamp.lost,
            departure,
            arrival,
            app_limited: stamp.app_limited,
            prior_delivered: stamp.delivered,
        })
    }
}
