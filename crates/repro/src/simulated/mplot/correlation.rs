//! Figure 8: losses that come together.

use super::{Evidence, FIG8, FIG8_LARGE, MPLOT, curve, useful};
use crate::figure::Figure;
use crate::measure::Measure;
use crate::outcome::Outcome;

/// The other schemes of the figure.
const OURS: &str = "2";
const BLIND: &str = "3";

/// θ in per cent, from nearly none to nearly all.
const THETAS: [&str; 3] = ["5", "50", "99"];

fn values(evidence: &Evidence, theta: &str, paths: &str, scheme: &str, metric: &str) -> Vec<f64> {
    let at = [("THETA", theta), ("M", paths), ("SCHEME", scheme)];
    evidence.values(FIG8.name, &at, "all", metric)
}

/// `mplot-fig8`: goodput against the number of paths for three correlations.
pub(super) fn against_paths(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::new();
    let goodput = |theta: &str, paths: &str| values(evidence, theta, paths, MPLOT, "goodput_mbps");
    let paths = evidence.axis(FIG8.name, "M");
    let mut worst: f64 = f64::NEG_INFINITY;
    let mut strongest: f64 = f64::INFINITY;
    for paths in &paths {
        let [low, half, high] = THETAS.map(|theta| goodput(theta, paths));
        let name = format!("theta .5 over .05, M={paths}");
        outcome.bounded(name, Measure::ratio(&half, &low), 0.9, None);
        let full = Measure::ratio(&high, &low);
        outcome.measure(format!("theta .99 over .05, M={paths}"), full);
        for ratio in [Measure::ratio(&high, &half), Measure::ratio(&half, &low)] {
            worst = worst.max(ratio.lo);
        }
        strongest = strongest.min(full.hi);
    }
    let name = "a theta over the next smaller, at least (95 %)";
    outcome.bounded(name, Measure::exact(worst), None, 1.0);
    let name = "theta .99 over .05 for some M, at most (95 %)";
    outcome.bounded(name, Measure::exact(strongest), None, 1.0);
    if let (Some(few), Some(many)) = (paths.first(), paths.last()) {
        let kept = |paths: &str| Measure::ratio(&goodput("99", paths), &goodput("5", paths)).mean;
        let name = format!("theta .99 over .05, M={many} less M={few}");
        outcome.bounded(name, Measure::exact(kept(many) - kept(few)), 0.0, None);
    }
    let mut figure = Figure::new("Correlated losses, 10 Mb/s in all", "paths M", "goodput (Mb/s)");
    for theta in THETAS {
        let fixed = [("THETA", theta), ("SCHEME", MPLOT)];
        let points = curve(evidence, FIG8.name, "M", &fixed, "goodput_mbps", |_| 1.0);
        figure.line(format!("θ = {theta} %"), points);
    }
    outcome.figures.push(figure);
    others(evidence, &paths, &mut outcome);
    explain(evidence, &paths, &mut outcome);
    outcome.remark(
        "theta^|i-j| is the correlation of two paths' losses: as a conditional probability 0.05 would \
         need losses that avoid each other. Draws of one packet's time are so correlated, and the states of \
         25 and 75 %: with independent states the losses of two paths cannot have a correlation of .99, nor \
         .5 while the states differ. Correlating the draws alone costs next to nothing, since a block spans \
         many of them.",
    );
    outcome
}

/// The project's own profile, and the mapping that takes all paths for equal.
fn others(evidence: &Evidence, paths: &[String], outcome: &mut Outcome) {
    for paths in paths {
        let of = |theta: &str, scheme: &str| values(evidence, theta, paths, scheme, "goodput_mbps");
        for theta in ["5", "99"] {
            let ours = Measure::ratio(&of(theta, OURS), &of(theta, MPLOT));
            outcome.measure(format!("anabranch over mplot, theta {theta} %, M={paths}"), ours);
        }
        let blind = Measure::ratio(&of("99", BLIND), &of("5", BLIND));
        outcome.measure(format!("theta .99 over .05, blind, M={paths}"), blind);
    }
}

/// Where correlation acts: not on what arrives, but on how much of it is of use; and how much there is
/// to lose, where windows are large.
fn explain(evidence: &Evidence, paths: &[String], outcome: &mut Outcome) {
    for paths in paths {
        let [low, high] = ["5", "99"].map(|theta| {
            let of = |metric| values(evidence, theta, paths, MPLOT, metric);
            (of("throughput_mbps"), useful(&of("goodput_mbps"), &of("throughput_mbps")))
        });
        let arrives = Measure::ratio(&high.0, &low.0);
        outcome.measure(format!("arrivals, theta .99 over .05, M={paths}"), arrives);
        let used = Measure::ratio(&high.1, &low.1);
        outcome.measure(format!("useful share, theta .99 over .05, M={paths}"), used);
    }
    let large = |theta: &str, paths: &str| {
        let at = [("THETA", theta), ("M", paths)];
        let of = |metric| evidence.values(FIG8_LARGE.name, &at, "all", metric);
        useful(&of("goodput_mbps"), &of("throughput_mbps"))
    };
    for paths in evidence.axis(FIG8_LARGE.name, "M").iter().filter(|paths| *paths != "1") {
        for theta in ["5", "99"] {
            let over = Measure::ratio(&large(theta, paths), &large(theta, "1"));
            let name = format!("useful share, 50 Mb/s, theta {theta} %, M={paths} over one path");
            outcome.measure(name, over);
        }
    }
    outcome.explain(
        "Correlation leaves alone what arrives, which windows and marks decide, and lessens the share of it \
         that is of use: the losses of a block vary more, so more repairs are provided for nothing, and more \
         second rounds come. It takes what averaging over paths brings, and that grows with their number. \
         At 50 Mb/s, where blocks are large, paths of theta .99 have the useful share of a single path \
         however many they are, while nearly independent ones have more the more they are: so the loss \
         in per cent grows with M, as the paper's own law of 1 - 1/sqrt(M) has it, though not its caption.",
    );
}
