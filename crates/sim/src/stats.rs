//! Statistics over seeds.
//!
//! Confidence intervals are two-sided 95 % intervals of Student's t distribution with n − 1 degrees
//! of freedom, because the runs with different seeds are independent and few.

mod student;
#[cfg(test)]
mod tests;
mod verdict;

use serde::{Deserialize, Serialize};

pub use student::{student_cdf, student_quantile};
pub use verdict::Verdict;

/// The estimate of a figure from several runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Number of values.
    pub n: usize,
    /// Mean of the values.
    pub mean: f64,
    /// Sample standard deviation of the values (n − 1 in the denominator); 0 for a single value.
    pub std: f64,
    /// Bounds of the 95 % confidence interval for the mean; `None` for a single value, whose spread
    /// is unknown.
    pub interval: Option<(f64, f64)>,
}

impl Estimate {
    /// The estimate from the finite ones among `values`; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let finite = || values.iter().copied().filter(|value| value.is_finite());
        let n = finite().count();
        if n == 0 {
            return None;
        }
        // The second sum corrects the rounding of the first, so that the mean of equal values is exact.
        let rough = finite().sum::<f64>() / n as f64;
        let mean = rough + finite().map(|value| value - rough).sum::<f64>() / n as f64;
        if n == 1 {
            return Some(Estimate { n, mean, std: 0.0, interval: None });
        }
        let squares: f64 = finite().map(|value| (value - mean) * (value - mean)).sum();
        let std = libm::sqrt(squares / (n - 1) as f64);
        let half = student_quantile(0.975, n - 1) * std / libm::sqrt(n as f64);
        Some(Estimate { n, mean, std, interval: Some((mean - half, mean + half)) })
    }

    /// An exact value, such as the result of a formula.
    pub fn exact(value: f64) -> Self {
        Estimate { n: 1, mean: value, std: 0.0, interval: Some((value, value)) }
    }

    /// The estimate of a statistic over all seeds by the jackknife (Miller, Biometrika 1974).
    /// `value` is the statistic of all seeds, and `without` has its values with each seed left out
    /// in turn. There is no interval for fewer than two seeds.
    pub fn jackknife(value: f64, without: &[f64]) -> Self {
        let n = without.len();
        let pseudo = |without: &f64| {
            // A change as small as a rounding error counts as zero, so that a value that does not
            // depend on the seed gets an interval of zero width.
            let change = value - without;
            let rounding = 1e-12 * value.abs().max(without.abs());
            if change.abs() <= rounding { value } else { value + (n - 1) as f64 * change }
        };
        let pseudo: Vec<f64> = without.iter().map(pseudo).collect();
        let spread = Estimate::of(&pseudo).filter(|spread| spread.n == n && n > 1);
        let (std, half) = spread.map_or((0.0, None), |s| (s.std, Some(s.half_width())));
        Estimate { n, mean: value, std, interval: half.map(|half| (value - half, value + half)) }
    }

    /// Lower bound of the interval; the mean if there is no interval.
    pub fn lo(&self) -> f64 {
        self.interval.map_or(self.mean, |(lo, _)| lo)
    }

    /// Upper bound of the interval; the mean if there is no interval.
    pub fn hi(&self) -> f64 {
        self.interval.map_or(self.mean, |(_, hi)| hi)
    }

    /// Half the width of the interval; 0 if there is no interval.
    pub fn half_width(&self) -> f64 {
        self.interval.map_or(0.0, |(lo, hi)| (hi - lo) / 2.0)
    }
}

/// The mean of the finite values; `None` if there are none.
pub fn mean(values: &[f64]) -> Option<f64> {
    Estimate::of(values).map(|estimate| estimate.mean)
}

/// The estimate of `a / b`, as the mean of the ratios of runs with the same seed. Pairs whose `b`
/// is zero are left out. `None` unless both have the same number of values.
pub fn paired_ratio(a: &[f64], b: &[f64]) -> Option<Estimate> {
    paired(a, b, |a, b| a / b)
}

fn paired(a: &[f64], b: &[f64], figure: impl Fn(f64, f64) -> f64) -> Option<Estimate> {
    if a.len() != b.len() {
        return None;
    }
    let figures: Vec<f64> = a.iter().zip(b).map(|(a, b)| figure(*a, *b)).collect();
    Estimate::of(&figures)
}

/// The `share` quantile of the finite ones among `values`, with `share` in `[0, 1]`. It is
/// interpolated linearly between the two nearest values (Hyndman and Fan 1996, type 7). `None` if
/// there are none.
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let place = share.clamp(0.0, 1.0) * sorted.len().checked_sub(1)? as f64;
    let below = *sorted.get(place as usize)?;
    let above = *sorted.get(place as usize + 1).unwrap_or(&below);
    Some(below + (above - below) * (place - libm::floor(place)))
}
