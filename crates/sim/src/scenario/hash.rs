//! The hash of a scenario. Runs of scenarios with different hashes must not be mixed.

use super::Scenario;
use super::tree::{Node, Table, Value};

/// Keys that describe or judge results and do not change runs.
const MEANING: &[&str] = &[
    "title",
    "description",
    "item",
    "result",
    "claim",
    "expect",
    "measure",
    "figure",
    "base",
    "variants",
];

impl Scenario {
    /// Sixteen hexadecimal digits, which almost certainly differ between scenarios whose runs may
    /// differ: in a key, an assignment, a figure that is measured on request, the content of a
    /// file, or the names and the [version](super::OwnPolicies) of a program's own policies. Claims
    /// are not part of the hash, so that runs stay valid when claims change. Seeds in the
    /// scenario's text are part of the hash; seeds given in other ways are not.
    pub fn hash(&self) -> String {
        let mut hash = Hash(0xcbf2_9ce4_8422_2325);
        hash.table(&self.root.without(MEANING));
        for point in &self.points {
            point.labels.iter().for_each(|(key, value)| hash.text(&format!("{key}={value}")));
        }
        for (subject, metric) in &self.wanted {
            hash.text(&format!("{metric} of {subject}"));
        }
        for (path, content) in &self.attached {
            if !self.sources.has_base(path) {
                hash.text(path);
                hash.text(content);
            }
        }
        self.policies.identity().for_each(|text| hash.text(&text));
        format!("{:016x}", hash.0)
    }
}

/// The state of an FNV-1a hash.
struct Hash(u64);

impl Hash {
    fn text(&mut self, text: &str) {
        for byte in text.bytes().chain([0]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn table(&mut self, table: &Table) {
        let mut entries: Vec<_> = table.entries.iter().collect();
        // Sort the keys, since their order in the file does not matter.
        entries.sort_by(|a, b| a.key.cmp(&b.key));
        for entry in entries {
            self.text(&entry.key);
            self.node(&entry.node);
        }
        self.text("}");
    }

    fn node(&mut self, node: &Node) {
        match &node.value {
            Value::Table(table) => self.table(table),
            Value::List(items) => {
                items.iter().for_each(|item| self.node(item));
                self.text("]");
            }
            _ => self.text(&node.show()),
        }
    }
}
