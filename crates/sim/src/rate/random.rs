use core::time::Duration;

use anabranch_types::Time;

use super::RateError;
use super::draws::Draws;

/// A rate that takes a new random level every period, as in pTCP's experiments with fluctuating
/// bandwidth (§6.3, figure 10).
///
/// Levels are shares of the link's nominal rate. They are drawn uniformly from `[least, most]` and
/// then rounded to a multiple of `step`, so the lowest and the highest level have half the
/// probability of the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomRate {
    /// How long each level holds: 1 ms to 1 day.
    pub period: Duration,
    /// Smallest share before rounding; above 0.
    pub least: f64,
    /// Largest share before rounding; at least `least`, at most 10.
    pub most: f64,
    /// Shares are multiples of this; above 0, at most 1. The smallest share must not round to zero.
    pub step: f64,
}

impl RandomRate {
    /// pTCP's parameters: 20 % to 100 % of the nominal rate in steps of 10 %, 60 % on average.
    pub fn ptcp(period: Duration) -> Self {
        RandomRate { period, least: 0.2, most: 1.0, step: 0.1 }
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// When a parameter is out of its range.
    pub fn validate(&self) -> Result<(), RateError> {
        let periods = Duration::from_millis(1)..=Duration::from_secs(86_400);
        if !periods.contains(&self.period) {
            return Err(RateError::Period(self.period));
        }
        let steps_valid = self.step > 0.0 && self.step <= 1.0;
        let shares_valid = self.least > 0.0 && self.least <= self.most && self.most <= 10.0;
        if steps_valid && shares_valid && self.round(self.least) > 0.0 {
            Ok(())
        } else {
            Err(RateError::Shares)
        }
    }

    fn round(&self, share: f64) -> f64 {
        (share / self.step).round() * self.step
    }
}

/// Steps through the levels of a [`RandomRate`] in order of time.
#[derive(Clone, Debug)]
pub struct RandomCourse {
    config: RandomRate,
    period_nanos: u64,
    /// Number of the current level, from 0.
    level: u64,
    share: f64,
    draws: Draws,
}

impl RandomCourse {
    /// The course of `config`, whose first level holds from time zero. Its random draws are the
    /// substream of `seed` called `stream`.
    ///
    /// # Errors
    /// When a parameter of `config` is out of its range.
    pub fn new(config: &RandomRate, seed: u64, stream: &str) -> Result<Self, RateError> {
        config.validate()?;
        let period_nanos = u64::try_from(config.period.as_nanos()).unwrap_or(u64::MAX);
        let draws = Draws::new(seed, stream);
        let mut course =
            RandomCourse { config: *config, period_nanos, level: 0, share: 0.0, draws };
        course.enter(0);
        Ok(course)
    }

    /// The current share of the nominal rate.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// When the next level begins.
    pub fn next_change(&self) -> Time {
        Time::from_nanos((self.level + 1).saturating_mul(self.period_nanos))
    }

    /// Goes forwards to the level that holds at `now`.
    pub fn advance(&mut self, now: Time) {
        let level = now.as_nanos() / self.period_nanos;
        if level > self.level {
            self.enter(level);
        }
    }

    fn enter(&mut self, level: u64) {
        let RandomRate { least, most, .. } = self.config;
        self.level = level;
        self.share = self.config.round(least + (most - least) * self.draws.uniform(level, 0));
    }
}
