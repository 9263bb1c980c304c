use anabranch_types::{PathId, Rng, Time};
use core::time::Duration;

use super::*;
use crate::view::{PathState, PathView};

fn policy(spec: &str) -> Box<dyn AckPolicy> {
    build(&spec.parse().unwrap()).unwrap()
}

fn received(pending: u32) -> ReceivedEvent {
    ReceivedEvent {
        now: Time::from_millis(100),
        path: PathId(0),
        ack_eliciting: true,
        out_of_order: false,
        ce: false,
        pending,
    }
}

#[test]
fn acknowledgements_wait_for_a_second_packet_unless_something_is_wrong() {
    let mut policy = policy("same-path");
    let soon = AckTiming::By(Time::from_millis(105));
    assert_eq!(policy.on_received(&received(1)), soon);
    assert_eq!(policy.on_received(&received(2)), AckTiming::Now);
    let wrong = ReceivedEvent { out_of_order: true, ..received(1) };
    assert_eq!(policy.on_received(&wrong), AckTiming::Now);
    assert_eq!(policy.on_received(&ReceivedEvent { ce: true, ..received(1) }), AckTiming::Now);
    let quiet = ReceivedEvent { ack_eliciting: false, out_of_order: true, ..received(0) };
    assert_eq!(policy.on_received(&quiet), AckTiming::None);
}

#[test]
fn timing_is_set_by_options() {
    let mut mplot = policy("random-path:every=1");
    assert_eq!(mplot.on_received(&received(1)), AckTiming::Now);
    let mut lazy = policy("best-path:every=10,delay=20ms");
    assert_eq!(lazy.on_received(&received(9)), AckTiming::By(Time::from_millis(120)));
}

fn paths() -> [PathView; 4] {
    let path = |id: u32, rtt, loss, state| {
        let mut path = PathView::unknown(PathId(id));
        path.rtt.min = Duration::from_millis(rtt);
        path.rtt.samples = 1;
        path.loss.mean = loss;
        PathView { state, ..path }
    };
    [
        path(0, 90, 0.0, PathState::Active),
        path(1, 50, 0.9, PathState::Active),
        path(2, 60, 0.1, PathState::Probation),
        path(3, 10, 0.0, PathState::Suspect),
    ]
}

fn routes(spec: &str, paths: &[PathView], seed: u64) -> Vec<u32> {
    let mut out = Vec::new();
    policy(spec).route(PathId(1), paths, &mut Rng::new(seed), &mut out);
    out.into_iter().map(|id| id.0).collect()
}

#[test]
fn routes_are_as_named() {
    assert_eq!(routes("same-path", &paths(), 0), [1]);
    // 60·1.1 beats 90 and 50·1.9; the suspect path is left out.
    assert_eq!(routes("best-path", &paths(), 0), [2]);
    // A path that was never measured comes last.
    let mut unmeasured = paths();
    unmeasured[2].rtt.samples = 0;
    assert_eq!(routes("best-path", &unmeasured, 0), [0]);
    // Packets of an unmeasured path are not acknowledged on another, whose delay may be ten times as long.
    unmeasured[1].rtt.samples = 0;
    assert_eq!(routes("best-path", &unmeasured, 0), [1]);
    assert_eq!(routes("all-paths", &paths(), 0), [0, 1, 2]);
}

#[test]
fn a_quicker_path_is_twice_as_quick_at_its_slowest() {
    let quicker = |least, smoothed, variation, own_state| {
        let [mut own, mut other, ..] = paths();
        own = PathView { id: PathId(1), state: own_state, ..own };
        (other.id, other.loss.mean) = (PathId(0), 0.0);
        own.rtt.min = Duration::from_millis(100);
        other.rtt.min = Duration::from_millis(least);
        other.rtt.smoothed = Duration::from_millis(smoothed);
        other.rtt.variation = Duration::from_millis(variation);
        routes("quicker-path", &[other, own], 0)
    };
    assert_eq!(quicker(20, 30, 5, PathState::Active), [0]);
    assert_eq!(quicker(20, 30, 6, PathState::Active), [1], "54 ms at its slowest");
    assert_eq!(quicker(20, 60, 0, PathState::Active), [1]);
    assert_eq!(quicker(90, 120, 10, PathState::Suspect), [0], "its own path is not usable");
    let mut unmeasured = paths();
    unmeasured[1].rtt.samples = 0;
    assert_eq!(routes("quicker-path", &unmeasured, 0), [1]);
}

#[test]
fn random_routes_are_uniform_over_usable_paths() {
    let mut counts = [0_u32; 4];
    for seed in 0..3000 {
        let route = routes("random-path", &paths(), seed);
        assert_eq!(route.len(), 1);
        counts[route[0] as usize] += 1;
    }
    assert_eq!(counts[3], 0);
    assert!(counts[..3].iter().all(|count| (900..1100).contains(count)), "{counts:?}");
}

#[test]
fn something_always_answers() {
    for (entry, _) in TABLE {
        assert_eq!(routes(entry.name, &[], 0), [1], "{}", entry.name);
        assert_eq!(routes(entry.name, &paths()[3..], 0), [1], "{}", entry.name);
    }
}
