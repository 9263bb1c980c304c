pub(super) mod erasure;

use super::keys::KeyError;
use super::{NoiseCrypto, PresharedKey, SecretKey};
use anabranch_core::crypto::{Crypto, MacPurpose, PublicKey, RekeyMessage, Session, TAG_LEN};
use anabranch_core::handshake::{
    Arrival, Initiator, Opening, Outcome, Permitted, Responder, ResponderConfig, Schedule,
};
use anabranch_types::{PathId, Time};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

const PATH: PathId = PathId(2);
const HEADER_LEN: usize = 10;

fn identity(fill: u8) -> NoiseCrypto {
    NoiseCrypto::new(SecretKey::from_bytes([fill; 32])).unwrap()
}

/// The sessions of a client and a server, and the payloads each read.
fn handshake() -> (Session, Session) {
    let (mut client, mut server) = (identity(1), identity(2));
    let mut first = b"header".to_vec();
    let mut initiator = client.initiate(&server.public_key(), b"hello", &mut first).unwrap();
    assert_eq!(first.len(), 6 + 96 + 5);
    let accepted = server.accept(&first[..6], &first[6..]).unwrap();
    assert_eq!(accepted.peer, client.public_key());
    assert_eq!(accepted.payload, b"hello");
    let mut second = Vec::new();
    let server_session = accepted.responder.respond(b"welcome", &mut second).unwrap();
    assert_eq!(second.len(), 48 + 7);
    let (payload, client_session) = initiator.finish(&second).unwrap();
    assert_eq!(payload, b"welcome");
    (client_session, server_session)
}

fn sealed(from: &mut Session, path: PathId, number: u64, body: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x40; HEADER_LEN];
    packet.extend_from_slice(body);
    packet.extend_from_slice(&[0; TAG_LEN]);
    from.keys.sealer.seal(path, number, &mut packet, HEADER_LEN);
    packet
}

fn opened(to: &mut Session, number: u64, packet: &[u8]) -> Option<Vec<u8>> {
    let mut packet = packet.to_vec();
    let end = to.keys.opener.open(PATH, number, &mut packet, HEADER_LEN).ok()?;
    Some(packet[HEADER_LEN..end].to_vec())
}

/// `message` with one bit changed, once for each bit.
fn changed(message: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..8 * message.len()).map(|bit| {
        let mut changed = message.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        changed
    })
}

/// `message` with one bit changed, and cut short, in every way.
fn damaged(message: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    changed(message).chain((0..message.len()).map(|length| message[..length].to_vec()))
}

#[test]
fn a_handshake_gives_matching_keys_both_ways() {
    let (mut client, mut server) = handshake();
    for number in [0, 1, u64::MAX] {
        let packet = sealed(&mut client, PATH, number, b"to the server");
        assert_eq!(opened(&mut server, number, &packet).unwrap(), b"to the server");
        assert!(opened(&mut client, number, &packet).is_none(), "directions have own keys");
        let packet = sealed(&mut server, PATH, number, b"to the client");
        assert_eq!(opened(&mut client, number, &packet).unwrap(), b"to the client");
    }
    let sample = [7; 16];
    assert_eq!(client.keys.sealer.mask(&sample), server.keys.opener.mask(&sample));
    assert_eq!(server.keys.sealer.mask(&sample), client.keys.opener.mask(&sample));
    assert_ne!(client.keys.sealer.mask(&sample), server.keys.sealer.mask(&sample));
    assert_ne!(client.keys.sealer.mask(&sample), client.keys.sealer.mask(&[8; 16]));
}

#[test]
fn every_byte_of_a_packet_its_path_and_number_are_authenticated() {
    let (mut client, mut server) = handshake();
    let packet = sealed(&mut client, PATH, 5, b"some body");
    for damaged in damaged(&packet) {
        assert!(opened(&mut server, 5, &damaged).is_none(), "{damaged:?}");
    }
    assert!(opened(&mut server, 6, &packet).is_none());
    assert!(server.keys.opener.open(PathId(3), 5, &mut packet.clone(), HEADER_LEN).is_err());
    assert!(opened(&mut server, 5, &packet).is_some());
}

#[test]
fn damaged_handshake_messages_fail_and_leave_the_initiator_intact() {
    let (mut client, mut server) = (identity(1), identity(2));
    let mut first = Vec::new();
    let mut initiator = client.initiate(&server.public_key(), b"hello", &mut first).unwrap();
    for damaged in damaged(&first) {
        assert!(server.accept(b"", &damaged).is_err(), "{damaged:?}");
    }
    let mut second = Vec::new();
    server.accept(b"", &first).unwrap().responder.respond(b"welcome", &mut second).unwrap();
    for damaged in damaged(&second) {
        assert!(initiator.finish(&damaged).is_err(), "{damaged:?}");
    }
    assert_eq!(initiator.finish(&second).unwrap().0, b"welcome");
    assert!(initiator.finish(&second).is_err(), "a handshake finishes once");
}

#[test]
fn only_the_named_responder_can_read_an_initiation() {
    let (mut client, mut other) = (identity(1), identity(3));
    let mut first = Vec::new();
    let peer = identity(2).public_key();
    client.initiate(&peer, b"hello", &mut first).unwrap();
    assert!(other.accept(b"", &first).is_err());
}

/// Whether a handshake succeeds, each side having these keys for the other.
fn agree(client: Option<u8>, server: Option<u8>) -> bool {
    let of = |key: Option<u8>, peer: u8| {
        let key = key.map(|fill| PresharedKey::from_bytes([fill; 32]));
        BTreeMap::from_iter(key.map(|key| (identity(peer).public_key(), key)))
    };
    let mut client = identity(1).with_preshared(of(client, 2));
    let mut server = identity(2).with_preshared(of(server, 1));
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let mut initiator = client.initiate(&server.public_key(), b"", &mut first).unwrap();
    let accepted = server.accept(b"", &first).unwrap();
    accepted.responder.respond(b"welcome", &mut second).unwrap();
    initiator.finish(&second).is_ok()
}

#[test]
fn a_preshared_key_must_be_shared() {
    assert!(agree(None, None) && agree(Some(7), Some(7)));
    assert!(!agree(Some(7), Some(8)) && !agree(Some(7), None) && !agree(None, Some(7)));
    let text = PresharedKey::from_bytes([7; 32]).to_base64();
    assert_eq!(text.parse::<PresharedKey>().unwrap().as_bytes(), &[7; 32]);
    assert_eq!(format!("{:?}", PresharedKey::generate().unwrap()), "PresharedKey(…)");
}

#[test]
fn a_connection_keeps_the_preshared_key_that_it_began_with() {
    let of = |fill, peer| {
        BTreeMap::from([(identity(peer).public_key(), PresharedKey::from_bytes([fill; 32]))])
    };
    let mut client = identity(1).with_preshared(of(7, 2));
    let mut server = identity(2).with_preshared(of(7, 1));
    let mut handshake = || {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let mut initiator = client.initiate(&server.public_key(), b"", &mut first).unwrap();
        let accepted = server.accept(b"", &first).unwrap();
        let far = accepted.responder.respond(b"welcome", &mut second).unwrap();
        Some((initiator.finish(&second).ok()?.1, far))
    };
    let (mut near, mut far) = handshake().unwrap();
    let (of_client, of_server) = (client.preshared(), server.preshared());
    of_server.replace(of(8, 1));
    renew(&mut near, &mut far);
    let mut handshake = || {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let mut initiator = client.initiate(&server.public_key(), b"", &mut first).unwrap();
        let accepted = server.accept(b"", &first).unwrap();
        accepted.responder.respond(b"welcome", &mut second).unwrap();
        initiator.finish(&second).is_ok()
    };
    assert!(!handshake(), "only the server has the new one");
    of_client.replace(of(8, 2));
    assert!(handshake());
    renew(&mut near, &mut far);
}

/// Renews the keys of both; returns the messages.
fn renew(client: &mut Session, server: &mut Session) -> (RekeyMessage, RekeyMessage) {
    let question = client.rekey.ask().unwrap();
    let (answer, keys) = server.rekey.answer(&question).unwrap();
    server.keys = keys;
    client.keys = client.rekey.finish(&answer).unwrap();
    (question, answer)
}

#[test]
fn every_exchange_makes_new_keys_and_keeps_those_of_headers() {
    let (mut client, mut server) = handshake();
    let masks = (client.keys.sealer.mask(&[1; 16]), server.keys.sealer.mask(&[1; 16]));
    let mut seen = BTreeSet::new();
    for _ in 0..5 {
        let old = sealed(&mut client, PATH, 1, b"to the server");
        assert!(seen.insert(old.clone()), "the same bytes are sealed to others under each key");
        renew(&mut client, &mut server);
        assert!(opened(&mut server, 1, &old).is_none());
        let packet = sealed(&mut client, PATH, 2, b"to the server");
        assert_eq!(opened(&mut server, 2, &packet).unwrap(), b"to the server");
        let packet = sealed(&mut server, PATH, 2, b"to the client");
        assert_eq!(opened(&mut client, 2, &packet).unwrap(), b"to the client");
        assert_eq!(masks.0, client.keys.sealer.mask(&[1; 16]));
        assert_eq!(masks.0, server.keys.opener.mask(&[1; 16]));
        assert_eq!(masks.1, server.keys.sealer.mask(&[1; 16]));
    }
}

#[test]
fn an_exchange_takes_no_message_but_its_own() {
    let (mut client, mut server) = handshake();
    // Another connection of the same two peers.
    let (mut other_client, mut other_server) = handshake();
    let (foreign_question, foreign_answer) = renew(&mut other_client, &mut other_server);
    let (old_question, old_answer) = renew(&mut client, &mut server);
    let question = client.rekey.ask().unwrap();
    for wrong in [foreign_question, old_question] {
        assert!(server.rekey.answer(&wrong).is_err());
    }
    for damaged in changed(&question) {
        assert!(server.rekey.answer(damaged.as_array().unwrap()).is_err(), "{damaged:?}");
    }
    let (answer, keys) = server.rekey.answer(&question).unwrap();
    server.keys = keys;
    for wrong in [foreign_answer, old_answer] {
        assert!(client.rekey.finish(&wrong).is_err());
    }
    for damaged in changed(&answer) {
        assert!(client.rekey.finish(damaged.as_array().unwrap()).is_err(), "{damaged:?}");
    }
    client.keys = client.rekey.finish(&answer).unwrap();
    assert!(client.rekey.finish(&answer).is_err(), "an exchange finishes once");
    let packet = sealed(&mut client, PATH, 7, b"to the server");
    assert_eq!(opened(&mut server, 7, &packet).unwrap(), b"to the server");
}

#[test]
fn worn_keys_are_told_from_fresh_ones() {
    let (mut client, mut server) = handshake();
    assert!(!client.keys.sealer.is_worn() && !server.keys.opener.is_worn());
    let mut packet = [0; HEADER_LEN + TAG_LEN];
    for number in 0..1 << 22 {
        packet.fill(0);
        client.keys.sealer.seal(PATH, number, &mut packet, HEADER_LEN);
        if number < 1 << 21 {
            server.keys.opener.open(PATH, number, &mut packet, HEADER_LEN).unwrap();
        }
    }
    assert!(client.keys.sealer.is_worn() && server.keys.opener.is_worn());
    renew(&mut client, &mut server);
    assert!(!client.keys.sealer.is_worn() && !server.keys.opener.is_worn());
}

#[test]
fn paths_and_numbers_make_distinct_nonces() {
    let (mut client, _) = handshake();
    let pairs = [(0, 0), (0, 1), (1, 0), (0, 1 << 32), (1 << 16, 0), (u32::MAX, 7), (7, 7)];
    let mut packets: Vec<_> = pairs
        .iter()
        .map(|(path, number)| sealed(&mut client, PathId(*path), *number, &[0; 32]))
        .collect();
    packets.sort();
    packets.dedup();
    assert_eq!(packets.len(), pairs.len(), "the same plaintext never seals to the same bytes");
}

#[test]
fn packets_too_short_to_seal_are_zeroed_and_too_short_to_open_refused() {
    let (mut client, mut server) = handshake();
    for len in 0..HEADER_LEN + TAG_LEN {
        let mut packet = vec![9; len];
        client.keys.sealer.seal(PATH, 0, &mut packet, HEADER_LEN);
        assert!(packet.iter().all(|byte| *byte == 0));
        assert!(server.keys.opener.open(PATH, 0, &mut packet, HEADER_LEN).is_err());
    }
}

#[test]
fn macs_depend_on_purpose_key_and_data() {
    let (client, server) = (identity(1), identity(2));
    let (key, data) = ([5; 32], b"data".as_slice());
    let mut tags = vec![
        client.mac(MacPurpose::Mac1(&PublicKey(key)), data),
        client.mac(MacPurpose::Mac1(&server.public_key()), data),
        client.mac(MacPurpose::Mac2(&[5; 16]), data),
        client.mac(MacPurpose::Mac2(&[6; 16]), data),
        client.mac(MacPurpose::Cookie(&key), data),
        client.mac(MacPurpose::Cookie(&key), b"datb"),
    ];
    assert_eq!(tags[1], server.mac(MacPurpose::Mac1(&server.public_key()), data));
    assert_eq!(tags[2], server.mac(MacPurpose::Mac2(&[5; 16]), data));
    assert_eq!(tags[4], client.mac(MacPurpose::Cookie(&key), data));
    let count = tags.len();
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), count);
}

#[test]
fn cookies_open_for_their_message_and_responder_only() {
    let (client, server) = (identity(1), identity(2));
    let (cookie, nonce, mac1) = ([3; 16], [4; 24], [5; 16]);
    let sealed = server.seal_cookie(&cookie, &nonce, &mac1);
    let open = |peer: PublicKey, sealed: &[u8; 32], nonce: &[u8; 24], mac1: &[u8; 16]| {
        client.open_cookie(&peer, sealed, nonce, mac1).ok()
    };
    assert_eq!(open(server.public_key(), &sealed, &nonce, &mac1), Some(cookie));
    assert_eq!(open(client.public_key(), &sealed, &nonce, &mac1), None);
    assert_eq!(open(server.public_key(), &sealed, &[6; 24], &mac1), None);
    assert_eq!(open(server.public_key(), &sealed, &nonce, &[6; 16]), None);
    for damaged in changed(&sealed) {
        let damaged = damaged.as_array().unwrap();
        assert_eq!(open(server.public_key(), damaged, &nonce, &mac1), None);
    }
}

/// RFC 7748 §6.1: Alice's key pair.
#[test]
fn public_keys_and_text_have_their_known_answers() {
    let secret = "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=".parse::<SecretKey>().unwrap();
    assert_eq!(secret.as_bytes()[..4], [0x77, 0x07, 0x6d, 0x0a]);
    let public = secret.public_key();
    assert_eq!(public.to_string(), "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=");
    let read = " hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=\n".parse::<PublicKey>().unwrap();
    assert_eq!(read, public);
}

#[test]
fn wrong_key_text_is_told_precisely() {
    let reason = |text: &str| text.parse::<SecretKey>().unwrap_err().to_string();
    let good = "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=";
    assert!(reason(&good[..43]).contains("this has 43"));
    assert!(reason("").contains("this has 0"));
    assert!(reason(&good.replace('X', "*")).contains("character 9 "));
    assert!(reason(&good.replace('X', "é")).contains("character 9 "));
    assert!(reason(&good.replace("Co=", "Cp=")).contains("last characters"));
    assert!(reason(&good.replace("o=", "==")).contains("last characters"));
    assert!(reason(&good.replace("Co=", "Coo")).contains("last characters"));
}

#[test]
fn debug_shows_no_secret() {
    let secret = SecretKey::from_bytes([0xab; 32]);
    let crypto = NoiseCrypto::new(secret.clone()).unwrap();
    let (session, _) = handshake();
    for text in [format!("{secret:?}"), format!("{crypto:?}"), format!("{session:?}")] {
        let lower = text.to_lowercase();
        assert!(!lower.contains("ab, ab") && !lower.contains("171") && !lower.contains("abab"));
    }
}

#[test]
fn generated_keys_differ() {
    let (a, b) = (SecretKey::generate().unwrap(), SecretKey::generate().unwrap());
    assert_ne!(a.as_bytes(), b.as_bytes());
}

#[test]
fn key_files_are_private_and_not_overwritten_by_chance() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key");
    let (first, second) = (SecretKey::from_bytes([1; 32]), SecretKey::from_bytes([2; 32]));
    first.save(&path, false).unwrap();
    assert!(matches!(second.save(&path, false), Err(KeyError::Exists)));
    assert_eq!(SecretKey::load(&path).unwrap().as_bytes(), first.as_bytes());
    second.save(&path, true).unwrap();
    assert_eq!(SecretKey::load(&path).unwrap().as_bytes(), second.as_bytes());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        let refused = SecretKey::load(&path).unwrap_err();
        assert!(matches!(refused, KeyError::Exposed(0o640)), "{refused}");
    }
    let missing = SecretKey::load(&directory.path().join("none")).unwrap_err();
    assert!(matches!(missing, KeyError::Io(_)));
}

fn initiation(remote: SocketAddr, bytes: &[u8], under_load: bool) -> Arrival<'_> {
    Arrival { now: Time::ZERO, remote, bytes, under_load }
}

/// The core's handshake, with a cookie, a forged answer and a copy on another path.
#[test]
fn the_core_connects_with_it() {
    let (mut client, mut server) = (identity(1), identity(2));
    let config = ResponderConfig { permitted: Permitted::Anyone, ..Default::default() };
    let mut responder = Responder::new(config, Time::ZERO, server.randomness());
    let opening = Opening {
        peer: server.public_key(),
        local_id: 77,
        timestamp: 1_700_000_000_000_000_000,
        parameters: b"parameters",
    };
    let mut attempt =
        Initiator::new(&mut client, opening, Schedule::default(), Time::ZERO).unwrap();
    attempt.add_path(PATH, Time::ZERO);
    let remote = SocketAddr::from(([127, 0, 0, 1], 4000));
    let mut first = Vec::new();
    assert!(attempt.poll(&client, PATH, Time::ZERO, &mut first));
    let outcome = responder.handle(&mut server, initiation(remote, &first, true));
    let Outcome::Reply(cookie) = outcome else { panic!("{outcome:?}") };
    attempt.on_cookie_reply(&client, PATH, Time::ZERO, &cookie).unwrap();
    first.clear();
    assert!(attempt.poll(&client, PATH, Time::ZERO, &mut first));
    let outcome = responder.handle(&mut server, initiation(remote, &first, true));
    let Outcome::Candidate(candidate) = outcome else { panic!("{outcome:?}") };
    assert_eq!((candidate.peer, candidate.remote_id), (client.public_key(), 77));
    assert_eq!(candidate.parameters, b"parameters");
    let mut accepting = responder.accept(&server, Time::ZERO, candidate, 88, b"own").unwrap();
    let mut forged = accepting.response.clone();
    forged[20] ^= 1;
    assert!(attempt.on_response(&client, &forged).is_err());
    let mut established = attempt.on_response(&client, &accepting.response).unwrap();
    assert_eq!((established.remote_id, &established.parameters[..]), (88, &b"own"[..]));
    let packet = sealed(&mut established.session, PATH, 0, b"first");
    assert_eq!(opened(&mut accepting.session, 0, &packet).unwrap(), b"first");
    let elsewhere = SocketAddr::from(([127, 0, 0, 2], 4000));
    let outcome = responder.handle(&mut server, initiation(elsewhere, &first, false));
    assert!(matches!(outcome, Outcome::Reply(bytes) if bytes == accepting.response));
}

proptest! {
    #[test]
    fn keys_survive_their_text(bytes in any::<[u8; 32]>()) {
        let secret = SecretKey::from_bytes(bytes);
        let text = secret.to_base64();
        prop_assert_eq!(text.len(), 44);
        let read = text.parse::<SecretKey>().unwrap();
        prop_assert_eq!(read.as_bytes(), &bytes);
    }

    #[test]
    fn no_text_or_message_panics(text in ".{0,60}", bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = text.parse::<PublicKey>();
        prop_assert!(identity(1).accept(b"", &bytes).is_err());
    }
}
