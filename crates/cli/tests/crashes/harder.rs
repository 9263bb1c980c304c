//! Kills in harder cases: both sides at once, a side that is away for long, links that lose one
//! packet in ten or have long delays, and a link that dies meanwhile.

use std::time::Duration;

use super::place::{LONG, LOSSY, Links, Place};
use super::transfer::{GET, Kill, SEND, kill_all};
use super::tunnel::{a_server_is_found_again, kill_both, kill_for_long};

const SOON: Duration = Duration::from_millis(300);
const LATE: Duration = Duration::from_secs(10);
const LISTENER: Kill = Kill { away: SOON, few: 1, ..Kill::LISTENER };
const CONNECTOR: Kill = Kill { away: SOON, few: 1, ..Kill::CONNECTOR };
const BOTH: Kill = Kill { listener: true, ..CONNECTOR };

#[test]
fn both_sides_of_a_tunnel_are_killed() {
    for remote in [false, true] {
        kill_both(&Place::loopback(), 21, remote);
    }
}

#[test]
fn both_sides_of_a_tunnel_are_killed_beyond_links() {
    let Some(place) = Place::apart("kbo") else { return };
    kill_both(&place, 22, false);
    kill_both(&place, 23, true);
}

#[test]
fn both_sides_of_a_transfer_are_killed() {
    kill_all(Some(Place::loopback()), SEND, BOTH, 24);
    kill_all(Place::apart("kbs"), SEND, BOTH, 25);
    kill_all(Place::apart("kbg"), GET, BOTH, 26);
}

#[test]
fn a_server_that_was_away_for_long_is_found_at_once() {
    for remote in [false, true] {
        kill_for_long(&Place::loopback(), 31, (remote, false));
    }
    let Some(place) = Place::apart("kaw") else { return };
    kill_for_long(&place, 32, (false, false));
}

#[test]
fn a_transfer_whose_side_was_away_for_long_goes_on_at_once() {
    let away = |kill| Kill { away: LATE, ..kill };
    kill_all(Place::apart("kal"), SEND, away(LISTENER), 33);
    kill_all(Place::apart("kac"), GET, away(CONNECTOR), 34);
}

#[test]
fn work_goes_on_where_one_of_two_links_has_died() {
    let dead = |kill| Kill { loses_a_link: true, ..kill };
    for (seed, kill) in (41..).zip([LISTENER, CONNECTOR]) {
        kill_all(Place::apart("kds"), SEND, dead(kill), seed);
        kill_all(Place::apart("kdg"), GET, dead(kill), seed);
    }
    let Some(place) = Place::apart("kdt") else { return };
    kill_for_long(&place, 43, (false, true));
}

#[test]
fn work_goes_on_where_links_lose_one_packet_in_ten() {
    kill_beyond(LOSSY, ["kls", "klg", "klt"], 51);
}

#[test]
fn work_goes_on_where_round_trips_take_long() {
    kill_beyond(LONG, ["krs", "krg", "krt"], 61);
}

/// Kills each side of transfers, and the server of a tunnel, with these links between the sides. Network namespaces are
/// named after the tests.
fn kill_beyond(links: Links, [send, get, tunnel]: [&str; 3], first_seed: u64) {
    for (seed, kill) in (first_seed..).zip([LISTENER, CONNECTOR]) {
        kill_all(Place::beyond(send, links), SEND, kill, seed);
        kill_all(Place::beyond(get, links), GET, kill, seed);
    }
    let Some(place) = Place::beyond(tunnel, links) else { return };
    a_server_is_found_again(&place, first_seed + 2);
}
