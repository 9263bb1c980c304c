//! Tests that each path has its own connection id, so that an observer cannot use it to find out
//! which paths belong together.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use anabranch_core::config::TransportConfig;
use anabranch_core::connection::ConnectionStats;
use anabranch_core::crypto::null::NullCrypto;
use anabranch_core::endpoint::{Datagram, EndpointConfig};
use anabranch_core::handshake::{Initiator, Opening, Permitted, Schedule};
use anabranch_core::path::received::Ecn;
use anabranch_core::path::{PathAddress, SocketId};
use anabranch_core::profiles::Profile;
use anabranch_core::testing::{Network, Pair, Rogue, Sent, address, endpoint, written};
use anabranch_core::wire::header::connection_of;
use anabranch_core::wire::{CloseCode, ConnectionId, ControlFrame, StreamId, TransportParameters};
use anabranch_policy::view::PathState;
use anabranch_types::{PathId, Rng, Time};
use core::time::Duration;

/// For each id, the side and the socket that sent packets under it. Each path in these tests has
/// its own socket.
type Seen = Rc<RefCell<BTreeMap<ConnectionId, (usize, u32)>>>;

/// A network that loses and reorders packets and records their connection ids.
struct Tapped {
    seen: Seen,
    rng: Rng,
    /// Loss in per cent.
    loss: u64,
}

impl Network for Tapped {
    fn carry(&mut self, sent: &Sent<'_>) -> Option<(Time, Ecn)> {
        if let Some(id) = connection_of(sent.payload) {
            let here = (sent.side, sent.path);
            let first = *self.seen.borrow_mut().entry(id).or_insert(here);
            assert_eq!(first, here, "{id:?} was seen on two paths");
        }
        let delay = Duration::from_millis(5 + self.rng.below(20));
        (self.rng.below(100) >= self.loss).then_some((sent.now + delay, sent.ecn))
    }
}

/// Two ends connected over `paths` paths of at most `max_paths`, and the ids that an observer sees.
fn tapped(loss: u64, paths: u32, max_paths: u8) -> (Pair<Tapped>, Seen) {
    let seen = Seen::default();
    let network = Tapped { seen: Rc::clone(&seen), rng: Rng::new(7), loss };
    let mut config = EndpointConfig::new(Profile::named("anabranch").unwrap());
    config.transport.max_paths = max_paths;
    config.transport.notice_silence = true;
    let mut pair = Pair::with(config, paths, network);
    rounds(&mut pair, 200);
    assert!(pair.ends.iter_mut().all(|end| end.connection().is_some()), "connected");
    (pair, seen)
}

fn rounds(pair: &mut Pair<Tapped>, count: u32) {
    for _ in 0..count {
        pair.round(Duration::from_millis(2));
    }
}

/// Opens a path through its own socket; `None` if the connection does not allow it.
fn open(pair: &mut Pair<Tapped>, socket: u32) -> Option<PathId> {
    let (now, to) =
        (pair.now, PathAddress { socket: SocketId(socket), remote: address(1, socket) });
    pair.ends[0].connection().unwrap().add_path(now, to).ok()
}

fn state(pair: &mut Pair<Tapped>, side: usize, path: PathId) -> Option<PathState> {
    let stats = pair.ends[side].connection()?.stats();
    stats.paths.iter().find(|known| known.id == path).map(|known| known.state)
}

#[test]
fn no_id_is_seen_on_two_paths_however_many_come_and_go() {
    for loss in [0, 20] {
        let (mut pair, seen) = tapped(loss, 2, 4);
        let mut open_paths = vec![PathId(0), PathId(1)];
        for socket in 2..80 {
            // Most paths carry data. Some are abandoned at once, so that PATH_ABANDON is the first
            // frame about them that the responder receives.
            let path = loop {
                match open(&mut pair, socket) {
                    Some(path) => break path,
                    None => rounds(&mut pair, 1),
                }
            };
            open_paths.push(path);
            pair.ends[0].unwritten += 20_000;
            let stay = if socket % 3 == 0 { 0 } else { 60 };
            rounds(&mut pair, stay);
            if open_paths.len() > 3 || stay == 0 {
                let gone = if stay == 0 { open_paths.pop() } else { Some(open_paths.remove(0)) };
                let now = pair.now;
                pair.ends[0].connection().unwrap().remove_path(now, gone.unwrap(), 0);
                pair.ends[0].unwritten += 5000;
                rounds(&mut pair, 30);
            }
        }
        let last = *open_paths.last().unwrap();
        rounds(&mut pair, 500);
        for side in 0..2 {
            assert_eq!(state(&mut pair, side, last), Some(PathState::Active), "of end {side}");
        }
        assert_eq!((pair.ends[0].unwritten, pair.ends[1].read), (0, pair.ends[0].written));
        let ids = seen.borrow();
        let of = |side| ids.values().filter(|(sender, _)| *sender == side).count();
        // The responder sends on the paths that it knows. Each path has its own id in both
        // directions.
        assert!(of(0) > 50 && of(1) > 40, "{} and {} ids", of(0), of(1));
        println!("loss {loss} %: {} and {} ids", of(0), of(1));
    }
}

/// The only path is abandoned, and the frame with the id of the next path is lost with it.
#[test]
fn the_only_path_may_be_replaced_again_and_again() {
    let (mut pair, _) = tapped(0, 1, 2);
    let mut last = PathId(0);
    for socket in 2..40 {
        let now = pair.now;
        pair.ends[0].connection().unwrap().remove_path(now, last, 0);
        pair.ends[0].unwritten += 5000;
        pair.network.loss = 60;
        last = open(&mut pair, socket).expect("both sides have ids for one path more");
        rounds(&mut pair, 50);
        pair.network.loss = 0;
        rounds(&mut pair, 400);
        for side in 0..2 {
            assert_eq!(state(&mut pair, side, last), Some(PathState::Active), "of end {side}");
        }
    }
    assert_eq!((pair.ends[0].unwritten, pair.ends[1].read), (0, pair.ends[0].written));
    assert!(last.0 > 30, "more than the handshake supplied ids for");
}

fn rogue(parameters: &TransportParameters) -> Rogue {
    Rogue::connect(TransportConfig::default(), "anabranch", parameters)
}

fn parameters() -> TransportParameters {
    TransportConfig::default().parameters("anabranch")
}

fn frame(frame: ControlFrame) -> Vec<u8> {
    written(|writer| frame.encode(writer).unwrap())
}

fn new_id(path: u32, id: u32) -> Vec<u8> {
    frame(ControlFrame::NewConnectionId { path: PathId(path), id: ConnectionId(id) })
}

fn abandon(path: u32) -> Vec<u8> {
    frame(ControlFrame::PathAbandon { path: PathId(path), reason: 0 })
}

#[test]
fn a_packet_under_the_id_of_another_path_is_dropped() {
    let mut rogue = rogue(&parameters());
    let id = |rogue: &Rogue, path| rogue.supplied(path).unwrap();
    rogue.send(1, &[0x01]);
    // Packets under the id of another open path, of a path that is not open, and of no path.
    for (path, under) in [(0, id(&rogue, 1)), (1, id(&rogue, 0)), (1, id(&rogue, 5))]
        .into_iter()
        .chain([(2, id(&rogue, 0)), (2, ConnectionId(0x1234_5678))])
    {
        let before = rogue.connection().unwrap().stats();
        rogue.send_under(
            under,
            path,
            &frame(ControlFrame::StopSending { stream: StreamId(8), code: 0 }),
        );
        let after = rogue.connection().unwrap().stats();
        assert_eq!(after.paths.len(), before.paths.len());
        let received = |stats: &ConnectionStats| -> u64 {
            stats.paths.iter().map(|path| path.counters.received_packets).sum()
        };
        assert_eq!(received(&after), received(&before), "path {path} under {under:?}");
    }
    assert_eq!(rogue.closed(), None);
    rogue.send(2, &[0x01]);
    assert_eq!(rogue.connection().unwrap().stats().paths.len(), 3);
}

#[test]
fn ids_that_contradict_or_reach_too_far_close() {
    let code = |packets: &[Vec<u8>]| {
        let mut rogue = rogue(&parameters());
        packets.iter().for_each(|packet| rogue.send(0, packet));
        rogue.closed().map(|reason| reason.code)
    };
    let violation = Some(CloseCode::PROTOCOL_VIOLATION);
    // Repeated ids, and ids as far ahead as is allowed, out of order.
    assert_eq!(
        code(&[new_id(3, Rogue::id(3).0), new_id(16, 16), new_id(9, 9), new_id(16, 16)]),
        None
    );
    assert_eq!(code(&[new_id(3, 3)]), violation, "another for a path");
    assert_eq!(code(&[new_id(0, 3)]), violation, "another for the first path");
    assert_eq!(code(&[new_id(9, 9), new_id(9, 10)]), violation);
    assert_eq!(code(&[new_id(9, Rogue::id(3).0)]), violation, "one for two paths");
    assert_eq!(code(&[new_id(9, Rogue::id(0).0)]), violation);
    assert_eq!(code(&[new_id(10, 9), new_id(9, 9)]), violation);
    assert_eq!(code(&[new_id(17, 17)]), violation, "too far ahead");
    assert_eq!(code(&[new_id(u32::MAX, 17)]), violation);
    // Frames about a closed path are ignored.
    assert_eq!(code(&[abandon(3), new_id(3, 3), new_id(9, Rogue::id(3).0)]), None);
    assert_eq!(code(&[abandon(8), abandon(8)]), None);
    assert_eq!(code(&[abandon(9)]), violation, "a path that cannot have been opened");
    assert_eq!(code(&[abandon(u32::MAX)]), violation);
}

#[test]
fn a_peer_whose_handshake_names_one_id_twice_gets_no_connection() {
    let mut server = EndpointConfig::new(Profile::named("anabranch").unwrap());
    server.responder.permitted = Permitted::Anyone;
    let mut server = endpoint(2, server);
    for (timestamp, ids, connections) in
        [(1, vec![7, 8], 1), (2, vec![8, 9, 8], 1), (3, vec![9, 77], 1)]
    {
        let ids = ids.into_iter().map(ConnectionId).collect();
        let parameters = TransportParameters { connection_ids: ids, ..parameters() };
        let mut crypto = NullCrypto::new([1; 32]);
        let (peer, encoded) = (server.public_key(), parameters.encode());
        let opening = Opening { peer, local_id: 77, timestamp, parameters: &encoded };
        let mut initiator =
            Initiator::new(&mut crypto, opening, Schedule::default(), Time::ZERO).unwrap();
        initiator.add_path(PathId(0), Time::ZERO);
        let mut message = Vec::new();
        assert!(initiator.poll(&crypto, PathId(0), Time::ZERO, &mut message));
        let (socket, remote, ecn) = (SocketId(0), address(0, 0), Ecn::NotEct);
        let payload = message.as_mut_slice();
        server.handle_datagram(Time::ZERO, Datagram { socket, remote, ecn, payload });
        assert_eq!(server.handles().count(), connections, "{timestamp}");
    }
}

/// The responder sends nothing on a path, not even under another id, until it knows the initiator's
/// id for the path.
#[test]
fn a_path_is_mute_until_its_id_is_known() {
    let mut rogue =
        rogue(&TransportParameters { connection_ids: vec![Rogue::id(1)], ..parameters() });
    let heard = |rogue: &mut Rogue| {
        rogue.advance(Duration::from_secs(2));
        let mut on = BTreeMap::new();
        while let Some(heard) = rogue.take() {
            assert_eq!(heard.id, Rogue::id(heard.path.0), "each path has its own");
            *on.entry(heard.path.0).or_insert(0) += 1;
        }
        on
    };
    rogue.send(1, &[0x01]);
    rogue.send(3, &frame(ControlFrame::PathChallenge { data: *b"question" }));
    let on = heard(&mut rogue);
    assert!(on.contains_key(&1) && !on.contains_key(&3), "{on:?}");
    rogue.supply(3);
    let on = heard(&mut rogue);
    assert!(on.contains_key(&3), "{on:?}");
    assert_eq!(rogue.closed(), None);
}

fn open_and_abandon(rogue: &mut Rogue, path: u32) {
    rogue.send(path, &[0x01]);
    rogue.send(0, &abandon(path));
}

/// Advances the time, acknowledges the victim's packets, and discards them.
fn rest(rogue: &mut Rogue, time: Duration) {
    rogue.advance(time);
    rogue.acknowledge(0);
    while rogue.take().is_some() {}
}

/// A peer opens and abandons paths in a row and skips some. It gets new ids only as fast as the ids
/// of closed paths become free, and none while too many of its ids are unused.
#[test]
fn ids_in_use_are_few_whatever_a_peer_does() {
    let mut rogue = rogue(&parameters());
    // A path that stays open longer than many others keeps its id.
    let mut last = 1;
    rogue.send(1, &[0x01]);
    for _ in 0..2900 {
        if rogue.supplied(last + 1).is_some() {
            last += 1;
            open_and_abandon(&mut rogue, last);
        }
        rest(&mut rogue, Duration::from_millis(1));
        let count = rogue.connection().unwrap().local_ids().count();
        assert!(count <= 96, "{count} ids");
    }
    assert_eq!(last, 95, "paths within the time for which ids of closed paths are kept");
    rogue.advance(Duration::from_secs(2));
    // The peer opens only every eighth path and sends nothing about the others.
    while rogue.supplied(last + 8).is_some() {
        last += 8;
        open_and_abandon(&mut rogue, last);
        rest(&mut rogue, Duration::from_secs(5));
    }
    let count = rogue.connection().unwrap().local_ids().count();
    assert!((80..=96).contains(&count) && last < 300, "{count} ids, path {last}");
    let received = |rogue: &mut Rogue| {
        let stats = rogue.connection().unwrap().stats();
        let path = stats.paths.iter().find(|path| path.id == PathId(1)).unwrap();
        path.counters.received_packets
    };
    let before = received(&mut rogue);
    rogue.send(1, &[0x01]);
    assert_eq!(received(&mut rogue), before + 1);
    assert_eq!(rogue.closed(), None);
}
