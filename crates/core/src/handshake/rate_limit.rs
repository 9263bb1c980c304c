//! Limits how often each source may do something, in memory of fixed size.

use crate::crypto::Randomness;
use anabranch_types::Time;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

/// Cells of a row. Two sources share an allowance only if they share a cell in both rows.
const CELLS: usize = 1024;
/// Cells of a row of the limit that distinguishes first-time sources from all others.
const CELLS_FOR_FIRST: usize = 16_384;

/// Addresses that count as one source: an IPv4 address, or the first 56 bits of an IPv6 address,
/// the longest prefix that is commonly assigned to one customer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source(u64);

impl Source {
    /// The source to which an address belongs, with any port.
    pub fn of(remote: SocketAddr) -> Self {
        match remote.ip().to_canonical() {
            // The last byte distinguishes the address families, since it is zero in every IPv6
            // prefix.
            IpAddr::V4(ip) => Source((u64::from(ip.to_bits()) << 8) | 4),
            IpAddr::V6(ip) => Source((ip.to_bits() >> 64) as u64 & !0xff),
        }
    }
}

/// A rate for each source: a sketch of two rows, in each of which a source has a cell that it
/// shares with a few others. Each cell implements the generic cell rate algorithm: it holds the
/// time at which the full burst is available again.
///
/// A source is refused only when both its cells are exhausted, so one source that exceeds its rate
/// uses up another's allowance with a probability of 10^-6. Many such sources together exhaust
/// cells at random; the sketch then limits all of them together to the rate times the number of
/// cells.
pub(super) struct RateLimit {
    rows: [Row; 2],
    interval: Duration,
    tolerance: Duration,
}

struct Row {
    /// Secret, so that others cannot look for sources that share a cell.
    seed: u64,
    rested: Box<[Time]>,
}

impl RateLimit {
    /// A limit of `burst` actions at once and `rate` actions per second in the long run for each
    /// source, both at least 1.
    pub(super) fn new(rate: u64, burst: u64, random: &mut dyn Randomness) -> Self {
        let interval = Duration::from_nanos(1_000_000_000 / rate.max(1));
        let burst = u32::try_from(burst.max(1)).unwrap_or(u32::MAX);
        Self::of(CELLS, interval, interval.saturating_mul(burst - 1), random)
    }

    /// A limit of one action in `interval` for each source. While 1,000 sources act as often as
    /// they may, one in 250 sources that come for the first time is refused.
    pub(super) fn once(interval: Duration, random: &mut dyn Randomness) -> Self {
        Self::of(CELLS_FOR_FIRST, interval, Duration::ZERO, random)
    }

    fn of(
        cells: usize,
        interval: Duration,
        tolerance: Duration,
        random: &mut dyn Randomness,
    ) -> Self {
        let mut row = || Row { seed: random.next_u64(), rested: vec![Time::ZERO; cells].into() };
        RateLimit { rows: [row(), row()], interval, tolerance }
    }

    /// Takes one from the allowance of `source`, if there is one.
    pub(super) fn take(&mut self, now: Time, source: Source) -> bool {
        let latest = now + self.tolerance;
        let mut taken = false;
        for row in &mut self.rows {
            let index = spread(source.0 ^ row.seed) as usize % row.rested.len().max(1);
            let Some(rested) = row.rested.get_mut(index) else { continue };
            if *rested <= latest {
                *rested = (*rested).max(now) + self.interval;
                taken = true;
            }
        }
        taken
    }
}

impl core::fmt::Debug for RateLimit {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RateLimit").field("interval", &self.interval).finish_non_exhaustive()
    }
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): every input bit changes every output bit.
fn spread(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::null::Reproducible;
    use anabranch_types::Rng;

    fn limit(seed: u64) -> RateLimit {
        RateLimit::new(20, 5, &mut Reproducible(Rng::new(seed)))
    }

    fn source(n: u32) -> Source {
        Source::of(SocketAddr::from((n.to_be_bytes(), 1)))
    }

    #[test]
    fn each_source_has_its_burst_and_its_rate() {
        let mut limit = limit(1);
        for n in 0..10 {
            assert_eq!((0..100).filter(|_| limit.take(Time::ZERO, source(n))).count(), 5);
        }
        let in_ten_seconds =
            (1..=10_000).filter(|ms| limit.take(Time::from_millis(*ms), source(3))).count();
        assert_eq!(in_ten_seconds, 200);
    }

    #[test]
    fn a_noisy_source_is_refused_alone() {
        let mut limit = limit(2);
        for n in 1..10_000 {
            let now = Time::from_secs(u64::from(n));
            while limit.take(now, source(0)) {}
            assert!(limit.take(now, source(n)), "source {n}");
        }
    }

    #[test]
    fn who_comes_for_the_first_time_is_told_from_a_crowd() {
        let once = Duration::from_secs(10);
        let mut limit = RateLimit::once(once, &mut Reproducible(Rng::new(4)));
        for second in 1..60 {
            let now = Time::from_secs(second);
            let taken = (0..1000).filter(|n| limit.take(now, source(*n))).count();
            assert!(second % 10 == 1 || taken < 100, "{taken} at {second} s");
        }
        let now = Time::from_secs(61);
        assert!((0..1000).filter(|n| limit.take(now, source(*n))).count() > 980);
        let first = (1000..2000).filter(|n| limit.take(now, source(*n))).count();
        assert!(first > 980, "{first}");
    }

    #[test]
    fn a_crowd_is_held_to_what_the_cells_allow() {
        let mut limit = limit(3);
        let taken = (0..100_000).filter(|n| limit.take(Time::ZERO, source(*n))).count();
        assert!(taken <= 2 * CELLS * 5, "{taken}");
    }

    #[test]
    fn prefixes_count_as_one_source() {
        let of = |text: &str| Source::of(text.parse().unwrap());
        assert_eq!(of("192.0.2.1:1"), of("192.0.2.1:2"));
        assert_eq!(of("192.0.2.1:1"), of("[::ffff:192.0.2.1]:2"));
        assert_ne!(of("192.0.2.1:1"), of("192.0.2.2:1"));
        assert_eq!(of("[2001:db8:1:200::1]:1"), of("[2001:db8:1:2ff:1::]:2"));
        assert_ne!(of("[2001:db8:1:200::1]:1"), of("[2001:db8:1:300::1]:1"));
    }
}
