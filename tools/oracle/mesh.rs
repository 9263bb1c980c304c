//! Tables 6 and 7: TCP over DSR on a ring, and among moving stations with the same movement files.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anabranch_policy::PolicySpec;
use anabranch_sim::endpoint::TcpProtocol;
use anabranch_sim::traffic::Traffic;
use anabranch_sim::wireless::mesh::{Mesh, MeshConfig, MeshFlow, MeshTraffic};
use anabranch_sim::wireless::{AirConfig, Fixed, FrameLoss, MacConfig, Motion, Waypoints};
use anabranch_tcp::Config;
use anabranch_types::{Bitrate, Probability, Time, math};
use serde_json::json;

use crate::arguments::Arguments;
use crate::report::Line;
use crate::senders;
use crate::statistics::Estimate;
use crate::table::{Row, Table};
use crate::workers;

/// Flows begin at 1 s, each a tenth of a second after the one before; a run ends 100 s after the first begins.
const END: Time = Time::from_secs(101);
/// Segments added to both sides of a ratio between mobile runs, so that runs in which hardly anything arrives count
/// little: one window.
const DEAD: f64 = 32.0;
/// How far the geometric mean of the ratios may be from 1.
const FACTOR: f64 = 1.3;

/// A point of a table: everything but the seed and, of mobile runs, the movement file.
#[derive(Clone, Debug, PartialEq)]
struct Point {
    sim: String,
    ring: bool,
    rate: f64,
    rts: bool,
    loss_kind: String,
    loss: f64,
    flows: u32,
}

/// Segments acknowledged in the reference's runs, by movement file or for the ring.
type Runs = BTreeMap<String, Vec<f64>>;

/// Runs every point and compares this simulator with the reference. On the ring, its mean is
/// compared with the spread of the reference's runs; for moving stations, the geometric mean of the
/// ratios of all files is given.
pub fn compare(table: &Table, arguments: &Arguments) -> Result<Vec<Line>, String> {
    let mut points: Vec<(Point, Runs)> = Vec::new();
    for row in table.rows() {
        let (point, topology, segments) = read(&row)?;
        let wanted = arguments.all || point.sim == "ns2-sack1";
        let wanted = wanted && arguments.sim.as_ref().is_none_or(|sim| *sim == point.sim);
        let quick = point.rate == 11.0 && point.flows == 1;
        if !wanted || (arguments.quick && !quick) {
            continue;
        }
        let at = points.iter().position(|(other, _)| *other == point);
        let at = at.unwrap_or_else(|| {
            points.push((point, Runs::new()));
            points.len() - 1
        });
        points[at].1.entry(topology).or_default().push(segments);
    }
    workers::map(points.len(), arguments.jobs, |at| {
        let (point, runs) = &points[at];
        if point.ring { ring(point, runs, arguments) } else { mobile(point, runs, arguments) }
    })
}

fn read(row: &Row<'_>) -> Result<(Point, String, f64), String> {
    let topology = row.text("topo")?.to_owned();
    let point = Point {
        sim: row.text("sim")?.to_owned(),
        ring: topology == "ring",
        rate: row.number("rate_mbps", 0.1, 1e3)?,
        rts: row.number("rts", 0.0, 1.0)? > 0.0,
        loss_kind: row.text("losskind")?.to_owned(),
        loss: row.number("loss", 0.0, 1.0)?,
        flows: row.number("nflows", 1.0, 100.0)? as u32,
    };
    Ok((point, topology, row.number("acked_pkts", 0.0, 1e9)?))
}

fn ring(point: &Point, runs: &Runs, arguments: &Arguments) -> Result<Line, String> {
    let theirs = runs.values().next().ok_or("a point without runs")?;
    let run = |seed| segments(point, "ring", seed);
    let ours = (1..=arguments.seeds).map(run).collect::<Result<Vec<f64>, String>>()?;
    let (ours, reference) = (Estimate::of(&ours), Estimate::of(theirs));
    let least = theirs.iter().copied().fold(f64::INFINITY, f64::min);
    let most = theirs.iter().copied().fold(0.0, f64::max);
    let margin = 2.0 * ours.error;
    let mut fields = describe(point);
    fields.extend([
        ("ours", json!(ours.mean)),
        ("error", json!(ours.error)),
        ("theirs", json!(reference.mean)),
        ("least", json!(least)),
        ("most", json!(most)),
    ]);
    let inside = (least - margin..=most + margin).contains(&ours.mean);
    Ok(Line { fields, counted: point.sim == "ns2-sack1", inside })
}

fn mobile(point: &Point, runs: &Runs, arguments: &Arguments) -> Result<Line, String> {
    let mut ratios = Vec::new();
    for (file, theirs) in runs {
        let run = |seed| segments(point, file, seed);
        let ours = (1..=arguments.seeds).map(run).collect::<Result<Vec<f64>, String>>()?;
        ratios.push(logarithm(&ours) - logarithm(theirs));
    }
    let ratio = Estimate::of(&ratios);
    let range = |sign: f64| math::exp(ratio.mean + sign * 2.0 * ratio.error);
    let mut fields = describe(point);
    fields.extend([
        ("flows", json!(point.flows)),
        ("files", json!(ratios.len())),
        ("ratio", json!(math::exp(ratio.mean))),
        ("from", json!(range(-1.0))),
        ("to", json!(range(1.0))),
    ]);
    let inside = (1.0 / FACTOR..=FACTOR).contains(&math::exp(ratio.mean));
    Ok(Line { fields, counted: true, inside })
}

/// The mean logarithm of the runs' segments.
fn logarithm(segments: &[f64]) -> f64 {
    let sum: f64 = segments.iter().map(|segments| math::ln(segments + DEAD)).sum();
    sum / segments.len() as f64
}

fn describe(point: &Point) -> Vec<(&'static str, serde_json::Value)> {
    vec![
        ("sim", json!(point.sim)),
        ("rate_mbps", json!(point.rate)),
        ("rts", json!(u8::from(point.rts))),
        ("loss_kind", json!(point.loss_kind)),
        ("loss", json!(point.loss)),
    ]
}

/// Segments acknowledged in our run, all flows together.
fn segments(point: &Point, topology: &str, seed: u64) -> Result<f64, String> {
    let mut mesh = Mesh::new(&config(point)?, motion(topology)?, seed)
        .map_err(|why| format!("{topology}: {why}"))?;
    mesh.run_until(END);
    Ok((0..point.flows as usize).map(|flow| mesh.acknowledged(flow) / 500).sum::<u64>() as f64)
}

fn config(point: &Point) -> Result<MeshConfig, String> {
    let probability = Probability::new(point.loss).ok_or("a loss is no probability")?;
    let mut loss = FrameLoss::default();
    match point.loss_kind.as_str() {
        "none" => {}
        "above" => loss.above = probability,
        "below" => loss.below = probability,
        other => return Err(format!("unknown kind of loss '{other}'")),
    }
    let mac = MacConfig {
        data_rate: Bitrate::from_mbps(point.rate),
        rts_threshold: if point.rts { 0 } else { u32::MAX },
        ..MacConfig::ns2()
    };
    let sender = senders::imitate(&point.sim, false)
        .ok_or_else(|| format!("nothing of ours is like '{}'", point.sim))?;
    let config = Config { mss: 500, receive_buffer: 32 * 500, ..sender.config };
    let control = sender.control.parse::<PolicySpec>().map_err(|why| why.to_string())?;
    let protocol = Arc::new(TcpProtocol::new(config, control));
    let flow = |flow: u32| MeshFlow {
        from: 2 * flow,
        to: if point.ring { 7 } else { 2 * flow + 1 },
        start: Time::from_secs(1) + Duration::from_millis(100) * flow,
        traffic: MeshTraffic::Tcp(Arc::clone(&protocol), Traffic::Bulk),
    };
    let flows = (0..point.flows).map(flow).collect();
    let air = AirConfig { mac, loss, ..AirConfig::default() };
    Ok(MeshConfig { air, flows, ..MeshConfig::default() })
}

fn motion(topology: &str) -> Result<Box<dyn Motion>, String> {
    if topology == "ring" {
        // Neighbours 200 m apart.
        return Ok(Box::new(Fixed::circle(14, 449.4)));
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no repository")?;
    let path = root.join("crates/sim/tests/data/oracle/mobility").join(topology);
    let text = std::fs::read_to_string(&path).map_err(|why| format!("{topology}: {why}"))?;
    let motion: Waypoints = text.parse().map_err(|why| format!("{topology}: {why}"))?;
    Ok(Box::new(motion))
}
