use core::fmt;
use core::time::Duration;

use anabranch_types::{Bitrate, DataSize, Time};

use super::{FaultConfig, Policer};
use crate::delay::{Clumps, DelayConfig, DelayCourse, DelayError, DelayProcess, Jitter};
use crate::loss::LossConfig;
use crate::queue::{Discipline, NOMINAL_PACKET, QueueConfig, QueueLimit, RedConfig};
use crate::rate::{Blackout, DeliveryTrace, Fluctuation, RateProcess, Schedule, darken};

/// The configuration of one direction of a link.
///
/// It can be read from text such as `name=lte,rate=12mbit,delay=40ms,loss=5%,ecn`; see
/// [`LinkConfig::read`].
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Name of the link in reports; empty if it was not named.
    pub name: String,
    /// The nominal rate over time: 1 kb/s to 1 Tb/s, or zero, which is a blackout.
    pub rate: Schedule<Bitrate>,
    /// How the rate varies around the nominal rate.
    pub fluctuation: Fluctuation,
    /// One-way propagation delay; at most a minute.
    pub delay: Duration,
    /// Later delays, such as those of a new route, and the times from which they replace `delay`.
    /// Times must be above zero and rise strictly. A packet gets the delay that is valid when its
    /// last bit is sent.
    pub delay_changes: Vec<(Time, Duration)>,
    /// How the propagation delay varies with time: packets sent at the same instant have the same delay.
    pub delay_course: DelayCourse,
    /// How the delay varies from packet to packet.
    pub jitter: Jitter,
    /// Whether packets wait at the far end and are released in clumps.
    pub clumps: Option<Clumps>,
    /// Random loss after serialisation.
    pub loss: LossConfig,
    /// The token bucket that packets pass before the buffer, if any.
    pub policer: Option<Policer>,
    /// The buffer before the transmitter.
    pub queue: QueueConfig,
    /// When the link is in a blackout, which drops every packet.
    pub blackouts: Vec<Blackout>,
    /// The MTU over time, bytes on the wire; longer packets are dropped silently.
    pub mtu: Schedule<u32>,
    /// Faults of the link; only the simulator's engine applies them.
    pub faults: FaultConfig,
}

/// The lowest and highest rate that a link may have, apart from zero.
pub(super) const RATE_RANGE: (Bitrate, Bitrate) =
    (Bitrate::from_bps(1_000), Bitrate::from_bps(1_000_000_000_000));
/// The smallest MTU of a link, bytes (RFC 791 §3.2).
pub(super) const MIN_MTU: u32 = 68;
/// The smallest default buffer, in nominal packets.
const MIN_DEFAULT_PACKETS: u64 = 10;

impl LinkConfig {
    /// A lossless link with constant `rate`, constant one-way `delay` and a drop-tail buffer of one
    /// bandwidth-delay product.
    pub fn new(rate: Bitrate, delay: Duration) -> Self {
        LinkConfig {
            name: String::new(),
            rate: Schedule::constant(rate),
            fluctuation: Fluctuation::None,
            delay,
            delay_changes: Vec::new(),
            delay_course: DelayCourse::Steady,
            jitter: Jitter::default(),
            clumps: None,
            policer: None,
            loss: LossConfig::None,
            queue: QueueConfig::default(),
            blackouts: Vec::new(),
            mtu: Schedule::constant(u32::MAX),
            faults: FaultConfig::default(),
        }
    }

    /// A lossless link that sends at the delivery opportunities of `trace`. Its drop-tail buffer
    /// holds one bandwidth-delay product at the trace's mean rate.
    pub fn from_trace(trace: DeliveryTrace, delay: Duration) -> Self {
        let link = LinkConfig::new(trace.mean_rate(), delay);
        LinkConfig { fluctuation: Fluctuation::Trace(trace), ..link }
    }

    /// This link with `loss`.
    pub fn with_loss(mut self, loss: LossConfig) -> Self {
        self.loss = loss;
        self
    }

    /// This link with a buffer of `limit`.
    pub fn with_buffer(mut self, limit: QueueLimit) -> Self {
        self.queue.limit = Some(limit);
        self
    }

    /// This link with RED, which marks ECN-capable packets. Its thresholds are a sixth and a half
    /// of the buffer.
    pub fn with_ecn(mut self) -> Self {
        self.queue.discipline = Discipline::Red(RedConfig::default());
        self
    }

    /// This link with `blackout` added.
    pub fn with_blackout(mut self, blackout: Blackout) -> Self {
        self.blackouts.push(blackout);
        self
    }

    /// The reverse direction for most comparisons. Rate, delay settings, blackouts, MTU and buffer
    /// size are the same, but a rate trace is replaced by its mean rate. The queue is drop-tail,
    /// and there is no policer, no random loss and no fault.
    pub fn clean_reverse(&self) -> Self {
        let fluctuation = match &self.fluctuation {
            Fluctuation::Trace(_) => Fluctuation::None,
            steady_or_random => steady_or_random.clone(),
        };
        LinkConfig {
            fluctuation,
            loss: LossConfig::None,
            policer: None,
            queue: QueueConfig { limit: self.queue.limit, discipline: Discipline::DropTail },
            faults: FaultConfig::default(),
            ..self.clone()
        }
    }

    /// The nominal rate over time, zero in blackouts.
    pub fn effective_rate(&self) -> Schedule<Bitrate> {
        darken(&self.rate, &self.blackouts)
    }

    /// All settings of the delay.
    ///
    /// # Errors
    /// When the times of the delay changes do not rise.
    pub fn delays(&self) -> Result<DelayConfig, LinkConfigError> {
        let schedule = Schedule::new(self.delay, self.delay_changes.iter().copied())
            .map_err(|why| LinkConfigError::new("delay", why, "changes at rising times"))?;
        let (course, jitter, clumps) = (self.delay_course.clone(), self.jitter, self.clumps);
        Ok(DelayConfig { schedule, course, jitter, clumps })
    }

    /// Whether rate and delay are constant for all packets, and there is no policer and no
    /// blackout.
    pub fn is_steady(&self) -> bool {
        self.rate.steps().len() == 1
            && self.fluctuation == Fluctuation::None
            && self.delay_changes.is_empty()
            && self.delay_course == DelayCourse::Steady
            && self.jitter.size.is_zero()
            && self.clumps.is_none()
            && self.policer.is_none()
            && self.blackouts.is_empty()
    }

    /// The rate process; its random draws are the substream of `seed` called `stream`.
    pub(super) fn rate_process(
        &self,
        seed: u64,
        stream: &str,
    ) -> Result<RateProcess, LinkConfigError> {
        RateProcess::new(&self.rate, &self.fluctuation, &self.blackouts, seed, stream)
            .map_err(|why| LinkConfigError::new("fluctuation", "the course", why))
    }

    /// The delay process; its random draws are the substreams of `seed` whose names begin with `stream`.
    pub(super) fn delay_process(
        &self,
        seed: u64,
        stream: &str,
    ) -> Result<DelayProcess, LinkConfigError> {
        Ok(DelayProcess::new(&self.delays()?, seed, stream)?)
    }

    /// The size of the buffer: the configured limit, or by default one bandwidth-delay product, but
    /// at least ten nominal packets (15 000 B). The product is the highest nominal rate times twice
    /// the longest one-way delay; for a trace, its mean is used.
    pub fn buffer(&self) -> QueueLimit {
        self.queue.limit.unwrap_or_else(|| {
            let peak = self.rate.steps().iter().map(|(_, rate)| *rate).max().unwrap_or_default();
            let changed = self.delay_changes.iter().map(|(_, delay)| *delay);
            let delay = changed.fold(self.delay, Duration::max)
                + match &self.delay_course {
                    DelayCourse::Steps(steps) => steps.most,
                    DelayCourse::Steady | DelayCourse::Trace(_) => Duration::ZERO,
                };
            let product = peak.bytes_in(delay.saturating_mul(2));
            let least = MIN_DEFAULT_PACKETS * u64::from(NOMINAL_PACKET);
            QueueLimit::Bytes(DataSize::from_bytes(product.max(least)))
        })
    }

    /// Checks every field against the range its documentation states.
    ///
    /// # Errors
    /// When a field is out of its range. The error names the first such field, its value and its
    /// range.
    pub fn validate(&self) -> Result<(), LinkConfigError> {
        for (_, rate) in self.rate.steps() {
            if *rate != Bitrate::ZERO && !(RATE_RANGE.0..=RATE_RANGE.1).contains(rate) {
                return Err(LinkConfigError::new("rate", rate, "1kbit to 1000gbit"));
            }
        }
        if self.rate.steps().iter().all(|(_, rate)| *rate == Bitrate::ZERO) {
            return Err(LinkConfigError::new("rate", "zero at all times", "1kbit to 1000gbit"));
        }
        self.delays()?.validate()?;
        self.policer.map_or(Ok(()), |policer| policer.validate())?;
        self.fluctuation
            .validate()
            .map_err(|why| LinkConfigError::new("fluctuation", "the course", why))?;
        if matches!(self.fluctuation, Fluctuation::Trace(_)) && self.rate.steps().len() > 1 {
            let given = "changes beside a trace";
            return Err(LinkConfigError::new("rate", given, "the trace's mean rate alone"));
        }
        self.loss.validate().map_err(|why| LinkConfigError::new("loss", "the model", why))?;
        self.queue.validate().map_err(|why| LinkConfigError::new("buffer", "the queue", why))?;
        for (_, mtu) in self.mtu.steps() {
            if *mtu < MIN_MTU {
                return Err(LinkConfigError::new("mtu", mtu, "at least 68B"));
            }
        }
        for Blackout { start, end } in &self.blackouts {
            if end <= start || *end == Time::MAX {
                let given = format!("{start}-{end}");
                return Err(LinkConfigError::new("blackout", given, "a start before its end"));
            }
        }
        Ok(())
    }
}

/// An error in a link's description: the key, the value given, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkConfigError {
    /// The key, as spelled in the text form.
    pub key: String,
    /// The value given.
    pub given: String,
    /// Values that the key accepts.
    pub allowed: String,
}

impl LinkConfigError {
    pub(super) fn new(
        key: impl Into<String>,
        given: impl fmt::Display,
        allowed: impl fmt::Display,
    ) -> Self {
        LinkConfigError { key: key.into(), given: given.to_string(), allowed: allowed.to_string() }
    }
}

impl fmt::Display for LinkConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LinkConfigError { key, given, allowed } = self;
        if given == MISSING {
            return write!(f, "{key} is missing; write {key}= and {allowed}");
        }
        write!(f, "{key}: '{given}' is not accepted; allowed: {allowed}")
    }
}

/// Stands for the given value in errors about a missing key.
pub(super) const MISSING: &str = "nothing";

impl core::error::Error for LinkConfigError {}

impl From<DelayError> for LinkConfigError {
    fn from(error: DelayError) -> Self {
        LinkConfigError::new(error.key, error.given, error.allowed)
    }
}
