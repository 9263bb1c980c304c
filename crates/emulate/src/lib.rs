//! The simulator's link models in real time.
//!
//! A [`Relay`] stands between a sender and a receiver on this machine. For every path it offers the
//! sender an address on loopback; datagrams sent there pass the path's forward link and reach the
//! receiver, each path from an address of its own, and replies pass the reverse link back. The links
//! are those of `anabranch_sim::link`, so delay, rate, queues, loss and ECN marks are the
//! simulator's, and with the same seed so are the loss processes.
//!
//! ```no_run
//! use anabranch_emulate::{PathConfig, Relay};
//!
//! let receiver = "127.0.0.1:4433".parse()?;
//! let lte: PathConfig = "name=lte,rate=12mbit,delay=40ms,loss=5%".parse()?;
//! let wifi: PathConfig = "name=wifi,rate=50mbit,delay=8ms,loss=markov:1%/30%@250ms".parse()?;
//! let relay = Relay::start(&[lte, wifi], receiver, 1)?;
//! println!("send to {:?}", relay.addresses());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod clock;
mod direction;
mod egress;
mod ingress;
mod lateness;
mod path;
mod relay;
mod socket;
mod stats;
mod wait;
mod worker;

#[cfg(test)]
mod tests;

pub use lateness::Lateness;
pub use path::PathConfig;
pub use relay::{Relay, RelayError};
pub use stats::{DirectionStats, PathStats, RelayStats};
