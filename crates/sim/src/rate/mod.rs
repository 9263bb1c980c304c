//! Values that change at known times: a link's rate, its scheduled loss, its blackouts.

mod blackout;
mod schedule;

#[cfg(test)]
mod tests;

pub use blackout::{Blackout, darken};
pub use schedule::{Cursor, Schedule, ScheduleError};
