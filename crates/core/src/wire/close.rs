//! Close codes and the frame that carries them.

use super::codec::{NoSpace, Reader, WireError, Writer};
use super::frame::kind;

/// Longest reason in a [`CloseFrame`], bytes.
pub const MAX_REASON: usize = 256;

/// Why a connection ends. Values from 256 belong to applications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CloseCode(pub u64);

impl CloseCode {
    /// Nothing went wrong.
    pub const NO_ERROR: CloseCode = CloseCode(0);
    /// The sender of the close had an internal failure.
    pub const INTERNAL: CloseCode = CloseCode(1);
    /// A frame that does not parse, or stands in the wrong place.
    pub const FRAME_ENCODING: CloseCode = CloseCode(2);
    /// More bytes than the credit allowed.
    pub const FLOW_CONTROL: CloseCode = CloseCode(3);
    /// A stream beyond the number allowed.
    pub const STREAM_LIMIT: CloseCode = CloseCode(4);
    /// A frame for a stream that cannot receive it.
    pub const STREAM_STATE: CloseCode = CloseCode(5);
    /// The end of a stream moved, or bytes lie beyond it.
    pub const FINAL_SIZE: CloseCode = CloseCode(6);
    /// Transport parameters that do not parse or are out of range.
    pub const TRANSPORT_PARAMETER: CloseCode = CloseCode(7);
    /// Any other breach of the specification.
    pub const PROTOCOL_VIOLATION: CloseCode = CloseCode(8);
    /// A symbol or repair beyond the credit, or one that contradicts another.
    pub const CODING: CloseCode = CloseCode(9);
    /// More paths than allowed.
    pub const PATH_LIMIT: CloseCode = CloseCode(10);
    /// A key was used as often as it may be.
    pub const KEY_LIMIT: CloseCode = CloseCode(11);
    /// A packet number that was left out was acknowledged (RFC 9000 §21.4).
    pub const OPTIMISTIC_ACK: CloseCode = CloseCode(14);
    /// The peer has said, in a handshake of its own, that it does not have the connection. Never sent.
    pub const UNKNOWN_TO_PEER: CloseCode = CloseCode(15);
    /// Connections with the peer took too much memory.
    pub const MEMORY: CloseCode = CloseCode(16);
    /// Nothing was heard for the idle timeout.
    pub const IDLE: CloseCode = CloseCode(12);
    /// No path was left.
    pub const ALL_PATHS_DOWN: CloseCode = CloseCode(13);
    /// The least code that applications may use.
    pub const FIRST_APPLICATION: CloseCode = CloseCode(256);
}

/// CLOSE: the sender has closed the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseFrame<'a> {
    /// The reason.
    pub code: CloseCode,
    /// Whether the application asked for it, rather than the transport.
    pub application: bool,
    /// Human-readable, at most [`MAX_REASON`] bytes.
    pub reason: &'a str,
}

impl<'a> CloseFrame<'a> {
    /// Writes the frame. A reason longer than [`MAX_REASON`] is cut at a character boundary.
    pub fn encode(&self, writer: &mut Writer<'_>) -> Result<(), NoSpace> {
        let reason = self.reason.as_bytes();
        let cut = self.reason.floor_char_boundary(MAX_REASON);
        let reason = reason.get(..cut).unwrap_or_default();
        writer.whole(|writer| {
            writer.u8(kind::CLOSE)?;
            writer.varint(self.code.0)?;
            writer.u8(u8::from(self.application))?;
            writer.prefixed(reason)
        })
    }

    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<CloseFrame<'a>, WireError> {
        let code = CloseCode(reader.varint()?);
        let application = match reader.varint()? {
            0 => false,
            1 => true,
            _ => return Err(WireError::Value("close origin")),
        };
        let reason = reader.prefixed()?;
        if reason.len() > MAX_REASON {
            return Err(WireError::Value("close reason length"));
        }
        let reason = core::str::from_utf8(reason).map_err(|_| WireError::Value("close reason"))?;
        Ok(CloseFrame { code, application, reason })
    }
}
