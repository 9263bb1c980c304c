//! The dissector decrypts what it has keys for, and shows nothing else.

#[allow(dead_code, reason = "shared by the tests, each of which uses its part")]
#[path = "../common/mod.rs"]
mod common;
#[allow(dead_code, reason = "shared by the tests, each of which uses its part")]
#[path = "../common/relay.rs"]
mod relay;
#[path = "../common/server.rs"]
mod server;

use std::path::Path;

use anabranch::crypto::NoiseCrypto;
use anabranch::{KeyLog, SecretKey};
use anabranch_core::crypto::{Crypto, PacketKeys, Session};
use anabranch_core::wire::header::{protect, sample};
use anabranch_core::wire::{ConnectionId, ControlFrame, DataHeader, HEADER_LEN, StreamId, Writer};
use anabranch_types::PathId;
use common::anabranch;
use relay::Relay;
use server::Server;

use super::{capture, dissected, encoded};

const FIELDS: [&str; 4] =
    ["_ws.col.Info", "anabranch.limit", "anabranch.epoch", "anabranch.malformed"];

fn with_keys(capture: &Path, keys: &Path) -> Option<Vec<Vec<String>>> {
    dissected(capture, &format!("anabranch.keylog_file:{}", keys.display()), &FIELDS)
}

/// The sessions of an initiator, whose keys are logged, and of a responder.
fn sessions(log: &Path) -> (Session, Session) {
    let identity = |fill| NoiseCrypto::new(SecretKey::from_bytes([fill; 32])).unwrap();
    let mut client = identity(1).with_key_log(KeyLog::append(log).unwrap());
    let mut server = identity(2);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let mut initiator = client.initiate(&server.public_key(), &[], &mut first).unwrap();
    let accepted = server.accept(&[], &first).unwrap();
    let responder = accepted.responder.respond(&[], &mut second).unwrap();
    (initiator.finish(&second).unwrap().1, responder)
}

/// A sealed packet with a masked header. Its one frame has the packet's number as a limit.
fn packet(keys: &mut PacketKeys, (id, epoch): (u32, u8), (path, number): (u32, u64)) -> Vec<u8> {
    let header =
        DataHeader { connection: ConnectionId(id), epoch, path: path as u8, number: number as u32 };
    let mut bytes = [0; HEADER_LEN];
    header.encode(&mut Writer::new(&mut bytes)).unwrap();
    let limit = ControlFrame::MaxStreamData { stream: StreamId(5), limit: number };
    let mut packet = [bytes.as_slice(), &encoded(limit), &[0; 16]].concat();
    keys.sealer.seal(PathId(path), number, &mut packet, HEADER_LEN);
    let mask = keys.sealer.mask(sample(&packet).unwrap());
    protect(&mut packet, mask);
    packet
}

#[test]
fn packets_of_every_epoch_path_and_side_are_decrypted_and_no_others() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("keys");
    let (mut client, mut server) = sessions(&log);
    let (mut stranger, _) = sessions(&directory.path().join("strangers"));
    let mut packets = Vec::new();
    for epoch in 0..6 {
        packets.push(packet(&mut client.keys, (7, epoch), (3, u64::from(epoch))));
        packets.push(packet(&mut server.keys, (9, epoch), (3, u64::from(epoch))));
        let asked = client.rekey.ask().unwrap();
        let (answer, keys) = server.rekey.answer(&asked).unwrap();
        server.keys = keys;
        client.keys = client.rekey.finish(&answer).unwrap();
    }
    // A path id of more than eight bits, packet numbers of more than 32, and a packet that arrives late.
    let mut far = |number| packet(&mut client.keys, (8, 6), (700, number));
    packets.extend([0xffff_fff0, (1 << 32) + 4, 0xffff_fff1].map(&mut far));
    // Packets that the system sends as one datagram of equal segments, the last of them shorter.
    packets.push([far((1 << 32) + 5), far((1 << 32) + 6)].concat());
    let shown = packets.len();
    // Neither a packet whose tag is wrong nor one of another connection is shown.
    let mut damaged = far(9);
    *damaged.last_mut().unwrap() ^= 1;
    packets.extend([damaged, packet(&mut stranger.keys, (10, 0), (3, 0))]);
    let file = directory.path().join("sealed.pcap");
    capture(&file, &packets);
    let Some(lines) = with_keys(&file, &log) else { return };
    assert_eq!(lines.len(), packets.len());
    for (line, at) in lines.iter().zip(0..12_usize) {
        let (number, epoch) = (at / 2, at / 2 % 4);
        let info = format!("path 3, packet {number}: MAX_STREAM_DATA");
        assert_eq!(*line, [&info, &number.to_string(), &epoch.to_string(), ""]);
    }
    let numbers: Vec<&str> = lines[12..shown].iter().map(|line| line[1].as_str()).collect();
    assert_eq!(numbers, ["4294967280", "4294967300", "4294967281", "4294967301,4294967302"]);
    assert!(lines[12].first().unwrap().starts_with("path 700, packet 4294967280: "));
    for line in &lines[shown..] {
        assert!(line[0].starts_with("Data for ") && line[1..].concat().is_empty(), "{line:?}");
    }
}

/// Every datagram of a real connection is decrypted with the keys that either end has logged.
#[test]
fn a_connection_of_the_program_is_decrypted_whole() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    let logs = ["server", "client"].map(|side| file(side).to_str().unwrap().to_owned());
    let server = Server::start(&["--once", "--key-log", &logs[0]], "");
    let relay = Relay::start("127.0.0.1:0", server.address.parse().unwrap(), Some(40));
    let (to, key) = (relay.address, &server.key);
    let line =
        format!("bench client {to} --peer {key} --bidir --bytes 300kB --key-log {}", logs[1]);
    anabranch(&line).succeeded();
    server.ended();
    let packets = relay.carried();
    assert!(packets.len() > 400, "{}", packets.len());
    let capture_file = file("connection.pcap");
    capture(&capture_file, &packets);
    let texts = logs.each_ref().map(|log| std::fs::read_to_string(log).unwrap());
    assert_eq!(texts[0], texts[1], "both ends have the same keys");
    for log in &logs {
        let Some(lines) = with_keys(&capture_file, Path::new(log)) else { return };
        assert_eq!(lines.len(), packets.len());
        for line in &lines {
            let handshake = ["Initiation", "Response"].contains(&line[0].as_str());
            assert!((handshake || line[0].starts_with("path 0, packet ")) && line[3].is_empty());
        }
        let all = lines.iter().map(|line| line[0].as_str()).collect::<String>();
        assert!(["SYMBOL", "ACK", "RANK", "CLOSE"].iter().all(|frame| all.contains(frame)));
    }
}
