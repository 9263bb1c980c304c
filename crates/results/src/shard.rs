//! Divides a sweep into parts for several machines.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::str::FromStr;

/// One of several parts of a sweep: part `number`, counted from 1, of `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    number: u32,
    count: u32,
}

/// Most parts. A larger number is certainly a mistake.
const MOST: u32 = 1_000_000;

impl Shard {
    /// The part with that number, counted from 1; `None` if there is no such part or there are more
    /// than a million parts.
    pub fn new(number: u32, count: u32) -> Option<Self> {
        (number >= 1 && number <= count && count <= MOST).then_some(Shard { number, count })
    }

    /// The number of the part, counted from 1.
    pub fn number(self) -> u32 {
        self.number
    }

    /// How many parts there are.
    pub fn count(self) -> u32 {
        self.count
    }

    /// The indices into `costs` that [`divide`] gives to this part, in rising order.
    pub fn choose(self, costs: &[f64]) -> Vec<usize> {
        let number = self.number as usize - 1;
        divide(costs, self.count).into_iter().nth(number).unwrap_or_default()
    }
}

/// Divides items of these costs, in seconds, into `count` parts of about the same cost. Every index
/// is in exactly one part, and the indices of a part rise.
pub fn divide(costs: &[f64], count: u32) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..costs.len()).collect();
    let cost = |place: &usize| nanoseconds(costs.get(*place).copied().unwrap_or_default());
    // Items are assigned in the order of falling cost, each to the part with the least load. The
    // largest load is then at most a third above the optimum (R. L. Graham, Bounds on
    // Multiprocessing Timing Anomalies, 1969, theorem 2).
    order.sort_by_key(|place| (Reverse(cost(place)), *place));
    let mut parts = vec![Vec::new(); count as usize];
    let mut loads: BinaryHeap<Reverse<(u64, usize)>> =
        (0..parts.len()).map(|part| Reverse((0, part))).collect();
    for place in order {
        let Some(Reverse((load, number))) = loads.pop() else { break };
        parts.get_mut(number).into_iter().for_each(|part| part.push(place));
        loads.push(Reverse((load.saturating_add(cost(&place)), number)));
    }
    parts.iter_mut().for_each(|part| part.sort_unstable());
    parts
}

/// The cost in nanoseconds, at least 1, so that items without cost are spread evenly too.
fn nanoseconds(seconds: f64) -> u64 {
    ((seconds * 1e9) as u64).max(1)
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.count)
    }
}

impl FromStr for Shard {
    type Err = String;

    /// Reads a part in the form `3/7`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once('/').and_then(|(number, count)| {
            Some((number.parse::<u32>().ok()?, count.parse::<u32>().ok()?))
        });
        match parts {
            Some((number, count)) => Shard::new(number, count).ok_or_else(|| match number {
                0 => format!("there is no part 0: parts are counted from 1, such as 1/{count}"),
                _ if count > MOST => format!("{count} parts are too many: at most {MOST}"),
                _ => format!("there is no part {number} of {count}"),
            }),
            None => Err("a part is K/N, such as 3/7".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_have_everything_once_and_cost_about_the_same(
            costs in prop::collection::vec(0.0..10.0f64, 0..200), count in 1..20u32,
        ) {
            let mut all = Vec::new();
            let mut loads = Vec::new();
            for number in 1..=count {
                let chosen = Shard::new(number, count).unwrap().choose(&costs);
                prop_assert!(chosen.is_sorted());
                loads.push(chosen.iter().map(|place| costs[*place]).sum::<f64>());
                all.extend(chosen);
            }
            all.sort_unstable();
            prop_assert_eq!(all, (0..costs.len()).collect::<Vec<_>>());
            let mean = costs.iter().sum::<f64>() / f64::from(count);
            let longest = costs.iter().copied().fold(0.0, f64::max);
            let most = loads.into_iter().fold(0.0, f64::max);
            prop_assert!(most <= mean + longest + 1e-6, "{} {} {}", most, mean, longest);
        }
    }

    #[test]
    fn parts_are_written_as_a_fraction() {
        let shard: Shard = "3/7".parse().unwrap();
        assert_eq!((shard.number(), shard.count(), shard.to_string().as_str()), (3, 7, "3/7"));
        for (wrong, why) in [
            ("0/7", "counted from 1"),
            ("8/7", "no part 8 of 7"),
            ("1/0", "no part 1 of 0"),
            ("1/2000000", "at most 1000000"),
            ("3", "K/N"),
            ("-1/3", "K/N"),
            ("1/3/5", "K/N"),
        ] {
            let error = wrong.parse::<Shard>().unwrap_err();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }

    #[test]
    fn equal_runs_are_dealt_out_evenly() {
        let sizes: Vec<usize> =
            (1..=7).map(|k| Shard::new(k, 7).unwrap().choose(&[0.5; 100]).len()).collect();
        assert_eq!(sizes.iter().sum::<usize>(), 100);
        assert!(sizes.iter().all(|size| (14..=15).contains(size)), "{sizes:?}");
    }
}
