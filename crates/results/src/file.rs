//! Files that appear only when they are complete.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use anabranch_files::Atomic;

use crate::ResultsError;

/// A file that is written under another name until it is complete. If it is dropped before, it
/// leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Whole {
    path: PathBuf,
    file: Atomic,
}

impl Whole {
    /// Begins the file that will be `path`.
    pub(crate) fn begin(path: &Path) -> Result<Self, ResultsError> {
        let file = Atomic::begin(path, 0o666).map_err(ResultsError::io(path, "write"))?;
        Ok(Whole { path: path.to_owned(), file })
    }

    /// The final path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file to write to.
    pub(crate) fn writer(&self) -> Result<File, ResultsError> {
        self.file.file().try_clone().map_err(ResultsError::io(&self.path, "write"))
    }

    /// Renames the file to its final path; `durable` waits until it is on disk.
    pub(crate) fn finish(self, durable: bool) -> Result<(), ResultsError> {
        self.file.replace(durable).map_err(ResultsError::io(&self.path, "write"))
    }
}

/// A 64-bit FNV-1a checksum, which detects files that were truncated or changed by accident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checksum(pub(crate) u64);

impl Checksum {
    /// The checksum of `bytes`.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Checksum(0xcbf2_9ce4_8422_2325).with(bytes)
    }

    /// The checksum of a file's contents.
    pub(crate) fn of_file(path: &Path) -> Result<Self, ResultsError> {
        let mut file = File::open(path).map_err(ResultsError::io(path, "read"))?;
        let (mut sum, mut buffer) = (Checksum::of(&[]), vec![0; 1 << 16]);
        loop {
            let length = file.read(&mut buffer).map_err(ResultsError::io(path, "read"))?;
            match buffer.get(..length) {
                Some(bytes) if length > 0 => sum = sum.with(bytes),
                _ => return Ok(sum),
            }
        }
    }

    fn with(self, bytes: &[u8]) -> Self {
        let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        Checksum(bytes.iter().fold(self.0, step))
    }
}

/// Writes `bytes` as the file `path`, completely or not at all.
pub(crate) fn write(path: &Path, bytes: &[u8], durable: bool) -> Result<(), ResultsError> {
    fill(path, durable, |out| out.write_all(bytes))
}

/// Writes the output of `write` as the file `path`, completely or not at all, without holding it in
/// memory.
pub(crate) fn fill(
    path: &Path,
    durable: bool,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), ResultsError> {
    let whole = Whole::begin(path)?;
    let mut out = BufWriter::new(whole.writer()?);
    write(&mut out).and_then(|()| out.flush()).map_err(ResultsError::io(path, "write"))?;
    drop(out);
    whole.finish(durable)
}
