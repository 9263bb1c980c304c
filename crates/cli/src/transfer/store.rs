//! The files of the taking side: requests them from the peer, and stores what arrives.
//!
//! There is no network here: frames come in, frames go out, and files are written. No hash of a local file is sent:
//! where the same bytes may exist here already, the peer is asked for the hash of its copy.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::Arc;

use anabranch_files::Facts;
use anabranch_transfer::frame::MAX_FETCHES;
use anabranch_transfer::{Code, Entry, Frame, Kind, Manifest};

use super::channel::{Incoming, unexpected};
use super::consent::Grant;
use super::error::TransferError;
use super::hash::{Hash, Sum};
use super::links;
use super::partial::{Partial, tidy};
use super::progress::Progress;
use super::target::{Place, Root};

/// Where files are put.
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
    grant: Grant,
    manifest: Manifest,
    progress: Arc<Progress>,
    /// The first entry that has not been looked at.
    next: usize,
    /// Requests without an answer yet, in their order.
    pending: VecDeque<Pending>,
    current: Option<Current>,
}

/// Something that was asked for.
#[derive(Debug)]
struct Pending {
    index: u32,
    offset: u64,
    /// The file that may be replaced.
    replaced: Option<Facts>,
    plan: Plan,
}

#[derive(Debug)]
enum Plan {
    /// The checksum of the whole file: a file of that size is here.
    SumOfAll,
    /// The checksum of the first bytes: an earlier transfer has left that many.
    SumOfStart,
    /// All bytes.
    Whole,
    /// The bytes after those that an earlier transfer has left.
    Rest(Box<Partial>),
    /// The bytes of `Rest`, requested with the checksum of the first bytes, which decides whether they are used.
    Guess,
    /// Bytes that are dropped when they come: what an earlier transfer has left belongs to another file.
    Useless,
    /// All bytes, to standard output.
    Stdout,
}

/// The file whose bytes come now.
#[derive(Debug)]
struct Current {
    index: u32,
    replaced: Option<Facts>,
    received: u64,
    /// Most bytes that it may have.
    most: u64,
    sink: Sink,
}

#[derive(Debug)]
enum Sink {
    Partial(Box<Partial>),
    Stdout(Box<Hash>),
    /// The bytes are dropped.
    Nothing,
}

/// Sends a frame to the peer.
pub(super) type Say<'a> = &'a mut dyn FnMut(Frame);

impl Store {
    /// A store that has requested nothing yet.
    ///
    /// # Errors
    /// If the offer cannot go to standard output.
    pub(super) fn new(
        out: Out,
        grant: Grant,
        manifest: Manifest,
        progress: Arc<Progress>,
    ) -> Result<Self, TransferError> {
        let count = manifest.files() as u64;
        if matches!(out, Out::Stdout) && count != 1 {
            let why = format!("only a single file can go to standard output, not {count}");
            return Err(TransferError::Local(Code::Refused, why));
        }
        progress.begin(manifest.total(), count);
        Ok(Store {
            out,
            grant,
            manifest,
            progress,
            next: 0,
            pending: VecDeque::new(),
            current: None,
        })
    }

    /// Requests as much as may be requested at a time.
    pub(super) fn fill(&mut self, say: Say<'_>) -> Result<(), TransferError> {
        while self.pending.len() < MAX_FETCHES {
            let Some(entry) = self.manifest.entry(self.next) else { break };
            let index = u32::try_from(self.next).map_err(TransferError::protocol)?;
            self.next += 1;
            match (&mut self.out, entry.kind) {
                // Links come last.
                (_, Kind::Link) | (Out::Stdout, Kind::Directory) => {}
                (Out::Stdout, _) => {
                    self.ask(Pending { index, offset: 0, replaced: None, plan: Plan::Stdout }, say);
                }
                (Out::Directory(root), Kind::Directory) => {
                    root.make_directory(&entry.name, entry.mode)?;
                }
                (Out::Directory(root), _) => {
                    let place = root.place(&entry.name)?;
                    self.prepare(index, &entry, &place, say)?;
                }
            }
        }
        Ok(())
    }

    /// Whether everything is in its place.
    pub(super) fn is_done(&self) -> bool {
        self.next >= self.manifest.len() && self.pending.is_empty() && self.current.is_none()
    }

    /// Makes the links, once all files are in their places.
    pub(super) fn finish(&mut self) -> Result<(), TransferError> {
        let Out::Directory(root) = &mut self.out else { return Ok(()) };
        for entry in self.manifest.entries() {
            if let Some(target) = &entry.target {
                links::make(&root.place(&entry.name)?, target, self.grant.overwrite)?;
            }
        }
        Ok(())
    }

    /// Handles a frame or bytes from the peer.
    pub(super) fn handle(&mut self, incoming: Incoming, say: Say<'_>) -> Result<(), TransferError> {
        match incoming {
            Incoming::Data(bytes) => self.data(&bytes, say),
            Incoming::Frame(Frame::File { index, offset }) => self.begin(index, offset),
            Incoming::Frame(Frame::FileEnd { index, size, sum }) => {
                if self.end(index, size, &sum)? {
                    self.stored(index, say);
                }
                Ok(())
            }
            Incoming::Frame(Frame::Sum { index, offset, sum }) => {
                self.sum(index, offset, &sum, say)
            }
            Incoming::Frame(Frame::Alive) => Ok(()),
            Incoming::Frame(frame) => Err(unexpected(frame.name())),
        }
    }

    /// Keeps what has arrived of the current file when the transfer breaks off.
    pub(super) fn suspend(&mut self) {
        if let Some(Current { sink: Sink::Partial(partial), received, .. }) = &mut self.current {
            // If the note cannot be written, the older one holds.
            let note = || partial.write_note();
            let _ = (*received > 0).then(|| self.progress.on_disk(note));
            partial.abandon_if_empty();
        }
    }

    fn entry(&self, index: u32) -> Result<Entry, TransferError> {
        let entry = self.manifest.entry(index as usize);
        entry.ok_or_else(|| TransferError::protocol("a file that was not offered"))
    }

    fn place(&mut self, entry: &Entry) -> Result<Place, TransferError> {
        match &mut self.out {
            Out::Directory(root) => root.place(&entry.name),
            Out::Stdout => Err(unexpected("file")),
        }
    }

    fn ask(&mut self, pending: Pending, say: Say<'_>) {
        let Pending { index, offset, .. } = pending;
        let is_start = matches!(pending.plan, Plan::SumOfStart);
        say(match pending.plan {
            Plan::SumOfAll | Plan::SumOfStart => Frame::Check { index, offset },
            Plan::Whole | Plan::Rest(_) | Plan::Guess | Plan::Useless | Plan::Stdout => {
                Frame::Fetch { index, offset }
            }
        });
        self.pending.push_back(pending);
        // A changed file usually has another modification time, so the part here most likely fits: the rest is
        // requested before the answer is known.
        if is_start && self.pending.len() < MAX_FETCHES {
            self.ask(Pending { index, offset, replaced: None, plan: Plan::Guess }, say);
        }
    }

    fn stored(&self, index: u32, say: Say<'_>) {
        let entry = self.manifest.entry(index as usize);
        entry.iter().for_each(|entry| self.progress.add_stored(entry));
        say(Frame::Stored { index });
    }

    /// Decides what to request of a file, given what exists in its place.
    fn prepare(
        &mut self,
        index: u32,
        entry: &Entry,
        place: &Place,
        say: Say<'_>,
    ) -> Result<(), TransferError> {
        let existing = place.look()?;
        if let Some(facts) = &existing {
            if facts.is_file && entry.kind == Kind::File && facts.len == entry.size {
                if entry.size == 0 {
                    self.stored(index, say);
                    return Ok(());
                }
                let (offset, plan) = (entry.size, Plan::SumOfAll);
                self.ask(Pending { index, offset, replaced: existing, plan }, say);
                return Ok(());
            }
            if !self.grant.overwrite || facts.is_directory {
                return Err(exists(place));
            }
        }
        let (offset, plan) = partly(entry, place)?;
        self.ask(Pending { index, offset, replaced: existing, plan }, say);
        Ok(())
    }

    /// Handles the checksum that the peer gives for the first bytes of its file.
    fn sum(
        &mut self,
        index: u32,
        offset: u64,
        theirs: &Sum,
        say: Say<'_>,
    ) -> Result<(), TransferError> {
        let asked = |pending: &mut Pending| (pending.index, pending.offset) == (index, offset);
        let Some(pending) = self.pending.pop_front_if(asked) else {
            return Err(unexpected("checksum"));
        };
        let entry = self.entry(index)?;
        let place = self.place(&entry)?;
        match pending.plan {
            Plan::SumOfAll if self.progress.on_disk(|| sum_of(&place))? == *theirs => {
                tidy(&place);
                self.progress.add_kept(offset);
                self.stored(index, say);
                Ok(())
            }
            Plan::SumOfAll if self.grant.overwrite => {
                let (offset, plan) = partly(&entry, &place)?;
                self.ask(Pending { offset, plan, ..pending }, say);
                Ok(())
            }
            Plan::SumOfAll => Err(exists(&place)),
            Plan::SumOfStart => {
                let partial = self.progress.on_disk(|| Partial::resume(&place, &entry))?;
                let partial = partial.filter(|partial| partial.so_far() == (offset, *theirs));
                self.go_on(pending, partial, say);
                Ok(())
            }
            Plan::Whole | Plan::Rest(_) | Plan::Guess | Plan::Useless | Plan::Stdout => {
                Err(unexpected("checksum"))
            }
        }
    }

    /// Goes on with a file of which an earlier transfer left a part; `partial` is `None` if that
    /// part belongs to another file.
    fn go_on(&mut self, pending: Pending, partial: Option<Partial>, say: Say<'_>) {
        let asked = |other: &&mut Pending| {
            other.index == pending.index && matches!(other.plan, Plan::Guess)
        };
        let guess = self.pending.iter_mut().find(asked);
        match (partial.map(Box::new), guess) {
            (Some(partial), Some(guess)) => {
                (guess.plan, guess.replaced) = (Plan::Rest(partial), pending.replaced);
            }
            (Some(partial), None) => {
                self.ask(Pending { plan: Plan::Rest(partial), ..pending }, say);
            }
            (None, guess) => {
                guess.into_iter().for_each(|guess| guess.plan = Plan::Useless);
                self.ask(Pending { offset: 0, plan: Plan::Whole, ..pending }, say);
            }
        }
    }

    fn begin(&mut self, index: u32, offset: u64) -> Result<(), TransferError> {
        let asked = |pending: &mut Pending| (pending.index, pending.offset) == (index, offset);
        let pending = match self.pending.pop_front_if(asked) {
            Some(pending) if self.current.is_none() => pending,
            _ => return Err(unexpected("file")),
        };
        let entry = self.entry(index)?;
        let sink = match pending.plan {
            Plan::Whole => {
                let (place, executable) = (self.place(&entry)?, self.grant.executable);
                Sink::Partial(Box::new(Partial::create(&place, &entry, executable)?))
            }
            Plan::Rest(partial) => Sink::Partial(partial),
            Plan::Stdout => Sink::Stdout(Box::new(Hash::new())),
            Plan::Useless => Sink::Nothing,
            Plan::SumOfAll | Plan::SumOfStart | Plan::Guess => return Err(unexpected("file")),
        };
        if !matches!(sink, Sink::Nothing) {
            self.progress.add_kept(offset);
        }
        let most = if entry.kind == Kind::File { entry.size } else { u64::MAX };
        let replaced = pending.replaced;
        self.current = Some(Current { index, replaced, received: offset, most, sink });
        Ok(())
    }

    fn data(&mut self, bytes: &[u8], say: Say<'_>) -> Result<(), TransferError> {
        let Some(current) = &mut self.current else { return Err(unexpected("bytes of a file")) };
        let index = current.index;
        current.received = current.received.saturating_add(bytes.len() as u64);
        if current.received > current.most {
            return Err(TransferError::protocol("more bytes than the file's announced size"));
        }
        match &mut current.sink {
            Sink::Partial(partial) => {
                if let Some(offset) = self.progress.on_disk(|| partial.write(bytes))? {
                    say(Frame::Durable { index, offset });
                }
            }
            Sink::Stdout(hash) => {
                hash.update(bytes);
                io::stdout().lock().write_all(bytes).map_err(|error| full(&error))?;
            }
            Sink::Nothing => return Ok(()),
        }
        self.progress.add_moved(bytes.len() as u64);
        Ok(())
    }

    /// The current file is complete; returns whether it was stored.
    fn end(&mut self, index: u32, size: u64, sum: &Sum) -> Result<bool, TransferError> {
        let Some(current) = self.current.take_if(|current| current.index == index) else {
            return Err(unexpected("end of a file"));
        };
        let entry = self.entry(index)?;
        let wrong = entry.kind == Kind::File && size != entry.size;
        if wrong || size != current.received {
            return Err(TransferError::protocol("fewer bytes than the file's announced size"));
        }
        match current.sink {
            Sink::Partial(partial) => {
                let replaced = current.replaced.as_ref();
                self.progress.on_disk(|| partial.publish(size, sum, replaced))?;
            }
            Sink::Stdout(hash) if hash.sum() == *sum => {
                io::stdout().lock().flush().map_err(|error| full(&error))?;
            }
            Sink::Stdout(_) => {
                let why = format!("{}: what arrived is not what was sent", entry.name);
                return Err(TransferError::Local(Code::Checksum, why));
            }
            Sink::Nothing => return Ok(false),
        }
        Ok(true)
    }
}

/// Plans to request the bytes that an earlier transfer did not bring, or all bytes.
fn partly(entry: &Entry, place: &Place) -> Result<(u64, Plan), TransferError> {
    let left = if entry.kind == Kind::File { Partial::left(place, entry)? } else { 0 };
    Ok((left, if left > 0 { Plan::SumOfStart } else { Plan::Whole }))
}

/// The checksum of a file that exists; it is never sent.
fn sum_of(place: &Place) -> Result<Sum, TransferError> {
    let sum = place.directory.read(&place.name).and_then(|mut file| Hash::of_file(&mut file));
    sum.map_err(|error| {
        place.wrong(Code::Exists, |what| {
            format!("cannot read {what}, which exists already: {error}")
        })
    })
}

fn full(error: &io::Error) -> TransferError {
    TransferError::Local(Code::Storage, format!("cannot write to standard output: {error}"))
}

pub(super) fn exists(place: &Place) -> TransferError {
    place.wrong(Code::Exists, |what| {
        format!("{what} exists already and differs; --overwrite replaces it")
    })
}
