//! Averages figures over runs, and computes confidence intervals.

use super::grid::Grid;
use crate::scenario::error::Flaw;
use crate::scenario::reader::Section;
use crate::stats::{Estimate, mean};

/// The keys over which figures are averaged before a quantity is computed.
#[derive(Clone, Debug, Default)]
pub(in crate::scenario) struct Average {
    /// Keys of the sweep.
    pub keys: Vec<String>,
    /// Whether figures are also averaged over seeds. A ratio is then the ratio of the averages, and
    /// its confidence interval comes from the jackknife over seeds.
    seeds: bool,
}

/// The runs whose figures a formula uses at a point; the formula uses the mean over these runs.
#[derive(Clone, Copy, Debug)]
pub(in crate::scenario) struct Sample<'a> {
    /// Keys of the sweep over whose values figures are averaged.
    pub keys: &'a [String],
    seeds: Seeds,
}

#[derive(Clone, Copy, Debug)]
enum Seeds {
    One(usize),
    /// All seeds, or all but one.
    AllBut(Option<usize>),
}

impl Sample<'_> {
    /// The seeds of this sample, out of `count`.
    pub(in crate::scenario) fn seeds(self, count: usize) -> impl Iterator<Item = usize> {
        (0..count).filter(move |seed| match self.seeds {
            Seeds::One(only) => *seed == only,
            Seeds::AllBut(without) => Some(*seed) != without,
        })
    }
}

impl Average {
    /// Reads the key `average`. If the sweep is complete (`whole`), unknown sweep keys are
    /// reported.
    pub(in crate::scenario) fn read(section: &Section<'_>, grid: &Grid, whole: bool) -> Average {
        let mut average = Average::default();
        for (key, place) in section.names("average").unwrap_or_default() {
            if key == "seed" {
                average.seeds = true;
            } else if grid.axis(&key).is_some() {
                average.keys.push(key);
            } else if whole {
                let axes = grid.axes.iter().map(|axis| axis.name.as_str());
                let known: Vec<&str> = core::iter::once("seed").chain(axes).collect();
                let path = section.path_of("average");
                section.report(Flaw::unknown(place, path, "sweep key", &key, &known));
            }
        }
        average
    }

    fn sample(&self, seeds: Seeds) -> Sample<'_> {
        Sample { keys: &self.keys, seeds }
    }

    /// The estimate over `count` seeds with its confidence interval: the mean of the values of the
    /// seeds or, if seeds are averaged first, the value of the means.
    pub(in crate::scenario) fn estimate(
        &self,
        count: usize,
        of: impl Fn(Sample<'_>) -> Option<f64>,
    ) -> Option<Estimate> {
        if self.seeds {
            return jackknife(count, |without| of(self.sample(Seeds::AllBut(without))));
        }
        let values = (0..count).map(|seed| of(self.sample(Seeds::One(seed))));
        Estimate::of(&values.collect::<Option<Vec<f64>>>()?)
    }

    /// The value of [`estimate`](Self::estimate), without its interval. The seed `without`, if
    /// given, is left out.
    pub(in crate::scenario) fn mean(
        &self,
        count: usize,
        without: Option<usize>,
        of: impl Fn(Sample<'_>) -> Option<f64>,
    ) -> Option<f64> {
        let all = self.sample(Seeds::AllBut(without));
        if self.seeds {
            return of(all);
        }
        let values = all.seeds(count).map(|seed| of(self.sample(Seeds::One(seed))));
        mean(&values.collect::<Option<Vec<f64>>>()?)
    }
}

/// The estimate over `count` seeds, with the confidence interval from leaving out each seed in
/// turn.
pub(in crate::scenario) fn jackknife(
    count: usize,
    of: impl Fn(Option<usize>) -> Option<f64>,
) -> Option<Estimate> {
    let whole = of(None)?;
    if count < 2 {
        return Some(Estimate { n: count, mean: whole, std: 0.0, interval: None });
    }
    let left_out: Option<Vec<f64>> = (0..count).map(|seed| of(Some(seed))).collect();
    Some(Estimate::jackknife(whole, &left_out?))
}
