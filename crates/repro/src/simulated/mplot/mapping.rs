//! Figure 5 and Table III: what awareness of heterogeneity and common reliability are worth.

use anabranch_policy::analysis::diversity::fit_line;

use super::{Evidence, FIG5, FIG5_RESTART, MPLOT, OURS, RIVAL, TAB3, curve, goodput};
use crate::figure::Figure;
use crate::measure::Measure;
use crate::outcome::Outcome;

/// `mplot-fig5`: goodput against the number of paths of 10 Mb/s in all, mapped by rank and blindly.
pub(super) fn awareness(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::new();
    let mut figure =
        Figure::new("Paths with disruptions, 10 Mb/s in all", "paths M", "goodput (Mb/s)");
    for down in evidence.axis(FIG5.name, "DOWN") {
        for (scheme, name) in [(MPLOT, "MPLOT"), (RIVAL, "blind"), (OURS, "anabranch")] {
            let fixed = [("DOWN", down.as_str()), ("SCHEME", scheme)];
            let points = curve(evidence, FIG5.name, "M", &fixed, "goodput_mbps", |_| 1.0);
            let means: Vec<(f64, f64)> = points.iter().map(|(m, y)| (*m, y.mean)).collect();
            let slope = fit_line(&means).map_or(f64::NAN, |fit| fit.slope);
            let label = format!("slope of {name}, DOWN {down} % (Mb/s per path)");
            match scheme {
                MPLOT => outcome.bounded(label, Measure::exact(slope), 0.0, None),
                RIVAL => outcome.bounded(label, Measure::exact(slope), None, 0.0),
                _ if means.is_empty() => {}
                _ => outcome.exact(label, slope),
            }
            figure.line(format!("{name}, {down} %"), points);
        }
        for paths in evidence.axis(FIG5.name, "M") {
            let of = |scheme| {
                goodput(evidence, FIG5.name, &[("DOWN", &down), ("M", &paths), ("SCHEME", scheme)])
            };
            let blind = Measure::ratio(&of(MPLOT), &of(RIVAL));
            outcome.measure(format!("mplot over blind, DOWN {down} %, M={paths}"), blind);
            let ours = Measure::ratio(&of(OURS), &of(MPLOT));
            outcome.measure(format!("anabranch over mplot, DOWN {down} %, M={paths}"), ours);
        }
    }
    figure.paper("paper, blind, 5 %", &[(1.0, 1.2), (5.0, 0.9)]);
    outcome.figures.push(figure);
    explain_slopes(evidence, &mut outcome);
    outcome
}

/// What becomes of the slopes when paths restart from one packet and back off.
fn explain_slopes(evidence: &Evidence, outcome: &mut Outcome) {
    for down in evidence.axis(FIG5_RESTART.name, "DOWN") {
        for (scheme, name) in [(MPLOT, "MPLOT"), (RIVAL, "blind")] {
            let fixed = [("DOWN", down.as_str()), ("SCHEME", scheme)];
            let points = curve(evidence, FIG5_RESTART.name, "M", &fixed, "goodput_mbps", |_| 1.0);
            let means: Vec<(f64, f64)> = points.iter().map(|(m, y)| (*m, y.mean)).collect();
            let slope = fit_line(&means).map_or(f64::NAN, |fit| fit.slope);
            outcome.exact(format!("slope of {name} restarting from 1, DOWN {down} %"), slope);
        }
    }
    outcome.explain(
        "With 10/M Mb/s a path, windows of a few packets often lose every packet, and what a path does \
         after its timeout decides how goodput changes with M, for either mapping: if it restarts from \
         one packet and backs off, both fall with M as the paper's blind scheme does (the slopes \
         'restarting from 1'); if it restarts from eight, both rise as the paper's MPLOT does. The mapping \
         itself is worth the few per cent that 'mplot over blind' shows from three paths on.",
    );
}

/// What the three links carried before their loss, Mb/s, for each seed.
fn carried(evidence: &Evidence, scheme: &str, total: &str, mbps: f64) -> Vec<f64> {
    let at = [("SCHEME", scheme), ("TOTAL", total)];
    let links = ["link.p1", "link.p2", "link.p3"];
    let shares = links.map(|link| evidence.values(TAB3.name, &at, link, "utilisation"));
    let seeds = shares.iter().map(Vec::len).min().unwrap_or(0);
    let sum = |seed: usize| shares.iter().filter_map(|of| of.get(seed)).sum::<f64>();
    (0..seeds).map(|seed| sum(seed) * mbps / 3.0).collect()
}

/// `mplot-tab3`: one reliability instance over three paths against one for each.
pub(super) fn reliability(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::new();
    let of = |scheme: &str| goodput(evidence, TAB3.name, &[("SCHEME", scheme), ("TOTAL", "50")]);
    let small = |scheme: &str| carried(evidence, scheme, "10", 10.0);
    let throughput = |scheme: &str| carried(evidence, scheme, "50", 50.0);
    for (scheme, name) in [(MPLOT, "aggregate"), (RIVAL, "per path")] {
        outcome.measure(format!("throughput, {name} (Mb/s)"), Measure::of(&throughput(scheme)));
        outcome.measure(format!("goodput, {name} (Mb/s)"), Measure::of(&of(scheme)));
    }
    let more = Measure::ratio(&throughput(MPLOT), &throughput(RIVAL));
    outcome.bounded("throughput, aggregate over per path", more, 1.02, None);
    outcome.bounded(
        "goodput, aggregate over per path",
        Measure::ratio(&of(MPLOT), &of(RIVAL)),
        1.04,
        None,
    );
    let less = Measure::ratio(&small(MPLOT), &small(RIVAL));
    outcome.measure("throughput, aggregate over per path, 10 Mb/s in all", less);
    outcome.explain(format!(
        "At 50 Mb/s a session's window on a path holds some twenty packets: at 15 % loss it practically \
         never times out, and either kind of reliability carries what the marks allow. With 10 Mb/s in \
         all windows are a fifth of that, paths that have only their own acknowledgements wait for \
         timeouts, and the aggregate carries {:.1} % more, as in the paper. The gain in goodput, from \
         larger blocks, is there in both.",
        100.0 * (less.mean - 1.0)
    ));
    let mut figure = Figure::new("Table III", "1: per path, 2: aggregate", "Mb/s");
    let pair = |values: &dyn Fn(&str) -> Vec<f64>| {
        vec![(1.0, Measure::of(&values(RIVAL))), (2.0, Measure::of(&values(MPLOT)))]
    };
    figure.line("throughput", pair(&throughput));
    figure.line("goodput", pair(&of));
    figure.paper("paper, throughput", &[(1.0, 46.53), (2.0, 48.63)]);
    figure.paper("paper, goodput", &[(1.0, 27.46), (2.0, 29.61)]);
    outcome.figures.push(figure);
    outcome.remark(
        "Throughput is what the links carried before their loss: the paper's exceeds what can arrive. \
         Per-path reliability runs one instance of the protocol on each path.",
    );
    outcome
}
