//! Units, identifiers, congestion marks, deterministic random numbers and mathematical functions
//! with reproducible results.
//!
//! Nothing here reads a clock, draws random numbers from the system or does I/O: time, seeds and
//! bytes are arguments, so that the same inputs give the same outputs on every machine.

mod ecn;
mod id;
pub mod lines;
pub mod math;
mod peer_text;
mod rng;
mod time;
mod units;

pub use ecn::Ecn;
pub use id::PathId;
pub use peer_text::{PeerText, escaped};
pub use rng::Rng;
pub use time::Time;
pub use units::{Bitrate, DataSize, ParseUnitError, Probability, parse_duration};
