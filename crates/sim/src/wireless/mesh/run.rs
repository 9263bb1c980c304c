use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use anabranch_policy::{PolicyError, PolicySpec};
use anabranch_tcp::{Config, SenderStatistics};
use anabranch_types::{Bitrate, DataSize, Time};

use super::agent::{End, MeshAgent};
use super::{MeshCounters, RoutingConfig};
use crate::endpoint::{Sink, TcpFlow, TcpProtocol, TcpReceiver, TcpSender, Udp, UdpConfig};
use crate::engine::{AgentId, Engine, RouteId, Topology, TopologyError};
use crate::link::LinkConfig;
use crate::queue::QueueLimit;
use crate::traffic::Traffic;
use crate::wireless::{Air, AirConfig, AirError, Motion};

/// The configuration of a mesh, without the positions of its stations.
#[derive(Clone, Debug, Default)]
pub struct MeshConfig {
    /// Radio, MAC and random loss.
    pub air: AirConfig,
    /// The network layer.
    pub routing: RoutingConfig,
    /// Whether random loss above the MAC does not apply to ARP packets and packets with only
    /// routing options. By default it applies to them, as in the reference data of ns-2.
    pub loss_spares_routing: bool,
    /// Transport connections between stations.
    pub flows: Vec<MeshFlow>,
}

/// A transport connection between two stations.
#[derive(Clone, Debug)]
pub struct MeshFlow {
    /// The station that sends, counted from 0.
    pub from: u32,
    /// The station that receives; it must not be `from`.
    pub to: u32,
    /// When the flow begins.
    pub start: Time,
    /// Traffic of the flow.
    pub traffic: MeshTraffic,
}

/// Traffic of a flow in a mesh.
#[derive(Clone, Debug)]
pub enum MeshTraffic {
    /// Traffic of an application over TCP: a stream without end, or transfers.
    Tcp(Arc<TcpProtocol>, Traffic),
    /// Datagrams without congestion control.
    Udp(UdpConfig),
}

/// Stations with radios and the flows between them, running in an engine of their own.
#[derive(Debug)]
pub struct Mesh {
    engine: Engine,
    agent: AgentId,
    flows: Vec<(AgentId, AgentId)>,
}

impl MeshFlow {
    /// A flow from time zero on with the TCP of the M-TCP paper: ns-2's Sack1 with segments of 500
    /// bytes, a window of 32 segments and an acknowledgement for each segment.
    pub fn tcp(from: u32, to: u32) -> Self {
        let sack = Config::ns2_sack1(false);
        let config = Config { mss: 500, receive_buffer: 32 * 500, ..sack };
        let control = PolicySpec::new("reno").with("initial", "2");
        let control = control.with("growth", "acks").with("floor", "0");
        let traffic = MeshTraffic::Tcp(Arc::new(TcpProtocol::new(config, control)), Traffic::Bulk);
        MeshFlow { from, to, start: Time::ZERO, traffic }
    }
}

impl Mesh {
    /// A mesh with stations at the positions of `motion`. Random draws are substreams of `seed`.
    ///
    /// # Errors
    /// When the configuration of the medium is invalid, a flow's station does not exist, or a
    /// protocol cannot be built.
    pub fn new(config: &MeshConfig, motion: Box<dyn Motion>, seed: u64) -> Result<Self, MeshError> {
        let count = motion.stations();
        let air = Air::new(&config.air, motion, seed).map_err(MeshError::Air)?;
        let mut topology = Topology::new();
        let (hosts, radios) = (topology.add_node("hosts"), topology.add_node("radios"));
        let mut wire = |from, to, name| topology.add_link(from, to, &wire(), name);
        wire(hosts, radios, "down")
            .and_then(|_| wire(radios, hosts, "up"))
            .map_err(MeshError::Topology)?;
        let no_route = |_| MeshError::Topology(TopologyError::NoSuch("route", 0));
        let down = topology.route(hosts, radios).map_err(no_route)?;
        let up = topology.route(radios, hosts).map_err(no_route)?;
        let mut engine = Engine::new(topology, seed).map_err(MeshError::Topology)?;
        let mut agent = MeshAgent::new(air, count as u16, &config.routing, seed);
        agent.loss_spares_routing = config.loss_spares_routing;
        let agent = engine.add_agent(Box::new(agent), Time::ZERO);
        let mut mesh = Mesh { engine, agent, flows: Vec::new() };
        for flow in &config.flows {
            if flow.from == flow.to || [flow.from, flow.to].iter().any(|at| *at as usize >= count) {
                return Err(MeshError::NoSuchStation(flow.from, flow.to));
            }
            mesh.add_flow(flow, [down, up], seed)?;
        }
        Ok(mesh)
    }

    fn add_flow(
        &mut self,
        flow: &MeshFlow,
        [down, up]: [RouteId; 2],
        seed: u64,
    ) -> Result<(), MeshError> {
        let number = self.flows.len() as u32;
        let name = format!("flow.{number}");
        let (sender, receiver) = match &flow.traffic {
            MeshTraffic::Tcp(protocol, traffic) => {
                let sender = TcpSender::new(protocol, traffic.clone(), seed, &name);
                let sender = sender.map_err(MeshError::Protocol)?;
                let sender = self.engine.add_agent(Box::new(sender), flow.start);
                let size = match traffic {
                    Traffic::Transfers { size, .. } | Traffic::Poisson { size, .. } => *size,
                    _ => 0,
                };
                let receiver = TcpReceiver::new(protocol).with_transfers_of(size);
                (sender, self.engine.add_agent(Box::new(receiver), flow.start))
            }
            MeshTraffic::Udp(config) => {
                let source = Box::new(Udp::new(config.clone(), seed, &name));
                let source = self.engine.add_agent(source, flow.start);
                (source, self.engine.add_agent(Box::new(Sink::default()), flow.start))
            }
        };
        let stations = [flow.from as u16, flow.to as u16];
        for (own, at) in [sender, receiver].into_iter().zip([0, 1]) {
            let end = End {
                station: stations[at],
                peer: stations[1 - at],
                peer_end: 2 * number + 1 - at as u32,
            };
            if let Some(mesh) = self.engine.agent_as_mut::<MeshAgent>(self.agent) {
                mesh.expect(end);
            }
            self.engine.connect(own, self.agent, down, up).map_err(MeshError::Topology)?;
        }
        self.flows.push((sender, receiver));
        Ok(())
    }

    /// Runs the mesh until `until`.
    pub fn run_until(&mut self, until: Time) {
        self.engine.run_until(until);
    }

    /// The current time.
    pub fn now(&self) -> Time {
        self.engine.now()
    }

    /// Bytes of a TCP flow that were acknowledged; 0 for other flows.
    pub fn acknowledged(&self, flow: usize) -> u64 {
        self.sender(flow).map_or(0, TcpSender::acknowledged)
    }

    /// Bytes that a flow has delivered. For TCP, these are bytes in order; for UDP, whole datagrams
    /// as on the wire, including duplicates.
    pub fn delivered(&self, flow: usize) -> u64 {
        let Some((_, receiver)) = self.flows.get(flow) else { return 0 };
        let tcp = self.engine.agent_as::<TcpReceiver>(*receiver).map(TcpReceiver::delivered);
        tcp.or_else(|| self.engine.agent_as::<Sink>(*receiver).map(Sink::bytes)).unwrap_or(0)
    }

    /// Counters of a TCP flow's sender; all zero for other flows.
    pub fn statistics(&self, flow: usize) -> SenderStatistics {
        self.sender(flow).map_or_else(SenderStatistics::default, TcpSender::statistics)
    }

    /// The ends of a TCP flow in the [engine](Self::into_engine), which can be read like those of
    /// any other flow; `None` for other flows.
    pub fn flow(&self, flow: usize) -> Option<TcpFlow> {
        let (sender, receiver) = *self.flows.get(flow)?;
        self.engine.agent_as::<TcpSender>(sender)?;
        Some(TcpFlow { sender, receiver })
    }

    /// The agent at which a flow's packets arrive: a [`TcpReceiver`] or a [`Sink`].
    pub fn receiver(&self, flow: usize) -> Option<AgentId> {
        self.flows.get(flow).map(|(_, receiver)| *receiver)
    }

    /// The engine of the mesh, and its agent for all stations.
    pub fn into_engine(self) -> (Engine, AgentId) {
        (self.engine, self.agent)
    }

    /// Counters of the network layers.
    pub fn counters(&self) -> MeshCounters {
        MeshCounters::read(&self.engine, self.agent)
    }

    /// The medium, from which its counters and those of the MACs can be read.
    pub fn air(&self) -> Option<&Air> {
        self.agent().map(MeshAgent::air)
    }

    fn agent(&self) -> Option<&MeshAgent> {
        self.engine.agent_as(self.agent)
    }

    fn sender(&self, flow: usize) -> Option<&TcpSender> {
        self.engine.agent_as(self.flows.get(flow)?.0)
    }
}

/// The link between a transport and its station, which is so fast that it adds no delay.
fn wire() -> LinkConfig {
    let mut wire = LinkConfig::new(Bitrate::from_bps(1_000_000_000_000), Duration::ZERO);
    wire.queue.limit = Some(QueueLimit::Bytes(DataSize::from_bytes(1 << 30)));
    wire
}

/// Why the configuration of a mesh is invalid.
#[derive(Debug)]
pub enum MeshError {
    /// The configuration of the medium is invalid.
    Air(AirError),
    /// One of a flow's two stations does not exist, or both are the same.
    NoSuchStation(u32, u32),
    /// A protocol cannot be built.
    Protocol(PolicyError),
    /// This cannot happen: the links between transports and stations are fixed and valid.
    Topology(TopologyError),
}

impl fmt::Display for MeshError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MeshError::Air(error) => error.fmt(f),
            MeshError::NoSuchStation(from, to) => {
                write!(f, "a flow needs two stations that exist, not {from} and {to}")
            }
            MeshError::Protocol(error) => error.fmt(f),
            MeshError::Topology(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for MeshError {}
