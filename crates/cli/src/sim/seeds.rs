//! `--seeds`: a number of seeds, or a range.

use std::ops::RangeInclusive;
use std::str::FromStr;

/// Seeds that are asked for: at most ten million.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    first: u64,
    last: u64,
}

/// More seeds than this are surely a mistake.
const MOST: u64 = 10_000_000;

impl Seeds {
    /// Every seed, in ascending order.
    pub(super) fn all(self) -> Vec<u64> {
        RangeInclusive::new(self.first, self.last).collect()
    }
}

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (first, last) = match text.split_once('-') {
            Some((first, last)) => (first.parse().ok(), last.parse().ok()),
            None => (Some(1), text.parse().ok()),
        };
        let (Some(first), Some(last)) = (first, last) else {
            return Err("a number of seeds, such as 20, or a range, such as 21-40".to_owned());
        };
        match (first <= last).then(|| last - first) {
            None if text.contains('-') => {
                Err(format!("the range is empty: {last} is below {first}"))
            }
            None => Err("at least one seed is needed".to_owned()),
            Some(more) if more >= MOST => Err(format!("more than {MOST} seeds")),
            Some(_) => Ok(Seeds { first, last }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_counted_or_ranged() {
        let all = |text: &str| text.parse::<Seeds>().map(Seeds::all);
        assert_eq!(all("3"), Ok(vec![1, 2, 3]));
        assert_eq!(all("7-9"), Ok(vec![7, 8, 9]));
        assert_eq!(all("0-0"), Ok(vec![0]));
        assert_eq!(all("18446744073709551615-18446744073709551615"), Ok(vec![u64::MAX]));
        for (wrong, why) in [
            ("0", "at least one"),
            ("9-7", "7 is below 9"),
            ("", "such as 20"),
            ("-3", "such as 20"),
            ("1-", "such as 20"),
            ("1,2", "such as 20"),
            ("0-99999999999", "more than"),
        ] {
            let error = all(wrong).unwrap_err();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }
}
