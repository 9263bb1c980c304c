//! The verdict on the runs of a profile.

use anabranch_results::stats::Estimate;
use serde::Serialize;

use crate::runs::Run;

/// How far the mean ratio may be from one.
const TOLERANCE: f64 = 0.05;
/// Links whose 99th percentile of lateness is at most this were not disturbed, ms.
const PUNCTUAL: f64 = 1.0;

/// The runs of a profile and their mean.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    pub profile: String,
    /// Mean of the ratios, and its 95 % interval by Student's t.
    pub mean_ratio: f64,
    pub interval: Option<(f64, f64)>,
    /// Whether the mean is within 5 % of one.
    pub agrees: bool,
    /// Runs with late links, which say more about the machine than about the code.
    pub disturbed: usize,
    pub runs: Vec<Run>,
}

impl Verdict {
    pub fn new(profile: &str, runs: Vec<Run>) -> Self {
        let ratios: Vec<f64> = runs.iter().map(|run| run.ratio).collect();
        let estimate = Estimate::of(&ratios);
        let mean_ratio = estimate.map_or(0.0, |estimate| estimate.mean);
        Verdict {
            profile: profile.to_owned(),
            mean_ratio,
            interval: estimate.and_then(|estimate| estimate.interval),
            agrees: (mean_ratio - 1.0).abs() <= TOLERANCE,
            disturbed: runs.iter().filter(|run| run.late_p99_ms > PUNCTUAL).count(),
            runs,
        }
    }

    /// The verdict in a line.
    pub fn line(&self) -> String {
        let Verdict { profile, mean_ratio, .. } = self;
        let verdict = if self.agrees { "agrees" } else { "DIFFERS by more than 5 %" };
        let interval = match self.interval {
            Some((lo, hi)) => format!(" (95 %: {lo:.3} to {hi:.3})"),
            None => String::new(),
        };
        let disturbed = match self.disturbed {
            0 => String::new(),
            n => format!("; the machine disturbed {n} of {} runs", self.runs.len()),
        };
        format!("{profile}: real over simulated {mean_ratio:.3}{interval}: {verdict}{disturbed}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(ratio: f64, late: f64) -> Run {
        Run {
            profile: "mplot".to_owned(),
            seed: 1,
            real_mbps: ratio,
            simulated_mbps: 1.0,
            ratio,
            late_p99_ms: late,
            late_max_ms: late,
            pressure: None,
        }
    }

    #[test]
    fn means_outside_five_percent_differ() {
        let verdict = Verdict::new("mplot", vec![run(0.96, 0.1), run(1.0, 2.0)]);
        assert!(verdict.agrees);
        assert_eq!(
            verdict.line(),
            "mplot: real over simulated 0.980 (95 %: 0.726 to 1.234): agrees; \
             the machine disturbed 1 of 2 runs"
        );
        let verdict = Verdict::new("mplot", vec![run(1.06, 0.1)]);
        assert_eq!(verdict.line(), "mplot: real over simulated 1.060: DIFFERS by more than 5 %");
        assert!(!Verdict::new("mplot", vec![run(0.94, 0.1)]).agrees);
        assert!(!Verdict::new("mplot", Vec::new()).agrees);
    }
}
