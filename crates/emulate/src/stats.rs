use anabranch_sim::link::LinkCounters;
use anabranch_types::{Bitrate, Probability, Time};

use crate::{Lateness, Waits};

/// A snapshot of a relay.
#[derive(Clone, Debug)]
pub struct RelayStats {
    /// Time of the snapshot, since the relay started.
    pub now: Time,
    /// When the first datagram arrived on any path; the capacity integrals start then.
    pub first_datagram: Option<Time>,
    /// The paths in the order they were given.
    pub paths: Vec<PathStats>,
}

impl RelayStats {
    /// Bits that all forward links together could have delivered since the first datagram.
    pub fn forward_capacity_bits(&self) -> f64 {
        self.paths.iter().map(|path| path.forward.capacity_bits).sum()
    }
}

/// A snapshot of one path. Byte counts include the IPv4 and UDP headers, 28 bytes per datagram.
#[derive(Clone, Debug)]
pub struct PathStats {
    /// The forward link's name, or `path0`, `path1`, … where none was given.
    pub name: String,
    /// The link from the sender to the receiver.
    pub forward: LinkStats,
    /// The link from the receiver to the sender.
    pub reverse: LinkStats,
    /// The ends of both routes, the forward one first.
    pub routes: [RouteStats; 2],
}

/// A snapshot of a link, which carries packets in one direction.
#[derive(Clone, Debug)]
pub struct LinkStats {
    /// Name of the link.
    pub name: String,
    /// Counters of the link.
    pub link: LinkCounters,
    /// The link's rate now; zero in a blackout.
    pub rate: Bitrate,
    /// The link's loss probability now.
    pub loss_state: Probability,
    /// Bytes that wait in the link's queue now.
    pub queue_bytes: u64,
    /// How long packets waited in the queue since the start.
    pub waits: Waits,
    /// Bits the link could have delivered since the first packet on any link, ∫ rate·(1 − loss) dt;
    /// zero before that packet.
    pub capacity_bits: f64,
}

/// A snapshot of the end of a route over one or several links.
#[derive(Clone, Debug)]
pub struct RouteStats {
    /// Packets that reached the end of the route but could not be handed on: no peer was known yet,
    /// the socket was full, or the interface was down.
    pub unsent: u64,
    /// How late packets were sent on.
    pub lateness: Lateness,
}
