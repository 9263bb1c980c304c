//! Propagation delays of links: scheduled, stepping, recorded and jittered delays, and the release
//! of packets in clumps.

mod clumps;
mod jitter;
mod law;
mod process;
mod quantile;
mod steps;
mod trace;

#[cfg(test)]
mod tests;

pub use clumps::Clumps;
pub use jitter::Jitter;
pub(crate) use jitter::MAX_CORRELATION;
pub use law::JitterLaw;
pub(crate) use process::MAX_DELAY;
pub use process::{DelayConfig, DelayCourse, DelayError, DelayProcess};
pub use steps::DelaySteps;
pub use trace::DelayTrace;
