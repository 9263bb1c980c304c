//! What runs measured, by experiment, point of the sweep and seed.

use anabranch_sim::report::RunReport;
use std::collections::BTreeMap;

use crate::measure::Measure;

/// The runs that a checker may look at.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    runs: BTreeMap<&'static str, Vec<RunReport>>,
}

impl Evidence {
    /// Adds a run of an experiment. Runs of one point are looked at in the order of their addition.
    pub fn add(&mut self, experiment: &'static str, run: RunReport) {
        self.runs.entry(experiment).or_default().push(run);
    }

    /// The runs of an experiment at a point: every key of `at` has its value.
    pub fn runs<'a>(
        &'a self,
        experiment: &str,
        at: &'a [(&'a str, &'a str)],
    ) -> impl Iterator<Item = &'a RunReport> + 'a {
        let all = self.runs.get(experiment).map_or(&[][..], Vec::as_slice);
        all.iter().filter(move |run| {
            at.iter().all(|(key, value)| run.point.iter().any(|(k, v)| k == key && v == value))
        })
    }

    /// A scalar of every run at a point, in the order of the seeds; not a number where a run lacks it.
    pub fn values(
        &self,
        experiment: &str,
        at: &[(&str, &str)],
        subject: &str,
        metric: &str,
    ) -> Vec<f64> {
        let scalar = |run: &RunReport| {
            let mut scalars = run.scalars.iter();
            scalars
                .find(|s| s.subject == subject && s.metric == metric)
                .map_or(f64::NAN, |s| s.value)
        };
        self.runs(experiment, at).map(scalar).collect()
    }

    /// The mean of such a scalar.
    pub fn measure(
        &self,
        experiment: &str,
        at: &[(&str, &str)],
        subject: &str,
        metric: &str,
    ) -> Measure {
        Measure::of(&self.values(experiment, at, subject, metric))
    }

    /// The values that a sweep key takes, in the order of the sweep.
    pub fn axis(&self, experiment: &str, key: &str) -> Vec<String> {
        let mut values: Vec<String> = Vec::new();
        for run in self.runs.get(experiment).map_or(&[][..], Vec::as_slice) {
            if let Some((_, value)) = run.point.iter().find(|(k, _)| k == key)
                && !values.contains(value)
            {
                values.push(value.clone());
            }
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_sim::report::Scalar;

    #[test]
    fn runs_are_found_by_point() {
        let mut evidence = Evidence::default();
        for (m, seed, value) in [("1", 1, 2.0), ("1", 2, 4.0), ("2", 1, 8.0)] {
            let scalar = Scalar { subject: "all".into(), metric: "x".into(), value };
            let point = vec![("m".to_owned(), m.to_owned())];
            evidence
                .add("e", RunReport { point, seed, scalars: vec![scalar], ..Default::default() });
        }
        assert_eq!(evidence.axis("e", "m"), ["1", "2"]);
        assert_eq!(evidence.values("e", &[("m", "1")], "all", "x"), [2.0, 4.0]);
        assert_eq!(evidence.measure("e", &[("m", "2")], "all", "x").mean, 8.0);
        assert!(evidence.values("e", &[("m", "2")], "all", "y")[0].is_nan());
        assert!(evidence.values("other", &[], "all", "x").is_empty());
    }
}
