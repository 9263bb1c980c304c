//! Tests of DSR on a few stations, one mechanism at a time and without transports.

mod multipath;

use super::*;
use crate::wireless::mesh::Route;
use crate::wireless::{AirConfig, Fixed, Motion, Position, Waypoints};
use anabranch_types::Ecn;

/// Stations in a row, 200 m from one to the next, so that each hears only its neighbours.
fn row(stations: u16) -> Box<dyn Motion> {
    let place = |at| Position::new(200.0 * f64::from(at), 0.0);
    Box::new(Fixed((0..stations).map(place).collect()))
}

/// Stations with two routes from 0 to 4: 0 – 1 – 2 – 4 and 0 – 1 – 3 – 4. Station 2 leaves at 5 s
/// and is 10 km away within a second.
fn branch() -> Box<dyn Motion> {
    let places = [(0, 0), (200, 0), (350, 120), (350, -120), (500, 0)];
    let mut text = String::new();
    for (station, (x, y)) in places.iter().enumerate() {
        text += &format!("$node_({station}) set X_ {x}\n$node_({station}) set Y_ {y}\n");
    }
    text += "$ns_ at 5.0 \"$node_(2) setdest 350 10120 10000\"\n";
    Box::new(text.parse::<Waypoints>().expect("a movement file"))
}

fn mesh(motion: Box<dyn Motion>, routing: &RoutingConfig) -> MeshAgent {
    let count = motion.stations() as u16;
    let air = Air::new(&AirConfig::default(), motion, 7).expect("an air");
    let mut mesh = MeshAgent::new(air, count, routing, 7);
    for station in &mut mesh.stations {
        station.start(&mut mesh.net);
    }
    mesh
}

/// Makes station `from` send a packet of 540 bytes to station `to` at `millis`.
fn send(mesh: &mut MeshAgent, millis: u64, from: u16, to: u16) {
    mesh.advance(Time::from_millis(millis));
    let (ecn, payload) = (Ecn::NotEct, Payload::Filler);
    let data = Data { port: 0, stream: 0, size: 540, ecn, payload };
    let packet = Packet { lifetime: LIFETIME, ..Packet::new(from, to, Load::Data(Arc::new(data))) };
    let token = mesh.net.insert(packet);
    mesh.stations[usize::from(from)].originate(&mut mesh.net, token);
}

/// The routes of the packets that arrive by `millis`.
fn arrivals(mesh: &mut MeshAgent, millis: u64) -> Vec<Route> {
    mesh.advance(Time::from_millis(millis));
    let tokens = core::mem::take(&mut mesh.net.arrived);
    let take = |token| mesh.net.packets.remove(token).map(|packet| packet.route);
    tokens.into_iter().filter_map(take).collect()
}

fn known(mesh: &MeshAgent, at: u16, to: u16) -> Option<Route> {
    mesh.stations[usize::from(at)].cache.clone().find(to, false)
}

#[test]
fn a_route_is_asked_for_found_and_used() {
    let mut mesh = mesh(row(4), &RoutingConfig::dsr());
    send(&mut mesh, 0, 0, 3);
    assert_eq!(arrivals(&mut mesh, 1000), [Route::new(&[0, 1, 2, 3])]);
    let counters = *mesh.counters();
    assert_eq!((counters.limited_requests, counters.requests), (1, 1), "neighbours first");
    assert_eq!((counters.requests_forwarded, counters.replies), (2, 1));
    assert_eq!(counters.replies_received, 1);
    // One limited request, one request that is forwarded twice, and one reply over three hops.
    assert_eq!(counters.routing_transmissions, 1 + 3 + 3);
    assert_eq!(counters.data_transmissions, 3);
    // The destination knows the reverse route, and the stations in between know their part of the
    // route.
    assert_eq!(known(&mesh, 3, 0), Some(Route::new(&[3, 2, 1, 0])));
    assert_eq!(known(&mesh, 1, 3), Some(Route::new(&[1, 2, 3])));
    // The next packet finds the route in the cache, and afterwards no packet is stored.
    send(&mut mesh, 1000, 0, 3);
    assert_eq!(arrivals(&mut mesh, 2000).len(), 1);
    assert_eq!(mesh.counters().requests, 1);
    assert_eq!(mesh.net.packets.len(), 0);
}

#[test]
fn a_neighbour_is_found_without_a_flood() {
    let mut mesh = mesh(row(4), &RoutingConfig::dsr());
    send(&mut mesh, 0, 0, 1);
    assert_eq!(arrivals(&mut mesh, 1000), [Route::new(&[0, 1])]);
    let counters = mesh.counters();
    assert_eq!((counters.limited_requests, counters.requests), (1, 0));
    assert_eq!(counters.requests_forwarded, 0);
}

#[test]
fn everybody_is_asked_at_once_if_neighbours_are_not_asked_first() {
    let routing = RoutingConfig { neighbours_first: None, ..RoutingConfig::dsr() };
    let mut mesh = mesh(row(4), &routing);
    send(&mut mesh, 0, 0, 3);
    assert_eq!(arrivals(&mut mesh, 1000).len(), 1);
    assert_eq!((mesh.counters().limited_requests, mesh.counters().requests), (0, 1));
}

#[test]
fn stations_answer_for_others_from_their_cache_if_they_may() {
    for may in [true, false] {
        let routing =
            RoutingConfig { reply_from_cache: may, overhear: false, ..RoutingConfig::dsr() };
        let mut mesh = mesh(row(6), &routing);
        send(&mut mesh, 0, 1, 5);
        assert_eq!(arrivals(&mut mesh, 1000).len(), 1, "{may}");
        let before = *mesh.counters();
        send(&mut mesh, 1000, 0, 5);
        assert_eq!(arrivals(&mut mesh, 2000), [Route::new(&[0, 1, 2, 3, 4, 5])], "{may}");
        let after = *mesh.counters();
        assert_eq!(after.cache_replies - before.cache_replies, u64::from(may));
        assert_eq!(after.replies - before.replies, u64::from(!may));
    }
}

#[test]
fn packets_find_their_way_around_a_failed_link() {
    for overhear in [true, false] {
        let routing = RoutingConfig { overhear, ..RoutingConfig::dsr() };
        let mut mesh = mesh(branch(), &routing);
        send(&mut mesh, 0, 0, 4);
        let first = arrivals(&mut mesh, 4000);
        assert_eq!(first.len(), 1);
        // Make stations 0 and 1 use the route over station 2, whatever route was found.
        let way = Route::new(&[0, 1, 2, 4]);
        for (station, at) in [(0_usize, 0), (1, 1)] {
            mesh.stations[station].cache = Default::default();
            mesh.stations[station].cache.add(&way.from(at));
        }
        send(&mut mesh, 7000, 0, 4);
        let second = arrivals(&mut mesh, 9000);
        assert_eq!(second.len(), 1, "overhear {overhear}");
        assert!(second[0].contains(3) && !second[0].contains(2), "{second:?}");
        let counters = mesh.counters();
        // The second packet failed once at station 1, which told station 0 and kept the packet
        // until it had found a route.
        assert_eq!((counters.link_failures, counters.errors, counters.salvaged), (1, 1, 0));
        assert_eq!(known(&mesh, 0, 2), None, "{:?}", known(&mesh, 0, 2));
    }
}

#[test]
fn a_station_salvages_with_a_route_that_it_knows_if_it_may() {
    for may in [true, false] {
        let routing = RoutingConfig { salvage: may, arp: false, ..RoutingConfig::dsr() };
        let mut mesh = mesh(branch(), &routing);
        mesh.stations[0].cache.add(&Route::new(&[0, 1, 2, 4]));
        mesh.stations[1].cache.add(&Route::new(&[1, 3, 4]));
        send(&mut mesh, 7000, 0, 4);
        let arrived = arrivals(&mut mesh, 9000);
        let counters = mesh.counters();
        assert_eq!(counters.salvaged, u64::from(may));
        assert_eq!(counters.errors, 1);
        if may {
            assert_eq!(arrived, [Route::new(&[1, 3, 4])], "the new route begins at the salvager");
        } else {
            assert_eq!((arrived.len(), counters.drops.no_route), (0, 1));
        }
    }
}

#[test]
fn packets_without_a_route_wait_while_requests_become_rare() {
    let far = Fixed(vec![Position::new(0.0, 0.0), Position::new(5000.0, 0.0)]);
    let mut mesh = mesh(Box::new(far), &RoutingConfig::dsr());
    for _ in 0..66 {
        send(&mut mesh, 0, 0, 1);
    }
    assert_eq!(mesh.counters().drops.send_buffer, 2, "room for 64");
    assert_eq!(arrivals(&mut mesh, 29_900).len(), 0);
    // Requests are sent at 0, 2, 10 and 20 s.
    assert_eq!((mesh.counters().limited_requests, mesh.counters().requests), (4, 4));
    assert_eq!(mesh.counters().drops.expired, 0);
    mesh.advance(Time::from_millis(30_100));
    assert_eq!(mesh.counters().drops.expired, 64);
    assert_eq!(mesh.net.packets.len(), 0);
}

#[test]
fn a_route_is_shortened_when_the_packet_is_heard_before_its_turn() {
    for may in [true, false] {
        let close = [0.0, 120.0, 240.0].map(|x| Position::new(x, 0.0));
        let routing = RoutingConfig { shorten: may, ..RoutingConfig::dsr() };
        let mut mesh = mesh(Box::new(Fixed(close.to_vec())), &routing);
        mesh.stations[0].cache.add(&Route::new(&[0, 1, 2]));
        send(&mut mesh, 0, 0, 2);
        assert_eq!(arrivals(&mut mesh, 500), [Route::new(&[0, 1, 2])]);
        assert_eq!(mesh.counters().shortenings, u64::from(may));
        send(&mut mesh, 500, 0, 2);
        let expected = if may { Route::new(&[0, 2]) } else { Route::new(&[0, 1, 2]) };
        assert_eq!(arrivals(&mut mesh, 1000), [expected]);
    }
}

#[test]
fn addresses_are_resolved_once() {
    for arp in [true, false] {
        let routing = RoutingConfig { arp, ..RoutingConfig::dsr() };
        let mut mesh = mesh(row(2), &routing);
        for at in 0..5 {
            send(&mut mesh, 100 * at, 0, 1);
        }
        assert_eq!(arrivals(&mut mesh, 1000).len(), 5);
        // One request and one reply are sent, because the neighbour learns the sender's address
        // from the request.
        assert_eq!(mesh.counters().arp, if arp { 2 } else { 0 });
    }
}

#[test]
fn stations_that_overhear_learn_routes_of_others() {
    for overhear in [true, false] {
        // Station 3 hears the packets of stations 0 and 1.
        let places = [(0.0, 0.0), (200.0, 0.0), (400.0, 0.0), (100.0, 150.0)];
        let places = places.map(|(x, y)| Position::new(x, y)).to_vec();
        let routing = RoutingConfig { overhear, ..RoutingConfig::dsr() };
        let mut mesh = mesh(Box::new(Fixed(places)), &routing);
        mesh.stations[0].cache.add(&Route::new(&[0, 1, 2]));
        send(&mut mesh, 0, 0, 2);
        assert_eq!(arrivals(&mut mesh, 500).len(), 1);
        // From the packet of station 0, station 3 learns the route through station 0.
        let expected = overhear.then(|| Route::new(&[3, 0, 1, 2]));
        assert_eq!(known(&mesh, 3, 2), expected);
    }
}

#[test]
fn the_error_heard_last_goes_with_the_next_request() {
    for late in [false, true] {
        let routing = RoutingConfig { overhear: false, arp: false, ..RoutingConfig::dsr() };
        let mut mesh = mesh(branch(), &routing);
        mesh.stations[0].cache.add(&Route::new(&[0, 1, 2, 4]));
        // Station 3 still has a route over the failed link. It learns of the failure only from the
        // error that the next flooded request carries.
        mesh.stations[3].cache.add(&Route::new(&[3, 1, 2]));
        send(&mut mesh, 7000, 0, 4);
        assert_eq!(arrivals(&mut mesh, 7500).len(), 0);
        assert_eq!(mesh.counters().errors, 1);
        // Requests carry an error for one second.
        send(&mut mesh, if late { 8500 } else { 7500 }, 0, 4);
        // Station 1 learns the new route, too, and sends the first packet after the second.
        assert_eq!(arrivals(&mut mesh, 9000).len(), 2);
        assert_eq!(known(&mesh, 3, 2).is_some(), late);
    }
}
