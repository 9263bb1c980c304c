//! A mean with its 95 % interval.

use serde::{Deserialize, Serialize};

/// A figure measured in one or more runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// The mean.
    pub mean: f64,
    /// Lower end of the 95 % interval; the mean itself for a single or certain value.
    pub lo: f64,
    /// Upper end.
    pub hi: f64,
    /// Values that it is the mean of.
    pub n: usize,
}

/// 97.5 % quantiles of Student's t for 1 to 30 degrees of freedom.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

impl Measure {
    /// A value without spread.
    pub fn exact(value: f64) -> Self {
        Measure { mean: value, lo: value, hi: value, n: 1 }
    }

    /// The mean of independent values and its t-based interval. No values: not a number.
    pub fn of(values: &[f64]) -> Self {
        let n = values.len();
        let mean = values.iter().sum::<f64>() / n as f64;
        let Some(degrees) = n.checked_sub(2) else { return Measure { n, ..Measure::exact(mean) } };
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let error = (squares / (n - 1) as f64 / n as f64).sqrt();
        // Beyond the table, the expansion of the quantile about the normal one is good to 0.001.
        let t = T.get(degrees).copied().unwrap_or(1.95996 + 2.4 / (n - 1) as f64);
        Measure { mean, lo: mean - t * error, hi: mean + t * error, n }
    }

    /// The mean of a function of paired values: values of one seed belong together.
    pub fn paired(a: &[f64], b: &[f64], f: impl Fn(f64, f64) -> f64) -> Self {
        let values: Vec<f64> = a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect();
        Measure::of(&values)
    }

    /// The mean ratio of paired values.
    pub fn ratio(a: &[f64], b: &[f64]) -> Self {
        Measure::paired(a, b, |a, b| a / b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_follow_students_t() {
        // Mean 3, sample deviation sqrt(2.5), standard error sqrt(0.5), t(4) = 2.776.
        let measure = Measure::of(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!((measure.mean, measure.n), (3.0, 5));
        assert!((measure.hi - (3.0 + 2.776 * 0.5_f64.sqrt())).abs() < 1e-9);
        assert!((measure.mean - measure.lo - (measure.hi - measure.mean)).abs() < 1e-12);
    }

    #[test]
    fn few_values_have_no_spread() {
        assert_eq!(Measure::of(&[2.0]), Measure::exact(2.0));
        assert!(Measure::of(&[]).mean.is_nan());
        assert_eq!(Measure::ratio(&[2.0, 4.0], &[1.0, 2.0]).mean, 2.0);
    }
}
