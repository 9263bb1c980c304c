//! Close codes and the frame that carries them.

use super::codec::{NoSpace, Reader, WireError, Writer};
use super::frame::kind;

/// Longest reason in a [`CloseFrame`], bytes.
pub const MAX_REASON: usize = 256;

/// Why a connection ends. Values from 256 belong to applications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CloseCode(pub u64);

impl CloseCode {
    /// The connection ended without an error.
    pub const NO_ERROR: CloseCode = CloseCode(0);
    /// The sender of the frame had an internal failure.
    pub const INTERNAL: CloseCode = CloseCode(1);
    /// A frame does not parse or is not allowed in its place.
    pub const FRAME_ENCODING: CloseCode = CloseCode(2);
    /// The peer sent more bytes than the credit allowed.
    pub const FLOW_CONTROL: CloseCode = CloseCode(3);
    /// The peer opened more streams than allowed.
    pub const STREAM_LIMIT: CloseCode = CloseCode(4);
    /// A frame does not fit the state or the direction of its stream.
    pub const STREAM_STATE: CloseCode = CloseCode(5);
    /// The end of a stream changed, or bytes lie beyond it.
    pub const FINAL_SIZE: CloseCode = CloseCode(6);
    /// Transport parameters do not parse or are out of range.
    pub const TRANSPORT_PARAMETER: CloseCode = CloseCode(7);
    /// Any other violation of the specification.
    pub const PROTOCOL_VIOLATION: CloseCode = CloseCode(8);
    /// A symbol or repair exceeds the credit or contradicts another one.
    pub const CODING: CloseCode = CloseCode(9);
    /// The peer opened more paths than allowed.
    pub const PATH_LIMIT: CloseCode = CloseCode(10);
    /// A key reached its usage limit.
    pub const KEY_LIMIT: CloseCode = CloseCode(11);
    /// The peer acknowledged a skipped packet number (RFC 9000 §21.4).
    pub const OPTIMISTIC_ACK: CloseCode = CloseCode(14);
    /// The peer has shown by its own new handshake that it no longer has the connection. This code
    /// is never sent.
    pub const UNKNOWN_TO_PEER: CloseCode = CloseCode(15);
    /// Connections with the peer used too much memory.
    pub const MEMORY: CloseCode = CloseCode(16);
    /// Nothing was received for the idle timeout.
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
    /// Whether the application closed the connection, rather than the transport.
    pub application: bool,
    /// Human-readable explanation, at most [`MAX_REASON`] bytes.
    pub reason: &'a str,
}

impl<'a> CloseFrame<'a> {
    /// Writes the frame. A reason longer than [`MAX_REASON`] is truncated at a character boundary.
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
