//! The simulator's link models in real time: as a relay of UDP datagrams within a process, or, on Linux, between
//! network namespaces in which any program runs.
//!
//! A [`Relay`] stands between a sender and a receiver on this machine. For every path it offers the
//! sender an address on loopback; datagrams sent there pass the path's forward link and reach the
//! receiver, each path from an address of its own, and replies pass the reverse link back. The
//! links are those of `anabranch_sim::link`, so delay, rate, queues, loss and ECN marks follow the
//! simulator's models, and the same seed gives the same loss processes.
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
//!
//! An `Emulator` makes two network namespaces with an interface for every path in each, and carries IP packets
//! between them. It needs the right to make namespaces and TUN devices.

mod clock;
mod egress;
mod histogram;
mod ingress;
mod joined;
mod lateness;
mod network;
mod path;
mod relay;
mod socket;
mod stats;
mod tap;
#[cfg(target_os = "linux")]
mod tun;
mod udp;
mod wait;
mod waits;
mod worker;

#[cfg(test)]
mod tests;

pub use lateness::Lateness;
pub use path::PathConfig;
pub use relay::{Relay, RelayError};
pub use stats::{LinkStats, PathStats, RelayStats, RouteStats};
pub use tap::Tap;
#[cfg(target_os = "linux")]
pub use tun::{Addresses, Emulator, EmulatorError, PathEnds, Side, set_ecn};
pub use waits::Waits;
