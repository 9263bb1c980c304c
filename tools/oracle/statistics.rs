//! Means and their standard errors, and whether two of them agree.

use anabranch_sim::stats;

pub use anabranch_sim::probe::jain;

/// Mean and standard error of a sample.
#[derive(Clone, Copy, Debug, Default)]
pub struct Estimate {
    pub mean: f64,
    pub error: f64,
}

impl Estimate {
    /// The estimate from these values; without error if there is only one, zero if there is none.
    pub fn of(values: &[f64]) -> Self {
        let Some(of) = stats::Estimate::of(values) else { return Estimate::default() };
        Estimate { mean: of.mean, error: of.std / (of.n as f64).sqrt() }
    }

    /// The estimate from a published mean and sample standard deviation over `n` runs.
    pub fn published(mean: f64, deviation: f64, n: f64) -> Self {
        Estimate { mean, error: if n > 1.0 { deviation / n.sqrt() } else { 0.0 } }
    }

    /// Whether the estimate lies within `share` of the reference, or two standard errors of the difference.
    pub fn agrees(&self, reference: &Estimate, share: f64) -> bool {
        let error = (self.error * self.error + reference.error * reference.error).sqrt();
        let allowed = (share * reference.mean.abs()).max(2.0 * error);
        (self.mean - reference.mean).abs() <= allowed
    }

    /// Whether two counts agree within the factor, where the reference is large enough to tell.
    pub fn within_factor(&self, reference: &Estimate, factor: f64, least: f64) -> bool {
        reference.mean < least
            || (reference.mean / factor..=reference.mean * factor).contains(&self.mean)
    }
}
