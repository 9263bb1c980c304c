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

// The code of the how-to page is compiled and run with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/howto/try-a-policy.md")]
mod try_a_policy {}

// The code of the page runs over both engines, which the policy crate does not know.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/howto/add-a-scheduler.md")]
mod add_a_scheduler {}

// The code of the page on scenarios is tested in the same way.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/scenarios.md")]
mod scenarios_page {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/simulator.md")]
mod simulator {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/wireless.md")]
mod wireless_page {}
