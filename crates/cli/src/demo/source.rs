//! The data that the sender sends, and its checksum.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anabranch_types::Rng;
use ring::digest::{Context, Digest, SHA256};

use super::plan::Goal;
use crate::failure::Failure;

/// Bytes made at a time.
const CHUNK: usize = 1 << 16;

/// Bytes to send.
#[derive(Debug)]
pub(super) struct Source {
    kind: Kind,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that have been handed out, and bytes that are in it.
    start: usize,
    end: usize,
}

#[derive(Debug)]
enum Kind {
    /// Random bytes; this many more, or any number.
    Random(Rng, Option<u64>),
    File(File, PathBuf, u64),
}

impl Source {
    /// Opens what `goal` names; random bytes are drawn under `seed`.
    ///
    /// # Errors
    /// When a file cannot be read, or is not a regular file and so might never end.
    pub(super) fn open(goal: &Goal, seed: u64) -> Result<Self, Failure> {
        let rng = || Rng::substream(seed, "demo.data");
        let kind = match goal {
            Goal::Time(_) => Kind::Random(rng(), None),
            Goal::Size(size) => Kind::Random(rng(), Some(*size)),
            Goal::File(path) => open(path)?,
        };
        Ok(Source { kind, buffer: vec![0; CHUNK], start: 0, end: 0 })
    }

    /// How many bytes there are in all, if that is known.
    pub(super) fn size(&self) -> Option<u64> {
        match &self.kind {
            Kind::Random(_, size) => *size,
            Kind::File(_, _, size) => Some(*size),
        }
    }

    /// The next bytes, the same until they are [consumed](Self::consume); empty at the end.
    pub(super) fn fill(&mut self) -> Result<&[u8], Failure> {
        if self.start == self.end {
            self.start = 0;
            self.end = self.make()?;
        }
        Ok(self.buffer.get(self.start..self.end).unwrap_or_default())
    }

    /// Marks the first `count` of the bytes that [`fill`](Self::fill) gave as used.
    pub(super) fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }

    fn make(&mut self) -> Result<usize, Failure> {
        match &mut self.kind {
            Kind::Random(rng, left) => {
                let count = left.map_or(CHUNK, |left| left.min(CHUNK as u64) as usize);
                if let Some(left) = left {
                    *left -= count as u64;
                }
                let room = self.buffer.get_mut(..count).unwrap_or_default();
                rng.fill(room);
                Ok(room.len())
            }
            Kind::File(file, path, _) => loop {
                match file.read(&mut self.buffer) {
                    Ok(count) => return Ok(count),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(cannot_read(path, &error)),
                }
            },
        }
    }
}

fn open(path: &Path) -> Result<Kind, Failure> {
    // Opening a pipe would wait for someone to write to it, so its kind is checked first.
    let about = std::fs::metadata(path).map_err(|error| cannot_read(path, &error))?;
    if !about.is_file() {
        let why = "not a regular file; name one with content of known length";
        return Err(Failure::usage(format!("cannot send {}: {why}", path.display())));
    }
    let file = File::open(path).map_err(|error| cannot_read(path, &error))?;
    Ok(Kind::File(file, path.to_owned(), about.len()))
}

fn cannot_read(path: &Path, error: &io::Error) -> Failure {
    Failure::cannot_read(path, error)
}

/// Counts bytes and computes their SHA-256.
#[derive(Clone)]
pub(super) struct Sum {
    bytes: u64,
    context: Context,
}

impl Sum {
    pub(super) fn new() -> Self {
        Sum { bytes: 0, context: Context::new(&SHA256) }
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.context.update(bytes);
    }

    /// The count and the SHA-256.
    pub(super) fn finish(self) -> (u64, Digest) {
        (self.bytes, self.context.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn drain(mut source: Source, step: usize) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            let bytes = source.fill().unwrap();
            if bytes.is_empty() {
                return all;
            }
            let count = bytes.len().min(step);
            all.extend_from_slice(&bytes[..count]);
            source.consume(count);
        }
    }

    #[test]
    fn random_bytes_follow_the_seed_however_they_are_taken() {
        let open = |seed| Source::open(&Goal::Size(150_000), seed).unwrap();
        let bytes = drain(open(1), 1000);
        assert_eq!(bytes.len(), 150_000);
        assert_eq!(bytes, drain(open(1), 77_777));
        assert_ne!(bytes, drain(open(2), 1000));
    }

    #[test]
    fn files_are_sent_whole_and_others_refused() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"over both links").unwrap();
        let goal = Goal::File(file.path().to_owned());
        let source = Source::open(&goal, 1).unwrap();
        assert_eq!(source.size(), Some(15));
        assert_eq!(drain(source, 4), b"over both links");
        for bad in ["/no/such/file", "/", "/dev/zero"] {
            let error = Source::open(&Goal::File(bad.into()), 1).unwrap_err();
            assert!(error.to_string().contains(bad), "{error}");
        }
    }

    #[test]
    fn sums_are_sha_256() {
        let mut sum = Sum::new();
        sum.add(b"a");
        sum.add(b"bc");
        let (bytes, digest) = sum.finish();
        assert_eq!(bytes, 3);
        let hex = crate::format::hex(digest.as_ref());
        assert!(hex.starts_with("ba7816bf8f01cfea"), "{hex}");
    }
}
