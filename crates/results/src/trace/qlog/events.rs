//! Maps observations to qlog events.

use anabranch_core::observe::{FrameKinds, Observation};
use anabranch_policy::view::PathState;
use anabranch_types::{PathId, Time};
use core::time::Duration;
use serde_json::{Value, json};

use super::Acknowledged;
use crate::trace::Symbol;

/// An event's name and its data.
pub(super) type Event = (&'static str, Value);

/// The path that an observation is about, and its events; `acknowledged` lists the packets that a
/// received packet acknowledges for the first time.
pub(super) fn of(
    observation: &Observation,
    acknowledged: &[Acknowledged],
) -> (Option<u64>, Vec<Event>) {
    let (path, event) = match *observation {
        Observation::PacketSent { path, number, bytes, frames } => {
            let frames: Vec<Value> =
                frames.names().map(|name| json!({ "frame_type": name })).collect();
            (Some(path), ("transport:packet_sent", packet(number, bytes, Some(frames))))
        }
        Observation::PacketReceived { path, number, bytes, frames } => {
            let frames = received(path, frames, acknowledged);
            (Some(path), ("transport:packet_received", packet(number, bytes, Some(frames))))
        }
        Observation::PacketLost { path, number, bytes } => {
            (Some(path), ("recovery:packet_lost", packet(number, bytes, None)))
        }
        Observation::Metrics { path, latest, smoothed, min, in_flight } => {
            let data = json!({
                "latest_rtt": millis(latest),
                "smoothed_rtt": millis(smoothed),
                "min_rtt": millis(min),
                "bytes_in_flight": in_flight,
            });
            (Some(path), ("recovery:metrics_updated", data))
        }
        Observation::Timeout { path, consecutive } => {
            let expired = json!({ "timer_type": "pto", "event_type": "expired" });
            let count = json!({ "pto_count": consecutive });
            let events =
                vec![("recovery:loss_timer_updated", expired), ("recovery:metrics_updated", count)];
            return (Some(path.0.into()), events);
        }
        _ => match decision(observation).or_else(|| change(observation)) {
            Some(event) => event,
            // `Acknowledged` is written with the packet that carried it.
            None => return (None, Vec::new()),
        },
    };
    (path.map(|path| path.0.into()), vec![event])
}

/// A packet's number and length, and its frames if they are known.
fn packet(number: u64, bytes: u32, frames: Option<Vec<Value>>) -> Value {
    let header = json!({ "packet_type": "1RTT", "packet_number": number });
    let mut data = json!({ "header": header, "raw": { "length": bytes } });
    if let (Some(frames), Some(data)) = (frames, data.as_object_mut()) {
        data.insert("frames".to_owned(), json!(frames));
    }
    data
}

/// The frames of a packet that came on `path`. Acknowledgements of packets of other paths have
/// another frame type, since packet numbers count on each path.
fn received(path: PathId, frames: FrameKinds, acknowledged: &[Acknowledged]) -> Vec<Value> {
    let here: Vec<Value> = acknowledged.iter().filter(|of| of.path == path).map(range).collect();
    let elsewhere = elsewhere(path, acknowledged);
    let mut all = Vec::new();
    for name in frames.names() {
        if name != "ack" || (here.is_empty() && elsewhere.is_empty()) {
            all.push(json!({ "frame_type": name }));
            continue;
        }
        if !here.is_empty() {
            all.push(json!({ "frame_type": "ack", "acked_ranges": here }));
        }
        for (path, ranges) in &elsewhere {
            all.push(
                json!({ "frame_type": "path_ack", "path_id": path.0, "acked_ranges": ranges }),
            );
        }
    }
    all
}

/// The ranges of other paths' packets that a packet on `path` acknowledges, path by path.
fn elsewhere(path: PathId, acknowledged: &[Acknowledged]) -> Vec<(PathId, Vec<Value>)> {
    let others: Vec<&Acknowledged> = acknowledged.iter().filter(|of| of.path != path).collect();
    let by_path = others.chunk_by(|a, b| a.path == b.path);
    let ranges = |of: &[&Acknowledged]| of.iter().copied().map(range).collect();
    by_path.filter_map(|of| Some((of.first()?.path, ranges(of)))).collect()
}

fn range(of: &Acknowledged) -> Value {
    json!([of.first, of.last])
}

/// Events for the other paths whose packets a packet on `path` acknowledges: for each of these
/// paths, the data of a `packet_received` without number and length. Viewers take each path for a
/// connection of its own and look for its acknowledgements among its events.
pub(super) fn told_elsewhere(path: PathId, acknowledged: &[Acknowledged]) -> Vec<(u64, Value)> {
    let told = elsewhere(path, acknowledged).into_iter().map(|(other, ranges)| {
        let data = json!({
            "header": { "packet_type": "1RTT" },
            "frames": [{ "frame_type": "ack", "acked_ranges": ranges }],
            "received_on": path.0,
        });
        (other.0.into(), data)
    });
    told.collect()
}

/// The event of a decision, in the namespace of this protocol.
fn decision(observation: &Observation) -> Option<(Option<PathId>, Event)> {
    Some(match *observation {
        Observation::Scheduled { path, what, symbol, reason } => {
            let data = json!({ "what": what, "symbol": Symbol::from(symbol), "reason": reason });
            (Some(path), ("anabranch:scheduled", data))
        }
        Observation::Held { path, until, reason } => {
            let data = json!({ "until": moment(until), "reason": reason });
            (Some(path), ("anabranch:held", data))
        }
        Observation::Waited { since, what } => {
            (None, ("anabranch:waited", json!({ "since": moment(since), "for": what })))
        }
        Observation::BlockClosed { first, sources, repairs, loss_permille } => {
            let data = json!({
                "first_symbol": Symbol::from(first),
                "sources": sources,
                "repairs": repairs,
                "loss": f64::from(loss_permille) / 1000.0,
            });
            (None, ("anabranch:block_closed", data))
        }
        Observation::RepairsDue { first, count } => {
            let first = Symbol::from(first);
            (None, ("anabranch:repairs_due", json!({ "first_symbol": first, "count": count })))
        }
        Observation::Lost { path, packets } => {
            (Some(path), ("anabranch:packets_lost", json!({ "packets": packets })))
        }
        Observation::Reinjected { path, packets } => {
            (Some(path), ("anabranch:reinjected", json!({ "packets": packets })))
        }
        _ => return None,
    })
}

/// The event of a change of a path.
fn change(observation: &Observation) -> Option<(Option<PathId>, Event)> {
    Some(match *observation {
        Observation::PathMtu { path, bytes, reason } => {
            (Some(path), ("connectivity:mtu_updated", json!({ "new": bytes, "reason": reason })))
        }
        Observation::SharedBottleneck { path, with, shared } => {
            let data = json!({ "with": with.0, "shared": shared });
            (Some(path), ("anabranch:shared_bottleneck", data))
        }
        Observation::PathState { path, state, reason } => {
            let data = json!({ "new": name(state), "reason": reason });
            (Some(path), ("anabranch:path_state_updated", data))
        }
        Observation::Congestion { path, cwnd, pacing_bps, .. } => {
            let mut data = json!({ "congestion_window": cwnd });
            if pacing_bps > 0
                && let Some(data) = data.as_object_mut()
            {
                data.insert("pacing_rate".to_owned(), json!(pacing_bps));
            }
            (Some(path), ("recovery:metrics_updated", data))
        }
        _ => return None,
    })
}

/// A duration in milliseconds.
fn millis(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}

/// A time in milliseconds since the beginning.
fn moment(time: Time) -> f64 {
    time.as_nanos() as f64 / 1e6
}

fn name(state: PathState) -> String {
    format!("{state:?}").to_lowercase()
}
