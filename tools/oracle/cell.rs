//! Table 5: stations that share a radio channel, each with a message for one receiver at all times.

use anabranch_sim::wireless::bianchi::{Access, Channel, CollisionCost, Preamble};
use anabranch_sim::wireless::{Cell, MacConfig};
use anabranch_types::{Bitrate, Time};
use serde_json::json;
use std::collections::BTreeMap;

use crate::arguments::Arguments;
use crate::report::Line;
use crate::statistics::Estimate;
use crate::table::Table;
use crate::workers;

/// Virtual seconds of a run.
const SECONDS: u64 = 60;

/// Rate of data and rate of ACKs, Mb/s, and number of stations.
type Key = (u32, u32, u32);

/// Runs every cell of the table by the standard's rules and by those of ns-2, and sets ours beside the
/// spread of all simulators in the table and Bianchi's model.
pub fn compare(table: &Table, arguments: &Arguments) -> Result<Vec<Line>, String> {
    let mut points: BTreeMap<Key, Vec<(String, f64)>> = BTreeMap::new();
    for row in table.rows() {
        let whole = |name, most| row.number(name, 1.0, most).map(|number| number as u32);
        let key = (whole("rate_mbps", 1e3)?, whole("ack_rate_mbps", 1e3)?, whole("n", 1e3)?);
        let run = (row.text("sim")?.to_owned(), row.number("throughput_mbps", 0.0, 1e3)?);
        points.entry(key).or_default().push(run);
    }
    let points: Vec<_> = points.into_iter().collect();
    workers::map(points.len(), arguments.jobs, |at| {
        line(&points[at].0, &points[at].1, arguments.seeds)
    })
}

fn line((data, ack, stations): &Key, runs: &[(String, f64)], seeds: u64) -> Result<Line, String> {
    let rates = [*data, *ack].map(|mbps| Bitrate::from_mbps(mbps.into()));
    let standard = measure(MacConfig::default(), rates, *stations, seeds)?;
    let ns2_rules = measure(MacConfig::ns2(), rates, *stations, seeds)?;
    let model = model(rates, *stations);
    let all = || runs.iter().map(|(_, throughput)| *throughput).chain([model]);
    let least = all().fold(f64::INFINITY, f64::min);
    let most = all().fold(0.0, f64::max);
    let ns2: Vec<f64> = runs.iter().filter(|run| run.0 == "ns2").map(|run| run.1).collect();
    let margin = 2.0 * standard.error;
    Ok(Line {
        fields: vec![
            ("data_mbps", json!(data)),
            ("ack_mbps", json!(ack)),
            ("stations", json!(stations)),
            ("ours_mbps", json!(standard.mean)),
            ("least_mbps", json!(least)),
            ("most_mbps", json!(most)),
            ("model_mbps", json!(model)),
            ("by_rules_of_ns2", json!(ns2_rules.mean)),
            ("ns2_mbps", json!(Estimate::of(&ns2).mean)),
        ],
        counted: true,
        inside: (least - margin..=most + margin).contains(&standard.mean),
    })
}

fn measure(
    base: MacConfig,
    [data_rate, basic_rate]: [Bitrate; 2],
    stations: u32,
    seeds: u64,
) -> Result<Estimate, String> {
    let mac = MacConfig { data_rate, basic_rate, ..base };
    let run = |seed| {
        let mut cell = Cell::new(&mac, stations, 1000, seed).map_err(|why| why.to_string())?;
        cell.run_until(Time::from_secs(SECONDS));
        Ok(cell.throughput().as_mbps())
    };
    let runs = (1..=seeds).map(run).collect::<Result<Vec<f64>, String>>()?;
    Ok(Estimate::of(&runs))
}

/// Bianchi's model with EIFS after collisions and seven attempts.
fn model([data_rate, control_rate]: [Bitrate; 2], stations: u32) -> f64 {
    let channel = Channel {
        data_rate,
        control_rate,
        collision: CollisionCost::Eifs,
        attempts: Some(7),
        ..Channel::dsss_11b(Preamble::Long)
    };
    channel.throughput(Access::Basic, stations, 1000).as_mbps()
}
