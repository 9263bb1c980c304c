//! Path MTU discovery over links that silently drop packets that are too long.

mod support;

use anabranch_core::path::UDP_OVERHEAD;
use anabranch_policy::view::PathState;
use anabranch_sim::endpoint::{FlowFailure, PathChange};
use anabranch_sim::report::RunReport;
use anabranch_sim::scenario::{FlowPlan, Plan};
use core::time::Duration;

use support::{PROFILES, bins, bulk, flow, in_tenths, links};

fn plan(texts: &[&str], profile: &str, seconds: u64) -> Plan {
    let plan = Plan::parallel(links(texts)).within(Duration::from_secs(seconds + 60));
    let mut plan = plan.flow(bulk(profile, seconds));
    flow(&mut plan).transport.mtu_limit = Some(1500);
    plan
}

fn go(plan: &Plan, seed: u64) -> RunReport {
    let report = support::go(plan, seed);
    println!("  MTUs {:?}", mtus(&report));
    report
}

fn mtus(report: &RunReport) -> Vec<u32> {
    report.flows[0].sender.as_ref().unwrap().paths.iter().map(|path| path.mtu).collect()
}

#[test]
fn the_link_decides_how_long_packets_are() {
    for (mtu, limit, loss) in [
        (1228, 1500, 0),
        (1240, 1500, 5),
        (1260, 1500, 0),
        (1280, 1500, 0),
        (1400, 1500, 5),
        (1420, 1500, 0),
        (1500, 1500, 5),
        (9000, 1500, 0),
        (9000, 9000, 0),
        (4352, 9000, 0),
    ] {
        for profile in PROFILES {
            let text = format!("rate=20mbit,delay=10ms,ecn,mtu={mtu}B,loss={loss}%");
            let mut plan = plan(&[&text], profile, 6);
            flow(&mut plan).transport.mtu_limit = Some(limit);
            let report = go(&plan, 1);
            let found = mtus(&report)[0];
            let most = mtu.min(u32::from(limit));
            let least = if loss == 0 { most } else { most - most / 20 };
            assert!((least..=most).contains(&found), "{profile}: {found} of {mtu}");
        }
    }
}

#[test]
fn larger_packets_are_fewer() {
    for profile in PROFILES {
        let links = ["rate=20mbit,delay=10ms,loss=1%,ecn", "rate=10mbit,delay=30ms,loss=2%,ecn"];
        let mut with = plan(&links, profile, 70);
        let transfer = flow(&mut with).clone().of(20 << 20);
        *flow(&mut with) = FlowPlan { stop: None, ..transfer };
        let mut without = with.clone();
        flow(&mut without).transport.mtu_limit = None;
        let (with, without) = (go(&with, 3), go(&without, 3));
        let ratio = |of: fn(&RunReport) -> f64| of(&with) / of(&without);
        let datagrams = ratio(|report| report.packets() as f64);
        println!(
            "{profile}: datagrams x{datagrams:.3}, goodput x{:.3}",
            ratio(RunReport::goodput_mbps)
        );
        assert!(datagrams < 0.9, "{profile}: {datagrams:.3} as many datagrams");
    }
}

/// Whatever MTU the link shrinks to, everything arrives, and the path is in use again within
/// seconds.
#[test]
fn a_path_that_becomes_narrower_carries_on() {
    for after in [1228, 1240, 1300, 1480] {
        for profile in PROFILES {
            for loss in [0, 5] {
                let text = format!("rate=20mbit,delay=10ms,ecn,loss={loss}%,mtu=1500B/{after}B@3s");
                let report = go(&plan(&[&text], profile, 10), 2);
                let found = mtus(&report)[0];
                assert!(found <= after && found + 100 > after.min(1328), "{found} of {after}");
                let gap = report.flows[0].longest_gap;
                assert!(gap < Duration::from_secs(3), "{profile}: silent for {gap:?}");
            }
        }
    }
}

/// A second path with a smaller MTU joins, then the wide path dies. Data that was divided for the
/// wide path is divided again.
#[test]
fn a_narrower_path_joins_and_takes_over() {
    for profile in PROFILES {
        let links = [
            "rate=10mbit,delay=20ms,ecn,loss=1%,blackout=6s-100s",
            "rate=10mbit,delay=30ms,ecn,loss=1%,mtu=1300B",
        ];
        let (down, up) = (Duration::from_millis(1), Duration::from_secs(3));
        let plan = in_tenths(plan(&links, profile, 10));
        let plan = plan.event(down, 1, PathChange::Down).event(up, 1, PathChange::Up);
        let report = go(&plan, 4);
        let narrow = bins(&report, "link.1", "sent_mbps");
        let shares: Vec<u64> = narrow.chunks(10).map(|bins| bins.iter().sum()).collect();
        println!("{profile}: bytes a second over the narrow link {shares:?}");
        assert!(shares[4] > 200_000 && shares[8] > 200_000, "{profile}: {shares:?}");
        let gap = report.flows[0].longest_gap;
        assert!(gap < Duration::from_secs(2), "{profile}: silent for {gap:?}");
    }
}

#[test]
fn heavy_loss_neither_hides_nor_feigns_a_narrow_path() {
    for seed in 1..=4 {
        let report = go(&plan(&["rate=20mbit,delay=10ms,loss=30%"], "anabranch", 10), seed);
        let found = mtus(&report)[0];
        assert!((1400..=1500).contains(&found), "seed {seed}: {found}");
        let text = "rate=20mbit,delay=10ms,loss=30%,mtu=1500B/1300B@4s";
        let report = go(&plan(&[text], "anabranch", 10), seed);
        let found = mtus(&report)[0];
        assert!((1228..=1300).contains(&found), "seed {seed}: {found}");
    }
}

#[test]
fn a_path_below_the_minimum_is_given_up_and_says_why() {
    for profile in PROFILES {
        let narrow = "rate=10mbit,delay=20ms,ecn,mtu=1100B";
        match &plan(&[narrow], profile, 5).run(1).unwrap().flows[0].failure {
            Some(FlowFailure::Closed(why)) => assert!(why.contains("MTU"), "{profile}: {why}"),
            other => panic!("{profile}: {other:?}"),
        }
        let report = go(&plan(&["rate=10mbit,delay=30ms,ecn", narrow], profile, 6), 1);
        let paths = &report.flows[0].sender.as_ref().unwrap().paths;
        assert_eq!(paths[1].state, PathState::Closed, "{profile}");
        assert!(report.goodput_mbps() > 5.0, "{profile}: {:.1} Mb/s", report.goodput_mbps());
    }
}

/// During a transfer the path moves to an address behind which the MTU is smaller.
#[test]
fn a_path_that_moves_starts_over() {
    let text = "rate=20mbit,delay=10ms,ecn,mtu=1500B/1350B@3s";
    let plan = plan(&[text], "anabranch", 8).event(Duration::from_secs(3), 0, PathChange::Move);
    let report = go(&plan, 5);
    assert_eq!(mtus(&report), [1350]);
    assert!(report.flows[0].longest_gap < Duration::from_secs(1));
    assert_eq!(UDP_OVERHEAD, 28, "the figures above are those of IPv4");
}
