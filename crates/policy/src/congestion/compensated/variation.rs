//! How much the bottleneck's rate varies, from what is delivered in slots of equal time.
//!
//! The rates of round trips do not show it: a few acknowledgements that come early, or packets that
//! others hold up, make a round trip shorter or longer, and its rate seem to vary. They hardly
//! change how much is delivered in a slot.

use anabranch_types::Time;

use crate::congestion::AckEvent;

/// Slots that are remembered, and the length of a slot in typical round trips. Packets that are
/// held up for a round trip are then at most half of those of a slot.
const SLOTS: usize = 10;
const LENGTH: f64 = 2.0;
/// Least length of a slot, s.
const LEAST_LENGTH: f64 = 2e-3;
/// The largest slot may be this many times the mean by chance, and because of our own probing.
const CHANCE: f64 = 1.2;
/// Largest factor by which the variation raises the pacing rate.
const MOST_ROOM: f64 = 1.5;

/// Measures the variation of the rate.
#[derive(Clone, Debug, Default)]
pub(super) struct Variation {
    /// When the current slot began, and what had been delivered by then.
    began: Time,
    delivered: u64,
    /// Whether the current slot does not count, since we sent less than the path carries, or were
    /// in startup, where more is delivered because we send more.
    is_void: bool,
    /// The rates of the last slots, bytes per second, the newest first, and how many there are.
    rates: [f64; SLOTS],
    count: usize,
}

impl Variation {
    /// Processes an acknowledgement. `typical` is the round-trip time without a queue, s.
    pub(super) fn on_ack(&mut self, event: &AckEvent, typical: f64, starting: bool) {
        self.is_void |= starting || event.rate.is_none_or(|sample| sample.app_limited);
        let length = event.now.since(self.began).as_secs_f64();
        if length < (LENGTH * typical).max(LEAST_LENGTH) {
            return;
        }
        if !self.is_void && self.began > Time::ZERO {
            self.rates.rotate_right(1);
            self.rates[0] = event.total_delivered.saturating_sub(self.delivered) as f64 / length;
            self.count = (self.count + 1).min(SLOTS);
        }
        (self.began, self.delivered, self.is_void) = (event.now, event.total_delivered, false);
    }

    /// The factor by which the pacing rate may exceed the estimated rate, to leave room for the
    /// moments in which the path carries more: 1 if the rate hardly varies.
    pub(super) fn room(&self) -> f64 {
        let rates = &self.rates[..self.count];
        let mean = rates.iter().sum::<f64>() / self.count.max(1) as f64;
        if mean <= 0.0 {
            return 1.0;
        }
        let beyond = rates.iter().copied().fold(0.0, f64::max) / mean / CHANCE;
        (beyond * beyond).clamp(1.0, MOST_ROOM)
    }
}
