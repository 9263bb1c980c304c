//! The handshake, without sockets: message layouts, the initiator's timer, the responder's tables.
//!
//! [`Initiator`] holds one Initiation and sends the same bytes on every path until a Response
//! arrives. [`Responder`] processes every Initiation that an endpoint receives. With the cheapest
//! checks first, it decides whether to drop the message, repeat an earlier answer, ask for a
//! cookie, or pass a [`Candidate`] to the endpoint. The layouts are those of `docs/spec/wire-0.md`.

mod cookie;
#[cfg(any(test, feature = "testing"))]
mod fuzz;
mod initiator;
pub mod message;
mod rate_limit;
mod replay;
mod responder;
mod response_cache;
#[cfg(test)]
mod tests;
mod token_bucket;

#[doc(hidden)]
#[cfg(any(test, feature = "testing"))]
pub use fuzz::{fuzz_message, fuzz_seeds};
pub use initiator::{Established, Initiator, Opening, Schedule};
pub use rate_limit::Source;
pub use responder::{
    AcceptError, Accepting, Arrival, Candidate, DropReason, Outcome, Permitted, Responder,
    ResponderConfig,
};
pub use token_bucket::TokenBucket;

use crate::crypto::CryptoError;
use core::fmt;
use message::MessageError;

/// Why a handshake message had no effect. The state is unchanged in every case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeError {
    /// The message is not one of the expected kind.
    Message(MessageError),
    /// The message answers a connection id that is not this handshake's.
    WrongReceiver,
    /// The message's first MAC is wrong: the sender does not know our public key, or the message
    /// was damaged.
    Mac,
    /// A cookie arrived on a path on which nothing was sent since the last cookie.
    UnexpectedCookie,
    /// A cryptographic operation on the message failed, or a message could not be produced.
    Crypto,
    /// Our own message would be longer than [`message::MAX_LEN`].
    TooLong,
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandshakeError::Message(error) => error.fmt(f),
            HandshakeError::WrongReceiver => f.write_str("answers another connection id"),
            HandshakeError::Mac => f.write_str("the first MAC does not hold"),
            HandshakeError::UnexpectedCookie => {
                f.write_str("cookie that answers no message of this handshake")
            }
            HandshakeError::Crypto => CryptoError.fmt(f),
            HandshakeError::TooLong => f.write_str("transport parameters too long for a handshake"),
        }
    }
}

impl std::error::Error for HandshakeError {}

impl From<MessageError> for HandshakeError {
    fn from(error: MessageError) -> Self {
        HandshakeError::Message(error)
    }
}

impl From<CryptoError> for HandshakeError {
    fn from(_: CryptoError) -> Self {
        HandshakeError::Crypto
    }
}

/// Compares two MACs in a time that does not depend on where they differ.
fn same_mac(a: &[u8; message::MAC_LEN], b: &[u8; message::MAC_LEN]) -> bool {
    a.iter().zip(b).fold(0, |difference, (x, y)| difference | (x ^ y)) == 0
}
