//! Builds a plan: the network, and an agent for each end of every flow and load.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_types::{PathId, Rng, Time};

use super::RunError;
use super::flow::LiveFlow;
use crate::endpoint::{
    CoreConfig, CoreFlow, CoreReceiver, CoreSender, Flow, Sink, TcpFlow, TcpProtocol, TcpReceiver,
    TcpSender, Udp, UdpConfig,
};
use crate::engine::{AgentId, Engine, LinkId, RouteId, Topology};
use crate::link::LinkCounters;
use crate::scenario::plan::{FlowPlan, LoadPlan, PathPlan, Plan};
use crate::scenario::profiles::Protocol;
use crate::traffic::Traffic;

/// A plan that runs.
pub(super) struct Live {
    pub engine: Engine,
    pub flows: Vec<LiveFlow>,
    pub loads: Vec<LiveLoad>,
    /// Counters of the links at the end of the warm-up.
    pub links: Vec<LinkCounters>,
}

/// A load that runs.
pub(super) struct LiveLoad {
    pub sink: AgentId,
    /// Bytes that had reached the sink at the end of the warm-up.
    pub remembered: u64,
    pub start: Time,
    pub stop: Option<Time>,
}

impl Live {
    /// Remembers every counter: what happens from now on is what is measured.
    pub(super) fn remember(&mut self) {
        for flow in &mut self.flows {
            flow.remember(&mut self.engine);
        }
        for load in &mut self.loads {
            load.remembered = load.bytes(&self.engine);
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
/// When something of it cannot exist.
pub(super) fn build(plan: &Plan, seed: u64) -> Result<Live, RunError> {
    let (topology, routes) = network(plan)?;
    let engine = Engine::new(topology, seed).map_err(|error| fault(&error))?;
    let links = vec![LinkCounters::default(); plan.links.len()];
    let mut live = Live { engine, flows: Vec::new(), loads: Vec::new(), links };
    let measured_from = Time::ZERO + plan.warm_up;
    for flow in &plan.flows {
        let builder = Builder { seed, measured_from, routes: &routes };
        let flow = builder.flow(&mut live.engine, flow)?;
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
}

impl Builder<'_> {
    fn flow(&self, engine: &mut Engine, flow: &FlowPlan) -> Result<LiveFlow, RunError> {
        let mut random = Rng::substream(self.seed, &format!("scenario.start.{}", flow.subject));
        let jitter = flow.start_jitter.mul_f64(random.uniform());
        let start = Time::ZERO + flow.start + jitter;
        let gap_from = self.measured_from.max(start);
        let (seed, name, traffic) = (self.seed, flow.subject.as_str(), flow.traffic.clone());
        let (size, transfers) = match &traffic {
            Traffic::Transfers { size, repeat } => (*size, *repeat),
            Traffic::Poisson { size, .. } => (*size, 0),
            // One stream, which ends when its application stops.
            Traffic::Bulk | Traffic::OnOff { .. } if flow.stop.is_some() => (0, 1),
            _ => (0, 0),
        };
        let stop = flow.stop.map_or(Time::MAX, |stop| Time::ZERO + stop);
        let (flow_ends, sender, receiver): (Box<dyn Flow>, _, _) = match &flow.protocol {
            Protocol::Tcp(protocol) => {
                let protocol = &on_paths(protocol, &flow.paths);
                let source = TcpSender::new(protocol, traffic, seed, name);
                let sender =
                    engine.add_agent(Box::new(source.map_err(|e| fault(&e))?.until(stop)), start);
                let mut sink =
                    TcpReceiver::new(protocol).with_transfers_of(size).with_gaps_from(gap_from);
                if let Traffic::Messages(messages) = flow.traffic {
                    sink = sink.with_messages_of(messages.size);
                }
                let receiver = engine.add_agent(Box::new(sink), Time::ZERO);
                (Box::new(TcpFlow { sender, receiver }), sender, receiver)
            }
            Protocol::Core(profile) => {
                let mut profile = profile.as_ref().clone();
                for (index, path) in flow.paths.iter().enumerate() {
                    if let Some(control) = &path.congestion {
                        let id = PathId(index as u32);
                        profile.set_path_congestion(id, control.clone()).map_err(|e| fault(&e))?;
                    }
                }
                let (transport, overhead) = (flow.transport.clone(), flow.overhead);
                let (messages, traffic) = match traffic {
                    Traffic::Messages(messages) => (Some(messages), Traffic::Silent),
                    traffic => (flow.messages, traffic),
                };
                let (class, key_limit) = (flow.class, flow.key_limit);
                let base = CoreConfig::new(profile);
                let config =
                    CoreConfig { transport, overhead, class, messages, stop, key_limit, ..base };
                let source = CoreSender::new(&config, traffic, seed, name);
                let sender = engine.add_agent(Box::new(source), start);
                let sink = CoreReceiver::new(&config, seed, name).with_gaps_from(gap_from);
                let receiver = engine.add_agent(Box::new(sink), Time::ZERO);
                (Box::new(CoreFlow { sender, receiver }), sender, receiver)
            }
        };
        self.connect(engine, sender, receiver, &flow.paths)?;
        Ok(LiveFlow::new(flow_ends, start, transfers))
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

/// The protocol with the congestion control that each path wants.
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
    let mut config = match load.on_off {
        Some((on, off)) => UdpConfig::on_off(load.rate, load.packet, on, off),
        None => UdpConfig::constant(load.rate, load.packet),
    };
    let start = Time::ZERO + load.start;
    let stop = load.stop.map(|stop| Time::ZERO + stop);
    config.stop = stop.unwrap_or(Time::MAX);
    let source = Udp::new(config, seed, &format!("load.{}", load.subject));
    let source = engine.add_agent(Box::new(source), start);
    let sink = engine.add_agent(Box::new(Sink::default()), Time::ZERO);
    let (forward, back) = route(routes, &load.path)?;
    engine.connect(source, sink, forward, back).map_err(|error| fault(&error))?;
    Ok(LiveLoad { sink, remembered: 0, start, stop })
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
