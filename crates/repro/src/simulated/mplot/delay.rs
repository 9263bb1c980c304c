//! Figures 13 to 15: delays of packets beside PTCP's.

use super::rivals::SCHEMES;
use super::{Evidence, FIG11, FIG12, FIG15_ROUNDS, MPLOT, OURS, RIVAL, curve_of};
use crate::figure::Figure;
use crate::measure::Measure;
use crate::outcome::Outcome;

const MEAN: &str = "packet_delay_mean_s";
const DEVIATION: &str = "packet_delay_std_s";
/// Delays are shown in milliseconds.
const MS: f64 = 1000.0;

/// The flows of a scheme, as reports call them.
fn subject(scheme: &str) -> &'static str {
    match scheme {
        MPLOT => "mplot",
        RIVAL => "ptcp",
        _ => "anabranch",
    }
}

fn at_paths(evidence: &Evidence, paths: &str, scheme: &str, metric: &str) -> Vec<f64> {
    let at = [("M", paths), ("SCHEME", scheme)];
    let delays = evidence.values(FIG11.name, &at, subject(scheme), metric);
    delays.into_iter().map(|delay| delay * MS).collect()
}

fn figure(evidence: &Evidence, title: &str, metric: &str) -> Figure {
    let mut figure = Figure::new(title, "paths M", "ms");
    for (scheme, name) in SCHEMES {
        let (who, fixed) = (subject(scheme), [("SCHEME", scheme)]);
        figure.line(name, curve_of(evidence, FIG11.name, who, "M", &fixed, metric, |_| MS));
    }
    figure
}

/// `mplot-fig13`: mean delay at 30 % loss.
pub(super) fn mean(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::new();
    let of = |paths: &str, scheme| at_paths(evidence, paths, scheme, MEAN);
    // Below 100 and above 300 ms, each with half of that to spare.
    outcome.bounded("mean delay, mplot, M=2 (ms)", Measure::of(&of("2", MPLOT)), None, 150.0);
    outcome.bounded("mean delay, ptcp, M=2 (ms)", Measure::of(&of("2", RIVAL)), 150.0, None);
    for paths in evidence.axis(FIG11.name, "M") {
        let less =
            Measure::paired(&of(&paths, RIVAL), &of(&paths, MPLOT), |ptcp, mplot| ptcp - mplot);
        let name = format!("ptcp later than mplot, M={paths} (ms)");
        if paths == "1" {
            outcome.measure(name, less);
        } else {
            outcome.bounded(name, less, 0.0, None);
        }
        let ours = Measure::ratio(&of(&paths, OURS), &of(&paths, MPLOT));
        outcome.measure(format!("anabranch over mplot, M={paths}"), ours);
    }
    let grows = Measure::paired(&of("5", MPLOT), &of("2", MPLOT), |five, two| five - two);
    outcome.bounded("mplot, M=5 less M=2 (ms)", grows, 0.0, None);
    let mut figure = figure(evidence, "Mean packet delay at 30 % loss", MEAN);
    figure.paper("paper, MPLOT below", &[(2.0, 100.0)]);
    figure.paper("paper, PTCP above", &[(2.0, 300.0)]);
    outcome.figures.push(figure);
    outcome
}

/// `mplot-fig14`: its deviation.
pub(super) fn deviation(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::new();
    let of = |paths: &str, scheme| at_paths(evidence, paths, scheme, DEVIATION);
    for paths in evidence.axis(FIG11.name, "M") {
        for (scheme, name) in SCHEMES {
            outcome.measure(
                format!("deviation, {name}, M={paths} (ms)"),
                Measure::of(&of(&paths, scheme)),
            );
        }
        let ours = Measure::ratio(&of(&paths, OURS), &of(&paths, MPLOT));
        outcome.measure(format!("anabranch over mplot, M={paths}"), ours);
        let ratio = Measure::ratio(&of(&paths, MPLOT), &of(&paths, RIVAL));
        let name = format!("mplot over ptcp, M={paths}");
        if paths == "1" {
            outcome.measure(name, ratio);
        } else {
            outcome.bounded(name, ratio, None, 1.0 / 3.0);
        }
    }
    let mut figure = figure(evidence, "Deviation of packet delay at 30 % loss", DEVIATION);
    figure.paper("paper, MPLOT", &[(2.0, 55.0), (5.0, 500.0)]);
    figure.paper("paper, PTCP", &[(2.0, 1600.0), (5.0, 1800.0)]);
    outcome.figures.push(figure);
    outcome
}

/// `mplot-fig15`: mean delay against loss, three paths.
pub(super) fn against_loss(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::new();
    let mut figure = Figure::new("Mean packet delay, three paths", "loss (%)", "ms");
    for (scheme, name) in SCHEMES {
        let (who, fixed) = (subject(scheme), [("SCHEME", scheme)]);
        let points = curve_of(evidence, FIG12.name, who, "LOSS", &fixed, MEAN, |_| MS);
        let means = || points.iter().map(|(_, delay)| delay.mean);
        let least = means().fold(f64::INFINITY, f64::min);
        let most = means().fold(f64::NEG_INFINITY, f64::max);
        let label = format!("most over least delay, {name}");
        match scheme {
            MPLOT => outcome.bounded(label, Measure::exact(most / least), None, 2.0),
            _ if points.is_empty() => {}
            _ => outcome.exact(label, most / least),
        }
        figure.line(name, points);
    }
    let of = |loss: &str, scheme: &str| {
        let at = [("LOSS", loss), ("SCHEME", scheme)];
        evidence.values(FIG12.name, &at, subject(scheme), MEAN)
    };
    let losses = evidence.axis(FIG12.name, "LOSS");
    if let Some(worst) = losses.last() {
        let ratio = Measure::ratio(&of(worst, RIVAL), &of(worst, MPLOT));
        outcome.bounded(format!("ptcp over mplot at {worst} %"), ratio, 1.0, None);
    }
    for loss in &losses {
        let ours = Measure::ratio(&of(loss, OURS), &of(loss, MPLOT));
        outcome.measure(format!("anabranch over mplot at {loss} %"), ours);
    }
    explain_growth(evidence, &mut outcome);
    outcome.figures.push(figure);
    outcome.remark(
        "The rival's delay grows by a hundred times and more, MPLOT's by a few. Over which losses the \
         paper's curve runs, and how long its queues are without loss, cannot be read from its text.",
    );
    outcome
}

/// What is left of the growth when hardly any block needs a second round.
fn explain_growth(evidence: &Evidence, outcome: &mut Outcome) {
    let of = |loss: &str, metric: &str| {
        evidence.values(FIG15_ROUNDS.name, &[("LOSS", loss)], "mplot", metric)
    };
    for loss in evidence.axis(FIG15_ROUNDS.name, "LOSS") {
        let delays: Vec<f64> = of(&loss, MEAN).iter().map(|delay| delay * MS).collect();
        outcome.measure(format!("mean delay with κ₁ = 6 at {loss} % (ms)"), Measure::of(&delays));
        let rounds = Measure::ratio(&of(&loss, "repair_rounds"), &of(&loss, "windows"));
        outcome.measure(format!("second rounds per block with κ₁ = 6 at {loss} %"), rounds);
    }
    outcome.explain(
        "Without loss a packet takes little more than the path, as marks keep queues short here. With loss, \
         what is lost waits for its block's repairs, which come when the block of a round trip is through, \
         and what follows waits with it; and some blocks wait for a second round. So many proactive repairs \
         that there are no second rounds (κ₁ = 6) halve the delay at 50 %, and the goodput; what is left \
         above the path is the block.",
    );
}
