//! Probes: what a run can record, and figures computed from several runs.

mod compare;
mod metrics;

pub use compare::{jain, mean, quantile, standard_deviation};
pub use metrics::{About, METRICS, Metric};
