//! A file that has not arrived completely: its bytes, and a note of what they are.
//!
//! Beside the place of `film.mp4` lies `.anabranch-<hash>.part` with the bytes and `….state` with a
//! note of whose bytes they are and how many of them are safe. The note is written anew every second,
//! after the bytes it speaks of; what it speaks of survives the death of the process and of the machine.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anabranch::transfer::{Code, Entry, Modified};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::error::TransferError;
use super::hash::{Hash, Sum};
use super::target::{Fingerprint, look, storage, sync_parent};
use crate::format;

/// Bytes after which the note is written anew, at the latest.
const NOTE_BYTES: u64 = 64 << 20;
/// Time after which the note is written anew, at the latest.
const NOTE_TIME: Duration = Duration::from_secs(1);
/// The ending of a note that is being written.
const NEW: &str = "new";
/// Longest note that is read, bytes.
const MAX_NOTE: u64 = 1 << 16;

/// What the `.state` file says.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    version: u8,
    name: String,
    size: u64,
    modified: (i64, u32),
    /// Bytes that are safe, and their SHA-256.
    offset: u64,
    sha256: String,
}

/// A partial file, open and locked.
#[derive(Debug)]
pub(super) struct Partial {
    entry: Entry,
    part: PathBuf,
    note: PathBuf,
    file: File,
    hash: Hash,
    written: u64,
    noted: u64,
    noted_at: Instant,
}

impl Partial {
    /// Goes on where an earlier transfer of `entry` to `target` stopped; `None` if there was none, or
    /// one of another version of the file.
    ///
    /// # Errors
    /// If the bytes are not those that were received.
    pub(super) fn resume(target: &Path, entry: &Entry) -> Result<Option<Self>, TransferError> {
        let (part, note_path) = paths(target, entry);
        let found = look(&part)?.filter(|metadata| metadata.is_file());
        let note = read_note(&note_path);
        let (Some(metadata), Some(note)) = (found, note) else { return Ok(None) };
        let modified = (entry.modified.seconds, entry.modified.nanos);
        let ours = note.name == entry.name.as_str()
            && (note.size, note.modified) == (entry.size, modified)
            && note.offset <= entry.size;
        if !ours || has_other_names(&metadata) {
            return Ok(None);
        }
        let file = OpenOptions::new().read(true).write(true).open(&part);
        let mut file = file.map_err(|error| storage(&part, &error))?;
        lock(&file, &part)?;
        let (hash, count) =
            Hash::of_start(&mut file, note.offset).map_err(|error| storage(&part, &error))?;
        if count < note.offset || format::hex(&hash.sum()) != note.sha256 {
            return Err(changed(&part));
        }
        // What came after the note may be anything.
        file.set_len(note.offset)
            .and_then(|()| file.seek(SeekFrom::Start(note.offset)))
            .map_err(|error| storage(&part, &error))?;
        Ok(Some(Partial {
            entry: entry.clone(),
            part,
            note: note_path,
            file,
            hash,
            written: note.offset,
            noted: note.offset,
            noted_at: Instant::now(),
        }))
    }

    /// Begins anew; what an earlier transfer left is removed.
    pub(super) fn create(target: &Path, entry: &Entry) -> Result<Self, TransferError> {
        let (part, note) = paths(target, entry);
        if look(&part)?.is_some_and(|metadata| metadata.is_file()) {
            let old = OpenOptions::new().write(true).open(&part);
            if let Ok(old) = &old {
                lock(old, &part)?;
            }
        }
        remove_note(&note)?;
        remove(&part)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        if entry.executable {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o777);
        }
        let file = options.open(&part).map_err(|error| storage(&part, &error))?;
        lock(&file, &part)?;
        Ok(Partial {
            entry: entry.clone(),
            part,
            note,
            file,
            hash: Hash::new(),
            written: 0,
            noted: 0,
            noted_at: Instant::now(),
        })
    }

    /// Bytes that are there, and their sum.
    pub(super) fn so_far(&self) -> (u64, Sum) {
        (self.written, self.hash.sum())
    }

    /// Appends bytes; says how many from the start are safe now, if that is news.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<Option<u64>, TransferError> {
        self.file.write_all(bytes).map_err(|error| storage(&self.part, &error))?;
        self.hash.update(bytes);
        self.written += bytes.len() as u64;
        let due = self.written - self.noted >= NOTE_BYTES || self.noted_at.elapsed() >= NOTE_TIME;
        if due { self.write_note().map(Some) } else { Ok(None) }
    }

    /// Makes what is there survive, and notes it; says how many bytes that are.
    pub(super) fn write_note(&mut self) -> Result<u64, TransferError> {
        self.file.sync_data().map_err(|error| storage(&self.part, &error))?;
        let note = Note {
            version: 0,
            name: self.entry.name.as_str().to_owned(),
            size: self.entry.size,
            modified: (self.entry.modified.seconds, self.entry.modified.nanos),
            offset: self.written,
            sha256: format::hex(&self.hash.sum()),
        };
        let text =
            serde_json::to_vec(&note).map_err(|e| storage(&self.note, &io::Error::from(e)))?;
        let new = self.note.with_extension(NEW);
        File::create(&new)
            .and_then(|mut file| {
                file.write_all(&text)?;
                file.sync_data()
            })
            .and_then(|()| fs::rename(&new, &self.note))
            .map_err(|error| storage(&self.note, &error))?;
        if self.noted == 0 {
            sync_parent(&self.part)?;
        }
        (self.noted, self.noted_at) = (self.written, Instant::now());
        Ok(self.written)
    }

    /// Gives the file its name, if it is what was sent. `replaced` is the file that may be replaced.
    pub(super) fn publish(
        mut self,
        target: &Path,
        size: u64,
        sum: &Sum,
        replaced: Option<&Fingerprint>,
    ) -> Result<(), TransferError> {
        if self.written != size || self.hash.sum() != *sum {
            // Bytes that are wrong somewhere cannot be gone on from.
            self.remove();
            let why = format!("{}: what arrived is not what was sent", self.entry.name);
            return Err(TransferError::Local(Code::Checksum, why));
        }
        let failed = |error: io::Error| storage(&self.part, &error);
        let there = fs::symlink_metadata(&self.part).map_err(failed)?;
        let own = self.file.metadata().map_err(failed)?;
        if Fingerprint::of(&there) != Fingerprint::of(&own) || own.len() != size {
            return Err(changed(&self.part));
        }
        // Some file systems keep no times; the file is no worse for it.
        let _ = self.file.set_modified(system_time(self.entry.modified));
        self.file.sync_all().map_err(failed)?;
        give_name(&self.part, target, replaced)?;
        remove_note(&self.note)?;
        sync_parent(target)
    }

    /// Removes a file that nothing has been put into, and whose note nobody needs.
    pub(super) fn abandon_if_empty(&mut self) {
        if self.written == 0 {
            self.remove();
        }
    }

    fn remove(&mut self) {
        // What cannot be removed is removed when the next transfer begins.
        let _ = remove_note(&self.note);
        let _ = remove(&self.part);
    }
}

/// Removes what an earlier transfer of `entry` left, now that the file is in its place.
pub(super) fn tidy(target: &Path, entry: &Entry) {
    let (part, note) = paths(target, entry);
    // Leftovers do no harm.
    let _ = remove(&part);
    let _ = remove_note(&note);
}

fn paths(target: &Path, entry: &Entry) -> (PathBuf, PathBuf) {
    let sum = digest(&SHA256, entry.name.as_str().as_bytes());
    let short = format::hex(sum.as_ref().get(..8).unwrap_or_default());
    let beside = |ending: &str| target.with_file_name(format!(".anabranch-{short}.{ending}"));
    (beside("part"), beside("state"))
}

fn read_note(path: &Path) -> Option<Note> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(MAX_NOTE).read_to_end(&mut text).ok()?;
    // A note that cannot be read is no note: the file begins anew.
    serde_json::from_slice(&text).ok().filter(|note: &Note| note.version == 0)
}

fn lock(file: &File, path: &Path) -> Result<(), TransferError> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            let why = format!("{} is in use: the same file is being received", path.display());
            Err(TransferError::Local(Code::Refused, why))
        }
        // File systems without locks have to do without.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

/// Under its final name too: the process was killed between giving that and taking this one.
#[cfg(unix)]
fn has_other_names(metadata: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(metadata) > 1
}

#[cfg(not(unix))]
fn has_other_names(_: &fs::Metadata) -> bool {
    false
}

/// Gives the partial file its name: atomically, and over nothing but what may be replaced.
fn give_name(
    part: &Path,
    target: &Path,
    replaced: Option<&Fingerprint>,
) -> Result<(), TransferError> {
    let rename = || fs::rename(part, target).map_err(|error| storage(target, &error));
    if replaced.is_none() {
        // Unlike renaming, linking never replaces.
        match fs::hard_link(part, target) {
            Ok(()) => return remove(part),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(changed(target));
            }
            // Not every file system can; then what is left is to look first.
            Err(_) => {}
        }
    }
    let now = look(target)?.as_ref().map(Fingerprint::of);
    if now.as_ref() == replaced { rename() } else { Err(changed(target)) }
}

/// Removes a note, and one that was being written when the process was killed.
fn remove_note(note: &Path) -> Result<(), TransferError> {
    remove(&note.with_extension(NEW))?;
    remove(note)
}

fn remove(path: &Path) -> Result<(), TransferError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(storage(path, &error)),
        _ => Ok(()),
    }
}

fn changed(path: &Path) -> TransferError {
    TransferError::Local(
        Code::TargetChanged,
        format!(
            "{} was changed by somebody else; remove it, and the same command again starts over",
            path.display()
        ),
    )
}

fn system_time(time: Modified) -> SystemTime {
    let nanos = Duration::from_nanos(u64::from(time.nanos));
    let seconds = Duration::from_secs(time.seconds.unsigned_abs());
    let whole = if time.seconds < 0 {
        UNIX_EPOCH.checked_sub(seconds)
    } else {
        UNIX_EPOCH.checked_add(seconds)
    };
    whole.and_then(|whole| whole.checked_add(nanos)).unwrap_or(UNIX_EPOCH)
}
