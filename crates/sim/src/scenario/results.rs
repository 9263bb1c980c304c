//! Reads `[[result]]`, which describes the published results that a scenario reproduces.

use super::reader::Section;

/// A published result, described for readers who do not know the paper.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// Identifier of the result in the catalogue, such as `mplot-fig11`.
    pub item: String,
    /// Title of the result: what is measured.
    pub title: String,
    /// Where the result is published, such as `Figure 11`; may be empty.
    pub source: String,
    /// What the paper states; may be empty.
    pub paper: String,
    /// Remarks for readers in addition to the figures; may be empty.
    pub note: String,
    /// Why the results differ, if they do; may be empty.
    pub explanation: String,
    /// Variants that follow different interpretations of the paper. Each has a verdict of its own;
    /// the first one's is also that of the item.
    pub readings: Vec<String>,
}

/// Reads every `[[result]]`.
pub(super) fn read(file: &Section<'_>) -> Vec<Published> {
    let mut results: Vec<Published> = Vec::new();
    for section in file.tables("result") {
        let words = |key: &str| {
            let text = section.raw(key).unwrap_or_default();
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let item = words("item");
        if results.iter().any(|result| result.item == item) {
            section.refuse_value("item", &item, "an item that no other result has");
            continue;
        }
        let readings = section.names("readings").unwrap_or_default();
        results.push(Published {
            title: words("title"),
            source: words("source"),
            paper: words("paper"),
            note: words("note"),
            explanation: words("explanation"),
            readings: readings.into_iter().map(|(name, _)| name).collect(),
            item,
        });
    }
    results
}
