use std::collections::BTreeMap;

use anabranch_types::Time;

use super::agent::MeshAgent;
use crate::engine::{AgentId, Engine};
use crate::wireless::Position;

/// The counters of each hop, by sending and receiving station.
pub type Hops = BTreeMap<(u16, u16), HopCounters>;

/// Counters of data packets on one hop. Acknowledgements and routing packets are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HopCounters {
    /// Packets that arrived.
    pub packets: u64,
    /// Packets that were lost at random above the MAC or given up by the MAC. A packet that was
    /// given up because only its ACKs were lost is also counted as arrived.
    pub losses: u64,
}

/// Makes the mesh whose agent in `engine` is `stations` count arrivals and losses on each hop from
/// now on.
pub fn watch_hops(engine: &mut Engine, stations: AgentId) {
    if let Some(mesh) = engine.agent_as_mut::<MeshAgent>(stations) {
        mesh.hops.get_or_insert_default();
    }
}

/// The hop counters of the agent `stations`; `None` unless [`watch_hops`] was called.
pub fn hops(engine: &Engine, stations: AgentId) -> Option<&Hops> {
    engine.agent_as::<MeshAgent>(stations)?.hops.as_ref()
}

/// Positions of the stations at `now`, in the order of their numbers.
pub fn positions(engine: &Engine, stations: AgentId, now: Time) -> Vec<Position> {
    let agent = engine.agent_as::<MeshAgent>(stations);
    agent.map_or_else(Vec::new, |mesh| mesh.air().positions(now))
}
