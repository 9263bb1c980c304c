use core::fmt::{self, Debug};
use core::time::Duration;

use anabranch_core::connection::ConnectionStats;
use anabranch_core::observe;
use anabranch_types::Time;

use super::{Gauge, Log, Watch, Watched};
use crate::engine::Engine;

/// Access to both ends of a connection, the same for every transport.
pub trait Flow: Debug + Send {
    /// All counters since the start.
    fn counters(&self, engine: &mut Engine) -> Counters;

    /// The state of one path, or of all paths together if `path` is `None`: congestion windows are
    /// summed, times and losses averaged.
    fn instant(&self, engine: &mut Engine, path: Option<usize>) -> Instant;

    /// Deliveries at the receiver, and when they happened.
    fn gauge<'a>(&self, engine: &'a Engine) -> Option<&'a Gauge>;

    /// The transfers that are complete, in the order in which they ended.
    fn completions(&self, engine: &Engine) -> Vec<Completion>;

    /// Number of complete transfers.
    fn completed(&self, engine: &Engine) -> u64;

    /// Why the connection failed, if it did.
    fn failure(&self, engine: &Engine) -> Option<FlowFailure>;

    /// The messages of this flow, if it sends any.
    fn messages(&self, engine: &Engine) -> Option<MessageLog>;

    /// The statistics of a core connection at the sender and at the receiver; `None` for other
    /// transports.
    fn connections(&self, _engine: &mut Engine) -> [Option<ConnectionStats>; 2] {
        [None, None]
    }

    /// Applies a change to the sender's interface on a path.
    fn change_path(&self, engine: &mut Engine, path: usize, change: PathChange);

    /// Starts to log progress at both ends, from which the delays of packets and of the blocks that
    /// `watch` selects are computed.
    fn log(&self, engine: &mut Engine, watch: Watch) -> Watched;

    /// The logs of the sender and the receiver since the last call.
    fn take_logs(&self, engine: &mut Engine) -> Option<(Log, Log)>;

    /// Passes the sender's decisions to the observer that `make` returns. Does nothing if this
    /// transport's sender does not report decisions.
    fn observe(
        &self,
        _engine: &mut Engine,
        _make: &mut dyn FnMut() -> Option<Box<dyn observe::Observer>>,
    ) {
    }
}

/// Why a flow failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowFailure {
    /// The connection could not be opened.
    Refused(String),
    /// A connection was closed.
    Closed(String),
    /// The receiver read data that differs from what was written.
    Corrupt(String),
    /// An endpoint keeps sending at one instant, so that time cannot advance.
    Stuck,
}

impl fmt::Display for FlowFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FlowFailure::Refused(why) => f.write_str(why),
            FlowFailure::Closed(why) => write!(f, "closed: {why}"),
            FlowFailure::Corrupt(what) => write!(f, "the receiver read something wrong: {what}"),
            FlowFailure::Stuck => f.write_str("an endpoint sends without end"),
        }
    }
}

impl core::error::Error for FlowFailure {}

/// A change at the sender's end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathChange {
    /// The interface is gone, and the sender knows.
    Down,
    /// The interface is back.
    Up,
    /// From now on, the path is used only when no other path is usable (RFC 8684 §3.3.8, MP_PRIO).
    Backup,
    /// The path is used like the other paths again.
    Regular,
    /// The interface gets another address, and the sender knows.
    Move,
    /// A NAT drops the sender's mapping. The sender's packets then come from another port, neither
    /// end is told, and packets to the old port are lost.
    Rebind,
    /// A middlebox on the path removes the options of multipath TCP from now on, both ways (RFC 8684 §3.7).
    StripOptions,
    /// The middlebox passes these options again.
    PassOptions,
}

/// Messages of a flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MessageLog {
    /// Number of messages sent.
    pub sent: u64,
    /// For each message that arrived, in the order of arrival: when it was sent, and how long it
    /// took.
    pub arrived: Vec<(Time, Duration)>,
}

/// A transfer from its beginning to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// When the application requested the transfer.
    pub opened: Time,
    /// When the transfer's last byte was delivered.
    pub ended: Time,
}

/// Counters of a flow since its start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// Application bytes delivered in order.
    pub delivered: u64,
    /// Bytes on the wire that arrived at the receiver, for each path.
    pub arrived: Vec<u64>,
    /// Data packets sent, retransmissions and repairs included.
    pub data_packets: u64,
    /// Data packets sent again.
    pub retransmissions: u64,
    /// Retransmission or probe timers that fired.
    pub timeouts: u64,
    /// Fast recoveries entered, where the transport counts them.
    pub recoveries: Option<u64>,
    /// Packets that arrived with data beyond the next expected byte.
    pub out_of_order: u64,
    /// Window reductions because of ECN marks, where the transport counts them.
    pub ecn_responses: Option<u64>,
    /// Bytes of data that arrived when the receiver had them already.
    pub duplicate_bytes: u64,
    /// How long the receiver's window was closed on each path, where each path has a window of its
    /// own.
    pub shut: Option<Vec<ShutWindow>>,
    /// Counters of coding, where the transport codes.
    pub coding: Option<CodingCounters>,
}

/// Totals of a path's closed receive windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShutWindow {
    /// Time in which nothing was in flight and data waited for the window to open.
    pub time: Duration,
    /// Window probes sent while the window was closed.
    pub probes: u64,
}

impl core::ops::AddAssign for ShutWindow {
    fn add_assign(&mut self, other: Self) {
        self.time += other.time;
        self.probes += other.probes;
    }
}

/// Counters of a coded flow since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodingCounters {
    /// Source symbols sent for the first time.
    pub sources: u64,
    /// Repair symbols sent.
    pub repairs: u64,
    /// Coding blocks opened.
    pub blocks: u64,
    /// Blocks whose repairs ran out, so that symbols were sent again from the start.
    pub wraps: u64,
    /// Rounds in which blocks got further repairs because symbols were missing.
    pub repair_rounds: u64,
    /// Source symbols that count towards the loss before repair.
    pub settled: u64,
    /// Symbols among `settled` that lost every copy sent before the first of these losses was
    /// known.
    pub lost_early: u64,
    /// Sum, over all openings of a block, of the blocks not yet recovered, the new one included.
    pub live_blocks: u64,
}

/// A flow's or path's state at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Instant {
    /// Congestion window, bytes.
    pub cwnd: f64,
    /// TCP only: first byte of the path's stream that has not been sent, summed over the open connections.
    pub sequence: Option<f64>,
    /// TCP only: first byte of the path's stream that has not been acknowledged, summed over the
    /// open connections.
    pub acknowledged: Option<f64>,
    /// Smoothed round-trip time, s.
    pub srtt: Option<f64>,
    /// The sender's loss estimate, a fraction.
    pub loss: Option<f64>,
}

impl Counters {
    /// Counts since `before`.
    #[must_use]
    pub fn since(&self, before: &Counters) -> Counters {
        let arrived = self.arrived.iter().enumerate().map(|(path, bytes)| {
            bytes.saturating_sub(before.arrived.get(path).copied().unwrap_or(0))
        });
        Counters {
            delivered: self.delivered.saturating_sub(before.delivered),
            arrived: arrived.collect(),
            data_packets: self.data_packets.saturating_sub(before.data_packets),
            retransmissions: self.retransmissions.saturating_sub(before.retransmissions),
            timeouts: self.timeouts.saturating_sub(before.timeouts),
            recoveries: self
                .recoveries
                .map(|count| count.saturating_sub(before.recoveries.unwrap_or(0))),
            out_of_order: self.out_of_order.saturating_sub(before.out_of_order),
            ecn_responses: self
                .ecn_responses
                .map(|count| count.saturating_sub(before.ecn_responses.unwrap_or(0))),
            duplicate_bytes: self.duplicate_bytes.saturating_sub(before.duplicate_bytes),
            shut: self.shut.as_ref().map(|shut| since_of(shut, before.shut.as_deref())),
            coding: self.coding.map(|coding| coding.since(&before.coding.unwrap_or_default())),
        }
    }
}

/// Totals of each path's closed receive windows since `before`.
fn since_of(shut: &[ShutWindow], before: Option<&[ShutWindow]>) -> Vec<ShutWindow> {
    let before = before.unwrap_or_default();
    let since = |(path, shut): (usize, &ShutWindow)| {
        let before = before.get(path).copied().unwrap_or_default();
        ShutWindow {
            time: shut.time.saturating_sub(before.time),
            probes: shut.probes.saturating_sub(before.probes),
        }
    };
    shut.iter().enumerate().map(since).collect()
}

impl CodingCounters {
    fn since(&self, before: &CodingCounters) -> CodingCounters {
        CodingCounters {
            sources: self.sources.saturating_sub(before.sources),
            repairs: self.repairs.saturating_sub(before.repairs),
            blocks: self.blocks.saturating_sub(before.blocks),
            wraps: self.wraps.saturating_sub(before.wraps),
            repair_rounds: self.repair_rounds.saturating_sub(before.repair_rounds),
            settled: self.settled.saturating_sub(before.settled),
            lost_early: self.lost_early.saturating_sub(before.lost_early),
            live_blocks: self.live_blocks.saturating_sub(before.live_blocks),
        }
    }
}
