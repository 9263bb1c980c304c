//! Figures 3 and 4: what many paths gain, and what takes from it.

use anabranch_policy::analysis::diversity::fit_diversity;
use anabranch_sim::loss::{LossConfig, aggregate_windows};
use core::time::Duration;

use super::{Evidence, FIG3, FIG4, FIG4_RESTART, MPLOT, curve, goodput, useful};
use crate::figure::Figure;
use crate::measure::Measure;
use crate::outcome::Outcome;

/// The second scheme of figure 3.
const OURS: &str = "2";

fn at_paths(evidence: &Evidence, paths: &str, scheme: &str) -> Vec<f64> {
    goodput(evidence, FIG3.name, &[("M", paths), ("SCHEME", scheme)])
}

/// `mplot-fig3`: goodput against the number of paths.
pub(super) fn aggregation(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::new();
    let one = at_paths(evidence, "1", MPLOT);
    let ten = at_paths(evidence, "10", MPLOT);
    outcome.bounded("goodput at M=1 (Mb/s)", Measure::of(&one), 2.75 * 0.8, 2.75 * 1.2);
    outcome.measure("goodput at M=10 (Mb/s)", Measure::of(&ten));
    let rise = Measure::paired(&ten, &one, |ten, one| ten / 10.0 / one);
    outcome.bounded("per-path goodput, M=10 over M=1", rise, 1.0, None);
    let gain = Measure::paired(&ten, &one, |ten, one| ten / (10.0 * one) - 1.0);
    outcome.bounded("gain over linear at M=10", gain, 0.15, None);
    for paths in evidence.axis(FIG3.name, "M") {
        let ratio =
            Measure::ratio(&at_paths(evidence, &paths, OURS), &at_paths(evidence, &paths, MPLOT));
        outcome.measure(format!("anabranch over mplot, M={paths}"), ratio);
    }
    let mut figure = Figure::new("Goodput of M paths, loss 25/75 %", "paths M", "goodput (Mb/s)");
    let metric = "goodput_mbps";
    figure.line("MPLOT", curve(evidence, FIG3.name, "M", &[("SCHEME", MPLOT)], metric, |_| 1.0));
    figure.line("anabranch", curve(evidence, FIG3.name, "M", &[("SCHEME", OURS)], metric, |_| 1.0));
    let alone = Measure::of(&one).mean;
    figure.line(
        "M times one path",
        vec![(1.0, Measure::exact(alone)), (10.0, Measure::exact(10.0 * alone))],
    );
    figure.paper("paper", &[(1.0, 2.75), (10.0, 35.0)]);
    outcome.figures.push(figure);
    outcome.remark(
        "Goodput counts payload only: of 5 Mb/s that a path delivers, 4.55 are payload of 550-byte \
         packets.",
    );
    outcome
}

/// `mplot-fig3-div`: how the gain over M lone paths grows.
pub(super) fn order_of_growth(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::new();
    let one = at_paths(evidence, "1", MPLOT);
    let mut shares = Vec::new();
    let mut points = Vec::new();
    for label in evidence.axis(FIG3.name, "M") {
        let Ok(paths) = label.parse::<u32>() else { continue };
        let total = at_paths(evidence, &label, MPLOT);
        let m = f64::from(paths);
        let share = Measure::paired(&total, &one, |total, one| (total - m * one) / total);
        if paths > 1 {
            shares.push((paths, share.mean));
        }
        points.push((m, share));
        if paths == 10 {
            let gain = Measure::paired(&total, &one, |total, one| total - m * one);
            outcome.measure("gain at M=10 (Mb/s)", gain);
            outcome.measure("gain at M=10, share of goodput", share);
        }
    }
    // The gain of one path is none by definition; it belongs to the fit.
    shares.insert(0, (1, 0.0));
    let fit = fit_diversity(&shares);
    let r_squared = fit.map_or(f64::NAN, |fit| fit.r_squared);
    outcome.bounded("R² of gain ∝ 1 − 1/√M", Measure::exact(r_squared), 0.9, None);
    let slope = fit.map_or(f64::NAN, |fit| fit.slope);
    outcome.exact("gain of many paths by the fit", slope);
    let mut figure = Figure::new("Diversity gain", "paths M", "share of goodput");
    figure.line("measured", points);
    let fitted = (1..=10).map(|paths| {
        let m = f64::from(paths);
        (m, Measure::exact(slope * (1.0 - 1.0 / m.sqrt())))
    });
    figure.line("fit 1 − 1/√M", fitted.collect());
    figure.paper("paper", &[(10.0, 0.214)]);
    outcome.figures.push(figure);
    outcome.remark("The gain is G(M) − M·G(1), as a share of G(M).");
    outcome
}

/// Averaging time of aggregate loss: with it one path has the paper's deviation.
const WINDOW: Duration = Duration::from_millis(750);

/// `mplot-fig3-sd`: the deviation of aggregate loss of one and of four paths.
pub(crate) fn volatility() -> Outcome {
    let mut outcome = Outcome::new();
    let loss: Option<LossConfig> = "rate=10mbit,delay=20ms,loss=markov:25%/75%@250ms"
        .parse()
        .ok()
        .map(|link: anabranch_sim::link::LinkConfig| link.loss);
    let deviation = |paths: u32| {
        let of_seed = |seed| {
            let windows = aggregate_windows(loss.as_ref()?, paths, WINDOW, 4000, seed).ok()?;
            let n = windows.len() as f64;
            let mean = windows.iter().sum::<f64>() / n;
            let squares: f64 = windows.iter().map(|x| (x - mean) * (x - mean)).sum();
            Some((squares / (n - 1.0)).sqrt())
        };
        (1..=5).map(|seed| of_seed(seed).unwrap_or(f64::NAN)).collect::<Vec<f64>>()
    };
    let (one, four) = (deviation(1), deviation(4));
    outcome.bounded("deviation, M=1", Measure::of(&one), 0.132 * 0.95, 0.132 * 1.05);
    outcome.bounded("deviation, M=4", Measure::of(&four), 0.067 * 0.95, 0.067 * 1.05);
    outcome.bounded("ratio M=1 over M=4", Measure::ratio(&one, &four), 1.85, 2.15);
    let mut figure = Figure::new("Deviation of aggregate loss, mean 50 %", "paths M", "deviation");
    let points = (1..=10).map(|paths| (f64::from(paths), Measure::of(&deviation(paths))));
    figure.line("means over 0.75 s", points.collect());
    figure.paper("paper", &[(1.0, 0.132), (4.0, 0.067)]);
    outcome.figures.push(figure);
    outcome.remark(
        "The paper does not say over which time it averages. Over 0.75 s the true loss of the paths \
         deviates by what it states; the ratio does not depend on that time.",
    );
    outcome
}

/// `mplot-fig4`: half of the paths D times as long.
pub(super) fn unequal_delays(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::new();
    let buffered = |scale: &str, paths: &str, long: &str| {
        goodput(evidence, FIG4.name, &[("D", scale), ("M", paths), ("LONG", long)])
    };
    let values = |scale: &str, paths: &str| buffered(scale, paths, "0");
    let paths = evidence.axis(FIG4.name, "M");
    let scales = evidence.axis(FIG4.name, "D");
    let mut worst: f64 = f64::NEG_INFINITY;
    for paths in &paths {
        for pair in scales.windows(2) {
            let [near, far] = pair else { continue };
            let ratio = Measure::ratio(&values(far, paths), &values(near, paths));
            worst = worst.max(ratio.lo);
        }
    }
    let name = "a D over the next smaller, at least (95 %)";
    outcome.bounded(name, Measure::exact(worst), None, 1.0);
    for paths in &paths {
        let long = Measure::ratio(&buffered("6", paths, "1"), &buffered("1", paths, "1"));
        outcome.measure(format!("D=6 over D=1 with buffers that grow with D, M={paths}"), long);
        let measure = Measure::of(&gaps(&values("6", paths), &values("1", paths)));
        let name = format!("gap of D=6, M={paths}");
        if paths.parse::<u32>().is_ok_and(|m| m >= 8) {
            outcome.bounded(name, measure, None, 0.1);
        } else {
            outcome.measure(name, measure);
        }
    }
    if let (Some(few), Some(many)) = (paths.first(), paths.last()) {
        let gaps = [few, many].map(|paths| gaps(&values("10", paths), &values("1", paths)));
        let shrinks = Measure::paired(&gaps[0], &gaps[1], |few, many| few - many);
        outcome.measure(format!("gap of D=10, M={few} less M={many}"), shrinks);
        let name = format!("gap of D=10, M={few} less M={many}, at least (95 %)");
        outcome.bounded(name, Measure::exact(shrinks.lo), 0.0, None);
    }
    let mut figure =
        Figure::new("Half of the paths D times as long", "paths M", "goodput per path (Mb/s)");
    for scale in &scales {
        let fixed = [("D", scale.as_str()), ("LONG", "0")];
        let points = curve(evidence, FIG4.name, "M", &fixed, "goodput_mbps", |m| 1.0 / m);
        figure.line(format!("D = {scale}"), points);
    }
    outcome.figures.push(figure);
    explain_gap(evidence, &mut outcome);
    outcome.remark(
        "The further delay lies beyond the bottleneck, whose buffer stays the product of its own \
         delay. If the buffer grows with the path's delay, windows do too, and large windows lose \
         all of their packets less often: goodput then rises with D.",
    );
    outcome
}

/// What longer paths cost, a share of what there is without, for each seed.
fn gaps(far: &[f64], near: &[f64]) -> Vec<f64> {
    far.iter().zip(near).map(|(far, near)| 1.0 - far / near).collect()
}

/// The gap of what arrives and of the share of it that is of use, and what becomes of both when paths
/// restart from one packet and back off.
fn explain_gap(evidence: &Evidence, outcome: &mut Outcome) {
    let settings = [(FIG4.name, ""), (FIG4_RESTART.name, " restarting from 1")];
    for (experiment, how) in settings {
        let paths = evidence.axis(experiment, "M");
        let gap = |of: &dyn Fn(&str, &str) -> Vec<f64>, paths: &str| {
            gaps(&of("10", paths), &of("1", paths))
        };
        let metric = |metric: &'static str| {
            move |scale: &str, paths: &str| {
                // Where buffers do not grow with the delay; the second experiment has no others.
                let at = [("D", scale), ("M", paths), ("LONG", "0")];
                let at = if how.is_empty() { &at[..] } else { &at[..2] };
                evidence.values(experiment, at, "all", metric)
            }
        };
        let (goodput, arrivals) = (metric("goodput_mbps"), metric("throughput_mbps"));
        let share =
            |scale: &str, paths: &str| useful(&goodput(scale, paths), &arrivals(scale, paths));
        for paths in &paths {
            let name = |what: &str| format!("{what} of D=10{how}, M={paths}");
            outcome.measure(name("gap"), Measure::of(&gap(&goodput, paths)));
            outcome.measure(name("gap in arrivals"), Measure::of(&gap(&arrivals, paths)));
            outcome.measure(name("gap in the useful share"), Measure::of(&gap(&share, paths)));
        }
        if let (Some(few), Some(many)) = (paths.first(), paths.last()) {
            let (few_gaps, many_gaps) = (gap(&arrivals, few), gap(&arrivals, many));
            let shrinks = Measure::paired(&few_gaps, &many_gaps, |few, many| few - many);
            outcome.measure(format!("gap in arrivals{how}, M={few} less M={many}"), shrinks);
        }
    }
    outcome.explain(
        "What arrives falls with D, and the less the more paths there are, as the paper has it. The share \
         of it that is of use rises with D, and the more the fewer paths there are: a block spans the \
         median round trip, and where blocks are small, as those of two paths, growing with it saves most \
         repairs. Together the gap in goodput is a few per cent at any M. How large it is depends on how a \
         path comes back from its timeouts: restarting from one packet with a doubled timeout, as TCP does, \
         it is half as large again or more.",
    );
}

/// `mplot-rfec`: how often blocks need reactive repairs, and more of them than a codeword has.
pub(super) fn repairs(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::new();
    let total = |paths: &str, metric: &str| {
        evidence.values(FIG3.name, &[("M", paths), ("SCHEME", MPLOT)], "all", metric)
    };
    for paths in ["1", "10"] {
        let blocks = total(paths, "windows");
        let exhausted = Measure::ratio(&total(paths, "wraps"), &blocks);
        let name = format!("exhausted blocks, share, M={paths}");
        outcome.bounded(name, exhausted, None, 0.01);
        let rounds = Measure::ratio(&total(paths, "repair_rounds"), &blocks);
        outcome.measure(format!("rounds of reactive repairs per block, M={paths}"), rounds);
        let live = Measure::of(&total(paths, "live_blocks_mean"));
        outcome.measure(format!("blocks in transit, M={paths}"), live);
    }
    outcome
}
