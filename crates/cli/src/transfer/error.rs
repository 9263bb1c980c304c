//! The reasons why a transfer ends early.

use std::path::Path;

use anabranch::types::PeerText;
use anabranch::{CloseCode, ConnectError, ConnectionError, ReadError, ReadExactError, WriteError};
use anabranch_transfer::{Code, FrameError, ManifestError, Name};
use thiserror::Error;
use tokio::task::JoinError;

use crate::failure::Failure;

/// Close code used while another transfer has the same ticket, or the peer has as many transfers as it may.
pub(super) const IN_USE: CloseCode = CloseCode(256);

/// Errors of a transfer, sorted by who can do something about them.
#[derive(Clone, Debug, Error)]
pub(super) enum TransferError {
    /// The connection broke or was never made: trying again may help.
    #[error("{0}")]
    Lost(String),
    /// A failure on this side, as of a file or the disk. The peer is told the code.
    #[error("{1}")]
    Local(Code, String),
    /// A failure on this side with one file. The peer is not told where the file is.
    #[error("{here}")]
    File {
        /// The code that the peer is told.
        code: Code,
        /// The text with the file's whole path.
        here: String,
        /// The text with the file's name in the offer.
        there: String,
    },
    /// The peer said why it cannot go on.
    #[error("the other side says: {1}")]
    Peer(Code, PeerText),
    /// The peer said something that it must not.
    #[error("the other side broke the protocol: {0}")]
    Protocol(String),
    /// Somebody pressed Ctrl-C here; whether the same command can go on.
    #[error("interrupted{}", if *.0 { "; the same command again continues where this one stopped" } else { "" })]
    Interrupted(bool),
}

impl TransferError {
    pub(super) fn lost(why: impl std::fmt::Display) -> Self {
        TransferError::Lost(why.to_string())
    }

    pub(super) fn protocol(why: impl std::fmt::Display) -> Self {
        TransferError::Protocol(why.to_string())
    }

    /// A failure with the file `name` below `root`; `text` makes a sentence of what the file is called.
    pub(super) fn about(
        code: Code,
        root: &Path,
        name: &Name,
        text: impl Fn(&str) -> String,
    ) -> Self {
        let here = text(&format!("{}/{name}", root.display()));
        TransferError::File { code, here, there: text(&name.to_string()) }
    }

    /// Code and text for the peer; `None` if it knows already, or cannot be told.
    pub(super) fn for_peer(&self) -> Option<(Code, String)> {
        match self {
            TransferError::Local(code, text) => Some((*code, text.clone())),
            TransferError::File { code, there, .. } => Some((*code, there.clone())),
            TransferError::Protocol(text) => Some((Code::Protocol, text.clone())),
            TransferError::Lost(_) | TransferError::Peer(..) | TransferError::Interrupted(_) => {
                None
            }
        }
    }
}

impl From<ConnectionError> for TransferError {
    fn from(error: ConnectionError) -> Self {
        match &error {
            ConnectionError::Closed(reason) if reason.by_peer && reason.reason.is_empty() => {
                TransferError::lost("the other side ended before the transfer was complete")
            }
            ConnectionError::Closed(reason) if reason.by_peer && reason.code == IN_USE => {
                TransferError::Peer(Code::Refused, reason.reason.clone())
            }
            ConnectionError::Closed(reason) if reason.code == CloseCode::UNKNOWN_TO_PEER => {
                TransferError::lost("the other side has restarted")
            }
            ConnectionError::Closed(reason) if !reason.by_peer => {
                TransferError::lost("the connection was lost: no path carries anything any more")
            }
            _ => TransferError::lost(error),
        }
    }
}

impl From<ConnectError> for TransferError {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::NoAnswer => TransferError::lost(
                "nobody answered on any path; check that the other side runs, that its address, UDP port \
                 and keys are right, that it allows this key or has not served this ticket before, \
                 and that no clock was set back",
            ),
            ConnectError::Connection(error) => error.into(),
            error => TransferError::lost(error),
        }
    }
}

impl From<JoinError> for TransferError {
    fn from(_: JoinError) -> Self {
        TransferError::lost("an internal task failed")
    }
}

impl From<WriteError> for TransferError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Connection(error) => error.into(),
            error => TransferError::lost(error),
        }
    }
}

impl From<ReadExactError> for TransferError {
    fn from(error: ReadExactError) -> Self {
        match error {
            ReadExactError::Read(ReadError::Connection(error)) => error.into(),
            ReadExactError::FinishedEarly(_) => {
                TransferError::lost("the other side ended before the transfer was complete")
            }
            error => TransferError::lost(error),
        }
    }
}

impl From<ReadError> for TransferError {
    fn from(error: ReadError) -> Self {
        ReadExactError::from(error).into()
    }
}

impl From<FrameError> for TransferError {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::Version(_) | FrameError::Magic => {
                TransferError::Local(Code::Protocol, error.to_string())
            }
            error => TransferError::protocol(error),
        }
    }
}

impl From<ManifestError> for TransferError {
    fn from(error: ManifestError) -> Self {
        TransferError::protocol(error)
    }
}

impl From<TransferError> for Failure {
    fn from(error: TransferError) -> Self {
        match error {
            TransferError::Lost(_) => Failure::unreached(error),
            TransferError::Interrupted(_) => Failure::interrupted(error),
            error => Failure::failed(error),
        }
    }
}
