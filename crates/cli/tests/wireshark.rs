//! The Wireshark dissector shows what is in packets, where tshark is installed; elsewhere nothing is tested.

use std::path::Path;
use std::process::Command;

use anabranch_core::wire::{ControlFrame, DataHeader, Frame, Writer};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/wireshark/anabranch.lua");

/// What tshark says of a capture whose packets are in clear: these fields of each packet. `None` without tshark.
fn dissected(capture: &Path, fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let script = format!("lua_script:{SCRIPT}");
    let mut tshark = Command::new("tshark");
    tshark.args(["-X", &script, "-o", "anabranch.clear:TRUE", "-T", "fields", "-r"]).arg(capture);
    tshark.args(["-o", "anabranch.ports:58000-65535", "-Y", "anabranch"]);
    tshark.args(fields.iter().flat_map(|field| ["-e", field]));
    let output = match tshark.output() {
        Ok(output) => output,
        Err(error) => {
            println!("skipped: tshark: {error}");
            return None;
        }
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !errors.contains("Lua:"), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}

/// A capture of IP packets with these UDP payloads.
fn capture(file: &Path, payloads: &[Vec<u8>]) {
    let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend([0xff, 0xff, 0, 0, 101, 0, 0, 0]);
    for payload in payloads {
        let length = payload.len() as u32 + 28;
        let [high, low] = (length as u16).to_be_bytes();
        bytes.extend([[0; 4], [0; 4], length.to_le_bytes(), length.to_le_bytes()].concat());
        bytes.extend([0x45, 0, high, low, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.extend(
            [58_000_u16, 58_000, payload.len() as u16 + 8, 0].map(u16::to_be_bytes).concat(),
        );
        bytes.extend(payload);
    }
    std::fs::write(file, bytes).unwrap();
}

fn packet(frames: &[u8], number: u32) -> Vec<u8> {
    let mut bytes = [0; 10];
    let header = DataHeader { number, path: 3, epoch: 1, ..DataHeader::default() };
    header.encode(&mut Writer::new(&mut bytes)).unwrap();
    [&bytes, frames, &[0xaa; 16]].concat()
}

fn encoded(frame: ControlFrame) -> Vec<u8> {
    let mut bytes = [0; 100];
    let mut writer = Writer::new(&mut bytes);
    Frame::from(frame).encode(&mut writer).unwrap();
    let length = writer.position();
    bytes[..length].to_vec()
}

#[test]
fn frames_are_shown_and_broken_ones_marked() {
    use anabranch_core::wire::{ConnectionId, StreamId};
    use anabranch_types::PathId;
    let path = PathId(70_000);
    let large = (1 << 62) - 1;
    let frames = [
        ControlFrame::Ping,
        ControlFrame::MaxData { limit: large },
        ControlFrame::MaxStreamData { stream: StreamId(77), limit: 16_384 },
        ControlFrame::AckFloor { path, floor: 1 << 40 },
        ControlFrame::AddAddress { address: "[2001:db8::1]:4433".parse().unwrap() },
        ControlFrame::NewConnectionId { path, id: ConnectionId(0x0102_0304) },
    ];
    let mut payloads: Vec<_> = frames.map(encoded).to_vec();
    // A varint of eight bytes that ends after seven, and a frame type that does not exist.
    payloads.push(encoded(ControlFrame::MaxData { limit: large })[..8].to_vec());
    payloads.push(vec![0x3f]);
    let packets: Vec<_> = (0..).zip(&payloads).map(|(at, frames)| packet(frames, at)).collect();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("frames.pcap");
    capture(&file, &packets);
    let fields = ["number", "path", "limit", "about", "floor", "port", "data", "stream"]
        .map(|field| format!("anabranch.{field}"));
    let mut fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    fields.extend(["_ws.col.Info", "anabranch.malformed"]);
    let Some(shown) = dissected(&file, &fields) else { return };
    let numbers: Vec<String> = (0..8).map(|number: u32| number.to_string()).collect();
    assert_eq!(shown.iter().map(|packet| packet[0].clone()).collect::<Vec<_>>(), numbers);
    let values: Vec<[&str; 7]> =
        shown.iter().map(|packet| std::array::from_fn(|at| packet[at + 1].as_str())).collect();
    assert_eq!(values[0], ["3", "", "", "", "", "", ""]);
    assert_eq!(values[1], ["3", "4611686018427387903", "", "", "", "", ""]);
    assert_eq!(values[2], ["3", "16384", "", "", "", "", "77"]);
    assert_eq!(values[3], ["3", "", "70000", "1099511627776", "", "", ""]);
    assert_eq!(values[4], ["3", "", "", "", "4433", "20010db8000000000000000000000001", ""]);
    assert_eq!(values[5], ["3", "", "70000", "", "", "01020304", ""]);
    let malformed: Vec<bool> = shown.iter().map(|packet| !packet[9].is_empty()).collect();
    assert_eq!(malformed, [false, false, false, false, false, false, true, true], "{shown:?}");
    assert!(shown[1][8].ends_with("packet 1: MAX_DATA"), "{shown:?}");
}
