use core::time::Duration;
use std::sync::Arc;

use anabranch_types::Time;

use crate::rate::TraceError;

/// A recorded one-way delay: the value of each line holds until the time of the next line.
///
/// A line has two numbers in milliseconds, with or without a fraction: a time, and the delay from
/// then on. Times rise strictly and count from the time of the first line. The trace starts over
/// once its last line has held for as long as the line before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelayTrace {
    /// Start of each delay in nanoseconds, and the delay. There are at least two entries; the first
    /// starts at zero.
    delays: Arc<[(u64, Duration)]>,
    period: u64,
}

/// Maximum number of lines in a file; blank lines and comments are not counted.
const MAX_LINES: usize = 20_000_000;
/// Format of a line, as error messages state it.
const LINE: &str = "a millisecond above the one before it, up to 10 days after the first, and a delay of 0 to \
                    60000 ms, such as '120.5 31.2'";

impl DelayTrace {
    /// Reads `text`. Blank lines and everything after `#` are ignored.
    ///
    /// # Errors
    /// When a line is not two numbers in range or its time does not rise; the error names the first such line. When
    /// there are fewer than two lines.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut delays: Vec<(u64, Duration)> = Vec::new();
        let (mut first, mut latest) = (None, (0, ""));
        for (i, line) in text.lines().enumerate() {
            let entry = line.split('#').next().unwrap_or_default().trim();
            if entry.is_empty() {
                continue;
            }
            let read = numbers(entry).and_then(|(time, delay)| {
                let at = time - *first.get_or_insert(time);
                let nanos = (at * 1e6).round() as u64;
                let rises = delays.last().is_none_or(|(last, _)| *last < nanos) && at >= 0.0;
                let fits = delays.len() < MAX_LINES && at <= LONGEST;
                (rises && fits).then_some((nanos, delay))
            });
            latest = (i + 1, entry);
            delays.push(read.ok_or_else(|| TraceError::new(i + 1, entry, LINE))?);
        }
        let [.., (before, _), (last, _)] = delays.as_slice() else {
            let (line, entry) = latest;
            let allowed = "at least one line more, with a later time";
            return Err(match line {
                0 => TraceError::empty(LINE),
                _ => TraceError::new(line, entry, allowed),
            });
        };
        Ok(DelayTrace { period: 2 * last - before, delays: delays.into() })
    }

    /// The time after which the trace starts over.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.period)
    }

    /// The delay at `time`. Takes time logarithmic in the number of lines.
    pub fn at(&self, time: Time) -> Duration {
        let within = time.as_nanos() % self.period;
        let after = self.delays.partition_point(|(start, _)| *start <= within);
        self.delays.get(after.saturating_sub(1)).map_or(Duration::ZERO, |(_, delay)| *delay)
    }

    /// The mean delay over one period.
    pub fn mean(&self) -> Duration {
        let ends = self.delays.iter().skip(1).map(|(start, _)| *start).chain([self.period]);
        let weighted = self
            .delays
            .iter()
            .zip(ends)
            .map(|((start, delay), end)| delay.as_nanos() * u128::from(end - start));
        let mean = weighted.sum::<u128>() / u128::from(self.period);
        Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX))
    }
}

/// The longest trace, 10 days, and the longest delay, both in milliseconds.
const LONGEST: f64 = 864e6;
const MAX_DELAY: f64 = 60_000.0;

/// Parses a line: a time in milliseconds, and a delay.
fn numbers(entry: &str) -> Option<(f64, Duration)> {
    let mut parts = entry.split_whitespace().map(|part| part.parse::<f64>().ok());
    let (time, delay) = (parts.next()??, parts.next()??);
    let good = parts.next().is_none() && time.is_finite() && (0.0..=MAX_DELAY).contains(&delay);
    good.then(|| (time, Duration::from_nanos((delay * 1e6).round() as u64)))
}
