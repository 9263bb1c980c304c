//! The snapshots that policies read.

mod fresh;
mod symbol;

use anabranch_types::{Bitrate, PathId, Time};
use core::time::Duration;

use crate::redundancy::{RedundancyPolicy, RedundancyView};

pub use fresh::{Blocked, FreshView};
pub use symbol::{BlockId, SymbolId, SymbolSpace};

/// Most paths one connection may have open at a time.
pub const MAX_PATHS: usize = 16;

/// How data is to be treated. Each class has its own coding, deadline and priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TrafficClass {
    /// Small messages for which somebody waits. They are sent first and protected most.
    Interactive,
    /// Media with a deadline. They are worthless when late.
    Live,
    /// Data for which throughput matters and the delay of a round trip does not.
    #[default]
    Bulk,
}

impl TrafficClass {
    /// All classes, the most urgent first; the index of each is its value.
    pub const ALL: [TrafficClass; 3] =
        [TrafficClass::Interactive, TrafficClass::Live, TrafficClass::Bulk];

    /// The name that users write: `interactive`, `live` or `bulk`.
    pub fn name(self) -> &'static str {
        match self {
            TrafficClass::Interactive => "interactive",
            TrafficClass::Live => "live",
            TrafficClass::Bulk => "bulk",
        }
    }

    /// The class with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }
}

/// State of a path, which determines what may be sent on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathState {
    /// The peer's address is not proven yet: at most three times the received bytes may be sent.
    #[default]
    Validating,
    /// In ordinary use.
    Active,
    /// No feedback has arrived for a probe timeout although packets are in flight. The path carries
    /// only probes and copies.
    Suspect,
    /// Feedback has arrived again after the path was suspect. The path carries a growing share, so
    /// that an idle path that seems good does not receive the whole stream at once.
    Probation,
    /// The path is no longer used. Its identifier is not reused, but another path may get its slot.
    Closed,
}

/// A loss probability, and the deviation of single observations from it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LossView {
    /// Mean loss probability, `[0, 1]`.
    pub mean: f64,
    /// Standard deviation of the observed loss fraction, `[0, 1]`.
    pub deviation: f64,
}

impl LossView {
    /// The mean, but at most `most`; `most` if the mean is not a number.
    #[inline]
    pub fn mean_up_to(&self, most: f64) -> f64 {
        // Unlike `clamp`, this never returns NaN.
        self.mean.min(most).max(0.0)
    }
}

/// Round-trip times of a path (RFC 9002 §5), and the forward direction's delay trend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RttView {
    /// The newest sample.
    pub latest: Duration,
    /// Smoothed round-trip time, gain 1/8.
    pub smoothed: Duration,
    /// Mean deviation, gain 1/4.
    pub variation: Duration,
    /// Least sample in the current observation window.
    pub min: Duration,
    /// Forward one-way delay above the least seen, which is the queue on the way to the peer. Clock
    /// offsets cancel out, and return paths have no effect.
    pub queue: Duration,
    /// Least forward transit time, microseconds. The clocks are not synchronised, so only
    /// differences between the paths of a connection are meaningful ([`RttView::forward_lead`]).
    pub forward: i64,
    /// Number of samples so far; 0 means that `smoothed` is an initial guess.
    pub samples: u64,
}

impl RttView {
    /// By how much a packet on this path arrives before one sent on `other` at the same time,
    /// without queues; zero if it arrives later.
    pub fn forward_lead(&self, other: &RttView) -> Duration {
        // The 32-bit clocks wrap, and two paths' transit times may have been unwrapped differently.
        let lead = other.forward.wrapping_sub(self.forward) as i32;
        Duration::from_micros(u64::from(lead.max(0).unsigned_abs()))
    }
}

/// Bytes acknowledged on a path since its last loss, and between its last two losses. OLIA uses
/// them as a measure of the rate that a path sustains (Khalili et al. 2013, §IV, l₁ and l₂).
///
/// Losses of one flight count as one: losses of packets sent before the last loss was noticed begin
/// no new interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterLoss {
    /// Bytes acknowledged since the last loss, or since the start.
    pub since: u64,
    /// Bytes acknowledged between the last two losses; 0 before the second.
    pub between: u64,
    noticed: Option<Time>,
}

impl InterLoss {
    /// Notes that `bytes` bytes were newly acknowledged.
    pub fn on_acked(&mut self, bytes: u64) {
        self.since = self.since.saturating_add(bytes);
    }

    /// Notes that packets were declared lost, of which the newest was sent at `sent`.
    pub fn on_lost(&mut self, now: Time, sent: Time) {
        if self.noticed.is_none_or(|noticed| sent > noticed) {
            *self = InterLoss { since: 0, between: self.since, noticed: Some(now) };
        }
    }

    /// The larger of `since` and `between`, OLIA's l.
    pub fn largest(&self) -> u64 {
        self.since.max(self.between)
    }
}

/// One path as policies see it. Byte counts are what congestion control counts: UDP payload plus 28 bytes
/// of IPv4 and UDP header in `anabranch-core`, payload in the models of TCP.
#[derive(Clone, Copy, Debug)]
pub struct PathView {
    /// The path.
    pub id: PathId,
    /// The path's index in per-path tables such as [`BlockView::in_flight_on`], below
    /// [`MAX_PATHS`]. Unlike the identifier, it is reused after a path has closed.
    pub slot: u8,
    /// State of the path.
    pub state: PathState,
    /// Whether the path is used only if no other path is usable.
    pub backup: bool,
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// Slow-start threshold, bytes; `u64::MAX` if the controller has none.
    pub ssthresh: u64,
    /// Bytes sent, neither acknowledged nor declared lost.
    pub bytes_in_flight: u64,
    /// Bytes on the wire of symbols assigned to this path that have not left, each in its own
    /// packet, including those that may not leave yet.
    pub bytes_queued: u64,
    /// Size of a full packet, bytes.
    pub packet_size: u64,
    /// Whether the congestion window and the pacer admit one full packet now.
    pub ready: bool,
    /// When the pacer admits the next packet (may be in the past).
    pub next_send: Time,
    /// Current pacing rate; zero if the path is not paced.
    pub pacing_rate: Bitrate,
    /// Newest estimate of the rate at which packets leave the bottleneck, lost ones included.
    pub rate: Bitrate,
    /// Round-trip times and the standing queue.
    pub rtt: RttView,
    /// Current retransmission (probe) timeout, including back-off.
    pub rto: Duration,
    /// When the oldest unacknowledged packet was sent.
    pub oldest_unacked: Option<Time>,
    /// Loss estimate of this path.
    pub loss: LossView,
    /// Bytes acknowledged since the path's last loss, and between its last two.
    pub inter_loss: InterLoss,
    /// The slots of the paths that were found to share a bottleneck with this one, as bits
    /// ([`bottleneck`](crate::bottleneck)).
    pub shares: u16,
}

/// A window and its slow-start threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Full packets in a round trip, at least 1.
    pub packets: u64,
    /// Full packets below which `packets` doubles with each round trip; `u64::MAX` if there is no
    /// such bound.
    pub ssthresh: u64,
    /// Whether `packets` follows from a pacing rate, which losses do not halve.
    pub paced: bool,
}

impl PathView {
    /// A path of which only the identifier is known. Its slot is the identifier modulo
    /// [`MAX_PATHS`].
    pub fn unknown(id: PathId) -> Self {
        PathView {
            id,
            slot: (id.index() % MAX_PATHS) as u8,
            state: PathState::Active,
            backup: false,
            cwnd: 12_000,
            ssthresh: u64::MAX,
            bytes_in_flight: 0,
            bytes_queued: 0,
            packet_size: 1200,
            ready: true,
            next_send: Time::ZERO,
            pacing_rate: Bitrate::ZERO,
            rate: Bitrate::ZERO,
            rtt: RttView {
                latest: Duration::from_millis(100),
                smoothed: Duration::from_millis(100),
                variation: Duration::from_millis(50),
                min: Duration::from_millis(100),
                queue: Duration::ZERO,
                forward: 0,
                samples: 0,
            },
            rto: Duration::from_millis(300),
            oldest_unacked: None,
            loss: LossView::default(),
            inter_loss: InterLoss::default(),
            shares: 0,
        }
    }

    /// Congestion window in full packets, at least 1.
    #[inline]
    pub fn cwnd_packets(&self) -> u64 {
        (self.cwnd / self.packet_size.max(1)).max(1)
    }

    /// Packets that the path sends in a round trip, as models of windows see it. If the pacer
    /// admits less than the window, the path sends only that much and does not double it in slow
    /// start.
    pub fn round(&self) -> Round {
        let size = self.packet_size.max(1);
        let ssthresh = if self.ssthresh == u64::MAX { u64::MAX } else { self.ssthresh / size };
        let paced = self.pacing_rate.bytes_in(self.rtt.smoothed) / size;
        if self.pacing_rate > Bitrate::ZERO && paced < self.cwnd_packets() {
            let packets = paced.max(1);
            return Round { packets, ssthresh: packets.min(ssthresh), paced: true };
        }
        Round { packets: self.cwnd_packets(), ssthresh, paced: false }
    }

    /// Full packets that the congestion window still admits.
    #[inline]
    pub fn free_packets(&self) -> u64 {
        self.cwnd.saturating_sub(self.bytes_in_flight + self.bytes_queued) / self.packet_size.max(1)
    }

    /// w(1 − p)/RTT, the *estimated loss-free bandwidth*, in packets per second (MPLOT eq. 1).
    pub fn loss_free_bandwidth(&self) -> f64 {
        let rtt = self.rtt.smoothed.as_secs_f64().max(1e-6);
        self.cwnd as f64 / self.packet_size.max(1) as f64 * (1.0 - self.loss.mean) / rtt
    }

    /// Whether ordinary data may be scheduled onto the path.
    #[inline]
    pub fn usable(&self) -> bool {
        matches!(self.state, PathState::Active | PathState::Probation)
    }
}

/// A coding block: the symbols that repairs combine, the newest run with a code that slides.
/// Without a code, it is any run of symbols; in the models of TCP, one segment of the stream.
///
/// A symbol is in one state at a time: *due* (or a planned repair), *queued*, *in flight*,
/// *received*, or lost and no longer needed. A loss, a take-back or a copy makes a symbol due.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockView {
    /// Identifier of the block.
    pub id: BlockId,
    /// First source symbol.
    pub first: SymbolId,
    /// How the data wants to be treated.
    pub class: TrafficClass,
    /// Source symbols in the block so far (F once it is closed).
    pub sources: u16,
    /// Source symbols for which the block was opened. It closes with fewer if the data ends or its
    /// class changes.
    pub planned: u16,
    /// Whether the block is closed: no further source symbols will join.
    pub closed: bool,
    /// Repair symbols generated so far.
    pub repairs: u16,
    /// Proactive repairs planned but not generated yet.
    pub proactive_left: u16,
    /// Symbols that must be sent before anything else of this block: replacements of losses, and
    /// symbols taken back from a path's queue.
    pub due: u16,
    /// Independent symbols known to have arrived, from acknowledgements and the receiver's reports.
    /// With codes that may fail with F symbols, it is below `sources` until the block is known to
    /// be recovered.
    pub received: u16,
    /// Distinct symbols sent and neither acknowledged nor declared lost. A symbol with copies on
    /// several paths counts once.
    pub in_flight: u16,
    /// Symbols in flight by path slot; a copy counts on each path that carries one.
    pub in_flight_on: [u16; MAX_PATHS],
    /// Distinct symbols that wait in the queues of paths and are not also in flight.
    pub queued: u16,
    /// Symbols in the queue of each path, by slot, copies of symbols in flight included.
    pub queued_on: [u16; MAX_PATHS],
    /// Bit i: the path in slot i has sent a symbol of this block, whether or not it arrived.
    pub carried_on: u16,
    /// Bit i: a symbol that is due was last carried by the path in slot i. Symbols taken back before they
    /// were sent set no bit.
    pub lost_on: u16,
    /// When the block's first symbol was sent.
    pub opened: Time,
}

impl BlockView {
    /// Symbols still missing at the receiver for decoding, as far as is known.
    #[inline]
    pub fn deficit(&self) -> u16 {
        self.sources.saturating_sub(self.received)
    }

    /// Whether a symbol of the block may be taken now: symbols are due, or the block is closed and
    /// planned repairs are left.
    #[inline]
    pub fn has_work(&self) -> bool {
        self.takeable() > 0
    }

    /// Symbols of the block that may be taken now: those due, and once the block is closed, the
    /// planned repairs that are left.
    #[inline]
    pub fn takeable(&self) -> u32 {
        u32::from(self.due) + if self.closed { u32::from(self.proactive_left) } else { 0 }
    }

    /// Whether the block is of this class and is open, has work or needs more.
    #[inline]
    pub(crate) fn concerns(&self, class: TrafficClass, needs_more: impl Fn(&Self) -> bool) -> bool {
        self.class == class && (!self.closed || self.has_work() || needs_more(self))
    }

    /// Symbols missing beyond those in flight, queued, due and planned, because of new losses.
    #[inline]
    pub fn shortfall(&self) -> u16 {
        self.deficit()
            .saturating_sub(self.in_flight)
            .saturating_sub(self.queued)
            .saturating_sub(self.due)
            .saturating_sub(self.proactive_left)
    }

    /// Symbols in flight that `path` neither carries nor has queued: at least this many may be
    /// taken by [`Work::Copy`].
    ///
    /// [`Work::Copy`]: crate::scheduler::Work::Copy
    pub fn uncopied(&self, path: &PathView) -> u16 {
        self.in_flight.saturating_sub(self.in_flight_by(path)).saturating_sub(self.queued_by(path))
    }

    /// Symbols of this block in flight on `path`.
    pub fn in_flight_by(&self, path: &PathView) -> u16 {
        self.in_flight_on[usize::from(path.slot) % MAX_PATHS]
    }

    /// Symbols of this block queued on `path`.
    pub fn queued_by(&self, path: &PathView) -> u16 {
        self.queued_on[usize::from(path.slot) % MAX_PATHS]
    }

    /// Whether `path` has sent a symbol of this block.
    pub fn carried_by(&self, path: &PathView) -> bool {
        self.carried_on & bit(path) != 0
    }

    /// Whether a symbol that is due was last carried by `path`.
    pub fn lost_by(&self, path: &PathView) -> bool {
        self.due > 0 && self.lost_on & bit(path) != 0
    }
}

/// The bit of a path in masks such as [`BlockView::carried_on`].
fn bit(path: &PathView) -> u16 {
    1_u16.checked_shl(u32::from(path.slot)).unwrap_or(0)
}

/// The redundancy policy's view of how many more symbols a block would need under a hypothetical
/// allocation, for schedulers that allocate virtually before they send (FMTCP's algorithm 1).
#[derive(Clone, Copy, Debug, Default)]
pub struct Demand<'a>(Option<(&'a dyn RedundancyPolicy, &'a RedundancyView<'a>)>);

impl<'a> Demand<'a> {
    /// A demand that asks `policy`, which reads `view`.
    pub fn of(policy: &'a dyn RedundancyPolicy, view: &'a RedundancyView<'a>) -> Self {
        Demand(Some((policy, view)))
    }

    /// Whether blocks that need more symbols get repairs, as many as needed: [`Work::Repair`].
    /// Otherwise the lost symbols themselves become due.
    ///
    /// [`Work::Repair`]: crate::scheduler::Work::Repair
    #[inline]
    pub fn by_repairs(&self) -> bool {
        self.0.is_some()
    }

    /// Most symbols that share a packet, as far as they fit.
    #[inline]
    pub fn symbols_per_packet(&self) -> u16 {
        self.0.map_or(1, |(policy, _)| policy.symbols_per_packet()).max(1)
    }

    /// How many further symbols `block` needs if `hypothetical[slot]` more were given to each path.
    /// Without a policy, this is the shortfall minus the hypothetical symbols.
    #[inline]
    pub fn still_needed(&self, block: &BlockView, hypothetical: &[u16; MAX_PATHS]) -> u16 {
        match self.0 {
            Some((policy, view)) => policy.still_needed(block, hypothetical, view),
            None => {
                let handed = hypothetical.iter().fold(0_u16, |sum, n| sum.saturating_add(*n));
                block.shortfall().saturating_sub(handed)
            }
        }
    }

    /// Whether [`still_needed`](Self::still_needed) is above 0.
    #[inline]
    pub fn needs_more(&self, block: &BlockView, hypothetical: &[u16; MAX_PATHS]) -> bool {
        match self.0 {
            Some((policy, view)) => policy.needs_more(block, hypothetical, view),
            None => self.still_needed(block, hypothetical) > 0,
        }
    }

    /// The index of the first block of the class that is open, has work, or needs more symbols.
    #[inline]
    pub fn first_in_need(&self, blocks: &[BlockView], class: TrafficClass) -> Option<usize> {
        match self.0 {
            Some((policy, view)) => policy.first_in_need(blocks, class, view),
            None => {
                blocks.iter().position(|block| block.concerns(class, |block| block.shortfall() > 0))
            }
        }
    }
}

/// All state that a scheduler may use.
#[derive(Clone, Copy, Debug)]
pub struct SchedulerView<'a> {
    /// The current time.
    pub now: Time,
    /// Paths, by rising slot. A closed path stays in the list until another takes its slot.
    pub paths: &'a [PathView],
    /// Blocks not yet recovered at the receiver, oldest first; those of live data with its own
    /// symbol space come after the others. An engine that keeps thousands of blocks (one for each
    /// TCP segment) may leave some out, but never the oldest of all, the oldest that has work, or,
    /// in a pull, the oldest of which the asking path could take a copy.
    pub blocks: &'a [BlockView],
    /// Data that the application has ready.
    pub fresh: FreshView,
    /// How many symbols blocks would still need under hypothetical allocations.
    pub demand: Demand<'a>,
}

impl SchedulerView<'_> {
    /// First symbol of the oldest block that the receiver is not known to have recovered; blocks of
    /// the main space come first. If there is no such block, the next new symbol.
    pub fn floor(&self) -> SymbolId {
        self.blocks.first().map_or(self.fresh.next, |block| block.first)
    }

    /// The block with this id, if it is in the view.
    pub fn block(&self, id: BlockId) -> Option<&BlockView> {
        let index = self.blocks.binary_search_by_key(&id, |block| block.id).ok()?;
        self.blocks.get(index)
    }

    /// The path with this id.
    pub fn path(&self, id: PathId) -> Option<&PathView> {
        self.paths.iter().find(|path| path.id == id)
    }
}

#[cfg(test)]
mod tests;
