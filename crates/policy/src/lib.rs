//! The policy axes: congestion control, loss detection and estimation, scheduling, erasure codes,
//! redundancy, recovery and acknowledgement. Each axis has one small trait.
//!
//! Policies read snapshots ([`view`]) and return values; they never see the connection. A named
//! protocol is a choice on every axis (a *profile*, kept in `anabranch-core`); a policy is chosen
//! by name from the [`registry`], so that the command line, scenario files and bindings use the
//! same names.

pub mod ack;
pub mod analysis;
pub mod axis;
pub mod bottleneck;
pub mod code;
pub mod congestion;
pub mod loss;
pub mod recovery;
pub mod redundancy;
pub mod registry;
pub mod scheduler;
pub mod view;

pub use ack::AckPolicy;
pub use axis::Axis;
pub use code::ErasureCode;
pub use congestion::CongestionController;
pub use loss::{LossDetector, LossEstimator};
pub use recovery::RecoveryPolicy;
pub use redundancy::RedundancyPolicy;
pub use registry::{PolicyError, PolicySpec, Registry};
pub use scheduler::Scheduler;

// The code of the how-to pages is compiled and run with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/howto/add-a-congestion-controller.md")]
mod add_a_congestion_controller {}
