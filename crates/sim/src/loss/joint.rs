use core::time::Duration;

use anabranch_types::{Probability, Time, math};

use super::correlated::{MAX_GROUP, SlotDraws, valid_slot};
use super::{LossConfigError, LossModel};

/// Losses of a group of links with a given non-negative correlation matrix, if such losses exist
/// (Park, Park and Shin 1996).
///
/// The configuration of every link describes the whole group: all losses, all correlations and the
/// link's own position. Losses are constant. For a loss that changes with time, use the chain of
/// [`CorrelatedConfig`](super::CorrelatedConfig).
#[derive(Clone, Debug, PartialEq)]
pub struct JointConfig {
    /// Name of the group. Links with the same group name share their draws.
    pub group: String,
    /// This link's position in `losses`, counted from 1.
    pub position: u32,
    /// The loss probability of every link, above 0 and below 1; 1 to [`MAX_GROUP`] links.
    pub losses: Vec<Probability>,
    /// The correlation matrix: symmetric, with ones on the diagonal and entries in `[0, 1]`.
    pub correlation: Vec<Vec<f64>>,
    /// How long one draw is valid, 1 µs to 1 day; choose about the transmission time of a packet.
    pub slot: Duration,
}

/// A cause that prevents losses on several links at once: in a slot in which its Poisson draw is
/// not zero, none of its members loses a packet.
#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    /// Mean of the component's Poisson draw per slot.
    pub mean: f64,
    /// The links that the component reaches, counted from 0.
    pub members: Vec<usize>,
}

/// Smaller means are treated as rounding errors of the construction.
const NOISE: f64 = 1e-12;

impl JointConfig {
    /// The matrix θ^|i − j| for `links` links.
    pub fn powers(theta: Probability, links: usize) -> Vec<Vec<f64>> {
        let entry = |i: usize, j: usize| math::pow(theta.get(), i.abs_diff(j) as f64);
        (0..links).map(|i| (0..links).map(|j| entry(i, j)).collect()).collect()
    }

    /// The Poisson components. For each link i, the sum Yᵢ of its components is zero, which means a
    /// loss, with probability pᵢ, and the losses have the given correlations.
    ///
    /// With q = 1 − p, two links share the mean aᵢⱼ = ln(1 + ρᵢⱼ·√(qᵢqⱼ/(pᵢpⱼ))), and each link has
    /// the mean aᵢᵢ = −ln pᵢ. In each step, the smallest positive mean becomes a component and is
    /// subtracted from all means of a maximal set of links that still share a mean pairwise, until
    /// no mean is left.
    ///
    /// # Errors
    /// When a parameter is out of its range, a pair of links cannot have its correlation, or all
    /// pairs cannot have theirs at once.
    pub fn components(&self) -> Result<Vec<Component>, LossConfigError> {
        self.validate_shape()?;
        self.validate_pairs()?;
        let mut shared = self.shared_means();
        let mut components = Vec::new();
        while let Some((r, s)) = least_positive(&shared) {
            let mean = shared[r][s];
            if shared[r][r] < NOISE || shared[s][s] < NOISE {
                return Err(LossConfigError::NoJointLoss);
            }
            let members = clique(&shared, r, s);
            for i in &members {
                for j in &members {
                    let left = shared[*i][*j] - mean;
                    shared[*i][*j] = if left < NOISE { 0.0 } else { left };
                }
            }
            components.push(Component { mean, members });
        }
        Ok(components)
    }

    fn shared_means(&self) -> Vec<Vec<f64>> {
        let p: Vec<f64> = self.losses.iter().map(|loss| loss.get()).collect();
        let mean = |i: usize, j: usize| {
            if i == j {
                return -math::ln(p[i]);
            }
            let odds = (1.0 - p[i]) * (1.0 - p[j]) / (p[i] * p[j]);
            math::ln(1.0 + self.correlation[i][j] * math::sqrt(odds))
        };
        (0..p.len()).map(|i| (0..p.len()).map(|j| mean(i, j)).collect()).collect()
    }

    fn validate_shape(&self) -> Result<(), LossConfigError> {
        let n = self.losses.len();
        if !(1..=n).contains(&(self.position as usize)) || n > MAX_GROUP as usize {
            return Err(LossConfigError::Position(self.position));
        }
        valid_slot(self.slot)?;
        if self.losses.iter().any(|p| *p == Probability::ZERO || *p == Probability::ONE) {
            return Err(LossConfigError::JointLoss);
        }
        let square = self.correlation.len() == n && self.correlation.iter().all(|r| r.len() == n);
        let valid = square
            && (0..n).all(|i| self.correlation[i][i] == 1.0)
            && (0..n).all(|i| (0..i).all(|j| self.correlation[i][j] == self.correlation[j][i]))
            && self.correlation.iter().flatten().all(|rho| (0.0..=1.0).contains(rho));
        if valid { Ok(()) } else { Err(LossConfigError::CorrelationMatrix) }
    }

    /// The probability that both links lose a packet is at most the smaller of their loss
    /// probabilities, so no correlation may exceed (min(pᵢ, pⱼ) − pᵢpⱼ)/√(pᵢqᵢpⱼqⱼ).
    fn validate_pairs(&self) -> Result<(), LossConfigError> {
        for (j, second) in self.losses.iter().enumerate() {
            for (i, first) in self.losses.iter().enumerate().take(j) {
                let largest = largest_correlation(*first, *second);
                if self.correlation[i][j] > largest + NOISE {
                    let largest_permille = (largest * 1000.0).floor() as u16;
                    let links = (i + 1, j + 1);
                    return Err(LossConfigError::PairCorrelation { links, largest_permille });
                }
            }
        }
        Ok(())
    }
}

/// The largest correlation that losses of these probabilities can have, both in `(0, 1)`.
pub fn largest_correlation(first: Probability, second: Probability) -> f64 {
    let (p, r) = (first.get(), second.get());
    (p.min(r) - p * r) / math::sqrt(p * (1.0 - p) * r * (1.0 - r))
}

/// Row and column of the smallest entry that is not a rounding error; the first one if several are
/// equal.
fn least_positive(shared: &[Vec<f64>]) -> Option<(usize, usize)> {
    let upper = (0..shared.len()).flat_map(|i| (i..shared.len()).map(move |j| (i, j)));
    upper
        .filter(|(i, j)| shared[*i][*j] >= NOISE)
        .min_by(|(i, j), (k, l)| shared[*i][*j].total_cmp(&shared[*k][*l]))
}

/// Starts with `r` and `s`, and adds every link that shares a mean with all links of the set so
/// far.
fn clique(shared: &[Vec<f64>], r: usize, s: usize) -> Vec<usize> {
    let mut members = vec![r];
    if s != r {
        members.push(s);
    }
    for (k, row) in shared.iter().enumerate() {
        let joins =
            !members.contains(&k) && row[k] >= NOISE && members.iter().all(|l| row[*l] >= NOISE);
        if joins {
            members.push(k);
        }
    }
    members
}

/// The process of a [`JointConfig`] on one link.
#[derive(Clone, Debug)]
pub struct Joint {
    loss: Probability,
    /// The components that reach this link: the number in the group, and the probability that the
    /// component's Poisson draw is zero.
    spared: Vec<(u32, f64)>,
    draws: SlotDraws,
}

impl Joint {
    /// The process of `config` with draws from `seed`.
    ///
    /// # Errors
    /// The errors of [`JointConfig::components`].
    pub fn new(config: &JointConfig, seed: u64) -> Result<Self, LossConfigError> {
        let own = config.position as usize - 1;
        let spared = (0_u32..)
            .zip(config.components()?)
            .filter(|(_, component)| component.members.contains(&own))
            .map(|(number, component)| (number, math::exp(-component.mean)))
            .collect();
        let draws = SlotDraws::new(seed, &config.group, config.slot);
        Ok(Joint { loss: config.losses[own], spared, draws })
    }
}

impl LossModel for Joint {
    fn is_lost(&mut self, now: Time) -> bool {
        // It only matters whether a Poisson draw is zero, which has the probability e^−mean.
        self.spared.iter().all(|(number, chance)| self.draws.uniform(now, *number) < *chance)
    }

    fn probability(&mut self, _now: Time) -> Probability {
        self.loss
    }

    fn next_change(&self) -> Time {
        Time::MAX
    }
}
