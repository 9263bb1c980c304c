//! The metrics that a run can record, and statistics of several values.

mod compare;
mod metrics;

pub use compare::{jain, mean, quantile, standard_deviation};
pub use metrics::{About, METRICS, Metric};
