//! Values that change with time: schedules of any value, a link's blackouts, and its rate.

mod blackout;
mod contention;
pub(crate) mod draws;
mod process;
mod random;
mod recorded;
mod schedule;
mod trace;

#[cfg(test)]
mod tests;

pub use blackout::{Blackout, darken};
pub use contention::{ContendedCourse, ContendedRate};
pub use process::{Fluctuation, RateError, RateProcess};
pub use random::{RandomCourse, RandomRate};
pub use schedule::{Cursor, Schedule, ScheduleError};
pub use trace::{DeliveryTrace, OPPORTUNITY_BYTES, TraceCourse, TraceError};
