//! What a run of a scenario measured, as plain values that any writer can store.
//!
//! A *subject* is what a figure is about: a flow group (`bulk`), one flow of it (`bulk.3`), one of its
//! paths (`bulk.3/lte`), a link (`link.bottleneck`), or everything (`all`). A *metric* carries its unit
//! at the end of its name (`goodput_mbps`, `packet_delay_mean_s`).

use serde::{Deserialize, Serialize};

/// Everything measured in one run: one point of the sweep, one seed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// The sweep's keys and this run's values, in the order of the axes; empty without a sweep.
    pub point: Vec<(String, String)>,
    /// The seed of every random draw.
    pub seed: u64,
    /// Single figures, in a fixed order.
    pub scalars: Vec<Scalar>,
    /// Figures over time.
    pub series: Vec<Series>,
    /// Figures with many values: delays of packets, completion times.
    pub samples: Vec<Samples>,
    /// Digest of every packet event: equal runs have equal digests.
    pub digest: u64,
    /// Packets put onto links, counted once per link.
    pub packet_hops: u64,
    /// Events the engine handled.
    pub events: u64,
    /// Virtual time simulated, s.
    pub virtual_seconds: f64,
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scalar {
    /// What it is about.
    pub subject: String,
    /// What it measures.
    pub metric: String,
    /// Its value, in the unit that the metric's name ends with.
    pub value: f64,
}

/// A figure over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// What it is about.
    pub subject: String,
    /// What it measures.
    pub metric: String,
    /// When, in seconds of virtual time; rising. For a rate, the end of the interval it is over.
    pub times: Vec<f64>,
    /// As many values.
    pub values: Vec<f64>,
}

/// Many values of one figure, in the order in which they arose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    /// What it is about.
    pub subject: String,
    /// What it measures.
    pub metric: String,
    /// The values.
    pub values: Vec<f64>,
}

impl RunReport {
    /// The scalar `metric` of `subject`, if it was measured.
    pub fn scalar(&self, subject: &str, metric: &str) -> Option<f64> {
        let matches = |scalar: &&Scalar| scalar.subject == subject && scalar.metric == metric;
        self.scalars.iter().find(matches).map(|scalar| scalar.value)
    }

    /// The series of `metric` about `subject`, if it was recorded.
    pub fn series(&self, subject: &str, metric: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.subject == subject && series.metric == metric)
    }

    /// The samples of `metric` about `subject`, if they were kept.
    pub fn samples(&self, subject: &str, metric: &str) -> Option<&[f64]> {
        let matches = |kept: &&Samples| kept.subject == subject && kept.metric == metric;
        self.samples.iter().find(matches).map(|kept| kept.values.as_slice())
    }
}
