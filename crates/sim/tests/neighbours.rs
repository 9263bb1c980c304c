//! Links like real roads, and rival flows, in virtual time. The default congestion control must not
//! mistake a road's own delay variation for a queue, nor another flow's queue for its own. `cargo
//! xtask roads` measures many more links.

mod support;

use anabranch_sim::report::RunReport;
use anabranch_sim::scenario::{FlowPlan, Plan};
use core::time::Duration;

use support::{bulk, link, links};

const SEEDS: [u64; 3] = [1, 2, 3];

/// Checks that the median over three seeds lies between the bounds.
fn check(what: &str, bounds: (f64, f64), measure: impl Fn(u64) -> f64) {
    check_median(what, bounds, SEEDS.map(measure));
}

fn check_median<const N: usize>(what: &str, (least, most): (f64, f64), mut values: [f64; N]) {
    values.sort_by(f64::total_cmp);
    println!("== {what}: {values:.3?} ({least} to {most})");
    assert!((least..=most).contains(&values[N / 2]), "{what}: {values:?}");
}

/// Checks that one transfer of 15 s has at least the efficiency `floor` on the link.
fn alone(text: &str, floor: f64) {
    for_seconds(15, text, floor);
}

fn for_seconds(seconds: u64, text: &str, floor: f64) {
    let plan = Plan::parallel(links(&[text])).flow(bulk("anabranch", seconds));
    check(text, (floor, 1.0), |seed| support::go(&plan, seed).efficiency());
}

#[test]
fn jitter_is_no_queue() {
    alone("rate=50mbit,delay=20ms,jitter=5ms,jitter-law=normal", 0.85);
    alone("rate=40mbit,delay=30ms,jitter=5ms,jitter-law=normal,loss=0.5%", 0.85);
    alone("rate=50mbit,delay=10ms,jitter=35ms", 0.85);
    alone("rate=50mbit,delay=20ms,jitter=70ms,loss=2%", 0.75);
}

/// On a link that keeps packets in order, they wait for the slowest one before them. Startup takes
/// this for a queue at first.
#[test]
fn startup_goes_on_where_the_delay_is_the_roads_own() {
    alone("rate=50mbit,delay=20ms,jitter=20ms,jitter-law=gamma,buffer=667p", 0.82);
    for_seconds(5, "rate=50mbit,delay=20ms,jitter=20ms,jitter-law=normal,buffer=667p", 0.77);
    alone("rate=50mbit,delay=20ms,jitter=10ms,jitter-law=log-normal,buffer=667p,loss=1%", 0.85);
}

/// If delays wander, one short round trip must not make the controller forget the long ones.
#[test]
fn delays_that_wander_are_remembered() {
    alone(
        "rate=50mbit,delay=20ms,jitter=20ms,jitter-law=gamma,jitter-correlation=100ms,buffer=667p",
        0.82,
    );
    alone("rate=50mbit,delay=20ms,jitter=20ms,jitter-law=gamma,reorder,buffer=667p", 0.87);
}

/// The buffer holds one bandwidth-delay product of the shortest round trip. If most round trips are
/// five times as long, probing overflows it. The flow must not take these losses for those of a
/// rival.
#[test]
fn probing_overflows_short_buffers_where_delays_vary() {
    alone("rate=50mbit,delay=20ms,jitter=20ms,jitter-law=normal,buffer=83p", 0.75);
    alone("rate=100mbit,delay=10ms,jitter=10ms,jitter-law=normal,buffer=200p", 0.85);
    // Single runs vary by a third of their mean here, so a median of three is not reliable.
    let text = "rate=50mbit,delay=20ms,jitter=20ms,jitter-law=log-normal,buffer=83p";
    let plan = Plan::parallel(links(&[text])).flow(bulk("anabranch", 20));
    let plan = plan.after(Duration::from_secs(5));
    let mean = (1..=24).map(|seed| support::go(&plan, seed).efficiency()).sum::<f64>() / 24.0;
    println!("== {text}: {mean:.3} on average");
    assert!(mean > 0.45, "{mean}");
}

#[test]
fn a_longer_road_is_no_queue() {
    alone("rate=100mbit,delay=15ms/45ms@4s/20ms@8s/60ms@11s", 0.8);
    alone("rate=80mbit,delay=5ms,clumps=2ms-8ms", 0.85);
}

#[test]
fn our_own_queue_is_short_where_the_buffer_is_deep() {
    let deep = link("name=deep,rate=10mbit,delay=20ms,buffer=500KB");
    let plan = Plan::parallel([deep]).flow(bulk("anabranch", 20)).after(Duration::from_secs(2));
    let plan = plan.record("link.deep", "queue_bytes", Duration::from_millis(10));
    check("p95 of our queue, ms", (0.0, 25.0), |seed| {
        let report = support::go(&plan, seed);
        let mut bytes = report.series("link.deep", "queue_bytes").unwrap().values.clone();
        bytes.sort_by(f64::total_cmp);
        bytes[bytes.len() * 95 / 100] * 8.0 / 10e6 * 1e3
    });
}

/// The flow under the name `name`, so that its values are reported separately.
fn named(name: &str, mut flow: FlowPlan) -> FlowPlan {
    (flow.group, flow.subject) = (name.to_owned(), name.to_owned());
    flow
}

fn goodput(report: &RunReport, flow: usize) -> f64 {
    report.scalar(&report.flows[flow].subject, "goodput_mbps").unwrap()
}

#[test]
fn a_neighbour_with_cubic_keeps_its_share() {
    for (kilobytes, products) in [(25, "half a"), (50, "one"), (150, "three"), (500, "ten")] {
        let shared = link(&format!("rate=10mbit,delay=20ms,buffer={kilobytes}KB"));
        let mut plan = Plan::parallel([shared])
            .within(Duration::from_secs(60))
            .after(Duration::from_secs(15))
            .flow(named("ours", bulk("anabranch", 60)))
            .flow(named("cubic", bulk("uncoded", 60)));
        plan.stop_when_done = None;
        check(&format!("beside CUBIC, {products} product"), (0.25, 0.75), |seed| {
            let report = plan.run(seed).unwrap();
            goodput(&report, 0) / (goodput(&report, 0) + goodput(&report, 1))
        });
    }
}

/// `flows` flows by `anabranch` that share a link. Each starts `apart` after the one before, and
/// they are measured from `after` to `within` seconds.
fn several(link: &str, flows: u32, apart: Duration, (after, within): (u64, u64)) -> Plan {
    let plan = Plan::parallel(links(&[link])).within(Duration::from_secs(within));
    let mut plan = plan.after(Duration::from_secs(after));
    for flow in 0..flows {
        let mut ours = named(&format!("flow-{flow}"), bulk("anabranch", within));
        ours.start = apart * flow;
        plan = plan.flow(ours);
    }
    plan.stop_when_done = None;
    plan
}

fn jain(report: &RunReport) -> f64 {
    report.scalar("all", "jain").unwrap()
}

/// The share of the packets of link `a` that its queue drops.
fn dropped(report: &RunReport) -> f64 {
    let of_link = |metric| report.scalar("link.a", metric).unwrap();
    of_link("drops_queue") / of_link("sent_packets")
}

/// Five flows keep a deep buffer full for longer than the least delay is remembered. No flow may
/// take the drops for random loss and send more to make up for it.
#[test]
fn drops_of_a_queue_that_flows_of_ours_fill_are_not_random() {
    let link = "name=a,rate=11mbit,delay=22ms,buffer=300KB";
    let plan = several(link, 5, Duration::from_millis(100), (60, 90));
    let runs = SEEDS.map(|seed| plan.run(seed).unwrap());
    let run = |seed: u64| &runs[seed as usize - 1];
    check("Jain's index of five flows", (0.75, 1.0), |seed| jain(run(seed)));
    check("dropped of five flows", (0.0, 0.02), |seed| dropped(run(seed)));
}

/// CoDel drops packets while the queue is short, and flows that start late never see a deep buffer
/// empty. Neither kind of loss may be taken for random loss.
#[test]
fn drops_of_queues_that_hardly_change_are_not_random() {
    let short = "name=a,rate=50mbit,delay=20ms,buffer=500KB,codel";
    let deep = "name=a,rate=7mbit,delay=97ms,buffer=1200KB,loss=1%";
    for (link, flows, apart, most) in [(short, 4, 500, 0.04), (deep, 7, 5000, 0.1)] {
        let plan = several(link, flows, Duration::from_millis(apart), (60, 90));
        let runs = SEEDS.map(|seed| dropped(&plan.run(seed).unwrap()));
        let what = format!("dropped of {flows} flows on {link}");
        check(&what, (0.0, most), |seed| runs[seed as usize - 1]);
    }
}

/// Jain's index, over the last half of a minute, of `flows` flows by `anabranch`, each of which
/// starts `apart` after the one before, and the share of their packets that the queue drops.
fn alike(link: &str, flows: u32, apart: Duration, seed: u64) -> (f64, f64) {
    let report = several(link, flows, apart, (30, 60)).run(seed).unwrap();
    let counters = report.links[0].counters;
    let dropped = counters.dropped_by_queue() as f64 / counters.packets_in as f64;
    (jain(&report), dropped)
}

#[test]
fn flows_of_ours_share_alike() {
    for (link, flows, apart, least, most) in [
        ("rate=40mbit,delay=20ms", 4, 3000, 0.95, 0.05),
        ("rate=50mbit,delay=20ms,buffer=750KB", 5, 2000, 0.85, 0.06),
    ] {
        let what = format!("{flows} flows, {apart} ms apart, on {link}");
        // Single runs have an index of .6 to .98, so a median of three is not reliable.
        let runs = [1, 2, 3, 4, 5, 6, 7, 8, 9]
            .map(|seed| alike(link, flows, Duration::from_millis(apart), seed));
        check_median(&format!("Jain's index of {what}"), (least, 1.0), runs.map(|run| run.0));
        check_median(&format!("dropped of {what}"), (0.0, most), runs.map(|run| run.1));
    }
}
