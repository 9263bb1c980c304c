//! New data that the application has ready.

use super::{SymbolId, TrafficClass};

/// Why no new source symbol can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// The application has written nothing more.
    Application,
    /// The peer's stream or connection credit is used up.
    FlowControl,
    /// The credit for symbols that the receiver has not recovered is used up: either the peer's
    /// credit, or the sender's own limit on the symbols that it keeps.
    DecoderCredit,
}

impl Blocked {
    /// Whether data waits for room at the receiver.
    pub fn by_receiver(self) -> bool {
        self != Blocked::Application
    }
}

/// Data that the application has ready beyond the open blocks.
#[derive(Clone, Copy, Debug)]
pub struct FreshView {
    /// How many source symbols of the next class could be made now from waiting bytes, as far as
    /// all credits admit them.
    pub symbols: u32,
    /// How many source symbols of less urgent classes could be made after those. A path that leaves
    /// the next symbols to other paths may send these.
    pub beyond: u32,
    /// Number of the next source symbol.
    pub next: SymbolId,
    /// Whether the application is blocked on the send buffer, so that more data follows the waiting
    /// data.
    pub more: bool,
    /// Class of `symbols`.
    pub class: TrafficClass,
    /// Payload of one symbol, bytes.
    pub symbol_size: u16,
    /// Why no symbol can be made; set if `symbols` is 0.
    pub blocked: Option<Blocked>,
    /// How many symbols may be made before the receiver grants more credit: the least of its
    /// credits for symbols, for the connection and for the next stream.
    pub credit: u32,
    /// How many symbols may be outstanding in all: `credit`, plus all symbols made since the oldest
    /// one that the receiver has neither acknowledged in order nor recovered.
    pub window: u32,
}

impl FreshView {
    /// Source symbols that could be made now, of whatever class.
    pub fn of_all_classes(&self) -> u32 {
        self.symbols.saturating_add(self.beyond)
    }

    /// Source symbols that could be made now, by class, without empty classes. Data after the next
    /// class counts as bulk, since its class is not in the view.
    pub fn classes(&self) -> impl Iterator<Item = (TrafficClass, u32)> + use<> {
        let classes = [(self.class, self.symbols), (TrafficClass::Bulk, self.beyond)];
        classes.into_iter().filter(|(_, symbols)| *symbols > 0)
    }
}
