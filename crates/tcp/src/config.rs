//! Configuration of a connection: sizes, timers and enabled mechanisms.

use core::time::Duration;
use std::sync::Arc;

use crate::segment::WireFormat;

/// How losses are found and repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossRecovery {
    /// Selective acknowledgements with the scoreboard and pipe of RFC 6675.
    #[default]
    Sack,
    /// Selective acknowledgements as Fall and Floyd first simulated them (1996) and as ns-2's Sack1
    /// implements them: the pipe shrinks with each arriving acknowledgement, not with inferred
    /// losses; any hole below a SACKed segment is retransmitted; and a timeout clears the
    /// scoreboard.
    FallFloyd,
    /// No selective acknowledgements: NewReno with partial acknowledgements (RFC 6582).
    NewReno,
}

impl LossRecovery {
    /// Whether the receiver reports SACK ranges.
    pub fn uses_sack(self) -> bool {
        !matches!(self, LossRecovery::NewReno)
    }
}

/// When the receiver acknowledges data that arrives in order. Data that arrives out of order or
/// fills a gap is acknowledged at once (RFC 5681 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAck {
    /// Number of segments per acknowledgement, at least 1. With 1, every segment is acknowledged.
    pub every: u32,
    /// Longest delay of the acknowledgement, from the first segment that it covers (RFC 5681 §4.2:
    /// at most 500 ms).
    pub timeout: Duration,
}

impl DelayedAck {
    /// Every segment is acknowledged at once.
    pub const OFF: DelayedAck = DelayedAck { every: 1, timeout: Duration::ZERO };
    /// Every second segment is acknowledged, and a single one after 100 ms, as by ns-2's DelAck
    /// sink.
    pub const SECOND: DelayedAck = DelayedAck { every: 2, timeout: Duration::from_millis(100) };
}

/// When a receiver sends an acknowledgement only to announce a larger window, after the application
/// has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WindowUpdates {
    /// Whenever the window's end has moved by two segments or half the buffer since it was last announced (RFC 9293
    /// §3.8.6.2.2).
    #[default]
    Each,
    /// Once, when a window announced as zero has opened by the same amount. Acknowledgements of
    /// data announce any further growth. If the update is lost, the sender learns of the window by
    /// probing (pTCP, §2: "the single window update").
    Opening,
}

/// The time before a zero window is probed, for protocols that do not derive it from the
/// retransmission timeout: pTCP (Hsieh and Sivakumar, §2) has 5 s, doubled after each probe up to
/// 60 s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PersistTimer {
    /// Time to the first probe, above zero.
    pub initial: Duration,
    /// Longest time between probes, not below `initial`.
    pub most: Duration,
}

/// The timers: retransmission (RFC 6298) and persist (RFC 9293 §3.8.6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerConfig {
    /// Least timeout before back-off (RFC 6298 §2.4 says 1 s; Linux and the references use 0.2 s).
    pub min_rto: Duration,
    /// Greatest timeout, back-off included.
    pub max_rto: Duration,
    /// Timeout before the first round-trip sample.
    pub initial_rto: Duration,
    /// Clock granularity G. Round-trip samples are rounded to multiples of G before they are
    /// smoothed.
    pub granularity: Duration,
    /// Largest back-off factor, a power of two. `max_rto` usually limits the timeout first.
    pub max_backoff: u32,
    /// Number of consecutive timeouts that a connection survives: it gives up at the next one.
    /// `None`: it never gives up.
    pub give_up_after: Option<u32>,
    /// The persist timer; `None`: as long as the retransmission timeout, doubled after each probe up to `max_rto`.
    pub persist: Option<PersistTimer>,
}

impl Default for TimerConfig {
    fn default() -> Self {
        TimerConfig {
            min_rto: Duration::from_millis(200),
            max_rto: Duration::from_secs(60),
            initial_rto: Duration::from_secs(1),
            granularity: Duration::from_millis(1),
            max_backoff: 1 << 16,
            give_up_after: None,
            persist: None,
        }
    }
}

impl TimerConfig {
    /// The initial persist interval times `backoff`, up to the longest one. `rto` is the retransmission timeout.
    pub(crate) fn persist_interval(&self, rto: Duration, backoff: u32) -> Duration {
        let (initial, most) = match self.persist {
            Some(persist) => (persist.initial, persist.most),
            None => (rto, self.max_rto),
        };
        initial.saturating_mul(backoff).min(most)
    }
}

/// Configuration of one connection, for both ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Most payload in a segment, bytes; at least 1.
    pub mss: u32,
    /// Sizes on the wire.
    pub wire: WireFormat,
    /// How losses are found and repaired.
    pub recovery: LossRecovery,
    /// Number of duplicate acknowledgements, or of SACKed segments above a hole, that indicate a
    /// loss (RFC 5681: 3).
    pub dup_threshold: u32,
    /// Limited transmit: each of the first duplicate acknowledgements may release a new segment
    /// (RFC 3042).
    pub limited_transmit: bool,
    /// Proportional rate reduction during recovery (RFC 9937), instead of sending while the pipe is
    /// below the threshold (RFC 6675).
    pub prr: bool,
    /// The timestamps option: every acknowledgement of new data gives a round-trip sample, which
    /// ends the back-off. Without the option, one segment per round trip is timed, never a
    /// retransmitted one, and the back-off stays until such a segment is acknowledged (Karn's
    /// rule).
    pub timestamps: bool,
    /// Whether explicit congestion notification is used (RFC 3168).
    pub ecn: bool,
    /// RACK-TLP (RFC 8985): losses by time, and a probe instead of a timeout at the tail.
    pub rack: bool,
    /// The receiver reports duplicates (RFC 2883). Where they or timestamps show that retransmissions were spurious, the
    /// cut of the window is undone (RFC 4015) and RACK's reordering window grows. Needs selective acknowledgements.
    pub undo: bool,
    /// Settings of the timers.
    pub timers: TimerConfig,
    /// When in-order data is acknowledged.
    pub delayed_ack: DelayedAck,
    /// Whether SYNs are exchanged before the first data.
    pub handshake: bool,
    /// Most bytes that the receiver holds: unread ones and those that arrived out of order.
    pub receive_buffer: u64,
    /// Whether the receiving application takes bytes as soon as they are in order.
    pub read_at_once: bool,
    /// When window updates are sent after the application has read, if no data arrives.
    pub window_updates: WindowUpdates,
    /// Most bytes that may be written and not yet acknowledged.
    pub send_buffer: u64,
    /// Whether delivery rates are measured even for a controller that does not need them (see
    /// [`needs_rate`]), as Linux does.
    ///
    /// [`needs_rate`]: anabranch_policy::congestion::CongestionController::needs_rate
    pub rate_samples: bool,
}

impl Default for Config {
    /// SACK with limited transmit and timestamps, segments of 1460 B, buffers too large to limit
    /// anything, an acknowledgement for every segment, and a SYN exchange.
    fn default() -> Self {
        Config {
            mss: 1460,
            wire: WireFormat::default(),
            recovery: LossRecovery::Sack,
            dup_threshold: 3,
            limited_transmit: true,
            prr: false,
            timestamps: true,
            ecn: false,
            rack: false,
            undo: false,
            timers: TimerConfig::default(),
            delayed_ack: DelayedAck::OFF,
            handshake: true,
            receive_buffer: 1 << 32,
            read_at_once: true,
            window_updates: WindowUpdates::Each,
            send_buffer: 1 << 40,
            rate_samples: false,
        }
    }
}

/// Copies the configuration for one connection. Connections with equal configurations should share
/// one copy, so that it takes up cache only once.
impl From<&Config> for Arc<Config> {
    fn from(config: &Config) -> Self {
        Arc::new(config.clone())
    }
}

impl Config {
    /// Configuration of a present-day Linux: PRR, RACK-TLP, undoing of spurious cuts, an
    /// acknowledgement for every second segment or after 40 ms, and rate samples for its pacing
    /// controllers.
    pub fn linux() -> Self {
        Config {
            prr: true,
            rack: true,
            undo: true,
            delayed_ack: DelayedAck { timeout: Duration::from_millis(40), ..DelayedAck::SECOND },
            rate_samples: true,
            ..Config::default()
        }
    }

    /// Configuration of ns-2's `Agent/TCP/Sack1` with the parameters of the reference data: 1000 B payload in 1040 B
    /// packets (1050 with timestamps), limited transmit, no SYN exchange before data, first timeout 3 s, a clock of
    /// 10 ms (1 ms with timestamps).
    pub fn ns2_sack1(timestamps: bool) -> Self {
        let granularity = Duration::from_millis(if timestamps { 1 } else { 10 });
        Config {
            mss: 1000,
            wire: WireFormat { timestamp_bytes: 10, sack_block_bytes: 0, ..WireFormat::default() },
            recovery: LossRecovery::FallFloyd,
            timestamps,
            timers: TimerConfig {
                initial_rto: Duration::from_secs(3),
                granularity,
                ..TimerConfig::default()
            },
            handshake: false,
            ..Config::default()
        }
    }

    /// Configuration of ns-2's `Agent/TCP/Newreno` with the parameters of the reference data.
    pub fn ns2_newreno() -> Self {
        Config { recovery: LossRecovery::NewReno, ..Config::ns2_sack1(false) }
    }
}
