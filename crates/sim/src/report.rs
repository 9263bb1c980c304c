//! The report of a run: plain values that any writer can store.
//!
//! A *subject* is what a figure is about: a flow group (`bulk`), one flow of it (`bulk.3`), one of its
//! paths (`bulk.3/lte`), a link (`link.bottleneck`), or everything (`all`). A *metric* carries its unit
//! at the end of its name (`goodput_mbps`, `packet_delay_mean_s`).

use core::time::Duration;

use anabranch_core::connection::ConnectionStats;
use anabranch_types::Time;
use serde::{Deserialize, Serialize};

use crate::endpoint::{FlowFailure, MessageLog};
use crate::link::LinkCounters;

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
    /// Packets that arrived at the far end of a link, counted once per link.
    pub packet_hops: u64,
    /// Events the engine handled.
    pub events: u64,
    /// Virtual time simulated, s.
    pub virtual_seconds: f64,
    /// Every flow by itself; not kept with results.
    #[serde(skip)]
    pub flows: Vec<FlowReport>,
    /// Every link by itself; not kept with results.
    #[serde(skip)]
    pub links: Vec<LinkReport>,
}

/// The result of one flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowReport {
    /// Name of the flow in reports.
    pub subject: String,
    /// When the flow began.
    pub start: Time,
    /// Application bytes delivered in order, each checked where the transport carries bytes.
    pub bytes: u64,
    /// Time of the last delivery.
    pub last: Time,
    /// Longest time without a delivery, from the warm-up's end to the last delivery.
    pub longest_gap: Duration,
    /// Whether everything that the flow would ever send was delivered; never true for an endless flow.
    pub done: bool,
    /// Why the flow failed, if it did.
    pub failure: Option<FlowFailure>,
    /// Messages of the flow.
    pub messages: MessageLog,
    /// The connection's figures at the sender, of flows between core endpoints.
    pub sender: Option<ConnectionStats>,
    /// The connection's figures at the receiver, of flows between core endpoints.
    pub receiver: Option<ConnectionStats>,
}

impl FlowReport {
    /// The delay that a share `quantile` of the messages sent does not exceed; those that have not
    /// arrived count as infinite.
    pub fn message_delay(&self, quantile: f64) -> Duration {
        let mut delays: Vec<Duration> = self.messages.arrived.iter().map(|(_, d)| *d).collect();
        delays.sort_unstable();
        let rank = (self.messages.sent as f64 * quantile).ceil().max(1.0) as usize;
        delays.get(rank - 1).copied().unwrap_or(Duration::MAX)
    }
}

/// Result of one link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkReport {
    /// Name of the link; the opposite direction of `a` is `a.reverse`.
    pub name: String,
    /// Counters of the link, from the epoch on.
    pub counters: LinkCounters,
    /// Whether the link carries a flow's data, not only acknowledgements.
    pub carries_data: bool,
    /// Bits that the link could have delivered from the first flow's start to the last delivery: the
    /// integral of rate times (1 - loss).
    pub capacity_bits: f64,
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scalar {
    /// Subject of the figure, such as `all` or `link.a`.
    pub subject: String,
    /// Name of the metric, such as `goodput_mbps`.
    pub metric: String,
    /// Value of the figure, in the unit that the metric's name ends with.
    pub value: f64,
}

/// A figure over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Subject of the figure, such as `all` or `link.a`.
    pub subject: String,
    /// Name of the metric, such as `goodput_mbps`.
    pub metric: String,
    /// Seconds of virtual time, rising; for a rate, the end of the interval that it is measured over.
    pub times: Vec<f64>,
    /// The values, one for each time.
    pub values: Vec<f64>,
}

impl Series {
    /// Without points yet.
    pub(crate) fn new(subject: impl Into<String>, metric: impl Into<String>) -> Self {
        let (times, values) = (Vec::new(), Vec::new());
        Series { subject: subject.into(), metric: metric.into(), times, values }
    }

    /// Adds a point.
    pub(crate) fn push(&mut self, now: Time, value: f64) {
        self.times.push(now.as_secs_f64());
        self.values.push(value);
    }
}

/// Many values of one figure, in the order in which they arose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    /// Subject of the figure, such as `all` or `link.a`.
    pub subject: String,
    /// Name of the metric, such as `goodput_mbps`.
    pub metric: String,
    /// The values.
    pub values: Vec<f64>,
}

impl RunReport {
    /// Application bytes delivered by all flows.
    pub fn bytes(&self) -> u64 {
        self.flows.iter().map(|flow| flow.bytes).sum()
    }

    /// From the first flow's start to the last delivery.
    pub fn elapsed(&self) -> Duration {
        let first = self.flows.iter().map(|flow| flow.start).min().unwrap_or_default();
        let last = self.flows.iter().map(|flow| flow.last).max().unwrap_or_default();
        last.since(first)
    }

    /// Application rate of all flows from the first start to the last delivery, Mb/s.
    pub fn goodput_mbps(&self) -> f64 {
        self.bytes() as f64 * 8e-6 / self.elapsed().as_secs_f64().max(1e-9)
    }

    /// Application bits delivered over what the links that carry data could have delivered. Meaningful only
    /// where each path has links of its own.
    pub fn efficiency(&self) -> f64 {
        let links = self.links.iter().filter(|link| link.carries_data);
        let capacity: f64 = links.map(|link| link.capacity_bits).sum();
        if capacity > 0.0 { self.bytes() as f64 * 8.0 / capacity } else { 0.0 }
    }

    /// Packets offered to links.
    pub fn packets(&self) -> u64 {
        self.links.iter().map(|link| link.counters.packets_in).sum()
    }

    /// The link called `name`.
    pub fn link(&self, name: &str) -> Option<&LinkReport> {
        self.links.iter().find(|link| link.name == name)
    }

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
