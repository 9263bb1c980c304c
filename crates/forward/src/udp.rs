//! UDP datagrams carried over a connection: each in a datagram of the connection, or in several if it is too long for
//! one. So none waits for another, and what is lost stays lost.
//!
//! A *flow* stands for one address that sends to the near end, or for one association of a SOCKS5 client. The far end
//! has a socket of its own for each, so that answers find their way back. The bytes are specified in `docs/spec/forward-0.md`.

mod counts;
mod far;
mod frame;
mod joiner;
mod near;
mod opener;
mod outlet;
mod rate;
mod relay;
mod routes;
#[cfg(test)]
mod tests;

pub use counts::{DatagramCounters, DatagramCounts};
pub(super) use far::{Peers, carry};
pub(super) use frame::{buffer, payload_of};
pub use near::{DatagramListener, listen_for_datagrams};
pub use relay::MAX_ASSOCIATIONS;
pub(super) use relay::{Associated, Relay};
pub(super) use routes::Routes;

use core::time::Duration;

/// A flow that has carried nothing for this long is forgotten.
pub const IDLE: Duration = Duration::from_secs(60);
/// How often idle flows are looked for within [`IDLE`].
const SWEEPS: u32 = 12;
/// Most flows of a forward at its near end, and of a peer at the far end.
pub const MAX_FLOWS: usize = 256;
/// Pause after a receive call failed.
pub(super) const PAUSE: Duration = Duration::from_millis(100);
/// Longest datagram that UDP carries.
const MAX_DATAGRAM: usize = 65_535;
