//! A congestion control for each path.

use anabranch_core::path::{PathAddress, SocketId};
use anabranch_core::profiles::Profile;
use anabranch_core::testing::{Pair, Sent, address};
use anabranch_policy::PolicySpec;
use anabranch_types::PathId;
use core::time::Duration;

fn policy(text: &str) -> PolicySpec {
    text.parse().unwrap()
}

/// The state of each path's controller at the end that connects: "startup" is BBR's, "slow-start" CUBIC's.
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

    // What was asked for a path outlives a change of its address.
    let moved = PathAddress { socket: SocketId(0), remote: address(1, 0) };
    pair.ends[0].connection().unwrap().move_path(now, PathId(0), moved);
    assert_eq!(phases(&mut pair), ["startup", "slow-start"]);
    pair.ends[0].unwritten = 100_000;
    settle(&mut pair);
    assert_eq!(pair.ends[1].read, 100_000);
}
