//! Helpers that the estimators share: counts by path, smoothed fractions, and a bounded table of blocks.

use anabranch_types::PathId;
use std::collections::BTreeMap;

use crate::view::{BlockId, LossView};

/// The most blocks that are remembered; the oldest are dropped first.
const MAX_BLOCKS: usize = 1024;

/// The most paths that are remembered; those that appeared first are dropped first. Far fewer paths
/// are open.
const MAX_PATH_ENTRIES: usize = 4 * crate::view::MAX_PATHS;

/// Packets whose fate is known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    pub(super) acked: u64,
    pub(super) lost: u64,
}

impl Count {
    pub(super) fn add(&mut self, acked: u32, lost: u32) {
        self.acked = self.acked.saturating_add(u64::from(acked));
        self.lost = self.lost.saturating_add(u64::from(lost));
    }

    pub(super) fn total(&self) -> u64 {
        self.acked.saturating_add(self.lost)
    }

    /// Lost share, 0 if nothing is counted.
    pub(super) fn fraction(&self) -> f64 {
        self.lost as f64 / self.total().max(1) as f64
    }

    /// The lost share as an estimate, with the deviation of a binomial share of this many packets.
    pub(super) fn view(&self) -> LossView {
        let mean = self.fraction();
        let variance = mean * (1.0 - mean) / self.total().max(1) as f64;
        LossView { mean, deviation: variance.sqrt() }
    }
}

/// Counts by path. A list is faster than a map because there are few paths.
#[derive(Clone, Debug, Default)]
pub(super) struct ByPath<T>(Vec<(PathId, T)>);

impl<T: Default> ByPath<T> {
    pub(super) fn entry(&mut self, path: PathId) -> &mut T {
        let index = match self.0.iter().position(|(id, _)| *id == path) {
            Some(index) => index,
            None => {
                if self.0.len() >= MAX_PATH_ENTRIES {
                    self.0.remove(0);
                }
                self.0.push((path, T::default()));
                self.0.len() - 1
            }
        };
        &mut self.0[index].1
    }

    pub(super) fn find(&self, path: PathId) -> Option<&T> {
        self.0.iter().find(|(id, _)| *id == path).map(|(_, value)| value)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(PathId, T)> {
        self.0.iter()
    }
}

/// Values by block, kept for the newest blocks only.
#[derive(Clone, Debug)]
pub(super) struct ByBlock<T>(BTreeMap<BlockId, T>);

impl<T> Default for ByBlock<T> {
    fn default() -> Self {
        ByBlock(BTreeMap::new())
    }
}

impl<T: Default> ByBlock<T> {
    pub(super) fn entry(&mut self, id: BlockId) -> &mut T {
        while self.0.len() >= MAX_BLOCKS && !self.0.contains_key(&id) {
            self.0.pop_first();
        }
        self.0.entry(id).or_default()
    }
}

/// MPLOT's smoothing with gain 1/2 and the variance of eq. 3. Before the first update, the counts so far give the
/// estimate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Smoothed {
    /// Mean and variance, once there has been an update.
    state: Option<(f64, f64)>,
    /// Everything counted so far, which gives the estimate before the first update.
    seen: Count,
}

/// The mean from which eq. 3 takes the squared distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VarianceFrom {
    /// The mean before the update: how far the estimate was off when it was used.
    Prior,
    /// The mean after the update, as in the order of MPLOT's text. At gain 1/2 this gives a quarter
    /// of the variance of `Prior`; a quarter to a third of blocks then have too few repairs, where
    /// with `Prior` a sixth have.
    Updated,
}

/// The smoothing gain of MPLOT §III-A.
const GAIN: f64 = 0.5;

impl Smoothed {
    pub(super) fn see(&mut self, acked: u32, lost: u32) {
        if self.state.is_none() {
            self.seen.add(acked, lost);
        }
    }

    /// One smoothing step (MPLOT eqs 2 and 3). The first sample sets the mean; its variance is the
    /// binomial one for the packets seen.
    pub(super) fn update(&mut self, fraction: f64, from: VarianceFrom) {
        let fraction = fraction.clamp(0.0, 1.0);
        self.state = Some(match self.state {
            None => {
                let first = self.seen.view().deviation;
                (fraction, first * first)
            }
            Some((mean, variance)) => {
                let updated = mean + GAIN * (fraction - mean);
                let reference = match from {
                    VarianceFrom::Prior => mean,
                    VarianceFrom::Updated => updated,
                };
                let instant = (fraction - reference) * (fraction - reference);
                (updated, variance + GAIN * (instant - variance))
            }
        });
    }

    pub(super) fn view(&self) -> LossView {
        match self.state {
            Some((mean, variance)) => LossView { mean, deviation: variance.max(0.0).sqrt() },
            None => self.seen.view(),
        }
    }
}
