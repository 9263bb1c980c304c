//! MPLOT's figures and its Table III.

mod correlation;
mod delay;
pub(crate) mod diversity;
mod fairness;
mod mapping;
mod rivals;
mod wireless;

use super::{Evidence, Experiment, Simulated};
use crate::measure::Measure;

/// Reads an experiment's file.
macro_rules! experiment {
    ($name:literal, $quick:expr) => {
        Experiment {
            name: concat!("mplot/", $name),
            text: include_str!(concat!("../../../../../scenarios/papers/mplot/", $name, ".toml")),
            quick: $quick,
        }
    };
}

/// A seed or two fewer and a tenth of the time; the project's own profile in figures 11 and 12 only.
static FIG3: Experiment = experiment!(
    "fig3",
    &[
        "duration=15s",
        "warm-up=4s",
        "seeds=3",
        "sweep.M.values=[1, 2, 4, 7, 10]",
        "sweep.SCHEME.values=[1]"
    ]
);
static FIG4: Experiment = experiment!(
    "fig4",
    &["duration=60s", "warm-up=10s", "seeds=3", "sweep.M.values=[2, 8]", "sweep.LONG.values=[0]"]
);
static FIG4_RESTART: Experiment = experiment!(
    "fig4-restart",
    &["duration=60s", "warm-up=10s", "seeds=3", "sweep.M.values=[2, 8]", "sweep.D.values=[1, 10]"]
);
static FIG5: Experiment = experiment!(
    "fig5",
    &[
        "duration=40s",
        "warm-up=5s",
        "seeds=3",
        "sweep.M.values=[1, 3, 5]",
        "sweep.SCHEME.values=[1, 2]"
    ]
);
static FIG5_RESTART: Experiment = experiment!(
    "fig5-restart",
    &["duration=40s", "warm-up=5s", "seeds=3", "sweep.M.values=[1, 3, 5]"]
);
static TAB3: Experiment = experiment!("tab3", &["duration=40s", "warm-up=5s", "seeds=3"]);
static FIG6: Experiment = experiment!("fig6", &["duration=50s", "seeds=3"]);
static FIG7: Experiment =
    experiment!("fig7", &["duration=50s", "warm-up=10s", "seeds=3", "sweep.M.values=[1, 3, 5]"]);
static FIG8: Experiment = experiment!(
    "fig8",
    &["duration=100s", "warm-up=5s", "seeds=6", "sweep.M.values=[2, 5]", "sweep.SCHEME.values=[1]"]
);
static FIG8_LARGE: Experiment =
    experiment!("fig8-large", &["duration=30s", "warm-up=5s", "seeds=3", "sweep.M.values=[1, 10]"]);
static FIG10: Experiment = experiment!("fig10", &["duration=20s", "warm-up=4s", "seeds=2"]);
static FIG10_11B: Experiment = experiment!(
    "fig10-11b",
    &[
        "duration=20s",
        "warm-up=4s",
        "seeds=2",
        "sweep.MAC.values=[1, 1, 1, 1]",
        "sweep.M.values=[1, 3, 5, 10]",
        "sweep.LAST.values=[4.1846, 1.5528, 0.931, 0.4504]"
    ]
);
static FIG11: Experiment =
    experiment!("fig11", &["duration=40s", "warm-up=5s", "seeds=3", "sweep.M.values=[1, 2, 5]"]);
static FIG12: Experiment = experiment!(
    "fig12",
    &["duration=40s", "warm-up=5s", "seeds=3", "sweep.LOSS.values=[0, 5, 15, 30, 50]"]
);
static FIG15_ROUNDS: Experiment = experiment!(
    "fig15-rounds",
    &["duration=40s", "warm-up=5s", "seeds=3", "sweep.LOSS.values=[0, 50]"]
);
static PARITY: Experiment =
    experiment!("parity", &["duration=30s", "warm-up=5s", "seeds=3", "sweep.M.values=[1, 3, 5]"]);

/// The paper's simulated items.
pub(super) static ITEMS: &[Simulated] = &[
    Simulated { id: "mplot-fig3", experiments: &[&FIG3], check: diversity::aggregation },
    Simulated { id: "mplot-fig3-div", experiments: &[&FIG3], check: diversity::order_of_growth },
    Simulated {
        id: "mplot-fig4",
        experiments: &[&FIG4, &FIG4_RESTART],
        check: diversity::unequal_delays,
    },
    Simulated { id: "mplot-fig5", experiments: &[&FIG5, &FIG5_RESTART], check: mapping::awareness },
    Simulated { id: "mplot-tab3", experiments: &[&TAB3], check: mapping::reliability },
    Simulated { id: "mplot-fig6", experiments: &[&FIG6], check: fairness::over_time },
    Simulated { id: "mplot-fig7", experiments: &[&FIG7], check: fairness::totals },
    Simulated { id: "mplot-fair-cwnd", experiments: &[&FIG7], check: fairness::windows },
    Simulated {
        id: "mplot-fig8",
        experiments: &[&FIG8, &FIG8_LARGE],
        check: correlation::against_paths,
    },
    Simulated {
        id: "mplot-fig10",
        experiments: &[&FIG10, &FIG10_11B],
        check: wireless::contention,
    },
    Simulated { id: "mplot-fig10-rts", experiments: &[&FIG10], check: wireless::other_access },
    Simulated { id: "mplot-parity", experiments: &[&PARITY], check: rivals::without_loss },
    Simulated { id: "mplot-fig11", experiments: &[&FIG11], check: rivals::heavy_loss },
    Simulated { id: "mplot-fig12", experiments: &[&FIG12], check: rivals::against_loss },
    Simulated { id: "mplot-fig13", experiments: &[&FIG11], check: delay::mean },
    Simulated { id: "mplot-fig14", experiments: &[&FIG11], check: delay::deviation },
    Simulated {
        id: "mplot-fig15",
        experiments: &[&FIG12, &FIG15_ROUNDS],
        check: delay::against_loss,
    },
    Simulated { id: "mplot-rfec", experiments: &[&FIG3], check: diversity::repairs },
];

/// The schemes of the experiments that compare three.
const MPLOT: &str = "1";
const RIVAL: &str = "2";
const OURS: &str = "3";

/// Goodput of all flows, one value for each seed.
fn goodput(evidence: &Evidence, experiment: &str, at: &[(&str, &str)]) -> Vec<f64> {
    evidence.values(experiment, at, "all", "goodput_mbps")
}

/// Goodput over everything that arrived, run by run: what repairs that were not needed leave of it.
fn useful(goodput: &[f64], arrivals: &[f64]) -> Vec<f64> {
    goodput.iter().zip(arrivals).map(|(goodput, arrivals)| goodput / arrivals).collect()
}

/// The curve of a scalar of all flows over a sweep's key, everything else fixed.
fn curve(
    evidence: &Evidence,
    experiment: &str,
    key: &str,
    fixed: &[(&str, &str)],
    metric: &str,
    scale: impl Fn(f64) -> f64,
) -> Vec<(f64, Measure)> {
    curve_of(evidence, experiment, "all", key, fixed, metric, scale)
}

/// The same of one subject.
fn curve_of(
    evidence: &Evidence,
    experiment: &str,
    subject: &str,
    key: &str,
    fixed: &[(&str, &str)],
    metric: &str,
    scale: impl Fn(f64) -> f64,
) -> Vec<(f64, Measure)> {
    let axis = evidence.axis(experiment, key);
    let point = |value: &String| {
        let mut at = fixed.to_vec();
        at.push((key, value));
        let x: f64 = value.parse().unwrap_or(f64::NAN);
        let values = evidence.values(experiment, &at, subject, metric);
        let scaled: Vec<f64> = values.into_iter().map(|y| y * scale(x)).collect();
        (x, Measure::of(&scaled))
    };
    axis.iter().map(point).filter(|(_, measure)| measure.n > 0).collect()
}
