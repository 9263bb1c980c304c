//! The catalogue of the papers' results that can be checked: figures, tables, theorems and stated
//! numbers.

use std::sync::OnceLock;

use strsim::levenshtein;

/// How many similar identifiers are suggested for one that does not exist.
const NEIGHBOURS: usize = 3;
/// One line for each item: identifier, scenario, result of the paper, and result that must be
/// shown.
const TABLE: &str = include_str!("../data/reproduction.tsv");

/// A result of a paper, and what its reproduction must show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Identifier of the item, such as `mplot-fig3`: the paper's name, a hyphen, the figure or another label.
    pub id: &'static str,
    /// Setup of the experiment, in brief.
    pub scenario: &'static str,
    /// Result that the paper states.
    pub paper_says: &'static str,
    /// Result that the reproduction must show.
    pub must_show: &'static str,
}

/// The papers, as `--paper` names them, with their titles.
pub const PAPERS: [(&str, &str); 5] = [
    ("mplot", "A Transport Protocol to Exploit MultiPath Diversity in Wireless Networks"),
    ("fmtcp", "FMTCP: A Fountain Code-based Multipath Transmission Control Protocol"),
    ("late", "Loss-Aware Throughput Estimation Scheduler for Multi-Path TCP"),
    ("mtcp", "Multipath TCP in Lossy Wireless Environment"),
    (
        "ptcp",
        "A Transport Layer Approach for Achieving Aggregate Bandwidths on Multi-Homed Mobile Hosts",
    ),
];

impl Item {
    /// The paper that the item is from: one of [`PAPERS`].
    pub fn paper(&self) -> &'static str {
        self.id.split_once('-').map_or(self.id, |(paper, _)| paper)
    }
}

/// Every item, in the order of the papers.
pub fn items() -> &'static [Item] {
    static ITEMS: OnceLock<Vec<Item>> = OnceLock::new();
    ITEMS.get_or_init(|| TABLE.lines().skip(1).filter_map(parse).collect())
}

fn parse(line: &'static str) -> Option<Item> {
    let mut fields = line.split('\t').map(str::trim);
    let item = Item {
        id: fields.next()?,
        scenario: fields.next()?,
        paper_says: fields.next()?,
        must_show: fields.next()?,
    };
    fields.next().is_none().then_some(item)
}

/// The item with this identifier.
///
/// # Errors
/// If there is no such item. The error lists the most similar identifiers.
pub fn find(id: &str) -> Result<&'static Item, Unknown> {
    items().iter().find(|item| item.id == id).ok_or_else(|| {
        let mut ids: Vec<&str> = items().iter().map(|item| item.id).collect();
        ids.sort_by_key(|other| levenshtein(id, other));
        Unknown {
            given: id.to_owned(),
            nearest: ids.into_iter().take(NEIGHBOURS).map(str::to_owned).collect(),
        }
    })
}

/// The items of a paper.
///
/// # Errors
/// If there is no such paper. The error lists the known papers.
pub fn of_paper(paper: &str) -> Result<Vec<&'static Item>, Unknown> {
    let found: Vec<_> = items().iter().filter(|item| item.paper() == paper).collect();
    if found.is_empty() {
        let nearest = PAPERS.iter().map(|(name, _)| (*name).to_owned()).collect();
        return Err(Unknown { given: paper.to_owned(), nearest });
    }
    Ok(found)
}

/// An unknown name, and known names like it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The unknown name.
    pub given: String,
    /// Known names that may have been meant.
    pub nearest: Vec<String>,
}

impl core::fmt::Display for Unknown {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "there is no '{}'; near it: {}", self.given, self.nearest.join(", "))
    }
}

impl core::error::Error for Unknown {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read_whole() {
        assert_eq!(items().len(), 96);
        assert_eq!(TABLE.lines().count(), 97);
        let counts = PAPERS.map(|(name, _)| of_paper(name).map_or(0, |items| items.len()));
        assert_eq!(counts, [21, 24, 27, 9, 15], "of {PAPERS:?}");
        for (index, item) in items().iter().enumerate() {
            assert!(items()[..index].iter().all(|earlier| earlier.id != item.id), "{}", item.id);
        }
    }

    #[test]
    fn an_unknown_name_brings_up_its_neighbours() {
        let error = find("mplot-fg3").unwrap_err();
        assert!(error.nearest.iter().any(|id| id == "mplot-fig3"), "{error}");
        let error = of_paper("quic").unwrap_err();
        assert!(error.to_string().contains("fmtcp"), "{error}");
    }
}
