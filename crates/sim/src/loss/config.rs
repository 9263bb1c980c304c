use core::fmt;
use core::time::Duration;

use anabranch_types::Probability;

use super::correlated::{CorrelatedConfig, MAX_GROUP};
use super::joint::JointConfig;
use super::trace::LossTrace;
use crate::rate::Schedule;

/// Which loss process a link has, and its parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum LossConfig {
    /// No random loss.
    #[default]
    None,
    /// Independent losses with this probability.
    Bernoulli(Probability),
    /// The Gilbert–Elliott model, whose state changes per packet.
    GilbertElliott(GilbertElliottConfig),
    /// A loss probability that follows a Markov chain in continuous time.
    Markov(MarkovConfig),
    /// Independent losses whose probability changes at known times.
    Scheduled(Schedule<Probability>),
    /// Losses that are correlated along a chain of links, each with its own loss probability.
    Correlated(CorrelatedConfig),
    /// Losses of a group of links with a given correlation matrix.
    Joint(JointConfig),
    /// Losses replayed from a trace.
    Trace(LossTrace),
}

impl LossConfig {
    /// Checks the parameters.
    ///
    /// # Errors
    /// When the parameters are wrong. The error says why.
    pub fn validate(&self) -> Result<(), LossConfigError> {
        match self {
            LossConfig::None | LossConfig::Bernoulli(_) | LossConfig::Scheduled(_) => Ok(()),
            LossConfig::Trace(LossTrace::Outcomes { lost, .. }) if lost.is_empty() => {
                Err(LossConfigError::EmptyTrace)
            }
            LossConfig::Trace(_) => Ok(()),
            LossConfig::Correlated(config) => config.validate(),
            LossConfig::Joint(config) => config.components().map(|_| ()),
            LossConfig::GilbertElliott(config) => config.validate(),
            LossConfig::Markov(config) => config.time_shares().map(|_| ()),
        }
    }
}

/// Parameters of the Gilbert–Elliott model, all of them per packet.
///
/// In the literature, the fields are called p, r, 1 − k and 1 − h.
#[derive(Clone, Debug, PartialEq)]
pub struct GilbertElliottConfig {
    /// Probability of leaving the good state after a packet.
    pub good_to_bad: Probability,
    /// Probability of leaving the bad state after a packet. Its inverse is the mean length of a
    /// stay in the bad state, in packets.
    pub bad_to_good: Probability,
    /// Loss probability in the good state.
    pub loss_in_good: Probability,
    /// Loss probability in the bad state.
    pub loss_in_bad: Probability,
}

impl GilbertElliottConfig {
    /// Gilbert's simple model: no packet is lost in the good state, and every packet in the bad
    /// state.
    pub fn simple(good_to_bad: Probability, bad_to_good: Probability) -> Self {
        GilbertElliottConfig {
            good_to_bad,
            bad_to_good,
            loss_in_good: Probability::ZERO,
            loss_in_bad: Probability::ONE,
        }
    }

    /// The stationary mean loss, (r·loss_good + p·loss_bad) / (p + r).
    pub fn mean_loss(&self) -> Probability {
        let bad = self.bad_share();
        Probability::clamped((1.0 - bad) * self.loss_in_good.get() + bad * self.loss_in_bad.get())
    }

    /// The share of packets that are sent in the bad state, p / (p + r).
    pub fn bad_share(&self) -> f64 {
        let (p, r) = (self.good_to_bad.get(), self.bad_to_good.get());
        if p + r > 0.0 { p / (p + r) } else { 0.0 }
    }

    pub(super) fn validate(&self) -> Result<(), LossConfigError> {
        let leaves = self.good_to_bad.get() + self.bad_to_good.get();
        if leaves > 0.0 { Ok(()) } else { Err(LossConfigError::StatesNeverLeft) }
    }
}

/// Parameters of a Markov-modulated loss process.
#[derive(Clone, Debug, PartialEq)]
pub struct MarkovConfig {
    /// The states, 1 to 256.
    pub states: Vec<MarkovState>,
    /// `jumps[i][j]` is the probability that state `j` follows state `i`; rows sum to one. `None`
    /// means that all other states are equally likely.
    pub jumps: Option<Vec<Vec<f64>>>,
}

/// One state of a [`MarkovConfig`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MarkovState {
    /// Loss probability in this state.
    pub loss: Probability,
    /// Mean of the exponentially distributed dwell time; 1 µs to 10 days.
    pub mean_dwell: Duration,
}

const MAX_STATES: usize = 256;
const MIN_DWELL: Duration = Duration::from_micros(1);
const MAX_DWELL: Duration = Duration::from_secs(10 * 86_400);
/// Largest accepted difference between one and the sum of a row of the jump matrix.
const ROW_TOLERANCE: f64 = 1e-9;

impl MarkovConfig {
    /// MPLOT's loss with disruptions (§IV-B). The loss probability alternates between `low` and
    /// `high`, each with a mean dwell time of `dwell`. At the end of each dwell time, the path goes
    /// down with the probability `down`. It then loses every packet for a mean time of
    /// `down_dwell`, and returns to either state with equal probability. If `down` is zero, there
    /// are only two states.
    pub fn trimodal(
        low: Probability,
        high: Probability,
        dwell: Duration,
        down: Probability,
        down_dwell: Duration,
    ) -> Self {
        let state = |loss, mean_dwell| MarkovState { loss, mean_dwell };
        let mut states = vec![state(low, dwell), state(high, dwell)];
        if down == Probability::ZERO {
            return MarkovConfig { states, jumps: None };
        }
        states.push(state(Probability::ONE, down_dwell));
        let (d, stay) = (down.get(), down.complement().get());
        let jumps = vec![vec![0.0, stay, d], vec![stay, 0.0, d], vec![0.5, 0.5, 0.0]];
        MarkovConfig { states, jumps: Some(jumps) }
    }

    /// The share of time spent in each state in the long run: the stationary distribution of the
    /// jump chain, weighted by the mean dwell times.
    ///
    /// # Errors
    /// When the states or the jump matrix are not well formed.
    pub fn time_shares(&self) -> Result<Vec<f64>, LossConfigError> {
        self.validate_shape()?;
        let mut shares =
            stationary(self.jump_matrix()).ok_or(LossConfigError::StatesNotConnected)?;
        for (share, state) in shares.iter_mut().zip(&self.states) {
            *share *= state.mean_dwell.as_secs_f64();
        }
        normalise(&mut shares);
        Ok(shares)
    }

    /// The long-run mean loss over time.
    ///
    /// # Errors
    /// The errors of [`time_shares`](Self::time_shares).
    pub fn mean_loss(&self) -> Result<Probability, LossConfigError> {
        let shares = self.time_shares()?;
        let mean = shares.iter().zip(&self.states).map(|(share, s)| share * s.loss.get()).sum();
        Ok(Probability::clamped(mean))
    }

    /// The jump matrix, or the default matrix if `jumps` is `None`.
    pub(super) fn jump_matrix(&self) -> Vec<Vec<f64>> {
        let n = self.states.len();
        self.jumps.clone().unwrap_or_else(|| {
            let others = 1.0 / (n.max(2) - 1) as f64;
            let row = |i| (0..n).map(move |j| if i == j && n > 1 { 0.0 } else { others }).collect();
            (0..n).map(row).collect()
        })
    }

    fn validate_shape(&self) -> Result<(), LossConfigError> {
        let n = self.states.len();
        if n == 0 || n > MAX_STATES {
            return Err(LossConfigError::StateCount(n));
        }
        for state in &self.states {
            if !(MIN_DWELL..=MAX_DWELL).contains(&state.mean_dwell) {
                return Err(LossConfigError::Dwell(state.mean_dwell));
            }
        }
        let Some(jumps) = &self.jumps else { return Ok(()) };
        if jumps.len() != n {
            return Err(LossConfigError::JumpMatrix);
        }
        for row in jumps {
            let sum: f64 = row.iter().sum();
            let valid = row.len() == n
                && row.iter().all(|p| (0.0..=1.0).contains(p))
                && (sum - 1.0).abs() <= ROW_TOLERANCE;
            if !valid {
                return Err(LossConfigError::JumpMatrix);
            }
        }
        Ok(())
    }
}

/// The stationary distribution of the chain `p`, or `None` if some state cannot reach state 0.
///
/// This is the elimination of one state after the other by Grassmann, Taksar and Heyman (1985),
/// which needs no subtraction and so loses no digits.
fn stationary(mut p: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let n = p.len();
    for k in (1..n).rev() {
        let leave: f64 = p[k][..k].iter().sum();
        if leave <= 0.0 {
            return None;
        }
        let (rest, last) = p.split_at_mut(k);
        for row in rest {
            row[k] /= leave;
            let weight = row[k];
            for (entry, step) in row[..k].iter_mut().zip(&last[0]) {
                *entry += weight * step;
            }
        }
    }
    let mut share = vec![0.0; n];
    share[0] = 1.0;
    for k in 1..n {
        share[k] = (0..k).map(|i| share[i] * p[i][k]).sum();
    }
    normalise(&mut share);
    Some(share)
}

fn normalise(weights: &mut [f64]) {
    let total: f64 = weights.iter().sum();
    for weight in weights {
        *weight /= total;
    }
}

/// An error in a loss process's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LossConfigError {
    /// Both transition probabilities of a Gilbert–Elliott model are zero.
    StatesNeverLeft,
    /// A Markov model has no state or too many.
    StateCount(usize),
    /// A mean dwell time is too short or too long.
    Dwell(Duration),
    /// The jump matrix is not square, has an entry outside `[0, 1]`, or has a row whose sum is not
    /// one.
    JumpMatrix,
    /// Some state cannot reach the first one, so the stationary distribution may not be unique.
    StatesNotConnected,
    /// A link's position in its group is zero or beyond the end of the group.
    Position(u32),
    /// The time slot of a shared draw is too short or too long.
    Slot(Duration),
    /// The base of a correlated loss is itself correlated, or its state changes with packets.
    CorrelatedBase,
    /// A loss of exactly 0 or 1 cannot be correlated with anything.
    JointLoss,
    /// The correlation matrix is not square, not symmetric, has an entry other than one on its
    /// diagonal, or an entry outside `[0, 1]`.
    CorrelationMatrix,
    /// Two links cannot have this correlation, because their loss probabilities differ too much.
    PairCorrelation {
        /// The links, counted from 1.
        links: (usize, usize),
        /// The largest correlation they could have, in thousandths, rounded down.
        largest_permille: u16,
    },
    /// Each pair of links could have its correlation, but not all pairs at once.
    NoJointLoss,
    /// A trace of outcomes is empty.
    EmptyTrace,
}

impl fmt::Display for LossConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LossConfigError::StatesNeverLeft => {
                f.write_str("one of the two transition probabilities must be above 0%")
            }
            LossConfigError::StateCount(n) => {
                write!(f, "{n} states given; 1 to {MAX_STATES} are allowed")
            }
            LossConfigError::Dwell(dwell) => {
                write!(f, "a mean dwell of {dwell:?} is outside 1us to 10 days")
            }
            LossConfigError::JumpMatrix => f.write_str(
                "the jump matrix needs one row and one column for each state, \
                 entries from 0 to 1 and rows that sum to 1",
            ),
            LossConfigError::StatesNotConnected => {
                f.write_str("the first state must be reachable from every other")
            }
            LossConfigError::Position(position) => {
                write!(f, "position {position} is not in the group; 1 to {MAX_GROUP} are allowed")
            }
            LossConfigError::Slot(slot) => {
                write!(f, "a time slot of {slot:?} is outside 1us to 1 day")
            }
            LossConfigError::CorrelatedBase => f.write_str(
                "only constant, scheduled and markov losses can be correlated between links",
            ),
            LossConfigError::JointLoss => {
                f.write_str("correlated losses must be above 0% and below 100%")
            }
            LossConfigError::CorrelationMatrix => f.write_str(
                "the correlation matrix needs one row and one column for each link, must be \
                 symmetric, with ones on its diagonal and entries from 0 to 1",
            ),
            LossConfigError::PairCorrelation { links: (i, j), largest_permille } => {
                let largest = f64::from(*largest_permille) / 1000.0;
                write!(f, "links {i} and {j} can have a correlation of {largest} at most")
            }
            LossConfigError::NoJointLoss => {
                f.write_str("no losses have all these correlations at once")
            }
            LossConfigError::EmptyTrace => f.write_str("a trace needs at least one entry"),
        }
    }
}

impl core::error::Error for LossConfigError {}
