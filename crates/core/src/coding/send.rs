//! The sender's coding windows: source symbols kept until the receiver can do without them, repairs
//! made on demand, and what of it all is in flight, known to have arrived, or due.

mod fates;
mod queued;
mod repairs;
mod resegment;
mod sliding;
mod window;

use core::time::Duration;
use std::collections::VecDeque;

use anabranch_policy::code::{CodeError, CodeLimits, Coverage, ErasureCode};
use anabranch_policy::scheduler::Work;
use anabranch_policy::view::{SymbolId, TrafficClass, WindowId, WindowView};
use anabranch_types::Time;

use super::most_sources;
use super::pool::Pool;
use crate::path::sent::Carried;
use window::{Source, Symbol, SymbolState, Window};

/// Most repairs of one window that are kept account of; then its symbols are sent again from the start.
const MAX_REPAIRS: u32 = 4096;

/// Most recovered windows whose last packets are awaited.
const MAX_TRAILING: usize = 256;

/// A symbol taken for sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutgoingSymbol {
    /// What it is.
    pub carried: Carried,
    /// What a repair covers; for a source, the symbol alone.
    pub coverage: Coverage,
    /// Its bytes.
    pub length: u16,
}

/// What resolving a packet changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The symbol is newly known to be received.
    pub news: bool,
    /// Every packet of the window's first transmission is now resolved.
    pub first_resolved: bool,
}

/// Totals for statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Windows opened.
    pub windows: u64,
    /// Source symbols sent for the first time.
    pub sources: u64,
    /// Repairs sent.
    pub repairs: u64,
    /// Repairs still in flight when their window turned out to be recovered.
    pub repairs_unneeded: u64,
    /// Source symbols sent again.
    pub resends: u64,
    /// Windows whose repairs ran out, so that symbols were sent again from the start.
    pub wraps: u64,
    /// Rounds in which windows got further repairs: reactions to missing symbols of one window, those
    /// within a round trip of the first taken as one.
    pub repair_rounds: u64,
    /// Unrecovered windows at each opening of one, it included, added up.
    pub live_at_openings: u64,
}

/// All windows the receiver has not recovered.
#[derive(Debug)]
pub struct SendWindows {
    code: Box<dyn ErasureCode>,
    limits: CodeLimits,
    /// Most bytes, sources times symbol size, that the peer decodes in one window.
    max_window: u64,
    /// Aligned with `windows`.
    views: Vec<WindowView>,
    windows: VecDeque<Window>,
    spare: Vec<Window>,
    pool: Pool,
    next_window: u64,
    next_symbol: u64,
    totals: Totals,
    /// Bound on the length of all symbols in `windows`.
    widest: u16,
    /// Recovered windows with packets of the first transmission still in flight, and how many: their
    /// fate counts for loss estimates although the data needs them no more.
    trailing: VecDeque<(WindowId, u16)>,
    sliding: Option<sliding::Sliding>,
}

impl SendWindows {
    /// No windows yet; symbols of at most `symbol_capacity` bytes, coded windows of at most `max_window`
    /// bytes in all.
    pub fn new(code: Box<dyn ErasureCode>, symbol_capacity: usize, max_window: u64) -> Self {
        let limits = code.limits();
        SendWindows {
            sliding: limits.slides.then(|| sliding::Sliding::new(code.encoder(), limits.sources)),
            limits,
            max_window,
            code,
            views: Vec::new(),
            windows: VecDeque::new(),
            spare: Vec::new(),
            pool: Pool::new(symbol_capacity),
            next_window: 0,
            next_symbol: 0,
            totals: Totals::default(),
            widest: 0,
            trailing: VecDeque::new(),
        }
    }

    /// Most symbols of a window, sources and repairs together.
    pub fn max_symbols(&self) -> u16 {
        self.limits.symbols.min(u16::MAX.into()) as u16
    }

    /// Most source symbols of a window with symbols of `symbol_size` bytes.
    pub fn max_sources(&self, symbol_size: u16) -> u16 {
        let most = most_sources(&self.limits);
        if !self.limits.repairs {
            return most;
        }
        let decodable = self.max_window / u64::from(symbol_size.max(1));
        most.min(u16::try_from(decodable).unwrap_or(u16::MAX)).max(1)
    }

    /// Whether the code makes repairs at all.
    pub fn makes_repairs(&self) -> bool {
        self.limits.repairs
    }

    /// Whether acknowledgements alone tell that a window is recovered; else the receiver has to say so.
    pub fn any_symbols_suffice(&self) -> bool {
        self.limits.any_symbols_suffice
    }

    /// Most repairs of a window of `sources` symbols.
    fn keys(&self, sources: u16) -> u16 {
        self.limits.keys(sources).min(MAX_REPAIRS) as u16
    }

    /// Unrecovered windows, oldest first.
    pub fn views(&self) -> &[WindowView] {
        &self.views
    }

    /// Totals so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Symbols below this are known to be recovered.
    pub fn floor(&self) -> SymbolId {
        self.views.first().map_or(SymbolId(self.next_symbol), |view| view.first)
    }

    /// The id that the next source symbol gets.
    pub fn next_symbol(&self) -> SymbolId {
        SymbolId(self.next_symbol)
    }

    /// Whether everything sent has been recovered.
    pub fn is_empty(&self) -> bool {
        self.views.is_empty()
    }

    fn index(&self, id: WindowId) -> Option<usize> {
        self.views.binary_search_by_key(&id, |view| view.id).ok()
    }

    /// The window that still takes source symbols, if there is one.
    pub fn open_window(&self) -> Option<&WindowView> {
        self.views.last().filter(|view| !view.closed)
    }

    /// Payload of a full symbol of the open window.
    pub fn open_symbol_size(&self) -> Option<u16> {
        self.open_window().and(self.windows.back()).map(|window| window.symbol_size)
    }

    /// Bound on the length of a window's symbols. Repairs of a code that slides may be longer, because they
    /// cover symbols of other windows too.
    pub fn longest(&self, id: WindowId) -> usize {
        self.index(id).map_or(0, |index| usize::from(self.windows[index].longest))
    }

    /// Opens a window for `sources` symbols of `symbol_size` bytes. The previous one must be closed.
    pub fn open(
        &mut self,
        now: Time,
        class: TrafficClass,
        sources: u16,
        symbol_size: u16,
    ) -> WindowId {
        let id = WindowId(self.next_window);
        self.next_window += 1;
        self.totals.windows += 1;
        let spare = self.spare.pop();
        let mut window = spare.unwrap_or_else(|| Window::new(self.code.encoder()));
        let planned = sources.clamp(1, self.max_sources(symbol_size));
        window.symbol_size = symbol_size.min(self.pool.size() as u16);
        window.doubtful = !self.limits.any_symbols_suffice && !self.limits.slides;
        self.windows.push_back(window);
        self.views.push(WindowView {
            id,
            first: SymbolId(self.next_symbol),
            class,
            planned,
            opened: now,
            ..WindowView::default()
        });
        self.totals.live_at_openings += self.views.len() as u64;
        id
    }

    /// Adds a source symbol to the open window; `fill` writes it and returns its length (0: nothing was
    /// there to write, and no symbol is made). Returns the symbol and whether the window is full.
    pub fn push(
        &mut self,
        fill: impl FnOnce(SymbolId, &mut [u8]) -> usize,
    ) -> Option<(OutgoingSymbol, bool)> {
        let view = self.views.last_mut().filter(|view| !view.closed)?;
        let window = self.windows.back_mut()?;
        let id = SymbolId(self.next_symbol);
        let mut bytes = self.pool.take();
        let length = fill(id, &mut bytes[..usize::from(window.symbol_size)]);
        if length == 0 {
            self.pool.put(bytes);
            return None;
        }
        self.next_symbol += 1;
        let length = length as u16;
        window.longest = window.longest.max(length);
        self.widest = self.widest.max(length);
        window.sources.push(Source { bytes, length, state: SymbolState::default() });
        view.sources += 1;
        let carried = Carried::Source(view.id, id);
        let taken = OutgoingSymbol { carried, coverage: Coverage { first: id, count: 1 }, length };
        Some((taken, view.sources >= view.planned))
    }

    /// No further symbols join the open window. An empty one is dropped.
    pub fn close(&mut self) -> Option<WindowId> {
        let view = self.views.last_mut().filter(|view| !view.closed)?;
        if view.sources == 0 {
            self.views.pop();
            if let Some(window) = self.windows.pop_back() {
                self.recycle(window);
            }
            return None;
        }
        view.closed = true;
        Some(view.id)
    }

    /// Plans `count` proactive repairs for a closed window.
    pub fn plan_repairs(&mut self, id: WindowId, count: u16) {
        if let Some(index) = self.index(id) {
            let keys = self.keys(self.views[index].sources);
            self.views[index].proactive_left = count.min(keys);
        }
    }

    /// Makes `count` repairs due that were planned after a source joined the window.
    pub fn add_repairs(&mut self, id: WindowId, count: u16) {
        if let Some(index) = self.index(id) {
            let (view, window) = (&mut self.views[index], &mut self.windows[index]);
            window.repairs_due = window.repairs_due.saturating_add(count);
            view.due = view.due.saturating_add(count);
        }
    }

    /// Makes `count` more fresh repairs due.
    ///
    /// Reactions of one window within `rtt` of the first are counted as one round.
    pub fn add_due(&mut self, now: Time, id: WindowId, count: u16, rtt: Duration) {
        if let Some(index) = self.index(id) {
            let window = &mut self.windows[index];
            if now >= window.round_ends {
                window.round_ends = now + rtt;
                self.totals.repair_rounds += 1;
            }
        }
        self.add_repairs(id, count);
    }

    /// Makes the carried symbol due again, unless it has arrived, is still in flight or waits in a queue.
    /// For a repair, a fresh one is due in its place.
    pub fn make_due(&mut self, carried: Carried) {
        let Some((index, symbol)) = self.locate(carried) else { return };
        let state = self.windows[index].state(symbol);
        if state.is_none_or(|state| state.copies == 0) {
            self.flag_due(index, symbol);
        }
    }

    /// Makes the carried symbol due once more although a packet with it may be in flight.
    pub fn make_due_copy(&mut self, carried: Carried) {
        if let Some((index, symbol)) = self.locate(carried) {
            self.flag_due(index, symbol);
        }
    }

    fn flag_due(&mut self, index: usize, symbol: Symbol) {
        let view = &mut self.views[index];
        let window = &mut self.windows[index];
        let Some(state) = window.state(symbol) else { return };
        if state.received || state.due || state.queued != 0 {
            return;
        }
        if state.carried != 0 {
            view.lost_on |= 1 << state.last;
        }
        match symbol {
            Symbol::Source(_) => state.due = true,
            Symbol::Repair(_) => window.repairs_due = window.repairs_due.saturating_add(1),
        }
        view.due = view.due.saturating_add(1);
    }

    fn locate(&self, carried: Carried) -> Option<(usize, Symbol)> {
        let index = self.index(carried.window())?;
        let symbol = match carried {
            Carried::Source(_, id) => {
                Symbol::Source(usize::try_from(id.0.checked_sub(self.views[index].first.0)?).ok()?)
            }
            Carried::Repair(_, key) => Symbol::Repair(key as usize),
        };
        Some((index, symbol))
    }

    /// Takes the symbol that `work` stands for, to be sent on the path in `slot`. The caller must send it.
    pub fn take(&mut self, work: Work, slot: u8) -> Option<OutgoingSymbol> {
        match work {
            Work::Fresh => None,
            Work::Window(id) => self.take_due(id),
            Work::Copy(id) => self.take_copy(id, slot),
        }
    }

    fn outgoing(&self, index: usize, symbol: Symbol) -> OutgoingSymbol {
        let view = &self.views[index];
        let window = &self.windows[index];
        match symbol {
            Symbol::Source(i) => {
                let id = SymbolId(view.first.0 + i as u64);
                OutgoingSymbol {
                    carried: Carried::Source(view.id, id),
                    coverage: Coverage { first: id, count: 1 },
                    length: window.sources.get(i).map_or(0, |s| s.length),
                }
            }
            Symbol::Repair(key) => {
                let whole = Coverage { first: view.first, count: view.sources };
                let covered = window.covered.get(key).copied();
                let (coverage, length) = covered.unwrap_or((whole, window.longest));
                OutgoingSymbol { carried: Carried::Repair(view.id, key as u32), coverage, length }
            }
        }
    }

    fn take_due(&mut self, id: WindowId) -> Option<OutgoingSymbol> {
        let index = self.index(id)?;
        let keys = usize::from(self.keys(self.views[index].sources));
        let (view, window) = (&mut self.views[index], &mut self.windows[index]);
        let flagged = view.due > window.repairs_due;
        if flagged && let Some(i) = window.sources.iter().position(|s| s.state.due) {
            let state = &mut window.sources[i].state;
            state.due = false;
            view.due -= 1;
            // What was taken back from a queue may never have left.
            self.totals.resends += u64::from(state.carried != 0);
            return Some(self.outgoing(index, Symbol::Source(i)));
        }
        let may_repair = view.closed || (self.limits.slides && view.sources > 0);
        if view.closed && view.proactive_left > 0 {
            view.proactive_left -= 1;
        } else if window.repairs_due > 0 && may_repair {
            window.repairs_due -= 1;
            view.due -= 1;
        } else {
            return None;
        }
        let symbol = if window.repairs.len() < keys {
            let key = window.repairs.len();
            window.repairs.push(SymbolState::default());
            view.repairs = window.repairs.len() as u16;
            self.cover(index);
            Symbol::Repair(key)
        } else {
            self.wrap(index)?
        };
        if matches!(symbol, Symbol::Repair(_)) {
            self.totals.repairs += 1;
        }
        Some(self.outgoing(index, symbol))
    }

    /// Every repair has been sent: start over with the symbols that have not arrived.
    fn wrap(&mut self, index: usize) -> Option<Symbol> {
        let window = &mut self.windows[index];
        let (sources, total) = (window.sources.len(), window.sources.len() + window.repairs.len());
        self.totals.wraps += u64::from(window.cursor == 0);
        for step in 0..total {
            let at = (window.cursor + step) % total;
            let symbol =
                if at < sources { Symbol::Source(at) } else { Symbol::Repair(at - sources) };
            if window.state(symbol).is_some_and(|state| !state.received) {
                window.cursor = at + 1;
                return Some(symbol);
            }
        }
        None
    }

    /// The carried symbol itself once more, if it has not arrived yet.
    pub fn again(&mut self, carried: Carried) -> Option<OutgoingSymbol> {
        let (index, symbol) = self.locate(carried)?;
        let state = *self.windows[index].state(symbol)?;
        (!state.received).then(|| self.outgoing(index, symbol))
    }

    fn take_copy(&mut self, id: WindowId, slot: u8) -> Option<OutgoingSymbol> {
        let index = self.index(id)?;
        let wanted = |state: &SymbolState| {
            let here = (state.on | state.queued) & (1 << slot) != 0;
            !state.received && state.copies > 0 && !here
        };
        let window = &self.windows[index];
        let source = window.sources.iter().position(|source| wanted(&source.state));
        let repair = || window.repairs.iter().position(wanted).map(Symbol::Repair);
        let symbol = source.map(Symbol::Source).or_else(repair)?;
        match symbol {
            Symbol::Source(_) => self.totals.resends += 1,
            Symbol::Repair(_) => self.totals.repairs += 1,
        }
        Some(self.outgoing(index, symbol))
    }

    /// Writes the bytes of a taken symbol to `out`, which is as long as it.
    pub fn write(&mut self, taken: &OutgoingSymbol, out: &mut [u8]) -> Result<(), CodeError> {
        let (index, symbol) = self.locate(taken.carried).ok_or(CodeError::Coverage)?;
        if self.limits.slides && matches!(symbol, Symbol::Repair(_)) {
            return self.write_sliding(taken, out);
        }
        let keys = usize::from(self.keys(self.views[index].sources));
        let (view, window) = (&self.views[index], &mut self.windows[index]);
        match symbol {
            Symbol::Source(i) => {
                let source = window.sources.get(i).ok_or(CodeError::Coverage)?;
                let bytes = source.bytes.get(..out.len()).ok_or(CodeError::Length)?;
                out.copy_from_slice(bytes);
                Ok(())
            }
            Symbol::Repair(key) => {
                // Fresh repairs have rising keys, so after the newest come those still planned or due.
                let newest = key + 1 == window.repairs.len();
                let coming = usize::from(view.proactive_left) + usize::from(window.repairs_due);
                let left = keys.saturating_sub(window.repairs.len());
                let more = if newest { coming.min(left) } else { 0 };
                window.write_repair(&mut self.pool, taken.coverage, key, more, out)
            }
        }
    }

    fn recycle(&mut self, mut window: Window) {
        self.keep_history(&mut window);
        window.reset(&mut self.pool);
        self.spare.push(window);
    }
}
