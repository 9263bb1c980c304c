//! Performance goals of the profiles in virtual time: the median of three seeds must reach a minimum.

mod support;

use anabranch_policy::Axis;
use anabranch_policy::view::TrafficClass;
use anabranch_sim::link::LinkConfig;
use anabranch_sim::report::RunReport;
use anabranch_sim::scenario::{FlowPlan, Plan};
use anabranch_sim::traffic::Messages;
use core::time::Duration;

use support::{bulk, flow, link, links, median};

const SEEDS: [u64; 3] = [1, 2, 3];

fn demo_links() -> Vec<LinkConfig> {
    links(&[
        "name=sat,rate=20mbit,delay=30ms,loss=2%",
        "name=lte,rate=12mbit,delay=40ms,loss=5%",
        "name=wifi,rate=30mbit,delay=5ms,loss=markov:5%/35%@250ms",
    ])
}

fn go(plan: &Plan, seed: u64) -> RunReport {
    let report = support::go(plan, seed);
    for link in report.links.iter().filter(|link| link.carries_data) {
        println!("  link {} {:?}", link.name, link.counters);
    }
    for flow in &report.flows {
        let decoded = flow.receiver.as_ref().map(|receiver| receiver.decoded);
        println!("  sent {:?} decoded {decoded:?}", flow.sender.as_ref().map(|stats| stats.sent));
    }
    report
}

fn transfer(links: &[LinkConfig], name: &str, seconds: u64) -> Plan {
    Plan::parallel(links.to_vec()).flow(bulk(name, seconds))
}

fn with_ack_loss(plan: Plan, loss: &str) -> Plan {
    let lossy = link(&format!("rate=1mbit,delay=1ms,loss={loss}"));
    let back = |path: &anabranch_sim::scenario::PathPlan| {
        plan.links[path.back[0]].config.clone().with_loss(lossy.loss.clone())
    };
    let reverse: Vec<LinkConfig> = plan.paths.iter().map(back).collect();
    plan.with_reverse(reverse)
}

fn efficiency(links: &[LinkConfig], name: &str, seconds: u64) -> f64 {
    median(SEEDS, |seed| go(&transfer(links, name, seconds), seed).efficiency())
}

fn check(what: &str, value: f64, floor: f64) {
    println!("== {what}: {value:.3} (at least {floor})");
    assert!(value >= floor, "{what}: {value:.3} is below {floor}");
}

#[test]
fn default_demo() {
    check("default demo", efficiency(&demo_links(), "anabranch", 20), 0.80);
    let goodput = |links: &[LinkConfig]| {
        median(SEEDS, |seed| go(&transfer(links, "anabranch", 20), seed).goodput_mbps())
    };
    let together = goodput(&demo_links());
    for link in demo_links() {
        check(&format!("over {} alone", link.name), together / goodput(&[link]), 1.0);
    }
}

fn twins(loss: &str) -> Vec<LinkConfig> {
    let link = |name| format!("name={name},rate=10mbit,delay=20ms,loss={loss}");
    links(&[&link("a"), &link("b")])
}

fn check_twins(loss: &str, floor: f64) {
    let links = twins(loss);
    check(&format!("2 x 10 Mb/s, {loss}"), efficiency(&links, "anabranch", 30), floor);
    let lossy = median(SEEDS, |seed| {
        go(&with_ack_loss(transfer(&links, "anabranch", 30), "10%"), seed).efficiency()
    });
    check(&format!("2 x 10 Mb/s, {loss}, 10 % ACK loss"), lossy, floor - 0.03);
}

#[test]
fn twins_without_loss() {
    check_twins("0%", 0.90);
}

#[test]
fn twins_at_ten_percent() {
    check_twins("10%", 0.87);
}

#[test]
fn twins_at_thirty_percent() {
    check_twins("30%", 0.84);
}

#[test]
fn twins_at_fifty_percent() {
    check_twins("50%", 0.78);
}

#[test]
fn mplot_at_thirty_percent_with_ecn() {
    let links: Vec<LinkConfig> = twins("30%").into_iter().map(LinkConfig::with_ecn).collect();
    check("mplot, 2 x 10 Mb/s, 30 %, ecn", efficiency(&links, "mplot", 30), 0.70);
}

fn six() -> Vec<LinkConfig> {
    let link = |i| format!("name=p{i},rate=10mbit,delay=20ms,loss=markov:25%/75%@250ms,ecn");
    (0..6).map(|i| link(i).parse().unwrap()).collect()
}

#[test]
fn six_bursty_paths() {
    // The standard deviation of single runs is .02, so a median of three is not reliable.
    let runs = 1..=12;
    let of = |seed| go(&transfer(&six(), "anabranch", 30), seed).efficiency();
    let mean = runs.clone().map(of).sum::<f64>() / runs.count() as f64;
    check("six paths, 25/75 %", mean, 0.75);
}

/// Efficiency of ten connections with packets of 550 bytes, 500 of data and 50 of header, as in the
/// paper's figure 3.
fn ten_mplot_connections(seed: u64, options: &[(Axis, &str)]) -> f64 {
    let mut profile = support::profile("mplot");
    for (axis, value) in options {
        profile.set(*axis, value).unwrap();
    }
    let mut one = FlowPlan::core(profile).until(Duration::from_secs(30));
    one.transport.max_datagram = 550;
    let all = (0..10).fold(Plan::parallel(six()), |plan, _| plan.flow(one.clone()));
    go(&all, seed).efficiency()
}

/// By default a packet counts as lost after three later acknowledgements, and one packet is sent
/// after a timeout. So at 75 % loss, connections with windows of a few packets mostly wait, and the
/// efficiency is 0.38 to 0.40. The alternatives named here reach the goal.
#[test]
fn six_bursty_paths_with_ten_mplot_connections() {
    let default = ten_mplot_connections(1, &[]);
    check("six paths, 25/75 %, ten mplot connections, defaults", default, 0.30);
    let options = [
        (Axis::Congestion, "ecn-reno:restart=8"),
        (Axis::LossDetector, "packet-threshold"),
        (Axis::Redundancy, "mean-sigma:kappa1=0"),
    ];
    let value = median(SEEDS, |seed| ten_mplot_connections(seed, &options));
    check("six paths, 25/75 %, ten mplot connections, with options", value, 0.60);
}

#[test]
fn a_bad_second_path_does_no_harm() {
    let pair = links(&[
        "name=good,rate=10mbit,delay=100ms,loss=0.1%",
        "name=bad,rate=10mbit,delay=100ms,loss=50%",
    ]);
    let goodput = |links: &[LinkConfig]| {
        median(SEEDS, |seed| go(&transfer(links, "anabranch", 30), seed).goodput_mbps())
    };
    check("0.1 % + 50 %, over path 1 alone", goodput(&pair) / goodput(&pair[..1]), 1.0);
    check("0.1 % + 50 %", efficiency(&pair, "anabranch", 30), 0.80);
}

#[test]
fn a_slow_second_path_does_no_harm_to_a_fast_one() {
    let pair =
        links(&["name=fast,rate=1000mbit,delay=5ms", "name=slow,rate=10mbit,delay=50ms,loss=5%"]);
    for buffer in [4_u64 << 20, 64 << 20] {
        let rate = |links: &[LinkConfig], seed| {
            let mut plan = transfer(links, "anabranch", 5).after(Duration::from_secs(2));
            let transport = &mut flow(&mut plan).transport;
            transport.streams.max_data = buffer;
            transport.streams.max_stream_data = buffer;
            transport.streams.growth = 1;
            transport.streams.send_buffer = buffer;
            transport.receive_symbols = buffer / 1200;
            go(&plan, seed).scalar("flow", "goodput_mbps").unwrap()
        };
        let ratio = median(SEEDS, |seed| rate(&pair, seed) / rate(&pair[..1], seed));
        check(&format!("1000 + 10 Mb/s, {} MiB", buffer >> 20), ratio, 0.97);
    }
}

#[test]
fn fair_beside_cubic() {
    let shared = links(&["name=shared,rate=10mbit,delay=40ms"]);
    let share = median(SEEDS, |seed| {
        let plan = transfer(&shared, "anabranch", 60).flow(bulk("uncoded", 60));
        let report = go(&plan, seed);
        report.flows[0].bytes as f64 / report.bytes() as f64
    });
    check("beside CUBIC, our share", share, 0.25);
    check("beside CUBIC, its share", 1.0 - share, 0.25);
}

#[test]
fn messages_beside_bulk_are_quick() {
    let p95 = median(SEEDS, |seed| {
        let mut plan = transfer(&demo_links(), "anabranch", 20);
        let (interval, class) = (Duration::from_millis(20), TrafficClass::Interactive);
        flow(&mut plan).messages = Some(Messages { interval, size: 100, count: u64::MAX, class });
        let report = go(&plan, seed);
        let one = &report.flows[0];
        println!("messages {} of {}", one.messages.arrived.len(), one.messages.sent);
        println!("median {:?} p95 {:?}", one.message_delay(0.5), one.message_delay(0.95));
        one.message_delay(0.95).as_secs_f64() * 1000.0
    });
    // The one-way delay of the quickest path is 5 ms.
    println!("== messages beside bulk: p95 {p95:.1} ms (at most 35)");
    assert!(p95 <= 35.0, "p95 {p95:.1} ms");
}
