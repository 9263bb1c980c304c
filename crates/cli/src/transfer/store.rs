//! The taking side's files: what to ask for, and what to do with what comes.
//!
//! No network here: frames in, frames out, files on the side.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch::transfer::frame::MAX_FETCHES;
use anabranch::transfer::{Code, Entry, Frame, Kind, Manifest};

use super::channel::{Incoming, unexpected};
use super::error::TransferError;
use super::hash::{Hash, Sum};
use super::partial::{Partial, tidy};
use super::progress::Progress;
use super::target::{Fingerprint, Root, look, storage};

/// Where files go.
#[derive(Clone, Debug)]
pub(super) enum Out {
    /// Into a directory.
    Directory(Root),
    /// To standard output, one file only.
    Stdout,
}

/// An offer being taken.
#[derive(Debug)]
pub(super) struct Store {
    out: Out,
    overwrite: bool,
    manifest: Manifest,
    progress: Arc<Progress>,
    /// The first entry that has not been looked at.
    next: usize,
    /// Asked for, in that order.
    pending: VecDeque<Pending>,
    current: Option<Current>,
}

/// A file that was asked for.
#[derive(Debug)]
struct Pending {
    index: u32,
    offset: u64,
    target: PathBuf,
    /// The file that may be replaced.
    replaced: Option<Fingerprint>,
    plan: Plan,
}

#[derive(Debug)]
enum Plan {
    /// From the first byte.
    Whole,
    /// From where an earlier transfer stopped.
    Rest(Box<Partial>),
    /// The file exists and may be the same: nothing is to come.
    Compare(Sum),
    /// To standard output.
    Stdout,
}

/// The file whose bytes come now.
#[derive(Debug)]
struct Current {
    index: u32,
    target: PathBuf,
    replaced: Option<Fingerprint>,
    received: u64,
    sink: Sink,
}

#[derive(Debug)]
enum Sink {
    Partial(Box<Partial>),
    Compare(Sum),
    Stdout(Hash),
}

/// How frames to the peer leave.
pub(super) type Say<'a> = &'a mut dyn FnMut(Frame);

impl Store {
    /// Nothing asked for yet.
    ///
    /// # Errors
    /// If the offer cannot go to standard output.
    pub(super) fn new(
        out: Out,
        overwrite: bool,
        manifest: Manifest,
        progress: Arc<Progress>,
    ) -> Result<Self, TransferError> {
        let files = manifest.entries().iter().filter(|entry| entry.kind != Kind::Directory);
        let count = files.count() as u64;
        if matches!(out, Out::Stdout) && count != 1 {
            let why = format!("only a single file can go to standard output, not {count}");
            return Err(TransferError::Local(Code::Refused, why));
        }
        progress.begin(manifest.total(), count);
        Ok(Store {
            out,
            overwrite,
            manifest,
            progress,
            next: 0,
            pending: VecDeque::new(),
            current: None,
        })
    }

    /// Asks for as much as may be asked for.
    pub(super) fn fill(&mut self, say: Say<'_>) -> Result<(), TransferError> {
        while self.pending.len() < MAX_FETCHES {
            let Some(entry) = self.manifest.entries().get(self.next).cloned() else { break };
            let index = u32::try_from(self.next).map_err(TransferError::protocol)?;
            self.next += 1;
            match (&self.out, entry.kind) {
                (Out::Stdout, Kind::Directory) => {}
                (Out::Stdout, _) => {
                    let (target, plan) = (PathBuf::from("standard output"), Plan::Stdout);
                    self.ask(Pending { index, offset: 0, target, replaced: None, plan }, say);
                }
                (Out::Directory(root), Kind::Directory) => root.make_directory(&entry.name)?,
                (Out::Directory(root), _) => {
                    let target = root.place(&entry.name)?;
                    let pending = self.prepare(index, &entry, target)?;
                    self.ask(pending, say);
                }
            }
        }
        Ok(())
    }

    /// Whether everything is in its place.
    pub(super) fn is_done(&self) -> bool {
        self.next >= self.manifest.entries().len()
            && self.pending.is_empty()
            && self.current.is_none()
    }

    /// Takes what the peer said.
    pub(super) fn handle(&mut self, incoming: Incoming, say: Say<'_>) -> Result<(), TransferError> {
        match incoming {
            Incoming::Data(bytes) => self.data(&bytes, say),
            Incoming::Frame(Frame::File { index, offset }) => self.begin(index, offset),
            Incoming::Frame(Frame::FileEnd { index, size, sum }) => {
                self.end(index, size, &sum)?;
                self.progress.add_stored();
                say(Frame::Stored { index });
                Ok(())
            }
            Incoming::Frame(Frame::Differs { index }) => self.differs(index, say),
            Incoming::Frame(Frame::Alive) => Ok(()),
            Incoming::Frame(frame) => Err(unexpected(format!("{frame:?}"))),
        }
    }

    /// Keeps what has come of the current file, before the process ends.
    pub(super) fn suspend(&mut self) {
        if let Some(Current { sink: Sink::Partial(partial), received, .. }) = &mut self.current {
            // Without a newer note the older one holds.
            let _ = if *received > 0 { partial.write_note().map(|_| ()) } else { Ok(()) };
            partial.abandon_if_empty();
        }
    }

    fn entry(&self, index: u32) -> Result<&Entry, TransferError> {
        let entry = self.manifest.entries().get(index as usize);
        entry.ok_or_else(|| TransferError::protocol("a file that was not offered"))
    }

    fn ask(&mut self, pending: Pending, say: Say<'_>) {
        let prefix = match &pending.plan {
            Plan::Whole | Plan::Stdout => Sum::default(),
            Plan::Rest(partial) => partial.so_far().1,
            Plan::Compare(sum) => *sum,
        };
        say(Frame::Fetch { index: pending.index, offset: pending.offset, prefix });
        self.pending.push_back(pending);
    }

    /// What to ask for, given what is there.
    fn prepare(
        &self,
        index: u32,
        entry: &Entry,
        target: PathBuf,
    ) -> Result<Pending, TransferError> {
        let existing = look(&target)?;
        if let Some(metadata) = &existing {
            if metadata.is_file() && entry.kind == Kind::File && metadata.len() == entry.size {
                let sum = sum_of(&target)?;
                let (offset, plan) = (entry.size, Plan::Compare(sum));
                let replaced = Some(Fingerprint::of(metadata));
                return Ok(Pending { index, offset, target, replaced, plan });
            }
            if !self.overwrite || metadata.is_dir() {
                return Err(exists(&target));
            }
        }
        partly(index, entry, target, existing.as_ref().map(Fingerprint::of))
    }

    fn begin(&mut self, index: u32, offset: u64) -> Result<(), TransferError> {
        let asked = self.pending.front().is_some_and(|p| (p.index, p.offset) == (index, offset));
        if self.current.is_some() || !asked {
            return Err(unexpected("a file"));
        }
        let Some(pending) = self.pending.pop_front() else { return Err(unexpected("a file")) };
        let sink = match pending.plan {
            Plan::Whole => {
                let entry = self.entry(index)?;
                Sink::Partial(Box::new(Partial::create(&pending.target, entry)?))
            }
            Plan::Rest(partial) => Sink::Partial(partial),
            Plan::Compare(sum) => Sink::Compare(sum),
            Plan::Stdout => Sink::Stdout(Hash::new()),
        };
        self.progress.add_kept(offset);
        let (target, replaced) = (pending.target, pending.replaced);
        self.current = Some(Current { index, target, replaced, received: offset, sink });
        Ok(())
    }

    fn data(&mut self, bytes: &[u8], say: Say<'_>) -> Result<(), TransferError> {
        let Some(current) = &mut self.current else { return Err(unexpected("bytes of a file")) };
        let index = current.index;
        let received = current.received.saturating_add(bytes.len() as u64);
        let entry = self.manifest.entries().get(index as usize);
        if entry.is_some_and(|entry| entry.kind == Kind::File && received > entry.size) {
            return Err(TransferError::protocol("more bytes than the file was said to have"));
        }
        match &mut current.sink {
            Sink::Partial(partial) => {
                if let Some(offset) = partial.write(bytes)? {
                    say(Frame::Durable { index, offset });
                }
            }
            Sink::Compare(_) => return Err(unexpected("bytes of a file")),
            Sink::Stdout(hash) => {
                hash.update(bytes);
                let mut out = io::stdout().lock();
                out.write_all(bytes)
                    .map_err(|error| storage(Path::new("to standard output"), &error))?;
            }
        }
        current.received = received;
        self.progress.add_moved(bytes.len() as u64);
        Ok(())
    }

    fn end(&mut self, index: u32, size: u64, sum: &Sum) -> Result<(), TransferError> {
        let Some(current) = self.current.take_if(|current| current.index == index) else {
            return Err(unexpected("the end of a file"));
        };
        let entry = self.entry(index)?;
        let wrong = entry.kind == Kind::File && size != entry.size;
        if wrong || size != current.received {
            return Err(TransferError::protocol("fewer bytes than the file was said to have"));
        }
        match current.sink {
            Sink::Partial(partial) => {
                partial.publish(&current.target, size, sum, current.replaced.as_ref())
            }
            Sink::Compare(own) if own == *sum => {
                tidy(&current.target, entry);
                Ok(())
            }
            Sink::Stdout(hash) if hash.sum() == *sum => io::stdout()
                .lock()
                .flush()
                .map_err(|error| storage(Path::new("to standard output"), &error)),
            Sink::Compare(_) | Sink::Stdout(_) => {
                let why = format!("{}: what arrived is not what was sent", entry.name);
                Err(TransferError::Local(Code::Checksum, why))
            }
        }
    }

    /// What is here is not how the peer's file begins.
    fn differs(&mut self, index: u32, say: Say<'_>) -> Result<(), TransferError> {
        let asked = self.pending.front().is_some_and(|pending| pending.index == index);
        let Some(pending) = self.pending.pop_front().filter(|_| asked) else {
            return Err(unexpected("a difference"));
        };
        let entry = self.entry(index)?.clone();
        let again = match pending.plan {
            Plan::Compare(_) if !self.overwrite => return Err(exists(&pending.target)),
            Plan::Compare(_) => partly(index, &entry, pending.target, pending.replaced)?,
            Plan::Rest(_) => Pending { offset: 0, plan: Plan::Whole, ..pending },
            Plan::Whole | Plan::Stdout => return Err(unexpected("a difference")),
        };
        self.ask(again, say);
        Ok(())
    }
}

/// Asks for what an earlier transfer did not bring, or for everything.
fn partly(
    index: u32,
    entry: &Entry,
    target: PathBuf,
    replaced: Option<Fingerprint>,
) -> Result<Pending, TransferError> {
    let partial = match entry.kind {
        Kind::File => Partial::resume(&target, entry)?,
        Kind::Directory | Kind::Stream => None,
    };
    let (offset, plan) = match partial {
        Some(partial) => (partial.so_far().0, Plan::Rest(Box::new(partial))),
        None => (0, Plan::Whole),
    };
    // A rest from the first byte on is the whole.
    let plan = if offset == 0 { Plan::Whole } else { plan };
    Ok(Pending { index, offset, target, replaced, plan })
}

fn sum_of(path: &Path) -> Result<Sum, TransferError> {
    let unreadable = |error: io::Error| {
        let why = format!("cannot read {}, which exists already: {error}", path.display());
        TransferError::Local(Code::Exists, why)
    };
    let mut file = File::open(path).map_err(unreadable)?;
    Hash::of_file(&mut file).map_err(unreadable)
}

fn exists(target: &Path) -> TransferError {
    TransferError::Local(
        Code::Exists,
        format!("{} exists already and differs; --overwrite replaces it", target.display()),
    )
}
