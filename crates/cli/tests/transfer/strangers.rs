//! Peers without permission, and permitted peers that misbehave.

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use anabranch::{Config, Endpoint, PathSpec, PresharedKey, TrafficClass};
use anabranch_transfer::{Entry, Frame, Header, Kind, Modified, Name, Preface, Role, Ticket};

use super::process::{Running, run};
use super::{Sides, as_holder, text};

fn receiver(sides: &Sides) -> (Running, Ticket, String) {
    let mut receiver = Running::start("recv --json --listen 127.0.0.1 --out", &[&sides.to()]);
    let (text, _) = receiver.ticket();
    (receiver, Ticket::parse(&text).unwrap(), text)
}

/// Datagrams of all kinds, as a scanner might send them.
fn probes() -> Vec<Vec<u8>> {
    let mut probes = vec![vec![], vec![0; 1], b"anabranch".to_vec(), vec![0xff; 1200]];
    for kind in 0..=255 {
        for len in [4, 64, 148, 400, 1200] {
            let mut probe = vec![0x5a; len];
            probe[..4].copy_from_slice(&[kind, 0, 0, 0]);
            probes.push(probe);
        }
    }
    probes
}

#[test]
fn a_stranger_gets_no_byte() {
    let sides = Sides::new();
    let (receiver, ticket, text_of_ticket) = receiver(&sides);
    let address = ticket.addresses[0];
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for probe in probes() {
        socket.send_to(&probe, address).unwrap();
    }
    // This sender knows the address and the public key, but not the secret.
    let (key, _) = sides.key("stranger");
    let file = sides.write("a", b"bytes");
    let peer = ticket.peer.to_string();
    let line = format!("send {} --to {address} --peer {peer} --timeout 1 --key", text(&file));
    let refused = run(&line, &[&key]).failed(3);
    assert!(refused.contains("nobody answered"), "{refused}");
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert!(socket.recv_from(&mut [0; 2000]).is_err(), "a scanner was answered");
    assert!(sides.names().is_empty());
    // The holder of the ticket is served all the same.
    run(&format!("send {} {text_of_ticket}", text(&file)), &[]).succeeded();
    receiver.end().succeeded();
    assert_eq!(sides.arrived("a"), b"bytes");
}

/// A side that listens with a shared secret serves only those of its peers that have it, whichever way files go.
#[test]
fn a_peer_without_the_shared_secret_gets_no_byte() {
    let sides = Sides::new();
    let (server_key, server) = sides.key("server");
    let (client_key, client) = sides.key("client");
    let (shared, other) = (sides.shared("shared.psk"), sides.shared("other.psk"));
    let with = |secret: &Path| format!("--preshared-key {}", text(secret));
    let file = sides.write("a", b"bytes");
    let (file, to) = (text(&file), sides.to());
    let listen = format!("--json --listen 127.0.0.1 {} --allow {client} --key", with(&shared));
    let receiver = format!("recv --out {} {listen}", text(&to));
    let mut receiver = Running::start(&receiver, &[&server_key]);
    let mut sender = Running::start(&format!("send {file} {listen}"), &[&server_key]);
    let known = format!("--peer {server} --key {}", text(&client_key));
    let (taking, offering) = (receiver.event(), sender.event());
    let (taking, offering) = (&taking["addresses"][0], &offering["addresses"][0]);
    let send = format!("send {file} {known} --to {}", taking.as_str().unwrap());
    let get = format!("get a {known} --from {} --out {}", offering.as_str().unwrap(), text(&to));
    for line in [send, get] {
        for wrong in [String::new(), with(&other)] {
            let refused = run(&format!("{line} --timeout 1 {wrong}"), &[]).failed(3);
            assert!(refused.contains("nobody answered"), "{refused}");
            assert!(sides.names().is_empty());
        }
        run(&format!("{line} {}", with(&shared)), &[]).succeeded();
        assert_eq!(sides.arrived("a"), b"bytes");
        std::fs::remove_file(to.join("a")).unwrap();
    }
}

/// The key that is derived from a ticket's secret does not suffice: an attacker who finds it by
/// breaking X25519 lacks the pre-shared key, which is derived from the secret too. The test is made
/// with tickets of `recv` and of `send`.
#[test]
fn the_key_of_a_ticket_without_its_shared_secret_is_of_no_use() {
    let sides = Sides::new();
    let file = sides.write("a", b"bytes");
    let to = sides.to();
    let listen = "--json --listen 127.0.0.1";
    for (maker, holder) in [
        (format!("recv --out {} {listen}", text(&to)), format!("send {}", text(&file))),
        (format!("send {} {listen}", text(&file)), format!("get --out {}", text(&to))),
    ] {
        let mut maker = Running::start(&maker, &[]);
        let (text_of_ticket, _) = maker.ticket();
        let ticket = Ticket::parse(&text_of_ticket).unwrap();
        for wrong in [None, Some(PresharedKey::from_bytes([7; 32]))] {
            let mut config = Config::new(ticket.holder());
            config.preshared = wrong.into_iter().map(|key| (ticket.peer, key)).collect();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let connected = runtime.unwrap().block_on(connects(config, &ticket));
            assert!(!connected, "the maker of a ticket believed the key alone");
        }
        assert!(maker.is_running() && sides.names().is_empty());
        run(&format!("{holder} {text_of_ticket}"), &[]).succeeded();
        maker.end().succeeded();
        assert_eq!(sides.arrived("a"), b"bytes");
        std::fs::remove_file(to.join("a")).unwrap();
    }
}

/// Whether the ticket's maker accepts a connection with these keys within a second.
async fn connects(config: Config, ticket: &Ticket) -> bool {
    let local: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let endpoint = Endpoint::bind(config, [local]).unwrap();
    let paths = [PathSpec { local, remote: ticket.addresses[0] }];
    let connection = endpoint.connect(ticket.peer, &paths[..]);
    tokio::time::timeout(Duration::from_secs(1), connection).await.is_ok_and(|end| end.is_ok())
}

#[test]
fn a_ticket_expires() {
    let sides = Sides::new();
    let line = "recv --json --listen 127.0.0.1 --expires 1 --out";
    let mut receiver = Running::start(line, &[&sides.to()]);
    let (ticket, _) = receiver.ticket();
    let line = receiver.end().failed(3);
    assert!(line.contains("expired"), "{line}");
    let file = sides.write("a", b"late");
    run(&format!("send {} {ticket} --timeout 1", text(&file)), &[]).failed(3);
    assert!(sides.names().is_empty());
}

/// The holder of a ticket connects again and again, and brings nothing: the ticket expires all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_bring_nothing_do_not_keep_a_ticket_alive() {
    let sides = Sides::new();
    let line = "recv --json --listen 127.0.0.1 --expires 3 --out";
    let mut receiver = Running::start(line, &[&sides.to()]);
    let ticket = Ticket::parse(&receiver.ticket().0).unwrap();
    let coming_back = tokio::spawn(async move {
        loop {
            let local: SocketAddr = "127.0.0.1:0".parse().unwrap();
            let endpoint = Endpoint::bind(as_holder(&ticket), [local]).unwrap();
            let path = PathSpec { local, remote: ticket.addresses[0] };
            let Ok(connection) = endpoint.connect(ticket.peer, [path]).await else { continue };
            let (mut send, _receive) = connection.open_bi(TrafficClass::Bulk).await.unwrap();
            let _ = send.write_all(&frames(&offer(5))).await;
            tokio::time::sleep(Duration::from_millis(200)).await;
            connection.close(0, "");
        }
    });
    let line = tokio::task::block_in_place(|| receiver.end().failed(3));
    coming_back.abort();
    assert!(line.contains("expired"), "{line}");
}

/// Connects as the ticket's holder, says `bytes` and ends.
async fn say(ticket: &Ticket, bytes: Vec<u8>) -> Option<()> {
    let local: SocketAddr = "127.0.0.1:0".parse().ok()?;
    let endpoint = Endpoint::bind(as_holder(ticket), [local]).ok()?;
    let paths = [PathSpec { local, remote: ticket.addresses[0] }];
    let connection = endpoint.connect(ticket.peer, &paths[..]).await.ok()?;
    let (mut send, _receive) = connection.open_bi(TrafficClass::Bulk).await.ok()?;
    send.write_all(&bytes).await.ok()?;
    send.finish().ok()?;
    // Acknowledged or refused: either way the receiver has reacted.
    let _ = tokio::time::timeout(Duration::from_secs(20), connection.closed()).await;
    Some(())
}

fn frames(frames: &[Frame]) -> Vec<u8> {
    let mut bytes = Preface { role: Role::Offers }.encode().to_vec();
    frames.iter().for_each(|frame| frame.encode(&mut bytes));
    bytes
}

fn offer(size: u64) -> [Frame; 2] {
    let (name, modified) = (Name::new("a").unwrap(), Modified::default());
    let entry = Entry { name, kind: Kind::File, mode: 0o644, size, modified, target: None };
    [Frame::Entry(entry), Frame::OfferEnd { entries: 1 }]
}

/// An offer of a file of five bytes, then `rest`.
fn offered(rest: &[Vec<u8>]) -> Vec<u8> {
    [frames(&offer(5)), rest.concat()].concat()
}

fn frame(frame: &Frame) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    bytes
}

fn data(bytes: &[u8]) -> Vec<u8> {
    [&Header::of_data(bytes.len())[..], bytes].concat()
}

#[test]
fn a_holder_who_breaks_the_protocol_leaves_nothing_behind() {
    let start = frame(&Frame::File { index: 0, offset: 0 });
    let end = frame(&Frame::FileEnd { index: 0, size: 5, sum: [0; 32] });
    let long = [&[0x03][..], &8193_u32.to_be_bytes()].concat();
    let escape = {
        let mut bytes = frames(&offer(5)[..1]);
        let at = bytes.len() - 1;
        bytes[at] = b'/';
        bytes
    };
    for (bytes, part) in [
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "does not speak"),
        (b"abtf\x09\0\0\0whatever comes then".to_vec(), "version 9"),
        (Preface { role: Role::Takes }.encode().to_vec(), "both sides"),
        ([frames(&[]), long].concat(), "length"),
        ([frames(&[]), vec![0xee, 0, 0, 0, 0]].concat(), "type 238"),
        (escape, "name"),
        (
            frames(&[&offer(5)[..1], &offer(5)[..1], &[Frame::OfferEnd { entries: 2 }]].concat()),
            "two entries have the name",
        ),
        (frames(&[Frame::OfferEnd { entries: 7 }]), "not complete"),
        (offered(&[data(b"early")]), "unexpected bytes of a file"),
        (offered(&[start.clone(), data(b"too long")]), "more bytes"),
        (offered(&[start.clone(), data(b"few"), end.clone()]), "fewer bytes"),
        (offered(&[start.clone(), data(b"wrong"), end]), "not what was sent"),
        (offered(&[frame(&Frame::File { index: 3, offset: 0 })]), "unexpected file"),
    ] {
        let sides = Sides::new();
        let (receiver, ticket, _) = receiver(&sides);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(say(&ticket, bytes)).expect("the ticket's holder may connect");
        let line = receiver.end().failed(1);
        assert!(line.contains(part), "{part}: {line}");
        assert!(!sides.to().join("a").exists(), "{part}");
    }
}

#[test]
fn a_ticket_is_bound_to_its_first_offer() {
    let sides = Sides::new();
    let (mut receiver, ticket, text_of_ticket) = receiver(&sides);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // The first holder breaks off in the middle.
    let half = offered(&[frame(&Frame::File { index: 0, offset: 0 }), data(b"abc")]);
    runtime.block_on(say(&ticket, half)).expect("the ticket's holder may connect");
    assert!(receiver.is_running());
    let other = sides.write("b", b"another offer");
    let line = run(&format!("send {} {text_of_ticket}", text(&other)), &[]).failed(1);
    assert!(line.contains("offered with it first"), "{line}");
    receiver.end().failed(1);
    assert!(!sides.to().join("a").exists() && !sides.to().join("b").exists());
}
