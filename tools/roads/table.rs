//! The results as a table and as JSON.

use serde_json::{Value, json};

use crate::measure::{Measured, quantile};
use crate::run::{Row, Trial};

/// Prints `rows`, medians over their seeds, as a table or as JSON.
///
/// # Errors
/// When they cannot be written as JSON.
pub fn print(rows: &[Row], as_json: bool) -> Result<(), String> {
    if as_json {
        let all: Vec<Value> = rows.iter().map(to_json).collect();
        let text = serde_json::to_string_pretty(&all).map_err(|error| error.to_string())?;
        println!("{text}");
        return Ok(());
    }
    let mut last = None;
    for row in rows {
        let trial = &row.trial;
        if last != Some(trial.file) {
            println!("{}{}", if last.is_some() { "\n" } else { "" }, heading(trial.file));
            last = Some(trial.file);
        }
        println!("{}", line(row));
    }
    for row in rows {
        for (seed, failure) in failures(row) {
            let Trial { file, road, system, .. } = &row.trial;
            println!("{file}/{road}, {system}, seed {seed} ended early: {failure}");
        }
    }
    Ok(())
}

/// The flows that ended before their time, by seed.
pub fn failures(row: &Row) -> impl Iterator<Item = (u64, &str)> {
    (1..).zip(&row.runs).filter_map(|(seed, run)| Some((seed, run.failure.as_deref()?)))
}

fn heading(file: &str) -> String {
    format!(
        "{:<24}{:<12}{:>8}{:>8}{:>9}{:>10}{:>14}{:>9}",
        file, "system", "Mb/s", "effic.", "p50 ms", "p99 ms", "queue p95 ms", "shares"
    )
}

fn line(row: &Row) -> String {
    let median = |of: &dyn Fn(&Measured) -> f64| median(&row.runs, of);
    let message = |which: usize| match row.runs.first().and_then(|run| run.message_ms) {
        Some(_) => millis(median(&|run| run.message_ms.map_or(f64::NAN, |both| both[which]))),
        None => "-".to_owned(),
    };
    let links = row.runs.first().map_or(0, |run| run.queue_ms.len());
    let each = |of: &dyn Fn(usize) -> String| (0..links).map(of).collect::<Vec<_>>().join("/");
    let queues = each(&|link| millis(median(&|run| at(&run.queue_ms, link))));
    let shares = match links {
        0 | 1 => String::new(),
        _ => each(&|link| format!("{:.0}", 100.0 * median(&|run| at(&run.shares, link)))) + "%",
    };
    let line = format!(
        "{:<24}{:<12}{:>8.2}{:>8.3}{:>9}{:>10}{:>14}{:>9}",
        row.trial.road,
        row.trial.system,
        median(&|run| run.goodput_mbps),
        median(&|run| run.efficiency),
        message(0),
        message(1),
        queues,
        shares,
    );
    line.trim_end().to_owned()
}

/// Milliseconds; values below 100 with one decimal.
fn millis(value: f64) -> String {
    match value {
        _ if value.is_infinite() => "lost".to_owned(),
        _ if value < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

fn at(values: &[f64], index: usize) -> f64 {
    values.get(index).copied().unwrap_or(0.0)
}

fn median(runs: &[Measured], of: impl Fn(&Measured) -> f64) -> f64 {
    let mut values: Vec<f64> = runs.iter().map(of).collect();
    quantile(&mut values, 0.5)
}

/// Infinite delays are `null`, as JSON has no infinity.
fn to_json(row: &Row) -> Value {
    let finite = |value: f64| value.is_finite().then_some(value);
    let message =
        |run: &Measured, which: usize| run.message_ms.map_or(f64::INFINITY, |both| both[which]);
    let seeds: Vec<Value> = (1..)
        .zip(&row.runs)
        .map(|(seed, run): (u64, _)| {
            json!({
                "seed": seed,
                "goodput_mbps": run.goodput_mbps,
                "efficiency": run.efficiency,
                "message_p50_ms": finite(message(run, 0)),
                "message_p99_ms": finite(message(run, 1)),
                "queue_p95_ms": run.queue_ms,
                "shares": run.shares,
                "failure": run.failure,
            })
        })
        .collect();
    let median = |of: &dyn Fn(&Measured) -> f64| median(&row.runs, of);
    let links = row.runs.first().map_or(0, |run| run.queue_ms.len());
    let each = |of: &dyn Fn(&Measured, usize) -> f64| {
        (0..links).map(|link| median(&|run| of(run, link))).collect::<Vec<_>>()
    };
    json!({
        "file": row.trial.file,
        "road": row.trial.road,
        "system": row.trial.system,
        "goodput_mbps": median(&|run| run.goodput_mbps),
        "efficiency": median(&|run| run.efficiency),
        "message_p50_ms": finite(median(&|run| message(run, 0))),
        "message_p99_ms": finite(median(&|run| message(run, 1))),
        "queue_p95_ms": each(&|run, link| at(&run.queue_ms, link)),
        "shares": each(&|run, link| at(&run.shares, link)),
        "seeds": seeds,
    })
}
