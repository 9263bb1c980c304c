//! A scenario file as a tree of values, each with its place in the file.

use toml::de::{DeTable, DeValue};

use super::error::{Flaw, Place, nearest};

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub value: Value,
    pub place: Place,
}

/// The kinds of TOML values that scenarios use.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    Whole(i64),
    Real(f64),
    Flag(bool),
    List(Vec<Node>),
    Table(Table),
}

/// Keys with their values. Parsed keys are in alphabetical order; keys added later are at the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Table {
    pub entries: Vec<Entry>,
}

/// One key of a table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub key: String,
    pub key_place: Place,
    pub node: Node,
}

impl Table {
    /// Reads a file. Returns the part that could be read, and all mistakes in the TOML.
    pub(super) fn parse(text: &str) -> (Table, Vec<Flaw>) {
        let (root, errors) = DeTable::parse_recoverable(text);
        let mut flaws: Vec<Flaw> = errors
            .iter()
            .map(|error| {
                let offset = error.span().map_or(0, |span| span.start);
                let message = error.message().lines().collect::<Vec<_>>().join("; ");
                Flaw::other(Place { assignment: 0, offset }, "", message, "")
            })
            .collect();
        let table = convert_table(root.get_ref(), 0, &mut flaws);
        (table, flaws)
    }

    /// The entry of `key`; `None` if there is none.
    pub(super) fn find(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    fn insert(&mut self, key: &str, node: Node) {
        match self.entries.iter_mut().find(|entry| entry.key == key) {
            Some(entry) => entry.node = node,
            None => {
                let key_place = node.place;
                self.entries.push(Entry { key: key.to_owned(), key_place, node });
            }
        }
    }

    /// Removes the entry with the same key, if there is one, and adds `entry`.
    pub(super) fn replace(&mut self, entry: Entry) {
        self.entries.retain(|other| other.key != entry.key);
        self.entries.push(entry);
    }

    /// The table without the entries with these keys.
    pub(super) fn without(&self, keys: &[&str]) -> Table {
        let others = self.entries.iter().filter(|entry| !keys.contains(&entry.key.as_str()));
        Table { entries: others.cloned().collect() }
    }

    /// Removes the entries with these keys and returns them.
    pub(super) fn take(&mut self, keys: &[&str]) -> Vec<Entry> {
        let (taken, kept) = core::mem::take(&mut self.entries)
            .into_iter()
            .partition(|entry| keys.contains(&entry.key.as_str()));
        self.entries = kept;
        taken
    }

    /// All values below this table, each with its dotted path.
    pub(super) fn flatten(&self) -> Vec<(String, Node)> {
        let mut flat = Vec::new();
        for Entry { key, node, .. } in &self.entries {
            match &node.value {
                Value::Table(inner) if !inner.entries.is_empty() => flat.extend(
                    inner.flatten().into_iter().map(|(path, node)| (format!("{key}.{path}"), node)),
                ),
                _ => flat.push((key.clone(), node.clone())),
            }
        }
        flat
    }

    /// Shifts all places by `by` bytes.
    pub(super) fn shift(&mut self, by: usize) {
        for entry in &mut self.entries {
            entry.key_place.offset += by;
            entry.node.shift(by);
        }
    }

    /// Sets the value at a dotted path such as `flow.bulk.count`. An element of a list of tables is
    /// addressed by its `name` or by its number from 0, and all elements by `*`. If the last key is
    /// missing, it is added.
    ///
    /// # Errors
    /// When a part of the path does not exist. The error names this part and what exists instead.
    pub(super) fn set(&mut self, path: &str, value: &Node) -> Result<(), Flaw> {
        let steps: Vec<&str> = path.split('.').collect();
        set_in_table(self, &steps, path, value)
    }

    /// The node at a dotted path as for [`set`](Self::set). `*` means the first element.
    #[cfg(test)]
    pub(super) fn at(&self, path: &str) -> Option<&Node> {
        let mut steps = path.split('.');
        let mut node = &self.find(steps.next()?)?.node;
        for step in steps {
            node = match &node.value {
                Value::Table(table) => &table.find(step)?.node,
                Value::List(items) => items
                    .iter()
                    .enumerate()
                    .find(|(index, item)| is_named(item, *index, step))
                    .map(|(_, item)| item)?,
                _ => return None,
            };
        }
        Some(node)
    }
}

impl Node {
    /// The value as it would be written in the file, for messages and sweep points.
    pub(super) fn show(&self) -> String {
        match &self.value {
            Value::Text(text) => text.clone(),
            Value::Whole(number) => number.to_string(),
            Value::Real(number) => number.to_string(),
            Value::Flag(flag) => flag.to_string(),
            Value::List(items) => {
                let items: Vec<String> = items.iter().map(Node::show).collect();
                format!("[{}]", items.join(", "))
            }
            Value::Table(table) => {
                let entries: Vec<String> = table
                    .entries
                    .iter()
                    .map(|entry| format!("{} = {}", entry.key, entry.node.show()))
                    .collect();
                format!("{{ {} }}", entries.join(", "))
            }
        }
    }

    /// The name of an element of a list of tables.
    pub(super) fn name(&self) -> Option<&str> {
        let Value::Table(table) = &self.value else { return None };
        let text = |key: &str| match &table.find(key)?.node.value {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        };
        // A sweep without a name has the last part of its key as its name.
        text("name").or_else(|| text("key")?.rsplit('.').next())
    }

    fn shift(&mut self, by: usize) {
        self.place.offset += by;
        match &mut self.value {
            Value::List(items) => items.iter_mut().for_each(|item| item.shift(by)),
            Value::Table(table) => table.shift(by),
            _ => {}
        }
    }

    /// Reads the value of an assignment, which is TOML or else a plain text.
    pub(super) fn from_assignment(text: &str, place: Place) -> Node {
        let (table, flaws) = Table::parse(&format!("value = {text}"));
        let mut read = match (flaws.is_empty(), table.entries.into_iter().next()) {
            (true, Some(entry)) if entry.key == "value" => entry.node,
            _ => Node { value: Value::Text(text.to_owned()), place },
        };
        read.move_to(place);
        read
    }

    /// Sets the place of this node and of all nodes below it.
    pub(super) fn move_to(&mut self, place: Place) {
        self.place = place;
        match &mut self.value {
            Value::List(items) => items.iter_mut().for_each(|item| item.move_to(place)),
            Value::Table(table) => {
                for entry in &mut table.entries {
                    entry.key_place = place;
                    entry.node.move_to(place);
                }
            }
            _ => {}
        }
    }
}

/// Maximum depth of nested values. The format never needs more, and the limit bounds the recursion.
const MAX_DEPTH: u32 = 16;

fn convert_table(table: &DeTable<'_>, depth: u32, flaws: &mut Vec<Flaw>) -> Table {
    let mut entries: Vec<Entry> = Vec::new();
    for (key, value) in table {
        let key_place = Place { assignment: 0, offset: key.span().start };
        let place = Place { assignment: 0, offset: value.span().start };
        if let Some(node) = convert(value.get_ref(), place, key.get_ref(), depth + 1, flaws) {
            entries.push(Entry { key: key.get_ref().to_string(), key_place, node });
        }
    }
    Table { entries }
}

fn convert(
    value: &DeValue<'_>,
    place: Place,
    key: &str,
    depth: u32,
    flaws: &mut Vec<Flaw>,
) -> Option<Node> {
    if depth > MAX_DEPTH {
        flaws.push(Flaw::other(place, key, "nested too deeply", format!("{MAX_DEPTH} levels")));
        return None;
    }
    let value = match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Value::Whole(number),
            Err(_) => {
                flaws.push(Flaw::value(place, key, number.as_str(), "a number of 64 bits"));
                return None;
            }
        },
        DeValue::Float(number) => match number.as_str().parse::<f64>() {
            Ok(number) if number.is_finite() => Value::Real(number),
            _ => {
                flaws.push(Flaw::value(place, key, number.as_str(), "a finite number"));
                return None;
            }
        },
        DeValue::Array(items) => Value::List(
            items
                .iter()
                .filter_map(|item| {
                    let place = Place { assignment: 0, offset: item.span().start };
                    convert(item.get_ref(), place, key, depth + 1, flaws)
                })
                .collect(),
        ),
        DeValue::Table(table) => Value::Table(convert_table(table, depth, flaws)),
        DeValue::Datetime(date) => {
            flaws.push(Flaw::value(place, key, &date.to_string(), "no dates here"));
            return None;
        }
    };
    Some(Node { value, place })
}

fn is_named(item: &Node, index: usize, step: &str) -> bool {
    item.name() == Some(step) || step.parse() == Ok(index)
}

fn set_in_table(table: &mut Table, steps: &[&str], path: &str, value: &Node) -> Result<(), Flaw> {
    let Some((step, rest)) = steps.split_first() else { return Ok(()) };
    if step.is_empty() {
        return Err(Flaw::value(value.place, path, path, "a key such as flow.bulk.count"));
    }
    if rest.is_empty() {
        table.insert(step, value.clone());
        return Ok(());
    }
    if table.find(step).is_none() {
        table.insert(step, Node { value: Value::Table(Table::default()), place: value.place });
    }
    let Some(entry) = table.entries.iter_mut().find(|entry| entry.key == *step) else {
        return Ok(());
    };
    match &mut entry.node.value {
        Value::Table(inner) => set_in_table(inner, rest, path, value),
        Value::List(items) => set_in_list(items, rest, path, value),
        other => {
            // A part of a link that is written as text becomes a table when one of its keys is set.
            *other = Value::Table(Table::default());
            match other {
                Value::Table(inner) => set_in_table(inner, rest, path, value),
                _ => Ok(()),
            }
        }
    }
}

fn set_in_list(items: &mut [Node], steps: &[&str], path: &str, value: &Node) -> Result<(), Flaw> {
    let Some((step, rest)) = steps.split_first() else { return Ok(()) };
    let mut found = false;
    for (index, item) in items.iter_mut().enumerate() {
        if *step != "*" && !is_named(item, index, step) {
            continue;
        }
        found = true;
        match &mut item.value {
            Value::Table(table) if !rest.is_empty() => set_in_table(table, rest, path, value)?,
            _ if rest.is_empty() => *item = value.clone(),
            _ => return Err(Flaw::value(value.place, path, step, "a path that leads to a value")),
        }
    }
    if found {
        return Ok(());
    }
    let names: Vec<&str> = items.iter().filter_map(Node::name).collect();
    let given = match nearest(step, names.iter().copied()) {
        Some(near) => format!("'{step}' leads nowhere; did you mean '{near}'?"),
        None => format!("'{step}' leads nowhere"),
    };
    let allowed =
        if names.is_empty() { format!("a number below {}", items.len()) } else { names.join(", ") };
    Err(Flaw::other(value.place, path, given, allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name = \"x\"\n[[flow]]\nname = \"a\"\ncount = 1\n[[flow]]\nname = \"b\"\n";

    fn whole(value: i64) -> Node {
        Node { value: Value::Whole(value), place: Place::default() }
    }

    #[test]
    fn values_know_their_places() {
        let (table, flaws) = Table::parse(TEXT);
        assert!(flaws.is_empty(), "{flaws:?}");
        let count = table.at("flow.a.count").expect("there");
        assert_eq!((count.place.offset, &count.value), (39, &Value::Whole(1)));
        assert_eq!(&TEXT[39..40], "1");
    }

    #[test]
    fn paths_reach_elements_by_name_number_and_star() {
        let (mut table, _) = Table::parse(TEXT);
        table.set("flow.a.count", &whole(2)).expect("by name");
        table.set("flow.1.count", &whole(3)).expect("by number, added");
        assert_eq!(table.at("flow.a.count").map(Node::show).as_deref(), Some("2"));
        assert_eq!(table.at("flow.b.count").map(Node::show).as_deref(), Some("3"));
        table.set("flow.*.count", &whole(9)).expect("all");
        assert_eq!(table.at("flow.0.count").map(Node::show).as_deref(), Some("9"));
        let flaw = table.set("flow.c.count", &whole(1)).expect_err("nobody");
        assert_eq!(
            (flaw.given.as_str(), flaw.allowed.as_str()),
            ("'c' leads nowhere; did you mean 'a'?", "a, b")
        );
    }

    #[test]
    fn assignments_are_toml_or_text() {
        let read = |text| Node::from_assignment(text, Place::default()).value;
        assert_eq!(read("3"), Value::Whole(3));
        assert_eq!(read("10mbit"), Value::Text("10mbit".to_owned()));
        assert_eq!(read("\"5%\""), Value::Text("5%".to_owned()));
        assert_eq!(read("true"), Value::Flag(true));
        assert!(matches!(read("[1, 2]"), Value::List(items) if items.len() == 2));
    }

    #[test]
    fn everything_that_is_not_toml_is_reported() {
        let (_, flaws) = Table::parse("a = \nb = 1\nc = [1,\nd = 2\n");
        assert!(!flaws.is_empty());
        assert!(flaws.iter().all(|flaw| !flaw.given.contains('\n')));
    }
}
