use core::fmt;
use core::time::Duration;

use anabranch_types::{Bitrate, Time};

use super::{
    Blackout, Cursor, DeliveryTrace, OPPORTUNITY_BYTES, RandomCourse, RandomRate, Schedule,
    TraceCourse, darken,
};

/// How a link's rate varies around its nominal rate.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Fluctuation {
    /// Not at all: the schedule is the rate.
    #[default]
    None,
    /// A random share of the nominal rate, drawn anew every period.
    Random(RandomRate),
    /// The link serves by the opportunities of a trace; the nominal rate, which must not change, is their mean
    /// and sizes buffers only.
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
        }
    }
}

/// Walks a link's rate forwards: schedule, fluctuation and blackouts together.
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
    Trace(TraceCourse),
}

impl RateProcess {
    /// The process at the epoch; its random draws are the substream of `seed` called `stream`.
    ///
    /// # Errors
    /// When the fluctuation's parameters are out of range.
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
            Fluctuation::Trace(trace) => Course::Trace(TraceCourse::new(trace)),
        };
        let nominal = darken(nominal, blackouts).cursor();
        let mut process = RateProcess { nominal, course, current: Bitrate::ZERO };
        process.refresh();
        Ok(process)
    }

    /// The rate that holds now, zero in a blackout; the mean rate where a trace decides.
    #[inline]
    pub fn current(&self) -> Bitrate {
        self.current
    }

    /// When the rate next changes; `Time::MAX` for never. The new rate may equal the old one.
    #[inline]
    pub fn next_change(&self) -> Time {
        match &self.course {
            Course::Steady | Course::Trace(_) => self.nominal.next_change(),
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

    /// When a packet of `size` bytes whose service begins at `start` has left, if a trace decides that; `idle`
    /// as in [`TraceCourse::finish`].
    pub fn opportunity(&mut self, start: Time, size: u32, idle: bool) -> Option<Time> {
        match &mut self.course {
            Course::Trace(trace) => Some(trace.finish(start, size, idle)),
            _ => None,
        }
    }

    /// Bits the link can carry in `(from, to]`, a span from now on in which the rate does not change.
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
            Course::Steady | Course::Trace(_) => nominal,
            Course::Random(random) => {
                Bitrate::from_bps((nominal.as_bps() as f64 * random.share()).round() as u64)
            }
        };
    }
}

/// Which parameter of a fluctuating rate is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateError {
    /// How long a level holds.
    Period(Duration),
    /// The least share, the largest share or the step.
    Shares,
}

impl fmt::Display for RateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RateError::Period(period) => {
                write!(f, "a period of {period:?} is outside 1ms to 1 day")
            }
            RateError::Shares => f.write_str(
                "the least share must be above 0% and at most the largest, that at most 1000%, the step \
                 above 0% and at most 100%, and the least share must not round to zero steps",
            ),
        }
    }
}

impl core::error::Error for RateError {}
