use core::time::Duration;

use anabranch_types::Time;

use super::DelayError;
use crate::rate::draws::Draws;

/// A delay that jumps at regular times, like that of a satellite link when it changes satellites:
/// Starlink reassigns satellites every 15 s.
///
/// Each period has an extra delay. It is drawn uniformly from those values between zero and `most`
/// that differ from the previous extra delay by at least `least`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelaySteps {
    /// How long each extra delay holds: 100 ms to 1 day.
    pub period: Duration,
    /// The smallest jump; at most half of `most`, so that there always is a next value.
    pub least: Duration,
    /// The largest extra delay, and the largest jump; above zero, at most a minute.
    pub most: Duration,
}

impl DelaySteps {
    /// Checks the parameters.
    ///
    /// # Errors
    /// When a parameter is out of its range.
    pub fn validate(&self) -> Result<(), DelayError> {
        let periods = Duration::from_millis(100)..=Duration::from_secs(86_400);
        let sizes = Duration::from_nanos(1)..=Duration::from_secs(60);
        let fits = self.least.saturating_mul(2) <= self.most && sizes.contains(&self.most);
        if periods.contains(&self.period) && fits {
            return Ok(());
        }
        let allowed = "a period of 100ms to 1 day, and jumps of which the largest is at most 60s and at \
                       least twice the smallest";
        let given = format!("{:?}/{:?}-{:?}", self.period, self.least, self.most);
        Err(DelayError::new("delay-steps", given, allowed))
    }
}

/// Steps through the extra delays (levels) of [`DelaySteps`] in order of time.
#[derive(Clone, Debug)]
pub(super) struct StepCourse {
    config: DelaySteps,
    draws: Draws,
    /// Number of the current period, from 0, and its extra delay, nanoseconds.
    number: u64,
    level: u64,
}

impl StepCourse {
    /// The process of a valid `config`; its random draws are the substream of `seed` called `stream`.
    pub(super) fn new(config: DelaySteps, seed: u64, stream: &str) -> Self {
        let draws = Draws::new(seed, stream);
        let level = (draws.uniform(0, 0) * nanos(config.most) as f64) as u64;
        StepCourse { config, draws, number: 0, level }
    }

    /// The extra delay at `now`, which must not decrease between calls.
    pub(super) fn extra(&mut self, now: Time) -> Duration {
        let number = now.as_nanos() / nanos(self.config.period).max(1);
        while self.number < number {
            self.number += 1;
            self.jump();
        }
        Duration::from_nanos(self.level)
    }

    fn jump(&mut self) {
        let (least, most) = (nanos(self.config.least), nanos(self.config.most));
        // The next level is in [0, below) or [above, most].
        let below = self.level.saturating_sub(least);
        let above = self.level + least;
        let room = below + most.saturating_sub(above);
        let place = (self.draws.uniform(self.number, 0) * room as f64) as u64;
        self.level = if place < below { place } else { (place - below + above).min(most) };
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
