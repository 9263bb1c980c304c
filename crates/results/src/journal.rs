//! Keeps every finished run in a file of its own, so that an interruption loses only the runs in
//! progress.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anabranch_files::{Directory, Locked};
use anabranch_sim::report::RunReport;

use crate::file::{self, Checksum};
use crate::{Manifest, ResultsError, RunId, RunKey, Sweep};

/// First bytes of the file of a kept run.
const MAGIC: &[u8; 16] = b"anabranch-run-2\n";
const RUNS: &str = "runs";

/// A results directory in which the runs of a sweep are kept as they finish. The directory is
/// locked until the journal is dropped.
#[derive(Debug)]
pub struct Journal {
    directory: PathBuf,
    sweep: Sweep,
    /// The lock on the directory, which is released when this is dropped.
    _lock: Locked,
}

impl Journal {
    /// Opens `directory` for the runs of `sweep` and creates it if necessary. Runs that are already
    /// kept there count, and seeds requested earlier stay noted.
    ///
    /// # Errors
    /// When the directory holds other files or the results of another scenario or build, when
    /// another process writes to it, or when it cannot be written.
    pub fn open(directory: &Path, sweep: &Sweep) -> Result<Self, ResultsError> {
        let kept = Manifest::read(directory)?;
        let conflict = match &kept {
            Some(kept) => sweep.provenance().conflict(&kept.provenance),
            None => is_in_use(directory)?.then(|| "it holds other files".to_owned()),
        };
        if let Some(what) = conflict {
            return Err(ResultsError::Foreign { path: directory.to_owned(), what });
        }
        let runs = directory.join(RUNS);
        fs::create_dir_all(&runs).map_err(ResultsError::io(&runs, "make the directory"))?;
        let lock = lock(directory, &runs)?;
        let seeds = kept.as_ref().map_or(&[][..], |kept| &kept.seeds);
        let manifest = Manifest { seeds: sweep.united(seeds), ..Manifest::new(sweep) };
        if kept.is_none_or(|kept| kept.seeds != manifest.seeds) {
            manifest.write(directory)?;
        }
        Ok(Journal { directory: directory.to_owned(), sweep: sweep.clone(), _lock: lock })
    }

    /// The results directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The sweep whose runs are kept.
    pub fn sweep(&self) -> &Sweep {
        &self.sweep
    }

    /// Keeps a finished run. Its file is written completely or not at all.
    ///
    /// # Errors
    /// When the file cannot be written, such as on a full disk. Runs kept earlier stay.
    pub fn keep(&self, id: RunId, report: &RunReport) -> Result<(), ResultsError> {
        let path = self.path(id);
        let no_point = || damaged(&path, &"the scenario has no such point");
        let key = self.sweep.key(id).ok_or_else(no_point)?;
        let bytes = encode(key, report).map_err(|error| damaged(&path, &error))?;
        file::write(&path, &bytes, false)
    }

    /// A kept run; `None` if it is absent or damaged.
    ///
    /// # Errors
    /// When the file of the run exists but cannot be read.
    pub fn load(&self, id: RunId) -> Result<Option<RunReport>, ResultsError> {
        load(&self.directory, &self.sweep, id)
    }

    /// Copies the runs of this sweep that another results directory keeps and this one lacks.
    /// Returns how many were copied.
    ///
    /// # Errors
    /// When the other directory holds results of another scenario or build, or when a run cannot be read or
    /// written.
    pub fn take(&self, other: &Path) -> Result<usize, ResultsError> {
        let manifest = Manifest::of(other)?;
        if let Some(what) = self.sweep.provenance().conflict(&manifest.provenance) {
            return Err(ResultsError::Foreign { path: other.to_owned(), what });
        }
        let runs = other.join(RUNS);
        let entries = fs::read_dir(&runs).map_err(ResultsError::io(&runs, "read"))?;
        let seeds: BTreeSet<u64> = self.sweep.seeds().iter().copied().collect();
        let mut taken = 0;
        for entry in entries {
            let entry = entry.map_err(ResultsError::io(&runs, "read"))?;
            let Some(id) = entry.file_name().to_str().and_then(id_of) else { continue };
            if !seeds.contains(&id.seed) || self.has(id)? {
                continue;
            }
            let bytes = fs::read(entry.path()).map_err(ResultsError::io(&entry.path(), "read"))?;
            if self.sweep.key(id).and_then(|key| decode(&bytes, key)).is_some() {
                file::write(&self.path(id), &bytes, false)?;
                taken += 1;
            }
        }
        Ok(taken)
    }

    /// Those of `runs` that are not kept.
    ///
    /// # Errors
    /// When the file of a run exists but cannot be read.
    pub fn missing(&self, runs: impl Iterator<Item = RunId>) -> Result<Vec<RunId>, ResultsError> {
        let mut missing = Vec::new();
        for id in runs {
            if !self.has(id)? {
                missing.push(id);
            }
        }
        Ok(missing)
    }

    /// Whether a run is kept undamaged.
    fn has(&self, id: RunId) -> Result<bool, ResultsError> {
        let bytes = read(&self.path(id))?;
        Ok(bytes.is_some_and(|bytes| is_whole(&bytes, self.sweep.key(id))))
    }

    /// The error for a run that was kept before and is now missing or damaged.
    pub fn lost(&self, id: RunId) -> ResultsError {
        damaged(&self.path(id), &"it was kept, but is now missing or damaged")
    }

    fn path(&self, id: RunId) -> PathBuf {
        path(&self.directory, id)
    }
}

fn path(directory: &Path, id: RunId) -> PathBuf {
    directory.join(RUNS).join(format!("point{}-seed{}.run", id.point, id.seed))
}

/// The run whose file has this name.
fn id_of(name: &str) -> Option<RunId> {
    let (point, seed) = name.strip_prefix("point")?.strip_suffix(".run")?.split_once("-seed")?;
    Some(RunId { point: point.parse().ok()?, seed: seed.parse().ok()? })
}

/// A run of `sweep` that `directory` keeps, as [`Journal::load`] returns it, but without the directory's lock.
///
/// # Errors
/// When the file of the run exists but cannot be read.
pub fn load(directory: &Path, sweep: &Sweep, id: RunId) -> Result<Option<RunReport>, ResultsError> {
    let bytes = read(&path(directory, id))?;
    Ok(bytes.zip(sweep.key(id)).and_then(|(bytes, key)| decode(&bytes, key)))
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, ResultsError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ResultsError::io(path, "read")(error)),
    }
}

/// Whether the directory exists and holds something.
fn is_in_use(directory: &Path) -> Result<bool, ResultsError> {
    match fs::read_dir(directory) {
        // An attempt that failed before it wrote a manifest leaves only the directory `runs`, which
        // belongs to no sweep.
        Ok(mut entries) => {
            Ok(entries.any(|entry| entry.is_ok_and(|entry| entry.file_name() != RUNS)))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(ResultsError::io(directory, "read")(error)),
    }
}

/// Locks the directory. On a file system without locks it succeeds without locking.
fn lock(directory: &Path, runs: &Path) -> Result<Locked, ResultsError> {
    let failed = |error| ResultsError::io(&runs.join("lock"), "write")(error);
    let held = Directory::open(runs).map_err(failed)?;
    held.lock("lock").map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => ResultsError::Busy { path: directory.to_owned() },
        _ => failed(error),
    })
}

/// Encodes a run, to keep or send it. The key is included, so that the run cannot be mistaken for
/// another.
///
/// # Errors
/// When the report cannot be serialised. The error is one line.
pub fn encode(key: RunKey, report: &RunReport) -> Result<Vec<u8>, String> {
    let body = postcard::to_stdvec(&(key, report)).map_err(|error| error.to_string())?;
    let mut bytes = Vec::with_capacity(MAGIC.len() + 8 + body.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&Checksum::of(&body).0.to_le_bytes());
    bytes.extend_from_slice(&body);
    Ok(bytes)
}

/// The report of the run with that key; `None` if the bytes are of another run or damaged.
pub fn decode(bytes: &[u8], key: RunKey) -> Option<RunReport> {
    decode_any(bytes).filter(|(of, _)| *of == key).map(|(_, report)| report)
}

/// A run's report with its key, whichever run it is; `None` if the bytes are damaged.
pub fn decode_any(bytes: &[u8]) -> Option<(RunKey, RunReport)> {
    postcard::from_bytes(body(bytes)?).ok()
}

fn is_whole(bytes: &[u8], key: Option<RunKey>) -> bool {
    let of = body(bytes).and_then(|body| postcard::take_from_bytes::<RunKey>(body).ok());
    of.is_some_and(|(of, _)| Some(of) == key)
}

/// The bytes after the checksum, if the checksum is right.
fn body(bytes: &[u8]) -> Option<&[u8]> {
    let (sum, body) = bytes.strip_prefix(MAGIC)?.split_first_chunk::<8>()?;
    (u64::from_le_bytes(*sum) == Checksum::of(body).0).then_some(body)
}

fn damaged(path: &Path, why: &dyn std::fmt::Display) -> ResultsError {
    ResultsError::Damaged { path: path.to_owned(), why: why.to_string() }
}

#[cfg(test)]
mod tests;
