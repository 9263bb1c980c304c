//! Writes tables in parts by the values of sweep keys, in Hive's layout.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::tables::Tables;
use crate::{Journal, ResultsError, RunId};

/// Name of the directory of the parts in a results directory.
pub const PARTITIONS: &str = "partitions";

/// Writes the tables of the kept runs again, into `partitions/KEY=VALUE/…` of the journal's
/// directory: one set of tables for each combination of the values of `keys`, with the same columns
/// as the full tables. Earlier parts are removed, since with another choice of keys every row would
/// exist twice.
///
/// Returns the parts' directories.
///
/// # Errors
/// When a run cannot be read or a file cannot be written.
pub fn partition(journal: &Journal, keys: &[String]) -> Result<Vec<PathBuf>, ResultsError> {
    let sweep = journal.sweep();
    let points = sweep.scenario().points();
    let all = journal.directory().join(PARTITIONS);
    if all.exists() {
        fs::remove_dir_all(&all).map_err(ResultsError::io(&all, "remove"))?;
    }
    let mut parts: BTreeMap<PathBuf, Vec<usize>> = BTreeMap::new();
    for point in points {
        let level = |key: &String| {
            format!("{}={}", escaped(key), escaped(point.label(key).unwrap_or_default()))
        };
        let directory = all.join(keys.iter().map(level).collect::<PathBuf>());
        parts.entry(directory).or_default().push(point.index);
    }
    let labels: Vec<Vec<(String, String)>> =
        points.iter().map(|point| point.labels.clone()).collect();
    for (directory, points) in &parts {
        fs::create_dir_all(directory).map_err(ResultsError::io(directory, "make the directory"))?;
        let mut tables = Tables::begin(directory, sweep.provenance(), &labels)?;
        for point in points {
            for seed in sweep.seeds() {
                if let Some(report) = journal.load(RunId { point: *point, seed: *seed })? {
                    tables.append(*point, &report)?;
                }
            }
        }
        tables.finish()?;
    }
    Ok(parts.into_keys().collect())
}

/// Escapes `text` for a path. Every byte except ASCII letters, digits, dots, hyphens and
/// underscores becomes `%` and two hexadecimal digits, which readers of Hive's layout decode.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte {
            b'.' | b'-' | b'_' => escaped.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => escaped.push(char::from(byte)),
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{SCALARS, read};
    use crate::{Summary, testing};
    use anabranch_sim::report::{RunReport, Scalar};

    #[test]
    fn parts_have_the_rows_of_their_points() {
        let directory = tempfile::tempdir().unwrap();
        let sweep = testing::sweep(&["1%", "2%"], 2);
        let journal = Journal::open(directory.path(), &sweep).unwrap();
        for id in sweep.runs() {
            let value = id.point as f64 + id.seed as f64 / 10.0;
            let scalar = Scalar { subject: "all".to_owned(), metric: "m".to_owned(), value };
            let point = sweep.point(id).unwrap().labels.clone();
            let report =
                RunReport { point, seed: id.seed, scalars: vec![scalar], ..RunReport::default() };
            journal.keep(id, &report).unwrap();
        }
        fs::create_dir_all(directory.path().join(PARTITIONS).join("delay=1ms")).unwrap();
        let parts = partition(&journal, &["loss".to_owned()]).unwrap();
        let names: Vec<_> = parts.iter().map(|part| part.file_name().unwrap()).collect();
        assert_eq!(names, ["loss=1%25", "loss=2%25"]);
        assert_eq!(fs::read_dir(directory.path().join(PARTITIONS)).unwrap().count(), 2);
        // `read` needs a summary with the checksum of the table, and a part has none.
        assert!(!parts[1].join(Summary::FILE).exists());
        let metadata = fs::metadata(parts[1].join(SCALARS)).unwrap();
        assert!(metadata.len() > 0);
        let refused = read(&parts[1], SCALARS, &mut |_| {});
        assert!(refused.is_err(), "no summary says that it is right");
        // The scenario has only the first of these two keys, so the second has no value at any
        // point.
        let parts = partition(&journal, &["loss".to_owned(), "x/y".to_owned()]).unwrap();
        assert!(parts[0].ends_with("loss=1%25/x%2Fy="), "{parts:?}");
    }
}
