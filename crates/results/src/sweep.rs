//! A scenario with its seeds: the list of its runs, and their identifiers.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use anabranch_sim::scenario::{Point, Scenario};
use serde::{Deserialize, Serialize};

use crate::{Manifest, Provenance, ResultsError, Shard};

/// Identifies a run of a sweep by its point and seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunId {
    /// Index of the point in the scenario's order.
    pub point: usize,
    /// Seed of the run.
    pub seed: u64,
}

/// Identity of a run: a hash of the scenario with its settings, the values at the run's point, the seed, the
/// version and the commit. 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunKey(u128);

impl RunKey {
    /// The hash of no bytes (the offset basis of FNV-1a over 128 bits), and the prime of that hash.
    const EMPTY: RunKey = RunKey(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

    fn with(self, bytes: &[u8]) -> Self {
        let step = |sum: u128, byte: &u8| (sum ^ u128::from(*byte)).wrapping_mul(Self::PRIME);
        RunKey(bytes.iter().fold(self.0, step))
    }

    /// Adds a text, and a zero byte that separates it from the next text.
    fn with_text(self, text: &str) -> Self {
        self.with(text.as_bytes()).with(&[0])
    }
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for RunKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_key = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let key = is_key.then(|| u128::from_str_radix(text, 16).ok()).flatten();
        key.map(RunKey).ok_or_else(|| format!("'{text}' is no run: not 32 hexadecimal digits"))
    }
}

/// A scenario with its seeds, and the provenance of its results.
#[derive(Clone, Debug)]
pub struct Sweep {
    scenario: Scenario,
    seeds: Vec<u64>,
    provenance: Provenance,
    /// By point: the hash to which the seed is added to give the key of a run.
    points: Vec<RunKey>,
}

impl Sweep {
    /// The runs of a scenario by this build, with the scenario's seeds or with those of `seeds`.
    /// Repeated seeds count once.
    pub fn new(scenario: Scenario, seeds: Option<Vec<u64>>) -> Self {
        let provenance = Provenance::new(
            scenario.name(),
            &scenario.hash(),
            &scenario.settings(),
            scenario.source(),
        );
        let mut seeds = seeds.unwrap_or_else(|| scenario.seeds().to_vec());
        let mut seen = BTreeSet::new();
        seeds.retain(|seed| seen.insert(*seed));
        let points = scenario.points().iter().map(|point| key_of(&provenance, point)).collect();
        Sweep { scenario, seeds, provenance, points }
    }

    /// Reads the sweep whose results a directory holds, with every seed requested there.
    ///
    /// # Errors
    /// When the directory holds no results, or its results were made by another build.
    pub fn of(directory: &Path) -> Result<Self, ResultsError> {
        let manifest = Manifest::of(directory)?;
        let foreign = |what: String| ResultsError::Foreign { path: directory.to_owned(), what };
        let scenario = manifest.source().read().map_err(|mistakes| {
            let first = mistakes.first().map(ToString::to_string).unwrap_or_default();
            foreign(format!("this version cannot read its scenario: {first}"))
        })?;
        let sweep = Sweep::new(scenario, Some(manifest.seeds));
        match sweep.provenance.conflict(&manifest.provenance) {
            None => Ok(sweep),
            Some(what) => Err(foreign(what)),
        }
    }

    /// The scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The seeds, without repetitions.
    pub fn seeds(&self) -> &[u64] {
        &self.seeds
    }

    /// The provenance of the results.
    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    /// This sweep with its seeds and those of `others`. The seeds keep their order if `others` adds
    /// none. They have the scenario's order if they are exactly the scenario's seeds, and rise
    /// otherwise.
    #[must_use]
    pub fn with_seeds(mut self, others: &[u64]) -> Self {
        self.seeds = self.united(others);
        self
    }

    /// The seeds that [`with_seeds`](Self::with_seeds) gives the sweep.
    pub(crate) fn united(&self, others: &[u64]) -> Vec<u64> {
        let mut all: Vec<u64> = self.seeds.iter().chain(others).copied().collect();
        all.sort_unstable();
        all.dedup();
        if all.len() == self.seeds.len() {
            return self.seeds.clone();
        }
        let mut own = self.scenario.seeds().to_vec();
        own.sort_unstable();
        if own == all { self.scenario.seeds().to_vec() } else { all }
    }

    /// Every run: point by point, and seed by seed.
    pub fn runs(&self) -> impl Iterator<Item = RunId> + '_ {
        let points = 0..self.points.len();
        points.flat_map(|point| self.seeds.iter().map(move |seed| RunId { point, seed: *seed }))
    }

    /// The point of a run.
    pub fn point(&self, id: RunId) -> Option<&Point> {
        self.scenario.points().get(id.point)
    }

    /// The key of a run; `None` if there is no such point. The seed need not be one of the sweep's.
    pub fn key(&self, id: RunId) -> Option<RunKey> {
        self.points.get(id.point).map(|point| point.with(&id.seed.to_le_bytes()))
    }

    /// CPU time of a run, s, as [`Scenario::cost`] estimates it.
    pub fn cost(&self, id: RunId) -> f64 {
        self.point(id).map_or(0.0, |point| self.scenario.cost(point))
    }

    /// The runs of one part, where all parts cost about the same.
    pub fn shard(&self, shard: Shard) -> Vec<RunId> {
        let runs: Vec<RunId> = self.runs().collect();
        let costs: Vec<f64> = runs.iter().map(|id| self.cost(*id)).collect();
        shard.choose(&costs).into_iter().filter_map(|index| runs.get(index).copied()).collect()
    }
}

fn key_of(provenance: &Provenance, point: &Point) -> RunKey {
    let Provenance { hash, version, commit, .. } = provenance;
    let texts = [hash, version, commit];
    let key = texts.into_iter().fold(RunKey::EMPTY, |key, text| key.with_text(text));
    let key = key.with(&(point.index as u64).to_le_bytes());
    point.labels.iter().fold(key, |key, (name, value)| key.with_text(name).with_text(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn runs_have_keys_of_their_own() {
        let sweep = testing::sweep(&["1%", "2%"], 3);
        let keys: Vec<RunKey> = sweep.runs().filter_map(|id| sweep.key(id)).collect();
        assert_eq!(keys.len(), 6);
        let mut others = keys.clone();
        for other in [testing::sweep(&["1%", "3%"], 3), testing::sweep(&["2%", "1%"], 3)] {
            others.extend(other.runs().filter_map(|id| other.key(id)));
        }
        let mut newer = sweep.clone();
        newer.provenance.version = "99.0.0".to_owned();
        newer.points =
            newer.scenario.points().iter().map(|p| key_of(&newer.provenance, p)).collect();
        others.extend(newer.runs().filter_map(|id| newer.key(id)));
        let all = others.len();
        others.sort_unstable();
        others.dedup();
        assert_eq!(others.len(), all);
        let text = keys[0].to_string();
        assert_eq!(text.parse(), Ok(keys[0]));
        for wrong in ["", "x", &text[1..], &format!("+{}", &text[1..])] {
            assert!(wrong.parse::<RunKey>().unwrap_err().contains("32 hexadecimal"), "{wrong}");
        }
        assert_eq!(sweep.key(RunId { point: 2, seed: 1 }), None);
    }

    #[test]
    fn seeds_are_united_in_one_order() {
        let sweep = testing::sweep(&["1%"], 3);
        assert_eq!(sweep.clone().with_seeds(&[2, 9, 5]).seeds(), [1, 2, 3, 5, 9]);
        let part = |seeds: &[u64]| Sweep::new(sweep.scenario().clone(), Some(seeds.to_vec()));
        assert_eq!(part(&[3, 3, 1]).seeds(), [3, 1]);
        assert_eq!(part(&[3]).with_seeds(&[2]).with_seeds(&[1]).seeds(), [1, 2, 3]);
        let mut scenario = sweep.scenario().clone();
        scenario.set("seeds=[5,3,4]").unwrap();
        let all = Sweep::new(scenario.clone(), Some(vec![4])).with_seeds(&[3, 5]);
        assert_eq!(all.seeds(), [5, 3, 4]);
    }
}
