//! The progress of a transfer: written by the tasks that move bytes, read by those that show it.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anabranch_transfer::Entry;
use tokio::time::Instant;

use super::report::Report;

/// Counters of one transfer.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Receives an event for every file, if wanted.
    report: Option<Report>,
    total: AtomicU64,
    files: AtomicU64,
    kept: AtomicU64,
    moved: AtomicU64,
    moved_before: AtomicU64,
    stored: AtomicU64,
    asked: AtomicU8,
    /// Since when the disk is waited for.
    on_disk: Mutex<Option<Instant>>,
}

/// Who is being asked whether to accept the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// Nobody, or not any more.
    Nobody,
    /// The person at this terminal.
    Here,
    /// The person at the other side.
    There,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Bytes of all files; 0 while that is not known.
    pub(super) total: u64,
    /// Files to move.
    pub(super) files: u64,
    /// Bytes that the receiver had before.
    pub(super) kept: u64,
    /// Bytes moved by this connection.
    pub(super) moved: u64,
    /// Bytes moved by connections that were lost.
    pub(super) moved_before: u64,
    /// Files that are in their place.
    pub(super) stored: u64,
}

impl Counts {
    /// Bytes that the receiver has. Bytes that were moved and then dropped are counted too, but not
    /// beyond the total.
    pub(super) fn there(&self) -> u64 {
        let counted = self.kept.saturating_add(self.moved);
        if self.total > 0 { counted.min(self.total) } else { counted }
    }
}

impl Progress {
    /// Counters that report every file to `report`.
    pub(super) fn telling(report: Report) -> Self {
        Progress { report: Some(report), ..Progress::default() }
    }

    /// Sets who is asked now.
    pub(super) fn ask(&self, asked: Asked) {
        self.asked.store(asked as u8, Ordering::Relaxed);
    }

    /// The person being asked now.
    pub(super) fn asked(&self) -> Asked {
        let asked = self.asked.load(Ordering::Relaxed);
        let all = [Asked::Here, Asked::There];
        all.into_iter().find(|other| *other as u8 == asked).unwrap_or(Asked::Nobody)
    }

    /// Restarts the counters for a new connection.
    pub(super) fn begin(&self, total: u64, files: u64) {
        self.moved_before.fetch_add(self.moved.load(Ordering::Relaxed), Ordering::Relaxed);
        self.ask(Asked::Nobody);
        self.total.store(total, Ordering::Relaxed);
        self.files.store(files, Ordering::Relaxed);
        for counter in [&self.kept, &self.moved, &self.stored] {
            counter.store(0, Ordering::Relaxed);
        }
    }

    /// The receiver had this many bytes of a file.
    pub(super) fn add_kept(&self, bytes: u64) {
        self.kept.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The receiver had this many bytes of a file; `before` were counted for it until now.
    pub(super) fn replace_kept(&self, before: u64, bytes: u64) {
        self.add_kept(bytes);
        self.kept.fetch_sub(before, Ordering::Relaxed);
    }

    /// This many bytes were moved.
    pub(super) fn add_moved(&self, bytes: u64) {
        self.moved.fetch_add(bytes, Ordering::Relaxed);
    }

    /// A file is in its place.
    pub(super) fn add_stored(&self, file: &Entry) {
        self.stored.fetch_add(1, Ordering::Relaxed);
        self.report.iter().for_each(|report| report.file(file));
    }

    /// Does work that waits for the disk.
    pub(super) fn on_disk<R>(&self, work: impl FnOnce() -> R) -> R {
        self.set_on_disk(Some(Instant::now()));
        let done = work();
        self.set_on_disk(None);
        done
    }

    fn set_on_disk(&self, since: Option<Instant>) {
        *self.on_disk.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }

    /// How long the disk has been waited for; `None` if nothing waits for it.
    pub(super) fn waits_for_disk(&self) -> Option<Duration> {
        let since = *self.on_disk.lock().unwrap_or_else(PoisonError::into_inner);
        since.map(|since| since.elapsed())
    }

    /// The counters now.
    pub(super) fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            total: read(&self.total),
            files: read(&self.files),
            kept: read(&self.kept),
            moved: read(&self.moved),
            moved_before: read(&self.moved_before),
            stored: read(&self.stored),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_transfer::{Kind, Modified, Name};

    fn file() -> Entry {
        let (name, modified) = (Name::new("a").unwrap(), Modified::default());
        Entry { name, kind: Kind::File, mode: 0o644, size: 9, modified, target: None }
    }

    #[test]
    fn the_disk_is_waited_for_while_it_works() {
        let progress = Progress::default();
        progress.on_disk(|| assert!(progress.waits_for_disk().is_some()));
        assert_eq!(progress.waits_for_disk(), None);
    }

    #[test]
    fn what_lost_connections_moved_is_not_forgotten() {
        let progress = Progress::default();
        for moved in [10, 20] {
            progress.begin(100, 2);
            progress.add_kept(50);
            progress.add_moved(moved);
            progress.add_stored(&file());
        }
        let expected =
            Counts { total: 100, files: 2, kept: 50, moved: 20, moved_before: 10, stored: 1 };
        assert_eq!(progress.counts(), expected);
    }
}
