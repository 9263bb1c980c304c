//! Reads a table of a scenario according to the description of its keys, and collects all mistakes.

use core::cell::RefCell;
use core::time::Duration;

use anabranch_policy::Registry;
use anabranch_types::{Bitrate, DataSize, Probability, parse_duration};

use super::error::{Flaw, Place};
use super::expression::Bindings;
use super::spec::{KeySpec, Kind};
use super::tree::{Entry, Node, Table, Value};

/// A table that is being read, with the description of its keys and the variables that `{…}` can
/// use.
#[derive(Clone)]
pub(super) struct Section<'a> {
    table: &'a Table,
    spec: &'static [KeySpec],
    /// The place where the table begins.
    pub place: Place,
    /// The path of keys that leads to this table; empty at the top level.
    pub path: String,
    pub bindings: Bindings,
    context: Context<'a>,
}

/// State that all tables of a scenario share while they are read.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    /// The mistakes found so far.
    pub flaws: &'a RefCell<Vec<Flaw>>,
    pub files: &'a dyn Files,
    /// The policies that can be named.
    pub registry: &'a Registry,
}

/// Gives access to the files that a scenario names.
pub(super) trait Files {
    /// The content of the file at this path, relative to the scenario. An error is a text of one
    /// line.
    fn read(&self, path: &str) -> Result<String, String>;
}

/// A value that is either a text or a table.
pub(super) enum Part<'a> {
    Text(String, Place),
    Table(Section<'a>),
}

impl<'a> Section<'a> {
    /// Begins to read `table`. Keys that are not in `spec` and missing required keys are reported
    /// at once.
    #[expect(clippy::too_many_arguments, reason = "a table, what it may hold and where it stands")]
    pub(super) fn open(
        table: &'a Table,
        spec: &'static [KeySpec],
        place: Place,
        path: String,
        bindings: Bindings,
        context: Context<'a>,
    ) -> Self {
        let section = Section { table, spec, place, path, bindings, context };
        let known: Vec<&str> = spec.iter().map(|spec| spec.key).collect();
        for Entry { key, key_place, .. } in &table.entries {
            if !known.contains(&key.as_str()) {
                section.report(Flaw::unknown(*key_place, section.path_of(key), "key", key, &known));
            }
        }
        for spec in spec.iter().filter(|spec| spec.default.is_none()) {
            if table.find(spec.key).is_none() {
                section.refuse(spec.key, section.place, "missing");
            }
        }
        section
    }

    /// The same table with other bindings. Mistakes in its keys are not reported again.
    pub(super) fn rebound(&self, bindings: Bindings) -> Section<'a> {
        Section { bindings, ..self.clone() }
    }

    /// Number of mistakes found so far in the whole scenario.
    pub(super) fn mistakes(&self) -> usize {
        self.context.flaws.borrow().len()
    }

    /// The policies that can be named.
    pub(super) fn registry(&self) -> &'a Registry {
        self.context.registry
    }

    pub(super) fn report(&self, flaw: Flaw) {
        self.context.flaws.borrow_mut().push(flaw);
    }

    /// Reports that the value of `key` is not allowed. `given` describes the value in words.
    pub(super) fn refuse(&self, key: &str, place: Place, given: &str) {
        let allowed = self.kind(key).map(|kind| kind.allowed()).unwrap_or_default();
        self.report(Flaw::other(place, self.path_of(key), given, allowed));
    }

    /// Reports that the value of `key` is `given`, which is not accepted, and which values are
    /// allowed.
    pub(super) fn refuse_value(&self, key: &str, given: &str, allowed: &str) {
        self.report(Flaw::value(self.place_of(key), self.path_of(key), given, allowed));
    }

    /// Reports any other mistake about `key`, described by `given`.
    pub(super) fn complain(&self, key: &str, given: impl Into<String>, allowed: impl Into<String>) {
        self.report(Flaw::other(self.place_of(key), self.path_of(key), given, allowed));
    }

    pub(super) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// The place of the value of `key`, or of the table if there is none.
    pub(super) fn place_of(&self, key: &str) -> Place {
        self.table.find(key).map_or(self.place, |entry| entry.node.place)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.find(key).is_some()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &'a str> {
        self.table.entries.iter().map(|entry| entry.key.as_str())
    }

    pub(super) fn node(&self, key: &str) -> Option<&'a Node> {
        self.table.find(key).map(|entry| &entry.node)
    }

    /// A text as written in the file, without expansion of braces.
    pub(super) fn raw(&self, key: &str) -> Option<&'a str> {
        let node = self.node(key)?;
        let Value::Text(text) = &node.value else {
            self.refuse(key, node.place, "not a text");
            return None;
        };
        Some(text)
    }

    /// A single value as text, with braces expanded.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        let node = self.node(key)?;
        self.single(key, node)
    }

    pub(super) fn rate(&self, key: &str) -> Option<Bitrate> {
        self.parsed(key, |text| {
            let rate: Option<Bitrate> = text.parse().ok();
            rate.filter(|rate| (1_000..=1_000_000_000_000).contains(&rate.as_bps()))
        })
    }

    pub(super) fn time(&self, key: &str) -> Option<Duration> {
        self.parsed(key, |text| parse_duration(text).ok())
    }

    pub(super) fn size(&self, key: &str) -> Option<DataSize> {
        self.parsed(key, |text| {
            let size: Option<DataSize> = text.parse().ok();
            size.filter(|size| size.as_bytes() <= 1_000_000_000_000)
        })
    }

    /// A percentage. A number without `%` is refused, because `1` could mean 1 % or 100 %.
    pub(super) fn share(&self, key: &str) -> Option<Probability> {
        self.parsed(key, |text| text.trim().ends_with('%').then(|| text.parse().ok())?)
    }

    pub(super) fn count(&self, key: &str) -> Option<u64> {
        let (least, most) = match self.kind(key) {
            Some(Kind::Count(least, most)) => (*least, *most),
            _ => (0, u64::MAX),
        };
        self.parsed(key, |text| {
            let number: f64 = text.trim().parse().ok()?;
            let whole = number >= 0.0 && number.fract() == 0.0 && number <= 2_f64.powi(53);
            let number = whole.then_some(number as u64)?;
            (least..=most).contains(&number).then_some(number)
        })
    }

    pub(super) fn real(&self, key: &str) -> Option<f64> {
        let (least, most) = match self.kind(key) {
            Some(Kind::Real(least, most)) => (*least, *most),
            _ => (f64::NEG_INFINITY, f64::INFINITY),
        };
        self.parsed(key, |text| {
            let number: f64 = text.trim().parse().ok()?;
            (number.is_finite() && least <= number && number <= most).then_some(number)
        })
    }

    pub(super) fn flag(&self, key: &str) -> Option<bool> {
        self.parsed(key, |text| match text {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        })
    }

    /// One of the words that the description of the key lists.
    pub(super) fn word(&self, key: &str) -> Option<&'static str> {
        let Some(Kind::Word(words)) = self.kind(key) else { return None };
        self.parsed(key, |text| words.iter().copied().find(|word| *word == text))
    }

    /// A name or a list of names, each with its place.
    pub(super) fn names(&self, key: &str) -> Option<Vec<(String, Place)>> {
        let node = self.node(key)?;
        let items = match &node.value {
            Value::List(items) => items.as_slice(),
            _ => core::slice::from_ref(node),
        };
        let name = |item: &Node| Some((self.single(key, item)?, item.place));
        Some(items.iter().filter_map(name).collect())
    }

    /// The content of the file at `path`, which `key` names.
    pub(super) fn content(&self, key: &str, path: &str) -> Option<String> {
        let complain = |why| {
            self.complain(key, format!("file '{path}' cannot be read: {why}"), "");
        };
        self.context.files.read(path).map_err(complain).ok()
    }

    /// A text or a table.
    pub(super) fn part(&self, key: &str) -> Option<Part<'a>> {
        let node = self.node(key)?;
        match (&node.value, self.kind(key)) {
            (Value::Table(table), Some(Kind::Part(_, spec))) => {
                Some(Part::Table(self.inner(table, spec, node.place, key)))
            }
            _ => Some(Part::Text(self.single(key, node)?, node.place)),
        }
    }

    /// A table.
    pub(super) fn table(&self, key: &str) -> Option<Section<'a>> {
        let node = self.node(key)?;
        match (&node.value, self.kind(key)) {
            (Value::Table(table), Some(Kind::Table(spec))) => {
                Some(self.inner(table, spec, node.place, key))
            }
            _ => {
                self.refuse(key, node.place, "not a table");
                None
            }
        }
    }

    /// The tables of a list. The key path of a table ends with its name, if it has one.
    pub(super) fn tables(&self, key: &str) -> Vec<Section<'a>> {
        let (Some(node), Some(Kind::Tables(spec))) = (self.node(key), self.kind(key)) else {
            return Vec::new();
        };
        let Value::List(items) = &node.value else {
            let given = format!("not written as [[{key}]]");
            self.refuse(key, node.place, &given);
            return Vec::new();
        };
        let mut sections = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let Value::Table(table) = &item.value else {
                self.refuse(key, item.place, "not a table");
                continue;
            };
            let name = match table.find("name").map(|entry| &entry.node.value) {
                Some(Value::Text(name)) => name.clone(),
                _ => index.to_string(),
            };
            sections.push(self.inner(table, spec, item.place, &format!("{key}.{name}")));
        }
        sections
    }

    /// The pairs of a table with free keys, with each value as text.
    pub(super) fn free(&self, key: &str) -> Vec<(String, String, Place)> {
        let Some(node) = self.node(key) else { return Vec::new() };
        let Value::Table(table) = &node.value else {
            self.refuse(key, node.place, "not a table");
            return Vec::new();
        };
        let pair = |entry: &Entry| {
            let path = format!("{key}.{}", entry.key);
            Some((entry.key.clone(), self.single(&path, &entry.node)?, entry.node.place))
        };
        table.entries.iter().filter_map(pair).collect()
    }

    fn inner(
        &self,
        table: &'a Table,
        spec: &'static [KeySpec],
        place: Place,
        key: &str,
    ) -> Section<'a> {
        let path = self.path_of(key);
        Section::open(table, spec, place, path, self.bindings.clone(), self.context)
    }

    fn kind(&self, key: &str) -> Option<&'static Kind> {
        self.spec.iter().find(|spec| spec.key == key).map(|spec| &spec.kind)
    }

    fn parsed<T>(&self, key: &str, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let text = self.text(key)?;
        let value = parse(&text);
        if value.is_none() {
            let allowed = self.kind(key).map(|kind| kind.allowed()).unwrap_or_default();
            self.refuse_value(key, &text, &allowed);
        }
        value
    }

    fn single(&self, key: &str, node: &Node) -> Option<String> {
        match &node.value {
            Value::Text(text) => match self.bindings.expand(text) {
                Ok(text) => Some(text),
                Err((given, allowed)) => {
                    self.report(Flaw::other(node.place, self.path_of(key), given, allowed));
                    None
                }
            },
            Value::List(_) | Value::Table(_) => {
                let given = match &node.value {
                    Value::List(_) => "a list where a single value should be",
                    _ => "a table where a single value should be",
                };
                self.refuse(key, node.place, given);
                None
            }
            _ => Some(node.show()),
        }
    }
}
