//! Builds the engine of a plan: the network, and an agent for each end of every flow and load.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_tcp::striping::{RateSource, Striping};
use anabranch_types::{PathId, Rng, Time};

use super::flow::LiveFlow;
use super::{RunError, mesh, rates};
use crate::endpoint::{
    CoreConfig, CoreFlow, CoreReceiver, CoreSender, Flow, Sink, TcpFlow, TcpProtocol, TcpReceiver,
    TcpSender, Udp, UdpConfig,
};
use crate::engine::{AgentId, Engine, LinkId, RouteId, Topology};
use crate::link::LinkCounters;
use crate::scenario::plan::{FlowPlan, LoadPlan, PathPlan, Plan};
use crate::scenario::profiles::Protocol;
use crate::traffic::Traffic;
use crate::wireless::mesh::MeshCounters;

/// A running plan.
pub(super) struct Live {
    pub engine: Engine,
    pub flows: Vec<LiveFlow>,
    pub loads: Vec<LiveLoad>,
    /// Counters of the links at the end of the warm-up.
    pub links: Vec<LinkCounters>,
    /// All stations of a mesh, and their counters at the end of the warm-up.
    pub mesh: Option<(AgentId, MeshCounters)>,
}

/// A running load.
pub(super) struct LiveLoad {
    pub sink: AgentId,
    /// Bytes that had reached the sink at the end of the warm-up.
    pub remembered: u64,
    pub start: Time,
    pub stop: Option<Time>,
}

impl Live {
    /// Stores the values of all counters at the beginning of the measurement.
    pub(super) fn remember(&mut self) {
        for flow in &mut self.flows {
            flow.remember(&mut self.engine);
        }
        for load in &mut self.loads {
            load.remembered = load.bytes(&self.engine);
        }
        if let Some((stations, counters)) = &mut self.mesh {
            *counters = MeshCounters::read(&self.engine, *stations);
        }
        let counters = |index| self.engine.link(LinkId(index as u32)).map(|link| link.counters());
        self.links =
            (0..self.links.len()).map(|index| counters(index).unwrap_or_default()).collect();
    }
}

impl LiveLoad {
    /// Bytes that have reached the sink, headers included.
    pub(super) fn bytes(&self, engine: &Engine) -> u64 {
        engine.agent_as::<Sink>(self.sink).map_or(0, Sink::bytes)
    }
}

type Routes = BTreeMap<Vec<usize>, RouteId>;

/// Builds `plan` with `seed`.
///
/// # Errors
/// When a link, route or protocol cannot be built.
pub(super) fn build(plan: &Plan, seed: u64) -> Result<Live, RunError> {
    if let Some(mesh) = &plan.mesh {
        return mesh::build(plan, mesh, seed);
    }
    let (topology, routes) = network(plan)?;
    let engine = Engine::new(topology, seed).map_err(|error| fault(&error))?;
    let links = vec![LinkCounters::default(); plan.links.len()];
    let mut live = Live { engine, flows: Vec::new(), loads: Vec::new(), links, mesh: None };
    let measured_from = Time::ZERO + plan.warm_up;
    let mut builder = Builder { seed, measured_from, routes: &routes, hosts: BTreeMap::new() };
    for flow in &plan.flows {
        let flow = builder.flow(&mut live.engine, flow, plan)?;
        live.flows.push(flow);
    }
    for load in &plan.loads {
        let load = add_load(&mut live.engine, load, seed, &routes)?;
        live.loads.push(load);
    }
    Ok(live)
}

fn network(plan: &Plan) -> Result<(Topology, Routes), RunError> {
    let mut topology = Topology::new();
    let mut nodes = BTreeMap::new();
    for link in &plan.links {
        let mut node =
            |name: &str| *nodes.entry(name.to_owned()).or_insert_with(|| topology.add_node(name));
        let (from, to) = (node(&link.from), node(&link.to));
        topology
            .add_link(from, to, &link.config, link.name.as_str())
            .map_err(|error| RunError::Build(format!("link '{}': {error}", link.name)))?;
    }
    let mut routes = Routes::new();
    let flows = plan.flows.iter().flat_map(|flow| &flow.paths);
    for path in flows.chain(plan.loads.iter().map(|load| &load.path)) {
        for links in [&path.forward, &path.back] {
            if routes.contains_key(links) {
                continue;
            }
            let ids: Vec<LinkId> = links.iter().map(|link| LinkId(*link as u32)).collect();
            let route = topology.route_via(&ids).map_err(|error| fault(&error))?;
            routes.insert(links.clone(), route);
        }
    }
    Ok((topology, routes))
}

struct Builder<'a> {
    seed: u64,
    measured_from: Time,
    routes: &'a Routes,
    /// The flow that was built last at each host; it contains the ids of the host's endpoints.
    hosts: BTreeMap<String, CoreFlow>,
}

impl Builder<'_> {
    fn flow(
        &mut self,
        engine: &mut Engine,
        flow: &FlowPlan,
        plan: &Plan,
    ) -> Result<LiveFlow, RunError> {
        let transfers = match &flow.traffic {
            Traffic::Transfers { repeat, .. } => *repeat,
            // The flow is one stream, which ends when its application stops.
            Traffic::Bulk | Traffic::OnOff { .. } if flow.stop.is_some() => 1,
            _ => 0,
        };
        let ends = match (&flow.protocol, &flow.host) {
            (Protocol::Tcp(protocol), None) => self.tcp(engine, flow, protocol, plan)?,
            (Protocol::Core(_), None) => Box::new(self.core(engine, &[flow])?),
            (Protocol::Core(_), Some(host)) => Box::new(self.at_host(engine, host, plan)?),
            (Protocol::Tcp(_), Some(host)) => {
                let why = format!("flow '{}' over TCP cannot be at host '{host}'", flow.subject);
                return Err(RunError::Build(why));
            }
        };
        Ok(LiveFlow::new(ends, self.start(flow), transfers))
    }

    fn start(&self, flow: &FlowPlan) -> Time {
        let mut random = Rng::substream(self.seed, &format!("scenario.start.{}", flow.subject));
        Time::ZERO + flow.start + flow.start_jitter.mul_f64(random.uniform())
    }

    fn tcp(
        &self,
        engine: &mut Engine,
        flow: &FlowPlan,
        protocol: &Arc<TcpProtocol>,
        plan: &Plan,
    ) -> Result<Box<dyn Flow>, RunError> {
        let (start, traffic) = (self.start(flow), flow.traffic.clone());
        let size = match &traffic {
            Traffic::Transfers { size, .. } | Traffic::Poisson { size, .. } => *size,
            _ => 0,
        };
        let protocol = &self.told(on_paths(protocol, &flow.paths), flow, plan)?;
        let source = TcpSender::new(protocol, traffic, self.seed, &flow.subject);
        let source = source.map_err(|e| fault(&e))?.until(stop(flow));
        let sender = engine.add_agent(Box::new(source), start);
        let sink = TcpReceiver::new(protocol).with_transfers_of(size);
        let mut sink = sink.with_gaps_from(self.measured_from.max(start));
        if let Traffic::Messages(messages) = flow.traffic {
            sink = sink.with_messages_of(messages.size);
        }
        let receiver = engine.add_agent(Box::new(sink), Time::ZERO);
        self.connect(engine, sender, receiver, &flow.paths)?;
        Ok(Box::new(TcpFlow { sender, receiver }))
    }

    /// Fills in the link rates that the protocol's application is told, if any.
    fn told(
        &self,
        protocol: Arc<TcpProtocol>,
        flow: &FlowPlan,
        plan: &Plan,
    ) -> Result<Arc<TcpProtocol>, RunError> {
        let Some(told) = protocol.told else { return Ok(protocol) };
        let mut protocol = Arc::unwrap_or_clone(protocol);
        if let Some(striping) = &mut protocol.striping
            && let Striping::ByRate(estimate) = &mut striping.striping
        {
            let rates = rates::sampled(plan, flow, told, estimate.interval, self.seed)?;
            estimate.source = RateSource::Told(Arc::new(rates));
        }
        Ok(Arc::new(protocol))
    }

    /// The next flow of a host. The first call for a host builds the endpoints for all its flows.
    fn at_host(
        &mut self,
        engine: &mut Engine,
        host: &str,
        plan: &Plan,
    ) -> Result<CoreFlow, RunError> {
        let flow = match self.hosts.get(host) {
            Some(before) => CoreFlow { application: before.application + 1, ..*before },
            None => {
                let flows = plan.flows.iter().filter(|flow| flow.host.as_deref() == Some(host));
                self.core(engine, &flows.collect::<Vec<_>>())?
            }
        };
        self.hosts.insert(host.to_owned(), flow);
        Ok(flow)
    }

    /// Builds the two endpoints that `flows` share. Returns the first of the flows.
    fn core(&self, engine: &mut Engine, flows: &[&FlowPlan]) -> Result<CoreFlow, RunError> {
        let first = flows.iter().map(|flow| self.start(flow)).min().unwrap_or_default();
        let mut ends: Option<(CoreSender, CoreReceiver)> = None;
        for flow in flows {
            let (config, traffic) = core_config(flow)?;
            let (start, name) = (self.start(flow), flow.subject.as_str());
            let (source, sink) = match ends {
                None => {
                    let sink = CoreReceiver::new(&config, self.seed, name);
                    let sink = sink.with_gaps_from(self.measured_from.max(first));
                    let source = CoreSender::new(&config, traffic, self.seed, name);
                    (source, sink)
                }
                Some((source, sink)) => (source.with(&config, traffic, self.seed, name), sink),
            };
            ends = Some((source.starting(start), sink));
        }
        let (Some((source, sink)), [flow, others @ ..]) = (ends, flows) else {
            return Err(RunError::Build("a host without flows".to_owned()));
        };
        if let Some(other) = others.iter().find(|other| other.paths != flow.paths) {
            let why =
                format!("flow '{}' has other paths than the first of its host", other.subject);
            return Err(RunError::Build(why));
        }
        let sender = engine.add_agent(Box::new(source), first);
        let receiver = engine.add_agent(Box::new(sink), Time::ZERO);
        self.connect(engine, sender, receiver, &flow.paths)?;
        Ok(CoreFlow { sender, receiver, application: 0 })
    }

    fn connect(
        &self,
        engine: &mut Engine,
        a: AgentId,
        b: AgentId,
        paths: &[PathPlan],
    ) -> Result<(), RunError> {
        for path in paths {
            let (forward, back) = route(self.routes, path)?;
            engine.connect(a, b, forward, back).map_err(|error| fault(&error))?;
        }
        Ok(())
    }
}

fn stop(flow: &FlowPlan) -> Time {
    flow.stop.map_or(Time::MAX, |stop| Time::ZERO + stop)
}

/// The configuration of an application between core endpoints, and its traffic without messages.
fn core_config(flow: &FlowPlan) -> Result<(CoreConfig, Traffic), RunError> {
    let Protocol::Core(profile) = &flow.protocol else {
        return Err(RunError::Build(format!(
            "flow '{}' is not between core endpoints",
            flow.subject
        )));
    };
    let mut profile = profile.as_ref().clone();
    let paths = match flow.stripe {
        Some(stripe) => flow.paths.get(stripe.path..=stripe.path).unwrap_or_default(),
        None => &flow.paths,
    };
    for (index, path) in paths.iter().enumerate() {
        if let Some(control) = &path.congestion {
            let id = PathId(index as u32);
            profile.set_path_congestion(id, control.clone()).map_err(|e| fault(&e))?;
        }
    }
    let (messages, traffic) = match flow.traffic.clone() {
        Traffic::Messages(messages) => (Some(messages), Traffic::Silent),
        traffic => (flow.messages, traffic),
    };
    let config = CoreConfig {
        transport: flow.transport.clone(),
        overhead: flow.overhead,
        class: flow.class,
        messages,
        stop: stop(flow),
        key_limit: flow.key_limit,
        stripe: flow.stripe,
        ..CoreConfig::new(profile)
    };
    Ok((config, traffic))
}

/// The protocol with the congestion control that is configured for each path.
fn on_paths(protocol: &Arc<TcpProtocol>, paths: &[PathPlan]) -> Arc<TcpProtocol> {
    if paths.iter().all(|path| path.congestion.is_none()) {
        return Arc::clone(protocol);
    }
    let path_controls = paths.iter().map(|path| path.congestion.clone()).collect();
    Arc::new(TcpProtocol { path_controls, ..protocol.as_ref().clone() })
}

fn add_load(
    engine: &mut Engine,
    load: &LoadPlan,
    seed: u64,
    routes: &Routes,
) -> Result<LiveLoad, RunError> {
    let start = Time::ZERO + load.start;
    let stop = load.stop.map(|stop| Time::ZERO + stop);
    let source = Udp::new(udp(load), seed, &format!("load.{}", load.subject));
    let source = engine.add_agent(Box::new(source), start);
    let sink = engine.add_agent(Box::new(Sink::default()), Time::ZERO);
    let (forward, back) = route(routes, &load.path)?;
    engine.connect(source, sink, forward, back).map_err(|error| fault(&error))?;
    Ok(LiveLoad { sink, remembered: 0, start, stop })
}

/// The configuration of a load's source.
pub(super) fn udp(load: &LoadPlan) -> UdpConfig {
    let config = match load.on_off {
        Some((on, off)) => UdpConfig::on_off(load.rate, load.packet, on, off),
        None => UdpConfig::constant(load.rate, load.packet),
    };
    UdpConfig { stop: load.stop.map_or(Time::MAX, |stop| Time::ZERO + stop), ..config }
}

fn route(routes: &Routes, path: &PathPlan) -> Result<(RouteId, RouteId), RunError> {
    match (routes.get(&path.forward), routes.get(&path.back)) {
        (Some(forward), Some(back)) => Ok((*forward, *back)),
        _ => Err(RunError::Build(format!("path '{}' has no route", path.name))),
    }
}

fn fault(error: &dyn core::fmt::Display) -> RunError {
    RunError::Build(error.to_string())
}
