//! The table, and the same as JSON.

use anabranch_sim::stats::quantile;
use serde_json::{Value, json};

use crate::facts::Facts;
use crate::figures::{LinkFigures, Outcome};
use crate::options::Options;
use crate::roads::Road;
use crate::systems::System;

/// One system on one road.
#[derive(Clone, Debug)]
pub struct Row {
    pub road: Road,
    pub system: System,
    /// One for each seed, from 1 on.
    pub runs: Vec<Result<Outcome, String>>,
}

impl Row {
    /// The runs that succeeded.
    pub fn done(&self) -> impl Iterator<Item = &Outcome> {
        self.runs.iter().filter_map(|run| run.as_ref().ok())
    }

    /// The median of a figure; none if no run succeeded.
    pub fn median(&self, of: impl Fn(&Outcome) -> f64) -> Option<f64> {
        quantile(&self.done().map(of).collect::<Vec<_>>(), 0.5)
    }

    pub fn goodput(&self) -> Option<f64> {
        self.median(|outcome| outcome.goodput_mbps)
    }

    /// A figure of each link, medians, with a slash between links.
    pub fn each_link(&self, of: fn(&LinkFigures) -> f64, show: fn(f64) -> String) -> String {
        let links = self.done().next().map_or(0, |outcome| outcome.links.len());
        let value = |link: usize| self.median(|outcome| outcome.links.get(link).map_or(0.0, of));
        let all: Vec<String> = (0..links).filter_map(value).map(show).collect();
        all.join("/")
    }

    /// How many runs the emulator called unusable.
    pub fn unusable(&self) -> usize {
        self.done().filter(|outcome| outcome.unusable.is_some()).count()
    }
}

/// What stands above a road's lines.
pub fn heading(road: &Road) -> String {
    let kind = if road.kind.is_empty() { String::new() } else { format!(": {}", road.kind) };
    format!(
        "{}{kind}\n  {:<13}{:>8} {:<20}{:>9}{:>15}{:>15}{:>9}",
        road.name(),
        "system",
        "Mb/s",
        "  of each seed",
        "dropped",
        "queue mean ms",
        "queue p95 ms",
        "shares"
    )
}

/// A system's line.
pub fn line(row: &Row) -> String {
    let cells = cells(row);
    let seeds: Vec<String> = row
        .runs
        .iter()
        .map(|run| match run {
            Ok(outcome) => format!("{:.1}", outcome.goodput_mbps),
            Err(_) => "failed".to_owned(),
        })
        .collect();
    let [goodput, dropped, mean, p95, shares] = cells;
    let mark = if row.unusable() > 0 { '*' } else { ' ' };
    let seeds = format!("{mark} {}", seeds.join(" "));
    let line = format!(
        "  {:<13}{goodput:>8}{seeds:<21}{dropped:>9}{mean:>15}{p95:>15}{shares:>9}",
        row.system.name()
    );
    line.trim_end().to_owned()
}

/// The medians of goodput, drops, queues and shares.
pub fn cells(row: &Row) -> [String; 5] {
    let goodput = row.goodput().map_or("failed".to_owned(), |mbps| format!("{mbps:.2}"));
    let dropped = row.median(Outcome::drop_share);
    let shares = row.each_link(|link| link.share * 100.0, |share| format!("{share:.0}"));
    [
        goodput,
        dropped.map_or(String::new(), |share| format!("{:.2} %", share * 100.0)),
        row.each_link(|link| link.queue_mean_ms, |ms| format!("{ms:.1}")),
        row.each_link(|link| link.queue_p95_ms, |ms| format!("{ms:.1}")),
        if shares.contains('/') { shares + "%" } else { String::new() },
    ]
}

/// What is odd about the runs of a row.
pub fn notes(row: &Row) -> Vec<String> {
    let mut notes = Vec::new();
    for (seed, run) in (1..).zip(&row.runs) {
        let of_run = match run {
            Ok(outcome) => {
                let unusable = outcome.unusable.iter().map(|why| format!("unusable: {why}"));
                unusable.chain(outcome.notes.iter().cloned()).collect()
            }
            Err(why) => vec![format!("failed: {why}")],
        };
        notes.extend(of_run.iter().map(|note: &String| format!("seed {seed}: {note}")));
    }
    notes
}

/// The kernel's best row of a road, and the ratio of ours to it.
pub fn best(rows: &[Row]) -> Option<(&Row, f64)> {
    let ours = rows.iter().find(|row| row.system == System::Anabranch)?.goodput()?;
    let kernels = rows.iter().filter(|row| row.system.is_kernels());
    let (best, goodput) = kernels
        .filter_map(|row| Some((row, row.goodput()?)))
        .max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    Some((best, ours / goodput.max(1e-9)))
}

/// The line below a road's others.
pub fn verdict(rows: &[Row]) -> String {
    match best(rows) {
        Some((row, ratio)) => {
            format!("  anabranch {ratio:.2} of the kernel's best, {}", row.system.name())
        }
        None => "  nothing to compare".to_owned(),
    }
}

/// Rows by road, in their order.
pub fn by_road(rows: &[Row]) -> impl Iterator<Item = &[Row]> {
    rows.chunk_by(|one, other| one.road == other.road)
}

/// Everything, as JSON.
pub fn report(options: &Options, facts: &Facts, rows: &[Row]) -> Value {
    let row = |row: &Row| {
        let runs = (1..).zip(&row.runs).map(|(seed, run): (u64, _)| match run {
            Ok(outcome) => json!({ "seed": seed, "figures": outcome }),
            Err(why) => json!({ "seed": seed, "failed": why }),
        });
        json!({
            "system": row.system.name(),
            "goodput_mbps": row.goodput(),
            "drop_share": row.median(Outcome::drop_share),
            "unusable": row.unusable(),
            "runs": runs.collect::<Vec<_>>(),
        })
    };
    let road = |rows: &[Row]| {
        let (best, ratio) = best(rows).unzip();
        json!({
            "road": rows.first().map(|row| row.road.name()),
            "kind": rows.first().map(|row| row.road.kind),
            "best_of_kernel": best.map(|row: &Row| row.system.name()),
            "ratio_to_best": ratio,
            "systems": rows.iter().map(row).collect::<Vec<_>>(),
        })
    };
    json!({
        "version": facts.version,
        "commit": facts.commit,
        "kernel": facts.kernel,
        "cores": facts.cores,
        "left_out": facts.missing,
        "warm_up_seconds": options.warm_up,
        "seconds": options.seconds,
        "seeds": options.seeds,
        "roads": by_road(rows).map(road).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A road with a system of the kernel's that fails once, and ours.
    pub fn rows() -> Vec<Row> {
        let road = Road { file: "pairs", variant: "equal".to_owned(), paths: 2, kind: "steady" };
        let link = |name: &str, share| LinkFigures {
            name: name.to_owned(),
            packets: 1000.0,
            dropped: 10.0,
            share,
            queue_mean_ms: 2.25,
            queue_p95_ms: 40.0,
        };
        let run = |goodput_mbps| Outcome {
            goodput_mbps,
            links: vec![link("a", 0.7), link("b", 0.3)],
            late_p99_us: 60.0,
            ..Outcome::default()
        };
        let late = Outcome { unusable: Some("too busy".to_owned()), ..run(20.0) };
        let kernel = System::Mptcp { congestion: "reno" };
        let kernels = vec![Ok(run(10.0)), Ok(late), Err("no answer <&>".to_owned())];
        let ours = [30.0, 12.0, 18.0].map(|mbps| Ok(run(mbps))).to_vec();
        vec![
            Row { road: road.clone(), system: kernel, runs: kernels },
            Row { road, system: System::Anabranch, runs: ours },
        ]
    }

    #[test]
    fn lines_stand_under_their_headings() {
        let rows = rows();
        let text: Vec<String> = rows.iter().map(line).collect();
        assert_eq!(heading(&rows[0].road).lines().next(), Some("pairs/equal: steady"));
        let columns = heading(&rows[0].road).lines().nth(1).map(|line| line.chars().count());
        assert_eq!(columns, Some(text[0].chars().count()), "{text:?}");
        assert_eq!(
            text[0],
            "  mptcp:reno      15.00* 10.0 20.0 failed      1.00 %        2.2/2.2      40.0/40.0   70/30%"
        );
        assert!(text[1].starts_with("  anabranch       18.00  30.0 12.0 18.0"), "{}", text[1]);
        assert_eq!(
            notes(&rows[0]),
            ["seed 2: unusable: too busy", "seed 3: failed: no answer <&>"]
        );
        assert!(notes(&rows[1]).is_empty());
    }

    #[test]
    fn ours_stands_beside_the_kernels_best() {
        let rows = rows();
        assert_eq!(verdict(&rows), "  anabranch 1.20 of the kernel's best, mptcp:reno");
        assert_eq!(verdict(&rows[1..]), "  nothing to compare");
        let failed = Row { runs: vec![Err(String::new())], ..rows[1].clone() };
        assert_eq!(failed.goodput(), None);
        assert!(line(&failed).contains("failed"));
        assert!(best(&[rows[0].clone(), failed]).is_none());
    }

    #[test]
    fn the_report_has_what_was_run_where() {
        let words = ["program", "--time", "5"].map(str::to_owned);
        let options = Options::read(&words).expect("valid").expect("no help");
        let facts = Facts { kernel: "6.1".to_owned(), cores: 2, ..Facts::default() };
        let report = report(&options, &facts, &rows());
        assert_eq!((&report["kernel"], &report["seconds"]), (&json!("6.1"), &json!(5)));
        let road = &report["roads"][0];
        assert_eq!((&road["road"], &road["ratio_to_best"]), (&json!("pairs/equal"), &json!(1.2)));
        let kernel = &road["systems"][0];
        assert_eq!((&kernel["goodput_mbps"], &kernel["unusable"]), (&json!(15.0), &json!(1)));
        assert_eq!(kernel["runs"][2]["failed"], "no answer <&>");
        assert_eq!(kernel["runs"][0]["figures"]["links"][0]["share"], 0.7);
    }
}
