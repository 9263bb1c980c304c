//! Forwards connections of TCP and of Unix sockets over a connection, as ssh does: each on a stream of its own, so that
//! none waits for another, with half-close, resets and back-pressure passed through. Forwards UDP datagrams too, each on
//! its own.
//!
//! The bytes on the wire are specified in `docs/spec/forward-0.md`.

mod acceptor;
mod carriers;
mod listen;
mod per_peer;
mod permit;
mod place;
mod ports;
mod serve;
mod served;
mod socket;
pub mod socks;
mod splice;
mod target;
mod udp;
pub mod wire;

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;

pub use listen::{Link, Listener, listen_for_socks, listen_here, listen_there};
pub use permit::{Grant, ParsePermitError, Permit, Permits};
pub use place::{Forward, MAX_SOCKET_PATH, Place, SocketPath};
pub use serve::{ForwardEvent, Service, serve};
pub use socket::SocketError;
pub use splice::splice;
pub use target::{Dynamic, ParseForwardError, Target, UdpForward};
pub use udp::listen_for_datagrams;
pub use udp::{
    DatagramCounters, DatagramCounts, DatagramListener, IDLE, MAX_ASSOCIATIONS, MAX_FLOWS,
};
