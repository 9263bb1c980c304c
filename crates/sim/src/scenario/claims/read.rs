//! Reads `[[claim]]` and `[[measure]]`, and rejects those that could never be judged.

use std::collections::{BTreeMap, BTreeSet};

use super::average::Average;
use super::grid::{Grid, Pins};
use super::quantity::{Known, Quantity, check_pins};
use super::statistic::STATISTICS;
use super::{Along, Claim, Direction, Form};
use crate::scenario::error::Flaw;
use crate::scenario::reader::Section;
use crate::scenario::tree::{Node, Value};

/// The subjects, sweep and variants that claims may refer to.
pub(in crate::scenario) struct Context<'a> {
    pub known: &'a Known,
    pub grid: &'a Grid,
    /// Titles of the variants, by name.
    pub titles: &'a BTreeMap<String, String>,
    /// Whether the sweep is the one in the file. Otherwise, claims may be about points that do not
    /// exist.
    pub whole: bool,
    /// The published result of claims that name none.
    pub item: Option<&'a str>,
}

/// Reads every claim and measure of a file.
pub(in crate::scenario) fn read(file: &Section<'_>, context: &Context<'_>) -> Vec<Claim> {
    let mut claims: Vec<Claim> = Vec::new();
    let mut names = BTreeSet::new();
    for (key, is_judged) in [("claim", true), ("expect", true), ("measure", false)] {
        for section in file.tables(key) {
            let before = section.mistakes();
            let Some(claim) = claim(&section, is_judged, file.has("base"), context) else {
                continue;
            };
            let is_right = section.mistakes() == before;
            for name in claim.names(context.grid, context.titles).into_iter().filter(|_| is_right) {
                if !names.insert((claim.item.clone(), name.clone())) && section.has("name") {
                    let given = format!("two claims called '{name}'");
                    section.complain("name", given, "a name of its own for each of an item");
                    break;
                }
            }
            claims.push(claim);
        }
    }
    claims
}

fn claim(
    section: &Section<'_>,
    is_judged: bool,
    is_derived: bool,
    context: &Context<'_>,
) -> Option<Claim> {
    let before = section.mistakes();
    let of = section.text("of").unwrap_or_else(|| "all".to_owned());
    let Context { known, grid, whole, .. } = *context;
    let quantity = Quantity::read(section, &of, known, grid, whole)?;
    let relative_to = section.text("relative-to");
    if let Some(other) = relative_to.as_ref().filter(|other| !known.subjects.contains(*other)) {
        let subjects: Vec<&str> = known.subjects.iter().map(String::as_str).collect();
        let (place, path) = (section.place_of("relative-to"), section.path_of("relative-to"));
        section.report(Flaw::unknown(place, path, "subject", other, &subjects));
    }
    let [at, over, less] = ["at", "over", "less"].map(|key| pins(section, key, context));
    let claim = Claim {
        average: Average::read(section, grid, whole),
        item: section.text("item").or_else(|| context.item.map(str::to_owned)),
        name: String::new(),
        is_judged,
        is_ablation: section.flag("ablation").unwrap_or(is_derived),
        min: section.real("min"),
        max: section.real("max"),
        paper: section.text("paper"),
        reading: section.text("reading"),
        form: form(section, context)?,
        quantity,
        of,
        relative_to,
        at,
        over,
        less,
        each: each(section, context),
    };
    bounds(section, &claim);
    if whole && section.mistakes() == before && claim.points(grid).is_empty() {
        section.complain("at", "no point of the sweep is there", grid.describe());
    }
    Some(Claim { name: name(section, &claim), ..claim })
}

fn pins(section: &Section<'_>, key: &str, context: &Context<'_>) -> Pins {
    let pins: Pins = section.free(key).into_iter().map(|(name, value, _)| (name, value)).collect();
    if let Err(flaw) = check_pins(section, key, &pins, context.grid, context.whole) {
        section.report(flaw);
    }
    pins
}

/// Checks that a judged claim other than an order has a bound, and that the lower bound is not above the upper one.
fn bounds(section: &Section<'_>, claim: &Claim) {
    let is_order = matches!(claim.form, Form::Order(..));
    match (claim.min, claim.max) {
        (None, None) if claim.is_judged && !is_order => {
            section.complain("min", "neither min nor max", "one of them or both; or [[measure]]");
        }
        (Some(min), Some(max)) if min > max => {
            section.refuse_value("max", &max.to_string(), "a number not below min");
        }
        _ => {}
    }
}

fn form(section: &Section<'_>, context: &Context<'_>) -> Option<Form> {
    let compares = section.has("over") || section.has("relative-to");
    let kind = section.word("kind").unwrap_or(if compares { "ratio" } else { "value" });
    let is_between = matches!(kind, "ratio" | "difference");
    if compares != is_between {
        let allowed =
            "over or relative-to beside kind = \"ratio\" or \"difference\", not otherwise";
        section.complain(
            "kind",
            format!("'{kind}' of {}", if compares { "two" } else { "one" }),
            allowed,
        );
        return None;
    }
    let statistic = STATISTICS.iter().find(|statistic| statistic.name == kind);
    let has_curve = statistic.is_some() || kind == "order";
    if has_curve != section.has("along") {
        let given = if has_curve { "no key to run along" } else { "a key to run along" };
        section.complain(
            "along",
            format!("{given} for '{kind}'"),
            "along for curves and orders alone",
        );
        return None;
    }
    if (kind == "order") != section.has("direction") {
        section.complain(
            "direction",
            format!("kind is '{kind}'"),
            "direction for orders, and for them alone",
        );
        return None;
    }
    Some(match (kind, statistic) {
        ("ratio", _) => Form::Ratio,
        ("difference", _) => Form::Difference,
        ("order", _) => {
            let direction = match section.word("direction")? {
                "rising" => Direction::Rising,
                _ => Direction::Falling,
            };
            Form::Order(along(section, context, false)?, direction)
        }
        (_, Some(statistic)) => Form::Curve(along(section, context, true)?, *statistic),
        _ => Form::Value,
    })
}

/// Reads `along` and `values`: the key of a curve, with at least two of its values.
fn along(section: &Section<'_>, context: &Context<'_>, is_numeric: bool) -> Option<Along> {
    let key = section.text("along")?;
    let axes = &context.grid.axes;
    let (place, path) = (section.place_of("along"), section.path_of("along"));
    let Some(axis) = context.grid.axis(&key) else {
        let known: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
        section.report(Flaw::unknown(place, path, "sweep key", &key, &known));
        return None;
    };
    let values = match section.node("values").map(|node| &node.value) {
        Some(Value::List(values)) => values.iter().map(Node::show).collect(),
        _ => axis.labels.clone(),
    };
    let whole = context.whole;
    if let Some(value) = values.iter().find(|value| whole && !axis.labels.contains(value)) {
        let known: Vec<&str> = axis.labels.iter().map(String::as_str).collect();
        let what = if key == "variant" { "variant" } else { "value of the sweep" };
        let at = if section.has("values") { "values" } else { "along" };
        let (place, path) = (section.place_of(at), section.path_of(at));
        section.report(Flaw::unknown(place, path, what, value, &known));
        return None;
    }
    if whole && values.len() < 2 {
        let given = format!("'{key}' has one value here: {}", values.join(", "));
        section.complain("along", given, "a key with two values or more");
        return None;
    }
    if let Some(word) = values.iter().find(|v| is_numeric && super::number(v).is_none()) {
        let given = format!("'{word}' of '{key}' is no number");
        section.complain("along", given, "a key whose values are numbers, or kind = \"order\"");
        return None;
    }
    Some(Along { key, values })
}

/// Reads `for-each`: keys, each with the values to use. An empty list means all values.
fn each(section: &Section<'_>, context: &Context<'_>) -> Vec<(String, Vec<String>)> {
    let Some(node) = section.node("for-each") else { return Vec::new() };
    let listed = |node: &Node| match &node.value {
        Value::List(items) => items.iter().map(Node::show).collect(),
        _ => vec![node.show()],
    };
    let each: Vec<(String, Vec<String>)> = match &node.value {
        Value::Table(table) => {
            table.entries.iter().map(|entry| (entry.key.clone(), listed(&entry.node))).collect()
        }
        _ => listed(node).into_iter().map(|key| (key, Vec::new())).collect(),
    };
    for (key, values) in &each {
        let all = if values.is_empty() { context.grid.axis(key).map(|a| &a.labels) } else { None };
        let none = vec![String::new()];
        for value in all.or((!values.is_empty()).then_some(values)).unwrap_or(&none) {
            let pin = vec![(key.clone(), value.clone())];
            if let Err(flaw) = check_pins(section, "for-each", &pin, context.grid, context.whole) {
                section.report(flaw);
                break;
            }
        }
    }
    each
}

/// The given name of a claim, or else a name made from its contents.
fn name(section: &Section<'_>, claim: &Claim) -> String {
    if let Some(name) = section.raw("name") {
        return name.to_owned();
    }
    let mut name = format!("{} of {}", claim.quantity.text, claim.of);
    if let Some(other) = &claim.relative_to {
        name.push_str(&format!(" relative to {other}"));
    }
    if let Some(kind) = section.raw("kind") {
        name = format!("{kind} of {name}");
    }
    for (word, pins) in [(" at", &claim.at), (" over", &claim.over), (" less", &claim.less)] {
        let pins: Vec<String> = pins.iter().map(|(key, value)| format!("{key}={value}")).collect();
        if !pins.is_empty() {
            name.push_str(&format!("{word} {}", pins.join(", ")));
        }
    }
    name
}
