//! What becomes of the symbols that were sent: in flight, arrived, lost, recovered with their window.

use anabranch_policy::view::{MAX_PATHS, SymbolId, WindowId, WindowView};

use super::window::{Symbol, Window};
use super::{Change, MAX_TRAILING, SendWindows};
use crate::path::sent::Carried;

impl SendWindows {
    /// A packet with the symbol left on the path in `slot`.
    pub fn on_sent(&mut self, carried: Carried, slot: u8) {
        let Some((index, symbol)) = self.locate(carried) else { return };
        let view = &mut self.views[index];
        let window = &mut self.windows[index];
        let first_round = match symbol {
            Symbol::Source(_) => true,
            Symbol::Repair(_) => !window.first_reported,
        };
        let Some(state) = window.state(symbol) else { return };
        let fresh = state.carried == 0;
        let waited = state.waits();
        // One that was taken before its arrival became known brings no news any more.
        if state.copies == 0 && !state.received {
            view.in_flight += 1;
        }
        state.copies = state.copies.saturating_add(1);
        state.carried |= 1 << slot;
        state.on |= 1 << slot;
        state.last = slot;
        view.queued -= u16::from(waited && !state.waits());
        view.carried_on |= 1 << slot;
        view.in_flight_on[usize::from(slot) % MAX_PATHS] += 1;
        if fresh && matches!(symbol, Symbol::Source(_)) {
            self.totals.sources += 1;
        }
        if fresh && first_round {
            state.first_open = true;
            window.first_open += 1;
        }
    }

    /// A packet with the symbol is no longer in flight: it arrived, was lost, or was written off.
    pub fn on_resolved(&mut self, carried: Carried, slot: u8, received: bool) -> Change {
        let Some((index, symbol)) = self.locate(carried) else {
            return self.trailing_resolved(carried.window());
        };
        let view = &mut self.views[index];
        let window = &mut self.windows[index];
        let Some(state) = window.state(symbol) else { return Change::default() };
        let mut change = Change::default();
        let on_path = &mut view.in_flight_on[usize::from(slot) % MAX_PATHS];
        *on_path = on_path.saturating_sub(1);
        state.on &= !(1 << slot);
        if state.copies > 0 {
            state.copies -= 1;
            if state.copies == 0 && !state.received {
                view.in_flight -= 1;
                view.queued += u16::from(state.waits());
            }
        }
        if received && !state.received {
            change.news = true;
        }
        let due = state.due;
        let first = core::mem::take(&mut state.first_open);
        if received {
            self.mark_received(index, symbol, due);
        }
        let window = &mut self.windows[index];
        window.first_open -= u16::from(first);
        let view = &self.views[index];
        if window.first_open == 0
            && view.closed
            && view.proactive_left == 0
            && !window.first_reported
        {
            window.first_reported = true;
            change.first_resolved = true;
        }
        change
    }

    fn trailing_resolved(&mut self, id: WindowId) -> Change {
        let Some(index) = self.trailing.iter().position(|(window, _)| *window == id) else {
            return Change::default();
        };
        self.trailing[index].1 -= 1;
        let first_resolved = self.trailing[index].1 == 0;
        if first_resolved {
            self.trailing.remove(index);
        }
        Change { first_resolved, ..Change::default() }
    }

    /// A symbol that had been counted as missing has arrived after all.
    pub fn on_late(&mut self, carried: Carried) {
        let Some((index, symbol)) = self.locate(carried) else { return };
        let due = self.windows[index].state(symbol).is_some_and(|state| state.due);
        self.mark_received(index, symbol, due);
    }

    fn mark_received(&mut self, index: usize, symbol: Symbol, due: bool) {
        let view = &mut self.views[index];
        let window = &mut self.windows[index];
        let Some(state) = window.state(symbol) else { return };
        if state.received {
            return;
        }
        if state.copies > 0 {
            // Further copies no longer count towards what may still arrive.
            view.in_flight -= 1;
        }
        view.queued -= u16::from(state.waits());
        state.received = true;
        state.due = false;
        window.acknowledged += 1;
        window.sources_acknowledged += u16::from(matches!(symbol, Symbol::Source(_)));
        view.received = window.received(view.sources, self.limits.any_symbols_suffice);
        if due {
            view.due -= 1;
        }
    }

    /// The receiver holds every symbol below `below` (its rank report), whatever acknowledgements were lost.
    pub fn on_all_received(&mut self, below: SymbolId) {
        for index in 0..self.views.len() {
            let view = self.views[index];
            if view.first >= below {
                break;
            }
            let known = below.0.min(view.first.0 + u64::from(view.sources)) - view.first.0;
            for i in 0..known as usize {
                let due = self.windows[index].sources.get(i).is_some_and(|s| s.state.due);
                self.mark_received(index, Symbol::Source(i), due);
            }
        }
    }

    /// The receiver misses `missing` independent symbols of the window that starts at `first`; none if it has
    /// recovered it. Returns the window if that is more than was thought, so that it needs more.
    pub fn on_rank(&mut self, first: SymbolId, missing: u16) -> Option<WindowId> {
        let index = self.views.binary_search_by_key(&first, |view| view.first).ok()?;
        let (view, window) = (&mut self.views[index], &mut self.windows[index]);
        let rank = view.sources.saturating_sub(missing);
        // The rank of a window never falls: a lower one was overtaken by another report.
        if !view.closed || rank < window.reported {
            return None;
        }
        window.reported = rank;
        window.recovered |= missing == 0;
        if !self.limits.any_symbols_suffice {
            window.dependent = window.acknowledged.saturating_sub(rank);
        }
        self.update_received(index)
    }

    /// With a code that slides: `first` is the first symbol that the receiver misses, and it misses
    /// `missing` independent ones, of which it has repairs. Returns the window of `first` if that is more
    /// than was thought.
    pub fn on_unfinished(&mut self, first: SymbolId, missing: u16) -> Option<WindowId> {
        let index = self.views.partition_point(|view| view.first <= first).checked_sub(1)?;
        let (view, window) = (&mut self.views[index], &mut self.windows[index]);
        if !view.closed || first.0 >= view.first.0 + u64::from(view.sources) {
            return None;
        }
        // Later windows have their share in what is missing.
        let missing = missing.clamp(1, (view.sources - window.sources_acknowledged).max(1));
        window.dependent = (window.acknowledged + missing).saturating_sub(view.sources);
        window.doubtful = true;
        self.update_received(index)
    }

    fn update_received(&mut self, index: usize) -> Option<WindowId> {
        let (view, window) = (&mut self.views[index], &self.windows[index]);
        let before = view.received;
        view.received = window.received(view.sources, self.limits.any_symbols_suffice);
        (view.received < before).then_some(view.id)
    }

    /// Removes windows that the receiver is known to have recovered; `each` hears of every one.
    pub fn retire(&mut self, mut each: impl FnMut(&WindowView)) {
        let any_symbols_suffice = self.limits.any_symbols_suffice;
        let mut index = 0;
        while index < self.views.len() {
            let view = &self.views[index];
            let recovered = self.windows[index].is_recovered(view.sources, any_symbols_suffice);
            if !(view.closed && recovered) {
                if self.limits.slides {
                    // Repairs cover runs of symbols without gaps.
                    break;
                }
                index += 1;
                continue;
            }
            each(view);
            let id = view.id;
            self.views.remove(index);
            if let Some(window) = self.windows.remove(index) {
                let late = window.repairs.iter().filter(|r| r.copies > 0 && !r.received).count();
                self.totals.repairs_unneeded += late as u64;
                self.trail(id, &window);
                self.recycle(window);
            }
        }
    }

    /// The fates of a window's packets still count although the window is gone.
    pub(super) fn trail(&mut self, id: WindowId, window: &Window) {
        if window.first_open > 0 && !window.first_reported {
            self.trailing.push_back((id, window.first_open));
            if self.trailing.len() > MAX_TRAILING {
                self.trailing.pop_front();
            }
        }
    }
}
