//! Tests of the use of several routes at once.

use super::*;
use crate::wireless::mesh::{AckRoute, Answers, Forwarding, Renewal, RouteUse, Separation};
use anabranch_tcp::{Flags, Segment};
use anabranch_types::Probability;
use core::time::Duration;

/// The ring of the M-TCP paper: 14 stations, 200 m from one to the next, which hear only their
/// neighbours.
fn ring() -> Box<dyn Motion> {
    Box::new(Fixed::circle(14, 449.4))
}

/// Two rows from 0 to 7, each station `apart` metres from the one in the other row:
/// 0 – 1 – 2 – 3 – 7 and 0 – 4 – 5 – 6 – 7.
fn rows(apart: f64) -> Box<dyn Motion> {
    let row = |side: f64| [150.0, 350.0, 550.0].map(|x| Position::new(x, side * apart / 2.0));
    let mut places = vec![Position::new(0.0, 0.0)];
    places.extend(row(1.0));
    places.extend(row(-1.0));
    places.push(Position::new(700.0, 0.0));
    Box::new(Fixed(places))
}

/// M-TCP's routing without ARP, because with ARP the routes that are found depend on chance.
fn mtcp() -> RoutingConfig {
    RoutingConfig { arp: false, ..RoutingConfig::mtcp() }
}

fn clockwise() -> Route {
    Route::new(&[0, 13, 12, 11, 10, 9, 8, 7])
}

fn anticlockwise() -> Route {
    Route::new(&[0, 1, 2, 3, 4, 5, 6, 7])
}

/// The ring, with the routes in both directions around it known to stations 0 and 7.
fn with_two_routes(routing: &RoutingConfig) -> MeshAgent {
    let mut mesh = mesh(ring(), routing);
    for route in [anticlockwise(), clockwise()] {
        mesh.stations[0].find_for(&mesh.net, 7, &route, &[]);
        mesh.stations[7].find_for(&mesh.net, 0, &route.reversed(), &[]);
    }
    mesh
}

/// An acknowledgement from station 7 to station 0.
fn acknowledgement() -> Packet {
    let payload = Payload::Segment(Segment { flags: Flags::ACK, ..Segment::EMPTY });
    let data = Data { port: 1, stream: 0, size: 40, ecn: Ecn::NotEct, payload };
    Packet { lifetime: LIFETIME, ..Packet::new(7, 0, Load::Data(Arc::new(data))) }
}

#[test]
fn both_ways_around_the_ring_are_found_and_carry_copies() {
    let mut mesh = mesh(ring(), &mtcp());
    send(&mut mesh, 0, 0, 7);
    // The first packet leaves when the first reply arrives.
    assert_eq!(arrivals(&mut mesh, 1000).len(), 1);
    assert_eq!((mesh.counters().requests, mesh.counters().replies), (1, 2));
    assert_eq!((mesh.counters().limited_requests, mesh.counters().cache_replies), (0, 0));
    send(&mut mesh, 1000, 0, 7);
    let mut second = arrivals(&mut mesh, 2000);
    second.sort_by_key(|route| route.get(1));
    assert_eq!(second, [anticlockwise(), clockwise()]);
    assert_eq!(mesh.counters().copies, 1);
    assert_eq!(mesh.net.packets.len(), 0);
}

#[test]
fn a_destination_may_drop_the_second_copy() {
    let routing = RoutingConfig { drop_copies: true, ..mtcp() };
    let mut mesh = with_two_routes(&routing);
    for at in 0..3 {
        send(&mut mesh, 100 * at, 0, 7);
        assert_eq!(arrivals(&mut mesh, 100 * at + 99).len(), 1);
    }
    assert_eq!(mesh.counters().copies, 3);
    assert_eq!(mesh.counters().copies_dropped, 3);
}

#[test]
fn copies_may_be_sent_only_while_acknowledgements_are_missing() {
    let jitter = Duration::from_millis(1);
    let above = Probability::clamped(0.2);
    let routing = RoutingConfig { routes: RouteUse::CopiesIfLossy { jitter, above }, ..mtcp() };
    let mut mesh = with_two_routes(&routing);
    let copies = |mesh: &mut MeshAgent, packets: std::ops::Range<u64>, answered: bool| {
        let before = mesh.counters().copies;
        for at in packets {
            send(mesh, 100 * at, 0, 7);
            for _ in arrivals(mesh, 100 * at + 60).iter().filter(|_| answered) {
                let packet = acknowledgement();
                let token = mesh.net.insert(packet);
                mesh.stations[7].originate(&mut mesh.net, token);
            }
            arrivals(mesh, 100 * at + 99);
        }
        mesh.counters().copies - before
    };
    assert_eq!(copies(&mut mesh, 0..64, true), 0, "nothing is lost");
    assert_eq!(copies(&mut mesh, 64..95, false), 0, "the round is not over");
    assert!(copies(&mut mesh, 95..128, false) > 0, "nothing comes back");
    copies(&mut mesh, 128..300, true);
    assert_eq!(copies(&mut mesh, 300..332, true), 0, "all comes back");
}

#[test]
fn scattered_packets_take_turns() {
    let routing = RoutingConfig { routes: RouteUse::Scatter, ..mtcp() };
    let mut mesh = with_two_routes(&routing);
    for at in 0..4 {
        send(&mut mesh, 100 * at, 0, 7);
        let expected = if at % 2 == 0 { anticlockwise() } else { clockwise() };
        assert_eq!(arrivals(&mut mesh, 100 * at + 99), [expected]);
    }
    assert_eq!(mesh.counters().copies, 0);
}

#[test]
fn a_backup_waits_until_the_first_route_fails() {
    let routing = RoutingConfig { routes: RouteUse::Backup, ..mtcp() };
    let mut mesh = with_two_routes(&routing);
    send(&mut mesh, 0, 0, 7);
    send(&mut mesh, 100, 0, 7);
    assert_eq!(arrivals(&mut mesh, 200), [anticlockwise(); 2]);
    mesh.stations[0].forget_link(&mesh.net, 3, 4);
    send(&mut mesh, 200, 0, 7);
    assert_eq!(arrivals(&mut mesh, 300), [clockwise()]);
    assert_eq!(mesh.counters().requests, 0);
}

#[test]
fn one_route_is_used_as_by_dsr_and_renewed_if_so_configured() {
    for renewal in [Renewal::NoRoute, Renewal::OneRoute] {
        let mut mesh = mesh(row(4), &RoutingConfig { renewal, ..mtcp() });
        send(&mut mesh, 0, 0, 3);
        assert_eq!(arrivals(&mut mesh, 1000), [Route::new(&[0, 1, 2, 3])]);
        for at in 1..=20 {
            send(&mut mesh, 1000 * at, 0, 3);
            assert_eq!(arrivals(&mut mesh, 1000 * at + 900).len(), 1);
        }
        let counters = mesh.counters();
        assert_eq!(counters.copies, 0);
        // The first packet causes another request when it has its route, and then one packet every
        // two seconds does, from 3 s to 19 s.
        let expected = if renewal == Renewal::NoRoute { 1 } else { 11 };
        assert_eq!(counters.requests, expected);
    }
}

#[test]
fn neighbours_told_in_replies_keep_close_routes_apart() {
    // At 200 m the rows hear each other, at 280 m they do not. Both ends hear the nearest station
    // of each row.
    for (apart, separation, copies) in [
        (200.0, Separation::TwoHops, 0),
        (200.0, Separation::Stations, 1),
        (280.0, Separation::TwoHops, 1),
    ] {
        let routing = RoutingConfig { separation, ..mtcp() };
        // In this run, both requests reach the destination.
        let mut mesh = mesh(rows(apart), &routing);
        send(&mut mesh, 0, 0, 7);
        arrivals(&mut mesh, 1000);
        assert_eq!(mesh.counters().replies_received, 2, "{apart}");
        send(&mut mesh, 1000, 0, 7);
        arrivals(&mut mesh, 2000);
        assert_eq!(mesh.counters().copies, copies, "{apart} {separation:?}");
    }
}

#[test]
fn copies_of_requests_go_on_as_the_rule_has_it() {
    // Copies of one request, each with its number of hops so far and the neighbour that it comes
    // from.
    let copies = [(4, 1), (4, 2), (5, 3), (3, 1), (3, 2), (2, 1), (3, 4)];
    for (rule, expected) in [
        (Forwarding::First, [true, false, false, false, false, false, false]),
        (Forwarding::FewerHops, [true, false, false, true, false, true, false]),
        (Forwarding::OtherLink, [true, true, false, false, true, false, true]),
    ] {
        let mut mesh = mesh(row(2), &RoutingConfig::dsr());
        let station = &mut mesh.stations[0];
        let goes_on = copies.map(|copy| station.is_worth_forwarding(rule, (9, 1), copy));
        assert_eq!(goes_on, expected, "{rule:?}");
        assert!(station.is_worth_forwarding(rule, (9, 2), (6, 1)), "a new request");
        assert!(!station.is_worth_forwarding(rule, (9, 1), (1, 5)), "an old one");
    }
}

#[test]
fn an_smr_destination_answers_a_second_time_after_a_wait() {
    let routing = RoutingConfig { arp: false, ..RoutingConfig::smr() };
    assert_eq!(routing.answers, Answers::MaximallyDisjoint { wait: Duration::from_millis(100) });
    let mut mesh = mesh(ring(), &routing);
    send(&mut mesh, 0, 0, 7);
    arrivals(&mut mesh, 100);
    assert_eq!(mesh.counters().replies, 1);
    arrivals(&mut mesh, 1000);
    assert_eq!(mesh.counters().replies, 2);
}

#[test]
fn acknowledgements_take_the_way_that_is_wanted() {
    for (rule, expected) in [
        (AckRoute::Shortest, vec![clockwise().reversed()]),
        (AckRoute::Arrival, vec![anticlockwise().reversed()]),
        (AckRoute::LikeData, vec![anticlockwise().reversed(), clockwise().reversed()]),
    ] {
        let routing = RoutingConfig { acknowledgements: rule, routes: RouteUse::Backup, ..mtcp() };
        let mut mesh = with_two_routes(&routing);
        mesh.stations[7].cache.add(&clockwise().reversed());
        send(&mut mesh, 0, 0, 7);
        assert_eq!(arrivals(&mut mesh, 100), [anticlockwise()]);
        mesh.net.config.routes = RouteUse::Copies { jitter: Duration::from_millis(1) };
        let packet = acknowledgement();
        let token = mesh.net.insert(packet);
        mesh.stations[7].originate(&mut mesh.net, token);
        let mut routes = arrivals(&mut mesh, 300);
        routes.sort_by_key(|route| route.get(1));
        assert_eq!(routes, expected, "{rule:?}");
    }
}
