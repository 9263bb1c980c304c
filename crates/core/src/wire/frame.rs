//! The frames of a data packet, and the iterator that reads them.

use anabranch_policy::view::SymbolSpace;

use super::close::CloseFrame;
use super::codec::{NoSpace, Reader, WireError, Writer};
use super::control::ControlFrame;
use super::reports::{AckFrame, RankFrame};
use super::symbol::{RepairFrame, SourceFrame};

/// Frame types (`docs/spec/wire-0.md`, Frames).
pub(super) mod kind {
    use anabranch_policy::view::SymbolSpace;

    pub(crate) const PADDING: u8 = 0x00;
    pub(crate) const PING: u8 = 0x01;
    pub(crate) const ACK: u8 = 0x02;
    pub(crate) const ACK_FLOOR: u8 = 0x03;
    pub(crate) const RANK: u8 = 0x04;
    pub(crate) const SYMBOL: u8 = 0x05;
    pub(crate) const SYMBOL_TO_END: u8 = 0x06;
    pub(crate) const REPAIR: u8 = 0x07;
    pub(crate) const REPAIR_TO_END: u8 = 0x08;
    pub(crate) const ABANDON: u8 = 0x09;
    pub(crate) const MAX_DATA: u8 = 0x0a;
    pub(crate) const MAX_STREAM_DATA: u8 = 0x0b;
    pub(crate) const MAX_SYMBOLS: u8 = 0x0c;
    pub(crate) const MAX_STREAMS: u8 = 0x0d;
    pub(crate) const PATH_CHALLENGE: u8 = 0x0e;
    pub(crate) const PATH_RESPONSE: u8 = 0x0f;
    pub(crate) const PATH_STATUS: u8 = 0x10;
    pub(crate) const PATH_ABANDON: u8 = 0x11;
    pub(crate) const RESET_STREAM: u8 = 0x12;
    pub(crate) const STOP_SENDING: u8 = 0x13;
    pub(crate) const CLOSE: u8 = 0x14;
    pub(crate) const ADD_ADDRESS: u8 = 0x15;
    pub(crate) const REKEY: u8 = 0x16;
    pub(crate) const NEW_CONNECTION_ID: u8 = 0x17;
    pub(crate) const LAST_SYMBOL: u8 = 0x18;
    pub(crate) const LAST_SYMBOL_TO_END: u8 = 0x19;
    pub(crate) const STREAM: u8 = 0x20;
    pub(crate) const STREAM_FINAL: u8 = 0x21;
    pub(crate) const DATAGRAM: u8 = 0x22;

    /// Bit that is set in the type of a frame about live symbols.
    const LIVE: u8 = 0x40;

    /// The type of a frame that is about symbols of `space`.
    #[inline]
    pub(crate) const fn about(kind: u8, space: SymbolSpace) -> u8 {
        match space {
            SymbolSpace::Main => kind,
            SymbolSpace::Live => kind | LIVE,
        }
    }

    /// The type without the bit for live symbols, and the space that the bit selects. The result is
    /// meaningless for frames that are not about symbols.
    pub(crate) const fn split(kind: u8) -> (u8, SymbolSpace) {
        match kind & LIVE {
            0 => (kind, SymbolSpace::Main),
            _ => (kind ^ LIVE, SymbolSpace::Live),
        }
    }
}

/// One frame of a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A run of PADDING bytes.
    Padding {
        /// Bytes in the run, at least 1.
        length: usize,
    },
    /// Packets received on a path.
    Ack(AckFrame<'a>),
    /// Number of symbols that the receiver's decoder still needs, by block.
    Rank(RankFrame<'a>),
    /// A source symbol.
    Symbol(SourceFrame<'a>),
    /// A repair symbol.
    Repair(RepairFrame<'a>),
    /// A small control frame, which is sent again if it is lost.
    Control(ControlFrame),
    /// The end of the connection.
    Close(CloseFrame<'a>),
}

impl Frame<'_> {
    /// The names of the frames, by [`ordinal`](Self::ordinal). Frames that also exist in QUIC have
    /// their QUIC names.
    pub const NAMES: [&'static str; 22] = [
        "padding",
        "ping",
        "ack",
        "ack_floor",
        "rank",
        "symbol",
        "repair",
        "abandon",
        "max_data",
        "max_stream_data",
        "max_symbols",
        "max_streams",
        "path_challenge",
        "path_response",
        "path_status",
        "path_abandon",
        "reset_stream",
        "stop_sending",
        "connection_close",
        "add_address",
        "rekey",
        "new_connection_id",
    ];

    /// Index of the frame's name in [`NAMES`](Self::NAMES).
    pub const fn ordinal(&self) -> usize {
        match self {
            Frame::Padding { .. } => 0,
            Frame::Ack(_) => 2,
            Frame::Rank(_) => 4,
            Frame::Symbol(_) => 5,
            Frame::Repair(_) => 6,
            Frame::Close(_) => 18,
            Frame::Control(control) => match control {
                ControlFrame::Ping => 1,
                ControlFrame::AckFloor { .. } => 3,
                ControlFrame::Abandon { .. } => 7,
                ControlFrame::MaxData { .. } => 8,
                ControlFrame::MaxStreamData { .. } => 9,
                ControlFrame::MaxSymbols { .. } => 10,
                ControlFrame::MaxStreams { .. } => 11,
                ControlFrame::PathChallenge { .. } => 12,
                ControlFrame::PathResponse { .. } => 13,
                ControlFrame::PathStatus { .. } => 14,
                ControlFrame::PathAbandon { .. } => 15,
                ControlFrame::ResetStream { .. } => 16,
                ControlFrame::StopSending { .. } => 17,
                ControlFrame::AddAddress { .. } => 19,
                ControlFrame::Rekey { .. } => 20,
                ControlFrame::NewConnectionId { .. } => 21,
            },
        }
    }

    /// Whether a packet with this frame is ack-eliciting.
    pub const fn is_ack_eliciting(&self) -> bool {
        match self {
            Frame::Padding { .. } | Frame::Ack(_) | Frame::Rank(_) | Frame::Close(_) => false,
            Frame::Symbol(_) | Frame::Repair(_) | Frame::Control(_) => true,
        }
    }

    /// Writes the frame. Symbols and repairs get an explicit length.
    pub fn encode(&self, writer: &mut Writer<'_>) -> Result<(), NoSpace> {
        match self {
            Frame::Padding { length } => writer.reserve(*length).map(|bytes| bytes.fill(0)),
            Frame::Ack(frame) => frame.encode(writer),
            Frame::Rank(frame) => frame.encode(writer),
            Frame::Symbol(frame) => frame.encode(writer),
            Frame::Repair(frame) => frame.encode(writer),
            Frame::Control(frame) => frame.encode(writer),
            Frame::Close(frame) => frame.encode(writer),
        }
    }
}

impl From<ControlFrame> for Frame<'_> {
    fn from(frame: ControlFrame) -> Self {
        Frame::Control(frame)
    }
}

/// Reads the frames of a decrypted packet payload in order. The iterator ends after an error,
/// because the bytes after a frame that does not parse have no meaning.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    reader: Reader<'a>,
}

impl<'a> Frames<'a> {
    /// Creates an iterator over the frames of `payload`, which is the packet without header and
    /// tag.
    pub const fn new(payload: &'a [u8]) -> Self {
        Frames { reader: Reader::new(payload) }
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, WireError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let frame = decode(&mut self.reader);
        if frame.is_err() {
            self.reader = Reader::new(&[]);
        }
        Some(frame)
    }
}

/// Skips a run of zero bytes, the first of which has been read. Returns its length including this
/// byte.
pub(super) fn skip_padding(reader: &mut Reader<'_>) -> usize {
    let rest = reader.peek();
    let zeros = rest.iter().position(|byte| *byte != 0).unwrap_or(rest.len());
    match reader.bytes(zeros) {
        Ok(run) => run.len() + 1,
        Err(_) => 1,
    }
}

#[inline]
fn decode<'a>(reader: &mut Reader<'a>) -> Result<Frame<'a>, WireError> {
    match reader.u8()? {
        // Most packets start with this frame.
        kind::SYMBOL_TO_END => {
            SourceFrame::decode(reader, SymbolSpace::Main, true).map(Frame::Symbol)
        }
        kind => decode_other(kind, reader),
    }
}

fn decode_other<'a>(kind: u8, reader: &mut Reader<'a>) -> Result<Frame<'a>, WireError> {
    let frame = match kind {
        kind::PADDING => Frame::Padding { length: skip_padding(reader) },
        kind::ACK => Frame::Ack(AckFrame::decode(reader)?),
        kind::LAST_SYMBOL => Frame::Symbol(SourceFrame::decode_last(reader, false)?),
        kind::LAST_SYMBOL_TO_END => Frame::Symbol(SourceFrame::decode_last(reader, true)?),
        kind::CLOSE => Frame::Close(CloseFrame::decode(reader)?),
        kind => decode_of_space(kind, reader)?,
    };
    Ok(frame)
}

/// Reads a frame about symbols of either space, or a control frame.
fn decode_of_space<'a>(kind: u8, reader: &mut Reader<'a>) -> Result<Frame<'a>, WireError> {
    let (plain, space) = kind::split(kind);
    let frame = match plain {
        kind::RANK => Frame::Rank(RankFrame::decode(reader, space)?),
        kind::SYMBOL => Frame::Symbol(SourceFrame::decode(reader, space, false)?),
        kind::SYMBOL_TO_END => Frame::Symbol(SourceFrame::decode(reader, space, true)?),
        kind::REPAIR => Frame::Repair(RepairFrame::decode(reader, space, false)?),
        kind::REPAIR_TO_END => Frame::Repair(RepairFrame::decode(reader, space, true)?),
        _ => Frame::Control(ControlFrame::decode(kind, reader)?),
    };
    Ok(frame)
}
