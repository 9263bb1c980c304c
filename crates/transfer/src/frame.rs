//! Frames that the two ends of a transfer exchange, and how they are written.
//!
//! Every frame is a type (1 byte), a length (4 bytes, big-endian) and this many bytes of payload.

use super::manifest::Entry;
use super::name::{Name, NameError};
use super::wire::Fields;
use anabranch::types::PeerText;

/// Version of the transfer protocol.
pub const VERSION: u8 = 0;
/// Bytes of a [`Preface`].
pub const PREFACE_LEN: usize = 8;
/// Bytes of a frame's [`Header`].
pub const HEADER_LEN: usize = 5;
/// Bytes of a file in one frame at most.
pub const MAX_DATA: usize = 1 << 16;
/// Bytes of any other payload at most.
pub const MAX_PAYLOAD: usize = 1 << 13;
/// Fetches and checks that may be unanswered at a time.
pub const MAX_FETCHES: usize = 64;
/// Longest text of a [`Frame::Failed`], bytes.
pub const MAX_TEXT: usize = 1024;

const MAGIC: [u8; 4] = *b"abtf";
const DATA: u8 = 0x08;

/// Role of an end of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Has files.
    Offers,
    /// Wants files.
    Takes,
}

impl Role {
    /// The opposite end's role.
    pub fn opposite(self) -> Role {
        match self {
            Role::Offers => Role::Takes,
            Role::Takes => Role::Offers,
        }
    }
}

/// The first bytes in either direction; their layout is the same in all versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preface {
    /// Role of the sender.
    pub role: Role,
}

impl Preface {
    /// The preface as bytes.
    pub fn encode(self) -> [u8; PREFACE_LEN] {
        let [a, b, c, d] = MAGIC;
        [a, b, c, d, VERSION, self.role as u8, 0, 0]
    }

    /// Reads a preface.
    ///
    /// # Errors
    /// [`FrameError::Magic`] if it is something else, [`FrameError::Version`] if it is of another
    /// version, [`FrameError::Value`] if it names no role.
    pub fn decode(bytes: [u8; PREFACE_LEN]) -> Result<Self, FrameError> {
        let [a, b, c, d, version, role, reserved @ ..] = bytes;
        if [a, b, c, d] != MAGIC {
            return Err(FrameError::Magic);
        }
        if version != VERSION {
            return Err(FrameError::Version(version));
        }
        match (role, reserved) {
            (0, [0, 0]) => Ok(Preface { role: Role::Offers }),
            (1, [0, 0]) => Ok(Preface { role: Role::Takes }),
            _ => Err(FrameError::Value),
        }
    }
}

/// Error in the bytes that the peer sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The bytes are no preface of a transfer.
    #[error("the peer does not speak the transfer protocol")]
    Magic,
    /// The peer speaks another version.
    #[error("the peer speaks version {0} of the transfer protocol, this side {VERSION}: {advice}",
        advice = if *.0 > VERSION { "update this side" } else { "update the peer" })]
    Version(u8),
    /// A frame of this type does not exist.
    #[error("frame type {0} does not exist")]
    Type(u8),
    /// A frame's length does not fit its type.
    #[error("a frame has a wrong length")]
    Length,
    /// A field has a value that it cannot have.
    #[error("a field has a wrong value")]
    Value,
    /// A text is not UTF-8.
    #[error("a text is not UTF-8")]
    Text,
    /// A name is not acceptable.
    #[error("the name of a file is refused: {0}")]
    Name(NameError),
    /// Where a link leads is not acceptable.
    #[error("the target of a symbolic link is refused: {0}")]
    Target(NameError),
}

/// Header on a stream, which tells what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// This many bytes of the current file, at least one.
    Data(usize),
    /// A frame of this type with this many bytes of payload.
    Frame(u8, usize),
}

impl Header {
    /// Reads a header.
    ///
    /// # Errors
    /// If the length is more than a frame may have, or that of an empty data frame.
    pub fn decode(bytes: [u8; HEADER_LEN]) -> Result<Self, FrameError> {
        let [kind, a, b, c, d] = bytes;
        let len = u32::from_be_bytes([a, b, c, d]) as usize;
        match kind {
            DATA if (1..=MAX_DATA).contains(&len) => Ok(Header::Data(len)),
            DATA => Err(FrameError::Length),
            _ if len <= MAX_PAYLOAD => Ok(Header::Frame(kind, len)),
            _ => Err(FrameError::Length),
        }
    }

    /// The header of `len` bytes of a file.
    pub fn of_data(len: usize) -> [u8; HEADER_LEN] {
        let [a, b, c, d] = u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes();
        [DATA, a, b, c, d]
    }
}

/// A frame of any type but that with bytes of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Taker: this entry, or all below it, is wanted.
    Want(Name),
    /// Taker: end of the list of wanted entries. If no [`Frame::Want`] came before, all entries are
    /// wanted.
    WantEnd,
    /// Offerer: the next entry.
    Entry(Entry),
    /// Offerer: no more entries.
    OfferEnd {
        /// Number of entries.
        entries: u32,
    },
    /// Taker: send this file from `offset` on.
    Fetch {
        /// The entry's index.
        index: u32,
        /// Bytes that the taker has.
        offset: u64,
    },
    /// Taker: what is the SHA-256 of this file's bytes before `offset`?
    Check {
        /// The entry's index.
        index: u32,
        /// Bytes from the start, 1 to the file's size.
        offset: u64,
    },
    /// Offerer: the answer to a [`Frame::Check`].
    Sum {
        /// The entry's index.
        index: u32,
        /// Offset of the [`Frame::Check`].
        offset: u64,
        /// SHA-256 of the bytes before `offset`.
        sum: [u8; 32],
    },
    /// Offerer: the bytes that follow are this file's, from `offset` on.
    File {
        /// The entry's index.
        index: u32,
        /// Offset of the [`Frame::Fetch`].
        offset: u64,
    },
    /// Offerer: the file has ended.
    FileEnd {
        /// The entry's index.
        index: u32,
        /// Length of the file, bytes.
        size: u64,
        /// SHA-256 of all of them.
        sum: [u8; 32],
    },
    /// Taker: this many bytes of a file will survive a crash of the taker.
    Durable {
        /// The entry's index.
        index: u32,
        /// Bytes from the start.
        offset: u64,
    },
    /// Taker: the file is complete, checked and in its place, and will survive a crash of the taker.
    Stored {
        /// The entry's index.
        index: u32,
    },
    /// Taker: everything that was wanted has arrived.
    Done,
    /// Either: the transfer has failed. The last frame of its direction.
    Failed {
        /// Why, for programs.
        code: Code,
        /// Why, for people; at most [`MAX_TEXT`] bytes.
        text: PeerText,
    },
    /// Either: a sign of life, as while a long file is read again.
    Alive,
    /// Taker: a person is being asked whether to accept the offer.
    Asking,
}

/// Why a transfer failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Code {
    /// The side that is sent this code broke the protocol.
    Protocol,
    /// A file that was offered cannot be read.
    Unreadable,
    /// A file changed after it was offered.
    SourceChanged,
    /// Nothing of this name is offered.
    NotFound,
    /// The taker cannot store more: disk full, no permission.
    Storage,
    /// The taker has another file of this name.
    Exists,
    /// The taker's stored data was changed by somebody else.
    TargetChanged,
    /// The data that arrived has another SHA-256 than what was sent.
    Checksum,
    /// The taker was promised another offer, or is busy with one.
    Refused,
    /// A code of a later version.
    Other(u16),
}

const CODES: [(Code, u16); 9] = [
    (Code::Protocol, 1),
    (Code::Unreadable, 2),
    (Code::SourceChanged, 3),
    (Code::NotFound, 4),
    (Code::Storage, 5),
    (Code::Exists, 6),
    (Code::TargetChanged, 7),
    (Code::Checksum, 8),
    (Code::Refused, 9),
];

impl Code {
    /// Number of the code on the wire.
    pub fn number(self) -> u16 {
        match self {
            Code::Other(number) => number,
            code => CODES.iter().find(|(known, _)| *known == code).map_or(0, |(_, n)| *n),
        }
    }

    /// The code of this number.
    pub fn from_number(number: u16) -> Self {
        let known = CODES.iter().find(|(_, known)| *known == number);
        known.map_or(Code::Other(number), |(code, _)| *code)
    }
}

impl Frame {
    /// The frame's name in the specification.
    pub fn name(&self) -> &'static str {
        match self {
            Frame::Want(_) => "WANT",
            Frame::WantEnd => "WANT_END",
            Frame::Entry(_) => "ENTRY",
            Frame::OfferEnd { .. } => "OFFER_END",
            Frame::Fetch { .. } => "FETCH",
            Frame::Check { .. } => "CHECK",
            Frame::Sum { .. } => "SUM",
            Frame::File { .. } => "FILE",
            Frame::FileEnd { .. } => "FILE_END",
            Frame::Durable { .. } => "DURABLE",
            Frame::Stored { .. } => "STORED",
            Frame::Done => "DONE",
            Frame::Failed { .. } => "FAILED",
            Frame::Alive => "ALIVE",
            Frame::Asking => "ASKING",
        }
    }

    fn kind(&self) -> u8 {
        match self {
            Frame::Want(_) => 0x01,
            Frame::WantEnd => 0x02,
            Frame::Entry(_) => 0x03,
            Frame::OfferEnd { .. } => 0x04,
            Frame::Fetch { .. } => 0x05,
            Frame::File { .. } => 0x06,
            Frame::Check { .. } => 0x07,
            Frame::FileEnd { .. } => 0x09,
            Frame::Durable { .. } => 0x0a,
            Frame::Stored { .. } => 0x0b,
            Frame::Done => 0x0c,
            Frame::Failed { .. } => 0x0d,
            Frame::Alive => 0x0e,
            Frame::Sum { .. } => 0x0f,
            Frame::Asking => 0x10,
        }
    }

    /// Appends the frame to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[self.kind(), 0, 0, 0, 0]);
        self.encode_payload(out);
        let len = u32::try_from(out.len() - start - HEADER_LEN).unwrap_or(u32::MAX);
        if let Some(field) = out.get_mut(start + 1..start + HEADER_LEN) {
            field.copy_from_slice(&len.to_be_bytes());
        }
    }

    fn encode_payload(&self, out: &mut Vec<u8>) {
        match self {
            Frame::Want(name) => out.extend_from_slice(name.as_str().as_bytes()),
            Frame::WantEnd | Frame::Done | Frame::Alive | Frame::Asking => {}
            Frame::Entry(entry) => entry.encode(out),
            Frame::OfferEnd { entries: number } | Frame::Stored { index: number } => {
                out.extend_from_slice(&number.to_be_bytes());
            }
            Frame::Fetch { index, offset }
            | Frame::Check { index, offset }
            | Frame::File { index, offset }
            | Frame::Durable { index, offset } => {
                out.extend_from_slice(&index.to_be_bytes());
                out.extend_from_slice(&offset.to_be_bytes());
            }
            Frame::Sum { index, offset: count, sum }
            | Frame::FileEnd { index, size: count, sum } => {
                out.extend_from_slice(&index.to_be_bytes());
                out.extend_from_slice(&count.to_be_bytes());
                out.extend_from_slice(sum);
            }
            Frame::Failed { code, text } => {
                out.extend_from_slice(&code.number().to_be_bytes());
                out.extend_from_slice(shortened(text.as_untrusted()).as_bytes());
            }
        }
    }

    /// Reads the payload of a frame of type `kind`.
    ///
    /// # Errors
    /// [`FrameError`], if there is no such type, or the payload is not exactly that of one such
    /// frame.
    pub fn decode(kind: u8, payload: &[u8]) -> Result<Self, FrameError> {
        let mut fields = Fields(payload);
        let frame = match kind {
            0x01 => Frame::Want(Name::new(fields.text()?).map_err(FrameError::Name)?),
            0x02 => Frame::WantEnd,
            0x03 => Frame::Entry(Entry::decode(&mut fields)?),
            0x04 => Frame::OfferEnd { entries: fields.u32()? },
            0x05 => Frame::Fetch { index: fields.u32()?, offset: fields.u64()? },
            0x06 => Frame::File { index: fields.u32()?, offset: fields.u64()? },
            0x07 => Frame::Check { index: fields.u32()?, offset: fields.u64()? },
            0x09 => {
                Frame::FileEnd { index: fields.u32()?, size: fields.u64()?, sum: fields.array()? }
            }
            0x0a => Frame::Durable { index: fields.u32()?, offset: fields.u64()? },
            0x0b => Frame::Stored { index: fields.u32()? },
            0x0c => Frame::Done,
            0x0d => {
                let code = Code::from_number(fields.u16()?);
                let text = fields.text()?;
                if text.len() > MAX_TEXT {
                    return Err(FrameError::Length);
                }
                Frame::Failed { code, text: text.into() }
            }
            0x0e => Frame::Alive,
            0x0f => {
                Frame::Sum { index: fields.u32()?, offset: fields.u64()?, sum: fields.array()? }
            }
            0x10 => Frame::Asking,
            _ => return Err(FrameError::Type(kind)),
        };
        fields.end()?;
        Ok(frame)
    }
}

/// The first [`MAX_TEXT`] bytes of `text`, fewer if a character would be cut.
fn shortened(text: &str) -> &str {
    let end = (0..=MAX_TEXT.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}
