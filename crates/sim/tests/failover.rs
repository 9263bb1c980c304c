//! Paths that go dark, come back, move or lose feedback during a transfer.

mod support;

use anabranch_policy::{Axis, loss};
use anabranch_sim::endpoint::PathChange;
use anabranch_sim::link::LinkConfig;
use anabranch_sim::report::RunReport;
use anabranch_sim::scenario::Plan;
use core::time::Duration;

use support::{PROFILES, flow, go, in_tenths, link, links, sent};

/// Time at which the path goes dark, s.
const DARK: u64 = 2;
/// Index of the link that goes dark.
const DEAD: usize = 2;

/// Three unequal links; `extra` is appended to the last. All mark packets (ECN), because `mplot`
/// needs it.
fn three(extra: &str) -> Vec<LinkConfig> {
    let last = format!("rate=6mbit,delay=15ms,loss=1%,ecn{extra}");
    links(&["rate=5mbit,delay=20ms,loss=1%,ecn", "rate=4mbit,delay=30ms,loss=1%,ecn", &last])
}

fn bulk(links: Vec<LinkConfig>, profile: &str, seconds: u64) -> Plan {
    let plan = Plan::parallel(links).within(Duration::from_secs(90));
    in_tenths(plan.flow(support::bulk(profile, seconds)))
}

/// Runs the plan that `make` returns for every profile, each with three seeds.
fn each(make: impl Fn(&str) -> Plan, mut check: impl FnMut(&str, &RunReport)) {
    for name in PROFILES.into_iter().chain(["fmtcp"]) {
        let plan = make(name);
        for seed in 1..=3 {
            println!("{name}");
            check(name, &go(&plan, seed));
        }
    }
}

/// The sender's probe timeout of a path, from its round-trip times at the end of the run.
fn probe_timeout(profile: &str, report: &RunReport, path: usize) -> Duration {
    let detector =
        loss::build_detector(support::profile(profile).policy(Axis::LossDetector)).unwrap();
    detector.timeout(&report.flows[0].sender.as_ref().unwrap().paths[path].rtt)
}

fn round_trip(report: &RunReport, path: usize) -> Duration {
    report.flows[0].sender.as_ref().unwrap().paths[path].rtt.smoothed
}

#[test]
fn a_path_that_dies_holds_the_rest_up_for_one_timeout() {
    each(
        |name| {
            let plan = bulk(three(",blackout=2s-3600s"), name, 5);
            plan.after(Duration::from_millis(DARK * 1000 - 100))
        },
        |name, report| {
            let slowest = round_trip(report, 0).max(round_trip(report, 1));
            let timeout = probe_timeout(name, report, DEAD);
            let allowed = timeout + slowest * 2 + Duration::from_millis(50);
            let gap = report.flows[0].longest_gap;
            println!("  timeout {timeout:?}, survivors {slowest:?}, allowed {allowed:?}");
            assert!(gap <= allowed, "{name}: {gap:?} > {allowed:?}");
            // Little is wasted on the dead path, since only probes are sent there.
            let wasted = sent(report, DEAD, 25..50);
            assert!(wasted < sent(report, 0, 25..50) / 20, "{wasted} bytes into the dark");
        },
    );
}

#[test]
fn a_path_that_returns_carries_again_within_two_seconds() {
    each(
        |name| bulk(three(",blackout=2s-4s"), name, 9),
        |name, report| {
            let total = |tenths: core::ops::Range<usize>| -> u64 {
                (0..3).map(|link| sent(report, link, tenths.clone())).sum()
            };
            let share = |from: usize, to: usize| {
                sent(report, DEAD, from..to) as f64 / total(from..to) as f64
            };
            let (before, dark, early, late) =
                (share(10, 20), share(25, 40), share(40, 60), share(70, 90));
            println!("  share before {before:.3} dark {dark:.3} early {early:.3} late {late:.3}");
            assert!(dark < 0.05, "{name}: share {dark:.3} in the dark");
            assert!(early > dark, "{name}: no data within two seconds of the return");
            assert!(late > 0.5 * before, "{name}: share {late:.3} after {before:.3}");
            // Old credit causes no burst at the return: the rate stays near that of the link.
            let burst = (40..60).map(|bin| sent(report, DEAD, bin..bin + 1)).max();
            assert!(burst < Some(3 * 75_000), "{name}: {burst:?} bytes in a tenth of a second");
        },
    );
}

/// All written data arrives although every link is dark from 2 s to 7 s.
#[test]
fn darkness_everywhere_loses_nothing() {
    let dark = |text: &str| format!("{text},loss=1%,ecn,blackout=2s-7s");
    let all = ["rate=5mbit,delay=20ms", "rate=4mbit,delay=30ms", "rate=6mbit,delay=15ms"].map(dark);
    let all = links(&all.each_ref().map(String::as_str));
    each(
        |name| bulk(all.clone(), name, 10),
        |name, report| {
            // The writer fills its buffer during the dark time and continues for three seconds
            // after it.
            assert!(report.elapsed() < Duration::from_secs(15), "{name}: {:?}", report.elapsed());
            for link in 0..3 {
                let after = sent(report, link, 70..100);
                assert!(after > 100_000, "{name}: {after} bytes on link {link} after the dark");
            }
        },
    );
}

#[test]
fn the_first_path_need_not_work() {
    let mut set = three("");
    set[0] = link("rate=5mbit,delay=20ms,ecn,blackout=0s-3600s");
    each(
        |name| bulk(set.clone(), name, 2),
        |name, report| {
            assert!(report.bytes() > 1_000_000, "{name}: {} bytes", report.bytes());
            let first =
                support::bins(report, "all", "goodput_mbps").iter().position(|bytes| *bytes > 0);
            assert!(first <= Some(2), "{name}: first bytes in tenth {first:?}");
        },
    );
}

#[test]
fn rebinding_interrupts_nothing() {
    each(
        |name| {
            let plan = bulk(three(""), name, 5).after(Duration::from_millis(1900));
            let all = [(2000, 0), (3000, 1), (3010, 2), (3020, 0)];
            all.into_iter()
                .fold(plan, |plan, (at, link)| change(plan, at, link, PathChange::Rebind))
        },
        |name, report| {
            let gap = report.flows[0].longest_gap;
            assert!(gap < Duration::from_millis(400), "{name}: {gap:?}");
            for link in 0..3 {
                let (before, after) = (sent(report, link, 10..20), sent(report, link, 40..50));
                assert!(after > before / 3, "{name}: link {link} fell from {before} to {after}");
            }
        },
    );
}

#[test]
fn a_path_without_a_way_back_is_still_of_use() {
    each(
        |name| {
            let mut reverse: Vec<_> = three("").iter().map(LinkConfig::clean_reverse).collect();
            reverse[DEAD] = link("rate=6mbit,delay=15ms,blackout=2s-3600s");
            let plan = bulk(three(""), name, 5).after(Duration::from_millis(1900));
            plan.with_reverse(reverse)
        },
        |name, report| {
            let survivors = 9e6 / 8.0 * 5.0;
            let floor = (survivors * 0.6) as u64;
            assert!(report.bytes() > floor, "{name}: {} bytes, not {floor}", report.bytes());
            let gap = report.flows[0].longest_gap;
            assert!(gap < Duration::from_millis(700), "{name}: {gap:?}");
        },
    );
}

#[test]
fn lost_acknowledgements_lose_nothing() {
    each(
        |name| {
            let lossy = link("rate=1mbit,delay=1ms,loss=30%").loss;
            let back = |link: LinkConfig| link.clean_reverse().with_loss(lossy.clone());
            bulk(three(""), name, 4).with_reverse(three("").into_iter().map(back))
        },
        |name, report| {
            assert!(report.bytes() > 2_500_000, "{name}: {} bytes", report.bytes());
        },
    );
}

/// The plan with a change of a path at `at` milliseconds.
fn change(plan: Plan, at: u64, link: usize, change: PathChange) -> Plan {
    plan.event(Duration::from_millis(at), link, change)
}

/// Every interface in turn goes down and comes back, and one gets another address. Nothing is lost,
/// and each interface carries data again within two seconds.
#[test]
fn interfaces_come_go_and_change_their_address() {
    each(
        |name| {
            let mut plan = bulk(three(""), name, 12);
            for link in 0..3 {
                let at = 1000 + 2500 * link as u64;
                plan = change(plan, at, link, PathChange::Down);
                plan = change(plan, at + 1500, link, PathChange::Up);
            }
            change(plan, 9000, 1, PathChange::Move)
        },
        |name, report| {
            for link in 0..3 {
                let gone = 10 + 25 * link;
                let away = sent(report, link, gone + 2..gone + 15);
                let back = sent(report, link, gone + 15..gone + 35);
                assert_eq!(away, 0, "{name}: sent on link {link} while it was gone");
                assert!(back > 50_000, "{name}: {back} bytes on link {link} after its return");
            }
            let moved = sent(report, 1, 92..112);
            assert!(moved > 50_000, "{name}: {moved} bytes after the change of address");
        },
    );
}

/// When every interface is gone, the connection waits and continues over the first one that comes
/// back.
#[test]
fn a_connection_survives_without_any_interface() {
    each(
        |name| {
            let mut plan = bulk(three(""), name, 8);
            for link in 0..3 {
                plan = change(plan, 2000 + 100 * link as u64, link, PathChange::Down);
            }
            change(plan, 6000, 1, PathChange::Up)
        },
        |name, report| {
            assert!(sent(report, 1, 60..80) > 100_000, "{name}: nothing after the return");
            assert_eq!(sent(report, 0, 30..80) + sent(report, 2, 30..80), 0, "{name}");
        },
    );
}

/// Paths may come and go more than 256 times.
#[test]
fn hundreds_of_paths_in_the_life_of_a_connection() {
    let mut plan = bulk(three(""), "anabranch", 40);
    for round in 0..300 {
        plan = change(plan, 1000 + 120 * round, (round % 2) as usize, PathChange::Down);
        plan = change(plan, 1060 + 120 * round, (round % 2) as usize, PathChange::Up);
    }
    let report = go(&plan, 1);
    assert!(report.bytes() > 20_000_000, "{} bytes", report.bytes());
    assert!(sent(&report, 0, 380..400) > 0 && sent(&report, 1, 380..400) > 0);
}

/// Keys change dozens of times, even while paths are dark and packets with old keys are in flight.
#[test]
fn keys_change_in_the_middle_of_everything() {
    each(
        |name| {
            let mut all = three(",blackout=2s-4s+6s-6200ms");
            all[0].jitter.size = Duration::from_millis(60);
            all[0].jitter.reorder = true;
            let mut plan = bulk(all, name, 15);
            flow(&mut plan).key_limit = Some(1000);
            plan
        },
        |name, report| {
            assert!(report.packets() > 15_000, "{name}: {} datagrams", report.packets());
            let refused = report.flows[0].receiver.as_ref().unwrap().dropped.unopened;
            assert!(refused < report.packets() / 200, "{name}: {refused} could not be opened");
        },
    );
}
