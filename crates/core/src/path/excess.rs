//! The packet that may leave beyond the congestion window when losses are found.

use anabranch_types::Time;

/// Permission to send one packet beyond the window in each recovery period, so that lost data is
/// sent again at once (RFC 9002 §7.3.2; RFC 6675 §5, step 4.3). Without it, the sender would have
/// to wait until enough is acknowledged to fit the halved window; with a window of two or three
/// packets that takes most of a round trip.
#[derive(Debug, Default)]
pub struct Excess {
    allowed: bool,
    /// When the recovery period began.
    since: Option<Time>,
}

impl Excess {
    /// Processes losses, the newest of which was sent at `sent`. If it was sent after the recovery
    /// period began, a new period begins.
    pub fn on_lost(&mut self, now: Time, sent: Time) {
        if self.since.is_none_or(|since| sent > since) {
            *self = Excess { allowed: true, since: Some(now) };
        }
    }

    /// Notes that data was sent, which uses up the permission.
    pub fn on_sent(&mut self) {
        self.allowed = false;
    }

    /// Whether a packet may be sent although the window is full.
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
        // These packets were in flight when the first loss was found, or sent at that instant.
        excess.on_lost(at(110), at(60));
        excess.on_lost(at(190), at(100));
        assert!(!excess.is_allowed());
        // The retransmitted data is lost as well.
        excess.on_lost(at(200), at(101));
        assert!(excess.is_allowed());
    }
}
