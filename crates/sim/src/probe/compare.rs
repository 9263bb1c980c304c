//! Figures about several values or several runs.

/// The arithmetic mean; zero of nothing.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The sample standard deviation; zero of fewer than two.
pub fn standard_deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

/// Jain's fairness index, (Σx)² / (n Σx²) (Jain, Chiu and Hawe 1984): one if all are equal, 1/n if one
/// has everything. One of nothing, and where all are zero.
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    if squares > 0.0 { sum * sum / (shares.len() as f64 * squares) } else { 1.0 }
}

/// What several paths give over the best of them alone: with the lone paths' goodputs `alone` and the
/// goodput `together`, (g − Cmax) / (ΣC − Cmax) if g ≥ Cmax, else (g − Cmax) / Cmax (Kaspar 2012; Paasch
/// et al. 2013). One: everything is added up; zero: as good as the best path; −1: nothing at all.
/// `None` where that is undefined: no paths, none that delivers, or a single one that is exceeded.
pub fn aggregation_benefit(alone: &[f64], together: f64) -> Option<f64> {
    let best = alone.iter().copied().fold(0.0, f64::max);
    let gain = together - best;
    let range = if gain >= 0.0 { alone.iter().sum::<f64>() - best } else { best };
    if range > 0.0 { Some(gain / range) } else { (gain == 0.0 && best > 0.0).then_some(0.0) }
}

/// What a protocol gains over `paths` times its goodput over one of them: G(M) − M·G(1), in the unit of
/// the goodputs, and the same as a share of G(M) (MPLOT, §IV-A).
pub fn diversity_gain(together: f64, paths: u32, one: f64) -> (f64, f64) {
    let gain = together - f64::from(paths) * one;
    (gain, if together > 0.0 { gain / together } else { 0.0 })
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
    fn moments_are_those_of_samples() {
        assert_eq!(mean(&[1.0, 2.0, 6.0]), 3.0);
        assert!((standard_deviation(&[1.0, 2.0, 6.0]) - 7.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!((standard_deviation(&[4.0]), mean(&[])), (0.0, 0.0));
    }

    #[test]
    fn benefit_is_one_for_the_sum_and_zero_for_the_best() {
        assert_eq!(aggregation_benefit(&[6.0, 4.0], 10.0), Some(1.0));
        assert_eq!(aggregation_benefit(&[6.0, 4.0], 6.0), Some(0.0));
        assert_eq!(aggregation_benefit(&[6.0, 4.0], 3.0), Some(-0.5));
        assert_eq!(aggregation_benefit(&[6.0], 6.0), Some(0.0));
        assert_eq!(aggregation_benefit(&[], 6.0), None);
    }

    #[test]
    fn diversity_is_counted_against_lone_paths() {
        // The paper's own numbers: 35 of 50 Mb/s over ten paths against 2.75 over one.
        let (gain, share) = diversity_gain(35.0, 10, 2.75);
        assert!((gain - 7.5).abs() < 1e-12 && (share - 0.2143).abs() < 1e-4);
    }
}
