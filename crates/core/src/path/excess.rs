//! The packet that may leave beyond the congestion window when losses are found.

use anabranch_types::Time;

/// One packet for each recovery period: lost data is sent again at once, not only when enough has been acknowledged
/// for it to fit into the window, which the loss has halved (RFC 9002 §7.3.2; RFC 6675 §5, step 4.3). With a window
/// of two or three packets that would take most of a round trip.
#[derive(Debug, Default)]
pub struct Excess {
    allowed: bool,
    /// When the recovery period began.
    since: Option<Time>,
}

impl Excess {
    /// Losses were found, and the newest of the lost packets left at `sent`. If it left after the recovery period
    /// began, another begins.
    pub fn on_lost(&mut self, now: Time, sent: Time) {
        if self.since.is_none_or(|since| sent > since) {
            *self = Excess { allowed: true, since: Some(now) };
        }
    }

    /// Data left.
    pub fn on_sent(&mut self) {
        self.allowed = false;
    }

    /// Whether a packet may leave although the window is full.
    pub fn is_allowed(&self) -> bool {
        self.allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + core::time::Duration::from_millis(ms)
    }

    #[test]
    fn a_recovery_period_has_one() {
        let mut excess = Excess::default();
        assert!(!excess.is_allowed());
        excess.on_lost(at(100), at(0));
        assert!(excess.is_allowed());
        excess.on_sent();
        // Packets in flight when the first loss was found, up to the same instant.
        excess.on_lost(at(110), at(60));
        excess.on_lost(at(190), at(100));
        assert!(!excess.is_allowed());
        // Data sent again is lost as well.
        excess.on_lost(at(200), at(101));
        assert!(excess.is_allowed());
    }
}
