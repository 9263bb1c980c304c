//! The wire format, version 0: stateless conversion between bytes and typed values.
//!
//! The specification is `docs/spec/wire-0.md`. Decoding borrows from the packet and allocates
//! nothing. Any bytes from a peer either decode or return a [`WireError`], and decoded values are
//! within their range. Encoding writes a frame into the caller's buffer completely or not at all.

pub mod close;
pub mod codec;
pub mod control;
pub mod frame;
#[cfg(any(test, feature = "testing"))]
pub mod fuzzing;
pub mod header;
pub mod id;
pub mod reports;
pub mod symbol;
pub mod transport_parameters;

pub use close::{CloseCode, CloseFrame};
pub use codec::{NoSpace, Reader, WireError, Writer, varint_len};
pub use control::{ControlFrame, PathUse};
pub use frame::{Frame, Frames};
pub use header::{ConnectionId, DataHeader, HEADER_LEN, PacketKind, expand_number};
pub use id::{Direction, Role, StreamId};
pub use reports::{AckFrame, AckHeader, AckRanges, RankEntries, RankEntry, RankFrame};
pub use symbol::{
    BYTES_PER_FRAME, MAX_REPAIR_KEY, REPAIR_OVERHEAD, RepairFrame, SYMBOL_OVERHEAD, SourceFrame,
    SymbolFrame, SymbolFrames, SymbolWriter,
};
pub use transport_parameters::{MAX_CODE_NAMES, TransportParameters};

#[cfg(test)]
mod tests;
