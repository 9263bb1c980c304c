//! Over real sockets, an endpoint sends no byte to anyone who does not know its public key. This
//! holds for an idle endpoint, and for a loaded one, which sends cookies to those who know the key.
#![cfg(target_os = "linux")]

#[allow(dead_code, reason = "shared by the tests, each of which uses its part")]
#[path = "transfer/process.rs"]
mod process;
#[allow(dead_code, reason = "shared by the tests, each of which uses its part")]
#[path = "common/server.rs"]
mod server;

use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anabranch::crypto::NoiseCrypto;
use anabranch::{PublicKey, SecretKey, TransportConfig};
use anabranch_core::crypto::Crypto;
use anabranch_core::handshake::message::{INITIATION, Initiation, MAC_LEN, append_mac1};
use anabranch_types::Rng;
use process::{Running, run};
use server::Server;

/// First byte of an answer that asks for a cookie.
const COOKIE_REPLY: u8 = 0x03;
/// Bits that mark a data packet, and their value.
const DATA: (u8, u8) = (0xc0, 0x40);
/// Unanswered messages before a test gives up: 20 s of them.
const PATIENCE: usize = 1000;

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    socket
}

/// A valid first message of a new peer, for the endpoint with the key `to`.
fn initiation(to: &PublicKey) -> Vec<u8> {
    let mut crypto = NoiseCrypto::new(SecretKey::generate().unwrap()).unwrap();
    let mut payload = 1_u64.to_be_bytes().to_vec();
    payload.extend(TransportConfig::default().parameters("anabranch").encode());
    let mut bytes = Vec::new();
    Initiation::start(7, &mut bytes);
    crypto.initiate(to, &payload, &mut bytes).unwrap();
    append_mac1(&crypto, to, &mut bytes);
    bytes.extend_from_slice(&[0; MAC_LEN]);
    bytes
}

/// Messages of an attacker who knows everything but the key, and has captured these packets of
/// others.
fn probes(heard: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut probes = vec![vec![], vec![0], b"anabranch".to_vec(), vec![0xff; 1200]];
    let mut rng = Rng::new(1);
    for kind in 0..=255 {
        for length in [4, 24, 148, 1200] {
            let mut probe = vec![0; length];
            rng.fill(&mut probe);
            probes.push(probe.clone());
            probe[..4].copy_from_slice(&[kind, 0, 0, 0]);
            probes.push(probe);
        }
    }
    let elsewhere = SecretKey::from_bytes([9; 32]).public_key();
    let first = initiation(&elsewhere);
    // Another version might be answered by a list of versions, as in QUIC.
    for version in 1..=255 {
        let mut other = first.clone();
        other[..2].copy_from_slice(&[INITIATION, version]);
        probes.push(other);
    }
    let quic = [&[0xc3, 0x1a, 0x2a, 0x3a, 0x4a, 8][..], &[5; 8], &[8], &[6; 8], &[0; 1200]];
    probes.push(quic.concat());
    probes.extend((0..20).map(|_| initiation(&elsewhere)));
    probes.extend_from_slice(heard);
    probes
}

/// Sends first messages made with the right key until one is answered with `kind`. By then the
/// endpoint has read all that was sent to it before.
fn answered(knower: &UdpSocket, server: SocketAddr, key: &PublicKey, kind: u8) {
    for _ in 0..PATIENCE {
        knower.send_to(&initiation(key), server).unwrap();
        let mut buffer = [0; 2048];
        if knower.recv(&mut buffer).is_ok_and(|_| buffer[0] == kind) {
            return;
        }
    }
    panic!("who knows the key is not answered");
}

/// Checks that a stranger's probes are not answered, and that messages made with the right key are.
fn is_silent(server: SocketAddr, key: &str, heard: &[Vec<u8>]) {
    let key = key.parse::<PublicKey>().unwrap();
    let (stranger, knower) = (socket(), socket());
    // In the first round the endpoint is idle. In the second, it asks everybody at this address for
    // cookies.
    for _ in 0..2 {
        for some in probes(heard).chunks(64) {
            for probe in some {
                stranger.send_to(probe, server).unwrap();
            }
            // The batches are small enough for the endpoint to read them all.
            std::thread::sleep(Duration::from_millis(2));
        }
        answered(&knower, server, &key, COOKIE_REPLY);
    }
    let mut buffer = [0; 2048];
    let answer = stranger.recv(&mut buffer);
    assert!(answer.is_err(), "a stranger was answered: {:02x?}", &buffer[..answer.unwrap()]);
}

/// Makes a key; returns its file and its public key.
fn key(directory: &Path, name: &str) -> (PathBuf, String) {
    let path = directory.join(name);
    let public = run("keygen --out", &[&path]).succeeded();
    (path, String::from_utf8(public).unwrap().trim().to_owned())
}

/// Address and public key of a program that reports them as JSON.
fn listening(running: &mut Running) -> (SocketAddr, String) {
    let event = running.event();
    let address = event["addresses"][0].as_str().unwrap().parse().unwrap();
    (address, event["public_key"].as_str().unwrap().to_owned())
}

#[test]
fn a_receiver_with_a_ticket() {
    let directory = tempfile::tempdir().unwrap();
    let line = "recv --json --listen 127.0.0.1 --out";
    let mut receiver = Running::start(line, &[directory.path()]);
    let (address, key) = listening(&mut receiver);
    is_silent(address, &key, &[]);
}

#[test]
fn a_receiver_with_a_key() {
    let directory = tempfile::tempdir().unwrap();
    let (file, _) = key(directory.path(), "own");
    let (_, peer) = key(directory.path(), "peer");
    let line = format!("recv --json --listen 127.0.0.1:0 --allow {peer} --key");
    let mut receiver = Running::start(&line, &[&file, Path::new("--out"), directory.path()]);
    let (address, key) = listening(&mut receiver);
    is_silent(address, &key, &[]);
}

#[test]
fn a_server_of_measurements_for_anyone() {
    let server = Server::start(&[], "off");
    is_silent(server.address.parse().unwrap(), &server.key, &[]);
}

#[test]
fn a_server_of_forwards_with_a_connection() {
    let directory = tempfile::tempdir().unwrap();
    let (file, _) = key(directory.path(), "server.key");
    let (client_file, client) = key(directory.path(), "client.key");
    let line = format!("serve --json --listen 127.0.0.1:0 --allow {client} --key");
    let mut server = Running::start(&line, &[&file]);
    let (address, key) = listening(&mut server);
    let (outer, inner) = (socket(), socket());
    let between = outer.local_addr().unwrap();
    let line = format!("connect {between} --path 127.0.0.1 --peer {key} --key");
    let _client = Running::start(&line, &[&client_file]);
    let heard = overheard(&outer, &inner, address);
    is_silent(address, &key, &heard);
}

/// Relays a connection from `outer` over `inner` until some data packets have gone to the server; returns
/// these.
fn overheard(outer: &UdpSocket, inner: &UdpSocket, server: SocketAddr) -> Vec<Vec<u8>> {
    let (mut buffer, mut client) = ([0; 2048], None);
    let mut heard = Vec::new();
    for _ in 0..PATIENCE {
        if let Ok((length, from)) = outer.recv_from(&mut buffer) {
            client = Some(from);
            inner.send_to(&buffer[..length], server).unwrap();
            if buffer[0] & DATA.0 == DATA.1 {
                heard.push(buffer[..length].to_vec());
            }
        }
        if heard.len() >= 4 {
            return heard;
        }
        if let (Ok(length), Some(client)) = (inner.recv(&mut buffer), client) {
            outer.send_to(&buffer[..length], client).unwrap();
        }
    }
    panic!("the connection sent {} data packets", heard.len());
}
