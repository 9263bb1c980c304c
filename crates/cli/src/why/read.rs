//! Reads a recording line by line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::qlog::{self, Qlog, Said};
use crate::failure::Failure;
use crate::record::{Entry, FORMAT, Header, KIND, Line};

/// Longest line that is read, bytes; those of a recording are far shorter.
const MAX_LINE: u64 = 1 << 16;

/// Most paths of a qlog file that are called by name; others are called by number.
const MOST_NAMED: usize = 1 << 12;

/// An open recording.
#[derive(Debug)]
pub(super) struct Reader {
    /// State of reading a qlog file; `None` if the file is a recording.
    qlog: Option<Qlog>,
    /// Time of the last event, and whether the end was returned.
    last: (u64, bool),
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
                "{} is not a recording; `anabranch demo --record FILE` and the option --qlog DIR make some",
                path.display()
            ))
        };
        let text = buffer.strip_prefix(&[qlog::SEPARATOR]);
        let header: Header = match text {
            Some(text) => qlog::header(text).ok_or_else(not_one)?,
            None => serde_json::from_slice(&buffer).map_err(|_| not_one())?,
        };
        let qlog = text.map(|_| Qlog::default());
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
        let (path, last) = (path.to_owned(), (0, false));
        Ok(Reader { qlog, last, path, input, header, number: 1, buffer, cut: false })
    }

    /// The first line. A qlog file has no list of paths: their names are added as reading meets them.
    pub(super) fn header(&self) -> &Header {
        &self.header
    }

    /// Whether the file ended in the middle of a line.
    pub(super) fn is_cut(&self) -> bool {
        self.cut
    }

    /// The next line; `None` after the last. A last line without its end is left out.
    pub(super) fn next_line(&mut self) -> Result<Option<Line>, Failure> {
        loop {
            self.buffer.clear();
            let mut input = self.input.by_ref().take(MAX_LINE);
            let read = input.read_until(b'\n', &mut self.buffer);
            read.map_err(|error| cannot_read(&self.path, &error))?;
            if self.buffer.is_empty() {
                return Ok(self.end());
            }
            self.number += 1;
            match Self::parsed(self.qlog.as_mut(), &self.buffer) {
                Ok(Said::Event(line)) => {
                    self.last.0 = line.t;
                    return Ok(Some(line));
                }
                Ok(Said::Name(path, name)) => self.name(path, name),
                Ok(Said::Nothing) => {}
                Err(_) if self.buffer.last() != Some(&b'\n') && input.limit() > 0 => {
                    self.cut = true;
                    return Ok(None);
                }
                Err(why) => {
                    return Err(Failure::failed(format!(
                        "{}, line {}: not an event of a recording ({why})",
                        self.path.display(),
                        self.number
                    )));
                }
            }
        }
    }

    fn parsed(qlog: Option<&mut Qlog>, text: &[u8]) -> Result<Said, String> {
        match (qlog, text.strip_prefix(&[qlog::SEPARATOR])) {
            (None, _) => {
                serde_json::from_slice(text).map(Said::Event).map_err(|error| error.to_string())
            }
            (Some(qlog), Some(text)) => {
                qlog.read(text).ok_or_else(|| "it is not an event of this program".to_owned())
            }
            (Some(_), None) => Err("there is no record separator".to_owned()),
        }
    }

    fn name(&mut self, path: u32, name: String) {
        let (path, paths) = (path as usize, &mut self.header.paths);
        if path < MOST_NAMED {
            while paths.len() <= path {
                paths.push(format!("path {}", paths.len()));
            }
            paths.get_mut(path).into_iter().for_each(|place| place.clone_from(&name));
        }
    }

    /// Makes an end event for a qlog file, which has none: the file gets its name only when it is complete.
    fn end(&mut self) -> Option<Line> {
        let first = self.qlog.is_some() && !std::mem::replace(&mut self.last.1, true);
        first.then_some(Line { t: self.last.0, entry: Entry::End { missed: 0 } })
    }
}

fn cannot_read(path: &Path, error: &io::Error) -> Failure {
    Failure::cannot_read(path, error)
}
