//! The workloads in our engine.

use std::time::Duration;

use anabranch_sim::endpoint::{TcpProtocol, TcpReceiver, TcpSender};
use anabranch_sim::engine::{AgentId, Dumbbell, Engine};
use anabranch_sim::link::LinkConfig;
use anabranch_sim::loss::LossConfig;
use anabranch_sim::queue::QueueLimit;
use anabranch_sim::traffic::Traffic;
use anabranch_sim::wireless::mesh::{Mesh, MeshConfig, MeshFlow};
use anabranch_sim::wireless::{AirConfig, Cell, MacConfig, Waypoints};
use anabranch_tcp::Config;
use anabranch_types::{Bitrate, Probability, Rng, Time};

use crate::Workload;
use crate::clock::{Clock, resident_bytes};

/// Results of a run.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Processor seconds, including the building of the network.
    pub seconds: f64,
    /// Data packets delivered in order.
    pub data_packets: u64,
    /// Packets handed over by links.
    pub packet_hops: u64,
    /// Largest number of packets in the network, sampled every tenth of the run.
    pub in_flight: usize,
    /// The digest of every packet's fate.
    pub digest: u64,
}

type Failure = Box<dyn std::error::Error>;

/// Runs a workload once.
///
/// # Errors
/// If the network cannot be built.
pub fn run(workload: &Workload) -> Result<Measured, Failure> {
    let clock = Clock::start();
    let (mut engine, receivers) = build(workload)?;
    let mut in_flight = 0;
    for tenth in 1..=10 {
        let until = Duration::from_secs_f64(workload.seconds) * tenth / 10;
        engine.run_until(Time::ZERO + until);
        in_flight = in_flight.max(engine.packets_in_flight());
    }
    let seconds = clock.seconds();
    let delivered = |receiver: &AgentId| {
        let receiver = engine.agent_as::<TcpReceiver>(*receiver)?;
        Some(receiver.delivered() / 1000)
    };
    Ok(Measured {
        seconds,
        data_packets: receivers.iter().filter_map(delivered).sum(),
        packet_hops: engine.packet_hops(),
        in_flight,
        digest: engine.digest(),
    })
}

/// Runs a saturated radio cell for this many virtual seconds; returns its events and the processor seconds they took.
///
/// # Errors
/// If a cell cannot have this many stations.
pub fn run_cell(stations: u32, seconds: u64) -> Result<(u64, f64), Failure> {
    let clock = Clock::start();
    let mut cell = Cell::new(&MacConfig::default(), stations, 1000, 1)?;
    cell.run_until(Time::from_secs(seconds));
    Ok((cell.air().counters().events, clock.seconds()))
}

/// Runs a TCP flow for 100 s over DSR among 50 stations of up to 20 m/s; returns events and processor seconds.
///
/// # Errors
/// If the movement file cannot be read.
pub fn run_mesh() -> Result<(u64, f64), Failure> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../crates/sim/tests/data/oracle/mobility/rwp50_v20_2.tcl"
    );
    let motion: Waypoints = std::fs::read_to_string(path)?.parse()?;
    let mac = MacConfig { rts_threshold: 0, ..MacConfig::ns2() };
    let air = AirConfig { mac, ..AirConfig::default() };
    let flow = MeshFlow { start: Time::from_secs(1), ..MeshFlow::tcp(0, 1) };
    let config = MeshConfig { air, flows: vec![flow], ..MeshConfig::default() };
    let clock = Clock::start();
    let mut mesh = Mesh::new(&config, Box::new(motion), 1)?;
    mesh.run_until(Time::from_secs(101));
    let events = mesh.air().map_or(0, |air| air.counters().events);
    Ok((events, clock.seconds()))
}

/// Resident memory that a flow takes before it starts: four links, two nodes, two routes, and TCP's two ends. Call this
/// before any run, since freed memory is reused.
///
/// # Errors
/// If the network cannot be built.
pub fn bytes_per_idle_flow(flows: u32) -> Result<f64, Failure> {
    let empty = resident_bytes();
    let mbps = f64::from(flows);
    let workload = Workload { name: "idle", flows, mbps, seconds: 0.0, loss: 0.0 };
    let built = build(&workload)?;
    let bytes = resident_bytes().saturating_sub(empty) as f64 / f64::from(flows);
    drop(built);
    Ok(bytes)
}

/// The network of a workload with its agents, and the receivers among them.
fn build(workload: &Workload) -> Result<(Engine, Vec<AgentId>), Failure> {
    let rate = Bitrate::from_mbps(workload.mbps);
    let millis = Duration::from_millis;
    let queue = QueueLimit::Packets(workload.queue());
    let mut bottleneck = LinkConfig::new(rate, millis(18)).with_buffer(queue);
    if workload.loss > 0.0 {
        let loss = Probability::new(workload.loss).ok_or("a loss above one")?;
        bottleneck = bottleneck.with_loss(LossConfig::Bernoulli(loss));
    }
    let roomy = |link: LinkConfig| link.with_buffer(QueueLimit::Packets(1_000_000));
    let access = Bitrate::from_mbps(workload.mbps.max(1000.0));
    let dumbbell = Dumbbell {
        flows: workload.flows,
        access: roomy(LinkConfig::new(access, millis(1))),
        back: roomy(LinkConfig::new(rate, millis(18))),
        bottleneck,
    };
    let (topology, routes) = dumbbell.build()?;
    let mut engine = Engine::new(topology, 1)?;
    let mut starts = Rng::substream(1, "starts");
    let protocol = TcpProtocol::new(Config::ns2_sack1(false), "reno:initial=2".parse()?).into();
    let mut receivers = Vec::new();
    for (forward, backward) in routes {
        let start = Time::from_nanos((starts.uniform() * 1e9) as u64);
        let sender = TcpSender::new(&protocol, Traffic::Bulk, 1, "bulk")?;
        let sender = engine.add_agent(Box::new(sender), start);
        let receiver = engine.add_agent(Box::new(TcpReceiver::new(&protocol)), Time::ZERO);
        engine.connect(sender, receiver, forward, backward)?;
        receivers.push(receiver);
    }
    Ok((engine, receivers))
}
