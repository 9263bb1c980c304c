//! Figures 6 and 7: beside TCP-SACK with ECN.

use anabranch_sim::report::{RunReport, Series};

use super::{Evidence, FIG6, FIG7};
use crate::figure::Figure;
use crate::measure::Measure;
use crate::outcome::Outcome;

fn series<'a>(run: &'a RunReport, subject: &str, metric: &str) -> Option<&'a Series> {
    run.series.iter().find(|series| series.subject == subject && series.metric == metric)
}

/// The mean of a series from `start` on.
fn mean_from(series: &Series, start: f64) -> f64 {
    let late = || series.times.iter().zip(&series.values).filter(|(time, _)| **time >= start);
    late().map(|(_, value)| value).sum::<f64>() / late().count() as f64
}

/// When a series first reaches half of its mean from `start` on.
fn half_way(series: &Series, start: f64) -> f64 {
    let half = mean_from(series, start) / 2.0;
    let mut points = series.times.iter().zip(&series.values);
    points.find(|(_, value)| **value >= half).map_or(f64::NAN, |(time, _)| *time)
}

/// `mplot-fig6`: throughput of ten sessions and ten TCP flows over time on one lossless path.
pub(super) fn over_time(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::new();
    let steady = 20.0;
    let of = |subject: &str, read: &dyn Fn(&Series) -> f64| -> Vec<f64> {
        let run = |run: &RunReport| series(run, subject, "throughput_mbps").map_or(f64::NAN, read);
        evidence.runs(FIG6.name, &[]).map(run).collect()
    };
    let late = |series: &Series| mean_from(series, steady);
    let (mplot, tcp) = (of("mplot", &late), of("tcp", &late));
    outcome.measure("throughput, mplot (Mb/s)", Measure::of(&mplot));
    outcome.measure("throughput, tcp (Mb/s)", Measure::of(&tcp));
    outcome.bounded("steady ratio, mplot over tcp", Measure::ratio(&mplot, &tcp), 0.85, 1.18);
    let half = |series: &Series| half_way(series, steady);
    let (mplot, tcp) = (of("mplot", &half), of("tcp", &half));
    outcome.measure("time to half of the steady rate, mplot (s)", Measure::of(&mplot));
    outcome.measure("time to half of the steady rate, tcp (s)", Measure::of(&tcp));
    let earlier = Measure::paired(&tcp, &mplot, |tcp, mplot| tcp - mplot);
    outcome.bounded("mplot earlier by (s)", earlier, 0.0, None);
    let mut figure = Figure::new("One lossless path, first seed", "time (s)", "throughput (Mb/s)");
    if let Some(run) = evidence.runs(FIG6.name, &[]).next() {
        for subject in ["mplot", "tcp"] {
            let Some(series) = series(run, subject, "throughput_mbps") else { continue };
            let points = series.times.iter().zip(&series.values);
            let points = points.map(|(time, value)| (*time, Measure::exact(*value)));
            figure.line(subject, points.filter(|(time, _)| *time <= 20.0).collect());
        }
    }
    outcome.figures.push(figure);
    outcome
}

/// `mplot-fig7`: total throughput of both for every number of paths.
pub(super) fn totals(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::new();
    let mut lines: [Vec<(f64, Measure)>; 2] = Default::default();
    for paths in evidence.axis(FIG7.name, "M") {
        let of = |subject: &str| {
            evidence.values(FIG7.name, &[("M", &paths)], subject, "throughput_mbps")
        };
        let (mplot, tcp) = (of("mplot"), of("tcp"));
        let m = paths.parse().unwrap_or(f64::NAN);
        for (line, values) in lines.iter_mut().zip([&mplot, &tcp]) {
            line.push((m, Measure::of(values)));
        }
        let name = format!("throughput, mplot over tcp, M={paths}");
        outcome.bounded(name, Measure::ratio(&mplot, &tcp), 0.9, 1.25);
        outcome.measure(format!("throughput, mplot, M={paths} (Mb/s)"), Measure::of(&mplot));
        outcome.measure(format!("throughput, tcp, M={paths} (Mb/s)"), Measure::of(&tcp));
    }
    let mut figure =
        Figure::new("Ten sessions over M paths, ten TCP on each", "paths M", "throughput (Mb/s)");
    let [mplot, tcp] = lines;
    figure.line("MPLOT", mplot);
    figure.line("TCP-SACK with ECN", tcp);
    figure.paper("paper, MPLOT", &[(1.0, 5.1), (5.0, 5.1)]);
    figure.paper("paper, TCP", &[(1.0, 4.7), (5.0, 4.7)]);
    outcome.figures.push(figure);
    outcome
}

/// `mplot-fair-cwnd`: the congestion windows of both on a path.
pub(super) fn windows(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::new();
    let mut points = Vec::new();
    for paths in evidence.axis(FIG7.name, "M") {
        let m: f64 = paths.parse().unwrap_or(f64::NAN);
        let at = [("M", paths.as_str())];
        let ratio = |run: &RunReport| {
            // A session's window is the sum over its paths; a TCP flow has one.
            let mean = |subject| series(run, subject, "cwnd_bytes").map(|s| mean_from(s, 20.0));
            Some(mean("mplot")? / m / mean("tcp")?)
        };
        let ratios: Vec<f64> =
            evidence.runs(FIG7.name, &at).map(|run| ratio(run).unwrap_or(f64::NAN)).collect();
        let name = format!("window per path, mplot over tcp, M={paths}");
        outcome.bounded(name, Measure::of(&ratios), 0.8, 1.25);
        points.push((m, Measure::of(&ratios)));
    }
    let mut figure = Figure::new("Congestion window per path", "paths M", "mplot over tcp, bytes");
    figure.line("measured", points);
    figure.paper("equal", &[(1.0, 1.0), (5.0, 1.0)]);
    outcome.figures.push(figure);
    outcome
}
