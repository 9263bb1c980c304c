//! The columns of the sweep keys, which every table has.

/// Names that sweep keys cannot have.
const FIXED: [&str; 7] = ["point", "seed", "subject", "metric", "time_s", "index", "value"];

/// The columns of a sweep's keys, in the order of the axes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepColumns(Vec<SweepColumn>);

/// The column of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepColumn {
    /// The sweep key.
    pub key: String,
    /// The column's name: letters, digits and underscores; unique among the columns.
    pub name: String,
    /// Whether the column holds numbers, because the value at every point is a finite number.
    pub is_number: bool,
}

impl SweepColumns {
    /// The columns for points with these keys and values.
    pub fn of(points: &[Vec<(String, String)>]) -> Self {
        let first = points.first().map(Vec::as_slice).unwrap_or_default();
        let is_number = |index: usize| {
            let mut values = points.iter().filter_map(|point| point.get(index));
            values.all(|(_, value)| value.parse::<f64>().is_ok_and(f64::is_finite))
        };
        let keys = first.iter().enumerate();
        SweepColumns::new(keys.map(|(index, (key, _))| (key.as_str(), is_number(index))))
    }

    /// The columns for these keys; each key comes with whether its column holds numbers.
    pub fn new<'a>(keys: impl Iterator<Item = (&'a str, bool)>) -> Self {
        let mut columns: Vec<SweepColumn> = Vec::new();
        for (key, is_number) in keys {
            let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
            let mut name: String = key.chars().map(plain).collect();
            while FIXED.contains(&name.as_str()) || columns.iter().any(|other| other.name == name) {
                name.push('_');
            }
            columns.push(SweepColumn { key: key.to_owned(), name, is_number });
        }
        SweepColumns(columns)
    }

    /// The columns in their order.
    pub fn iter(&self) -> impl Iterator<Item = &SweepColumn> {
        self.0.iter()
    }

    /// Whether the column of that index holds numbers.
    pub fn is_number(&self, index: usize) -> bool {
        self.0.get(index).is_some_and(|column| column.is_number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_names_of_their_own_and_hold_numbers_where_all_are() {
        let point = |loss: &str, paths: &str| {
            let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
            vec![
                pair("loss", loss),
                pair("path.p", paths),
                pair("path-p", "1e3"),
                pair("seed", "inf"),
            ]
        };
        let columns = SweepColumns::of(&[point("1", "2"), point("2%", "-3.5")]);
        let found: Vec<_> = columns.iter().map(|c| (c.name.as_str(), c.is_number)).collect();
        let expected = [("loss", false), ("path_p", true), ("path_p_", true), ("seed_", false)];
        assert_eq!(found, expected);
        assert!(!columns.is_number(4));
        assert_eq!(SweepColumns::of(&[Vec::new()]), SweepColumns::default());
    }
}
