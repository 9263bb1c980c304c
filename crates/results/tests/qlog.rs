//! Files that `Qlog` writes have the fields that qlog's schema and its viewers require.

#[path = "qlog/fields.rs"]
mod fields;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anabranch_core::observe::{FrameKinds, Observation, waits};
use anabranch_policy::view::{PathState, SymbolId};
use anabranch_results::trace::Qlog;
use anabranch_types::{PathId, Time};
use serde_json::{Value, json};

const PING: &[u8] = &[1];
/// An acknowledgement of packet 7 of path 0, and PADDING.
const ACK: &[u8] = &[2, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// One observation of each kind, in an order that can occur.
fn observations(path: PathId) -> Vec<Observation> {
    let ms = Duration::from_millis;
    let (number, bytes) = (7, 1200);
    let (latest, smoothed, min, in_flight) = (ms(30), ms(31), ms(29), 12_000);
    let reason = "a reason";
    vec![
        Observation::PathState { path, state: PathState::Active, reason },
        Observation::PathMtu { path, bytes: 1500, reason },
        Observation::Scheduled { path, what: "source", symbol: SymbolId(0), reason },
        Observation::PacketSent { path, number, bytes, frames: FrameKinds::of(PING) },
        Observation::Held { path, until: Time::from_millis(9), reason },
        Observation::BlockClosed { first: SymbolId(0), sources: 64, repairs: 9, loss_permille: 55 },
        Observation::Acknowledged { path, first: 5, last: 7 },
        Observation::Acknowledged { path: PathId(9), first: 1, last: 1 },
        Observation::PacketReceived { path, number: 3, bytes: 60, frames: FrameKinds::of(ACK) },
        Observation::Metrics { path, latest, smoothed, min, in_flight },
        Observation::Congestion { path, cwnd: 15_000, pacing_bps: 8_000_000, phase: "startup" },
        Observation::PacketLost { path, number: 4, bytes },
        Observation::Lost { path, packets: 1 },
        Observation::RepairsDue { first: SymbolId(0), count: 2 },
        Observation::Timeout { path, consecutive: 1 },
        Observation::Reinjected { path, packets: 3 },
        Observation::SharedBottleneck { path, with: PathId(9), shared: true },
        Observation::Waited { since: Time::from_millis(1), what: waits::READER },
    ]
}

fn texts(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    text.split('\u{1e}').skip(1).map(|text| serde_json::from_str(text).unwrap()).collect()
}

#[test]
fn every_event_has_the_fields_that_its_schema_asks_for() {
    let directory = tempfile::tempdir().unwrap();
    let qlog = Qlog::single(directory.path(), "all", "a connection", "client");
    let mut observer = qlog.observer();
    qlog.name_path(Time::from_millis(10), PathId(1), "wan1");
    for observation in observations(PathId(1)) {
        observer.observe(Time::from_millis(10), &observation);
    }
    drop(observer);
    qlog.finish().unwrap();
    let texts = texts(&directory.path().join("all.sqlog"));
    fields::check(&texts);
    let written: BTreeSet<&str> =
        texts[1..].iter().map(|event| event["name"].as_str().unwrap()).collect();
    assert_eq!(written, fields::names().collect(), "no event is missing");
    // A viewer sees the events of a path as one group with the path's name.
    let groups: BTreeSet<&str> =
        texts[1..].iter().map(|event| event["group_id"].as_str().unwrap()).collect();
    assert_eq!(groups.into_iter().collect::<Vec<_>>(), ["connection", "path 9", "wan1 (path 1)"]);
}

/// A viewer looks up acknowledged numbers among the packets sent on the same path.
#[test]
fn acknowledgements_of_another_path_have_another_name() {
    let directory = tempfile::tempdir().unwrap();
    let qlog = Qlog::new(directory.path(), "run", "a connection");
    let mut observer = qlog.observer();
    for observation in observations(PathId(0)) {
        observer.observe(Time::from_millis(10), &observation);
    }
    drop(observer);
    qlog.finish().unwrap();
    let texts = texts(&directory.path().join("run-path0.sqlog"));
    fields::check(&texts);
    let received = texts.iter().find(|text| text["name"] == "transport:packet_received").unwrap();
    let expected = json!([
        { "frame_type": "padding" },
        { "frame_type": "ack", "acked_ranges": [[5, 7]] },
        { "frame_type": "path_ack", "path_id": 9, "acked_ranges": [[1, 1]] },
    ]);
    assert_eq!(received["data"]["frames"], expected);
    // Acknowledged ranges are repeated among the events of the acknowledged path, where a viewer looks for them.
    let texts = self::texts(&directory.path().join("run-path9.sqlog"));
    fields::check(&texts);
    let [_, told] = texts.as_slice() else { panic!("{texts:?}") };
    assert_eq!((&told["name"], &told["path_id"]), (&"transport:packet_received".into(), &9.into()));
    let frames = json!([{ "frame_type": "ack", "acked_ranges": [[1, 1]] }]);
    let data = json!({ "header": { "packet_type": "1RTT" }, "frames": frames, "received_on": 0 });
    assert_eq!(told["data"], data);
}
