use std::path::Path;

use anabranch_sim::report::{RunReport, Scalar};

use super::*;
use crate::testing;

const ID: RunId = RunId { point: 2, seed: 7 };

fn sweep() -> Sweep {
    testing::sweep(&["1%", "2%", "3%", "4%"], 9)
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
    let journal = Journal::open(directory.path(), &sweep()).unwrap();
    assert_eq!(journal.load(ID).unwrap(), None);
    journal.keep(ID, &report()).unwrap();
    let kept = journal.load(ID).unwrap().unwrap();
    assert_eq!(kept, report());
    assert_eq!(kept.scalars[2].value.to_bits(), (-0.0f64).to_bits());
    drop(journal);
    let again = Journal::open(directory.path(), &sweep()).unwrap();
    assert_eq!(again.load(ID).unwrap(), Some(report()));
    assert_eq!(Manifest::of(directory.path()).unwrap(), Manifest::new(&sweep()));
    let found = Sweep::of(directory.path()).unwrap();
    assert_eq!((found.provenance(), found.seeds()), (sweep().provenance(), sweep().seeds()));
}

#[test]
fn a_damaged_run_counts_as_missing() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path(), &sweep()).unwrap();
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
    drop(Journal::open(directory.path(), &sweep()).unwrap());
    let changed = testing::sweep(&["9%"], 9);
    let error = Journal::open(directory.path(), &changed).unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("another version of"), "{error}");
    let manifest = Manifest::of(directory.path()).unwrap();
    let mut other = manifest.clone();
    other.provenance.scenario = "ring".to_owned();
    other.provenance.hash = "1".to_owned();
    other.write(directory.path()).unwrap();
    let error = Journal::open(directory.path(), &sweep()).unwrap_err().to_string();
    assert!(error.contains("holds results of scenario `ring`"), "{error}");
    assert!(Sweep::of(directory.path()).unwrap_err().is_usage());
    let mut older = manifest;
    older.provenance.version = "0.0.1".to_owned();
    older.write(directory.path()).unwrap();
    for error in [
        Journal::open(directory.path(), &sweep()).unwrap_err(),
        Sweep::of(directory.path()).unwrap_err(),
    ] {
        assert!(error.to_string().contains("made by version 0.0.1"), "{error}");
    }

    let mine = tempfile::tempdir().unwrap();
    fs::write(mine.path().join("thesis.tex"), "years").unwrap();
    let error = Journal::open(mine.path(), &sweep()).unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("other files"), "{error}");
    assert!(Manifest::of(mine.path()).unwrap_err().is_usage());
    let file = mine.path().join("thesis.tex");
    assert!(Journal::open(&file, &sweep()).unwrap_err().is_usage());
    assert_eq!(fs::read_dir(mine.path()).unwrap().count(), 1);
}

#[test]
fn one_at_a_time_writes_there() {
    let directory = tempfile::tempdir().unwrap();
    let first = Journal::open(directory.path(), &sweep()).unwrap();
    let second = Journal::open(directory.path(), &sweep());
    assert!(matches!(second, Err(ResultsError::Busy { .. })));
    drop(first);
    Journal::open(directory.path(), &sweep()).unwrap();
}

#[test]
fn a_run_that_cannot_be_written_leaves_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path(), &sweep()).unwrap();
    journal.keep(ID, &report()).unwrap();
    let blocked = RunId { point: 3, seed: 7 };
    fs::create_dir(journal.path(blocked)).unwrap();
    let error = journal.keep(blocked, &report()).unwrap_err().to_string();
    assert!(error.contains("point3-seed7.run: cannot write"), "{error}");
    assert_eq!(journal.load(ID).unwrap(), Some(report()));
}

#[test]
fn runs_of_other_directories_are_taken_over_once() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let other = RunId { point: 1, seed: 3 };
    let report_of = |id: RunId| RunReport { seed: id.seed, ..report() };
    let source = Journal::open(one.path(), &sweep()).unwrap();
    source.keep(ID, &report()).unwrap();
    source.keep(other, &report_of(other)).unwrap();
    let runs = one.path().join(RUNS);
    // Files that are damaged, that hold another run or that hold no run are not copied.
    fs::copy(runs.join("point2-seed7.run"), runs.join("point0-seed7.run")).unwrap();
    fs::write(runs.join("point0-seed1.run"), "short").unwrap();
    fs::write(runs.join("pointless.run"), "").unwrap();
    drop(source);
    let journal = Journal::open(two.path(), &sweep()).unwrap();
    assert_eq!(journal.take(one.path()).unwrap(), 2);
    assert_eq!(journal.take(one.path()).unwrap(), 0);
    assert_eq!(journal.load(other).unwrap(), Some(report_of(other)));
    let missing = journal.missing([ID, other, RunId { point: 0, seed: 7 }].into_iter()).unwrap();
    assert_eq!(missing, [RunId { point: 0, seed: 7 }]);

    let foreign = tempfile::tempdir().unwrap();
    assert!(journal.take(foreign.path()).unwrap_err().is_usage());
    drop(Journal::open(foreign.path(), &testing::sweep(&["9%"], 1)).unwrap());
    assert!(journal.take(foreign.path()).unwrap_err().is_usage());
}

#[test]
fn seeds_that_were_asked_for_are_noted() {
    let directory = tempfile::tempdir().unwrap();
    let part = |seeds: &[u64]| Sweep::new(sweep().scenario().clone(), Some(seeds.to_vec()));
    drop(Journal::open(directory.path(), &part(&[12, 11])).unwrap());
    drop(Journal::open(directory.path(), &part(&[3])).unwrap());
    assert_eq!(Sweep::of(directory.path()).unwrap().seeds(), [3, 11, 12]);
}
