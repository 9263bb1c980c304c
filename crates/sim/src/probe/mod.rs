//! Probes: what can be measured in a run, and the figures that follow from several runs.

mod compare;
mod metrics;

pub use compare::{jain, mean, quantile, standard_deviation};
pub use metrics::{About, METRICS, Metric};
