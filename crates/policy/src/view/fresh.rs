//! New data that the application has ready.

use super::{SymbolId, TrafficClass};

/// Why no new source symbol can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// The application has written nothing more.
    Application,
    /// The peer's stream or connection credit is used up.
    FlowControl,
    /// The credit for symbols that the receiver has not recovered is used up: the peer's, or the sender's
    /// own bound on those it keeps.
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
    /// Source symbols of the class that is next which could be made now: waiting bytes, as far as every credit admits
    /// them.
    pub symbols: u32,
    /// Source symbols of less urgent classes that could be made after those: a path that leaves the next ones to
    /// others may send these.
    pub beyond: u32,
    /// Number of the next source symbol.
    pub next: SymbolId,
    /// Whether the application is blocked on the send buffer: it has more to write than was taken, so that more
    /// follows what waits.
    pub more: bool,
    /// Class of `symbols`.
    pub class: TrafficClass,
    /// Payload of one symbol, bytes.
    pub symbol_size: u16,
    /// Why no symbol can be made; set when `symbols` is 0.
    pub blocked: Option<Blocked>,
    /// Symbols that may be made before the receiver grants more, by the least of its
    /// credits for symbols, for the connection and for the stream that is next.
    pub credit: u32,
    /// Symbols that may be outstanding in all: `credit`, and all made from the oldest one on that the receiver has
    /// neither acknowledged in order nor recovered.
    pub window: u32,
}

impl FreshView {
    /// Source symbols that could be made now, of whatever class.
    pub fn of_all_classes(&self) -> u32 {
        self.symbols.saturating_add(self.beyond)
    }

    /// Source symbols that could be made now, by class, without empty classes. What follows the next class counts as
    /// bulk, since the view does not tell its class.
    pub fn classes(&self) -> impl Iterator<Item = (TrafficClass, u32)> + use<> {
        let classes = [(self.class, self.symbols), (TrafficClass::Bulk, self.beyond)];
        classes.into_iter().filter(|(_, symbols)| *symbols > 0)
    }
}
