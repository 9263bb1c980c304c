//! The probabilities of how a round ends, and what it then delivers.

use super::Reading;
use super::grid::Turn;

/// Lower chances are negligible even if multiplied by window²/2, since windows are at most
/// [`MAX_WINDOW`](super::MAX_WINDOW).
const NEVER: f64 = 1e-20;

/// The chances of how a round ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Odds {
    pub(super) clean: f64,
    pub(super) repaired: f64,
    pub(super) timed_out: f64,
    /// Mean number of packets that arrive in a round that times out, times the chance that it does.
    pub(super) survivors: f64,
}

/// The outcome of a round with a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effect {
    /// Weights of the rounds that follow, by how this round ends.
    pub(super) clean: f64,
    pub(super) repaired: f64,
    pub(super) timed_out: f64,
    /// Mean number of packets that the round delivers: the first entry if the time ends before the
    /// round after a timeout begins, else the second.
    packets: [f64; 2],
}

impl Effect {
    pub(super) fn delivered(&self, turn: &Turn) -> f64 {
        self.packets[usize::from(turn.timed_out)]
    }
}

/// Effects by window, for one loss probability.
#[derive(Clone, Debug, Default)]
pub(super) struct OddsTable {
    reading: Reading,
    loss: f64,
    effects: Vec<Effect>,
    /// Powers of the chances that a packet arrives and that it is lost. The exponent is the next window to be
    /// computed; `lost` has the two next smaller exponents too.
    arrived: f64,
    lost: [f64; 3],
}

impl OddsTable {
    pub(super) fn new(reading: Reading, loss: f64) -> Self {
        let (arrived, lost) = (1.0, [1.0, 0.0, 0.0]);
        OddsTable { reading, loss, arrived, lost, ..OddsTable::default() }
    }

    /// The odds of one window in [`Reading::Model`].
    pub(super) fn of(loss: f64, window: u32) -> Odds {
        let mut table = OddsTable::new(Reading::Model, loss);
        (0..window).for_each(|_| table.step());
        table.compute(window)
    }

    /// Empties the table if it is for another loss probability.
    pub(super) fn prepare(&mut self, loss: f64) {
        if self.loss != loss || self.effects.is_empty() {
            let mut effects = core::mem::take(&mut self.effects);
            effects.clear();
            *self = OddsTable { effects, ..OddsTable::new(self.reading, loss) };
        }
    }

    fn step(&mut self) {
        let [last, before, _] = self.lost;
        self.lost = [last * self.loss, last, before];
        self.arrived *= 1.0 - self.loss;
    }

    /// The effects of all windows below `end`, and perhaps more.
    #[inline]
    pub(super) fn up_to(&mut self, end: usize) -> &[Effect] {
        if self.effects.len() < end {
            self.extend(end);
        }
        &self.effects
    }

    fn extend(&mut self, end: usize) {
        while self.effects.len() < end {
            let window = self.effects.len() as u32;
            // In a window this large, a timeout is negligibly rare: hardly ever do fewer than three
            // packets arrive.
            if window >= 8 && self.lost[2] < NEVER && !self.is_literal() {
                return self.extend_settled(end);
            }
            let all = f64::from(window);
            let Odds { clean, repaired, timed_out, survivors } = self.compute(window);
            self.step();
            let survive = all * (clean + repaired);
            let packets = [survive + survivors, survive + all * timed_out];
            self.effects.push(match self.reading {
                Reading::Model => Effect { clean, repaired, timed_out, packets },
                Reading::Literal => Effect { clean: 1.0, repaired: 1.0, timed_out: 1.0, packets },
            });
        }
    }

    /// [`extend`](Self::extend) for windows too large to time out.
    fn extend_settled(&mut self, end: usize) {
        let from = self.effects.len();
        let (mut window, mut clean, arrives) = (from as f64, self.arrived, 1.0 - self.loss);
        let settled = (from..end).map(|_| {
            let packets = [window; 2];
            let effect = Effect { clean, repaired: 1.0 - clean, timed_out: 0.0, packets };
            (window, clean) = (window + 1.0, clean * arrives);
            effect
        });
        self.effects.extend(settled);
        self.arrived = clean;
    }

    fn is_literal(&self) -> bool {
        self.reading == Reading::Literal
    }

    /// The least threshold after a timeout.
    pub(super) fn least_threshold(&self) -> u32 {
        if self.is_literal() { 0 } else { 2 }
    }

    /// Eqs 5, 10 and 15; `window` has to be the exponent of the stored powers.
    fn compute(&self, window: u32) -> Odds {
        let (clean, arrives) = (self.arrived, 1.0 - self.loss);
        // Three packets that arrive cause three duplicate acknowledgements.
        let few = if self.is_literal() { window + 1 } else { window }.min(3);
        let (mut timed_out, mut survivors) = (0.0, 0.0);
        let mut ways = 1.0;
        for (arrived, lost) in (0..few).zip(self.lost) {
            timed_out += ways * lost;
            survivors += ways * lost * f64::from(arrived);
            ways *= f64::from(window - arrived) / f64::from(arrived + 1) * arrives;
        }
        let repaired = if window < 4 { 0.0 } else { (1.0 - clean - timed_out).max(0.0) };
        Odds { clean, repaired, timed_out, survivors }
    }
}
