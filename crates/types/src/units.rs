use core::fmt;
use core::ops::{Add, AddAssign, Sub};
use core::str::FromStr;
use core::time::Duration;

/// A rate in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bitrate(u64);

impl Bitrate {
    /// Zero bits per second.
    pub const ZERO: Bitrate = Bitrate(0);

    /// A rate of `bps` bits per second.
    pub const fn from_bps(bps: u64) -> Self {
        Bitrate(bps)
    }

    /// A rate of `mbps` megabits (10^6 bits) per second, rounded to the bit.
    pub fn from_mbps(mbps: f64) -> Self {
        Bitrate((mbps * 1e6 + 0.5).max(0.0) as u64)
    }

    /// The rate at which `bytes` pass in `time`; zero if `time` is zero.
    pub fn from_transfer(bytes: u64, time: Duration) -> Self {
        let nanos = time.as_nanos();
        if nanos == 0 {
            return Bitrate::ZERO;
        }
        let bps = u128::from(bytes) * 8_000_000_000 / nanos;
        Bitrate(u64::try_from(bps).unwrap_or(u64::MAX))
    }

    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Megabits per second.
    pub fn as_mbps(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// How long `bytes` take at this rate, rounded up; `Duration::MAX` at rate zero.
    pub fn time_to_send(self, bytes: u64) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        let nanos = (u128::from(bytes) * 8_000_000_000).div_ceil(u128::from(self.0));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Whole bytes that pass in `time`.
    pub fn bytes_in(self, time: Duration) -> u64 {
        let bytes = u128::from(self.0) * time.as_nanos() / 8_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// This rate times `factor`; zero if `factor` is negative.
    pub fn mul_f64(self, factor: f64) -> Self {
        Bitrate((self.0 as f64 * factor).max(0.0) as u64)
    }
}

impl Add for Bitrate {
    type Output = Bitrate;
    fn add(self, rhs: Bitrate) -> Bitrate {
        Bitrate(self.0.saturating_add(rhs.0))
    }
}

impl fmt::Display for Bitrate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} Mb/s", self.as_mbps())
    }
}

/// An amount of data in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataSize(u64);

impl DataSize {
    /// No data.
    pub const ZERO: DataSize = DataSize(0);

    /// A size of `bytes` bytes.
    pub const fn from_bytes(bytes: u64) -> Self {
        DataSize(bytes)
    }

    /// Bytes.
    pub const fn as_bytes(self) -> u64 {
        self.0
    }
}

impl Add for DataSize {
    type Output = DataSize;
    fn add(self, rhs: DataSize) -> DataSize {
        DataSize(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign for DataSize {
    fn add_assign(&mut self, rhs: DataSize) {
        *self = *self + rhs;
    }
}

impl Sub for DataSize {
    type Output = DataSize;
    fn sub(self, rhs: DataSize) -> DataSize {
        DataSize(self.0.saturating_sub(rhs.0))
    }
}

/// A probability: a number in `[0, 1]`, enforced at construction.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Probability(f64);

impl Probability {
    /// The probability 0.
    pub const ZERO: Probability = Probability(0.0);
    /// The probability 1.
    pub const ONE: Probability = Probability(1.0);

    /// `value` if it lies in `[0, 1]`.
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Probability(value))
    }

    /// `value` moved into `[0, 1]`; not-a-number becomes 0.
    pub fn clamped(value: f64) -> Self {
        if value.is_nan() { Probability(0.0) } else { Probability(value.clamp(0.0, 1.0)) }
    }

    /// The probability as a number in `[0, 1]`.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// One minus this probability.
    pub fn complement(self) -> Self {
        Probability(1.0 - self.0)
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2}%", self.0 * 100.0)
    }
}

/// Why a value with a unit could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseUnitError {
    /// Kind of value being read: "rate", "size", "duration", "probability".
    pub what: &'static str,
    /// The text that was given.
    pub given: String,
    /// An example of what is accepted.
    pub example: &'static str,
}

impl fmt::Display for ParseUnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not a {}; write it like {}", self.given, self.what, self.example)
    }
}

impl core::error::Error for ParseUnitError {}

/// Unit names in lower case, each with its size in base units.
type Units = &'static [(&'static str, f64)];

const RATE_UNITS: Units = &[
    ("bit", 1.0),
    ("kbit", 1e3),
    ("mbit", 1e6),
    ("gbit", 1e9),
    ("bps", 1.0),
    ("kbps", 1e3),
    ("mbps", 1e6),
    ("gbps", 1e9),
];
const SIZE_UNITS: Units = &[
    ("b", 1.0),
    ("kb", 1e3),
    ("mb", 1e6),
    ("gb", 1e9),
    ("kib", 1024.0),
    ("mib", 1048576.0),
    ("gib", 1073741824.0),
];
const TIME_UNITS: Units =
    &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("min", 60e9), ("h", 3600e9)];

/// Reads a non-negative number followed by one of `units`, in base units.
fn parse_with_units(text: &str, units: Units, max: f64) -> Option<f64> {
    let text = text.trim();
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
    let (number, unit) = text.split_at(split);
    let number: f64 = number.parse().ok()?;
    let unit = unit.trim().to_ascii_lowercase();
    let scale = units.iter().find(|(name, _)| *name == unit)?.1;
    let value = number * scale;
    (value.is_finite() && value <= max).then_some(value)
}

impl FromStr for Bitrate {
    type Err = ParseUnitError;
    /// Reads `12mbit`, `1.5gbps`, …; at most 1 Tb/s.
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        parse_with_units(text, RATE_UNITS, 1e12).map(|v| Bitrate(v as u64)).ok_or_else(|| {
            ParseUnitError {
                what: "rate (at most 1000gbit)",
                given: text.to_owned(),
                example: "12mbit",
            }
        })
    }
}

impl FromStr for DataSize {
    type Err = ParseUnitError;
    /// Reads `10MB`, `64KiB`, …; at most 2^50 bytes.
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        parse_with_units(text, SIZE_UNITS, (1_u64 << 50) as f64)
            .map(|v| DataSize(v as u64))
            .ok_or_else(|| ParseUnitError {
                what: "size",
                given: text.to_owned(),
                example: "10MB or 64KiB",
            })
    }
}

impl FromStr for Probability {
    type Err = ParseUnitError;
    /// Reads `5%` or `0.05`.
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let trimmed = text.trim();
        let value = match trimmed.strip_suffix('%') {
            Some(percent) => percent.trim().parse::<f64>().map(|v| v / 100.0),
            None => trimmed.parse::<f64>(),
        };
        value.ok().and_then(Probability::new).ok_or_else(|| ParseUnitError {
            what: "probability between 0% and 100%",
            given: text.to_owned(),
            example: "5% or 0.05",
        })
    }
}

/// Reads a duration like `40ms`, `1.5s`, `250us`; at most ten days.
pub fn parse_duration(text: &str) -> Result<Duration, ParseUnitError> {
    parse_with_units(text, TIME_UNITS, 10.0 * 86_400e9)
        .map(|v| Duration::from_nanos(v as u64))
        .ok_or_else(|| ParseUnitError {
            what: "duration",
            given: text.to_owned(),
            example: "40ms or 1.5s",
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read() {
        assert_eq!("12mbit".parse(), Ok(Bitrate::from_bps(12_000_000)));
        assert_eq!("1.5 Gbps".parse(), Ok(Bitrate::from_bps(1_500_000_000)));
        assert_eq!("64KiB".parse(), Ok(DataSize::from_bytes(65_536)));
        assert_eq!(parse_duration("40ms"), Ok(Duration::from_millis(40)));
        assert_eq!("5%".parse::<Probability>().unwrap().get(), 0.05);
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in ["", "12", "-3mbit", "mbit", "1e99mbit", "12mbits/s", "9999999gbit"] {
            assert!(bad.parse::<Bitrate>().is_err(), "{bad}");
        }
        for bad in ["101%", "-1%", "5 per cent", "NaN", "inf"] {
            assert!(bad.parse::<Probability>().is_err(), "{bad}");
        }
        for bad in ["40", "ms", "-1s", "1y"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn serialisation_time_rounds_up() {
        let rate = Bitrate::from_mbps(10.0);
        assert_eq!(rate.time_to_send(1250), Duration::from_millis(1));
        assert_eq!(Bitrate::from_bps(3).time_to_send(1), Duration::from_nanos(2_666_666_667));
        assert_eq!(Bitrate::ZERO.time_to_send(1), Duration::MAX);
        assert_eq!(Bitrate::from_transfer(1250, Duration::from_millis(1)), rate);
    }
}
