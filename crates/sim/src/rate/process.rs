use core::fmt;
use core::time::Duration;

use anabranch_types::{Bitrate, Time};

use super::{
    Blackout, ContendedCourse, ContendedRate, Cursor, DeliveryTrace, OPPORTUNITY_BYTES,
    RandomCourse, RandomRate, Schedule, TraceCourse, darken,
};

/// How a link's rate varies around its nominal rate.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Fluctuation {
    /// The rate is exactly the nominal rate.
    #[default]
    None,
    /// A random share of the nominal rate, drawn anew every period.
    Random(RandomRate),
    /// The service times are those of a station on a saturated 802.11 channel. The nominal rate is
    /// the mean rate.
    Contended(ContendedRate),
    /// The link sends at the delivery opportunities of a trace. The nominal rate must be constant;
    /// it is the trace's mean rate and is used only for the size of buffers.
    Trace(DeliveryTrace),
}

impl Fluctuation {
    /// Checks the parameters.
    ///
    /// # Errors
    /// When a parameter is out of its range.
    pub fn validate(&self) -> Result<(), RateError> {
        match self {
            Fluctuation::None | Fluctuation::Trace(_) => Ok(()),
            Fluctuation::Random(random) => random.validate(),
            Fluctuation::Contended(contended) => contended.validate(),
        }
    }
}

/// A link's rate over time, from the schedule, the fluctuation and the blackouts together. Time
/// only moves forwards.
#[derive(Clone, Debug)]
pub struct RateProcess {
    /// The nominal rate, zero in blackouts.
    nominal: Cursor<Bitrate>,
    course: Course,
    current: Bitrate,
}

#[derive(Clone, Debug)]
enum Course {
    Steady,
    Random(RandomCourse),
    Contended(ContendedCourse),
    Trace(TraceCourse),
}

impl RateProcess {
    /// The process at time zero; its random draws are the substream of `seed` called `stream`.
    ///
    /// # Errors
    /// When a parameter of the fluctuation is out of its range.
    pub fn new(
        nominal: &Schedule<Bitrate>,
        fluctuation: &Fluctuation,
        blackouts: &[Blackout],
        seed: u64,
        stream: &str,
    ) -> Result<Self, RateError> {
        let course = match fluctuation {
            Fluctuation::None => Course::Steady,
            Fluctuation::Random(random) => Course::Random(RandomCourse::new(random, seed, stream)?),
            Fluctuation::Contended(contended) => {
                Course::Contended(ContendedCourse::new(contended, seed, stream)?)
            }
            Fluctuation::Trace(trace) => Course::Trace(TraceCourse::new(trace)),
        };
        let nominal = darken(nominal, blackouts).cursor();
        let mut process = RateProcess { nominal, course, current: Bitrate::ZERO };
        process.refresh();
        Ok(process)
    }

    /// The current rate, zero in a blackout. For a trace, this is the mean rate.
    #[inline]
    pub fn current(&self) -> Bitrate {
        self.current
    }

    /// When the rate next changes; `Time::MAX` for never. The new rate may equal the old one.
    #[inline]
    pub fn next_change(&self) -> Time {
        match &self.course {
            Course::Steady | Course::Contended(_) | Course::Trace(_) => self.nominal.next_change(),
            Course::Random(random) => self.nominal.next_change().min(random.next_change()),
        }
    }

    /// Advances to the next change.
    pub fn step(&mut self) {
        let change = self.next_change();
        if change < Time::MAX {
            self.advance(change);
        }
    }

    /// Applies every change due at or before `now`.
    pub fn advance(&mut self, now: Time) {
        if self.next_change() > now {
            return;
        }
        self.nominal.advance(now);
        if let Course::Random(random) = &mut self.course {
            random.advance(now);
        }
        self.refresh();
    }

    /// When the service of a packet of `size` bytes ends that begins at `start`, if a trace or
    /// contention decides that; `idle` as in [`TraceCourse::finish`].
    pub fn opportunity(&mut self, start: Time, size: u32, idle: bool) -> Option<Time> {
        match &mut self.course {
            Course::Trace(trace) => Some(trace.finish(start, size, idle)),
            Course::Contended(course) => Some(course.finish(start, size, self.current)),
            Course::Steady | Course::Random(_) => None,
        }
    }

    /// Bits that the link can carry in `(from, to]`. This span must lie in the current piece of the
    /// process, in which the rate does not change.
    pub fn bits(&self, from: Time, to: Time) -> f64 {
        match &self.course {
            Course::Trace(course) if self.current > Bitrate::ZERO => {
                let trace = course.trace();
                let opportunities = trace.count(to).saturating_sub(trace.count(from));
                opportunities as f64 * 8.0 * f64::from(OPPORTUNITY_BYTES)
            }
            _ => self.current.as_bps() as f64 * to.since(from).as_secs_f64(),
        }
    }

    fn refresh(&mut self) {
        let nominal = self.nominal.current();
        self.current = match &self.course {
            Course::Steady | Course::Contended(_) | Course::Trace(_) => nominal,
            Course::Random(random) => {
                Bitrate::from_bps((nominal.as_bps() as f64 * random.share()).round() as u64)
            }
        };
    }
}

/// Which parameter of a fluctuating rate is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateError {
    /// The time for which a level holds is out of its range.
    Period(Duration),
    /// The smallest share, the largest share or the step is out of its range.
    Shares,
    /// The number of contending stations is out of its range.
    Stations,
}

impl fmt::Display for RateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RateError::Period(period) => {
                write!(f, "a period of {period:?} is outside 1ms to 1 day")
            }
            RateError::Stations => f.write_str("the stations that contend must be 1 to 256"),
            RateError::Shares => f.write_str(
                "the least share must be above 0% and at most the largest, that at most 1000%, the step \
                 above 0% and at most 100%, and the least share must not round to zero steps",
            ),
        }
    }
}

impl core::error::Error for RateError {}
