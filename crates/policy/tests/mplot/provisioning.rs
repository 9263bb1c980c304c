//! §III-B and §III-C: how many repairs a block gets, and how long the block is.

use anabranch_policy::analysis::provisioning::goodput_curve;
use anabranch_policy::redundancy::{BlockShape, RedundancyPolicy, RedundancyView, build};
use anabranch_policy::view::{BlockView, LossView, MAX_PATHS, PathView, TrafficClass};
use anabranch_types::{PathId, Time};
use core::time::Duration;

/// Header bytes of the paper's packets.
const HEADER: u64 = 50;
const NOWHERE: [u16; MAX_PATHS] = [0; MAX_PATHS];

fn policy(spec: &str) -> Box<dyn RedundancyPolicy> {
    build(&spec.parse().unwrap()).unwrap()
}

/// A path with a window of `packets` of 750 bytes and a round-trip time in milliseconds.
pub fn path(id: u32, packets: u64, rtt: u64) -> PathView {
    let mut path = PathView::unknown(PathId(id));
    path.packet_size = 700 + HEADER;
    path.cwnd = packets * path.packet_size;
    path.rtt.smoothed = Duration::from_millis(rtt);
    path
}

pub fn view(paths: &[PathView], mean: f64, deviation: f64) -> RedundancyView<'_> {
    RedundancyView {
        now: Time::ZERO,
        paths,
        loss: LossView { mean, deviation },
        max_symbols: 255,
        max_symbol_size: 700,
        flushing: false,
        class: TrafficClass::Bulk,
        slides: false,
        sources_sent: 0,
        repairs_unneeded: 0,
    }
}

fn block(sources: u16) -> BlockView {
    BlockView { sources, closed: true, ..BlockView::default() }
}

fn proactive(spec: &str, sources: u16, mean: f64, deviation: f64) -> u16 {
    let paths = [path(0, 100, 40)];
    policy(spec).proactive(&block(sources), &view(&paths, mean, deviation))
}

/// H(k) of eq. 5, computed as written: the sum of C(F + i − 1, i) pⁱ (1 − p)ᶠ.
fn recovered(sources: u16, p: f64, k: u16) -> f64 {
    let mut combinations = 1.0;
    (0..=k).fold(0.0, |sum, i| {
        if i > 0 {
            combinations *= f64::from(sources + i - 1) / f64::from(i);
        }
        sum + combinations * p.powi(i.into()) * (1.0 - p).powi(sources.into())
    })
}

#[test]
fn exact_repairs_are_the_fewest_that_recover_often_enough() {
    for (sources, p, epsilon) in [(20, 0.1, 0.1), (60, 0.3, 0.01), (90, 0.5, 0.5), (10, 0.05, 0.3)]
    {
        let k = proactive(&format!("mean-sigma:kmin=exact,epsilon={epsilon}"), sources, p, 0.0);
        assert!(recovered(sources, p, k) >= 1.0 - epsilon, "{sources} {p} {epsilon}: {k}");
        assert!(recovered(sources, p, k - 1) < 1.0 - epsilon, "{sources} {p} {epsilon}: {k}");
    }
}

#[test]
fn fitted_repairs_follow_table_two_and_add_one() {
    let table = [(0.01, 1.28), (0.1, 1.2), (0.2, 1.12), (0.3, 1.08), (0.5, 1.0)];
    for (epsilon, alpha) in table {
        let spec = format!("mean-sigma:kmin=eq6,epsilon={epsilon}");
        for (sources, p) in [(80_u16, 0.1), (80, 0.4), (30, 0.5)] {
            let expected = (f64::from(sources) * alpha * p / (1.0 - p) - 1e-9).ceil() as u16 + 1;
            assert_eq!(proactive(&spec, sources, p, 0.0), expected, "{epsilon} {p}");
        }
    }
}

#[test]
fn goodput_stays_flat_until_repairs_exceed_the_expected_losses_and_then_falls() {
    let (sources, p) = (90, 0.3);
    let curve = goodput_curve(1.0, sources, p, 120);
    // Eqs 7 and 8 follow from eq. 5: with k proactive repairs, k are spent if they suffice, else as
    // many as are needed.
    for k in [0_u16, 20, 39, 60, 120] {
        let chance = |i: u16| {
            recovered(sources, p, i) - if i > 0 { recovered(sources, p, i - 1) } else { 0.0 }
        };
        let tail: f64 = (k + 1..400).map(|i| f64::from(i) * chance(i)).sum();
        let spent = f64::from(k) * recovered(sources, p, k) + tail;
        let expected = 1.0 / (1.0 + spent / f64::from(sources));
        let (share, goodput) = curve[usize::from(k)];
        assert!((share - f64::from(k) / f64::from(sources)).abs() < 1e-12);
        assert!((goodput - expected).abs() < 1e-6, "{k}: {goodput}, not {expected}");
    }
    // x = p/(1 − p) is 39 repairs.
    assert!(curve[20].1 > 0.999 * curve[0].1 && curve[60].1 < 0.95 * curve[0].1);
}

#[test]
fn proactive_repairs_cover_the_mean_and_kappa_deviations() {
    // x = q/(1 − q) with q = p + κ₁σ, which is .2, .3 and .5; F is 60.
    assert_eq!(proactive("mean-sigma:kappa1=0", 60, 0.2, 0.1), 15);
    assert_eq!(proactive("mean-sigma", 60, 0.2, 0.1), 26);
    assert_eq!(proactive("mean-sigma:kappa1=3", 60, 0.2, 0.1), 60);
    // Each block's repairs follow the estimates at its time.
    assert_eq!(proactive("mean-sigma", 60, 0.0, 0.0), 0);
}

#[test]
fn reactive_repairs_allow_for_their_own_losses() {
    let paths = [path(0, 100, 40)];
    let needed = |spec: &str, missing: u16, mean: f64, deviation: f64| {
        let block = BlockView { received: 50 - missing, ..block(50) };
        policy(spec).still_needed(&block, &NOWHERE, &view(&paths, mean, deviation))
    };
    // (1 + y)·r with y = q/(1 − q) is r/(1 − q); κ₂ is 0 unless it is set.
    assert_eq!(needed("mean-sigma", 9, 0.1, 0.2), 10);
    assert_eq!(needed("mean-sigma:kappa2=2", 9, 0.1, 0.2), 18);
    assert_eq!(needed("mean-sigma", 0, 0.5, 0.2), 0);
}

#[test]
fn a_need_is_reckoned_at_every_acknowledgement_or_to_the_letter_once_a_round() {
    let paths = [path(0, 100, 40)];
    let needed = |spec: &str, in_flight: u16| {
        let block = BlockView { received: 40, in_flight, ..block(50) };
        policy(spec).still_needed(&block, &NOWHERE, &view(&paths, 0.0, 0.0))
    };
    assert_eq!((needed("mean-sigma", 4), needed("mean-sigma", 0)), (6, 10));
    assert_eq!((needed("mean-sigma:round=lit", 4), needed("mean-sigma:round=lit", 0)), (0, 10));
}

#[test]
fn a_block_is_what_the_paths_carry_in_a_median_round_trip() {
    let paths = [path(0, 10, 30), path(1, 40, 60), path(2, 30, 120)];
    // Eq. 12: 10·60/30 + 40 + 30·60/120 = 75, and F = B/(1 + x).
    let shape = |mean, deviation| policy("mean-sigma").next_block(&view(&paths, mean, deviation));
    assert_eq!(shape(0.0, 0.0).sources, 75);
    assert_eq!(shape(0.1, 0.1).sources, 60);
    let block = BlockView { sources: 60, closed: true, ..BlockView::default() };
    assert_eq!(policy("mean-sigma").proactive(&block, &view(&paths, 0.1, 0.1)), 15);
    // Eq. 11 with a delay of three median round trips.
    let longer = policy("mean-sigma:delta=3").next_block(&view(&paths, 0.0, 0.0));
    assert_eq!(longer.sources, 225);
}

#[test]
fn packets_are_the_largest_that_leave_five_in_a_block() {
    let shape = |packets: u64, most: u16| -> BlockShape {
        let mut path = path(0, packets, 40);
        path.packet_size = u64::from(most) + HEADER;
        let view = RedundancyView { max_symbol_size: most, ..view(&[], 0.0, 0.0) };
        policy("mean-sigma:sizes=paper").next_block(&RedundancyView { paths: &[path], ..view })
    };
    // Windows of 5, 4 and 2 packets of 750 bytes give 3750, 3000 and 1500 bytes per block.
    assert_eq!((shape(5, 700).symbol_size, shape(5, 700).sources), (700, 5));
    assert_eq!((shape(4, 700).symbol_size, shape(4, 700).sources), (500, 5));
    assert_eq!((shape(2, 700).symbol_size, shape(2, 700).sources), (200, 6));
    // Symbols never exceed what every path carries, however long the block.
    assert_eq!(shape(100, 650).symbol_size, 500);
    assert_eq!(shape(100, 300).symbol_size, 200);
}
