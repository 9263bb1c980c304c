//! The offering side's files: what there is, and its bytes.

use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::UNIX_EPOCH;

use anabranch::transfer::frame::{MAX_DATA, MAX_FETCHES};
use anabranch::transfer::manifest::MODE;
use anabranch::transfer::{Code, Entry, Frame, Kind, Manifest, ManifestError, Modified, Name};
use anabranch::types::escaped;

use super::error::TransferError;
use super::hash::Hash;
use crate::confine;

/// Permissions of what comes from a pipe, which has none: what the receiver's mask lets.
const PIPE: u16 = 0o666;

/// What was asked to be sent.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// As on the command line; `-` is standard input.
    files: Vec<String>,
    /// What standard input is called.
    stdin_name: String,
    /// Standard input can be read only once.
    stdin_read: Arc<AtomicBool>,
}

/// What is there, entry by entry.
#[derive(Clone, Debug, Default)]
pub(super) struct Offer {
    pub(super) manifest: Manifest,
    /// Where each entry comes from; `None` is standard input.
    origins: Vec<Option<PathBuf>>,
    /// What cannot be sent, such as links and devices.
    pub(super) skipped: Vec<PathBuf>,
    stdin_read: Arc<AtomicBool>,
}

impl Source {
    pub(super) fn new(files: Vec<String>, stdin_name: String) -> Self {
        Source { files, stdin_name, stdin_read: Arc::default() }
    }

    /// Whether a transfer that broke off can be taken up again.
    pub(super) fn can_be_read_again(&self) -> bool {
        !self.files.iter().any(|file| file == "-")
    }

    /// Looks at the files.
    pub(super) fn collect(&self) -> Result<Offer, TransferError> {
        let mut offer = Offer { stdin_read: Arc::clone(&self.stdin_read), ..Offer::default() };
        for file in &self.files {
            if file == "-" {
                let entry = Entry {
                    name: name(&self.stdin_name, Path::new(file))?,
                    kind: Kind::Stream,
                    mode: PIPE,
                    size: 0,
                    modified: Modified::default(),
                };
                offer.add(entry, None)?;
            } else {
                offer.add_path(Path::new(file))?;
            }
        }
        offer.manifest.check().map_err(refused)?;
        Ok(offer)
    }
}

impl Offer {
    /// The part of the offer that is asked for; all of it, if nothing is named.
    pub(super) fn wanted(self, names: &[Name]) -> Result<Offer, TransferError> {
        if names.is_empty() {
            return Ok(self);
        }
        let mut part = Offer { stdin_read: self.stdin_read, ..Offer::default() };
        let names: BTreeSet<&str> = names.iter().map(Name::as_str).collect();
        let mut found = BTreeSet::new();
        for (entry, origin) in self.manifest.entries().zip(self.origins) {
            let itself_and_above = entry.name.ancestors().chain([entry.name.as_str()]);
            let asked: Vec<&str> =
                itself_and_above.filter_map(|name| names.get(name).copied()).collect();
            if !asked.is_empty() {
                found.extend(asked);
                part.add(entry, origin)?;
            }
        }
        match names.iter().find(|name| !found.contains(*name)) {
            Some(name) => {
                let why = format!("nothing here is called {}", escaped(name));
                Err(TransferError::Local(Code::NotFound, why))
            }
            None => Ok(part),
        }
    }

    fn add(&mut self, entry: Entry, origin: Option<PathBuf>) -> Result<(), TransferError> {
        self.manifest.push(&entry).map_err(refused)?;
        self.origins.push(origin);
        Ok(())
    }

    /// Adds a file or a whole directory, under the last part of its name.
    fn add_path(&mut self, path: &Path) -> Result<(), TransferError> {
        let real = path.canonicalize().map_err(|error| unreadable(path, &error))?;
        let last = path.file_name().or(real.file_name()).and_then(|name| name.to_str());
        let top = name(last.unwrap_or_default(), path)?;
        let metadata = fs::metadata(&real).map_err(|error| unreadable(path, &error))?;
        let mut waiting = vec![(top, real, metadata)];
        // Depth first, in the order of names: the next one is at the end.
        while let Some((name, path, metadata)) = waiting.pop() {
            if metadata.is_dir() {
                self.add(entry(name.clone(), Kind::Directory, &metadata), Some(path.clone()))?;
                let mut below = self.children(&name, &path)?;
                below.sort_by(|a, b| b.0.cmp(&a.0));
                waiting.append(&mut below);
            } else if metadata.is_file() {
                // A file that cannot be opened is better known now than after an hour.
                File::open(&path).map_err(|error| unreadable(&path, &error))?;
                self.add(entry(name, Kind::File, &metadata), Some(path))?;
            } else {
                self.skipped.push(path);
            }
        }
        Ok(())
    }

    fn children(
        &self,
        parent: &Name,
        path: &Path,
    ) -> Result<Vec<(Name, PathBuf, Metadata)>, TransferError> {
        let failed = |error: io::Error| unreadable(path, &error);
        let mut below = Vec::new();
        for item in fs::read_dir(path).map_err(failed)? {
            let item = item.map_err(failed)?;
            let file_name = item.file_name();
            if file_name
                .to_str()
                .is_some_and(|n| n.starts_with(anabranch::transfer::name::RESERVED))
            {
                // What an unfinished transfer left here is nobody's file.
                continue;
            }
            let text = file_name.to_str().map(|n| format!("{parent}/{n}")).unwrap_or_default();
            let metadata = item.metadata().map_err(|error| unreadable(&item.path(), &error))?;
            below.push((name(&text, &item.path())?, item.path(), metadata));
        }
        Ok(below)
    }
}

/// What the reading thread has for the peer.
#[derive(Debug)]
pub(super) enum Outgoing {
    Frame(Frame),
    Data(Vec<u8>),
}

/// How it leaves; false if nobody wants it any more.
pub(super) type Send<'a> = &'a mut dyn FnMut(Outgoing) -> bool;

/// What the peer asks for: the bytes of a file from a place on, or the sum of those before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) index: u32,
    pub(super) offset: u64,
    /// Only the sum.
    pub(super) sum: bool,
}

/// Reads an offer's files as they are asked for.
#[derive(Debug)]
pub(super) struct Reading<'a> {
    offer: &'a Offer,
    /// Starts of files of which the sum was told: index, length and hash. Their rest is probably wanted next.
    told: VecDeque<(u32, u64, Hash)>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(offer: &'a Offer) -> Self {
        Reading { offer, told: VecDeque::new() }
    }

    /// Reads what is asked for.
    pub(super) fn read(&mut self, request: Request, send: Send<'_>) -> Result<(), TransferError> {
        let (index, offer) = (request.index as usize, self.offer);
        let (Some(entry), Some(origin)) = (offer.manifest.entry(index), offer.origins.get(index))
        else {
            return Err(not_offered());
        };
        match (entry.kind, origin) {
            (Kind::File, Some(path)) if request.offset <= entry.size => {
                self.read_file(&entry, path, request, send)
            }
            (Kind::Stream, None) if request.offset == 0 && !request.sum => {
                offer.read_stdin(request.index, send)
            }
            _ => Err(not_offered()),
        }
    }

    fn read_file(
        &mut self,
        entry: &Entry,
        path: &Path,
        Request { index, offset, sum }: Request,
        send: Send<'_>,
    ) -> Result<(), TransferError> {
        let failed = |error: io::Error| unreadable(path, &error);
        let same = |file: &File| {
            let now = file.metadata().map_err(failed)?;
            let same = now.len() == entry.size && modified(&now) == entry.modified;
            if same { Ok(()) } else { Err(changed(entry)) }
        };
        let mut file = anabranch_files::open(path).map_err(failed)?;
        same(&file)?;
        let mut hash =
            self.start(&mut file, index, offset).map_err(failed)?.ok_or_else(|| changed(entry))?;
        if sum {
            send(Outgoing::Frame(Frame::Sum { index, offset, sum: hash.sum() }));
            self.told.truncate(MAX_FETCHES - 1);
            self.told.push_front((index, offset, hash));
            return Ok(());
        }
        if !send(Outgoing::Frame(Frame::File { index, offset })) {
            return Ok(());
        }
        let rest = entry.size - offset;
        let Some(sent) = pump(file.by_ref().take(rest), &mut hash, send).map_err(failed)? else {
            return Ok(());
        };
        if sent < rest {
            return Err(changed(entry));
        }
        same(&file)?;
        send(Outgoing::Frame(Frame::FileEnd { index, size: entry.size, sum: hash.sum() }));
        Ok(())
    }

    /// The hash of a file's first bytes, and the file's position after them; `None` if there are fewer.
    fn start(&self, file: &mut File, index: u32, offset: u64) -> io::Result<Option<Hash>> {
        let told = self.told.iter().find(|told| (told.0, told.1) == (index, offset));
        if let Some((.., hash)) = told {
            file.seek(SeekFrom::Start(offset))?;
            return Ok(Some(hash.clone()));
        }
        let (hash, count) = Hash::of_start(file, offset)?;
        Ok((count == offset).then_some(hash))
    }
}

impl Offer {
    fn read_stdin(&self, index: u32, send: Send<'_>) -> Result<(), TransferError> {
        if self.stdin_read.swap(true, Ordering::Relaxed) {
            let why = "standard input can be sent only once".to_owned();
            return Err(TransferError::Local(Code::SourceChanged, why));
        }
        let mut hash = Hash::new();
        if !send(Outgoing::Frame(Frame::File { index, offset: 0 })) {
            return Ok(());
        }
        let failed = |error: io::Error| unreadable(Path::new("standard input"), &error);
        if let Some(size) = pump(io::stdin().lock(), &mut hash, send).map_err(failed)? {
            send(Outgoing::Frame(Frame::FileEnd { index, size, sum: hash.sum() }));
        }
        Ok(())
    }
}

/// Sends all of `input`; how many bytes that were, or `None` if nobody wants them.
fn pump(mut input: impl Read, hash: &mut Hash, send: Send<'_>) -> io::Result<Option<u64>> {
    let mut total = 0;
    loop {
        let mut bytes = vec![0; MAX_DATA];
        let count = match input.read(&mut bytes) {
            Ok(0) => return Ok(Some(total)),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        bytes.truncate(count);
        hash.update(&bytes);
        total += count as u64;
        if !send(Outgoing::Data(bytes)) {
            return Ok(None);
        }
    }
}

fn entry(name: Name, kind: Kind, metadata: &Metadata) -> Entry {
    let size = if kind == Kind::File { metadata.len() } else { 0 };
    let mode = (metadata.permissions().mode() & u32::from(MODE)) as u16;
    Entry { name, kind, mode, size, modified: modified(metadata) }
}

fn not_offered() -> TransferError {
    TransferError::protocol("a request for what was not offered")
}

fn refused(error: ManifestError) -> TransferError {
    TransferError::Local(Code::Unreadable, format!("cannot send: {error}"))
}

/// When it was changed; zero where the system does not tell.
fn modified(metadata: &Metadata) -> Modified {
    let Ok(time) = metadata.modified() else { return Modified::default() };
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => Modified {
            seconds: i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
            nanos: after.subsec_nanos(),
        },
        Err(before) => {
            // Nanoseconds count forwards also before 1970.
            let before = before.duration();
            let (more, nanos) = match before.subsec_nanos() {
                0 => (0, 0),
                nanos => (1, 1_000_000_000 - nanos),
            };
            let seconds = i64::try_from(before.as_secs()).unwrap_or(i64::MAX - 1);
            Modified { seconds: -seconds - more, nanos }
        }
    }
}

fn name(text: &str, path: &Path) -> Result<Name, TransferError> {
    let refused = |why: String| TransferError::File {
        code: Code::Unreadable,
        here: format!("cannot send {} under its name: {why}", path.display()),
        there: format!("cannot send a file under its name: {why}"),
    };
    if text.is_empty() {
        return Err(refused("it has none, or none in UTF-8".to_owned()));
    }
    Name::new(text).map_err(|error| refused(error.to_string()))
}

fn unreadable(path: &Path, error: &io::Error) -> TransferError {
    // Where the files lie is nobody's business but the sender's.
    let last = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let advice = match (confine::explain(path, error), error.kind()) {
        ("", ErrorKind::PermissionDenied) => "; see its permissions, or leave it out",
        (advice, _) => advice,
    };
    TransferError::File {
        code: Code::Unreadable,
        here: format!("cannot read {}: {error}{advice}", path.display()),
        there: format!("cannot read {}: {error}", escaped(&last.unwrap_or_default())),
    }
}

fn changed(entry: &Entry) -> TransferError {
    let why = format!("{} changed while it was sent; send it again", entry.name);
    TransferError::Local(Code::SourceChanged, why)
}
