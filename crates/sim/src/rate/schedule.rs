use core::fmt;

use anabranch_types::Time;

/// A piecewise-constant function of time: a first value from time zero on, then changes at rising
/// times.
///
/// The value of a change at `t` holds from `t` on.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule<V> {
    /// The values and the times from which they hold. There is at least one entry, the first is at
    /// `Time::ZERO`, and times rise strictly.
    steps: Vec<(Time, V)>,
}

impl<V: Copy> Schedule<V> {
    /// A schedule that always has `value`.
    pub fn constant(value: V) -> Self {
        Schedule { steps: vec![(Time::ZERO, value)] }
    }

    /// A schedule with `initial` from time zero on, and then each `(time, value)` of `changes`.
    ///
    /// # Errors
    /// When a change is at time zero, or not later than the change before it.
    pub fn new(
        initial: V,
        changes: impl IntoIterator<Item = (Time, V)>,
    ) -> Result<Self, ScheduleError> {
        let mut schedule = Schedule::constant(initial);
        let mut latest = Time::ZERO;
        for (time, value) in changes {
            if time <= latest {
                return Err(ScheduleError { time, after: latest });
            }
            latest = time;
            schedule.steps.push((time, value));
        }
        Ok(schedule)
    }

    /// The value at `time`. Takes time logarithmic in the number of changes.
    pub fn at(&self, time: Time) -> V {
        let after = self.steps.partition_point(|(start, _)| *start <= time);
        self.steps[after.saturating_sub(1)].1
    }

    /// Every value with the time from which it holds; the first time is zero.
    pub fn steps(&self) -> &[(Time, V)] {
        &self.steps
    }

    /// A reader that steps through this schedule from time zero on.
    pub fn cursor(&self) -> Cursor<V> {
        Cursor { steps: self.steps.clone(), index: 0 }
    }

    /// A schedule of steps whose times are known to rise; `None` unless the first is at time zero.
    pub(super) fn from_steps(steps: Vec<(Time, V)>) -> Option<Self> {
        let starts_at_epoch = steps.first().is_some_and(|(time, _)| *time == Time::ZERO);
        starts_at_epoch.then_some(Schedule { steps })
    }
}

/// Steps through a [`Schedule`] in order of time. A step takes constant time.
#[derive(Clone, Debug)]
pub struct Cursor<V> {
    steps: Vec<(Time, V)>,
    index: usize,
}

impl<V: Copy> Cursor<V> {
    /// The current value.
    #[inline]
    pub fn current(&self) -> V {
        self.steps[self.index].1
    }

    /// When the next change is due; `Time::MAX` if there is none.
    #[inline]
    pub fn next_change(&self) -> Time {
        self.steps.get(self.index + 1).map_or(Time::MAX, |(time, _)| *time)
    }

    /// Advances to the next change, if there is one.
    pub fn step(&mut self) {
        self.index = (self.index + 1).min(self.steps.len() - 1);
    }

    /// Applies every change due at or before `now`.
    #[inline]
    pub fn advance(&mut self, now: Time) {
        while self.index + 1 < self.steps.len() && self.next_change() <= now {
            self.index += 1;
        }
    }
}

/// The error for a schedule whose times do not rise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleError {
    /// The first time that does not rise.
    pub time: Time,
    /// The time of the entry before, which `time` should be later than.
    pub after: Time,
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a change at {} must come after {}", self.time, self.after)
    }
}

impl core::error::Error for ScheduleError {}
