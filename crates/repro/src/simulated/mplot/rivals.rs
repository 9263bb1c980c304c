//! Figures 11 and 12: goodput beside PTCP's.

use anabranch_policy::analysis::diversity::fit_line;

use super::{Evidence, FIG11, FIG12, MPLOT, OURS, PARITY, RIVAL, curve, goodput};
use crate::figure::Figure;
use crate::measure::Measure;
use crate::outcome::Outcome;

pub(super) const SCHEMES: [(&str, &str); 3] =
    [(MPLOT, "MPLOT"), (RIVAL, "PTCP"), (OURS, "anabranch")];

/// `mplot-parity`: without loss both deliver the same.
pub(super) fn without_loss(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::new();
    for paths in evidence.axis(PARITY.name, "M") {
        let of = |scheme| goodput(evidence, PARITY.name, &[("M", &paths), ("SCHEME", scheme)]);
        let ratio = Measure::ratio(&of(MPLOT), &of(RIVAL));
        outcome.bounded(format!("mplot over ptcp, M={paths}"), ratio, 0.95, 1.05);
    }
    let mut figure = Figure::new("Lossless paths, 10 Mb/s in all", "paths M", "goodput (Mb/s)");
    for (scheme, name) in &SCHEMES[..2] {
        let points =
            curve(evidence, PARITY.name, "M", &[("SCHEME", scheme)], "goodput_mbps", |_| 1.0);
        figure.line(*name, points);
    }
    outcome.figures.push(figure);
    outcome
}

/// `mplot-fig11`: 30 % loss, any number of paths.
pub(super) fn heavy_loss(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::new();
    let mut best = Measure::exact(0.0);
    for paths in evidence.axis(FIG11.name, "M") {
        let of = |scheme| goodput(evidence, FIG11.name, &[("M", &paths), ("SCHEME", scheme)]);
        let mplot = Measure::of(&of(MPLOT));
        if mplot.mean > best.mean {
            best = mplot;
        }
        outcome.measure(format!("goodput, mplot, M={paths} (Mb/s)"), mplot);
        let ptcp = Measure::of(&of(RIVAL));
        outcome.bounded(format!("goodput, ptcp, M={paths} (Mb/s)"), ptcp, None, 1.3);
        let ratio = Measure::ratio(&of(MPLOT), &of(RIVAL));
        outcome.bounded(format!("mplot over ptcp, M={paths}"), ratio, 5.0, None);
        let ours = Measure::ratio(&of(OURS), &of(MPLOT));
        outcome.measure(format!("anabranch over mplot, M={paths}"), ours);
    }
    outcome.bounded("most goodput, mplot (Mb/s)", best, 5.2, None);
    let mut figure = Figure::new("30 % loss, 10 Mb/s in all", "paths M", "goodput (Mb/s)");
    for (scheme, name) in SCHEMES {
        let points =
            curve(evidence, FIG11.name, "M", &[("SCHEME", scheme)], "goodput_mbps", |_| 1.0);
        figure.line(name, points);
    }
    figure.paper("paper, MPLOT above", &[(1.0, 6.0), (5.0, 6.0)]);
    figure.paper("paper, PTCP below", &[(1.0, 1.0), (5.0, 1.0)]);
    outcome.figures.push(figure);
    outcome.remark(
        "At most 6.5 of 10 Mb/s can be payload at 30 % loss: 10 times 0.7 times the payload's share of \
         a packet.",
    );
    outcome
}

/// `mplot-fig12`: three paths, rising loss.
pub(super) fn against_loss(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::new();
    let mut figure = Figure::new("Three paths, 10 Mb/s in all", "loss (%)", "goodput (Mb/s)");
    for (scheme, name) in SCHEMES {
        let points =
            curve(evidence, FIG12.name, "LOSS", &[("SCHEME", scheme)], "goodput_mbps", |_| 1.0);
        if scheme == MPLOT {
            let means: Vec<(f64, f64)> = points.iter().map(|(x, y)| (*x, y.mean)).collect();
            let fit = fit_line(&means);
            let r_squared = fit.map_or(f64::NAN, |fit| fit.r_squared);
            outcome.bounded("R² of mplot's line", Measure::exact(r_squared), 0.95, None);
            outcome.exact("mplot's slope (Mb/s per %)", fit.map_or(f64::NAN, |fit| fit.slope));
        }
        figure.line(name, points);
    }
    let of =
        |loss: &str, scheme| goodput(evidence, FIG12.name, &[("LOSS", loss), ("SCHEME", scheme)]);
    let halves = Measure::ratio(&of("15", RIVAL), &of("0", RIVAL));
    outcome.bounded("ptcp at 15 % over lossless", halves, None, 0.5);
    for loss in evidence.axis(FIG12.name, "LOSS") {
        let rival = Measure::ratio(&of(&loss, MPLOT), &of(&loss, RIVAL));
        outcome.measure(format!("mplot over ptcp, {loss} %"), rival);
        let ours = Measure::ratio(&of(&loss, OURS), &of(&loss, MPLOT));
        outcome.measure(format!("anabranch over mplot, {loss} %"), ours);
    }
    outcome.figures.push(figure);
    outcome
}
