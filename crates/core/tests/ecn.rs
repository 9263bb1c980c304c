//! Tests of ECN validation before and after the route of a path changes (RFC 9000 §13.4.2).

use anabranch_core::connection::EcnStats;
use anabranch_core::path::received::Ecn;
use anabranch_core::path::{PathAddress, SocketId};
use anabranch_core::profiles::Profile;
use anabranch_core::testing::{Network, Pair, Sent, address};
use anabranch_types::{PathId, Time};
use core::time::Duration;

/// A network that clears the ECN marks of all datagrams, or of none.
struct Bleaching(bool);

impl Network for Bleaching {
    fn carry(&mut self, sent: &Sent<'_>) -> Option<(Time, Ecn)> {
        let ecn = if self.0 { Ecn::NotEct } else { sent.ecn };
        Some((sent.now + Duration::from_millis(10), ecn))
    }
}

fn transfer(pair: &mut Pair<Bleaching>, bytes: u64) -> EcnStats {
    pair.ends[0].unwritten += bytes;
    let end = pair.ends[1].read + bytes;
    while pair.ends[1].read < end || !pair.ends[0].connection().unwrap().is_drained() {
        pair.round(Duration::from_millis(1));
        assert!(pair.now < Time::from_secs(60));
    }
    pair.ends[0].connection().unwrap().stats().paths[0].ecn
}

/// Moves the first end's path to another route, which clears marks if `bleaches` is set.
fn reroute(pair: &mut Pair<Bleaching>, bleaches: bool) {
    pair.network.0 = bleaches;
    let address = PathAddress { socket: SocketId(0), remote: address(1, 0) };
    let now = pair.now;
    pair.ends[0].connection().unwrap().move_path(now, PathId(0), address);
}

fn pair(bleaches: bool) -> Pair<Bleaching> {
    Pair::new(&Profile::named("anabranch").unwrap(), 1, Bleaching(bleaches))
}

#[test]
fn marks_that_do_not_arrive_are_given_up() {
    assert!(transfer(&mut pair(false), 100_000).capable);
    let after = transfer(&mut pair(true), 100_000);
    assert!(!after.capable && after.arrived == 0 && after.sent >= 10, "{after:?}");
}

#[test]
fn a_new_way_that_bleaches_is_found_out() {
    let mut pair = pair(false);
    let before = transfer(&mut pair, 100_000);
    assert!(before.capable && before.arrived > 50, "{before:?}");
    reroute(&mut pair, true);
    let after = transfer(&mut pair, 100_000);
    assert!(!after.capable && after.sent < before.sent + 50, "{before:?}, then {after:?}");
}

#[test]
fn a_new_way_is_not_blamed_for_the_old_one() {
    let mut pair = pair(true);
    pair.ends[0].unwritten = 100_000;
    while pair.ends[1].read < 30_000 {
        pair.round(Duration::from_millis(1));
    }
    assert!(!pair.ends[0].connection().unwrap().stats().paths[0].ecn.capable);
    reroute(&mut pair, false);
    let after = transfer(&mut pair, 100_000);
    assert!(after.capable && after.arrived > 50, "{after:?}");
}

/// Marks of packets that were in flight on the old route must not count for the new route.
#[test]
fn what_was_under_way_does_not_count_for_the_new_way() {
    let mut pair = pair(false);
    pair.ends[0].unwritten = 100_000;
    while pair.ends[1].read < 30_000 {
        pair.round(Duration::from_millis(1));
    }
    assert!(pair.flying.iter().any(|datagram| datagram.to == 1 && datagram.ecn == Ecn::Ect0));
    reroute(&mut pair, true);
    assert!(!transfer(&mut pair, 100_000).capable);
}
