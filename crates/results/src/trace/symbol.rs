//! How files name a symbol.

use core::fmt;

use anabranch_policy::view::{SymbolId, SymbolSpace};
use serde::{Deserialize, Serialize};

/// A symbol by its ordinal: `7`, or `{"live": 7}` for a symbol in the separate space of live data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Symbol {
    /// A symbol of the main space.
    Main(u64),
    /// A symbol of the space of live data.
    Live {
        /// Ordinal of the symbol in the space of live data.
        live: u64,
    },
}

impl From<SymbolId> for Symbol {
    fn from(id: SymbolId) -> Self {
        match id.space() {
            SymbolSpace::Main => Symbol::Main(id.ordinal()),
            SymbolSpace::Live => Symbol::Live { live: id.ordinal() },
        }
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Symbol::Main(ordinal) => write!(f, "symbol {ordinal}"),
            Symbol::Live { live } => write!(f, "live symbol {live}"),
        }
    }
}
