//! The results as a table and as JSON.

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
    /// One result for each seed, from 1 on.
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

    /// The median of a figure that some runs do not have.
    fn median_if(&self, of: impl Fn(&Outcome) -> Option<f64>) -> Option<f64> {
        quantile(&self.done().filter_map(of).collect::<Vec<_>>(), 0.5)
    }

    /// The median over the seeds of a quantile of short flows' completion times, ms.
    fn flows(&self, q: f64) -> Option<f64> {
        self.median_if(|outcome| quantile(&outcome.flows_ms, q))
    }

    fn gap(&self) -> Option<f64> {
        self.median_if(|outcome| outcome.gap_ms)
    }

    /// The median over the seeds of a quantile of messages' delays, ms.
    fn messages(&self, q: f64) -> Option<f64> {
        self.median_if(|outcome| quantile(&outcome.messages_ms, q))
    }

    fn cpu(&self) -> Option<f64> {
        self.median_if(|outcome| outcome.cpu_seconds_per_gb)
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

    /// Whether everything could be measured.
    pub fn is_complete(&self) -> bool {
        let whole = |run: &Result<Outcome, String>| {
            run.as_ref().is_ok_and(|outcome| outcome.failures.is_empty())
        };
        self.runs.iter().all(whole)
    }

    /// How many runs the emulator called unusable.
    pub fn unusable(&self) -> usize {
        self.done().filter(|outcome| outcome.unusable.is_some()).count()
    }
}

/// The columns after the goodput.
pub const COLUMNS: [&str; 8] = [
    "dropped",
    "queue mean ms",
    "queue p95 ms",
    "shares",
    "flow ms, p95",
    "gap ms",
    "msg p99",
    "CPU s/GB",
];

/// The headings above a road's lines.
pub fn heading(road: &Road) -> String {
    let kind = if road.kind.is_empty() { String::new() } else { format!(": {}", road.kind) };
    format!(
        "{}{kind}\n  {:<22}{:>8} {:<20}{:>9}{:>15}{:>15}{:>9}{:>13}{:>9}{:>9}{:>9}",
        road.name(),
        "system",
        "Mb/s",
        "  of each seed",
        COLUMNS[0],
        COLUMNS[1],
        COLUMNS[2],
        COLUMNS[3],
        COLUMNS[4],
        COLUMNS[5],
        COLUMNS[6],
        COLUMNS[7]
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
    let [goodput, dropped, mean, p95, shares, flows, gap, messages, cpu] = cells;
    let mark = if row.unusable() > 0 { '*' } else { ' ' };
    let seeds = format!("{mark} {}", seeds.join(" "));
    let line = format!(
        "  {:<22}{goodput:>8}{seeds:<21}{dropped:>9}{mean:>15}{p95:>15}{shares:>9}{flows:>13}{gap:>9}{messages:>9}{cpu:>9}",
        row.system.name()
    );
    line.trim_end().to_owned()
}

/// The medians of goodput, drops, queues, shares and the other measurements; empty where nothing was measured.
pub fn cells(row: &Row) -> [String; 9] {
    let goodput = row.goodput().map_or("failed".to_owned(), |mbps| format!("{mbps:.2}"));
    let known = |outcome: &Outcome| (!outcome.links.is_empty()).then(|| outcome.drop_share());
    let dropped = row.median_if(known);
    let whole = |ms: Option<f64>| ms.map_or(String::new(), |ms| format!("{ms:.0}"));
    let flows = [0.5, 0.95].map(|q| whole(row.flows(q)));
    let shares = row.each_link(|link| link.share * 100.0, |share| format!("{share:.0}"));
    [
        goodput,
        dropped.map_or(String::new(), |share| format!("{:.2} %", share * 100.0)),
        row.each_link(|link| link.queue_mean_ms, |ms| format!("{ms:.1}")),
        row.each_link(|link| link.queue_p95_ms, |ms| format!("{ms:.1}")),
        if shares.contains('/') { shares + "%" } else { String::new() },
        if flows[0].is_empty() { String::new() } else { flows.join(", ") },
        whole(row.gap()),
        whole(row.messages(0.99)),
        row.cpu().map_or(String::new(), |cpu| format!("{cpu:.1}")),
    ]
}

/// Remarks on the runs of a row, by seed.
pub fn notes(row: &Row) -> Vec<String> {
    let mut notes = Vec::new();
    for (seed, run) in (1..).zip(&row.runs) {
        let of_run = match run {
            Ok(outcome) => {
                let unusable = outcome.unusable.iter().map(|why| format!("unusable: {why}"));
                let failures = outcome.failures.iter().map(|why| format!("failed: {why}"));
                unusable.chain(outcome.notes.iter().cloned()).chain(failures).collect()
            }
            Err(why) => vec![format!("failed: {why}")],
        };
        notes.extend(of_run.iter().map(|note: &String| format!("seed {seed}: {note}")));
    }
    notes
}

/// The goodput of a model's row over that of the system it models.
pub fn of_kernel(row: &Row, rows: &[Row]) -> Option<f64> {
    let modelled = row.system.modelled()?;
    let kernels = rows.iter().find(|it| it.system == modelled && it.road == row.road)?;
    Some(row.goodput()? / kernels.goodput().filter(|goodput| *goodput > 0.0)?)
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
    let row = |row: &Row, of_road: &[Row]| {
        let runs = (1..).zip(&row.runs).map(|(seed, run): (u64, _)| match run {
            Ok(outcome) => json!({ "seed": seed, "figures": outcome }),
            Err(why) => json!({ "seed": seed, "failed": why }),
        });
        json!({
            "system": row.system.name(),
            "goodput_mbps": row.goodput(),
            "ratio_to_kernel": of_kernel(row, of_road),
            "drop_share": row.median(Outcome::drop_share),
            "flow_median_ms": row.flows(0.5),
            "flow_p95_ms": row.flows(0.95),
            "gap_ms": row.gap(),
            "message_median_ms": row.messages(0.5),
            "message_p99_ms": row.messages(0.99),
            "cpu_seconds_per_gb": row.cpu(),
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
            "systems": rows.iter().map(|it| row(it, rows)).collect::<Vec<_>>(),
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
            cpu_seconds_per_gb: Some(2.5),
            flows_ms: (1..=20).map(|n| f64::from(n) * 10.0).collect(),
            gap_ms: Some(312.0),
            messages_ms: vec![21.0, 20.0, 80.0],
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
            "  mptcp:reno               15.00* 10.0 20.0 failed      1.00 %        2.2/2.2      40.0/40.0   70/30%     105, 190      312       79      2.5"
        );
        assert!(
            text[1].starts_with("  anabranch                18.00  30.0 12.0 18.0"),
            "{}",
            text[1]
        );
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
    fn models_stand_beside_what_they_model() {
        let mut rows = rows();
        let run = Ok(Outcome { goodput_mbps: 12.0, ..Outcome::default() });
        let system = System::MptcpModel { congestion: "reno" };
        rows.push(Row { road: rows[0].road.clone(), system, runs: vec![run] });
        assert_eq!(of_kernel(&rows[2], &rows), Some(0.8));
        assert_eq!(of_kernel(&rows[1], &rows), None);
        assert_eq!(line(&rows[2]), "  tcp:mptcp-linux:reno     12.00  12.0");
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
        assert_eq!((&kernel["gap_ms"], &kernel["flow_median_ms"]), (&json!(312.0), &json!(105.0)));
        assert_eq!(kernel["runs"][2]["failed"], "no answer <&>");
        assert_eq!(kernel["runs"][0]["figures"]["links"][0]["share"], 0.7);
    }
}
