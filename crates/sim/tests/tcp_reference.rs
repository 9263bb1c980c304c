//! A few points of the reference data, within the bounds that `cargo xtask oracle` applies to all
//! of it.

use anabranch_sim::endpoint::{TcpProtocol, TcpReceiver, TcpSender};
use anabranch_sim::engine::{Engine, Topology};
use anabranch_sim::link::LinkConfig;
use anabranch_sim::loss::LossConfig;
use anabranch_sim::queue::QueueLimit;
use anabranch_sim::traffic::Traffic;
use anabranch_tcp::{Config, DelayedAck};
use anabranch_types::{Bitrate, Probability, Time};
use core::time::Duration;

const TABLE: &str = include_str!("data/oracle/item1_tcp_single.csv");
const SECONDS: u64 = 200;
const SEEDS: u64 = 4;

/// Goodput in Mb/s and number of timeouts of one run.
#[expect(clippy::too_many_arguments, reason = "a row of the reference")]
fn run(config: &Config, mbps: f64, owd_ms: f64, loss: f64, queue: u32, seed: u64) -> (f64, f64) {
    let delay = Duration::from_nanos((owd_ms * 1e6) as u64);
    let plain = LinkConfig::new(Bitrate::from_mbps(mbps), delay);
    let forward = plain
        .clone()
        .with_loss(LossConfig::Bernoulli(Probability::clamped(loss)))
        .with_buffer(QueueLimit::Packets(queue - 1));
    let mut topology = Topology::new();
    let (a, b) = (topology.add_node("a"), topology.add_node("b"));
    topology.add_link(a, b, &forward, "bottleneck").unwrap();
    topology.add_link(b, a, &plain.with_buffer(QueueLimit::Packets(100_000)), "back").unwrap();
    let (out, home) = (topology.route(a, b).unwrap(), topology.route(b, a).unwrap());
    let mut engine = Engine::new(topology, seed).unwrap();
    let control = "reno:initial=2,growth=acks,floor=0".parse().unwrap();
    let protocol = TcpProtocol::new(config.clone(), control).into();
    let sender = TcpSender::new(&protocol, Traffic::Bulk, seed, "bulk").unwrap();
    let sender = engine.add_agent(Box::new(sender), Time::ZERO);
    let receiver = engine.add_agent(Box::new(TcpReceiver::new(&protocol)), Time::ZERO);
    engine.connect(sender, receiver, out, home).unwrap();
    engine.run_until(Time::from_secs(SECONDS));
    let sender = engine.agent_as::<TcpSender>(sender).unwrap();
    let goodput = sender.acknowledged() as f64 * 8e-6 / SECONDS as f64;
    (goodput, sender.statistics().timeouts as f64)
}

#[test]
fn goodput_and_timeouts_agree_with_ns2() {
    let points = [
        ("ns2-sack1-ts", "1.0,20.0,0.01,0"),
        ("ns2-sack1-ts", "2.0,20.0,0.05,1"),
        ("ns2-sack1-ts", "10.0,20.0,0.1,0"),
        ("ns2-sack1-ts", "10.0,100.0,0.02,0"),
        ("ns2-sack1-ts", "1.0,100.0,0.2,1"),
        ("ns2-sack1", "2.0,20.0,0.1,0"),
    ];
    for (sim, point) in points {
        let prefix = format!("{sim},{point},");
        let line = TABLE.lines().find(|line| line.starts_with(&prefix)).expect("the row exists");
        let fields: Vec<f64> =
            line.split(',').skip(1).map(|field| field.parse().unwrap()).collect();
        let [mbps, owd_ms, loss, delack, queue, n, mean, deviation, timeouts, ..] = fields[..]
        else {
            panic!("{line}")
        };
        let delayed_ack = if delack > 0.0 { DelayedAck::SECOND } else { DelayedAck::OFF };
        let config = Config { delayed_ack, ..Config::ns2_sack1(sim.ends_with("ts")) };
        let runs: Vec<(f64, f64)> =
            (1..=SEEDS).map(|seed| run(&config, mbps, owd_ms, loss, queue as u32, seed)).collect();
        let average = |of: fn(&(f64, f64)) -> f64| runs.iter().map(of).sum::<f64>() / SEEDS as f64;
        let (ours, our_timeouts) = (average(|run| run.0), average(|run| run.1));
        let spread: f64 = runs.iter().map(|run| (run.0 - ours).powi(2)).sum();
        let error = (spread / (SEEDS - 1) as f64 / SEEDS as f64 + deviation * deviation / n).sqrt();
        let allowed = (0.15 * mean).max(2.0 * error);
        assert!((ours - mean).abs() <= allowed, "{prefix} {ours} against {mean} ± {allowed}");
        if timeouts >= 20.0 {
            let ratio = our_timeouts / timeouts;
            assert!(
                (1.0 / 1.5..1.5).contains(&ratio),
                "{prefix} {our_timeouts} against {timeouts}"
            );
        }
    }
}
