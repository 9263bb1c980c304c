use core::time::Duration;

use anabranch_types::Time;

use super::DelayError;
use crate::rate::draws::Draws;

/// Packets that arrive in clumps: a packet that leaves the link waits for the next release, and all waiting packets
/// are released at one instant.
///
/// This models a WiFi station, which sends an aggregate whenever it gets the medium, and a link
/// whose return path gathers acknowledgements. The n-th release comes at n·P + W·uₙ with uₙ uniform
/// in [0, 1), where P = (`least` + `most`) / 2 and W = (`most` − `least`) / 2. So gaps lie between
/// `least` and `most`, with a triangular density around P, whatever the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clumps {
    /// The shortest time between two releases; at most `most`.
    pub least: Duration,
    /// The longest time between two releases; 1 µs to 10 s.
    pub most: Duration,
}

impl Clumps {
    /// Checks the parameters.
    ///
    /// # Errors
    /// When a parameter is out of its range.
    pub fn validate(&self) -> Result<(), DelayError> {
        let range = Duration::from_micros(1)..=Duration::from_secs(10);
        if self.least <= self.most && range.contains(&self.most) {
            return Ok(());
        }
        let allowed = "a least gap that is not above the most, that 1us to 10s";
        Err(DelayError::new("clumps", format!("{:?}-{:?}", self.least, self.most), allowed))
    }
}

/// The releases of [`Clumps`].
#[derive(Clone, Debug)]
pub(super) struct Releases {
    /// Mean gap between releases, P, and the largest offset of a release after a multiple of it, W;
    /// both in nanoseconds.
    period: u64,
    scatter: f64,
    draws: Draws,
}

impl Releases {
    /// The releases of a valid `config`; the random draws are the substream of `seed` called `stream`.
    pub(super) fn new(config: Clumps, seed: u64, stream: &str) -> Self {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let (least, most) = (nanos(config.least), nanos(config.most));
        Releases {
            period: ((least + most) / 2).max(1),
            scatter: (most - least) as f64 / 2.0,
            draws: Draws::new(seed, stream),
        }
    }

    /// The first release at `time` or later.
    pub(super) fn at_or_after(&self, time: Time) -> Time {
        let number = time.as_nanos() / self.period;
        let this = self.release(number);
        if this >= time { this } else { self.release(number + 1) }
    }

    fn release(&self, number: u64) -> Time {
        let late = (self.draws.uniform(number, 0) * self.scatter) as u64;
        Time::from_nanos(number.saturating_mul(self.period).saturating_add(late))
    }
}
