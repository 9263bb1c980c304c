//! The engine: agents that exchange packets over a network of links, in virtual time.
//!
//! Events are handled in the order of (time, sequence): of two events that are due at the same
//! time, the one that was scheduled first comes first. An event is the arrival of a packet at the
//! end of a link, or an agent's timer. There is no global state: an engine owns its topology, its
//! packets and its agents, and shares nothing with other engines. The same seed gives the same run
//! on every machine, as [`Engine::digest`] shows.
//!
//! ```
//! use anabranch_sim::endpoint::{Sink, Udp, UdpConfig};
//! use anabranch_sim::engine::{Engine, Topology};
//! use anabranch_types::{Bitrate, Time};
//!
//! let mut topology = Topology::new();
//! let (left, right) = (topology.add_node("left"), topology.add_node("right"));
//! topology.add_link(left, right, &"rate=10mbit,delay=20ms".parse()?, "there")?;
//! topology.add_link(right, left, &"rate=10mbit,delay=20ms".parse()?, "back")?;
//! let (there, back) = (topology.route(left, right)?, topology.route(right, left)?);
//!
//! let mut engine = Engine::new(topology, 1)?;
//! let source = Udp::new(UdpConfig::constant(Bitrate::from_mbps(8.0), 1000), 1, "load");
//! let source = engine.add_agent(Box::new(source), Time::ZERO);
//! let sink = engine.add_agent(Box::new(Sink::default()), Time::ZERO);
//! engine.connect(source, sink, there, back)?;
//! engine.run_until(Time::from_secs(1));
//! // One packet per millisecond; those of the last 20.8 ms are still in flight.
//! assert_eq!(engine.agent_as::<Sink>(sink).map(Sink::packets), Some(980));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod agent;
mod digest;
mod dumbbell;
mod faults;
mod link_view;
mod links;
mod network;
mod observe;
mod packet;
mod thinning;
mod topology;
mod wheel;

#[cfg(test)]
mod tests;

use core::any::Any;

use anabranch_types::Time;

pub use agent::{Agent, Arrival, Loss, Outbox};
pub use dumbbell::{Dumbbell, RoutePair};
pub use link_view::LinkView;
pub use observe::{Observer, PacketEvent, PacketEventKind};
pub use packet::{BYTES_PER_PACKET, Packet, Payload};
pub use topology::{LinkId, NoRoute, NodeId, RouteId, Topology, TopologyError};

pub(crate) use network::{Network, Watch};
pub(crate) use wheel::{Entry, Wheel};

use network::Outcome;

/// Number of an agent within an [`Engine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(pub u32);

/// The local end of a path, numbered within an engine. An agent may own several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u32);

/// Agents, the network between them, and the current time.
#[derive(Debug)]
pub struct Engine {
    topology: Topology,
    network: Network,
    agents: Vec<AgentSlot>,
    events: u64,
}

/// An agent, and whether it has begun.
#[derive(Debug)]
struct AgentSlot {
    agent: Box<dyn Agent>,
    started: bool,
}

impl Engine {
    /// An engine over the network of `topology`, at time zero and without packets. The random draws
    /// of its links are substreams of `seed` named after the links.
    ///
    /// # Errors
    /// If two links have the same name, or a link's configuration is invalid.
    pub fn new(topology: Topology, seed: u64) -> Result<Self, TopologyError> {
        if let Some(name) = topology.repeated_name() {
            return Err(TopologyError::RepeatedName(name.to_owned()));
        }
        let network = Network::new(&topology, seed)?;
        Ok(Engine { topology, network, agents: Vec::new(), events: 0 })
    }

    /// Adds an agent. Its [`handle_timer`](Agent::handle_timer) is called at `start`, and no timer
    /// of the agent fires earlier.
    pub fn add_agent(&mut self, agent: Box<dyn Agent>, start: Time) -> AgentId {
        let id = AgentId(self.agents.len() as u32);
        self.network.links.add_agent();
        self.agents.push(AgentSlot { agent, started: false });
        self.network.arm(self.source(id), start.max(self.network.now));
        id
    }

    /// Connects two agents by a path: packets from the new port at `a` take the route `forward`,
    /// and packets from the new port at `b` take `backward`. Both agents are told by
    /// [`attach`](Agent::attach).
    ///
    /// # Errors
    /// When an agent or a route does not exist.
    pub fn connect(
        &mut self,
        a: AgentId,
        b: AgentId,
        forward: RouteId,
        backward: RouteId,
    ) -> Result<(PortId, PortId), TopologyError> {
        for agent in [a, b] {
            if agent.0 as usize >= self.agents.len() {
                return Err(TopologyError::NoSuch("agent", agent.0));
            }
        }
        let start = |route: RouteId| {
            self.topology.route_start(route).ok_or(TopologyError::NoSuch("route", route.0))
        };
        let starts = [start(forward)?, start(backward)?];
        let ports = self.network.connect([a, b], [forward, backward], starts);
        for (agent, port) in [a, b].into_iter().zip(ports) {
            self.agents[agent.0 as usize].agent.attach(port);
        }
        Ok((ports[0], ports[1]))
    }

    /// Handles every event that is due by `until`, and then sets the current time to `until`. A
    /// time in the past has no effect.
    pub fn run_until(&mut self, until: Time) {
        self.run(until, None);
    }

    /// Like [`run_until`](Self::run_until), while `observer` sees every packet on every link.
    pub fn run_until_with(&mut self, until: Time, observer: &mut dyn Observer) {
        self.run(until, Some(observer));
    }

    /// The current time.
    pub fn now(&self) -> Time {
        self.network.now
    }

    /// Time of the next event, unless the caller changes an agent before; `None` if there is none.
    pub fn next_event(&mut self) -> Option<Time> {
        self.network.next_event()
    }

    /// The topology that the engine was made from.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// A view of a link; `None` if it does not exist.
    pub fn link(&self, link: LinkId) -> Option<LinkView<'_>> {
        let config = &self.topology.all_links().get(link.0 as usize)?.config;
        Some(LinkView::new(config, link, &self.network))
    }

    /// An agent; `None` if it does not exist.
    pub fn agent(&self, agent: AgentId) -> Option<&dyn Agent> {
        self.agents.get(agent.0 as usize).map(|seat| seat.agent.as_ref())
    }

    /// An agent of a known type; `None` if it does not exist or is of another type.
    pub fn agent_as<A: Agent>(&self, agent: AgentId) -> Option<&A> {
        let agent: &dyn Any = self.agents.get(agent.0 as usize)?.agent.as_ref();
        agent.downcast_ref()
    }

    /// An agent of a known type, to read its statistics or change its settings. Changes take effect when
    /// the agent is next called.
    pub fn agent_as_mut<A: Agent>(&mut self, agent: AgentId) -> Option<&mut A> {
        let agent: &mut dyn Any = self.agents.get_mut(agent.0 as usize)?.agent.as_mut();
        agent.downcast_mut()
    }

    /// Makes the engine call an agent's `handle_timer` at the current time as soon as the engine
    /// runs again. This is necessary after a change to the agent from outside.
    pub fn wake(&mut self, agent: AgentId) {
        if let Some(seat) = self.agents.get_mut(agent.0 as usize) {
            seat.started = false;
            self.network.arm(self.source(agent), self.network.now);
        }
    }

    /// The route of packets from a port, and the port at the other end; `None` if the port does not
    /// exist.
    pub fn port(&self, port: PortId) -> Option<(RouteId, PortId)> {
        self.network.port(port).map(|port| (port.route, port.peer))
    }

    /// A hash of (time, link, size, mark, fate) of every packet that has left a link so far, in the
    /// order of events. The same on every machine and in every build.
    pub fn digest(&self) -> u64 {
        self.network.digest.get()
    }

    /// Number of arrivals of packets at the far end of a link, over all links.
    pub fn packet_hops(&self) -> u64 {
        self.network.packet_hops
    }

    /// Events handled so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Number of packets in the network.
    pub fn packets_in_flight(&self) -> usize {
        self.network.packets.len()
    }

    fn run(&mut self, until: Time, mut watch: Watch<'_>) {
        let links = self.network.links.len() as u32;
        while let Some(source) = self.network.next_due(until) {
            self.events += 1;
            if source >= links {
                self.handle_timer(&mut watch, AgentId(source - links));
            } else {
                self.handle_link(&mut watch, LinkId(source));
            }
        }
        self.network.now = self.network.now.max(until);
    }

    #[inline]
    fn handle_link(&mut self, watch: &mut Watch<'_>, link: LinkId) {
        let mut outcome = self.network.handle_link(watch, link);
        while let Some(concerns) = outcome {
            self.conclude(watch, concerns);
            outcome = self.network.next_output(watch, link);
        }
    }

    fn handle_timer(&mut self, watch: &mut Watch<'_>, agent: AgentId) {
        let now = self.network.now;
        let Some(seat) = self.agents.get_mut(agent.0 as usize) else { return };
        if seat.started && seat.agent.next_timer().is_none_or(|due| due > now) {
            // The timer was postponed after it had been armed.
            return self.arm(agent);
        }
        seat.started = true;
        seat.agent.handle_timer(now, &mut Outbox::new(&mut self.network, watch));
        self.after_call(watch, agent);
    }

    /// Reports the outcome of a packet to its agent, then arms the agent's timer and reports refused packets.
    #[inline]
    fn conclude(&mut self, watch: &mut Watch<'_>, outcome: Outcome) {
        let agent = self.deliver(watch, outcome);
        if let Some(agent) = agent {
            self.after_call(watch, agent);
        }
    }

    #[inline]
    fn deliver(&mut self, watch: &mut Watch<'_>, outcome: Outcome) -> Option<AgentId> {
        let now = self.network.now;
        let (Outcome::Arrived(handle) | Outcome::Dropped(handle, _)) = outcome;
        let (packet, mut payload) = self.network.packets.remove(handle);
        let Packet { stream, size, ecn, sent, to: mut port, .. } = packet;
        if let Outcome::Dropped(..) = outcome {
            port = self.network.port(port)?.peer;
        }
        let agent = self.network.port(port)?.agent;
        let seat = self.agents.get_mut(agent.0 as usize)?;
        let mut out = Outbox::new(&mut self.network, watch);
        match outcome {
            Outcome::Arrived(_) => {
                let payload = &mut payload;
                let arrival = Arrival { now, port, stream, size, ecn, sent, payload };
                seat.agent.handle_packet(arrival, &mut out);
            }
            Outcome::Dropped(_, cause) => {
                let loss = Loss { now, port, stream, size, sent, cause, payload: &payload };
                seat.agent.handle_loss(loss, &mut out);
            }
        }
        self.network.recycle(payload);
        Some(agent)
    }

    /// Arms an agent's timer after a call, and reports the packets that were refused during the call.
    #[inline]
    fn after_call(&mut self, watch: &mut Watch<'_>, agent: AgentId) {
        self.arm(agent);
        while let Some(outcome) = self.network.refused.pop() {
            if let Some(agent) = self.deliver(watch, outcome) {
                self.arm(agent);
            }
        }
    }

    #[inline]
    fn arm(&mut self, agent: AgentId) {
        let Some(seat) = self.agents.get(agent.0 as usize) else { return };
        if seat.started
            && let Some(time) = seat.agent.next_timer()
            && time < Time::MAX
        {
            self.network.arm(self.source(agent), time);
        }
    }

    /// The number of an agent among the event sources of the wheel. Agents follow all links.
    fn source(&self, agent: AgentId) -> u32 {
        self.network.links.len() as u32 + agent.0
    }
}
