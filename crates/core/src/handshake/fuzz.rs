use super::message::{CookieReply, Initiation, MAC_LEN, Response, append_mac1};
use super::{
    Arrival, Initiator, Opening, Outcome, Permitted, Responder, ResponderConfig, Schedule,
};
use crate::crypto::null::{NullCrypto, Reproducible};
use crate::crypto::{Crypto, PublicKey};
use crate::wire::TransportParameters;
use crate::wire::fuzzing::with_mutants;
use anabranch_types::{PathId, Rng, Time};
use core::net::{Ipv4Addr, SocketAddr};

/// Feeds arbitrary bytes to every reader of handshake messages, as they are and again with a valid
/// first MAC, which a fuzzer would not find; panics if an answer is longer than allowed.
#[doc(hidden)]
pub fn fuzz_message(data: &[u8]) {
    let mut server = NullCrypto::new([1; 32]);
    let mut client = NullCrypto::new([2; 32]);
    let config = ResponderConfig { permitted: Permitted::Anyone, ..ResponderConfig::default() };
    let mut responder = Responder::new(config, Time::ZERO, Box::new(Reproducible(Rng::new(1))));
    let opening =
        Opening { peer: server.public_key(), local_id: 7, timestamp: 1, parameters: b"fuzz" };
    let Ok(mut initiator) = Initiator::new(&mut client, opening, Schedule::default(), Time::ZERO)
    else {
        return;
    };
    let path = PathId(0);
    initiator.add_path(path, Time::ZERO);
    initiator.poll(&client, path, Time::ZERO, &mut Vec::new());
    let for_server = with_mac1(&server, &server.public_key(), data);
    let for_client = with_mac1(&client, &client.public_key(), data);
    let authentic = with_payload(&mut client, &server.public_key(), data);
    for bytes in [data, &for_server, &for_client, &authentic] {
        // The results do not matter, but no call may panic.
        let _ = Initiation::parse(bytes);
        let _ = Response::parse(bytes);
        let _ = CookieReply::parse(bytes);
        let _ = initiator.on_response(&client, bytes);
        let _ = initiator.on_cookie_reply(&client, path, Time::ZERO, bytes);
        for under_load in [false, true] {
            respond(&mut responder, &mut server, bytes, under_load);
        }
    }
}

fn respond(responder: &mut Responder, server: &mut NullCrypto, bytes: &[u8], under_load: bool) {
    let remote = SocketAddr::from((Ipv4Addr::LOCALHOST, 4000));
    let arrival = Arrival { now: Time::ZERO, remote, bytes, under_load };
    let sent = match responder.handle(server, arrival) {
        Outcome::Drop(_) | Outcome::Copy(_) => 0,
        Outcome::Reply(reply) => reply.len(),
        Outcome::Candidate(candidate) => responder
            .accept(server, Time::ZERO, candidate, 9, &[0; 100])
            .map_or(0, |accepting| accepting.response.len()),
    };
    assert!(sent <= 3 * bytes.len(), "amplification: {sent} for {}", bytes.len());
}

fn with_mac1(crypto: &NullCrypto, receiver: &PublicKey, data: &[u8]) -> Vec<u8> {
    let mut bytes = data.to_vec();
    append_mac1(crypto, receiver, &mut bytes);
    bytes.extend_from_slice(&[0; MAC_LEN]);
    bytes
}

/// An authentic Initiation with an arbitrary payload.
fn with_payload(client: &mut NullCrypto, server: &PublicKey, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Initiation::start(3, &mut bytes);
    let _ = client.initiate(server, payload, &mut bytes);
    append_mac1(client, server, &mut bytes);
    bytes.extend_from_slice(&[0; MAC_LEN]);
    bytes
}

/// Inputs for [`fuzz_message`].
#[doc(hidden)]
pub fn fuzz_seeds() -> Vec<Vec<u8>> {
    let server = NullCrypto::new([1; 32]);
    let mut client = NullCrypto::new([2; 32]);
    let parameters = TransportParameters::default().encode();
    let payload = [&7_u64.to_be_bytes()[..], &parameters].concat();
    let initiation = with_payload(&mut client, &server.public_key(), &payload);
    let mut response = Vec::new();
    Response::start(7, &mut response);
    response.extend_from_slice(&[5; 80]);
    let cookie = CookieReply { receiver: 7, nonce: [3; 24], sealed: [4; 32] };
    with_mutants(vec![payload, initiation, response, cookie.to_bytes()])
}
