use super::agent::MeshAgent;
use crate::engine::{AgentId, Engine};

/// Counters of the network layers of all stations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeshCounters {
    /// Transport packets that stations were asked to send.
    pub originated: u64,
    /// Transport packets that have arrived at their destination.
    pub delivered: u64,
    /// Transport packets passed to a MAC, counted at each station on the route.
    pub data_transmissions: u64,
    /// Copies of transport packets, sent along a second route.
    pub copies: u64,
    /// Transport packets that a destination dropped because it already had the other copy.
    pub copies_dropped: u64,
    /// Packets with only routing options passed to a MAC, counted at each station on the route.
    pub routing_transmissions: u64,
    /// Bytes of the packets in `routing_transmissions`.
    pub routing_bytes: u64,
    /// Searches for a route that asked only the neighbours.
    pub limited_requests: u64,
    /// Searches for a route that asked all stations.
    pub requests: u64,
    /// Requests that stations forwarded for others.
    pub requests_forwarded: u64,
    /// Replies that destinations sent.
    pub replies: u64,
    /// Replies that stations with a known route sent.
    pub cache_replies: u64,
    /// Replies that offered a shorter route.
    pub shortenings: u64,
    /// Replies that have arrived at the station that searched.
    pub replies_received: u64,
    /// Route errors sent.
    pub errors: u64,
    /// Link failures: packets that a MAC gave up or ARP found no address for.
    pub link_failures: u64,
    /// Packets that a forwarding station sent along another route.
    pub salvaged: u64,
    /// ARP packets passed to a MAC.
    pub arp: u64,
    /// Packets that were dropped, by cause.
    pub drops: Drops,
}

impl MeshCounters {
    /// Counters of the mesh whose agent in `engine` is `stations`; all zero if there is no such agent.
    pub fn read(engine: &Engine, stations: AgentId) -> Self {
        let agent = engine.agent_as::<MeshAgent>(stations);
        agent.map_or_else(MeshCounters::default, |mesh| *mesh.counters())
    }
}

/// Packets that were dropped, of transports and routing, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// Random loss above the MAC. A broadcast is counted at each station that would have received
    /// it.
    pub loss: u64,
    /// The interface queue of a station was full.
    pub queue: u64,
    /// Another packet replaced the packet while it waited for a MAC address.
    pub arp: u64,
    /// The packet waited too long for a route.
    pub expired: u64,
    /// The send buffer was full.
    pub send_buffer: u64,
    /// A station that could not forward the packet knew no other route.
    pub no_route: u64,
    /// The packet had been salvaged 15 times, or forwarded as often as its lifetime allows.
    pub lifetime: u64,
    /// The packet was a reply with a link that had just failed.
    pub stale_reply: u64,
}
