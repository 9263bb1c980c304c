use std::fs;
use std::path::Path;

use anabranch_sim::report::{RunReport, Samples, Scalar, Series};

use super::*;
use crate::{Provenance, Summary};

fn provenance() -> Provenance {
    Provenance::new("two-links", "00ff", &["seeds=2".to_owned()], "name = \"two-links\"\n")
}

fn points() -> Vec<Vec<(String, String)>> {
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    vec![
        vec![pair("flow.bulk.count", "1"), pair("link.a.rate", "5mbit")],
        vec![pair("flow.bulk.count", "2.5"), pair("link.a.rate", "10mbit")],
    ]
}

fn report(point: usize, seed: u64) -> RunReport {
    let text = |text: &str| text.to_owned();
    let value = point as f64 + seed as f64 / 10.0;
    RunReport {
        point: points()[point].clone(),
        seed,
        scalars: vec![
            Scalar { subject: text("bulk"), metric: text("goodput_mbps"), value },
            Scalar { subject: text("all"), metric: text("jain"), value: f64::NAN },
        ],
        series: vec![Series {
            subject: text("bulk"),
            metric: text("cwnd_packets"),
            times: vec![0.5, 1.0],
            values: vec![1.0, 2.0],
        }],
        samples: vec![Samples {
            subject: text("bulk"),
            metric: text("packet_delay_s"),
            values: vec![0.25, 0.125, 0.5],
        }],
        digest: 7,
        packet_hops: 10,
        events: 20,
        virtual_seconds: 30.0,
        ..RunReport::default()
    }
}

fn write(directory: &Path) {
    let mut tables = Tables::begin(directory, &provenance(), &points()).unwrap();
    for point in 0..2 {
        for seed in [1, u64::MAX] {
            tables.append(point, &report(point, seed)).unwrap();
        }
    }
    finish(tables, directory);
}

fn finish(tables: Tables, directory: &Path) {
    let tables = tables.finish().unwrap();
    let summary = serde_json::json!({ "tables": tables }).to_string();
    fs::write(directory.join(Summary::FILE), summary).unwrap();
}

#[test]
fn what_was_written_is_read() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path());
    let mut rows = Vec::new();
    let points = read(directory.path(), SCALARS, &mut |row| {
        rows.push((row.point, row.seed, row.subject.to_owned(), row.metric.to_owned(), row.value));
    });
    let points = points.unwrap();
    assert_eq!(points.keys, ["flow.bulk.count", "link.a.rate"]);
    assert_eq!(points.values[&1], ["2.5", "10mbit"]);
    assert_eq!(rows.len(), 8);
    let expected = (1, 1, "bulk".to_owned(), "goodput_mbps".to_owned(), 1.1);
    assert_eq!(rows[4], expected);
    assert_eq!(rows[2].1, u64::MAX);
    assert!(rows[1].4.is_nan());
    let mut at = Vec::new();
    read(directory.path(), SERIES, &mut |row| at.push((row.at, row.value))).unwrap();
    assert_eq!(at[..3], [(0.5, 1.0), (1.0, 2.0), (0.5, 1.0)]);
    let mut at = Vec::new();
    read(directory.path(), SAMPLES, &mut |row| at.push((row.at, row.value))).unwrap();
    assert_eq!(at[..4], [(0.0, 0.25), (1.0, 0.125), (2.0, 0.5), (0.0, 0.25)]);
}

#[test]
fn the_same_figures_are_the_same_bytes() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(one.path());
    write(two.path());
    for name in [SCALARS, SERIES, SAMPLES] {
        let bytes = |directory: &Path| std::fs::read(directory.join(name)).unwrap();
        assert!(bytes(one.path()) == bytes(two.path()), "{name}");
    }
}

#[test]
fn tables_given_up_leave_what_was_there() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path());
    let before = std::fs::read(directory.path().join(SCALARS)).unwrap();
    let mut tables = Tables::begin(directory.path(), &provenance(), &points()).unwrap();
    tables.append(0, &report(0, 3)).unwrap();
    drop(tables);
    assert!(std::fs::read(directory.path().join(SCALARS)).unwrap() == before);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 4);
}

#[test]
fn row_groups_join_without_a_seam() {
    let directory = tempfile::tempdir().unwrap();
    let mut tables = Tables::begin(directory.path(), &provenance(), &points()).unwrap();
    let mut long = report(0, 1);
    long.samples[0].values = (0..300_000).map(f64::from).collect();
    tables.append(0, &long).unwrap();
    finish(tables, directory.path());
    let mut next = 0.0;
    read(directory.path(), SAMPLES, &mut |row| {
        assert_eq!((row.at, row.value, row.subject), (next, next, "bulk"));
        next += 1.0;
    })
    .unwrap();
    assert_eq!(next, 300_000.0);
}

#[test]
fn a_file_that_is_no_table_is_named() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path());
    fs::write(directory.path().join(SCALARS), "not a table").unwrap();
    let error = read(directory.path(), SCALARS, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains(SCALARS), "{error}");
    std::fs::remove_file(directory.path().join(SERIES)).unwrap();
    assert!(read(directory.path(), SERIES, &mut |_| {}).unwrap_err().to_string().contains("read"));
    fs::write(directory.path().join(Summary::FILE), "{}").unwrap();
    let error = read(directory.path(), SAMPLES, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("summary.json"), "{error}");
}

#[test]
fn a_table_that_was_changed_is_not_read() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path());
    let path = directory.path().join(SERIES);
    let whole = std::fs::read(&path).unwrap();
    let refused = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let error = read(directory.path(), SERIES, &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("it is not the file that summary.json describes"), "{error}");
    };
    for length in (0..whole.len()).step_by(29) {
        refused(&whole[..length]);
    }
    for place in (0..whole.len()).step_by(29) {
        let mut other = whole.clone();
        other[place] ^= 0x80;
        refused(&other);
    }
    fs::write(&path, &whole).unwrap();
    read(directory.path(), SERIES, &mut |_| {}).unwrap();
}
