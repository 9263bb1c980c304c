//! Tests of a separate congestion control for each path.

use anabranch_core::path::{PathAddress, SocketId};
use anabranch_core::profiles::Profile;
use anabranch_core::testing::{Pair, Sent, address};
use anabranch_policy::{Axis, PolicySpec};
use anabranch_types::PathId;
use core::time::Duration;
use std::cell::Cell;
use std::rc::Rc;

fn policy(text: &str) -> PolicySpec {
    text.parse().unwrap()
}

/// The state of each path's controller at the connecting end. "startup" is a state of BBR,
/// "slow-start" one of CUBIC.
fn phases(pair: &mut Pair<impl anabranch_core::testing::Network>) -> Vec<&'static str> {
    let stats = pair.ends[0].connection().expect("open").stats();
    stats.paths.iter().map(|path| path.phase).collect()
}

#[test]
fn paths_of_one_connection_are_controlled_by_different_policies() {
    let mut profile = Profile::named("uncoded").unwrap();
    profile.set_path_congestion(PathId(1), policy("bbr")).unwrap();
    let unknown = profile.set_path_congestion(PathId(0), policy("warp")).unwrap_err().to_string();
    assert!(unknown.contains("cubic"), "{unknown}");
    let network = |sent: &Sent<'_>| Some((sent.now + Duration::from_millis(10), sent.ecn));
    let mut pair = Pair::new(&profile, 2, network);
    let settle = |pair: &mut Pair<_>| (0..200).for_each(|_| pair.round(Duration::from_millis(1)));
    settle(&mut pair);
    assert_eq!(phases(&mut pair), ["slow-start", "startup"]);

    let now = pair.now;
    let connection = pair.ends[0].connection().unwrap();
    connection.set_congestion(now, PathId(0), &policy("bbr")).unwrap();
    assert!(connection.set_congestion(now, PathId(0), &policy("warp")).is_err());
    connection.set_congestion(now, PathId(1), &policy("reno")).unwrap();
    assert_eq!(phases(&mut pair), ["startup", "slow-start"]);

    // A path keeps its own policy when its address changes.
    let moved = PathAddress { socket: SocketId(0), remote: address(1, 0) };
    pair.ends[0].connection().unwrap().move_path(now, PathId(0), moved);
    assert_eq!(phases(&mut pair), ["startup", "slow-start"]);
    pair.ends[0].unwritten = 100_000;
    settle(&mut pair);
    assert_eq!(pair.ends[1].read, 100_000);
}

/// For each path of a `ptcp` connection, the share of its window that is left after one loss, in
/// per cent, and the state of its controller at that time.
fn after_one_loss(controls: [&str; 2]) -> Vec<(u64, &'static str)> {
    let mut profile = Profile::named("ptcp").unwrap();
    profile.set(Axis::Recovery, "resend").unwrap();
    for (path, control) in (0..).zip(controls) {
        profile.set_path_congestion(PathId(path), policy(control)).unwrap();
    }
    let lose = Rc::new(Cell::new(0_u32));
    let pending = Rc::clone(&lose);
    let network = move |sent: &Sent<'_>| {
        let lost =
            sent.side == 0 && sent.payload.len() > 800 && pending.get() & (1 << sent.path) != 0;
        if lost {
            pending.set(pending.get() & !(1 << sent.path));
        }
        (!lost).then(|| (sent.now + Duration::from_millis(10), sent.ecn))
    };
    let mut pair = Pair::new(&profile, 2, network);
    pair.ends[0].unwritten = 200_000_000;
    (0..90).for_each(|_| pair.round(Duration::from_millis(1)));
    lose.set(0b11);
    let mut before = [0; 2];
    // The state directly after the first reduction of each path's window, or after 60 ms without
    // one.
    let mut after: Vec<Option<(u64, &'static str)>> = vec![None; 2];
    for round in 0..60 {
        pair.round(Duration::from_millis(1));
        let stats = pair.ends[0].connection().expect("open").stats();
        for (at, path) in stats.paths.iter().enumerate() {
            if after[at].is_none() && (path.cwnd < before[at] || round == 59) {
                after[at] = Some((path.cwnd * 100 / before[at].max(1), path.phase));
            }
            before[at] = path.cwnd;
        }
    }
    after.into_iter().flatten().collect()
}

#[test]
fn each_path_of_ptcp_runs_what_it_was_given() {
    let reno = 49..=51;
    let cubic = 69..=71;
    let [mixed, swapped] = [["cubic", "reno"], ["reno", "cubic"]].map(after_one_loss);
    assert!(cubic.contains(&mixed[0].0) && reno.contains(&mixed[1].0), "{mixed:?}");
    assert!(reno.contains(&swapped[0].0) && cubic.contains(&swapped[1].0), "{swapped:?}");
    // BBR does not treat a single loss as congestion, and its states have other names.
    let bbr = after_one_loss(["cubic", "bbr"]);
    assert!(cubic.contains(&bbr[0].0), "{bbr:?}");
    assert!(["startup", "drain", "probe-bw"].contains(&bbr[1].1), "{bbr:?}");
}
