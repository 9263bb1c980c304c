//! SHA-256 computed while bytes arrive.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};

use ring::digest::{Context, SHA256};

/// Bytes read at a time.
const READ: usize = 1 << 18;

/// A SHA-256.
pub(super) type Sum = [u8; 32];

/// The SHA-256 of the bytes so far.
#[derive(Clone)]
pub(super) struct Hash(Context);

impl Hash {
    /// The hash of no bytes.
    pub(super) fn new() -> Self {
        Hash(Context::new(&SHA256))
    }

    /// The SHA-256 of all the bytes of a file.
    pub(super) fn of_file(file: &mut File) -> io::Result<Sum> {
        Hash::of_start(file, u64::MAX).map(|(hash, _)| hash.sum())
    }

    /// The hash of the first `count` bytes of a file, or of all if there are fewer, and the number
    /// of bytes hashed. The file's position is after them.
    pub(super) fn of_start(file: &mut File, count: u64) -> io::Result<(Self, u64)> {
        file.seek(SeekFrom::Start(0))?;
        let mut hash = Hash::new();
        let mut buffer = vec![0; READ];
        let mut rest = file.take(count);
        let mut done = 0;
        loop {
            let read = match rest.read(&mut buffer) {
                Ok(0) => return Ok((hash, done)),
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            hash.update(buffer.get(..read).unwrap_or_default());
            done += read as u64;
        }
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The sum of the bytes so far.
    pub(super) fn sum(&self) -> Sum {
        self.0.clone().finish().as_ref().first_chunk().copied().unwrap_or_default()
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hash(…)")
    }
}
