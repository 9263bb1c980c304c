//! What one run of a scenario measured.

use serde::{Deserialize, Serialize};

/// Everything one run measured: one point of the sweep with one seed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// The sweep's keys with their values at this point, in the scenario's order.
    pub point: Vec<(String, String)>,
    /// The seed of everything random.
    pub seed: u64,
    /// Single figures.
    pub scalars: Vec<Scalar>,
    /// Figures over virtual time.
    pub series: Vec<Series>,
    /// Collections whose distribution matters.
    pub samples: Vec<Samples>,
    /// Digest of every packet's fate; equal runs have equal digests.
    pub digest: u64,
    /// Packets times the links they crossed.
    pub packet_hops: u64,
    /// Events that the engine handled.
    pub events: u64,
    /// Virtual time that passed, s.
    pub virtual_seconds: f64,
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scalar {
    /// Whose: a flow group (`bulk`), one flow (`bulk.3`), a link (`link.bottleneck`) or `all`.
    pub subject: String,
    /// What, with its unit as a suffix, such as `goodput_mbps`.
    pub metric: String,
    /// The figure.
    pub value: f64,
}

/// A figure over virtual time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// As [`Scalar::subject`].
    pub subject: String,
    /// As [`Scalar::metric`].
    pub metric: String,
    /// When, s of virtual time; as many as `values`.
    pub times: Vec<f64>,
    /// The figures.
    pub values: Vec<f64>,
}

/// Figures whose distribution matters, one per packet, block or transfer, in the order they arose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    /// As [`Scalar::subject`].
    pub subject: String,
    /// What, such as `packet_delay_s`.
    pub metric: String,
    /// The figures.
    pub values: Vec<f64>,
}
