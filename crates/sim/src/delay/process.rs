use core::fmt;
use core::time::Duration;

use anabranch_types::Time;

use super::clumps::Releases;
use super::jitter::JitterProcess;
use super::steps::StepCourse;
use super::{Clumps, DelaySteps, DelayTrace, Jitter};
use crate::rate::Schedule;

/// How the delay of a link varies around its schedule, for all packets alike.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum DelayCourse {
    /// The delay is the one that the schedule gives.
    #[default]
    Steady,
    /// The delay jumps at regular times.
    Steps(DelaySteps),
    /// The delay is recorded. The schedule, which must be constant, holds its mean and only sizes buffers.
    Trace(DelayTrace),
}

/// Everything about a link's delay.
#[derive(Clone, Debug)]
pub struct DelayConfig {
    /// The delay over time.
    pub schedule: Schedule<Duration>,
    /// How the delay varies around the schedule.
    pub course: DelayCourse,
    /// How the delay varies from packet to packet.
    pub jitter: Jitter,
    /// Whether packets wait at the end of the link and are released in clumps.
    pub clumps: Option<Clumps>,
}

impl DelayConfig {
    /// Checks every part against the range that its documentation states.
    ///
    /// # Errors
    /// When a value is outside its range; the error names the key of the first such value and its range.
    pub fn validate(&self) -> Result<(), DelayError> {
        for (_, delay) in self.schedule.steps() {
            if *delay > MAX_DELAY {
                return Err(DelayError::new("delay", format!("{delay:?}"), "at most 60s"));
            }
        }
        match &self.course {
            DelayCourse::Steps(steps) => steps.validate()?,
            DelayCourse::Trace(_) if self.schedule.steps().len() > 1 => {
                let allowed = "the mean of the trace alone";
                return Err(DelayError::new("delay", "changes beside a trace", allowed));
            }
            DelayCourse::Trace(_) | DelayCourse::Steady => {}
        }
        self.clumps.map_or(Ok(()), |clumps| clumps.validate())?;
        self.jitter.validate(self.schedule.at(Time::ZERO))
    }
}

/// The longest delay.
pub(crate) const MAX_DELAY: Duration = Duration::from_secs(60);

/// Computes when packets arrive at the end of a link.
#[derive(Clone, Debug)]
pub struct DelayProcess {
    schedule: Schedule<Duration>,
    course: Course,
    jitter: JitterProcess,
    releases: Option<Releases>,
}

#[derive(Clone, Debug)]
enum Course {
    Steady,
    Steps(StepCourse),
    Trace(DelayTrace),
}

impl DelayProcess {
    /// The process of `config`; its random draws are the substreams of `seed` whose names begin with `stream`.
    ///
    /// # Errors
    /// The errors of [`DelayConfig::validate`].
    pub fn new(config: &DelayConfig, seed: u64, stream: &str) -> Result<Self, DelayError> {
        config.validate()?;
        let named = |part| format!("{stream}.{part}");
        let course = match &config.course {
            DelayCourse::Steady => Course::Steady,
            DelayCourse::Steps(steps) => {
                Course::Steps(StepCourse::new(*steps, seed, &named("delay-steps")))
            }
            DelayCourse::Trace(trace) => Course::Trace(trace.clone()),
        };
        let first = config.schedule.at(Time::ZERO);
        Ok(DelayProcess {
            schedule: config.schedule.clone(),
            course,
            jitter: config.jitter.process(first, seed, &named("jitter"))?,
            releases: config.clumps.map(|clumps| Releases::new(clumps, seed, &named("clumps"))),
        })
    }

    /// The arrival time of a packet whose last bit is sent at `sent`. Every call draws new jitter;
    /// `sent` must not decrease between calls.
    pub fn arrival(&mut self, sent: Time) -> Time {
        let delay = match &mut self.course {
            Course::Steady => self.schedule.at(sent),
            Course::Steps(steps) => self.schedule.at(sent) + steps.extra(sent),
            Course::Trace(trace) => trace.at(sent),
        };
        let arrival = sent + self.jitter.delay(sent, delay);
        match &self.releases {
            Some(releases) => releases.at_or_after(arrival),
            None => arrival,
        }
    }

    /// A lower bound on the arrival time of a packet whose last bit is sent at `sent`.
    pub fn earliest(&self, sent: Time) -> Time {
        let delay = match &self.course {
            Course::Steady | Course::Steps(_) => self.schedule.at(sent),
            Course::Trace(trace) => trace.at(sent),
        };
        sent + self.jitter.least(delay)
    }
}

/// A parameter of a delay is out of its range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelayError {
    /// The key of the parameter.
    pub key: &'static str,
    /// The value given.
    pub given: String,
    /// The values allowed.
    pub allowed: &'static str,
}

impl DelayError {
    pub(super) fn new(key: &'static str, given: impl fmt::Display, allowed: &'static str) -> Self {
        DelayError { key, given: given.to_string(), allowed }
    }
}

impl fmt::Display for DelayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: '{}' is not accepted; allowed: {}", self.key, self.given, self.allowed)
    }
}

impl core::error::Error for DelayError {}
