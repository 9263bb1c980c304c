//! Reads the bytes of the files on offer as the peer fetches them.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::atomic::Ordering;

use anabranch_transfer::frame::{MAX_DATA, MAX_FETCHES};
use anabranch_transfer::{Code, Entry, Frame, Kind};

use super::error::TransferError;
use super::hash::Hash;
use super::source::{Offer, modified, unreadable};

/// Output of the reading thread for the peer.
#[derive(Debug)]
pub(super) enum Outgoing {
    Frame(Frame),
    Data(Vec<u8>),
}

/// Passes output on; false if the peer's side is gone.
pub(super) type Send<'a> = &'a mut dyn FnMut(Outgoing) -> bool;

/// Request of the peer: a file's bytes from an offset on, or the checksum of the bytes before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) index: u32,
    pub(super) offset: u64,
    /// The request is for the checksum only.
    pub(super) sum: bool,
}

/// Reads an offer's files as they are asked for.
#[derive(Debug)]
pub(super) struct Reading<'a> {
    offer: &'a Offer,
    /// Beginnings of files whose checksum was sent: index, length and hash. Their rest is probably asked for next.
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

/// Sends all of `input` and returns the number of bytes; `None` if the peer's side is gone.
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

fn not_offered() -> TransferError {
    TransferError::protocol("a request for something that was not offered")
}

fn changed(entry: &Entry) -> TransferError {
    let why = format!("{} changed while it was sent; send it again", entry.name);
    TransferError::Local(Code::SourceChanged, why)
}
