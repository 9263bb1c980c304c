//! Anabranch: one connection over several lossy, unequal paths at once.
//!
//! An [`Endpoint`] is an identity (an X25519 key) with one or more UDP sockets. It connects to other
//! endpoints by their public keys, over as many [paths](PathSpec) as there are, and accepts their
//! connections. A [`Connection`] carries byte streams and datagrams; which packet goes where, how
//! much redundancy protects it and what is repaired is its [`Profile`]'s affair.
//!
//! ```no_run
//! use anabranch::{Config, Endpoint, PathSpec, Profile, SecretKey, TrafficClass, parse_public_key};
//! use tokio::io::AsyncWriteExt;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let profile = Profile::named("anabranch").ok_or("no such profile")?;
//! let wifi = "192.0.2.1:0".parse()?;
//! let lte = "198.51.100.1:0".parse()?;
//! let config = Config::new(SecretKey::generate()?, profile.clone());
//! let endpoint = Endpoint::bind(config, [wifi, lte])?;
//!
//! let server = parse_public_key("hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=")?;
//! let remote = "203.0.113.5:4433".parse()?;
//! let paths = [PathSpec { local: wifi, remote }, PathSpec { local: lte, remote }];
//! let connection = endpoint.connect(server, &paths, profile).await?;
//! let (mut send, _receive) = connection.open_stream(TrafficClass::Bulk).await?;
//! send.write_all(b"over both links").await?;
//! send.finish()?;
//! send.acked().await?;
//! # Ok(())
//! # }
//! ```
//!
//! Whole programs are in the crate's `examples`: `echo` over two paths, `bond` with interfaces that
//! come and go, `datagrams` beside a bulk transfer, `own_policy` with policies of the program's own.
//!
//! The protocol is [`anabranch_core`], which does no I/O; this crate gives it cryptography
//! ([`crypto`]), sockets, clocks and randomness.

mod buffers;
mod clock;
mod connection;
pub mod crypto;
mod driver;
mod endpoint;
mod error;
pub mod forward;
pub mod interfaces;
mod log;
pub mod paths;
mod shared;
mod socket;
mod sockets;
mod stream;
#[cfg(test)]
mod tests;
pub mod transfer;

pub use anabranch_core::config::TransportConfig;
pub use anabranch_core::connection::{CloseReason, ConnectionStats, EcnStats, PathStats};
pub use anabranch_core::crypto::PublicKey;
pub use anabranch_core::handshake::{Permitted, Schedule};
pub use anabranch_core::profiles::Profile;
pub use anabranch_core::wire::CloseCode;
/// The policy traits, their events and views: for policies of one's own, which a [`Profile`] takes.
pub use anabranch_policy as policy;
pub use anabranch_policy::view::TrafficClass;
/// Units, times and identifiers.
pub use anabranch_types as types;
pub use anabranch_types::PathId;
pub use connection::{Connection, PathEvent, PathSpec};
pub use crypto::PresharedKey;
pub use crypto::keys::{KeyError, SecretKey, format_public_key, parse_public_key};
pub use endpoint::{Config, Endpoint};
pub use error::{ConnectError, ConnectionError, DatagramError, PathError};
pub use shared::StreamWaits;
pub use socket::{SocketAbilities, SocketSpec};
pub use stream::{RecvStream, SendStream};

// The code of the how-to page is compiled and run with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/howto/bring-your-own-policy.md")]
mod bring_your_own_policy {}
