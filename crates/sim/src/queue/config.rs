use core::fmt;

use anabranch_types::{DataSize, Probability};

use super::codel::CodelConfig;

/// The packet size, in bytes, that converts byte counts to packets, such as for RED's thresholds.
pub const NOMINAL_PACKET: u32 = 1500;

/// A queue's size and discipline.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueConfig {
    /// How much may wait; `None` for one bandwidth-delay product, but at least 10 nominal packets.
    pub limit: Option<QueueLimit>,
    /// How packets are treated while the queue is not full.
    pub discipline: Discipline,
}

/// How much may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// This many bytes, from 1500 B to 1 GiB.
    Bytes(DataSize),
    /// This many packets of any size, from 1 to 1 000 000.
    Packets(u32),
}

impl QueueLimit {
    /// Whether the queue is too full for a packet of `size` bytes when `packets` packets with
    /// `bytes` bytes wait.
    #[inline]
    pub fn is_full(self, packets: u64, bytes: u64, size: u32) -> bool {
        match self {
            QueueLimit::Bytes(limit) => bytes + u64::from(size) > limit.as_bytes(),
            QueueLimit::Packets(limit) => packets >= u64::from(limit),
        }
    }

    /// The limit in nominal packets.
    pub fn nominal_packets(self) -> f64 {
        match self {
            QueueLimit::Bytes(bytes) => bytes.as_bytes() as f64 / f64::from(NOMINAL_PACKET),
            QueueLimit::Packets(packets) => f64::from(packets),
        }
    }
}

/// How a queue treats packets while it is not full.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Discipline {
    /// All packets are admitted.
    #[default]
    DropTail,
    /// Random early detection.
    Red(RedConfig),
    /// Controlled delay.
    Codel(CodelConfig),
}

/// Parameters of RED (Floyd and Jacobson 1993), including its gentle variant.
#[derive(Clone, Debug, PartialEq)]
pub struct RedConfig {
    /// The average queues at which marking starts and at which its probability reaches
    /// `max_probability`.
    pub thresholds: RedThresholds,
    /// Weight w of each arrival in the average queue length, in `(0, 1]`.
    pub weight: f64,
    /// Marking probability max_p at the upper threshold.
    pub max_probability: Probability,
    /// Whether the probability rises from `max_probability` at the upper threshold to 1 at twice
    /// the upper threshold. If not, it jumps to 1 at the upper threshold.
    pub gentle: bool,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// The base probability p_b from which ECN-capable packets are dropped instead of marked. If it
    /// is 1, they are marked unless RED drops every packet.
    pub mark_limit: Probability,
    /// How marks and drops are spread over the arrivals.
    pub spacing: RedSpacing,
    /// Size of the packets in which idle time is counted, bytes; at least 1.
    pub idle_packet_bytes: u32,
}

impl Default for RedConfig {
    /// Thresholds of a sixth and a half of the buffer, w = 0.002, max_p = 0.1, gentle, with
    /// marking.
    fn default() -> Self {
        RedConfig {
            thresholds: RedThresholds::FromBuffer,
            weight: 0.002,
            max_probability: Probability::clamped(0.1),
            gentle: true,
            ecn: true,
            mark_limit: Probability::ONE,
            spacing: RedSpacing::Even,
            idle_packet_bytes: 500,
        }
    }
}

impl RedConfig {
    /// RED with the defaults of ns-2, except for the thresholds, which are those of
    /// [`RedConfig::default`]. Marks are at least 1/p_b packets apart. Packets are marked only
    /// while p_b is below 0.1, that is, below the upper threshold, and dropped beyond.
    pub fn ns2() -> Self {
        RedConfig {
            mark_limit: Probability::clamped(0.1),
            spacing: RedSpacing::Waiting,
            ..RedConfig::default()
        }
    }
}

/// How RED spreads its marks (and drops) over the arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RedSpacing {
    /// Gaps are uniform from 1 to 1/p_b: p_a = p_b/(1 − count·p_b) (Floyd and Jacobson 1993, §4).
    #[default]
    Even,
    /// Gaps are uniform from 1/p_b to just below 2/p_b, and no packet is marked or dropped early
    /// while at most one packet waits. This is `wait_` in ns-2.
    Waiting,
}

/// RED's thresholds for the average queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RedThresholds {
    /// A sixth and a half of the buffer, in packets.
    FromBuffer,
    /// Thresholds in packets, with `0 <= min < max`.
    Packets {
        /// Below this average, every packet is admitted unchanged.
        min: f64,
        /// At this average the marking probability is max_p.
        max: f64,
    },
}

impl RedThresholds {
    /// Minimum and maximum threshold in packets, for a buffer of `limit`.
    pub fn resolve(self, limit: QueueLimit) -> (f64, f64) {
        match self {
            RedThresholds::FromBuffer => {
                let packets = limit.nominal_packets();
                (packets / 6.0, packets / 2.0)
            }
            RedThresholds::Packets { min, max } => (min, max),
        }
    }
}

impl QueueConfig {
    /// Checks every parameter against the range that its documentation states.
    ///
    /// # Errors
    /// When a parameter is outside its range. The error names the first such parameter.
    pub fn validate(&self) -> Result<(), QueueConfigError> {
        let limit_ok = match self.limit {
            None => true,
            Some(QueueLimit::Packets(n)) => (1..=1_000_000).contains(&n),
            Some(QueueLimit::Bytes(b)) => {
                (u64::from(NOMINAL_PACKET)..=1 << 30).contains(&b.as_bytes())
            }
        };
        if !limit_ok {
            return Err(QueueConfigError::Limit);
        }
        match &self.discipline {
            Discipline::DropTail => Ok(()),
            Discipline::Codel(codel) if codel.is_valid() => Ok(()),
            Discipline::Codel(_) => Err(QueueConfigError::Codel),
            Discipline::Red(red) => red.validate(),
        }
    }
}

impl RedConfig {
    fn validate(&self) -> Result<(), QueueConfigError> {
        if !(self.weight > 0.0 && self.weight <= 1.0) {
            return Err(QueueConfigError::Weight);
        }
        if self.idle_packet_bytes == 0 {
            return Err(QueueConfigError::IdlePacket);
        }
        match self.thresholds {
            RedThresholds::Packets { min, max }
                if !(min >= 0.0 && min < max && max.is_finite()) =>
            {
                Err(QueueConfigError::Thresholds)
            }
            _ => Ok(()),
        }
    }
}

/// Which parameter of a queue is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueConfigError {
    /// The buffer's size.
    Limit,
    /// RED's averaging weight.
    Weight,
    /// RED's thresholds.
    Thresholds,
    /// RED's idle packet size.
    IdlePacket,
    /// CoDel's target or interval.
    Codel,
}

impl fmt::Display for QueueConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            QueueConfigError::Limit => "a buffer holds 1500B to 1GiB, or 1 to 1000000 packets",
            QueueConfigError::Weight => "RED's weight must be above 0 and at most 1",
            QueueConfigError::Thresholds => "RED's thresholds must satisfy 0 <= min < max",
            QueueConfigError::IdlePacket => "RED's idle packet must have at least 1 byte",
            QueueConfigError::Codel => {
                "CoDel's target must be 1us to 60s and its interval from the target to 60s"
            }
        })
    }
}

impl core::error::Error for QueueConfigError {}
