//! Reading a recording line by line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::record::{FORMAT, Header, KIND, Line};

/// Longest line that is read, bytes; those of a recording are far shorter.
const MAX_LINE: u64 = 1 << 16;

/// An open recording.
#[derive(Debug)]
pub(super) struct Reader {
    path: PathBuf,
    input: BufReader<File>,
    header: Header,
    number: u64,
    buffer: Vec<u8>,
    cut: bool,
}

impl Reader {
    /// Opens a recording and reads its header.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let refuse = |error: &io::Error| cannot_read(path, error);
        let file = File::open(path).map_err(|error| refuse(&error))?;
        let mut input = BufReader::new(file);
        let mut buffer = Vec::new();
        input
            .by_ref()
            .take(MAX_LINE)
            .read_until(b'\n', &mut buffer)
            .map_err(|error| refuse(&error))?;
        let not_one = || {
            Failure::failed(format!(
                "{} is not a recording; make one with `anabranch demo --record FILE`",
                path.display()
            ))
        };
        let header: Header = serde_json::from_slice(&buffer).map_err(|_| not_one())?;
        if header.kind != KIND {
            return Err(not_one());
        }
        if header.format != FORMAT {
            return Err(Failure::failed(format!(
                "{} is a recording of format {}, this program reads format {FORMAT}; \
                 use the anabranch {} that made it",
                path.display(),
                header.format,
                header.version
            )));
        }
        Ok(Reader { path: path.to_owned(), input, header, number: 1, buffer, cut: false })
    }

    /// The first line.
    pub(super) fn header(&self) -> &Header {
        &self.header
    }

    /// Whether the file ended in the middle of a line.
    pub(super) fn is_cut(&self) -> bool {
        self.cut
    }

    /// The next line; `None` after the last. A last line without its end is left out.
    pub(super) fn next_line(&mut self) -> Result<Option<Line>, Failure> {
        self.buffer.clear();
        let mut input = self.input.by_ref().take(MAX_LINE);
        let read = input.read_until(b'\n', &mut self.buffer);
        read.map_err(|error| cannot_read(&self.path, &error))?;
        if self.buffer.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        match serde_json::from_slice(&self.buffer) {
            Ok(line) => Ok(Some(line)),
            Err(_) if self.buffer.last() != Some(&b'\n') && input.limit() > 0 => {
                self.cut = true;
                Ok(None)
            }
            Err(error) => Err(Failure::failed(format!(
                "{}, line {}: not an event of a recording ({error})",
                self.path.display(),
                self.number
            ))),
        }
    }
}

fn cannot_read(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("cannot read {}: {error}", path.display()))
}
