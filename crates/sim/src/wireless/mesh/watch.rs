use std::collections::BTreeMap;

use anabranch_types::Time;

use super::agent::MeshAgent;
use crate::engine::{AgentId, Engine};
use crate::wireless::Position;

/// What has happened on each hop, a pair of the station that sends and the one that receives.
pub type Hops = BTreeMap<(u16, u16), HopCounters>;

/// What has happened to packets of data on one hop. Acknowledgements and routing do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HopCounters {
    /// Packets that arrived.
    pub packets: u64,
    /// Packets lost: at random above the MAC, or given up by it. One that is given up because only its ACKs were lost has
    /// arrived, too.
    pub losses: u64,
}

/// Has the stations that are the agent `stations` of an engine count what happens on each hop, from now on.
pub fn watch_hops(engine: &mut Engine, stations: AgentId) {
    if let Some(mesh) = engine.agent_as_mut::<MeshAgent>(stations) {
        mesh.hops.get_or_insert_default();
    }
}

/// What they have counted; nothing if they do not count.
pub fn hops(engine: &Engine, stations: AgentId) -> Option<&Hops> {
    engine.agent_as::<MeshAgent>(stations)?.hops.as_ref()
}

/// Where they are at `now`, in the order of their numbers.
pub fn positions(engine: &Engine, stations: AgentId, now: Time) -> Vec<Position> {
    let agent = engine.agent_as::<MeshAgent>(stations);
    agent.map_or_else(Vec::new, |mesh| mesh.air().positions(now))
}
