//! Means and their errors.

/// Mean and standard error of a sample.
#[derive(Clone, Copy, Debug, Default)]
pub struct Estimate {
    pub mean: f64,
    pub error: f64,
}

impl Estimate {
    /// Of these values; no error where there is only one.
    pub fn of(values: &[f64]) -> Self {
        let n = values.len().max(1) as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let error = if values.len() > 1 { (squares / (n - 1.0) / n).sqrt() } else { 0.0 };
        Estimate { mean, error }
    }

    /// Of a published mean and sample standard deviation over `n` runs.
    pub fn published(mean: f64, deviation: f64, n: f64) -> Self {
        Estimate { mean, error: if n > 1.0 { deviation / n.sqrt() } else { 0.0 } }
    }

    /// Whether this lies within `share` of the reference, or two standard errors of the difference.
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

/// Jain's index of fairness.
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    if squares > 0.0 { sum * sum / (shares.len() as f64 * squares) } else { 1.0 }
}
