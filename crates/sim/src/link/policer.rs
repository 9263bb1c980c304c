use anabranch_types::{Bitrate, DataSize, Time};

use super::LinkConfigError;
use super::config::RATE_RANGE;

/// A token bucket in front of a link's buffer. Packets beyond its rate are dropped, not delayed.
///
/// Operators limit their subscribers in this way (the single-rate policing of RFC 2697 without its
/// second bucket). The bucket starts full. A packet takes as many bytes out of the bucket as it
/// has, and is dropped if the bucket holds fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policer {
    /// Rate at which the bucket fills: 1 kb/s to 1 Tb/s.
    pub rate: Bitrate,
    /// Capacity of the bucket: 1500 B to 1 GiB.
    pub burst: DataSize,
}

/// The smallest and the largest bucket, bytes.
const BURSTS: core::ops::RangeInclusive<u64> = 1_500..=1 << 30;

impl Policer {
    /// The accepted values, for error messages.
    pub(super) const ALLOWED: &'static str =
        "a rate of 1kbit to 1000gbit and a burst of 1500B to 1GiB, such as 20mbit/64KiB";

    /// Checks the parameters.
    ///
    /// # Errors
    /// When a parameter is out of its range.
    pub fn validate(&self) -> Result<(), LinkConfigError> {
        let Policer { rate, burst } = self;
        if (RATE_RANGE.0..=RATE_RANGE.1).contains(rate) && BURSTS.contains(&burst.as_bytes()) {
            return Ok(());
        }
        Err(LinkConfigError::new(
            "policer",
            format!("{rate}/{}B", burst.as_bytes()),
            Policer::ALLOWED,
        ))
    }
}

/// The bucket of a [`Policer`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    /// Rate at which the bucket fills, bits per second.
    rate: u64,
    /// The bucket's level and capacity in billionths of a bit, so that nothing is rounded.
    level: u128,
    most: u128,
    filled: Time,
}

/// Billionths of a bit in a byte.
const BYTE: u128 = 8_000_000_000;

impl Bucket {
    /// A bucket that is full at time zero.
    pub(super) fn full(policer: Policer) -> Self {
        let most = u128::from(policer.burst.as_bytes()) * BYTE;
        Bucket { rate: policer.rate.as_bps(), level: most, most, filled: Time::ZERO }
    }

    /// Takes the bytes of a packet at `now` if the bucket holds enough. Returns whether it did.
    /// `now` must not decrease between calls.
    pub(super) fn takes(&mut self, now: Time, size: u32) -> bool {
        let gained = now.since(self.filled).as_nanos() * u128::from(self.rate);
        self.level = self.most.min(self.level + gained);
        self.filled = now;
        let taken = u128::from(size) * BYTE;
        let there = taken <= self.level;
        if there {
            self.level -= taken;
        }
        there
    }
}
