//! A limit on the number of log lines about one subject.

use core::time::Duration;

use crate::Time;

/// The most lines about one subject in a minute.
const MOST: u32 = 60;
const MINUTE: Duration = Duration::from_secs(60);

/// Whether a line is written to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The line is written; others before it may have been left out.
    Write {
        /// How many lines were left out in the previous minute.
        left_out: u64,
    },
    /// The line is the first in this minute that is left out.
    FirstLeftOut,
    /// The line is left out, like others before it in this minute.
    LeftOut,
}

/// The lines about one subject, such as a peer, in the current minute. At most 60 are written, so
/// that a peer that causes events without end cannot fill a disk.
#[derive(Debug, Default)]
pub struct Lines {
    began: Time,
    written: u32,
    left_out: u64,
}

impl Lines {
    /// Counts a line, and says whether it is written.
    pub fn take(&mut self, now: Time) -> Verdict {
        let mut left_out = 0;
        if self.is_over(now) {
            left_out = self.left_out;
            *self = Lines { began: now, ..Lines::default() };
        }
        if self.written < MOST {
            self.written += 1;
            return Verdict::Write { left_out };
        }
        self.left_out += 1;
        if self.left_out == 1 { Verdict::FirstLeftOut } else { Verdict::LeftOut }
    }

    /// Whether the minute of these lines is over.
    pub fn is_over(&self, now: Time) -> bool {
        now.since(self.began) >= MINUTE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_has_so_many_lines_and_the_rest_is_counted() {
        let mut lines = Lines::default();
        let mut written = 0;
        for second in 0..600 {
            for part in 0..100 {
                let now = Time::from_millis(second * 1000 + part * 10);
                match lines.take(now) {
                    Verdict::Write { left_out } => {
                        written += 1;
                        let whole_minute = 6000 - u64::from(MOST);
                        assert!(left_out == 0 || left_out == whole_minute, "{left_out}");
                    }
                    Verdict::FirstLeftOut => assert_eq!(written % MOST, 0),
                    Verdict::LeftOut => {}
                }
            }
        }
        assert_eq!(written, 10 * MOST);
    }
}
