use super::agent::MeshAgent;
use crate::engine::{AgentId, Engine};

/// Counters of the network layers of all stations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeshCounters {
    /// Transport packets handed to a station to send.
    pub originated: u64,
    /// Packets of transports that have arrived.
    pub delivered: u64,
    /// Packets of transports handed to a MAC, at each station on the way.
    pub data_transmissions: u64,
    /// Packets of transports sent a second time, along a second route.
    pub copies: u64,
    /// Packets of transports that a destination had already as a copy.
    pub copies_dropped: u64,
    /// Packets with nothing but routing in them handed to a MAC, at each station on the way.
    pub routing_transmissions: u64,
    /// Bytes of the packets in `routing_transmissions`.
    pub routing_bytes: u64,
    /// Searches for a route that asked the neighbours only.
    pub limited_requests: u64,
    /// Searches that asked everybody.
    pub requests: u64,
    /// Requests that other stations sent on.
    pub requests_forwarded: u64,
    /// Replies of destinations.
    pub replies: u64,
    /// Replies of stations that knew a route.
    pub cache_replies: u64,
    /// Replies that offered a shorter route.
    pub shortenings: u64,
    /// Replies that have come to the station that asked.
    pub replies_received: u64,
    /// Route errors sent.
    pub errors: u64,
    /// Link failures: packets that a MAC gave up or ARP found no address for.
    pub link_failures: u64,
    /// Packets of others that were given another route.
    pub salvaged: u64,
    /// ARP packets handed to a MAC.
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
    /// Random loss above the MAC. Of a broadcast, at each station that would have received it.
    pub loss: u64,
    /// The interface queue of a station was full.
    pub queue: u64,
    /// Another packet took the packet's place while it waited for a MAC address.
    pub arp: u64,
    /// The packet waited too long for a route.
    pub expired: u64,
    /// The send buffer was full.
    pub send_buffer: u64,
    /// A station that was to forward the packet knew no other route.
    pub no_route: u64,
    /// The packet had been salvaged 15 times, or forwarded as often as its lifetime allows.
    pub lifetime: u64,
    /// A reply with a link that has just failed.
    pub stale_reply: u64,
}
