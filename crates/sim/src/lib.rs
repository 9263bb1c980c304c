//! The simulator: models of networks in virtual time, and the engine that runs protocols over them.
//!
//! Everything here is sans-I/O and deterministic: time and seeds are arguments, and the same
//! arguments give the same packets lost, marked and delivered on every machine.

pub mod delay;
pub mod endpoint;
pub mod engine;
pub mod link;
pub mod loss;
pub mod probe;
pub mod queue;
pub mod rate;
pub mod report;
pub mod scenario;
pub mod stats;
pub mod traffic;
pub mod wireless;

// The code examples of this how-to page are compiled and run with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/howto/try-a-policy.md")]
mod try_a_policy {}

// The examples of this page run over both engines, which the policy crate cannot use, so they are
// tested here.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/howto/add-a-scheduler.md")]
mod add_a_scheduler {}

// The examples of the pages below are tested in the same way.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/scenarios.md")]
mod scenarios_page {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/simulator.md")]
mod simulator {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/wireless.md")]
mod wireless_page {}
