//! The points of a sweep as a grid, in which points with other values of some keys can be found.

use std::collections::{BTreeMap, BTreeSet};

use crate::scenario::sweep::{Axis, Point};

/// Keys of a sweep, each with a value.
pub(in crate::scenario) type Pins = Vec<(String, String)>;

/// One key of the sweep.
#[derive(Clone, Debug)]
pub(in crate::scenario) struct GridAxis {
    pub name: String,
    /// Values of the key, each once, in the order of the sweep.
    pub labels: Vec<String>,
    /// Number of the axis's group. The keys of a group change together (`zip`).
    group: usize,
    /// The points that have each value.
    points: BTreeMap<String, Vec<usize>>,
}

/// All points of a sweep and their labels.
#[derive(Clone, Debug, Default)]
pub(in crate::scenario) struct Grid {
    pub axes: Vec<GridAxis>,
    points: Vec<Pins>,
}

impl Grid {
    pub(in crate::scenario) fn new(axes: &[Axis], points: &[Point]) -> Self {
        let group = |index: usize, axis: &Axis| {
            let same = |other: &Axis| axis.zip.is_some() && other.zip == axis.zip;
            axes.iter().position(same).unwrap_or(index)
        };
        let axis = |(index, axis): (usize, &Axis)| {
            let mut having: BTreeMap<String, Vec<usize>> = BTreeMap::new();
            for point in points {
                if let Some(label) = point.label(&axis.name) {
                    having.entry(label.to_owned()).or_default().push(point.index);
                }
            }
            let mut seen = BTreeSet::new();
            let labels = axis.labels.iter().filter(|label| seen.insert(*label)).cloned().collect();
            let group = group(index, axis);
            GridAxis { name: axis.name.clone(), labels, group, points: having }
        };
        Grid {
            axes: axes.iter().enumerate().map(axis).collect(),
            points: points.iter().map(|point| point.labels.clone()).collect(),
        }
    }

    pub(in crate::scenario) fn axis(&self, name: &str) -> Option<&GridAxis> {
        self.axes.iter().find(|axis| axis.name == name)
    }

    /// The labels of a point.
    pub(in crate::scenario) fn labels(&self, point: usize) -> &[(String, String)] {
        self.points.get(point).map_or(&[], Vec::as_slice)
    }

    /// The value of a key at a point.
    pub(in crate::scenario) fn label(&self, point: usize, axis: &str) -> Option<&str> {
        self.labels(point).iter().find(|(name, _)| name == axis).map(|(_, value)| value.as_str())
    }

    /// The points that have all of `pins`.
    pub(in crate::scenario) fn matching(&self, pins: &[(String, String)]) -> Vec<usize> {
        let having = |(name, value): &(String, String)| {
            let points = self.axis(name).and_then(|axis| axis.points.get(value));
            points.map_or(&[][..], Vec::as_slice)
        };
        // Search among the points with the rarest value, since these are the fewest.
        let Some(rarest) = pins.iter().map(having).min_by_key(|points| points.len()) else {
            return (0..self.points.len()).collect();
        };
        let has = |point: &&usize| pins.iter().all(|pin| self.labels(**point).contains(pin));
        rarest.iter().filter(has).copied().collect()
    }

    /// The point that differs from `from` only in `pins` and in the keys that change together with
    /// them.
    pub(in crate::scenario) fn moved(
        &self,
        from: usize,
        pins: &[(String, String)],
    ) -> Option<usize> {
        if pins.is_empty() {
            return Some(from);
        }
        let moving: Vec<&str> = pins.iter().map(|(name, _)| name.as_str()).collect();
        let mut wanted: Pins = pins.to_vec();
        wanted.extend(self.apart(from, &moving).into_iter().cloned());
        // If several points match, because keys change together, choose the one that shares the
        // most labels with `from`.
        let kept = |point: &usize| {
            self.labels(*point).iter().filter(|label| self.labels(from).contains(label)).count()
        };
        self.matching(&wanted).into_iter().rev().max_by_key(kept)
    }

    /// The labels of a point, without the keys `of` and the keys that change together with them.
    pub(in crate::scenario) fn apart(&self, point: usize, of: &[&str]) -> Vec<&(String, String)> {
        let groups: Vec<usize> =
            of.iter().filter_map(|name| self.axis(name)).map(|axis| axis.group).collect();
        let stays = |label: &&(String, String)| {
            self.axis(&label.0).is_none_or(|axis| !groups.contains(&axis.group))
        };
        self.labels(point).iter().filter(stays).collect()
    }

    /// The points that differ from `from` only in `keys` and in the keys that change together with
    /// them, including `from`.
    pub(in crate::scenario) fn alike(&self, from: usize, keys: &[String]) -> Vec<usize> {
        if keys.is_empty() {
            return vec![from];
        }
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        self.matching(&self.apart(from, &keys).into_iter().cloned().collect::<Pins>())
    }

    /// Whether two keys change together.
    pub(in crate::scenario) fn together(&self, one: &str, other: &str) -> bool {
        let group = |name: &str| self.axis(name).map(|axis| axis.group);
        group(one) == group(other)
    }

    /// Every key with its values, for messages.
    pub(in crate::scenario) fn describe(&self) -> String {
        let pairs = |axis: &GridAxis| {
            axis.labels.iter().map(|label| format!("{} = {label}", axis.name)).collect::<Vec<_>>()
        };
        let all: Vec<String> = self.axes.iter().flat_map(pairs).collect();
        if all.is_empty() {
            "nothing: the scenario has no sweep".to_owned()
        } else {
            all.join(", ")
        }
    }
}
