//! One step of a forecast: the rounds that may begin at a time, and where each of their outcomes leads.

use super::grid::Turn;
use super::odds::OddsTable;
use super::place::{Place, State};

/// The rounds that begin at one time, and the places at which the next ones begin.
pub(super) struct Step<'a> {
    pub(super) turn: Turn,
    pub(super) loss: f64,
    pub(super) largest: u32,
    /// States less probable than this are not followed.
    pub(super) pruned: f64,
    pub(super) odds: &'a mut OddsTable,
    pub(super) clean: &'a mut Place,
    pub(super) repaired: &'a mut Place,
    /// `None` if the time ends before the round after a timeout.
    pub(super) timed_out: Option<&'a mut Place>,
}

impl Step<'_> {
    /// Mean number of packets that the rounds of all states of `place` deliver. Empties `place`, and enters the
    /// states that follow.
    pub(super) fn all(&mut self, place: &mut Place) -> f64 {
        if self.turn.more == 0 {
            return place.take_packets() * self.turn.last(self.loss);
        }
        let starting = place.starting.drain(..);
        let mut packets: f64 = starting.map(|(state, chance)| self.round(state, chance)).sum();
        for (low, high) in place.spans.drain(..) {
            packets += self.span(&mut place.steady, low, high);
        }
        packets
    }

    /// [`all`](Self::all) for one state in slow start.
    fn round(&mut self, state: State, chance: f64) -> f64 {
        let window = state.window as usize;
        if chance < self.pruned {
            return chance * f64::from(state.window) * f64::from(self.turn.more + 1);
        }
        let effect = self.odds.up_to(window + 1)[window];
        let negligible = self.pruned * self.pruned;
        let lead = |place: &mut Place, odds: f64, next: State| {
            if chance * odds > negligible {
                place.add(next, chance * odds);
            }
        };
        lead(self.clean, effect.clean, state.clean(self.largest));
        lead(self.repaired, effect.repaired, state.repaired());
        if let Some(place) = &mut self.timed_out {
            let least = self.odds.least_threshold();
            lead(place, effect.timed_out, State::timed_out(state.window, least));
        }
        chance * effect.delivered(&self.turn)
    }

    /// [`all`](Self::all) for the states beyond slow start with windows from `low` to below `high`. `steady` has their
    /// chances by window, which are set to 0.
    fn span(&mut self, steady: &mut [f64], mut low: usize, mut high: usize) -> f64 {
        // Improbable ends are cut off.
        let mut cut = 0.0;
        while low < high && steady[low] < self.pruned {
            cut += core::mem::take(&mut steady[low]) * low as f64;
            low += 1;
        }
        while low < high && steady[high - 1] < self.pruned {
            high -= 1;
            cut += core::mem::take(&mut steady[high]) * high as f64;
        }
        let cut = cut * f64::from(self.turn.more + 1);
        if low == high {
            return cut;
        }
        let chances = &mut steady[low..high];
        self.time_out(chances, low);
        let largest = self.largest as usize;
        let clean = self.clean.cover(low + 1, high + 1);
        let repaired = self.repaired.cover(low / 2, high.div_ceil(2));
        let effects = &self.odds.up_to(high)[low..];
        let (mut packets, mut half, mut odd) = (0.0, 0, low % 2);
        for ((chance, effect), clean) in chances.iter_mut().zip(effects).zip(clean) {
            let chance = core::mem::take(chance);
            packets += chance * effect.delivered(&self.turn);
            *clean += chance * effect.clean;
            // Two windows, an even one and the next, lead to the same half.
            repaired[half] += chance * effect.repaired;
            (half, odd) = (half + odd, 1 - odd);
        }
        if high > largest {
            self.clean.bound(largest);
        }
        packets + cut
    }

    /// Enters the states that follow a timeout of the states with windows from `low` on.
    fn time_out(&mut self, chances: &[f64], low: usize) {
        let Some(place) = &mut self.timed_out else { return };
        let (least, negligible) = (self.odds.least_threshold(), self.pruned * self.pruned);
        let effects = &self.odds.up_to(low + chances.len())[low..];
        for (window, (chance, effect)) in (low as u32..).zip(chances.iter().zip(effects)) {
            let chance = chance * effect.timed_out;
            if chance > negligible {
                place.add(State::timed_out(window, least), chance);
            }
        }
    }
}
