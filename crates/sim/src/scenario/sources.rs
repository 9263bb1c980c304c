//! The files that a scenario is read from: its own file, its bases, and the other files that it
//! names.

use core::cell::RefCell;
use std::collections::BTreeMap;

use super::ReadFile;
use super::error::{Flaw, Place, ScenarioError};
use super::reader::Files;
use super::tree::{Node, Table, Value};

/// Longest chain of files in which each is the base of the one before.
const MAX_BASES: usize = 8;
/// Keys that describe or judge results. A file does not take them over from its base.
const MEANING: &[&str] =
    &["name", "title", "description", "item", "result", "claim", "expect", "measure", "figure"];
/// Keys that name a file's base and its changes.
const CHANGES: &[&str] = &["base", "set", "quick"];

/// A scenario file and the chain of its bases. The offsets of places are counted across all these
/// files.
#[derive(Clone, Debug, Default)]
pub(super) struct Sources {
    /// Name, text and start offset of each file.
    files: Vec<(String, String, usize)>,
}

/// The tree of keys that results from a chain of files.
#[derive(Clone, Debug, Default)]
pub(super) struct Merged {
    pub root: Table,
    /// Keys that quick runs change, with their new values, in the order in which they are applied.
    pub quick: Vec<(String, Node)>,
}

impl Sources {
    /// The sources of a scenario in this file, before its bases are read.
    pub(super) fn new(name: &str, text: &str) -> Self {
        Sources { files: vec![(name.to_owned(), text.to_owned(), 0)] }
    }

    /// The scenario's own text.
    pub(super) fn text(&self) -> &str {
        self.files.first().map_or("", |(_, text, _)| text)
    }

    /// The scenario's own name for messages.
    pub(super) fn name(&self) -> &str {
        self.files.first().map_or("", |(name, ..)| name)
    }

    /// Whether one of the scenario's bases has this file name.
    pub(super) fn has_base(&self, name: &str) -> bool {
        self.files.iter().skip(1).any(|(known, ..)| known == name)
    }

    /// The mistakes with their files and lines, in the order of the files.
    pub(super) fn locate(
        &self,
        mut flaws: Vec<Flaw>,
        assignments: &[String],
    ) -> Vec<ScenarioError> {
        flaws.sort();
        flaws.dedup();
        let locate = |mut flaw: Flaw| {
            let offset = flaw.place.offset;
            let holder = self.files.iter().rev().find(|(_, _, start)| *start <= offset);
            let Some((name, text, start)) = holder else { return flaw.locate("", "", assignments) };
            flaw.place.offset -= start;
            flaw.locate(name, text, assignments)
        };
        flaws.into_iter().map(locate).collect()
    }

    /// The tree of keys of all files, shortened if `is_quick`, with the assignments applied, and
    /// the mistakes in the assignments.
    ///
    /// # Errors
    /// When the files cannot be read or merged into a tree.
    pub(super) fn assigned(
        &mut self,
        assignments: &[String],
        is_quick: bool,
        files: &dyn Files,
    ) -> Result<(Table, Vec<Flaw>), Vec<ScenarioError>> {
        let Merged { mut root, quick } =
            self.merge(files).map_err(|flaws| self.locate(flaws, assignments))?;
        let mut flaws = Vec::new();
        for (key, value) in quick.iter().filter(|_| is_quick) {
            flaws.extend(root.set(key, value).err());
        }
        for (index, assignment) in assignments.iter().enumerate() {
            flaws.extend(assign(&mut root, index, assignment).err());
        }
        Ok((root, flaws))
    }

    /// Reads the scenario's text and all its bases into one tree.
    ///
    /// # Errors
    /// When a text is not TOML, or a base cannot be read or is its own base, directly or through
    /// others.
    pub(super) fn merge(&mut self, files: &dyn Files) -> Result<Merged, Vec<Flaw>> {
        let (own, flaws) = Table::parse(self.text());
        let mut chain = vec![own];
        let mut flaws = flaws;
        while let Some(node) = chain.last().and_then(|table| table.find("base")) {
            if !flaws.is_empty() {
                break;
            }
            match self.base(&node.node.clone(), files) {
                Ok((table, found)) => {
                    flaws.extend(found);
                    chain.push(table);
                }
                Err(flaw) => flaws.push(flaw),
            }
        }
        if !flaws.is_empty() {
            // The keys of incomplete files would only cause misleading messages.
            return Err(flaws);
        }
        let mut merged = Merged::default();
        for table in chain.into_iter().rev() {
            if let Err(flaw) = merged.overlay(table) {
                flaws.push(flaw);
            }
        }
        if flaws.is_empty() { Ok(merged) } else { Err(flaws) }
    }

    /// Reads the file that `node` names. Also returns the mistakes in its TOML.
    fn base(&mut self, node: &Node, files: &dyn Files) -> Result<(Table, Vec<Flaw>), Flaw> {
        let refuse = |given: String, allowed: &str| Flaw::other(node.place, "base", given, allowed);
        let Value::Text(path) = &node.value else {
            return Err(refuse("not the name of a file".to_owned(), "a scenario beside this one"));
        };
        let text = files
            .read(path)
            .map_err(|why| refuse(format!("file '{path}' cannot be read: {why}"), ""))?;
        if self.files.iter().any(|(_, known, _)| *known == text) {
            let allowed = "a scenario that does not start from this one";
            return Err(refuse(format!("'{path}' starts from itself"), allowed));
        }
        if self.files.len() > MAX_BASES {
            let allowed = format!("{MAX_BASES} files that start from one another");
            return Err(refuse("too many files".to_owned(), &allowed));
        }
        let start = self.files.last().map_or(0, |(_, text, start)| start + text.len() + 1);
        let (mut table, mut flaws) = Table::parse(&text);
        table.shift(start);
        flaws.iter_mut().for_each(|flaw| flaw.place.offset += start);
        self.files.push((path.clone(), text, start));
        Ok((table, flaws))
    }
}

impl Merged {
    /// Applies `table` to this tree: its keys replace those of the same name, and then its `set` is
    /// applied.
    fn overlay(&mut self, mut table: Table) -> Result<(), Flaw> {
        let changes = table.take(CHANGES);
        self.root.take(MEANING);
        for entry in table.entries {
            self.root.replace(entry);
        }
        for entry in changes {
            if entry.key == "base" {
                self.root.replace(entry);
                continue;
            }
            let settings = match &entry.node.value {
                Value::Table(table) => table.flatten(),
                _ => {
                    let allowed = "a table of keys with their values";
                    return Err(Flaw::other(entry.node.place, entry.key, "not a table", allowed));
                }
            };
            if entry.key == "quick" {
                self.quick.extend(settings);
            } else {
                settings.iter().try_for_each(|(key, value)| self.root.set(key, value))?;
            }
        }
        Ok(())
    }
}

/// Reads each file once and keeps its content.
pub(super) struct Reading<'a, 'b> {
    pub attached: RefCell<BTreeMap<String, String>>,
    pub read: RefCell<&'a mut ReadFile<'b>>,
}

impl Files for Reading<'_, '_> {
    fn read(&self, path: &str) -> Result<String, String> {
        if let Some(content) = self.attached.borrow().get(path) {
            return Ok(content.clone());
        }
        let content = (self.read.borrow_mut())(path)?;
        self.attached.borrow_mut().insert(path.to_owned(), content.clone());
        Ok(content)
    }
}

impl Files for BTreeMap<String, String> {
    fn read(&self, path: &str) -> Result<String, String> {
        self.get(path).cloned().ok_or_else(|| "it was not read with the scenario".to_owned())
    }
}

/// Applies an assignment such as `flow.bulk.count=3` to a scenario's tree.
fn assign(root: &mut Table, index: usize, assignment: &str) -> Result<(), Flaw> {
    let place = Place { assignment: index + 1, offset: 0 };
    let Some((key, value)) = assignment.split_once('=') else {
        return Err(Flaw::value(place, "", assignment, "KEY=VALUE, such as flow.bulk.count=3"));
    };
    root.set(key.trim(), &Node::from_assignment(value.trim(), place))
}
