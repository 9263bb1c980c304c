use std::path::Path;

use anabranch_sim::report::{RunReport, Scalar};

use super::*;

const ID: RunId = RunId { point: 2, seed: 7 };

fn provenance(hash: &str) -> Provenance {
    Provenance::new("dumbbell", hash, &[], "name = \"dumbbell\"\n")
}

fn report() -> RunReport {
    let scalar = |metric: &str, value| Scalar {
        subject: "all".to_owned(),
        metric: metric.to_owned(),
        value,
    };
    RunReport {
        seed: 7,
        scalars: vec![scalar("a", 0.1 + 0.2), scalar("b", f64::NEG_INFINITY), scalar("c", -0.0)],
        digest: u64::MAX,
        ..RunReport::default()
    }
}

fn run_file(directory: &Path) -> PathBuf {
    directory.join(RUNS).join("point2-seed7.run")
}

#[test]
fn a_kept_run_comes_back_to_the_bit() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path(), &provenance("1")).unwrap();
    assert_eq!(journal.load(ID).unwrap(), None);
    journal.keep(ID, &report()).unwrap();
    let kept = journal.load(ID).unwrap().unwrap();
    assert_eq!(kept, report());
    assert_eq!(kept.scalars[2].value.to_bits(), (-0.0f64).to_bits());
    drop(journal);
    let again = Journal::open(directory.path(), &provenance("1")).unwrap();
    assert_eq!(again.load(ID).unwrap(), Some(report()));
    assert_eq!(Provenance::of(directory.path()).unwrap(), provenance("1"));
}

#[test]
fn a_damaged_run_counts_as_missing() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path(), &provenance("1")).unwrap();
    journal.keep(ID, &report()).unwrap();
    let path = run_file(directory.path());
    let whole = fs::read(&path).unwrap();
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        assert_eq!(journal.load(ID).unwrap(), None, "{length}");
    }
    for place in 0..whole.len() {
        let mut other = whole.clone();
        other[place] ^= 0x40;
        fs::write(&path, &other).unwrap();
        assert_eq!(journal.load(ID).unwrap(), None, "{place}");
    }
}

#[test]
fn what_others_left_is_refused_and_kept() {
    let directory = tempfile::tempdir().unwrap();
    drop(Journal::open(directory.path(), &provenance("1")).unwrap());
    let error = Journal::open(directory.path(), &provenance("2")).unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("another version of"), "{error}");
    let mut other = provenance("2");
    other.scenario = "ring".to_owned();
    let error = Journal::open(directory.path(), &other).unwrap_err().to_string();
    assert!(error.contains("holds results of scenario `dumbbell`"), "{error}");
    let mut older = provenance("1");
    older.version = "0.0.1".to_owned();
    let error = Journal::open(directory.path(), &older).unwrap_err().to_string();
    assert!(error.contains("made by version"), "{error}");

    let mine = tempfile::tempdir().unwrap();
    fs::write(mine.path().join("thesis.tex"), "years").unwrap();
    let error = Journal::open(mine.path(), &provenance("1")).unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("other files"), "{error}");
    assert!(Provenance::of(mine.path()).unwrap_err().is_usage());
    let file = mine.path().join("thesis.tex");
    assert!(Journal::open(&file, &provenance("1")).unwrap_err().is_usage());
    assert_eq!(fs::read_dir(mine.path()).unwrap().count(), 1);
}

#[test]
fn one_at_a_time_writes_there() {
    let directory = tempfile::tempdir().unwrap();
    let first = Journal::open(directory.path(), &provenance("1")).unwrap();
    let second = Journal::open(directory.path(), &provenance("1"));
    assert!(matches!(second, Err(ResultsError::Busy { .. })));
    drop(first);
    Journal::open(directory.path(), &provenance("1")).unwrap();
}

#[test]
fn a_run_that_cannot_be_written_leaves_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path(), &provenance("1")).unwrap();
    journal.keep(ID, &report()).unwrap();
    let blocked = RunId { point: 3, seed: 7 };
    fs::create_dir(journal.path(blocked)).unwrap();
    let error = journal.keep(blocked, &report()).unwrap_err().to_string();
    assert!(error.contains("point3-seed7.run: cannot write"), "{error}");
    assert_eq!(journal.load(ID).unwrap(), Some(report()));
}
