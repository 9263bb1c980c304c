//! One error type for each operation on a stream. Each converts into an [`io::Error`] that holds
//! it.

use crate::error::ConnectionError;
use anabranch_core::stream::StreamError;
use std::io;

/// Bytes could not be written, or the stream not be finished.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The peer does not want more bytes; the code is its application's.
    #[error("the peer stopped reading with code {0}")]
    Stopped(u64),
    /// This side has finished or reset the stream.
    #[error("the stream was already finished, reset or stopped on this side")]
    Closed,
    /// The connection is over.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

/// Bytes could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The peer has abandoned the stream; the code is its application's.
    #[error("the peer reset the stream with code {0}")]
    Reset(u64),
    /// This side has stopped the stream.
    #[error("the stream was already finished, reset or stopped on this side")]
    Closed,
    /// The connection is over.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

/// A buffer could not be filled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadExactError {
    /// The stream ended after this many bytes.
    #[error("the stream ended {0} bytes into the buffer")]
    FinishedEarly(usize),
    /// Bytes could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// A stream could not be read to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadToEndError {
    /// The stream is longer than the limit.
    #[error("the stream is longer than {0} bytes")]
    TooLong(usize),
    /// Bytes could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl WriteError {
    /// `stopped` is the code with which the peer has stopped the stream; the core may have forgotten it with the
    /// stream.
    pub(super) fn new(error: StreamError, stopped: Option<u64>) -> Self {
        match (error, stopped) {
            (StreamError::Stopped(code), _) | (_, Some(code)) => WriteError::Stopped(code),
            _ => WriteError::Closed,
        }
    }
}

impl ReadError {
    /// `reset` is the code with which the peer has reset the stream; the core may have forgotten it with the stream.
    pub(super) fn new(error: StreamError, reset: Option<u64>) -> Self {
        match (error, reset) {
            (StreamError::Reset(code), _) | (_, Some(code)) => ReadError::Reset(code),
            _ => ReadError::Closed,
        }
    }
}

impl From<WriteError> for io::Error {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Connection(error) => error.into(),
            other => io::Error::new(io::ErrorKind::BrokenPipe, other),
        }
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Connection(error) => error.into(),
            ReadError::Reset(_) => io::Error::new(io::ErrorKind::ConnectionReset, error),
            ReadError::Closed => io::Error::new(io::ErrorKind::BrokenPipe, error),
        }
    }
}

impl From<ReadExactError> for io::Error {
    fn from(error: ReadExactError) -> Self {
        match error {
            ReadExactError::Read(error) => error.into(),
            early => io::Error::new(io::ErrorKind::UnexpectedEof, early),
        }
    }
}

impl From<ReadToEndError> for io::Error {
    fn from(error: ReadToEndError) -> Self {
        match error {
            ReadToEndError::Read(error) => error.into(),
            long => io::Error::new(io::ErrorKind::InvalidData, long),
        }
    }
}
