//! `summary.json`: the results of all runs, by seed and averaged.

use std::collections::BTreeMap;

use anabranch_sim::report::RunReport;
use anabranch_sim::scenario::Finding;
use anabranch_sim::stats::{Estimate, Verdict};
use serde::Serialize;

/// The results of a sweep, as far as they are kept in memory. `summary.json` has all of them;
/// values that are not finite are `null` there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// The first [`Summary::POINTS`] points of the sweep, in their order. Without a sweep there is
    /// one point without keys.
    pub points: Vec<PointSummary>,
    /// How many further points there are.
    pub further: usize,
    /// The scenario's claims and measures with their verdicts, from the seeds that every point has.
    pub claims: Vec<ClaimSummary>,
    /// The requested runs that are missing, by point.
    pub missing: Vec<MissingRuns>,
}

/// The missing runs of a point.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MissingRuns {
    /// The sweep's keys with their values.
    pub point: BTreeMap<String, String>,
    /// The seeds without a run at the point.
    pub seeds: Vec<u64>,
}

/// The results of all seeds at one point.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PointSummary {
    /// Number of seeds so far, including those without a run.
    #[serde(skip)]
    seeds: usize,
    /// The sweep's keys with their values.
    pub point: BTreeMap<String, String>,
    /// The identities of the runs, in the order of the seeds.
    pub runs: Vec<RunSummary>,
    /// The values of each metric over the seeds, in the order in which the runs report them.
    pub metrics: Vec<MetricSummary>,
}

/// One run's identity.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunSummary {
    /// Seed of the run.
    pub seed: u64,
    /// Digest of the fates of all packets, hexadecimal.
    pub digest: String,
    /// Number of packets, each counted once per link that it crossed.
    pub packet_hops: u64,
    /// Events handled.
    pub events: u64,
    /// Virtual time that passed, s.
    pub virtual_seconds: f64,
}

/// The values of one metric over the seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricSummary {
    /// Subject of the values, such as `all` or `link.a`.
    pub subject: String,
    /// Name of the metric, such as `goodput_mbps`.
    pub metric: String,
    /// Mean of the values that are finite.
    pub mean: Option<f64>,
    /// Sample standard deviation of the values that are finite.
    pub std: Option<f64>,
    /// Lower bound of the 95 % interval (Student's t); `None` for fewer than two values.
    pub lo: Option<f64>,
    /// Upper bound.
    pub hi: Option<f64>,
    /// How many values were finite.
    pub n: usize,
    /// The value for every seed, in the order of the seeds; `None` if the run did not report it or
    /// is missing.
    pub values: Vec<Option<f64>>,
}

impl MetricSummary {
    /// Mean and interval of the values that are finite.
    pub fn estimate(&self) -> Option<Estimate> {
        Estimate::of(&self.values.iter().flatten().copied().collect::<Vec<f64>>())
    }
}

/// The runs' verdict on one of the scenario's claims or measures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClaimSummary {
    /// Name of the claim.
    pub name: String,
    /// The published result that the claim is about.
    pub item: Option<String>,
    /// The values of the sweep's keys that the claim is about.
    pub point: BTreeMap<String, String>,
    /// Least value accepted.
    pub min: Option<f64>,
    /// Largest value accepted.
    pub max: Option<f64>,
    /// The value in the paper, as text.
    pub paper: Option<String>,
    /// The reading of the paper that the claim depends on.
    pub reading: Option<String>,
    /// Whether the claim shows why other claims fail.
    pub ablation: bool,
    /// The mean over the seeds, or the statistic of their mean curve; `None` if nothing was
    /// measured.
    pub mean: Option<f64>,
    /// Lower bound of the mean's 95 % interval; `None` for a single seed.
    pub lo: Option<f64>,
    /// Upper bound.
    pub hi: Option<f64>,
    /// Number of seeds behind the mean.
    pub n: usize,
    /// `holds`, `open` or `fails`; `None` for a measure.
    pub verdict: Option<&'static str>,
    /// For an open claim, the number of seeds that would bring its interval within the bounds if
    /// mean and spread stayed the same.
    pub seeds_to_settle: Option<usize>,
}

impl From<Finding> for ClaimSummary {
    fn from(finding: Finding) -> Self {
        let interval = finding.estimate.and_then(|estimate| estimate.interval);
        ClaimSummary {
            name: finding.name,
            item: finding.item,
            point: finding.point.into_iter().collect(),
            min: finding.min,
            max: finding.max,
            paper: finding.paper,
            reading: finding.reading,
            ablation: finding.is_ablation,
            mean: finding.estimate.map(|estimate| estimate.mean),
            lo: interval.map(|(lo, _)| lo),
            hi: interval.map(|(_, hi)| hi),
            n: finding.estimate.map_or(0, |estimate| estimate.n),
            verdict: finding.verdict.map(Verdict::word),
            seeds_to_settle: match finding.verdict {
                Some(Verdict::Open { seeds }) => seeds,
                _ => None,
            },
        }
    }
}

impl PointSummary {
    /// A point without measurements.
    pub fn new(point: &[(String, String)]) -> Self {
        PointSummary { point: point.iter().cloned().collect(), ..PointSummary::default() }
    }

    /// Adds a run; the order of calls is the order of the seeds.
    pub fn add(&mut self, report: &RunReport) {
        let before = self.seeds;
        self.seeds += 1;
        self.runs.push(RunSummary {
            seed: report.seed,
            digest: format!("{:016x}", report.digest),
            packet_hops: report.packet_hops,
            events: report.events,
            virtual_seconds: report.virtual_seconds,
        });
        for (index, scalar) in report.scalars.iter().enumerate() {
            let is_it = |metric: &MetricSummary| {
                metric.subject == scalar.subject && metric.metric == scalar.metric
            };
            // Runs report their values in the same order, so the place is nearly always the same.
            let place = match self.metrics.get(index) {
                Some(metric) if is_it(metric) => Some(index),
                _ => self.metrics.iter().position(is_it),
            };
            let value = Some(scalar.value).filter(|value| value.is_finite());
            match place.and_then(|place| self.metrics.get_mut(place)) {
                Some(metric) => {
                    metric.values.resize(before, None);
                    metric.values.push(value);
                }
                None => self.metrics.push(MetricSummary {
                    subject: scalar.subject.clone(),
                    metric: scalar.metric.clone(),
                    mean: None,
                    std: None,
                    lo: None,
                    hi: None,
                    n: 0,
                    values: std::iter::repeat_n(None, before).chain([value]).collect(),
                }),
            }
        }
    }

    /// Counts a seed whose run is missing, so that its values stay `None`.
    pub fn skip(&mut self) {
        self.seeds += 1;
    }

    /// Computes means and intervals, once every run is added.
    pub fn conclude(&mut self) {
        for metric in &mut self.metrics {
            metric.values.resize(self.seeds, None);
            let estimate = metric.estimate();
            metric.n = estimate.map_or(0, |estimate| estimate.n);
            metric.mean = estimate.map(|estimate| estimate.mean);
            metric.std = estimate.map(|estimate| estimate.std);
            (metric.lo, metric.hi) = estimate.and_then(|estimate| estimate.interval).unzip();
        }
    }

    /// The values of `metric` for `subject`.
    pub fn metric(&self, subject: &str, metric: &str) -> Option<&MetricSummary> {
        self.metrics.iter().find(|m| m.subject == subject && m.metric == metric)
    }
}

impl Summary {
    /// Name of the file.
    pub const FILE: &'static str = "summary.json";
    /// Number of points kept in memory.
    pub const POINTS: usize = 60;
}
