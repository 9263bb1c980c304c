//! MPLOT's Table II and the shape of GP(x).

use anabranch_policy::analysis::provisioning;

use crate::figure::Figure;
use crate::measure::Measure;
use crate::outcome::Outcome;

/// Sources of a block, as below the paper's eq. 6.
const SOURCES: u16 = 90;

/// `mplot-tab2`: α(ε) = (k_min/F) / (p/(1 − p)) exactly, for F = 90 and p = 0.5.
pub fn table_ii() -> Outcome {
    let mut outcome = Outcome::new();
    let mut figure = Figure::new("Table II: repairs over p/(1 − p)", "accepted failure ε", "α");
    let columns = provisioning::table_ii(SOURCES, 0.5);
    for column in columns {
        // k_min is a whole number, so α moves in steps of 1/90; far in the tail the fit is coarse.
        let tolerance = if column.epsilon < 0.05 { 0.1 } else { 0.03 };
        outcome.bounded(
            format!("alpha({})", column.epsilon),
            Measure::exact(column.exact),
            column.printed - tolerance,
            column.printed + tolerance,
        );
    }
    figure.line(
        "exact, F = 90, p = 0.5",
        columns.map(|column| (column.epsilon, Measure::exact(column.exact))).to_vec(),
    );
    figure.paper("paper", &columns.map(|column| (column.epsilon, column.printed)));
    outcome.figures.push(figure);
    let other = provisioning::exact_alpha(SOURCES, 0.1, 0.01);
    outcome.exact("alpha(0.01) at p = 0.1", other);
    outcome.remark(
        "One alpha for every loss rate fits only near p = 0.5: at p = 0.1 and epsilon = 0.01 the \
         exact value is half as large again, so the profile computes k_min exactly where it needs it.",
    );
    outcome
}

/// `mplot-gpx`: the goodput share against redundancy x = k/F, its monotony and its knee.
pub fn goodput_shape() -> Outcome {
    let mut outcome = Outcome::new();
    let mut figure = Figure::new("GP(x): goodput over bandwidth", "redundancy x = k/F", "GP(x)/BW");
    for p in [0.1, 0.3, 0.5] {
        let odds = p / (1.0 - p);
        // Three times beyond the knee shows the fall.
        let most = (3.0 * odds * f64::from(SOURCES)).ceil() as u16;
        let curve = provisioning::goodput_curve(1.0, SOURCES, p, most);
        let rise = curve.windows(2).map(|pair| match pair {
            [(_, before), (_, after)] => after - before,
            _ => 0.0,
        });
        let largest_rise = rise.fold(f64::NEG_INFINITY, f64::max);
        outcome.bounded(
            format!("largest rise, p = {p}"),
            Measure::exact(largest_rise),
            None,
            // Differences of sums of some hundred terms are exact to this.
            1e-12,
        );
        let knee = provisioning::goodput_knee(SOURCES, p).unwrap_or(f64::NAN);
        outcome.bounded(
            format!("knee over p/(1-p), p = {p}"),
            Measure::exact(knee / odds),
            0.9,
            1.1,
        );
        let at = |x: f64| {
            let k = (x * f64::from(SOURCES)) as usize;
            curve.get(k).map_or(f64::NAN, |(_, value)| *value)
        };
        let start = at(0.0);
        outcome.bounded(
            format!("GP at half the knee over GP(0), p = {p}"),
            Measure::exact(at(odds / 2.0) / start),
            0.99,
            1.0 + 1e-9,
        );
        // Far beyond the knee every further repair is wasted: GP falls as 1/(1 + x).
        outcome.bounded(
            format!("GP at twice the knee over GP(0), p = {p}"),
            Measure::exact(at(2.0 * odds) / start),
            None,
            1.02 / (1.0 + 2.0 * odds) / (1.0 - p),
        );
        let points = curve.iter().map(|(x, share)| (*x, Measure::exact(*share))).collect();
        figure.line(format!("p = {p}"), points);
    }
    outcome.figures.push(figure);
    outcome.remark(
        "The knee is where one more repair costs half of what it costs far beyond, computed from \
         the exact distribution for F = 90.",
    );
    outcome
}
