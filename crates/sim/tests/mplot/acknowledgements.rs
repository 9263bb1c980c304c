//! §II-B and §II-C: every packet is acknowledged, on a random path, with a report about its own path.

use anabranch_core::observe::{Observation, Observer};
use anabranch_policy::Axis;
use anabranch_sim::report::RunReport;
use anabranch_sim::scenario::RunOptions;
use anabranch_types::Time;
use core::time::Duration;
use std::sync::{Arc, Mutex};

use super::transit::{go, plan, set};

/// Number of data packets that arrived.
fn arrived(report: &RunReport) -> u64 {
    let data = report.links.iter().filter(|link| link.carries_data);
    data.map(|link| link.counters.packets_delivered).sum()
}

/// Numbers of packets sent back over each of the two paths.
fn acknowledgements(report: &RunReport) -> [f64; 2] {
    [1, 3].map(|link| report.links[link].counters.packets_in as f64)
}

#[test]
fn every_packet_is_acknowledged_on_a_path_drawn_uniformly() {
    let links = ["rate=20mbit,delay=20ms,ecn", "rate=5mbit,delay=20ms,ecn"];
    let report = go(&plan(&links, 5_000_000));
    let (arrived, back) = (arrived(&report), acknowledgements(&report));
    let sum = back[0] + back[1];
    assert!((sum / arrived as f64 - 1.0).abs() < 0.05, "{sum} for {arrived} packets");
    // Forward the first link carries far more, 2.6 to 3.4 times as much in 24 runs. Backward both
    // carry the same.
    let forward = [0, 1].map(|index| report.links[2 * index].counters.packets_delivered);
    assert!(forward[0] > 2 * forward[1], "{forward:?}");
    assert!((back[0] / sum - 0.5).abs() < 0.05, "{back:?}");
}

#[test]
fn acknowledgements_may_go_by_the_best_or_by_all_paths_instead() {
    let backward = |ack: &str| {
        // The transfer is so long that the slower path's handshake, during which it carries no
        // acknowledgements, hardly counts.
        let links = ["rate=20mbit,delay=5ms,ecn", "rate=20mbit,delay=60ms,ecn"];
        let mut plan = plan(&links, 10_000_000);
        set(&mut plan, Axis::Ack, ack);
        let report = go(&plan);
        acknowledgements(&report).map(|packets| packets / arrived(&report) as f64)
    };
    let best = backward("best-path:every=1");
    assert!(best[0] > 0.9 && best[1] < 0.1, "{best:?}");
    let all = backward("all-paths:every=1");
    assert!(all.iter().all(|share| *share > 0.9), "{all:?}");
}

/// The congestion windows of each path at every change.
#[derive(Clone, Debug, Default)]
struct Windows(Arc<Mutex<Vec<(u32, u64)>>>);

impl Observer for Windows {
    fn observe(&mut self, _now: Time, observation: &Observation) {
        if let Observation::Congestion { path, cwnd, .. } = observation {
            self.0.lock().unwrap().push((path.0, *cwnd));
        }
    }
}

#[test]
fn a_mark_is_answered_by_the_path_that_met_it_whichever_way_it_is_told() {
    // The second link never fills: its part of the 2 MB is less than its bandwidth-delay product.
    let plan = plan(&["rate=2mbit,delay=20ms,ecn", "rate=1gbit,delay=50ms,ecn"], 2_000_000);
    let windows = Windows::default();
    let mut observe = |_: &str| Some(Box::new(windows.clone()) as Box<dyn Observer>);
    let mut options = RunOptions { decisions: Some(&mut observe), ..RunOptions::default() };
    let report = plan.run_with(1, &mut options).unwrap();
    let marks = [0, 2].map(|link| report.links[link].counters.ecn_marks);
    assert!(marks[0] > 0 && marks[1] == 0, "{marks:?}");
    assert!(report.links[3].counters.packets_in > 20, "half of the news came by the other path");
    let log = windows.0.lock().unwrap();
    let of = |path: u32| log.iter().filter(move |entry| entry.0 == path).map(|entry| entry.1);
    let cuts = |path: u32| of(path).zip(of(path).skip(1)).filter(|(a, b)| b < a).count();
    assert!(cuts(0) > 0, "{log:?}");
    assert_eq!(cuts(1), 0, "{log:?}");
}

#[test]
fn round_trips_are_measured_for_each_forward_path() {
    let links = ["rate=20mbit,delay=10ms,ecn", "rate=20mbit,delay=100ms,ecn"];
    let report = go(&plan(&links, 3_000_000));
    let rtt = |index: usize| report.flows[0].sender.as_ref().unwrap().paths[index].rtt;
    // The first path has 10 ms forward and 10 or 100 ms back, the second 100 ms forward and 10 or
    // 100 ms back.
    let ms = Duration::from_millis;
    assert!(rtt(0).min >= ms(20) && rtt(0).min < ms(40), "{:?}", rtt(0));
    assert!(rtt(1).min >= ms(110) && rtt(1).min < ms(130), "{:?}", rtt(1));
}
