//! The sweep of the results, and which of its keys is along the horizontal axis.

use crate::tables::Points;

/// The points of a sweep, and the chosen axis.
#[derive(Debug)]
pub struct Sweep {
    keys: Vec<String>,
    points: Vec<(usize, Vec<String>)>,
    /// Index of the key along the axis.
    x: Option<usize>,
}

impl Sweep {
    /// The sweep with the key `x` along the axis, or with the first key that takes several values.
    ///
    /// # Errors
    /// When there is no such key. The error is one line.
    pub fn new(points: &Points, x: Option<&str>) -> Result<Self, String> {
        let keys = points.keys.clone();
        let table: Vec<(usize, Vec<String>)> =
            points.values.iter().map(|(index, values)| (*index, values.clone())).collect();
        let varies = |index: usize| {
            let first = table.first().and_then(|(_, values)| values.get(index));
            table.iter().any(|(_, values)| values.get(index) != first)
        };
        let x = match x {
            Some(name) => Some(keys.iter().position(|key| key == name).ok_or_else(|| {
                let known = if keys.is_empty() { "no sweep".to_owned() } else { keys.join(", ") };
                format!("there is no sweep key '{name}'; there is: {known}")
            })?),
            None => (0..keys.len()).find(|index| varies(*index)),
        };
        Ok(Sweep { keys, points: table, x })
    }

    /// Whether there is no key along the axis, because no key takes several values.
    pub(super) fn is_empty(&self) -> bool {
        self.x.is_none()
    }

    /// How many points there are.
    pub(super) fn len(&self) -> usize {
        self.points.len()
    }

    /// The indices of the points.
    pub(super) fn points(&self) -> Vec<usize> {
        self.points.iter().map(|(index, _)| *index).collect()
    }

    /// The label of the axis: the key, with the unit that all of its values have.
    pub(super) fn axis(&self) -> String {
        let Some((key, unit)) = self.x.and_then(|x| Some((self.keys.get(x)?, self.unit(x)))) else {
            return String::new();
        };
        let key = key.replace('_', " ");
        match unit {
            Some(unit) if !unit.is_empty() => format!("{key} ({unit})"),
            _ => key,
        }
    }

    /// Each point's place on the axis; `None` if the values are not all numbers with the same unit.
    pub(super) fn numbers(&self) -> Option<Vec<(usize, f64)>> {
        let x = self.x?;
        self.unit(x)?;
        let number =
            |(index, values): &(usize, Vec<String>)| Some((*index, split(values.get(x)?)?.0));
        self.points.iter().map(number).collect()
    }

    /// Name of a point, such as `loss = 5%, paths = 2`.
    pub(super) fn name(&self, point: usize) -> String {
        self.pairs(point, |_| true)
    }

    /// Version of [`name`](Self::name) without the key along the axis.
    pub(super) fn others(&self, point: usize) -> String {
        self.pairs(point, |index| Some(index) != self.x)
    }

    /// The names of the keys that take several values, for an axis of [`values`](Self::values).
    pub(super) fn varying(&self) -> String {
        let keys = self.keys.iter().enumerate().filter(|(index, _)| self.varies(*index));
        keys.map(|(_, key)| key.replace('_', " ")).collect::<Vec<_>>().join(", ")
    }

    /// The values of the varying keys at a point, such as `tcp:sack, 5%`.
    pub(super) fn values(&self, point: usize) -> String {
        let found = self.points.iter().find(|(index, _)| *index == point);
        let values = found.into_iter().flat_map(|(_, values)| values.iter().enumerate());
        let varying = values.filter(|(index, _)| self.varies(*index));
        varying.map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(", ")
    }

    fn varies(&self, key: usize) -> bool {
        let first = self.points.first().and_then(|(_, values)| values.get(key));
        self.points.iter().any(|(_, values)| values.get(key) != first)
    }

    fn pairs(&self, point: usize, keep: impl Fn(usize) -> bool) -> String {
        let values =
            self.points.iter().find(|(index, _)| *index == point).map(|(_, v)| v.as_slice());
        let pairs = self.keys.iter().zip(values.unwrap_or_default()).enumerate();
        let kept = pairs.filter(|(index, _)| keep(*index));
        kept.map(|(_, (key, value))| format!("{key} = {value}")).collect::<Vec<_>>().join(", ")
    }

    /// The unit, possibly empty, that all values of a key have; `None` if units differ or a value
    /// is not a number.
    fn unit(&self, key: usize) -> Option<&str> {
        let mut units = self.points.iter().map(|(_, values)| Some(split(values.get(key)?)?.1));
        let first = units.next()??;
        units.all(|unit| unit == Some(first)).then_some(first)
    }
}

/// Splits a value into number and unit: `5%` gives 5 and `%`.
fn split(value: &str) -> Option<(f64, &str)> {
    let end = value
        .char_indices()
        .find(|(index, c)| !(c.is_ascii_digit() || *c == '.' || (*index == 0 && "+-".contains(*c))))
        .map_or(value.len(), |(index, _)| index);
    let (number, unit) = value.split_at(end);
    let plain = unit.chars().all(|c| c.is_ascii_alphabetic() || c == '%');
    // `1e-3` has an exponent, not a unit.
    if let Ok(number) = value.parse::<f64>() {
        return number.is_finite().then_some((number, ""));
    }
    let number = number.parse::<f64>().ok().filter(|number| number.is_finite())?;
    plain.then_some((number, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbers_with_units() {
        assert_eq!(split("5%"), Some((5.0, "%")));
        assert_eq!(split("1e-3"), Some((1e-3, "")));
        assert_eq!(split("12.5mbit"), Some((12.5, "mbit")));
        for text in ["", "tcp:sack", "ge:1%/20%", "5%/20%@10s", "inf", "NaN"] {
            assert_eq!(split(text), None, "{text}");
        }
    }
}
