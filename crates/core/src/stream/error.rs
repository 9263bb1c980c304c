//! Errors of streams, caused by the application or by the peer.

use core::fmt;

use crate::wire::{CloseCode, StreamId, WireError};

/// Why an operation of the application was refused. The connection is not affected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamError {
    /// The stream does not exist or is closed in both directions.
    Unknown,
    /// The peer currently allows no further stream. [`StreamEvent::Openable`] is reported when it
    /// does.
    ///
    /// [`StreamEvent::Openable`]: super::StreamEvent::Openable
    Limit,
    /// This direction of the stream has already ended. Its send side is finished or reset, or its
    /// receive side is read to the end or stopped.
    Ended,
    /// The peer reset the stream, with this code of its application.
    Reset(u64),
    /// The peer wants no more bytes, with this code of its application.
    Stopped(u64),
    /// The datagram queue is full. [`StreamEvent::DatagramSpace`] is reported when there is space.
    ///
    /// [`StreamEvent::DatagramSpace`]: super::StreamEvent::DatagramSpace
    Full,
    /// The datagram is longer than a symbol or the queue can hold.
    TooLong,
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StreamError::Unknown => f.write_str("no such stream"),
            StreamError::Limit => f.write_str("the peer allows no further stream"),
            StreamError::Ended => {
                f.write_str("the stream was already finished, reset or stopped on this side")
            }
            StreamError::Reset(code) => write!(f, "the peer reset the stream with code {code}"),
            StreamError::Stopped(code) => write!(f, "the peer stopped reading with code {code}"),
            StreamError::Full => f.write_str("the datagram queue is full"),
            StreamError::TooLong => f.write_str("the datagram is longer than a symbol"),
        }
    }
}

impl std::error::Error for StreamError {}

/// A protocol violation by the peer. The connection closes with [`close_code`](Self::close_code).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A symbol that does not parse.
    Encoding(WireError),
    /// Bytes beyond the credit of this stream.
    StreamCredit(StreamId),
    /// Bytes beyond the credit of the connection.
    ConnectionCredit,
    /// A stream beyond the number allowed.
    StreamLimit(StreamId),
    /// A frame for a stream of this side that is not open yet, or for a direction that the stream
    /// does not have.
    StreamState(StreamId),
    /// The end of this stream changed, or bytes lie beyond it.
    FinalSize(StreamId),
    /// More separate pieces than [`MAX_GAPS`](super::MAX_GAPS) would have to be kept.
    Gaps,
}

impl Violation {
    /// The code of the CLOSE frame.
    pub const fn close_code(&self) -> CloseCode {
        match self {
            Violation::Encoding(_) => CloseCode::FRAME_ENCODING,
            Violation::StreamCredit(_) | Violation::ConnectionCredit => CloseCode::FLOW_CONTROL,
            Violation::StreamLimit(_) => CloseCode::STREAM_LIMIT,
            Violation::StreamState(_) => CloseCode::STREAM_STATE,
            Violation::FinalSize(_) => CloseCode::FINAL_SIZE,
            Violation::Gaps => CloseCode::PROTOCOL_VIOLATION,
        }
    }
}

impl From<WireError> for Violation {
    fn from(error: WireError) -> Self {
        Violation::Encoding(error)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Encoding(error) => write!(f, "symbol does not parse: {error}"),
            Violation::StreamCredit(id) => write!(f, "stream {id} exceeds its credit"),
            Violation::ConnectionCredit => f.write_str("streams exceed the connection's credit"),
            Violation::StreamLimit(id) => write!(f, "stream {id} is beyond the limit"),
            Violation::StreamState(id) => write!(f, "stream {id} does not allow this"),
            Violation::FinalSize(id) => write!(f, "stream {id} has contradictory ends"),
            Violation::Gaps => f.write_str("streams arrive in too many pieces"),
        }
    }
}

impl std::error::Error for Violation {}
