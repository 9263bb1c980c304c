//! Table 1: one flow, random loss.

use anabranch_sim::loss::LossConfig;
use anabranch_types::Probability;
use serde_json::json;

use crate::arguments::Arguments;
use crate::bottleneck::{Bottleneck, Outcome};
use crate::report::Line;
use crate::senders::{Imitation, imitate};
use crate::statistics::Estimate;
use crate::table::{Row, Table};
use crate::workers;

/// A row of the table that is compared.
struct Point {
    sim: String,
    delayed: bool,
    loss: f64,
    bottleneck: Bottleneck,
    sender: Imitation,
    goodput: Estimate,
    timeouts: Estimate,
    retransmissions: f64,
}

/// Reads a row; `None` if its sender is not imitated.
fn point(row: &Row<'_>, substitute: Option<&str>) -> Result<Option<Point>, String> {
    let sim = row.text("sim")?.to_owned();
    let delayed = row.number("delack", 0.0, 1.0)? > 0.5;
    let mbps = row.number("bw_mbps", 0.001, 1e6)?;
    let one_way_ms = row.number("owd_ms", 0.0, 60_000.0)?;
    let loss = row.number("loss", 0.0, 1.0)?;
    let queue_packets = row.number("queue_pkts", 1.0, 1e6)?;
    let n = row.number("n_seeds", 1.0, 1e6)?;
    let mean = row.number("goodput_mean_mbps", 0.0, 1e6)?;
    let deviation = row.number("goodput_std_mbps", 0.0, 1e6)?;
    let timeouts = row.number("timeouts_mean", 0.0, 1e9)?;
    let retransmissions = row.number("retx_mean", 0.0, 1e9)?;
    let Some(mut sender) = imitate(&sim, delayed) else { return Ok(None) };
    if let Some(name) = substitute {
        let other = imitate(name, delayed).ok_or_else(|| format!("--as: no sender '{name}'"))?;
        sender = Imitation { reference: sender.reference, ..other };
    }
    let model = match loss {
        0.0 => LossConfig::None,
        _ => LossConfig::Bernoulli(Probability::clamped(loss)),
    };
    Ok(Some(Point {
        sim,
        delayed,
        loss,
        bottleneck: Bottleneck { mbps, one_way_ms, queue_packets, loss: model },
        sender,
        goodput: Estimate::published(mean, deviation, n),
        timeouts: Estimate { mean: timeouts, error: 0.0 },
        retransmissions,
    }))
}

/// Runs every point of the table and sets ours beside it.
pub fn compare(table: &Table, arguments: &Arguments) -> Result<Vec<Line>, String> {
    let mut points = Vec::new();
    for row in table.rows() {
        if let Some(point) = point(&row, arguments.substitute.as_deref())? {
            let named = arguments.sim.as_ref().is_none_or(|sim| *sim == point.sim);
            let wanted = arguments.all || arguments.sim.is_some() || point.sender.reference;
            let small = !arguments.quick || point.bottleneck.mbps <= 10.0;
            if named && wanted && small {
                points.push(point);
            }
        }
    }
    if points.is_empty() {
        return Err("no row of the table is of a sender that is compared".into());
    }
    // Without loss every seed is the same run.
    let runs: Vec<(usize, u64)> = points
        .iter()
        .enumerate()
        .flat_map(|(at, point)| {
            let seeds = if point.loss > 0.0 { arguments.seeds } else { 1 };
            (1..=seeds).map(move |seed| (at, seed))
        })
        .collect();
    let outcomes = workers::map(runs.len(), arguments.jobs, |index| {
        let (at, seed) = runs[index];
        points[at].bottleneck.run(&points[at].sender, seed)
    })?;
    let lines = points.iter().enumerate().map(|(at, point)| {
        let of = runs.iter().zip(&outcomes).filter(|((run, _), _)| *run == at);
        line(point, &of.map(|(_, outcome)| *outcome).collect::<Vec<_>>())
    });
    Ok(lines.collect())
}

fn line(point: &Point, outcomes: &[Outcome]) -> Line {
    let of =
        |field: fn(&Outcome) -> f64| Estimate::of(&outcomes.iter().map(field).collect::<Vec<_>>());
    let (goodput, timeouts) = (of(|o| o.goodput_mbps), of(|o| o.timeouts));
    let retransmissions = of(|o| o.retransmissions);
    let inside =
        goodput.agrees(&point.goodput, 0.15) && timeouts.within_factor(&point.timeouts, 1.5, 20.0);
    Line {
        fields: vec![
            ("sim", json!(point.sim)),
            ("bw_mbps", json!(point.bottleneck.mbps)),
            ("owd_ms", json!(point.bottleneck.one_way_ms)),
            ("loss", json!(point.loss)),
            ("delack", json!(u8::from(point.delayed))),
            ("reference_mbps", json!(point.goodput.mean)),
            ("ours_mean_mbps", json!(goodput.mean)),
            ("ours_se_mbps", json!(goodput.error)),
            ("ratio", json!(goodput.mean / point.goodput.mean.max(1e-9))),
            ("reference_timeouts", json!(point.timeouts.mean)),
            ("ours_timeouts", json!(timeouts.mean)),
            ("reference_retx", json!(point.retransmissions)),
            ("ours_retx", json!(retransmissions.mean)),
        ],
        counted: point.sender.reference,
        inside,
    }
}
