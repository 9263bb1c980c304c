//! Sweeps and variants: keys with several values, and the resulting points.

use super::error::{Flaw, Place};
use super::reader::Section;
use super::tree::{Node, Table, Value};
use super::variant;

/// One combination of the sweeps' values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// Position in [`Scenario::points`](super::Scenario::points), from 0.
    pub index: usize,
    /// Name of each axis in results and its value at this point, in the order of the file.
    pub labels: Vec<(String, String)>,
    /// The keys to set, with their values.
    pub(super) settings: Vec<(String, Node)>,
}

/// One `[[sweep]]`, or the variants.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub name: String,
    /// Name of each value in results.
    pub labels: Vec<String>,
    /// The keys that each value sets.
    settings: Vec<Vec<(String, Node)>>,
    pub zip: Option<String>,
}

/// Maximum number of points; more are treated as a mistake.
const MAX_POINTS: usize = 100_000;

/// Reads every `[[sweep]]` and `[[variant]]`. The variants come last, so they vary fastest.
pub(super) fn axes(file: &Section<'_>) -> Vec<Axis> {
    let mut axes: Vec<Axis> = Vec::new();
    for section in file.tables("sweep") {
        let Some(axis) = axis(&section) else { continue };
        if axes.iter().any(|other| other.name == axis.name) || axis.name == variant::AXIS {
            let key = if section.has("name") { "name" } else { "key" };
            let given = format!("two sweeps called '{}'", axis.name);
            section.complain(key, given, "a name of its own for each, and not 'variant'");
            continue;
        }
        let partner = axes.iter().find(|other| axis.zip.is_some() && other.zip == axis.zip);
        if let Some(partner) = partner.filter(|other| other.labels.len() != axis.labels.len()) {
            let (own, other) = (axis.labels.len(), partner.labels.len());
            let given = format!("{own} values, but '{}' has {other}", partner.name);
            section.complain("values", given, "as many as every sweep of the same zip");
            continue;
        }
        axes.push(axis);
    }
    let variants = variant::read(file);
    if !variants.is_empty() {
        let (labels, settings) =
            variants.into_iter().map(|variant| (variant.name, variant.settings)).unzip();
        axes.push(Axis { name: variant::AXIS.to_owned(), labels, settings, zip: None });
    }
    axes
}

fn axis(section: &Section<'_>) -> Option<Axis> {
    let keys: Vec<String> = section.names("key")?.into_iter().map(|(key, _)| key).collect();
    let values = match &section.node("values")?.value {
        Value::List(values) if !values.is_empty() => values,
        _ => {
            let place = section.place_of("values");
            section.refuse("values", place, "not a list with a value in it");
            return None;
        }
    };
    let last = keys.first().and_then(|key| key.rsplit('.').next()).unwrap_or("value");
    let set = |value: &Node| keys.iter().map(|key| (key.clone(), value.clone())).collect();
    Some(Axis {
        name: section.text("name").unwrap_or_else(|| last.to_owned()),
        labels: values.iter().map(Node::show).collect(),
        settings: values.iter().map(set).collect(),
        zip: section.text("zip"),
    })
}

/// Every combination of the axes' values. The last axis varies fastest. Zipped axes change
/// together, at the position of the first of them. Without axes, there is a single point that
/// changes nothing.
pub(super) fn points(file: &Section<'_>, axes: &[Axis]) -> Vec<Point> {
    let mut counters: Vec<(Option<&String>, usize)> = Vec::new();
    let mut counter_of = Vec::new();
    for axis in axes {
        let shared =
            counters.iter().position(|(zip, _)| zip.is_some() && *zip == axis.zip.as_ref());
        counter_of.push(shared.unwrap_or(counters.len()));
        if shared.is_none() {
            counters.push((axis.zip.as_ref(), axis.labels.len()));
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
            let Some(label) = axis.labels.get(choice) else { continue };
            point.labels.push((axis.name.clone(), label.clone()));
            point.settings.extend(axis.settings.get(choice).into_iter().flatten().cloned());
        }
        points.push(point);
    }
    points
}

/// Mistakes for assignments that have no effect, because every point sets the same key.
pub(super) fn unseen(points: &[Point], assignments: &[String]) -> Vec<Flaw> {
    let flaw = |(index, assignment): (usize, &String)| {
        let key = assignment.split_once('=')?.0.trim();
        let sets = |point: &Point| point.settings.iter().any(|(own, _)| own == key);
        (!points.is_empty() && points.iter().all(sets)).then(|| {
            let place = Place { assignment: index + 1, offset: 0 };
            let given = "every sweep or variant sets it, so that the assignment has no effect";
            let allowed =
                "values of the sweep, such as sweep.NAME.values=[…], or settings of a variant";
            Flaw::other(place, key, given, allowed)
        })
    };
    assignments.iter().enumerate().filter_map(flaw).collect()
}

impl Point {
    /// Writes this point's values into the file.
    pub(super) fn apply(&self, root: &mut Table) -> Result<(), Flaw> {
        self.settings.iter().try_for_each(|(key, value)| root.set(key, value))
    }

    /// The value of a sweep's key at this point.
    pub fn label(&self, axis: &str) -> Option<&str> {
        self.labels.iter().find(|(name, _)| name == axis).map(|(_, value)| value.as_str())
    }

    /// Whether this point has all of the `wanted` names and values.
    pub fn matches(&self, wanted: &[(String, String)]) -> bool {
        wanted.iter().all(|pair| self.labels.contains(pair))
    }
}
