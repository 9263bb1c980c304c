//! Stream identifiers, and the two roles of endpoints that determine them.

use core::fmt;

/// Which side of a connection an endpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The side that sends the first handshake message.
    Initiator,
    /// The side that answers the first handshake message.
    Responder,
}

impl Role {
    /// Role of the other side.
    pub const fn peer(self) -> Role {
        match self {
            Role::Initiator => Role::Responder,
            Role::Responder => Role::Initiator,
        }
    }
}

/// Which sides may send on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Both sides may send.
    Bidirectional,
    /// Only the side that opened the stream may send.
    Unidirectional,
}

/// Identifies a stream of one connection, `0..2^62`.
///
/// Bit 0 is the role of the opener (0 initiator, 1 responder), and bit 1 is the direction (0
/// bidirectional, 1 unidirectional). The other bits are an ordinal, which increases by one with
/// each stream of the same opener and direction. This is the layout of RFC 9000 §2.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

impl StreamId {
    /// The id of the stream with the ordinal `ordinal` (below 2^60) among those of this direction
    /// that `opener` opens.
    pub const fn new(opener: Role, direction: Direction, ordinal: u64) -> StreamId {
        StreamId(ordinal << 2 | (direction as u64) << 1 | opener as u64)
    }

    /// The side that opened the stream.
    pub const fn opener(self) -> Role {
        if self.0 & 1 == 0 { Role::Initiator } else { Role::Responder }
    }

    /// Which sides may send on the stream.
    pub const fn direction(self) -> Direction {
        if self.0 & 2 == 0 { Direction::Bidirectional } else { Direction::Unidirectional }
    }

    /// Whether the side with this role may send on the stream.
    pub const fn carries_from(self, role: Role) -> bool {
        self.0 & 2 == 0 || self.0 & 1 == role as u64
    }

    /// The index of the stream among those of the same opener and direction, from 0.
    pub const fn ordinal(self) -> u64 {
        self.0 >> 2
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
