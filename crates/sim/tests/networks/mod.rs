//! Ten small networks that together use every part of the engine.

use core::time::Duration;

use anabranch_core::profiles::Profile;
use anabranch_sim::endpoint::{
    CoreConfig, CoreReceiver, CoreSender, Sink, TcpProtocol, TcpReceiver, TcpSender, Udp, UdpConfig,
};
use anabranch_sim::engine::{Agent, AgentId, Dumbbell, Engine, NodeId, RoutePair, Topology};
use anabranch_sim::link::LinkConfig;
use anabranch_sim::traffic::Traffic;
use anabranch_tcp::Config;
use anabranch_types::{Bitrate, Time};

/// A network that is ready to run, and its receivers.
pub struct Built {
    pub engine: Engine,
    pub until: Time,
    receivers: Vec<AgentId>,
}

/// Makes the plan of a network from a seed.
pub type Build = fn(u64) -> Plan;

/// Every network with its name. [`Plan::build`] makes the network.
pub fn all() -> impl Iterator<Item = (&'static str, Build)> {
    of_tcp_and_udp().into_iter().chain(with_core_flows())
}

fn of_tcp_and_udp() -> [(&'static str, Build); 7] {
    [
        ("udp-constant", |seed| {
            let config = UdpConfig::constant(Bitrate::from_mbps(9.0), 700);
            Plan::line(seed, &["rate=8mbit,delay=5ms,buffer=20p"], 1).udp(0, config)
        }),
        ("udp-on-off-over-three-links", |seed| {
            let (on, off) = (Duration::from_millis(80), Duration::from_millis(40));
            let config = UdpConfig::on_off(Bitrate::from_mbps(6.0), 1200, on, off);
            let links =
                ["rate=8mbit,delay=5ms", "rate=7mbit,delay=1ms,loss=3%", "rate=9mbit,delay=0ms"];
            Plan::line(seed, &links, 4).udp(0, config)
        }),
        ("tcp-two-state-loss", |seed| {
            let link = "rate=10mbit,delay=20ms,loss=markov:0%/20%@250ms";
            Plan::line(seed, &[link], 8).tcp(0, &Config::ns2_sack1(true), "reno:initial=2")
        }),
        ("tcp-newreno-dumbbell", |seed| {
            let bottleneck = "rate=10mbit,delay=18ms,buffer=49p,loss=0.1%";
            let all = Plan::dumbbell(seed, 4, bottleneck, 6);
            (0..4).fold(all, |all, at| all.tcp(at, &Config::ns2_newreno(), "reno:initial=2"))
        }),
        ("tcp-red-marks", |seed| {
            let all = Plan::dumbbell(seed, 4, "rate=10mbit,delay=18ms,buffer=49p,ecn", 6);
            let config = Config { ecn: true, ..Config::ns2_sack1(true) };
            (0..4).fold(all, |all, at| all.tcp(at, &config, "reno:initial=2"))
        }),
        ("tcp-cubic-codel-jitter", |seed| {
            let links =
                ["rate=20mbit,delay=15ms,codel,buffer=200p", "rate=1gbit,delay=1ms,jitter=2ms"];
            Plan::line(seed, &links, 5).tcp(0, &Config::linux(), "cubic")
        }),
        ("parking-lot", |seed| {
            let link = "rate=8mbit,delay=4ms,buffer=30p";
            let mut all = Plan::line(seed, &[link, link, link], 5);
            for hop in 0..3 {
                all.add_route(hop, hop + 1);
            }
            (0..4).fold(all, |all, at| all.tcp(at, &Config::ns2_sack1(false), "reno:initial=2"))
        }),
    ]
}

fn with_core_flows() -> [(&'static str, Build); 3] {
    [
        ("core-two-paths-and-a-blackout", |seed| {
            let links = [
                "rate=8mbit,delay=20ms,loss=5%,blackout=1s-2s",
                "rate=6mbit,delay=35ms,loss=1%,jitter=4ms,reorder",
            ];
            Plan::parallel(seed, &links, 4).core("anabranch", Traffic::Bulk)
        }),
        ("core-transfers", |seed| {
            let traffic = Traffic::Transfers { size: 60_000, repeat: 12 };
            Plan::parallel(seed, &["rate=8mbit,delay=10ms,loss=2%"], 5).core("uncoded", traffic)
        }),
        ("mixed", |seed| {
            let (on, off) = (Duration::from_millis(200), Duration::from_millis(300));
            let udp = UdpConfig::on_off(Bitrate::from_mbps(3.0), 1000, on, off);
            let web = Traffic::Poisson { size: 15_000, interval: Duration::from_millis(60) };
            Plan::dumbbell(seed, 4, "rate=12mbit,delay=15ms,loss=1%", 5)
                .tcp(0, &Config::default(), "reno")
                .udp(1, udp)
                .web(2, web)
                .core_over(&[3], "anabranch", Traffic::Bulk)
        }),
    ]
}

/// A network under construction.
pub struct Plan {
    seed: u64,
    seconds: u64,
    topology: Topology,
    nodes: Vec<NodeId>,
    routes: Vec<RoutePair>,
    flows: Vec<Pair>,
}

/// A sender and a receiver, and the routes between them.
struct Pair {
    sender: Box<dyn Agent>,
    receiver: Box<dyn Agent>,
    routes: Vec<usize>,
}

impl Plan {
    fn new(seed: u64, seconds: u64, topology: Topology, routes: Vec<RoutePair>) -> Self {
        Plan { seed, seconds, topology, nodes: Vec::new(), routes, flows: Vec::new() }
    }

    /// Nodes in a line, joined in both directions. Route 0 leads from end to end.
    fn line(seed: u64, links: &[&str], seconds: u64) -> Self {
        let mut topology = Topology::new();
        let nodes: Vec<NodeId> =
            (0..=links.len()).map(|at| topology.add_node(at.to_string())).collect();
        for (at, text) in links.iter().enumerate() {
            join(&mut topology, nodes[at], nodes[at + 1], text, at);
        }
        let last = links.len();
        let mut plan = Plan::new(seed, seconds, topology, Vec::new());
        plan.nodes = nodes;
        plan.add_route(0, last);
        plan
    }

    /// Parallel links between two nodes, with a route over each.
    fn parallel(seed: u64, links: &[&str], seconds: u64) -> Self {
        let mut topology = Topology::new();
        let (left, right) = (topology.add_node("left"), topology.add_node("right"));
        let mut over = |(at, text): (usize, &&str)| {
            let (there, back) = join(&mut topology, left, right, text, at);
            let mut via = |link| topology.route_via(&[link]).expect("it exists");
            (via(there), via(back))
        };
        let routes = links.iter().enumerate().map(&mut over).collect();
        Plan::new(seed, seconds, topology, routes)
    }

    fn dumbbell(seed: u64, flows: u32, bottleneck: &str, seconds: u64) -> Self {
        let bottleneck = config(bottleneck);
        let back = bottleneck.clean_reverse();
        let dumbbell = Dumbbell { flows, access: config("rate=1gbit,delay=1ms"), bottleneck, back };
        let (topology, routes) = dumbbell.build().expect("every link can exist");
        Plan::new(seed, seconds, topology, routes)
    }

    fn add_route(&mut self, from: usize, to: usize) {
        let (from, to) = (self.nodes[from], self.nodes[to]);
        let there = self.topology.route(from, to).expect("the nodes are joined");
        let back = self.topology.route(to, from).expect("the nodes are joined");
        self.routes.push((there, back));
    }

    fn pair(
        mut self,
        sender: impl Agent,
        receiver: impl Agent,
        routes: impl IntoIterator<Item = usize>,
    ) -> Self {
        let (sender, receiver) = (Box::new(sender), Box::new(receiver));
        self.flows.push(Pair { sender, receiver, routes: routes.into_iter().collect() });
        self
    }

    /// The name of the next flow.
    fn name(&self) -> String {
        format!("flow.{}", self.flows.len())
    }

    fn udp(self, route: usize, config: UdpConfig) -> Self {
        let source = Udp::new(config, self.seed, &self.name());
        self.pair(source, Sink::default(), [route])
    }

    fn tcp(self, route: usize, config: &Config, control: &str) -> Self {
        self.tcp_traffic(route, config, control, Traffic::Bulk)
    }

    fn web(self, route: usize, traffic: Traffic) -> Self {
        self.tcp_traffic(route, &Config::default(), "reno", traffic)
    }

    fn tcp_traffic(self, route: usize, config: &Config, control: &str, traffic: Traffic) -> Self {
        let control = control.parse().expect("the name is well formed");
        let protocol = TcpProtocol::new(config.clone(), control).into();
        let sender = TcpSender::new(&protocol, traffic, self.seed, &self.name());
        let sender = sender.expect("the controller exists");
        self.pair(sender, TcpReceiver::new(&protocol), [route])
    }

    /// Adds a flow between core endpoints over all routes.
    fn core(self, profile: &str, traffic: Traffic) -> Self {
        let routes: Vec<usize> = (0..self.routes.len()).collect();
        self.core_over(&routes, profile, traffic)
    }

    fn core_over(self, routes: &[usize], profile: &str, traffic: Traffic) -> Self {
        let config = CoreConfig::new(Profile::named(profile).expect("the profile is built in"));
        let sender = CoreSender::new(&config, traffic, self.seed, &self.name());
        let receiver = CoreReceiver::new(&config, self.seed, &self.name());
        self.pair(sender, receiver, routes.iter().copied())
    }

    /// The network with all its agents. Flow `n`, counted from 0, starts at `n` times 37 ms.
    pub fn build(self) -> Built {
        let mut engine = Engine::new(self.topology, self.seed).expect("every link can exist");
        let mut receivers = Vec::new();
        for (at, Pair { sender, receiver, routes }) in self.flows.into_iter().enumerate() {
            let sender = engine.add_agent(sender, Time::from_millis(37 * at as u64));
            let receiver = engine.add_agent(receiver, Time::ZERO);
            for route in routes {
                let (there, back) = self.routes[route];
                engine.connect(sender, receiver, there, back).expect("both exist");
            }
            receivers.push(receiver);
        }
        Built { engine, until: Time::from_secs(self.seconds), receivers }
    }
}

fn config(text: &str) -> LinkConfig {
    text.parse().expect("the description is valid")
}

/// Joins two nodes in both directions. The way back has no random loss.
fn join(
    topology: &mut Topology,
    from: NodeId,
    to: NodeId,
    text: &str,
    at: usize,
) -> (anabranch_sim::engine::LinkId, anabranch_sim::engine::LinkId) {
    let there = config(text);
    let back = there.clean_reverse();
    let there = topology.add_link(from, to, &there, format!("l{at}")).expect("it can exist");
    let back = topology.add_link(to, from, &back, format!("l{at}.reverse")).expect("it can exist");
    (there, back)
}

impl Built {
    pub fn run(&mut self) {
        self.engine.run_until(self.until);
    }

    /// Bytes of all receivers: stream bytes, or bytes on the wire for UDP loads.
    pub fn delivered(&self) -> u64 {
        let bytes = |id: &AgentId| {
            let engine = &self.engine;
            let tcp = || Some(engine.agent_as::<TcpReceiver>(*id)?.delivered());
            let core = || Some(engine.agent_as::<CoreReceiver>(*id)?.delivered());
            let sink = || Some(engine.agent_as::<Sink>(*id)?.bytes());
            tcp().or_else(core).or_else(sink)
        };
        self.receivers.iter().filter_map(bytes).sum()
    }
}
