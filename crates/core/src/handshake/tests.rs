mod rates;

use super::message::{
    CookieReply, EPHEMERAL_LEN, Initiation, MAC_LEN, MAX_LEN, Response, SENDER_LEN,
};
use super::*;
use crate::crypto::null::{NullCrypto, Reproducible};
use crate::crypto::{PublicKey, Session, TAG_LEN};
use anabranch_types::{PathId, Rng, Time};
use core::net::SocketAddr;
use core::time::Duration;
use proptest::prelude::*;

const WIFI: PathId = PathId(0);
const LTE: PathId = PathId(1);

struct Client {
    crypto: NullCrypto,
    attempt: Initiator,
}

impl Client {
    fn new(key: u8, timestamp: u64, now: Time) -> Self {
        Client::keyed([key; 32], timestamp, now)
    }

    fn keyed(key: [u8; 32], timestamp: u64, now: Time) -> Self {
        let mut crypto = NullCrypto::new(key);
        let attempt = attempt(&mut crypto, timestamp, now, b"client parameters").unwrap();
        Client { crypto, attempt }
    }

    fn send(&mut self, path: PathId, now: Time) -> Vec<u8> {
        let mut out = Vec::new();
        assert!(self.attempt.poll(&self.crypto, path, now, &mut out));
        out
    }
}

fn attempt(
    crypto: &mut NullCrypto,
    timestamp: u64,
    now: Time,
    parameters: &[u8],
) -> Result<Initiator, HandshakeError> {
    let opening =
        Opening { peer: PublicKey([9; 32]), local_id: 0xc11e_4701, timestamp, parameters };
    let mut attempt = Initiator::new(crypto, opening, Schedule::default(), now)?;
    attempt.add_path(WIFI, now);
    attempt.add_path(LTE, now);
    Ok(attempt)
}

struct Server {
    crypto: NullCrypto,
    responder: Responder,
    accepted: Vec<Session>,
}

impl Server {
    fn new(config: ResponderConfig) -> Self {
        let responder = Responder::new(config, Time::ZERO, Box::new(Reproducible(Rng::new(6))));
        Server { crypto: NullCrypto::new([9; 32]), responder, accepted: Vec::new() }
    }

    fn open() -> Self {
        Server::new(ResponderConfig { permitted: Permitted::Anyone, ..Default::default() })
    }

    /// Accepts any candidate, and returns the answer, if there is one.
    fn receive(
        &mut self,
        now: Time,
        remote: SocketAddr,
        bytes: &[u8],
        under_load: bool,
    ) -> Result<Vec<u8>, DropReason> {
        let arrival = Arrival { now, remote, bytes, under_load };
        match self.responder.handle(&mut self.crypto, arrival) {
            Outcome::Drop(reason) => Err(reason),
            Outcome::Copy(_) => panic!("nothing is held"),
            Outcome::Reply(reply) => Ok(reply),
            Outcome::Candidate(candidate) => {
                assert_eq!(candidate.parameters, b"client parameters");
                let accepting = self
                    .responder
                    .accept(&self.crypto, now, candidate, 0x5e7, b"server parameters")
                    .unwrap();
                self.accepted.push(accepting.session);
                Ok(accepting.response)
            }
        }
    }
}

fn address(last: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], last))
}

/// A different host for every number.
fn host(number: u16) -> SocketAddr {
    let [high, low] = number.to_be_bytes();
    SocketAddr::from(([10, 0, high, low], 1))
}

fn crosses(sealer: &mut Session, opener: &mut Session) -> bool {
    let mut packet = b"header and body".to_vec();
    packet.extend_from_slice(&[0; TAG_LEN]);
    let path = PathId(3);
    sealer.keys.sealer.seal(path, 77, &mut packet, 7);
    opener.keys.opener.open(path, 77, &mut packet, 7).is_ok()
}

#[test]
fn a_handshake_gives_both_sides_matching_keys_ids_and_parameters() {
    let (mut client, mut server) = (Client::new(1, 100, Time::ZERO), Server::open());
    let initiation = client.send(WIFI, Time::ZERO);
    assert_eq!(initiation.len(), client.attempt.message_len());
    let response = server.receive(Time::ZERO, address(1), &initiation, false).unwrap();
    let mut established = client.attempt.on_response(&client.crypto, &response).unwrap();
    assert_eq!(established.remote_id, 0x5e7);
    assert_eq!(established.parameters, b"server parameters");
    assert_eq!(Response::parse(&response).unwrap().receiver, client.attempt.local_id());
    let [session] = &mut server.accepted[..] else { panic!("one connection") };
    assert!(crosses(&mut established.session, session));
    assert!(crosses(session, &mut established.session));
}

#[test]
fn copies_on_other_paths_get_the_same_answer_and_no_connection() {
    let (mut client, mut server) = (Client::new(1, 100, Time::ZERO), Server::open());
    let first = client.send(WIFI, Time::ZERO);
    let second = client.send(LTE, Time::ZERO);
    assert_eq!(first, second, "identical on every path");
    let answer = server.receive(Time::ZERO, address(1), &first, false).unwrap();
    for port in 2..50 {
        let again = server.receive(Time::from_secs(1), address(port), &second, false);
        assert_eq!(again.as_ref(), Ok(&answer));
    }
    assert_eq!(server.accepted.len(), 1);
}

#[test]
fn resends_double_with_jitter_until_the_attempt_fails() {
    let mut client = Client::new(1, 100, Time::ZERO);
    let mut sent = Vec::new();
    let mut now = Time::ZERO;
    client.attempt.remove_path(LTE);
    while !client.attempt.has_expired(now) {
        let mut out = Vec::new();
        assert!(client.attempt.poll(&client.crypto, WIFI, now, &mut out));
        assert!(!client.attempt.poll(&client.crypto, WIFI, now, &mut out), "not due twice");
        sent.push(now);
        let next = client.attempt.next_timeout();
        assert!(next > now);
        now = next;
    }
    assert_eq!(now, Time::from_secs(30));
    assert!(!client.attempt.poll(&client.crypto, WIFI, now, &mut Vec::new()));
    for (step, pair) in sent.windows(2).enumerate() {
        let nominal = Duration::from_millis(200 << step.min(10)).min(Duration::from_secs(1));
        let wait = pair[1].since(pair[0]);
        assert!(wait >= nominal * 3 / 4 && wait <= nominal * 5 / 4, "{step}: {wait:?}");
    }
    assert!((26..40).contains(&sent.len()), "{}", sent.len());
}

/// Durations of four hundred attempts until they complete or fail, in ascending order, with this
/// share of the messages lost in each direction.
fn durations(loss: f64, paths: &[PathId]) -> Vec<Duration> {
    let mut rng = Rng::substream(11, "loss");
    let mut taken = Vec::new();
    for run in 0..400 {
        let (mut client, mut server) = (Client::new(1, 100 + run, Time::ZERO), Server::open());
        if !paths.contains(&LTE) {
            client.attempt.remove_path(LTE);
        }
        let mut now = Time::ZERO;
        'attempt: while !client.attempt.has_expired(now) {
            for &path in paths {
                let mut out = Vec::new();
                let sent = client.attempt.poll(&client.crypto, path, now, &mut out);
                if !sent || rng.chance(loss) {
                    continue;
                }
                let remote = address(path.0 as u16);
                let response = server.receive(now, remote, &out, false).unwrap();
                if !rng.chance(loss) {
                    client.attempt.on_response(&client.crypto, &response).unwrap();
                    break 'attempt;
                }
            }
            now = client.attempt.next_timeout();
        }
        assert!(server.accepted.len() <= 1, "copies made a second connection");
        taken.push(now.since(Time::ZERO));
    }
    taken.sort();
    taken
}

#[test]
fn completes_soon_where_many_messages_are_lost() {
    for (loss, paths, half, most) in
        [(0.4, &[WIFI][..], 1, 5), (0.5, &[WIFI], 2, 8), (0.6, &[WIFI, LTE], 2, 8)]
    {
        let taken = durations(loss, paths);
        assert!(taken[200] <= Duration::from_secs(half), "half at {loss}: {:?}", taken[200]);
        assert!(taken[360] <= Duration::from_secs(most), "nine tenths at {loss}: {:?}", taken[360]);
        assert!(taken[399] < Duration::from_secs(30), "all at {loss}: {:?}", taken[399]);
    }
}

#[test]
fn a_damaged_initiation_is_never_accepted() {
    let mut client = Client::new(1, 100, Time::ZERO);
    let initiation = client.send(WIFI, Time::ZERO);
    for at in 0..initiation.len() - MAC_LEN {
        let mut server = Server::open();
        let mut bytes = initiation.clone();
        bytes[at] ^= 0x55;
        server.receive(Time::ZERO, address(1), &bytes, false).unwrap_err();
        bytes.truncate(at);
        server.receive(Time::ZERO, address(1), &bytes, false).unwrap_err();
        assert!(server.accepted.is_empty());
    }
}

#[test]
fn damaged_and_forged_responses_leave_the_attempt_intact() {
    let (mut client, mut server) = (Client::new(1, 100, Time::ZERO), Server::open());
    let initiation = client.send(WIFI, Time::ZERO);
    let response = server.receive(Time::ZERO, address(1), &initiation, false).unwrap();
    for at in 0..response.len() - MAC_LEN {
        let mut bytes = response.clone();
        bytes[at] ^= 0x55;
        client.attempt.on_response(&client.crypto, &bytes).unwrap_err();
        bytes.truncate(at);
        client.attempt.on_response(&client.crypto, &bytes).unwrap_err();
    }
    // A forger who knows our public key makes a valid first MAC around a wrong Noise message.
    let mut forged = Vec::new();
    Response::start(client.attempt.local_id(), &mut forged);
    forged.extend_from_slice(&[0xab; EPHEMERAL_LEN + SENDER_LEN + TAG_LEN]);
    message::append_mac1(&client.crypto, &PublicKey([1; 32]), &mut forged);
    forged.extend_from_slice(&[0; MAC_LEN]);
    let refused = client.attempt.on_response(&client.crypto, &forged).unwrap_err();
    assert_eq!(refused, HandshakeError::Crypto);
    client.attempt.on_response(&client.crypto, &response).unwrap();
}

/// A message with one byte changed and a valid first MAC, which anyone who knows the receiver's public key can make.
fn readdressed(crypto: &NullCrypto, receiver: PublicKey, message: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = message[..message.len() - 2 * MAC_LEN].to_vec();
    bytes[at] ^= 1;
    message::append_mac1(crypto, &receiver, &mut bytes);
    bytes.extend_from_slice(&[0; MAC_LEN]);
    bytes
}

#[test]
fn copies_with_other_connection_ids_take_nothing() {
    let (mut client, mut server) = (Client::new(1, 100, Time::ZERO), Server::open());
    let initiation = client.send(WIFI, Time::ZERO);
    for at in 4..8 {
        let copy = readdressed(&server.crypto, PublicKey([9; 32]), &initiation, at);
        let refused = server.receive(Time::ZERO, address(2), &copy, false).unwrap_err();
        assert_eq!(refused, DropReason::Crypto, "byte {at}");
    }
    let response = server.receive(Time::ZERO, address(1), &initiation, false).unwrap();
    for at in 4..response.len() - 2 * MAC_LEN {
        let copy = readdressed(&client.crypto, PublicKey([1; 32]), &response, at);
        client.attempt.on_response(&client.crypto, &copy).unwrap_err();
    }
    let established = client.attempt.on_response(&client.crypto, &response).unwrap();
    assert_eq!(established.remote_id, 0x5e7);
    assert_eq!(established.parameters, b"server parameters");
}

#[test]
fn a_response_to_another_connection_is_refused() {
    let mut server = Server::open();
    let mut client = Client::new(1, 100, Time::ZERO);
    let initiation = client.send(WIFI, Time::ZERO);
    let mut response = server.receive(Time::ZERO, address(1), &initiation, false).unwrap();
    response[4] ^= 1;
    let refused = client.attempt.on_response(&client.crypto, &response).unwrap_err();
    assert_eq!(refused, HandshakeError::WrongReceiver);
}

#[test]
fn a_replay_is_dropped_once_its_answer_is_forgotten() {
    let (mut client, mut server) = (Client::new(1, 100, Time::ZERO), Server::open());
    let initiation = client.send(WIFI, Time::ZERO);
    server.receive(Time::ZERO, address(1), &initiation, false).unwrap();
    let later = Time::ZERO + ResponderConfig::default().copy_lifetime;
    let replayed = server.receive(later, address(1), &initiation, false);
    assert_eq!(replayed, Err(DropReason::Replay));
    assert_eq!(server.accepted.len(), 1);
}

#[test]
fn a_stranger_cannot_fetch_an_answer_by_its_ephemeral() {
    let (mut client, mut server) = (Client::new(1, 100, Time::ZERO), Server::open());
    let initiation = client.send(WIFI, Time::ZERO);
    server.receive(Time::ZERO, address(1), &initiation, false).unwrap();
    let mut changed = initiation[..initiation.len() - 2 * MAC_LEN].to_vec();
    changed[5] ^= 1;
    message::append_mac1(&client.crypto, &PublicKey([9; 32]), &mut changed);
    changed.extend_from_slice(&[0; MAC_LEN]);
    let outcome = server.receive(Time::ZERO, address(2), &changed, false);
    assert_eq!(outcome, Err(DropReason::EphemeralReuse));
}

#[test]
fn only_permitted_peers_become_candidates() {
    let only = Permitted::Only([PublicKey([1; 32])].into());
    for (permitted, outcome) in [
        (Permitted::Nobody, [false, false]),
        (only, [true, false]),
        (Permitted::Anyone, [true, true]),
    ] {
        let mut server = Server::new(ResponderConfig { permitted, ..Default::default() });
        for (key, accepted) in [1, 2].into_iter().zip(outcome) {
            let initiation = Client::new(key, 100, Time::ZERO).send(WIFI, Time::ZERO);
            let result = server.receive(Time::ZERO, address(1), &initiation, false);
            assert_eq!(result.is_ok(), accepted);
            if !accepted {
                assert_eq!(result, Err(DropReason::NotPermitted));
            }
        }
    }
}

#[test]
fn under_load_a_cookie_proves_the_address_of_each_path() {
    let (mut client, mut server) = (Client::new(1, 100, Time::ZERO), Server::open());
    let initiation = client.send(WIFI, Time::ZERO);
    let reply = server.receive(Time::ZERO, address(1), &initiation, true).unwrap();
    assert!(reply.len() <= initiation.len());
    assert!(server.accepted.is_empty());
    let mut damaged = reply.clone();
    for at in 0..reply.len() {
        damaged[at] ^= 0x55;
        client.attempt.on_cookie_reply(&client.crypto, WIFI, Time::ZERO, &damaged).unwrap_err();
        damaged[at] ^= 0x55;
    }
    client.attempt.on_cookie_reply(&client.crypto, WIFI, Time::ZERO, &reply).unwrap();
    let surplus = client.attempt.on_cookie_reply(&client.crypto, WIFI, Time::ZERO, &reply);
    assert_eq!(surplus, Err(HandshakeError::UnexpectedCookie));
    let proven = client.send(WIFI, Time::ZERO);
    assert_ne!(proven, initiation);
    // Another address cannot use the cookie, and the other path has none yet.
    for (from, bytes) in [(address(2), &proven), (address(2), &client.send(LTE, Time::ZERO))] {
        let refused = server.receive(Time::ZERO, from, bytes, true).unwrap();
        CookieReply::parse(&refused).unwrap();
    }
    assert!(server.accepted.is_empty());
    let response = server.receive(Time::ZERO, address(1), &proven, true).unwrap();
    client.attempt.on_response(&client.crypto, &response).unwrap();
    // A copy without a cookie is still a copy.
    let again = server.receive(Time::ZERO, address(2), &initiation, true);
    assert_eq!(again, Ok(response));
}

#[test]
fn cookies_outlive_one_change_of_secret_and_no_more() {
    let mut server = Server::open();
    let cookie_works_after = |server: &mut Server, made: u64, used: u64, key: u8| {
        let (made, used) = (Time::from_secs(made), Time::from_secs(used));
        let mut client = Client::new(key, 100, made);
        let initiation = client.send(WIFI, made);
        let reply = server.receive(made, address(1), &initiation, true).unwrap();
        client.attempt.on_cookie_reply(&client.crypto, WIFI, made, &reply).unwrap();
        let proven = client.send(WIFI, made);
        let answer = server.receive(used, address(1), &proven, true).unwrap();
        Response::parse(&answer).is_ok()
    };
    assert!(cookie_works_after(&mut server, 119, 121, 1));
    assert!(cookie_works_after(&mut server, 121, 300, 2));
    assert!(!cookie_works_after(&mut server, 301, 600, 3));
    assert!(!cookie_works_after(&mut server, 601, 10_000, 4));
}

#[test]
fn an_answer_is_repeated_for_as_many_copies_as_there_may_be() {
    let (mut client, mut server) = (Client::new(1, 100, Time::ZERO), Server::open());
    let initiation = client.send(WIFI, Time::ZERO);
    let repeated = (0..1000)
        .filter(|number| server.receive(Time::ZERO, host(*number), &initiation, false).is_ok());
    assert_eq!(repeated.count(), 1 + 128);
    let refused = server.receive(Time::ZERO, address(1), &initiation, false);
    assert_eq!(refused, Err(DropReason::Copies));
    assert_eq!(server.accepted.len(), 1);
}

#[test]
fn the_tables_are_bounded() {
    let config = ResponderConfig {
        permitted: Permitted::Anyone,
        rate: 1_000_000,
        peers: 5,
        copies: 3,
        ..Default::default()
    };
    let mut server = Server::new(config);
    for key in 1..=100 {
        let now = Time::from_millis(u64::from(key));
        let initiation = Client::new(key, 100, now).send(WIFI, now);
        server.receive(now, host(key.into()), &initiation, false).unwrap();
    }
    assert_eq!(server.responder.table_sizes(), (3, 5));
}

#[test]
fn messages_longer_than_a_path_carries_are_refused() {
    let mut crypto = NullCrypto::new([1; 32]);
    let long = attempt(&mut crypto, 1, Time::ZERO, &[0; MAX_LEN]);
    assert_eq!(long.err(), Some(HandshakeError::TooLong));
    let mut server = Server::open();
    let initiation = Client::new(1, 100, Time::ZERO).send(WIFI, Time::ZERO);
    let (now, remote) = (Time::ZERO, address(1));
    let arrival = Arrival { now, remote, bytes: &initiation, under_load: false };
    let outcome = server.responder.handle(&mut server.crypto, arrival);
    let Outcome::Candidate(candidate) = outcome else { panic!("{outcome:?}") };
    let refused = server
        .responder
        .accept(&server.crypto, Time::ZERO, candidate, 1, &vec![0; 3 * initiation.len()])
        .unwrap_err();
    assert_eq!(refused, AcceptError::TooLong);
    assert_eq!(server.responder.table_sizes(), (0, 0), "the same message may be tried again");
}

#[test]
fn parsing_names_what_is_wrong() {
    let initiation = Client::new(1, 100, Time::ZERO).send(WIFI, Time::ZERO);
    let parse = |at: usize, value: u8| {
        let mut bytes = initiation.clone();
        bytes[at] = value;
        Initiation::parse(&bytes).unwrap_err()
    };
    assert_eq!(parse(0, 0x02), MessageError::Kind);
    assert_eq!(parse(1, 1), MessageError::Version(1));
    assert_eq!(parse(3, 9), MessageError::Reserved);
    assert_eq!(Initiation::parse(&[]).unwrap_err(), MessageError::Kind);
    assert_eq!(Initiation::parse(&[1; 40]).unwrap_err(), MessageError::Length(40));
    assert_eq!(Response::parse(&[2; 1201]).unwrap_err(), MessageError::Length(1201));
    let reply = CookieReply { receiver: 5, nonce: [6; 24], sealed: [7; 32] };
    assert_eq!(CookieReply::parse(&reply.to_bytes()), Ok(reply));
    let parsed = Initiation::parse(&initiation).unwrap();
    assert_eq!(parsed.sender, 0xc11e_4701);
    assert_eq!(parsed.noise[..EPHEMERAL_LEN], parsed.ephemeral);
    assert_eq!(parsed.macs.before_mac2.len() + MAC_LEN, initiation.len());
}

proptest! {
    #[test]
    fn no_bytes_do_harm(mut data in prop::collection::vec(any::<u8>(), 0..1300), kind in 0..5_u8) {
        if kind > 0 && data.len() >= 4 {
            data[..4].copy_from_slice(&[kind, 0, 0, 0]);
        }
        fuzz_message(&data);
    }

    #[test]
    fn bytes_parse_to_what_they_say(
        receiver in any::<u32>(),
        noise in prop::collection::vec(any::<u8>(), EPHEMERAL_LEN + SENDER_LEN + TAG_LEN..1000),
    ) {
        let mut bytes = Vec::new();
        Response::start(receiver, &mut bytes);
        bytes.extend_from_slice(&noise);
        bytes.extend_from_slice(&[0xa1; MAC_LEN]);
        bytes.extend_from_slice(&[0xa2; MAC_LEN]);
        let response = Response::parse(&bytes).unwrap();
        prop_assert_eq!(response.receiver, receiver);
        prop_assert_eq!(response.noise, &noise[..]);
        prop_assert_eq!((response.macs.mac1, response.macs.mac2), ([0xa1; 16], [0xa2; 16]));
    }
}
