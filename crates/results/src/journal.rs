//! Finished runs, kept one by one so that an interruption costs only the runs under way.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anabranch_files::{Directory, Locked};
use anabranch_sim::report::RunReport;

use crate::file::{self, Checksum};
use crate::{Provenance, ResultsError};

/// First bytes of a kept run.
const MAGIC: &[u8; 16] = b"anabranch-run-1\n";
/// What says whose results a directory holds.
const MANIFEST: &str = "scenario.json";
const RUNS: &str = "runs";

/// Which run: a point of the sweep, and a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId {
    /// Index of the point in the scenario's order.
    pub point: usize,
    /// The seed.
    pub seed: u64,
}

/// A results directory that runs are kept in as they finish. It is locked until dropped.
#[derive(Debug)]
pub struct Journal {
    directory: PathBuf,
    provenance: Provenance,
    /// Holds the lock.
    _lock: Locked,
}

impl Journal {
    /// Opens `directory` for the runs of `provenance`, making it if need be; runs that are kept there
    /// already count.
    ///
    /// # Errors
    /// When the directory holds other files or the results of another scenario or build, when another
    /// process writes there, or when it cannot be written.
    pub fn open(directory: &Path, provenance: &Provenance) -> Result<Self, ResultsError> {
        let manifest = directory.join(MANIFEST);
        let kept = match fs::read(&manifest) {
            Ok(text) => Some(parse_manifest(&manifest, &text)?),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                let path = directory.to_owned();
                return Err(ResultsError::Foreign { path, what: "it is a file".to_owned() });
            }
            Err(error) => return Err(ResultsError::io(&manifest, "read")(error)),
        };
        let conflict = match &kept {
            Some(kept) => provenance.conflict(kept),
            None => is_in_use(directory)?.then(|| "it holds other files".to_owned()),
        };
        if let Some(what) = conflict {
            return Err(ResultsError::Foreign { path: directory.to_owned(), what });
        }
        let runs = directory.join(RUNS);
        fs::create_dir_all(&runs).map_err(ResultsError::io(&runs, "make the directory"))?;
        let lock = lock(directory, &runs)?;
        if kept.is_none() {
            let text = serde_json::to_vec_pretty(provenance);
            let text = text.map_err(|error| damaged(&manifest, &error))?;
            file::write(&manifest, &text, true)?;
        }
        Ok(Journal { directory: directory.to_owned(), provenance: provenance.clone(), _lock: lock })
    }

    /// The results directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whose runs are kept.
    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    /// Keeps a finished run: whole, or not at all.
    ///
    /// # Errors
    /// When it cannot be written, as on a full disk; runs kept earlier stay.
    pub fn keep(&self, id: RunId, report: &RunReport) -> Result<(), ResultsError> {
        let path = self.path(id);
        let body = postcard::to_stdvec(&(&self.provenance.hash, report));
        let body = body.map_err(|error| damaged(&path, &error))?;
        let mut bytes = Vec::with_capacity(MAGIC.len() + 8 + body.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&Checksum::of(&body).0.to_le_bytes());
        bytes.extend_from_slice(&body);
        file::write(&path, &bytes, false)
    }

    /// A kept run; none if it is not there. One that a crash left damaged is not there either.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub fn load(&self, id: RunId) -> Result<Option<RunReport>, ResultsError> {
        load(&self.directory, &self.provenance, id)
    }

    /// The error that a run is missing which was kept before.
    pub fn lost(&self, id: RunId) -> ResultsError {
        damaged(&self.path(id), &"it was kept, and is missing or damaged now")
    }

    fn path(&self, id: RunId) -> PathBuf {
        path(&self.directory, id)
    }
}

fn path(directory: &Path, id: RunId) -> PathBuf {
    directory.join(RUNS).join(format!("point{}-seed{}.run", id.point, id.seed))
}

/// A run of `provenance` that `directory` keeps, as [`Journal::load`] finds it, whoever may be writing there.
///
/// # Errors
/// When it is there and cannot be read.
pub fn load(
    directory: &Path,
    provenance: &Provenance,
    id: RunId,
) -> Result<Option<RunReport>, ResultsError> {
    let path = path(directory, id);
    match fs::read(&path) {
        Ok(bytes) => Ok(parse_run(&bytes, &provenance.hash).filter(|run| run.seed == id.seed)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ResultsError::io(&path, "read")(error)),
    }
}

impl Provenance {
    /// Whose results `directory` holds.
    ///
    /// # Errors
    /// When it is no results directory, or what it says about itself cannot be read.
    pub fn of(directory: &Path) -> Result<Self, ResultsError> {
        let manifest = directory.join(MANIFEST);
        match fs::read(&manifest) {
            Ok(text) => parse_manifest(&manifest, &text),
            Err(error) if error.kind() == ErrorKind::NotFound && directory.is_dir() => {
                let what = format!("it holds no results: there is no {MANIFEST} in it");
                Err(ResultsError::Foreign { path: directory.to_owned(), what })
            }
            Err(error) => Err(ResultsError::io(directory, "read")(error)),
        }
    }
}

fn parse_manifest(path: &Path, text: &[u8]) -> Result<Provenance, ResultsError> {
    serde_json::from_slice(text).map_err(|error| damaged(path, &error))
}

/// Whether the directory is there with something in it.
fn is_in_use(directory: &Path) -> Result<bool, ResultsError> {
    match fs::read_dir(directory) {
        // What an attempt that could not even say whose it is has left is nobody's.
        Ok(mut entries) => {
            Ok(entries.any(|entry| entry.is_ok_and(|entry| entry.file_name() != RUNS)))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(ResultsError::io(directory, "read")(error)),
    }
}

/// A file system without locks takes the user's word that nobody else is there.
fn lock(directory: &Path, runs: &Path) -> Result<Locked, ResultsError> {
    let failed = |error| ResultsError::io(&runs.join("lock"), "write")(error);
    let held = Directory::open(runs).map_err(failed)?;
    held.lock("lock").map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => ResultsError::Busy { path: directory.to_owned() },
        _ => failed(error),
    })
}

fn parse_run(bytes: &[u8], hash: &str) -> Option<RunReport> {
    let (sum, body) = bytes.strip_prefix(MAGIC)?.split_first_chunk::<8>()?;
    if u64::from_le_bytes(*sum) != Checksum::of(body).0 {
        return None;
    }
    let (of, report): (String, RunReport) = postcard::from_bytes(body).ok()?;
    (of == hash).then_some(report)
}

fn damaged(path: &Path, why: &dyn std::fmt::Display) -> ResultsError {
    ResultsError::Damaged { path: path.to_owned(), why: why.to_string() }
}

#[cfg(test)]
mod tests;
