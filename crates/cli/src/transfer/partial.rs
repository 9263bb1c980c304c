//! A file that has not arrived completely: its bytes, and a note of what they are.
//!
//! Beside the place of `film.mp4` lies `.anabranch-<hash>.part` with the bytes and `….state` with a note of whose bytes
//! they are and how many of them are safe. The note is rewritten every second, after the bytes that it describes have
//! reached the disk, so that these survive a crash of the process or of the machine. Files of these names that belong
//! to another user, that are links or that have further hard links are not ours.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anabranch_files::{Atomic, Directory, Facts, Locked};
use anabranch_transfer::{Code, Entry, Modified};
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::error::TransferError;
use super::hash::{Hash, Sum};
use super::target::Place;
use crate::format;

/// Bytes after which the note is written anew, at the latest.
const NOTE_BYTES: u64 = 64 << 20;
/// Time after which the note is written anew, at the latest.
const NOTE_TIME: Duration = Duration::from_secs(1);
/// Longest note that is read, bytes.
const MAX_NOTE: u64 = 1 << 16;

/// Content of the `.state` file.
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

/// Names of the files beside.
#[derive(Debug)]
pub(super) struct Beside {
    part: String,
    note: String,
    /// Name of the note while it is written, or of a link that is to replace something.
    pub(super) new: String,
}

/// A partial file, open and locked.
#[derive(Debug)]
pub(super) struct Partial {
    entry: Entry,
    place: Place,
    beside: Beside,
    file: Locked,
    hash: Hash,
    written: u64,
    noted: u64,
    noted_at: Instant,
}

impl Partial {
    /// How many bytes an earlier transfer of `entry` to `place` has left; 0 if there was none, or one of another
    /// version of the file.
    pub(super) fn left(place: &Place, entry: &Entry) -> Result<u64, TransferError> {
        let beside = Beside::new(place);
        let found = place.directory.look(&beside.part).map_err(|error| place.failed(&error))?;
        let ours = found.as_ref().is_some_and(is_ours);
        Ok(read_note(place, &beside, entry).filter(|_| ours).map_or(0, |note| note.offset))
    }

    /// Resumes where an earlier transfer stopped; `None` if there is nothing to resume.
    ///
    /// # Errors
    /// If the bytes are not those that were received, or another process has the file.
    pub(super) fn resume(place: &Place, entry: &Entry) -> Result<Option<Self>, TransferError> {
        let failed = |error: io::Error| place.failed(&error);
        let beside = Beside::new(place);
        let Some(note) = read_note(place, &beside, entry) else { return Ok(None) };
        let Ok(file) = place.directory.edit(&beside.part) else { return Ok(None) };
        if !is_ours(&Facts::of(&file).map_err(failed)?) {
            return Ok(None);
        }
        let mut file = lock(file, place)?;
        let (hash, count) = Hash::of_start(&mut file, note.offset).map_err(failed)?;
        if count < note.offset || format::hex(&hash.sum()) != note.sha256 {
            return Err(changed(place, Some(&beside.part)));
        }
        // Bytes after those that the note describes may be anything.
        file.set_len(note.offset)
            .and_then(|()| file.seek(SeekFrom::Start(note.offset)))
            .map_err(failed)?;
        Ok(Some(Partial {
            entry: entry.clone(),
            place: place.clone(),
            beside,
            file,
            hash,
            written: note.offset,
            noted: note.offset,
            noted_at: Instant::now(),
        }))
    }

    /// Creates an empty partial file with the entry's permissions, and removes that of an earlier transfer.
    pub(super) fn create(
        place: &Place,
        entry: &Entry,
        executable: bool,
    ) -> Result<Self, TransferError> {
        let failed = |error: io::Error| place.failed(&error);
        let beside = Beside::new(place);
        if let Ok(old) = place.directory.edit(&beside.part)
            && is_ours(&Facts::of(&old).map_err(failed)?)
        {
            lock(old, place)?;
        }
        beside.remove_note(&place.directory).map_err(failed)?;
        let allowed = if executable { 0o777 } else { 0o666 };
        // The owner can always resume the file; permissions that the sender's owner lacks are removed at the end.
        let mode = u32::from(entry.mode) & allowed | 0o600;
        let file = place.directory.create_anew(&beside.part, mode).map_err(failed)?;
        let file = lock(file, place)?;
        Ok(Partial {
            entry: entry.clone(),
            place: place.clone(),
            beside,
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

    /// Appends bytes; returns how many from the start are safe now, if that has changed.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<Option<u64>, TransferError> {
        self.file.write_all(bytes).map_err(|error| self.place.failed(&error))?;
        self.hash.update(bytes);
        self.written += bytes.len() as u64;
        let due = self.written - self.noted >= NOTE_BYTES || self.noted_at.elapsed() >= NOTE_TIME;
        if due { self.write_note().map(Some) } else { Ok(None) }
    }

    /// Writes the received data to the disk, then the note; returns how many bytes are now on the
    /// disk.
    pub(super) fn write_note(&mut self) -> Result<u64, TransferError> {
        let (directory, beside) = (&self.place.directory, &self.beside);
        let note = Note {
            version: 0,
            name: self.entry.name.as_str().to_owned(),
            size: self.entry.size,
            modified: (self.entry.modified.seconds, self.entry.modified.nanos),
            offset: self.written,
            sha256: format::hex(&self.hash.sum()),
        };
        let first = self.noted == 0;
        let write = || {
            self.file.sync_data()?;
            let whole = Atomic::within(directory, &beside.note, &beside.new, 0o600)?;
            whole.file().write_all(&serde_json::to_vec(&note)?)?;
            whole.file().sync_data()?;
            whole.replace(false)?;
            if first { directory.sync() } else { Ok(()) }
        };
        write().map_err(|error| self.place.failed(&error))?;
        (self.noted, self.noted_at) = (self.written, Instant::now());
        Ok(self.written)
    }

    /// Gives the file its name, if it is what was sent. `replaced` is the file that may be replaced.
    pub(super) fn publish(
        mut self,
        size: u64,
        sum: &Sum,
        replaced: Option<&Facts>,
    ) -> Result<(), TransferError> {
        if self.written != size || self.hash.sum() != *sum {
            // A later transfer must not resume from wrong bytes.
            self.remove();
            let why = format!("{}: what arrived is not what was sent", self.entry.name);
            return Err(TransferError::Local(Code::Checksum, why));
        }
        let Partial { entry, place, beside, file, .. } = &self;
        let failed = |error: io::Error| place.failed(&error);
        let own = Facts::of(&**file).map_err(failed)?;
        let there = place.directory.look(&beside.part).map_err(failed)?;
        if there.as_ref() != Some(&own) || own.len != size {
            return Err(changed(place, Some(&beside.part)));
        }
        restrict(file, &own, entry, replaced).map_err(failed)?;
        // Some file systems keep no times, which is no error.
        let _ = file.set_modified(system_time(entry.modified));
        file.sync_all().map_err(failed)?;
        give_name(place, beside, replaced)?;
        beside.remove_note(&place.directory).map_err(failed)?;
        place.directory.sync().map_err(failed)
    }

    /// Removes the file and its note if nothing has been written to the file.
    pub(super) fn abandon_if_empty(&mut self) {
        if self.written == 0 {
            self.remove();
        }
    }

    fn remove(&mut self) {
        tidy(&self.place);
    }
}

/// Removes what an earlier transfer to `place` left.
pub(super) fn tidy(place: &Place) {
    let beside = Beside::new(place);
    // A file that cannot be removed does no harm, and is removed when the next transfer begins.
    let _ = beside.remove_note(&place.directory);
    let _ = place.directory.remove(&beside.part);
}

impl Beside {
    pub(super) fn new(place: &Place) -> Self {
        let mut sum = Context::new(&SHA256);
        // The sender is part of the names, so that two senders do not get at each other's partial files.
        sum.update(place.sender.map(|key| key.0).as_ref().map_or(&[], |key| key));
        sum.update(place.offered.as_str().as_bytes());
        let short = format::hex(sum.finish().as_ref().get(..8).unwrap_or_default());
        let name = |ending: &str| format!(".anabranch-{short}.{ending}");
        Beside { part: name("part"), note: name("state"), new: name("new") }
    }

    /// Removes the note, and one that was being written when the process was killed.
    fn remove_note(&self, directory: &Directory) -> io::Result<()> {
        directory.remove(&self.new)?;
        directory.remove(&self.note)
    }
}

/// Whether a file is a regular one of this user with a single name. It has two names if the process
/// was killed after it linked the final name and before it removed this one.
fn is_ours(facts: &Facts) -> bool {
    facts.is_file && facts.is_ours() && facts.names == 1
}

/// The note, if it is about this version of the file.
fn read_note(place: &Place, beside: &Beside, entry: &Entry) -> Option<Note> {
    let file = place.directory.read(&beside.note).ok()?;
    if !is_ours(&Facts::of(&file).ok()?) {
        return None;
    }
    let mut text = Vec::new();
    file.take(MAX_NOTE).read_to_end(&mut text).ok()?;
    // A note that cannot be parsed is ignored: the file is received from its beginning.
    let note: Note = serde_json::from_slice(&text).ok()?;
    let modified = (entry.modified.seconds, entry.modified.nanos);
    let same = note.version == 0
        && note.name == entry.name.as_str()
        && (note.size, note.modified) == (entry.size, modified)
        && note.offset <= entry.size;
    same.then_some(note)
}

/// Locks a file. On file systems without locks it stays unlocked.
fn lock(file: File, place: &Place) -> Result<Locked, TransferError> {
    Locked::new(file).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => place
            .wrong(Code::Refused, |what| format!("{what} is being received by another process")),
        _ => place.failed(&error),
    })
}

/// Removes permissions that the sender's file lacks, or that the file to be replaced lacks.
fn restrict(file: &File, own: &Facts, entry: &Entry, replaced: Option<&Facts>) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    // The owner can always read the file; otherwise it would be of no use to anybody.
    let kept = replaced.map_or(0o777, |old| old.mode | 0o700);
    let mode = own.mode & (u32::from(entry.mode) | 0o400) & kept;
    if mode == own.mode {
        return Ok(());
    }
    file.set_permissions(std::fs::Permissions::from_mode(mode))
}

/// Gives the partial file its name: atomically, and replacing only what may be replaced.
fn give_name(
    place: &Place,
    beside: &Beside,
    replaced: Option<&Facts>,
) -> Result<(), TransferError> {
    let Place { directory, name, .. } = place;
    let renamed = match replaced {
        None => directory.rename_new(&beside.part, name),
        Some(old) if place.look()?.as_ref() == Some(old) => directory.rename(&beside.part, name),
        Some(_) => return Err(changed(place, None)),
    };
    renamed.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => changed(place, None),
        _ => place.failed(&error),
    })
}

/// The error if somebody else has changed the file, or the one beside it.
fn changed(place: &Place, beside: Option<&str>) -> TransferError {
    place.wrong(Code::TargetChanged, |what| {
        let what =
            beside.map_or_else(|| what.to_owned(), |beside| format!("{beside} beside {what}"));
        format!(
            "{what} was changed by somebody else; remove it and run the same command again to \
             start over"
        )
    })
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
