//! What qlog 0.3 and the viewer qvis require of a file: its header, and the fields of each event.

use serde_json::Value;

/// Kinds of JSON values.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Number,
    Word,
    List,
    Truth,
}

use Kind::{List, Number, Truth, Word};

impl Kind {
    fn holds(self, value: &Value) -> bool {
        match self {
            Kind::Number => value.as_f64().is_some_and(|number| number >= 0.0),
            Kind::Word => value.as_str().is_some_and(|word| !word.is_empty()),
            Kind::List => value.is_array(),
            Kind::Truth => value.is_boolean(),
        }
    }
}

/// Header fields without which qvis does not accept a file.
const HEADER: &[(&str, Kind)] = &[
    ("/qlog_version", Word),
    ("/qlog_format", Word),
    ("/title", Word),
    ("/trace/vantage_point/type", Word),
    ("/trace/common_fields/time_format", Word),
    ("/trace/common_fields/reference_time", Number),
    ("/trace/common_fields/protocol_type", List),
];

/// Each event's name, and the fields that it must have.
const EVENTS: &[(&str, &[(&str, Kind)])] = &[
    ("transport:packet_sent", PACKET),
    ("transport:packet_received", PACKET),
    ("recovery:packet_lost", &[PACKET[0], PACKET[1], PACKET[2]]),
    ("recovery:metrics_updated", &[]),
    ("recovery:congestion_state_updated", &[("/new", Word)]),
    ("recovery:loss_timer_updated", &[("/timer_type", Word), ("/event_type", Word)]),
    ("connectivity:mtu_updated", &[("/new", Number)]),
    ("anabranch:scheduled", &[("/what", Word), ("/symbol", Number), ("/reason", Word)]),
    ("anabranch:held", &[("/until", Number), ("/reason", Word)]),
    ("anabranch:waited", &[("/since", Number), ("/for", Word)]),
    (
        "anabranch:block_closed",
        &[("/first_symbol", Number), ("/sources", Number), ("/repairs", Number), ("/loss", Number)],
    ),
    ("anabranch:repairs_due", &[("/first_symbol", Number), ("/count", Number)]),
    ("anabranch:packets_lost", &[("/packets", Number)]),
    ("anabranch:reinjected", &[("/packets", Number)]),
    ("anabranch:path_state_updated", &[("/new", Word), ("/reason", Word)]),
    ("anabranch:shared_bottleneck", &[("/with", Number), ("/shared", Truth)]),
    ("anabranch:path_named", &[("/name", Word)]),
];

const PACKET: &[(&str, Kind)] = &[
    ("/header/packet_type", Word),
    ("/header/packet_number", Number),
    ("/raw/length", Number),
    ("/frames", List),
];
/// The fields of the event for a packet that came on another path and acknowledges packets of this
/// one.
const ELSEWHERE: &[(&str, Kind)] = &[PACKET[0], PACKET[3], ("/received_on", Number)];

/// Optional fields of `recovery:metrics_updated`, of which at least one must be present.
const METRICS: &[&str] = &["congestion_window", "pto_count", "smoothed_rtt"];

fn need(value: &Value, fields: &[(&str, Kind)]) {
    for (pointer, kind) in fields {
        let field = value.pointer(pointer);
        assert!(field.is_some_and(|field| kind.holds(field)), "{pointer}: {kind:?} in {value}");
    }
}

/// Panics if a viewer would not accept the texts of a file, the first of which is the header.
pub fn check(texts: &[Value]) {
    let (header, events) = texts.split_first().unwrap();
    need(header, HEADER);
    assert_eq!(
        (&header["qlog_version"], &header["qlog_format"]),
        (&"0.3".into(), &"JSON-SEQ".into())
    );
    assert_eq!(header["trace"]["common_fields"]["time_format"], "relative");
    let grouped = events.iter().filter(|event| event.get("group_id").is_some()).count();
    assert!(grouped == 0 || grouped == events.len(), "all events are in groups, or none");
    let mut last = 0.0;
    for event in events {
        let time = event["time"].as_f64().unwrap();
        assert!(time >= last, "events are in the order of time: {last}, then {event}");
        last = time;
        let name = event["name"].as_str().unwrap();
        let known = EVENTS.iter().find(|(known, _)| *known == name);
        let (_, fields) = known.unwrap_or_else(|| panic!("no event of a schema: {event}"));
        let elsewhere = event["data"].get("received_on").is_some();
        need(&event["data"], if elsewhere { ELSEWHERE } else { fields });
        if name == "recovery:metrics_updated" {
            let data = &event["data"];
            assert!(METRICS.iter().any(|field| data[field].is_number()), "no figure in {event}");
        }
        for frame in event["data"]["frames"].as_array().into_iter().flatten() {
            assert!(Word.holds(&frame["frame_type"]), "{event}");
            for range in frame["acked_ranges"].as_array().into_iter().flatten() {
                let numbers: Vec<u64> = serde_json::from_value(range.clone()).unwrap();
                assert!(numbers.len() == 2 && numbers[0] <= numbers[1], "{event}");
            }
        }
    }
}

/// The names of the events that a file can have.
#[allow(dead_code, reason = "one of the tests that share this file asks for it")]
pub fn names() -> impl Iterator<Item = &'static str> {
    EVENTS.iter().map(|(name, _)| *name)
}
