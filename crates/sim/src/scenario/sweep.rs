//! Sweeps: which keys take which values, and the points that follow.

use super::error::Flaw;
use super::reader::Section;
use super::tree::{Node, Table, Value};

/// One combination of the sweeps' values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// Position in [`Scenario::points`](super::Scenario::points), from 0.
    pub index: usize,
    /// What results call each axis, and its value here, in the order of the file.
    pub labels: Vec<(String, String)>,
    /// The keys to set, with their values.
    pub(super) settings: Vec<(String, Node)>,
}

/// One `[[sweep]]`.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    name: String,
    keys: Vec<String>,
    values: Vec<Node>,
    zip: Option<String>,
}

/// More points than this are surely a mistake.
const MAX_POINTS: usize = 100_000;

/// Reads `[[sweep]]`.
pub(super) fn axes(file: &Section<'_>) -> Vec<Axis> {
    let mut axes: Vec<Axis> = Vec::new();
    for section in file.tables("sweep") {
        let Some(keys) = section.names("key") else { continue };
        let keys: Vec<String> = keys.into_iter().map(|(key, _)| key).collect();
        let values = match section.node("values").map(|node| &node.value) {
            Some(Value::List(values)) if !values.is_empty() => values.clone(),
            Some(_) => {
                section.refuse(
                    "values",
                    section.place_of("values"),
                    "not a list with a value in it",
                );
                continue;
            }
            None => continue,
        };
        let last = keys.first().and_then(|key| key.rsplit('.').next()).unwrap_or("value");
        let name = section.text("name").unwrap_or_else(|| last.to_owned());
        if axes.iter().any(|axis| axis.name == name) {
            let key = if section.has("name") { "name" } else { "key" };
            section.complain(
                key,
                format!("two sweeps called '{name}'"),
                "a name of its own for each",
            );
            continue;
        }
        let zip = section.text("zip");
        let partner = axes.iter().find(|axis| zip.is_some() && axis.zip == zip);
        if let Some(partner) = partner.filter(|axis| axis.values.len() != values.len()) {
            let given = format!(
                "{} values, but '{}' has {}",
                values.len(),
                partner.name,
                partner.values.len()
            );
            section.complain("values", given, "as many as every sweep of the same zip");
            continue;
        }
        axes.push(Axis { name, keys, values, zip });
    }
    axes
}

/// Every combination of the axes' values: the last axis varies fastest, zipped ones advance together
/// at the place of the first of them. Without axes, the one point that changes nothing.
pub(super) fn points(file: &Section<'_>, axes: &[Axis]) -> Vec<Point> {
    let mut counters: Vec<(Option<&String>, usize)> = Vec::new();
    let mut counter_of = Vec::new();
    for axis in axes {
        let shared =
            counters.iter().position(|(zip, _)| zip.is_some() && *zip == axis.zip.as_ref());
        counter_of.push(shared.unwrap_or(counters.len()));
        if shared.is_none() {
            counters.push((axis.zip.as_ref(), axis.values.len()));
        }
    }
    let total = counters.iter().try_fold(1_usize, |total, (_, n)| total.checked_mul(*n));
    let Some(total) = total.filter(|total| *total <= MAX_POINTS) else {
        let given = "the sweeps have too many combinations";
        file.complain("sweep", given, format!("{MAX_POINTS} points"));
        return Vec::new();
    };
    let mut points = Vec::with_capacity(total);
    for index in 0..total {
        let mut remaining = index;
        let mut chosen = vec![0; counters.len()];
        for (choice, (_, n)) in chosen.iter_mut().zip(&counters).rev() {
            *choice = remaining % n;
            remaining /= n;
        }
        let mut point = Point { index, ..Point::default() };
        for (axis, counter) in axes.iter().zip(&counter_of) {
            let choice = chosen.get(*counter).copied().unwrap_or(0);
            let Some(value) = axis.values.get(choice) else { continue };
            point.labels.push((axis.name.clone(), value.show()));
            point.settings.extend(axis.keys.iter().map(|key| (key.clone(), value.clone())));
        }
        points.push(point);
    }
    points
}

impl Point {
    /// Writes this point's values into the file.
    pub(super) fn apply(&self, root: &mut Table) -> Result<(), Flaw> {
        self.settings.iter().try_for_each(|(key, value)| root.set(key, value))
    }

    /// Whether this point has every one of `wanted` labels and values.
    pub fn matches(&self, wanted: &[(String, String)]) -> bool {
        wanted.iter().all(|pair| self.labels.contains(pair))
    }
}
