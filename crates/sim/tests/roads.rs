//! Every link and every pair of `scenarios/roads` is valid and carries a transfer.

use std::fs;
use std::path::Path;

use anabranch_sim::scenario::Scenario;

/// A scenario of `scenarios/roads`, with `settings` applied.
fn roads(file: &str, settings: &[String]) -> Scenario {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/roads");
    let text = fs::read_to_string(folder.join(format!("{file}.toml"))).expect("a file of roads");
    let mut read = |name: &str| fs::read_to_string(folder.join(name)).map_err(|e| e.to_string());
    Scenario::load(&text, file, settings, &mut read).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

#[test]
fn every_road_carries_a_transfer() {
    for (file, least) in [("links", 40), ("pairs", 20)] {
        let scenario = roads(file, &["duration=1500ms", "warm-up=100ms"].map(str::to_owned));
        assert!(scenario.points().len() >= least, "{file}: {}", scenario.points().len());
        for point in scenario.points() {
            let report =
                scenario.run(point, 1).unwrap_or_else(|error| panic!("{point:?}: {error}"));
            let bytes = report.scalar("bulk", "delivered_bytes").expect("measured");
            let messages = report.flows.first().map_or(0, |flow| flow.messages.arrived.len());
            assert!(bytes > 0.0 || messages > 0, "{file}: {:?}", point.labels);
        }
    }
}

/// If a round trip holds less than the few packets that are always in flight, these packets would
/// wait all the time and look like another flow's queue.
#[test]
fn a_path_that_holds_few_packets_keeps_few_waiting() {
    for (rate, delay, buffer) in [
        (0.8, 3.0, 40),
        (2.0, 5.0, 33),
        (3.0, 0.5, 25),
        (5.0, 0.2, 33),
        (8.0, 0.05, 100),
        (10.0, 1.0, 50),
        (20.0, 0.1, 67),
        (40.0, 0.05, 170),
    ] {
        let settings = [
            "duration=15s",
            "warm-up=5s",
            "variants=lan",
            &format!("path.a.rate={rate}mbit"),
            &format!("path.a.delay={delay}ms"),
            &format!("path.a.buffer={buffer}p"),
        ];
        let scenario = roads("links", &settings.map(str::to_owned));
        for seed in 1..=2 {
            let report =
                scenario.run(&scenario.points()[0], seed).unwrap_or_else(|e| panic!("{e}"));
            let value = |metric| report.scalar("bulk", metric).expect("measured");
            // A packet is 1500 bytes.
            let waiting = (value("message_delay_p95_s") - delay / 1e3) * rate * 1e6 / 12e3;
            let share = value("goodput_mbps") / rate;
            println!(
                "== {rate} Mb/s, {delay} ms: {waiting:.1} packets wait, {share:.3} of the rate"
            );
            assert!(share > 0.9, "{rate} Mb/s, {delay} ms: {share}");
            assert!(waiting < 8.0, "{rate} Mb/s, {delay} ms: {waiting}");
        }
    }
}

/// Acknowledgements of packets on a steady link must not return on a link whose delay varies. When
/// all of them took the path with the least round trip, that was often the one with jitter. The
/// steady link's round trips then rose from 40 ms to 200 ms, its timer expired repeatedly, and
/// seeds 1 and 3 carried 78 and 84 Mb/s.
#[test]
fn a_steady_link_stays_steady_beside_one_with_jitter() {
    let scenario = roads("pairs", &["variants=jittery-steady".to_owned()]);
    for seed in 1..=3 {
        let report = scenario.run(&scenario.points()[0], seed).unwrap_or_else(|e| panic!("{e}"));
        let value = |metric| report.scalar("bulk", metric).expect("measured");
        let (carried, timeouts) = (value("goodput_mbps"), value("timeouts"));
        assert!(carried > 88.0 && timeouts < 5.0, "seed {seed}: {carried} Mb/s, {timeouts}");
    }
}

/// A path may join that carries only shorter symbols than those sent before. A repair of a sliding
/// window that covers the longer symbols must not wait on that path for ever.
#[test]
fn a_sliding_window_goes_on_where_a_narrower_path_joins() {
    let settings = [
        "duration=3s",
        "warm-up=100ms",
        "variants=half-lost",
        "flow.bulk.class=live",
        "flow.bulk.traffic.kind=on-off",
        "flow.bulk.traffic.on=1s",
        "flow.bulk.traffic.off=1ms",
        "flow.bulk.traffic.rate=4mbit",
        "flow.bulk.policy.code=sliding-window",
        "flow.bulk.policy.redundancy=sliding:every=auto",
    ];
    let scenario = roads("pairs", &settings.map(str::to_owned));
    for seed in 1..=11 {
        let report = scenario.run(&scenario.points()[0], seed).unwrap_or_else(|e| panic!("{e}"));
        let goodput = report.scalar("bulk", "goodput_mbps").expect("measured");
        assert!(goodput > 3.5, "seed {seed}: {goodput} Mb/s");
    }
}

/// Where the rate falls to a tenth and rises again, the queue that grows after a fall must not be
/// taken for the path's own delay. When it was, ever more could be in flight: 9 % of all packets
/// were dropped, and the slowest messages took 1.5 and .9 s.
#[test]
fn a_rate_that_falls_leaves_no_long_queue() {
    for (rate, delay, buffer, fluctuation, slowest) in
        [(4, 45, 300, "1s/10%-150%/10%", 1.1), (10, 25, 500, "500ms/10%-200%/10%", 0.7)]
    {
        let settings = [
            "duration=25s".to_owned(),
            "warm-up=0s".to_owned(),
            "variants=cable".to_owned(),
            format!("path.a.rate={rate}mbit"),
            format!("path.a.delay={delay}ms"),
            format!("path.a.buffer={buffer}p"),
            format!("path.a.fluctuation={fluctuation}"),
        ];
        let scenario = roads("links", &settings);
        let (mut dropped, mut delay) = (0.0, 0.0);
        for seed in 1..=8 {
            let report =
                scenario.run(&scenario.points()[0], seed).unwrap_or_else(|e| panic!("{e}"));
            let value = |subject, metric| report.scalar(subject, metric).expect("measured");
            dropped += value("link.a", "drops_queue") / value("link.a", "sent_packets") / 8.0;
            delay += value("bulk", "message_delay_p95_s") / 8.0;
        }
        println!("== {rate} Mb/s, {fluctuation}: {dropped:.4} dropped, p95 {delay:.3} s");
        assert!(dropped < 0.04, "{rate} Mb/s, {fluctuation}: {dropped}");
        assert!(delay < slowest, "{rate} Mb/s, {fluctuation}: {delay}");
    }
}
