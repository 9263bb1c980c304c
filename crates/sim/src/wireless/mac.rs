//! The MAC of a station: 802.11's distributed coordination function (IEEE 802.11-1999, §9.2).

mod config;
mod station;

pub use config::{EifsRule, IdleAccess, MacConfig, MacConfigError};

pub(super) use config::Timing;
pub(super) use station::Mac;

use super::Priority;

/// The destination of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// One station, which acknowledges the message.
    Station(u32),
    /// Every station in range. The message is sent once, at the basic rate and without
    /// acknowledgement (§9.2.7).
    Broadcast,
}

/// A message that a station's network layer hands to its MAC (an MSDU).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The caller's identifier of the message; reports return it.
    pub token: u32,
    /// The destination of the message.
    pub to: Destination,
    /// Length without the MAC's header and frame check sequence, bytes.
    pub bytes: u32,
    /// The priority with which the message waits in the interface queue.
    pub priority: Priority,
}

/// Counters of a MAC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MacCounters {
    /// Data frames sent, including retransmissions and broadcasts.
    pub data_frames: u64,
    /// RTS frames sent.
    pub rts_frames: u64,
    /// Exchanges that failed because there was no CTS or no ACK.
    pub failures: u64,
    /// Messages given up at a retry limit.
    pub given_up: u64,
    /// Messages refused by a full interface queue.
    pub refused: u64,
    /// Messages acknowledged, or broadcast.
    pub sent: u64,
    /// Messages handed to the layer above.
    pub received: u64,
    /// Data frames that were received more than once.
    pub duplicates: u64,
    /// Frames heard but not decoded, each followed by an EIFS.
    pub garbled: u64,
}

/// A frame on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) kind: FrameKind,
    pub(super) from: u32,
    pub(super) to: Destination,
    /// Airtime of the frame, nanoseconds.
    pub(super) airtime: u64,
    /// Time after the frame's end for which the exchange reserves the channel, nanoseconds.
    pub(super) reserves: u64,
    /// Sequence number of a data frame.
    pub(super) sequence: u32,
    /// Token of a data frame's message.
    pub(super) token: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameKind {
    Rts,
    Cts,
    Data,
    Ack,
}

/// A report of the MAC to the layer above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    /// A message has arrived for the first time.
    Received { from: u32, token: u32 },
    /// The message was acknowledged, or is a broadcast that was sent completely.
    Sent { token: u32 },
    /// The message was given up at a retry limit.
    GaveUp { token: u32, to: u32 },
}
