//! The Wireshark dissector shows what is in packets, where tshark is installed; elsewhere nothing is tested.

mod keys;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anabranch_core::wire::{ControlFrame, DataHeader, Frame, Writer};
use serde_json::Value;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/wireshark/anabranch.lua");

/// The preference of a capture whose packets are in clear.
const CLEAR: &str = "anabranch.clear:TRUE";

/// Fields of each datagram of a capture, from tshark with this preference. `None` without tshark.
fn dissected(capture: &Path, preference: &str, fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let script = format!("lua_script:{SCRIPT}");
    let mut tshark = Command::new("tshark");
    tshark.args(["-X", &script, "-o", preference, "-T", "fields", "-r"]).arg(capture);
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
    let Some(shown) = dissected(&file, CLEAR, &fields) else { return };
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

/// The packets in a simulated sender's qlog, and what is in them, are the same as on the links.
#[test]
fn a_simulation_has_the_same_packets_on_its_links_and_in_its_qlog() {
    let directory = tempfile::tempdir().unwrap();
    let scenario = directory.path().join("two.toml");
    let text = "name = \"two\"\nduration = \"2s\"\nseeds = 1\n\
        [[path]]\nname = \"wifi\"\nrate = \"8mbit\"\ndelay = \"10ms\"\nloss = \"2%\"\n\
        [[path]]\nname = \"lte\"\nrate = \"4mbit\"\ndelay = \"30ms\"\n\
        [[flow]]\nname = \"bulk\"\nprofile = \"anabranch\"\n\
        traffic = { kind = \"size\", size = \"400KB\" }\n";
    std::fs::write(&scenario, text).unwrap();
    let out = directory.path().join("out");
    let run = Command::new(env!("CARGO_BIN_EXE_anabranch"))
        .args(["sim", "run"])
        .arg(&scenario)
        .args(["--pcapng", "--qlog", "--out"])
        .arg(&out)
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let traces = out.join("traces");
    let fields =
        ["ip.src", "anabranch.path", "anabranch.number", "_ws.col.Info", "anabranch.malformed"];
    let Some(shown) = dissected(&traces.join("point0-seed1.pcapng"), CLEAR, &fields) else {
        return;
    };
    assert!(shown.iter().all(|packet| packet[4].is_empty()), "something is malformed");
    for (path, source) in [(0, "10.0.0.1"), (1, "10.0.0.3")] {
        let on_links: BTreeSet<(u64, bool)> = shown
            .iter()
            .filter(|packet| packet[0] == source && !packet[2].is_empty())
            .map(|packet| (packet[2].parse().unwrap(), packet[3].contains("REPAIR")))
            .collect();
        let in_qlog = sent(&traces, path);
        // The first packet leaves before an observer knows of the connection.
        let on_links: BTreeSet<_> =
            on_links.into_iter().filter(|(number, _)| *number > 0).collect();
        assert!(in_qlog.len() > 20, "{path}: {}", in_qlog.len());
        assert_eq!(on_links, in_qlog, "path {path}");
    }
}

/// The packets of a path in its qlog, by number, and whether a repair is in them.
fn sent(traces: &Path, path: u32) -> BTreeSet<(u64, bool)> {
    let named = |file: &PathBuf| file.to_string_lossy().ends_with(&format!("-path{path}.sqlog"));
    let files = std::fs::read_dir(traces).unwrap().map(|entry| entry.unwrap().path());
    let file = files.into_iter().find(named).unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    let texts = text.split('\u{1e}').skip(1);
    let events = texts.map(|text| serde_json::from_str::<Value>(text).unwrap());
    let sent = events.filter(|event| event["name"] == "transport:packet_sent");
    sent.map(|event| {
        let data = &event["data"];
        let frames = data["frames"].as_array().unwrap();
        let repairs = frames.iter().any(|frame| frame["frame_type"] == "repair");
        (data["header"]["packet_number"].as_u64().unwrap(), repairs)
    })
    .collect()
}
