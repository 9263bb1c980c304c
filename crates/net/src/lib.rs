//! Anabranch: one connection over several lossy, unequal paths at once.
//!
//! An [`Endpoint`] is an identity (a static key) with UDP sockets. It connects to other endpoints by their public keys,
//! over as many paths as there are, and accepts their connections. A [`Connection`] carries byte streams and datagrams;
//! which packet goes where, how much redundancy protects it and what is repaired is decided by its [`Profile`].
//!
//! A file copied over every link that the machine has, in one program for both sides:
//!
//! ```no_run
#![doc = include_str!("../examples/copy.rs")]
//! ```
//!
//! `copy FILE 0.0.0.0:4433` on the receiving machine prints the address and the key for `copy FILE ADDRESS KEY` on the sending one.
//! The sender's paths follow its interfaces: a modem that is plugged in during the copy is used, and the copy goes on
//! without one that is unplugged. [`ConnectPaths`] restricts the paths to named interfaces, or to the program's own
//! sockets.
//!
//! | to | see |
//! |---|---|
//! | send and receive bytes in order | [`Connection::open_bi`], [`Connection::open_uni`], [`SendStream`], [`RecvStream`] |
//! | send messages that may be lost | [`Connection::send_datagram`], [`Connection::max_datagram_size`] |
//! | say what is urgent | [`TrafficClass`], [`SendStream::set_priority`] |
//! | choose links | [`ConnectPaths`], [`PathRequest`], [`Connection::add_path`], [`Connection::set_backup`] |
//! | see what each link does | [`Connection::stats`], [`Connection::path_event`], [`Connection::set_observer`] |
//! | say who may connect | [`Config`]'s `permitted` and `preshared`, [`Permitted`]; one by one, [`Incoming`] |
//! | choose the protocol, or add policies of your own | [`Profile`], [`policy`] |
//! | forward TCP ports, transfer files | the crates `anabranch-forward`, `anabranch-transfer` |
//!
//! The crate's `examples` are whole programs: `copy` is the one above, `echo` goes over two paths of one process, `bond`
//! over interfaces that come and go, `datagrams` beside a bulk transfer, `own_policy` with policies of the program's own.
//!
//! Everything runs on tokio, and every connection is encrypted and authenticated by its peers' static keys
//! ([`SecretKey`], [`PublicKey`]: X25519, as WireGuard writes them). Each operation has an error enum of its own;
//! [`ConnectionError`] and the errors of streams convert into [`std::io::Error`]. The protocol itself is
//! [`anabranch_core`], which does no I/O.

mod buffers;
mod clock;
mod connection;
pub mod crypto;
mod driver;
mod endpoint;
mod error;
mod incoming;
pub mod interfaces;
mod log;
pub mod paths;
mod shared;
mod socket;
mod sockets;
mod stream;
#[cfg(test)]
mod tests;

pub use anabranch_core::config::TransportConfig;
pub use anabranch_core::connection::{
    AddPathError, CloseReason, ConnectionStats, Dropped, EcnStats, PathStats, Totals,
};
pub use anabranch_core::crypto::{ParseKeyError, PublicKey};
pub use anabranch_core::endpoint::{
    AcceptConfig, AcceptError as AcceptRefused, ConnectError as ConnectRefused,
};
pub use anabranch_core::handshake::{Permitted, Schedule};
/// Decisions of a connection and their reasons, for an [observer](Connection::set_observer).
pub use anabranch_core::observe;
pub use anabranch_core::path::{PathAddress, PathCounters, SocketId};
pub use anabranch_core::profiles::Profile;
pub use anabranch_core::stream::{DATAGRAM_COST, StreamLimits};
pub use anabranch_core::wire::{CloseCode, Direction, Role, StreamId};
/// The policy traits, their events and views, for policies of your own, which a [`Profile`] takes.
pub use anabranch_policy as policy;
pub use anabranch_policy::view::TrafficClass;
/// Units, times and identifiers.
pub use anabranch_types as types;
pub use anabranch_types::PathId;
pub use connection::{Connection, PathEvent, PathSpec};
pub use crypto::keys::{KeyError, SecretKey};
pub use crypto::{KeyLog, PresharedKey};
pub use endpoint::{Config, Endpoint};
pub use error::{AcceptError, ConnectError, ConnectionError, DatagramError, PathError};
pub use incoming::{Incoming, RetryError};
pub use paths::{ConnectPaths, PathRequest};
pub use shared::StreamWaits;
pub use socket::{SocketAbilities, SocketSpec};
pub use stream::{ReadError, ReadExactError, ReadToEndError, RecvStream, SendStream, WriteError};

// The code of the how-to page is compiled and run with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/howto/bring-your-own-policy.md")]
mod bring_your_own_policy {}
