//! The errors that applications get.

use anabranch_core::connection::{AddPathError, CloseReason};
use anabranch_core::wire::CloseCode;
use std::io;
use std::net::SocketAddr;

/// A connection cannot be used any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The connection was closed, by either side or by a timeout.
    #[error("{}", describe(.0))]
    Closed(CloseReason),
    /// The endpoint's driver has ended, with the runtime that ran it.
    #[error("the endpoint has stopped")]
    Stopped,
}

/// A connection could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// No socket of the endpoint is bound to this address.
    #[error("no socket is bound to {0}")]
    NoSocket(SocketAddr),
    /// The request was refused before anything was sent.
    #[error(transparent)]
    Refused(#[from] anabranch_core::endpoint::ConnectError),
    /// Nobody answered on any path. A peer that does not permit our key keeps silent too.
    #[error("nobody answered on any path")]
    NoAnswer,
    /// The connection ended as soon as it began.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

/// A peer's connection could not be accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// Nothing was sent to the peer.
    #[error(transparent)]
    Refused(#[from] anabranch_core::endpoint::AcceptError),
    /// The peer was answered and did not complete the handshake. If it is still there, it asks again.
    #[error("the peer did not complete the handshake; wait until it connects again")]
    NoAnswer,
    /// The connection ended before it was open.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

/// A path could not be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// No socket of the endpoint is bound to this address.
    #[error("no socket is bound to {0}")]
    NoSocket(SocketAddr),
    /// The connection refused.
    #[error(transparent)]
    Refused(#[from] AddPathError),
    /// The connection is over.
    #[error("the connection is over")]
    Closed,
}

/// A datagram was not queued.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DatagramError {
    /// The datagram is longer than a packet can carry.
    #[error("the datagram is longer than a packet carries")]
    TooLong,
    /// The queue is full.
    #[error("the datagram queue is full")]
    Full,
    /// The connection is over.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

impl From<ConnectionError> for io::Error {
    fn from(error: ConnectionError) -> Self {
        let kind = match &error {
            ConnectionError::Closed(reason) if reason.code == CloseCode::IDLE => {
                io::ErrorKind::TimedOut
            }
            ConnectionError::Closed(reason) if reason.by_peer => io::ErrorKind::ConnectionReset,
            _ => io::ErrorKind::ConnectionAborted,
        };
        io::Error::new(kind, error)
    }
}

fn describe(reason: &CloseReason) -> String {
    let CloseReason { code, reason, by_peer } = reason;
    let who = if *by_peer { "the peer" } else { "this side" };
    match (*code, reason.is_empty()) {
        (CloseCode::IDLE, _) if !by_peer => {
            "the peer was silent for longer than the idle timeout".to_owned()
        }
        (CloseCode(0), true) => format!("{who} closed the connection"),
        (CloseCode(0), false) => format!("{who} closed the connection: {reason}"),
        (CloseCode(code), true) => format!("{who} closed the connection with code {code}"),
        (CloseCode(code), false) => {
            format!("{who} closed the connection with code {code}: {reason}")
        }
    }
}
