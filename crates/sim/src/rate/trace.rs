use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use anabranch_types::{Bitrate, Time};

use super::recorded;

/// Bytes that one delivery opportunity carries, a full IP packet. (Mahimahi counts 1504 bytes,
/// because its tunnel adds 4 bytes to every packet.)
pub const OPPORTUNITY_BYTES: u32 = 1500;

/// Maximum number of opportunities in a trace.
pub(super) const MAX_OPPORTUNITIES: usize = 20_000_000;
/// The latest time in a trace, milliseconds: 10 days.
const MAX_MILLIS: u64 = 864_000_000;

/// A recording of the times at which a link could deliver a packet, in the format of Mahimahi
/// (Netravali et al. 2015; traces by Winstein, Sivaraman and Balakrishnan 2013).
///
/// Each opportunity carries up to [`OPPORTUNITY_BYTES`] of the waiting packets. A larger packet
/// takes several opportunities, and the next packet may use the bytes that a smaller packet leaves.
/// An opportunity that finds an empty queue is lost, and a packet that arrives at the same instant
/// is too late for it. The last time is also the period after which the trace starts over.
///
/// A recorded rate is also accepted, with a time in seconds and a rate in Mb/s on each line; it is
/// converted to opportunities. The rate of a line holds until the time of the next line. Times rise
/// strictly and count from the time of the first line. The trace starts over once its last line has
/// held for as long as the line before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryTrace {
    /// Times of the opportunities in ascending order, nanoseconds; at least one.
    nanos: Arc<[u64]>,
    /// Nanoseconds after which the trace starts over; above zero and not below the last
    /// opportunity.
    period: u64,
}

impl DeliveryTrace {
    /// Reads `text`, which has either a whole number of milliseconds on each line, or a time in
    /// seconds and a rate in Mb/s on each line. Blank lines and everything after `#` are ignored.
    ///
    /// # Errors
    /// When a line does not have the form of the first line or is out of order (the error names the
    /// first such line), or when the trace is empty, has a period of zero, or has no or too many
    /// opportunities.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut entries = text.lines().map(|line| line.split('#').next().unwrap_or_default());
        let columns = entries.find(|entry| !entry.trim().is_empty());
        if columns.is_some_and(|entry| entry.split_whitespace().count() > 1) {
            return recorded::rates(text);
        }
        let allowed = "a millisecond not below the one before it, 0 to 864000000";
        let mut nanos: Vec<u64> = Vec::new();
        let mut last_line = 0;
        for (i, line) in text.lines().enumerate() {
            let entry = line.split('#').next().unwrap_or_default().trim();
            if entry.is_empty() {
                continue;
            }
            let millis = entry.parse().ok().filter(|millis: &u64| *millis <= MAX_MILLIS);
            let value = millis
                .map(|millis| millis * 1_000_000)
                .filter(|value| nanos.last().is_none_or(|last| last <= value))
                .filter(|_| nanos.len() < MAX_OPPORTUNITIES);
            nanos.push(value.ok_or_else(|| TraceError::new(i + 1, entry, allowed))?);
            last_line = i + 1;
        }
        match nanos.last() {
            None => Err(TraceError::empty(allowed)),
            Some(0) => {
                Err(TraceError::new(last_line, 0, "a last millisecond above 0: it is the period"))
            }
            Some(period) => Ok(DeliveryTrace { period: *period, nanos: nanos.into() }),
        }
    }

    /// A trace with opportunities at `nanos`, of which there is at least one; they must be in
    /// ascending order and not later than `period`.
    pub(super) fn from_parts(nanos: Vec<u64>, period: u64) -> Self {
        DeliveryTrace { nanos: nanos.into(), period }
    }

    /// The time after which the trace starts over.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.period)
    }

    /// Number of opportunities in one period.
    pub fn opportunities(&self) -> u64 {
        self.nanos.len() as u64
    }

    /// The mean rate over one period.
    pub fn mean_rate(&self) -> Bitrate {
        let bytes = self.opportunities() * u64::from(OPPORTUNITY_BYTES);
        Bitrate::from_transfer(bytes, self.period())
    }

    /// Number of opportunities in `[0, time]`, repetitions included. This is also the number,
    /// counted from 0, of the first opportunity later than `time`.
    pub fn count(&self, time: Time) -> u64 {
        let (cycle, rest) = (time.as_nanos() / self.period, time.as_nanos() % self.period);
        // An opportunity at the end of the period falls on the first instant of the next cycle.
        let within = self.nanos.partition_point(|nanos| *nanos <= rest) as u64;
        cycle.saturating_mul(self.opportunities()).saturating_add(within)
    }

    /// The time of opportunity `number`, counted from 0.
    fn time(&self, number: u64) -> Time {
        let n = self.opportunities();
        let within = self.nanos.get((number % n) as usize).copied().unwrap_or(0);
        Time::from_nanos((number / n).saturating_mul(self.period).saturating_add(within))
    }
}

/// Sends packets at the opportunities of a [`DeliveryTrace`].
#[derive(Clone, Debug)]
pub struct TraceCourse {
    trace: DeliveryTrace,
    /// Number of the opportunity that finished the last packet, and the bytes that it has left.
    number: u64,
    left: u32,
}

impl TraceCourse {
    /// A course that starts at time zero.
    pub fn new(trace: &DeliveryTrace) -> Self {
        TraceCourse { trace: trace.clone(), number: 0, left: 0 }
    }

    /// The trace.
    pub fn trace(&self) -> &DeliveryTrace {
        &self.trace
    }

    /// When the service of a packet of `size` bytes ends that begins at `start`.
    ///
    /// If the link was `idle` before, opportunities up to `start` are lost. If not, the link has
    /// just finished the previous packet, and this packet first uses the bytes left of that
    /// opportunity.
    pub fn finish(&mut self, start: Time, size: u32, idle: bool) -> Time {
        if idle {
            self.number = self.trace.count(start);
            self.left = OPPORTUNITY_BYTES;
        }
        let size = size.max(1);
        if size > self.left {
            let beyond = u64::from(size - self.left);
            let more = beyond.div_ceil(u64::from(OPPORTUNITY_BYTES));
            self.number = self.number.saturating_add(more);
            self.left = (more * u64::from(OPPORTUNITY_BYTES) - beyond) as u32;
        } else {
            self.left -= size;
        }
        self.trace.time(self.number)
    }
}

/// An error in a trace file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// The line, counted from 1; 0 for the file as a whole.
    pub line: usize,
    /// The text of the line, cut off after 40 characters.
    pub given: String,
    /// Accepted contents of the line.
    pub allowed: &'static str,
}

impl TraceError {
    pub(crate) fn new(line: usize, given: impl fmt::Display, allowed: &'static str) -> Self {
        // The file may not be a trace at all, and its lines may be very long.
        let given = given.to_string().chars().take(40).collect();
        TraceError { line, given, allowed }
    }

    pub(crate) fn empty(allowed: &'static str) -> Self {
        TraceError::new(0, "", allowed)
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TraceError { line, given, allowed } = self;
        match line {
            0 => write!(f, "the trace is empty; allowed on each line: {allowed}"),
            _ => write!(f, "line {line}: '{given}' is not accepted; allowed: {allowed}"),
        }
    }
}

impl core::error::Error for TraceError {}
