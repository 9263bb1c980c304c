//! Prints the entries of an offer.

use anabranch_transfer::{Entry, Kind};

use crate::format;

/// Entries of each kind, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amounts {
    pub(super) files: u64,
    pub(super) links: u64,
    pub(super) directories: u64,
    pub(super) bytes: u64,
    /// Some bytes are not counted: those of pipes.
    pub(super) open_ended: bool,
}

impl Amounts {
    /// Counts an entry.
    pub(super) fn add(&mut self, entry: &Entry) {
        match entry.kind {
            Kind::Directory => self.directories += 1,
            Kind::Link => self.links += 1,
            Kind::File | Kind::Stream => self.files += 1,
        }
        self.open_ended |= entry.kind == Kind::Stream;
        self.bytes = self.bytes.saturating_add(entry.size);
    }

    /// `3 files, 2 links and 1 directory, 1.2 GB`.
    pub(super) fn text(&self) -> String {
        let mut counts = vec![format::counted(self.files, "file")];
        if self.links > 0 {
            counts.push(format::counted(self.links, "link"));
        }
        match self.directories {
            0 => {}
            1 => counts.push("1 directory".to_owned()),
            more => counts.push(format!("{} directories", format::count(more))),
        }
        let last = counts.pop().unwrap_or_default();
        let counts = match counts.is_empty() {
            true => last,
            false => format!("{} and {last}", counts.join(", ")),
        };
        let more = if self.open_ended { " or more" } else { "" };
        format!("{counts}, {}{more}", format::bytes(self.bytes))
    }
}

/// An entry's line: how large it is or what it is, and its name.
pub(super) fn line(entry: &Entry) -> String {
    let size = match entry.kind {
        Kind::File => format::bytes(entry.size),
        Kind::Directory => "directory".to_owned(),
        Kind::Stream => "from a pipe".to_owned(),
        Kind::Link => "link".to_owned(),
    };
    let target = entry.target.as_ref().map(|target| format!(" -> {target}")).unwrap_or_default();
    format!("  {size:>12}  {}{target}", entry.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_a_sentence() {
        let text = |files, links, directories| {
            Amounts { files, links, directories, bytes: 1500, open_ended: false }.text()
        };
        assert_eq!(text(1, 0, 0), "1 file, 1.5 kB");
        assert_eq!(text(2, 0, 1), "2 files and 1 directory, 1.5 kB");
        assert_eq!(text(2, 1, 3), "2 files, 1 link and 3 directories, 1.5 kB");
        assert_eq!(text(0, 2, 0), "0 files and 2 links, 1.5 kB");
    }
}
