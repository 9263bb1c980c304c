//! Reads `[[variant]]`: named alternatives of a scenario, and the flows and loads that belong to
//! them.

use super::error::Flaw;
use super::reader::Section;
use super::tree::{Node, Value};

/// The name of the variants' axis in results.
pub(super) const AXIS: &str = "variant";

/// One `[[variant]]`.
#[derive(Clone, Debug)]
pub(super) struct Variant {
    pub name: String,
    /// The name in figures and claims.
    pub title: String,
    /// The keys that the variant sets, with their values.
    pub settings: Vec<(String, Node)>,
}

/// Reads the variants that `variants` names, or all variants.
pub(super) fn read(file: &Section<'_>) -> Vec<Variant> {
    let mut all: Vec<Variant> = Vec::new();
    for section in file.tables("variant") {
        let Some(name) = super::topology::name(&section, false) else { continue };
        if all.iter().any(|variant| variant.name == name) {
            section.refuse_value("name", &name, "a name that no other variant has");
            continue;
        }
        let settings = match section.node("set").map(|node| &node.value) {
            Some(Value::Table(table)) => table.flatten(),
            Some(_) => {
                section.refuse("set", section.place_of("set"), "not a table");
                continue;
            }
            None => Vec::new(),
        };
        let title = section.text("title").unwrap_or_else(|| name.clone());
        all.push(Variant { name, title, settings });
    }
    let chosen = named(file, "variants", &all.iter().map(|v| v.name.as_str()).collect::<Vec<_>>());
    match chosen {
        Some(chosen) if !all.is_empty() => {
            all.retain(|variant| chosen.contains(&variant.name));
        }
        _ => {}
    }
    all
}

/// Whether the current variant has the flow or load of `section`. The key `only` names the variants
/// that have it.
pub(super) fn has(file: &Section<'_>, section: &Section<'_>) -> bool {
    let known = names(file);
    let Some(only) = named(section, "only", &known) else { return true };
    section.bindings.find_text(AXIS).is_none_or(|now| only.iter().any(|name| name == now))
}

/// The variants that `key` of `section` names. Unknown names are reported.
fn named(section: &Section<'_>, key: &str, known: &[&str]) -> Option<Vec<String>> {
    let names = section.names(key)?;
    let mut found = Vec::new();
    for (name, place) in names {
        if known.contains(&name.as_str()) {
            found.push(name);
        } else {
            let path = section.path_of(key);
            section.report(Flaw::unknown(place, path, "variant", &name, known));
        }
    }
    Some(found)
}

/// The names of all variants, including those that are not run.
fn names<'a>(file: &Section<'a>) -> Vec<&'a str> {
    let Some(Value::List(items)) = file.node("variant").map(|node| &node.value) else {
        return Vec::new();
    };
    items.iter().filter_map(Node::name).collect()
}
