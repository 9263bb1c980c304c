//! The gain of many paths beyond the sum of their capacities, and how it grows with their number.

use anabranch_types::math;

/// Standard deviation of the loss of one path over windows of `window` seconds, when the loss
/// alternates between `low` and `high` with exponential dwells of mean `dwell` seconds each.
///
/// The process decorrelates at rate a = 2/dwell, and the mean over a window T of such a process has
/// the variance σ²·2/(aT)·(1 − (1 − e^(−aT))/(aT)). For `window` = 0 the deviation is σ = (high −
/// low)/2.
pub fn two_state_deviation(low: f64, high: f64, dwell: f64, window: f64) -> f64 {
    let sigma = (high - low).abs() / 2.0;
    let x = 2.0 * window / dwell;
    if x.is_nan() || x <= 1e-6 {
        return sigma;
    }
    sigma * math::sqrt(2.0 / x * (1.0 - (1.0 - math::exp(-x)) / x))
}

/// The [`two_state_deviation`] of the mean loss over M = `paths` independent paths: that of one
/// path divided by √M. MPLOT §IV-A calls it the volatility of aggregate loss.
pub fn aggregate_deviation(low: f64, high: f64, dwell: f64, window: f64, paths: u32) -> f64 {
    two_state_deviation(low, high, dwell, window) / math::sqrt(f64::from(paths.max(1)))
}

/// A straight line through points, y = intercept + slope·x.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineFit {
    /// Rise per unit of x.
    pub slope: f64,
    /// Value at x = 0; zero by construction for a proportional fit.
    pub intercept: f64,
    /// Share of the variance of y that the line explains, 1 − Σ(y − ŷ)²/Σ(y − ȳ)². Below zero if a
    /// proportional fit is worse than the mean.
    pub r_squared: f64,
}

/// The least-squares line through `points` of (x, y). `None` if all x or all y are equal.
pub fn fit_line(points: &[(f64, f64)]) -> Option<LineFit> {
    let (x_mean, y_mean) = means(points)?;
    let spread: f64 = points.iter().map(|(x, _)| (x - x_mean) * (x - x_mean)).sum();
    let joint: f64 = points.iter().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum();
    let slope = joint / spread;
    finish(points, slope, y_mean - slope * x_mean)
}

/// The least-squares line through the origin. `None` if every x is zero or every y the same.
pub fn fit_proportional(points: &[(f64, f64)]) -> Option<LineFit> {
    let square: f64 = points.iter().map(|(x, _)| x * x).sum();
    let joint: f64 = points.iter().map(|(x, y)| x * y).sum();
    finish(points, joint / square, 0.0)
}

/// Fits gain ∝ 1 − 1/√M to `gains` of (M, gain): MPLOT's order of growth of the diversity gain
/// (§IV-A). M = 1 has no gain, so the line goes through the origin; its slope is the gain that
/// infinitely many paths would have.
pub fn fit_diversity(gains: &[(u32, f64)]) -> Option<LineFit> {
    let points: Vec<(f64, f64)> = gains
        .iter()
        .map(|(paths, gain)| (1.0 - 1.0 / math::sqrt(f64::from((*paths).max(1))), *gain))
        .collect();
    fit_proportional(&points)
}

fn means(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let n = points.len() as f64;
    let sum = |pick: fn(&(f64, f64)) -> f64| points.iter().map(pick).sum::<f64>() / n;
    (!points.is_empty()).then(|| (sum(|(x, _)| *x), sum(|(_, y)| *y)))
}

fn finish(points: &[(f64, f64)], slope: f64, intercept: f64) -> Option<LineFit> {
    let (_, y_mean) = means(points)?;
    let total: f64 = points.iter().map(|(_, y)| (y - y_mean) * (y - y_mean)).sum();
    let residual: f64 = points
        .iter()
        .map(|(x, y)| {
            let miss = y - (intercept + slope * x);
            miss * miss
        })
        .sum();
    let r_squared = 1.0 - residual / total;
    (slope.is_finite() && r_squared.is_finite()).then_some(LineFit { slope, intercept, r_squared })
}
