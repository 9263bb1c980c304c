use anabranch_sim::link::LinkCounters;
use anabranch_types::{Bitrate, Probability, Time};

use crate::{Lateness, Waits};

/// A snapshot of a relay.
#[derive(Clone, Debug)]
pub struct RelayStats {
    /// Time of the snapshot, since the relay started.
    pub now: Time,
    /// When the first datagram of any sender arrived: the start of the capacity integrals.
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

/// A snapshot of one path. Bytes count the IPv4 and UDP headers: payload + 28.
#[derive(Clone, Debug)]
pub struct PathStats {
    /// The forward link's name, or `path0`, `path1`, … where none was given.
    pub name: String,
    /// From the sender to the receiver.
    pub forward: LinkStats,
    /// From the receiver to the sender.
    pub reverse: LinkStats,
    /// The ends of both routes, the forward one first.
    pub routes: [RouteStats; 2],
}

/// A snapshot of one direction of a link.
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
    /// zero before it.
    pub capacity_bits: f64,
}

/// A snapshot of the end of a route over one or several links.
#[derive(Clone, Debug)]
pub struct RouteStats {
    /// Packets that arrived but this machine did not take: no peer known yet, a full socket, an interface that
    /// is down.
    pub unsent: u64,
    /// How punctually packets were sent on.
    pub lateness: Lateness,
}
