//! Statistics of several values.

/// The arithmetic mean; zero for an empty slice.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The sample standard deviation; zero for fewer than two values.
pub fn standard_deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

/// The `q` quantile, for `q` from 0 to 1: the smallest of `values` for which at least the share `q`
/// of all values is not larger. Zero for an empty slice.
pub fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

/// Jain's fairness index, (Σx)² / (n Σx²) (Jain, Chiu and Hawe 1984). It is one if all shares are
/// equal, and 1/n if one share is everything. It is also one for an empty slice, and if all shares
/// are zero.
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    if squares > 0.0 { sum * sum / (shares.len() as f64 * squares) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_is_one_for_equals_and_one_over_n_for_a_monopoly() {
        assert_eq!(jain(&[3.0, 3.0, 3.0]), 1.0);
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), 0.25);
        assert!((jain(&[1.0, 2.0]) - 0.9).abs() < 1e-12);
        assert_eq!(jain(&[]), 1.0);
    }

    #[test]
    fn a_quantile_is_a_value_that_occurs() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!([0.0, 0.5, 0.51, 1.0].map(|q| quantile(&values, q)), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }

    #[test]
    fn moments_are_those_of_samples() {
        assert_eq!(mean(&[1.0, 2.0, 6.0]), 3.0);
        assert!((standard_deviation(&[1.0, 2.0, 6.0]) - 7.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!((standard_deviation(&[4.0]), mean(&[])), (0.0, 0.0));
    }
}
