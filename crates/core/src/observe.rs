//! Observations: the core's decisions and their reasons, for an observer.

use anabranch_policy::view::{PathState, SymbolId};
use anabranch_types::{PathId, Time};
use core::fmt::Debug;
use core::time::Duration;

use crate::wire::{Frame, Frames};

/// One event or decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    /// The scheduler sent a symbol on a path.
    Scheduled {
        /// The path.
        path: PathId,
        /// "source", "repair" or "resend".
        what: &'static str,
        /// First symbol concerned.
        symbol: SymbolId,
        /// The scheduler's reason.
        reason: &'static str,
    },
    /// The scheduler held a path back until a time.
    Held {
        /// The path.
        path: PathId,
        /// The time until which the path is held back.
        until: Time,
        /// The scheduler's reason.
        reason: &'static str,
    },
    /// A coding block closed.
    BlockClosed {
        /// First symbol.
        first: SymbolId,
        /// Source symbols.
        sources: u16,
        /// Proactive repairs planned.
        repairs: u16,
        /// Aggregate loss estimate, parts per thousand.
        loss_permille: u16,
    },
    /// A block lacked symbols, so repairs became due.
    RepairsDue {
        /// First symbol of the block.
        first: SymbolId,
        /// How many more repairs became due.
        count: u16,
    },
    /// Packets of a path were declared lost.
    Lost {
        /// The path.
        path: PathId,
        /// How many packets were lost.
        packets: u32,
    },
    /// A path's probe timer fired.
    Timeout {
        /// The path.
        path: PathId,
        /// How many times in a row it has fired.
        consecutive: u32,
    },
    /// Data in flight on a path was made due on other paths.
    Reinjected {
        /// The path.
        path: PathId,
        /// Packets concerned.
        packets: u32,
    },
    /// The size of full packets on a path has changed.
    PathMtu {
        /// The path.
        path: PathId,
        /// The longest IP packet, bytes.
        bytes: u32,
        /// The reason.
        reason: &'static str,
    },
    /// A path changed its state.
    PathState {
        /// The path.
        path: PathId,
        /// The new state.
        state: PathState,
        /// The reason.
        reason: &'static str,
    },
    /// Two paths were found to share a bottleneck, or no longer to.
    SharedBottleneck {
        /// One of the two paths.
        path: PathId,
        /// The other of the two paths.
        with: PathId,
        /// Whether the paths share a bottleneck.
        shared: bool,
    },
    /// The congestion controller's figures after feedback that changed its window.
    Congestion {
        /// The path.
        path: PathId,
        /// Congestion window, bytes.
        cwnd: u64,
        /// Pacing rate, bits per second (0: not paced).
        pacing_bps: u64,
        /// State of the controller.
        phase: &'static str,
    },
    /// Nothing was sent for a while, although a path could have been used. This is reported when
    /// the wait is over.
    Waited {
        /// When the wait began.
        since: Time,
        /// Reason for the wait, one of [`waits`].
        what: &'static str,
    },
    /// A data packet left.
    PacketSent {
        /// The path.
        path: PathId,
        /// Packet number.
        number: u64,
        /// UDP payload, bytes.
        bytes: u32,
        /// Kinds of frames in the packet.
        frames: FrameKinds,
    },
    /// A data packet arrived.
    PacketReceived {
        /// The path.
        path: PathId,
        /// Packet number.
        number: u64,
        /// UDP payload, bytes.
        bytes: u32,
        /// Kinds of frames in the packet.
        frames: FrameKinds,
    },
    /// The packet that is reported as received next acknowledges these packets for the first time.
    Acknowledged {
        /// The path on which the packets were sent.
        path: PathId,
        /// The lowest number.
        first: u64,
        /// The highest number; all numbers in between are acknowledged too.
        last: u64,
    },
    /// A packet was declared lost.
    PacketLost {
        /// The path.
        path: PathId,
        /// Packet number.
        number: u64,
        /// UDP payload, bytes.
        bytes: u32,
    },
    /// A path's round-trip times and bytes in flight, after an acknowledgement.
    Metrics {
        /// The path.
        path: PathId,
        /// Round-trip time: newest sample.
        latest: Duration,
        /// Round-trip time, smoothed.
        smoothed: Duration,
        /// Least round-trip time.
        min: Duration,
        /// Bytes in flight.
        in_flight: u64,
    },
}

impl Observation {
    /// Whether the observation is about a single packet, of which there are many, and not a decision.
    pub fn is_about_packets(&self) -> bool {
        matches!(
            self,
            Observation::PacketSent { .. }
                | Observation::PacketReceived { .. }
                | Observation::Acknowledged { .. }
                | Observation::PacketLost { .. }
                | Observation::Metrics { .. }
        )
    }
}

/// Reasons for a sender to wait ([`Observation::Waited`]).
pub mod waits {
    /// The application has given nothing more to send.
    pub const APPLICATION: &str = "application";
    /// The peer has received all data, but grants no more credit until its application has read
    /// more.
    pub const READER: &str = "reader";
    /// The peer's credit is used up by data in flight.
    pub const CREDIT: &str = "credit";
    /// The congestion windows of all paths are full of unacknowledged packets.
    pub const ACKNOWLEDGEMENTS: &str = "acknowledgements";
}

/// The kinds of frames in a packet, without their order and number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameKinds(u32);

impl FrameKinds {
    /// Kinds of the frames in a packet's opened payload, as far as it can be read.
    pub fn of(payload: &[u8]) -> Self {
        let frames = Frames::new(payload).map_while(Result::ok);
        FrameKinds(frames.fold(0, |kinds, frame| kinds | 1 << frame.ordinal()))
    }

    /// Names of the frame kinds, in the order of the wire format's table.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let names = Frame::NAMES.into_iter().enumerate();
        names.filter(move |(ordinal, _)| self.0 >> ordinal & 1 != 0).map(|(_, name)| name)
    }
}

/// Receives observations as they are made. Methods are called synchronously and must not block.
pub trait Observer: Debug + Send {
    /// Receives `observation`, which was made at `now`.
    fn observe(&mut self, now: Time, observation: &Observation);
}
