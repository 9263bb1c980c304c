//! How coding blocks and source symbols are numbered.

/// Number of a coding block. Within a symbol space, numbers rise and are never reused; those of
/// [`SymbolSpace::Live`] come after all of [`SymbolSpace::Main`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub u64);

/// Number of a source symbol within a connection. Within a symbol space, numbers rise by one per
/// symbol and are never reused; those of [`SymbolSpace::Live`] come after all of
/// [`SymbolSpace::Main`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolId(pub u64);

/// A numbering of source symbols with its own erasure code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SymbolSpace {
    /// All data that does not have its own space. It is coded by the code that the profile chooses.
    #[default]
    Main,
    /// Live data, if both ends separate it. It is coded by `sliding-window`.
    Live,
}

/// Symbols and blocks from this number on are of [`SymbolSpace::Live`].
const LIVE: u64 = 1 << 61;

impl SymbolSpace {
    /// Both spaces; the index of each is its value.
    pub const ALL: [SymbolSpace; 2] = [SymbolSpace::Main, SymbolSpace::Live];

    /// How many symbols a space can number.
    pub const SYMBOLS: u64 = LIVE;

    const fn base(self) -> u64 {
        match self {
            SymbolSpace::Main => 0,
            SymbolSpace::Live => LIVE,
        }
    }

    const fn of(number: u64) -> Self {
        if number < LIVE { SymbolSpace::Main } else { SymbolSpace::Live }
    }

    /// The symbol with this ordinal, below [`SYMBOLS`](Self::SYMBOLS).
    #[inline]
    pub const fn symbol(self, ordinal: u64) -> SymbolId {
        SymbolId(self.base() + ordinal)
    }

    /// The first block.
    pub const fn first_block(self) -> BlockId {
        BlockId(self.base())
    }
}

impl SymbolId {
    /// The space in which it is numbered.
    #[inline]
    pub const fn space(self) -> SymbolSpace {
        SymbolSpace::of(self.0)
    }

    /// How many symbols of its space come before it.
    #[inline]
    pub const fn ordinal(self) -> u64 {
        self.0 - self.space().base()
    }
}

impl BlockId {
    /// The space of its symbols.
    #[inline]
    pub const fn space(self) -> SymbolSpace {
        SymbolSpace::of(self.0)
    }
}
