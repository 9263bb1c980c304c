use core::fmt;

/// Why a block could not be encoded or decoded.
///
/// Encoding errors are mistakes of the caller; every decoding error can be caused by a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A block needs at least one source symbol.
    #[error("a block needs at least one source symbol")]
    NoSources,
    /// Sources and repairs together exceed [`MAX_SYMBOLS`](super::MAX_SYMBOLS).
    #[error("{sources} sources and {repairs} repairs exceed the 255 symbols of a block")]
    TooManySymbols {
        /// Source symbols in the block.
        sources: usize,
        /// Repair symbols, counted from index 0.
        repairs: usize,
    },
    /// A source symbol is longer than the repair symbols.
    #[error("source {index} has {length} bytes, more than the {limit} of a repair")]
    SourceTooLong {
        /// Index of the source.
        index: u8,
        /// The bytes of the source symbol.
        length: usize,
        /// The bytes of a repair symbol.
        limit: usize,
    },
    /// A repair symbol is not of the block's symbol length.
    #[error("a repair has {length} bytes, not {expected}")]
    RepairLength {
        /// The repair's bytes.
        length: usize,
        /// The bytes it should have.
        expected: usize,
    },
    /// An index that no symbol of this block can have.
    #[error("a block of {sources} sources has no {role} symbol {index}")]
    IndexOutOfRange {
        /// Whether the symbol came as a source or as a repair.
        role: Role,
        /// The index.
        index: u8,
        /// Source symbols in the block.
        sources: usize,
    },
    /// A symbol was given twice.
    #[error("{role} symbol {index} was given twice")]
    Duplicate {
        /// Whether the symbol came as a source or as a repair.
        role: Role,
        /// The index.
        index: u8,
    },
    /// Fewer repairs than missing sources.
    #[error("{repairs} repairs cannot replace {missing} missing sources")]
    NotEnoughSymbols {
        /// Sources that are missing.
        missing: usize,
        /// Repairs that were given.
        repairs: usize,
    },
}

/// Part that a symbol plays in its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Carries application bytes as they are.
    Source,
    /// Carries a combination of all sources.
    Repair,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Source => "source",
            Role::Repair => "repair",
        })
    }
}
