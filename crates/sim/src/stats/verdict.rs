//! Verdicts on whether an estimate is within its bounds.

use serde::{Deserialize, Serialize};

use super::{Estimate, student_quantile};

/// Whether an estimate satisfies the bounds on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The whole confidence interval is within the bounds.
    Holds,
    /// The mean is within the bounds, but the whole interval is not.
    Open {
        /// Number of seeds at which the interval would be within the bounds if mean and standard
        /// deviation stay the same; `None` if no reasonable number is enough, or if there is only
        /// one run.
        seeds: Option<usize>,
    },
    /// The mean is outside the bounds, or there is no measurement.
    Fails,
}

/// Largest number of seeds that is reported.
const MOST_SEEDS: f64 = 100_000.0;

impl Verdict {
    /// The verdict on whether `estimate` is between `min` and `max`. Either bound may be missing.
    pub fn of(estimate: Option<&Estimate>, min: Option<f64>, max: Option<f64>) -> Verdict {
        let within =
            |value: f64| min.is_none_or(|min| value >= min) && max.is_none_or(|max| value <= max);
        let Some(estimate) = estimate.filter(|estimate| within(estimate.mean)) else {
            return Verdict::Fails;
        };
        match estimate.interval {
            Some((lo, hi)) if within(lo) && within(hi) => Verdict::Holds,
            _ => Verdict::Open { seeds: seeds_to_settle(estimate, min, max) },
        }
    }

    /// The name of the verdict: `holds`, `open` or `fails`.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Open { .. } => "open",
            Verdict::Fails => "fails",
        }
    }
}

/// The smallest number n of seeds for which the interval, with half width t·s/√n, is within the
/// bounds.
fn seeds_to_settle(estimate: &Estimate, min: Option<f64>, max: Option<f64>) -> Option<usize> {
    if estimate.n < 2 {
        return None;
    }
    let room = [min.map(|min| estimate.mean - min), max.map(|max| max - estimate.mean)];
    let room = room.into_iter().flatten().reduce(f64::min).filter(|room| *room > 0.0)?;
    // The normal quantile is smaller than any Student quantile, so this is a lower bound.
    let least = libm::ceil((1.96 * estimate.std / room) * (1.96 * estimate.std / room));
    if least > MOST_SEEDS {
        return None;
    }
    let enough =
        |n: &usize| student_quantile(0.975, n - 1) * estimate.std / libm::sqrt(*n as f64) <= room;
    (least.max(2.0) as usize..).find(enough)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_decides_and_a_mean_alone_does_not() {
        let estimate = Estimate::of(&[1.0, 2.0, 3.0]).unwrap();
        // The estimate is 2 ± 2.48.
        let of = |min, max| Verdict::of(Some(&estimate), min, max);
        assert_eq!(of(Some(-0.5), Some(4.5)), Verdict::Holds);
        assert_eq!(of(None, None), Verdict::Holds);
        assert_eq!(of(Some(2.1), None), Verdict::Fails);
        assert_eq!(Verdict::of(None, None, None), Verdict::Fails);
        // t(6)/√7 = 0.925 ≤ 1 < t(5)/√6 = 1.049, so seven seeds are needed.
        assert_eq!(of(Some(1.0), None), Verdict::Open { seeds: Some(7) });
        assert_eq!(of(Some(1.0), Some(2.0)), Verdict::Open { seeds: None });
        let alone = Estimate::of(&[2.0]).unwrap();
        assert_eq!(Verdict::of(Some(&alone), Some(1.0), None), Verdict::Open { seeds: None });
        let certain = Estimate::exact(2.0);
        assert_eq!(Verdict::of(Some(&certain), Some(2.0), Some(2.0)), Verdict::Holds);
    }

    #[test]
    fn as_many_seeds_as_named_do_settle_it() {
        let estimate = Estimate { n: 4, mean: 10.0, std: 3.0, interval: Some((5.2, 14.8)) };
        for bound in [9.9, 9.0, 7.0, 3.0] {
            let Some(n) = seeds_to_settle(&estimate, Some(bound), None) else { panic!("{bound}") };
            let half = |n: usize| student_quantile(0.975, n - 1) * 3.0 / (n as f64).sqrt();
            assert!(half(n) <= 10.0 - bound, "{bound}: {n}");
            assert!(n == 2 || half(n - 1) > 10.0 - bound, "{bound}: {n} is more than needed");
        }
    }
}
