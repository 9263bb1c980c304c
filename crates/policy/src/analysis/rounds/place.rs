//! Possible states of a path when a round begins.

use super::MAX_WINDOW;

/// Spans of windows that lie no farther apart than this are merged, since a few zeros take less
/// time than another span.
const NEAR: usize = 6;

/// State of a path: its window and slow-start threshold, packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) window: u32,
    /// 0 once the window has reached the threshold, which then has no effect. States that would
    /// differ only in such a threshold are thus the same state.
    pub(super) ssthresh: u32,
}

impl State {
    pub(super) fn new(window: u32, ssthresh: u32, largest: u32) -> Self {
        let (window, ssthresh) = (window.clamp(1, largest), ssthresh.min(largest));
        State { window, ssthresh: if window < ssthresh { ssthresh } else { 0 } }
    }

    /// After a round without a loss (eqs 7 and 8).
    pub(super) fn clean(self, largest: u32) -> Self {
        let State { window, ssthresh } = self;
        State::new(if window < ssthresh { 2 * window } else { window + 1 }, ssthresh, largest)
    }

    /// After a round whose losses are retransmitted fast (eqs 12 and 13).
    pub(super) fn repaired(self) -> Self {
        State { window: self.window / 2, ssthresh: 0 }
    }

    /// After a round that the timer ends (eqs 20 and 21). A window that doubles from 1 takes as
    /// many rounds to a threshold as to the next power of two, so the threshold is rounded up to
    /// that power.
    pub(super) fn timed_out(window: u32, least: u32) -> Self {
        State::new(1, (window / 2).max(least).next_power_of_two(), MAX_WINDOW)
    }
}

/// The possible states of a path at a time, each with its chance.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    /// Chances of states beyond slow start, by window; 0 outside `spans`.
    pub(super) steady: Vec<f64>,
    /// Ranges of windows, the first included and the second not, in no order; they may overlap.
    pub(super) spans: Vec<(usize, usize)>,
    /// States in slow start, in no order.
    pub(super) starting: Vec<(State, f64)>,
}

impl Place {
    pub(super) fn add(&mut self, state: State, chance: f64) {
        if state.ssthresh == 0 {
            let window = state.window as usize;
            self.cover(window, window + 1)[0] += chance;
            return;
        }
        match self.starting.iter_mut().find(|(other, _)| *other == state) {
            Some((_, sum)) => *sum += chance,
            None => self.starting.push((state, chance)),
        }
    }

    /// The chances of the windows from `low` to below `high`, to which the caller adds.
    pub(super) fn cover(&mut self, low: usize, high: usize) -> &mut [f64] {
        if self.steady.len() < high {
            self.steady.resize(high, 0.0);
        }
        let touches =
            |(first, end): &&mut (usize, usize)| low <= *end + NEAR && *first <= high + NEAR;
        match self.spans.iter_mut().find(touches) {
            Some((first, end)) => (*first, *end) = (low.min(*first), high.max(*end)),
            None => self.spans.push((low, high)),
        }
        &mut self.steady[low..high]
    }

    /// Adds the chance of window `largest` + 1 to that of `largest`, the largest window there is.
    pub(super) fn bound(&mut self, largest: usize) {
        if let Some(beyond) = self.steady.get_mut(largest + 1).map(core::mem::take) {
            self.cover(largest, largest + 1)[0] += beyond;
        }
    }

    /// The mean number of packets that one round sends from these states. Empties the place.
    pub(super) fn take_packets(&mut self) -> f64 {
        let starting = self.starting.drain(..);
        let mut packets: f64 =
            starting.map(|(state, chance)| chance * f64::from(state.window)).sum();
        for (low, high) in self.spans.drain(..) {
            for (window, chance) in (low..high).zip(&mut self.steady[low..high]) {
                packets += core::mem::take(chance) * window as f64;
            }
        }
        packets
    }
}
