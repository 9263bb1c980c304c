//! The report of a run, in plain values that can be stored in any format.
//!
//! The *subject* of a figure is a flow group (`bulk`), one flow of a group (`bulk.3`), one path of
//! a flow (`bulk.3/lte`), a link (`link.bottleneck`), or all flows (`all`). A *metric* carries its
//! unit at the end of its name (`goodput_mbps`, `packet_delay_mean_s`).

use core::time::Duration;

use anabranch_core::connection::ConnectionStats;
use anabranch_types::Time;
use serde::{Deserialize, Serialize};

use crate::endpoint::{FlowFailure, MessageLog};
use crate::link::LinkCounters;

/// All measurements of one run, that is, of one point of the sweep with one seed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// The sweep's keys and this run's values, in the order of the axes; empty without a sweep.
    pub point: Vec<(String, String)>,
    /// The seed of all random draws.
    pub seed: u64,
    /// Single figures, in a fixed order.
    pub scalars: Vec<Scalar>,
    /// Figures over time.
    pub series: Vec<Series>,
    /// Figures with many values: delays of packets, completion times.
    pub samples: Vec<Samples>,
    /// Digest of all packet events. Equal runs have equal digests.
    pub digest: u64,
    /// Packets that arrived at the far end of a link, counted once per link.
    pub packet_hops: u64,
    /// Events the engine handled.
    pub events: u64,
    /// Virtual time simulated, s.
    pub virtual_seconds: f64,
    /// The report of every flow; not stored with results.
    #[serde(skip)]
    pub flows: Vec<FlowReport>,
    /// The report of every link; not stored with results.
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
    /// Application bytes delivered in order. If the transport carries real bytes, the receiver has
    /// checked each of them.
    pub bytes: u64,
    /// Time of the last delivery.
    pub last: Time,
    /// Longest time without a delivery, from the warm-up's end to the last delivery.
    pub longest_gap: Duration,
    /// Whether all data of the flow was delivered; never true for an endless flow.
    pub done: bool,
    /// Why the flow failed, if it did.
    pub failure: Option<FlowFailure>,
    /// Messages of the flow.
    pub messages: MessageLog,
    /// The connection's statistics at the sender, for flows between core endpoints.
    pub sender: Option<ConnectionStats>,
    /// The connection's statistics at the receiver, for flows between core endpoints.
    pub receiver: Option<ConnectionStats>,
}

impl FlowReport {
    /// The `quantile` (from 0 to 1) of the delays of the messages sent. Messages that have not
    /// arrived count as infinitely late, so the result may be `Duration::MAX`.
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
    /// Counters of the link, from time zero on.
    pub counters: LinkCounters,
    /// Whether the link carries a flow's data, not only acknowledgements.
    pub carries_data: bool,
    /// Bits that the link could have delivered from the first flow's start to the last delivery:
    /// the integral of rate times (1 − loss).
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
    /// Times of the values in virtual seconds, rising. For a rate, this is the end of the interval
    /// over which it is measured.
    pub times: Vec<f64>,
    /// The values, one for each time.
    pub values: Vec<f64>,
}

impl Series {
    /// A series without points.
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

    /// The time from the first flow's start to the last delivery.
    pub fn elapsed(&self) -> Duration {
        let first = self.flows.iter().map(|flow| flow.start).min().unwrap_or_default();
        let last = self.flows.iter().map(|flow| flow.last).max().unwrap_or_default();
        last.since(first)
    }

    /// Application rate of all flows from the first start to the last delivery, Mb/s.
    pub fn goodput_mbps(&self) -> f64 {
        self.bytes() as f64 * 8e-6 / self.elapsed().as_secs_f64().max(1e-9)
    }

    /// Application bits delivered, divided by the bits that the links with data could have
    /// delivered. This is meaningful only if each path has links of its own.
    pub fn efficiency(&self) -> f64 {
        let links = self.links.iter().filter(|link| link.carries_data);
        let capacity: f64 = links.map(|link| link.capacity_bits).sum();
        if capacity > 0.0 { self.bytes() as f64 * 8.0 / capacity } else { 0.0 }
    }

    /// Packets offered to links, over all links.
    pub fn packets(&self) -> u64 {
        self.links.iter().map(|link| link.counters.packets_in).sum()
    }

    /// The report of the link called `name`; `None` if there is none.
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
