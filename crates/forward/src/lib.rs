//! Forwards TCP connections over a connection, as ssh does: each on a stream of its own, so that none waits for
//! another, with half-close, resets and back-pressure passed through. Forwards UDP datagrams too, each on its own.
//!
//! The bytes on the wire are specified in `docs/spec/forward-0.md`.

mod listen;
mod permit;
mod ports;
mod serve;
mod served;
pub mod socks;
mod splice;
mod target;
mod udp;
pub mod wire;

#[cfg(test)]
mod tests;

pub use listen::{Link, Listener, listen_for_socks, listen_here, listen_there};
pub use permit::{Grant, ParsePermitError, Permit, Permits};
pub use serve::{ForwardEvent, Service, serve};
pub use splice::splice;
pub use target::{Dynamic, Forward, ParseForwardError, Target};
pub use udp::listen_for_datagrams;
pub use udp::{DatagramCounters, DatagramCounts, DatagramListener, IDLE, MAX_FLOWS};
