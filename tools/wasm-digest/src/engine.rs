//! Runs of the engine: every packet's fate on every link, and what arrived.

use std::time::Duration;

use anabranch_core::profiles::Profile;
use anabranch_sim::endpoint::{
    CoreConfig, CoreReceiver, CoreSender, Sink, TcpProtocol, TcpReceiver, TcpSender, Udp, UdpConfig,
};
use anabranch_sim::engine::{AgentId, Dumbbell, Engine, RoutePair};
use anabranch_sim::traffic::Traffic;
use anabranch_tcp::Config;
use anabranch_types::{Bitrate, Time};

use crate::Digest;

/// Four TCP flows over a link with RED, two of them with ECN.
pub fn tcp() -> u64 {
    let (mut engine, routes) = dumbbell("rate=8mbit,delay=10ms,buffer=40p,ecn,loss=1%");
    let mut receivers = Vec::new();
    for (at, pair) in routes.into_iter().enumerate() {
        let config = Config { ecn: at % 2 == 0, ..Config::default() };
        let start = Time::from_millis(50 * at as u64);
        let control = ["reno", "cubic"][at / 2];
        receivers.push(tcp_flow(&mut engine, &config, control, Traffic::Bulk, start, pair));
    }
    engine.run_until(Time::from_secs(2));
    let delivered = receivers.iter().filter_map(|id| engine.agent_as::<TcpReceiver>(*id));
    let delivered = delivered.map(TcpReceiver::delivered).sum();
    digest(&engine, delivered)
}

/// A coded flow over two routes that share a link of changing rate and loss.
pub fn core() -> u64 {
    let link = "rate=8mbit/3mbit@400ms,delay=15ms,loss=markov:1%/20%@60ms,jitter=2ms";
    let (mut engine, routes) = dumbbell(link);
    let receiver = coded(&mut engine, &routes[..2]);
    engine.run_until(Time::from_millis(900));
    let receiver = engine.agent_as::<CoreReceiver>(receiver);
    digest(&engine, receiver.map_or(0, CoreReceiver::delivered))
}

/// Coded, TCP, short flows and datagrams against each other.
pub fn mixed() -> u64 {
    let (mut engine, routes) = dumbbell("rate=10mbit,delay=10ms,buffer=60p,loss=1%");
    let coded = coded(&mut engine, &routes[..1]);
    let tcp = |engine: &mut Engine, traffic, route| {
        tcp_flow(engine, &Config::default(), "reno", traffic, Time::ZERO, route)
    };
    let bulk_end = tcp(&mut engine, Traffic::Bulk, routes[1]);
    let web = Traffic::Poisson { size: 12_000, interval: Duration::from_millis(40) };
    let web_end = tcp(&mut engine, web, routes[2]);
    let (on, off) = (Duration::from_millis(50), Duration::from_millis(70));
    let load = Udp::new(UdpConfig::on_off(Bitrate::from_mbps(4.0), 900, on, off), 1, "load");
    let load = engine.add_agent(Box::new(load), Time::ZERO);
    let load_end = engine.add_agent(Box::new(Sink::default()), Time::ZERO);
    join(&mut engine, load, load_end, &routes[3..]);
    engine.run_until(Time::from_secs(1));
    let delivered = [
        engine.agent_as::<CoreReceiver>(coded).map(CoreReceiver::delivered),
        engine.agent_as::<TcpReceiver>(bulk_end).map(TcpReceiver::delivered),
        engine.agent_as::<TcpReceiver>(web_end).map(TcpReceiver::delivered),
        engine.agent_as::<Sink>(load_end).map(Sink::bytes),
    ];
    digest(&engine, delivered.into_iter().flatten().sum())
}

/// Four flows' routes over a link described as text.
fn dumbbell(bottleneck: &str) -> (Engine, Vec<RoutePair>) {
    let bottleneck: anabranch_sim::link::LinkConfig =
        bottleneck.parse().expect("the description is valid");
    let access = "rate=100mbit,delay=1ms".parse().expect("the description is valid");
    let back = bottleneck.clean_reverse();
    let dumbbell = Dumbbell { flows: 4, access, bottleneck, back };
    let (topology, routes) = dumbbell.build().expect("every link can exist");
    (Engine::new(topology, 1).expect("every link can exist"), routes)
}

/// Adds a TCP flow over one route; returns its receiver.
#[expect(clippy::too_many_arguments, reason = "what a flow consists of")]
fn tcp_flow(
    engine: &mut Engine,
    config: &Config,
    control: &str,
    traffic: Traffic,
    start: Time,
    route: RoutePair,
) -> AgentId {
    let control = control.parse().expect("the name is well formed");
    let protocol = TcpProtocol::new(config.clone(), control).into();
    // The draws of short flows are named after the application.
    let sender = TcpSender::new(&protocol, traffic, 1, "web").expect("the controller exists");
    let sender = engine.add_agent(Box::new(sender), start);
    let receiver = engine.add_agent(Box::new(TcpReceiver::new(&protocol)), Time::ZERO);
    join(engine, sender, receiver, &[route]);
    receiver
}

fn coded(engine: &mut Engine, routes: &[RoutePair]) -> AgentId {
    let config = CoreConfig::new(Profile::named("anabranch").expect("the profile is built in"));
    let sender = CoreSender::new(&config, Traffic::Bulk, 1, "coded");
    let sender = engine.add_agent(Box::new(sender), Time::ZERO);
    let receiver = CoreReceiver::new(&config, 1, "coded");
    let receiver = engine.add_agent(Box::new(receiver), Time::ZERO);
    join(engine, sender, receiver, routes);
    receiver
}

fn join(engine: &mut Engine, sender: AgentId, receiver: AgentId, routes: &[RoutePair]) {
    for (there, back) in routes {
        engine.connect(sender, receiver, *there, *back).expect("all of them exist");
    }
}

fn digest(engine: &Engine, delivered: u64) -> u64 {
    let mut digest = Digest::default();
    digest.integer(engine.digest());
    digest.integer(engine.packet_hops());
    digest.integer(engine.events());
    digest.integer(delivered);
    digest.finish()
}
