//! Path MTU discovery over links that drop what is too long for them, without a word.

use anabranch_core::path::UDP_OVERHEAD;
use anabranch_core::profiles::Profile;
use anabranch_policy::view::PathState;
use anabranch_sim::harness::{Failure, Goal, PathChange, PathEvent, Report, Spec, run};
use anabranch_sim::link::LinkConfig;
use anabranch_types::Time;
use core::time::Duration;

const PROFILES: [&str; 3] = ["anabranch", "mplot", "uncoded"];

fn link(text: &str) -> LinkConfig {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn spec(links: &[&str], profile: &str, seconds: u64, seed: u64) -> Spec {
    let links = links.iter().map(|text| link(text)).collect();
    let goal = Goal::Time(Duration::from_secs(seconds));
    let mut spec = Spec::new(links, Profile::named(profile).unwrap(), goal, seed);
    spec.transport.mtu_limit = Some(1500);
    spec.give_up = Duration::from_secs(seconds + 60);
    spec
}

fn go(spec: &Spec) -> Report {
    let name = &spec.flows[0].profile.name;
    let report =
        run(spec, &mut |_| None).unwrap_or_else(|e| panic!("{name}, seed {}: {e}", spec.seed));
    println!(
        "{name} seed {}: {} bytes in {:?}, MTUs {:?}, longest gap {:?}",
        spec.seed,
        report.bytes(),
        report.elapsed,
        mtus(&report),
        report.flows[0].longest_gap
    );
    report
}

fn mtus(report: &Report) -> Vec<u32> {
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
            let mut spec = spec(&[&text], profile, 6, 1);
            spec.transport.mtu_limit = Some(limit);
            let report = go(&spec);
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
        let mut with = spec(&links, profile, 10, 3);
        with.flows[0].goal = Goal::Bytes(20 << 20);
        let mut without = with.clone();
        without.transport.mtu_limit = None;
        let (with, without) = (go(&with), go(&without));
        let ratio = |of: fn(&Report) -> f64| of(&with) / of(&without);
        let datagrams = ratio(|report| report.datagrams as f64);
        println!(
            "{profile}: datagrams x{datagrams:.3}, goodput x{:.3}",
            ratio(Report::goodput_mbps)
        );
        assert!(datagrams < 0.9, "{profile}: {datagrams:.3} as many datagrams");
    }
}

/// Whatever the link shrinks to, everything arrives, and the path is in use again within seconds.
#[test]
fn a_path_that_becomes_narrower_carries_on() {
    for after in [1228, 1240, 1300, 1480] {
        for profile in PROFILES {
            for loss in [0, 5] {
                let text = format!("rate=20mbit,delay=10ms,ecn,loss={loss}%,mtu=1500B/{after}B@3s");
                let report = go(&spec(&[&text], profile, 10, 2));
                let found = mtus(&report)[0];
                assert!(found <= after && found + 100 > after.min(1328), "{found} of {after}");
                let gap = report.flows[0].longest_gap;
                assert!(gap < Duration::from_secs(3), "{profile}: silent for {gap:?}");
            }
        }
    }
}

/// A second path joins that carries less, then the wide one dies: what was cut for it is cut anew.
#[test]
fn a_narrower_path_joins_and_takes_over() {
    for profile in PROFILES {
        let links = [
            "rate=10mbit,delay=20ms,ecn,loss=1%,blackout=6s-100s",
            "rate=10mbit,delay=30ms,ecn,loss=1%,mtu=1300B",
        ];
        let mut spec = spec(&links, profile, 10, 4);
        let event = |at, change| PathEvent { at: Time::from_millis(at), link: 1, change };
        spec.events = vec![event(1, PathChange::Unplug), event(3000, PathChange::Plug)];
        let report = go(&spec);
        let shares: Vec<u64> =
            report.links[1].sent.chunks(10).map(|bins| bins.iter().sum()).collect();
        println!("{profile}: bytes a second over the narrow link {shares:?}");
        assert!(shares[4] > 200_000 && shares[8] > 200_000, "{profile}: {shares:?}");
        let gap = report.flows[0].longest_gap;
        assert!(gap < Duration::from_secs(2), "{profile}: silent for {gap:?}");
    }
}

#[test]
fn heavy_loss_neither_hides_nor_feigns_a_narrow_path() {
    for seed in 1..=4 {
        let report = go(&spec(&["rate=20mbit,delay=10ms,loss=30%"], "anabranch", 10, seed));
        let found = mtus(&report)[0];
        assert!((1400..=1500).contains(&found), "seed {seed}: {found}");
        let text = "rate=20mbit,delay=10ms,loss=30%,mtu=1500B/1300B@4s";
        let report = go(&spec(&[text], "anabranch", 10, seed));
        let found = mtus(&report)[0];
        assert!((1228..=1300).contains(&found), "seed {seed}: {found}");
    }
}

#[test]
fn a_path_below_the_minimum_is_given_up_and_says_why() {
    for profile in PROFILES {
        let narrow = "rate=10mbit,delay=20ms,ecn,mtu=1100B";
        match run(&spec(&[narrow], profile, 5, 1), &mut |_| None) {
            Err(Failure::Closed(reason)) => assert!(reason.contains("MTU"), "{profile}: {reason}"),
            other => panic!("{profile}: {other:?}"),
        }
        let report = go(&spec(&["rate=10mbit,delay=30ms,ecn", narrow], profile, 6, 1));
        let paths = &report.flows[0].sender.as_ref().unwrap().paths;
        assert_eq!(paths[1].state, PathState::Closed, "{profile}");
        assert!(report.goodput_mbps() > 5.0, "{profile}: {:.1} Mb/s", report.goodput_mbps());
    }
}

/// An address behind which the link is narrower, in the middle of a transfer.
#[test]
fn a_path_that_moves_starts_over() {
    let text = "rate=20mbit,delay=10ms,ecn,mtu=1500B/1350B@3s";
    let mut spec = spec(&[text], "anabranch", 8, 5);
    let change = PathChange::Readdress;
    spec.events = vec![PathEvent { at: Time::from_secs(3), link: 0, change }];
    let report = go(&spec);
    assert_eq!(mtus(&report), [1350]);
    assert!(report.flows[0].longest_gap < Duration::from_secs(1));
    assert_eq!(UDP_OVERHEAD, 28, "the figures above are those of IPv4");
}
