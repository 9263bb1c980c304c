//! An offer: entries in the order in which they can be fetched, checked as they arrive.

use super::frame::FrameError;
use super::link::Target;
use super::name::Name;
use super::order::Order;
use super::wire::Fields;
use ring::digest::{Context, SHA256};

/// Entries of an offer at most.
pub const MAX_ENTRIES: usize = 1_000_000;
/// Largest cost of an offer, which limits the memory that a peer can make the receiver use: the
/// bytes of all names and targets, and [`ENTRY_COST`] for each entry.
pub const MAX_COST: usize = 32 << 20;
/// Cost of an entry beside the bytes of its name and target: its record, and its place in the order of names.
pub const ENTRY_COST: usize = size_of::<Record>() + size_of::<u32>();
/// Parts of paths that are looked up, at most, to see where the links of an offer lead.
pub const MAX_STEPS: usize = 4_000_000;
/// The bits of permissions that an entry can have.
pub const MODE: u16 = 0o777;

/// Kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file of known size, which can be fetched from any offset.
    File,
    /// A directory; there is nothing to fetch.
    Directory,
    /// Bytes that can be read once and whose number is not known, as from a pipe.
    Stream,
    /// A symbolic link, which leads to another entry; there is nothing to fetch.
    Link,
}

/// When a file was last changed: seconds since 1970 and nanoseconds below a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modified {
    /// Seconds since 1970, negative before.
    pub seconds: i64,
    /// Nanoseconds, below 10⁹.
    pub nanos: u32,
}

/// One thing on offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where the entry belongs.
    pub name: Name,
    /// Kind of the entry.
    pub kind: Kind,
    /// The nine bits of its permissions, as on Unix: read, write, execute for owner, group and others.
    pub mode: u16,
    /// Bytes; 0 for what is not a [`Kind::File`].
    pub size: u64,
    /// When the entry was last changed; zero for a [`Kind::Stream`] or [`Kind::Link`].
    pub modified: Modified,
    /// Where a [`Kind::Link`] leads; nothing else has one.
    pub target: Option<Target>,
}

impl Entry {
    /// Whether the entry is a file or a stream that somebody may execute.
    pub fn is_executable(&self) -> bool {
        self.kind.has_bytes() && self.mode & 0o111 != 0
    }

    /// The size as it is encoded: for a link the length of its target.
    fn written_size(&self) -> u64 {
        self.target.as_ref().map_or(self.size, |target| target.as_str().len() as u64)
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.push(match self.kind {
            Kind::File => 0,
            Kind::Directory => 1,
            Kind::Stream => 2,
            Kind::Link => 3,
        });
        out.extend_from_slice(&self.mode.to_be_bytes());
        out.extend_from_slice(&self.written_size().to_be_bytes());
        out.extend_from_slice(&self.modified.seconds.to_be_bytes());
        out.extend_from_slice(&self.modified.nanos.to_be_bytes());
        out.extend_from_slice(self.name.as_str().as_bytes());
        out.extend(self.target.iter().flat_map(|target| target.as_str().bytes()));
    }

    pub(super) fn decode(fields: &mut Fields<'_>) -> Result<Self, FrameError> {
        let kind = match fields.u8()? {
            0 => Kind::File,
            1 => Kind::Directory,
            2 => Kind::Stream,
            3 => Kind::Link,
            _ => return Err(FrameError::Value),
        };
        let mode = fields.u16()?;
        let size = fields.u64()?;
        let modified = Modified { seconds: fields.i64()?, nanos: fields.u32()? };
        let possible = mode & !MODE == 0 && modified.nanos < 1_000_000_000;
        let sized = matches!(kind, Kind::File | Kind::Link);
        let plain = mode == 0 && modified == Modified::default();
        if !possible || (!sized && size != 0) || (kind == Kind::Link && !plain) {
            return Err(FrameError::Value);
        }
        let text = fields.text()?;
        if kind != Kind::Link {
            let name = Name::new(text).map_err(FrameError::Name)?;
            return Ok(Entry { name, kind, mode, size, modified, target: None });
        }
        let (name, target) = usize::try_from(size)
            .ok()
            .and_then(|size| text.len().checked_sub(size))
            .and_then(|at| text.split_at_checked(at))
            .ok_or(FrameError::Length)?;
        let name = Name::new(name).map_err(FrameError::Name)?;
        let target = Some(Target::new(target).map_err(FrameError::Target)?);
        Ok(Entry { name, kind, mode, size: 0, modified, target })
    }
}

impl Kind {
    /// Whether an entry of this kind has bytes to fetch.
    pub fn has_bytes(self) -> bool {
        matches!(self, Kind::File | Kind::Stream)
    }
}

/// Why an entry cannot be part of an offer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// There are more than [`MAX_ENTRIES`], or they cost more than [`MAX_COST`].
    #[error("there are too many files for one offer; send them in parts, or packed into one")]
    TooMany,
    /// Two entries have this name.
    #[error("two entries have the name {0}")]
    Twice(Name),
    /// The file or link of this name would have to be a directory as well.
    #[error("{0} is on offer both as a file and as a directory")]
    FileAndDirectory(Name),
    /// The link of this name leads to nothing that is in the offer.
    #[error("{0} is a symbolic link whose target is not on offer")]
    Astray(Name),
    /// The sizes add up to more than 2⁶⁴ bytes.
    #[error("the sizes add up to more than can be counted")]
    TooLarge,
}

/// An entry without its name. 32 bytes, as there may be many.
#[derive(Clone, Copy, Debug)]
struct Record {
    /// For a link the length of its target.
    size: u64,
    seconds: i64,
    nanos: u32,
    /// End of this entry's name and target in the text of all names. They start where those of the entry before end.
    end: u32,
    mode: u16,
    kind: Kind,
}

/// An offer, as far as it is known.
#[derive(Clone, Debug, Default)]
pub struct Manifest {
    records: Vec<Record>,
    /// All names, one after the other, each followed by its target if it has one.
    names: String,
    total: u64,
}

impl Manifest {
    /// Adds an entry.
    ///
    /// # Errors
    /// If there are too many; the offer stays as it was.
    pub fn push(&mut self, entry: &Entry) -> Result<(), ManifestError> {
        let name = entry.name.as_str();
        let target = entry.target.as_ref().map_or("", Target::as_str);
        let len = name.len() + target.len();
        let cost = self.cost().saturating_add(len + ENTRY_COST);
        if self.records.len() >= MAX_ENTRIES || cost > MAX_COST {
            return Err(ManifestError::TooMany);
        }
        self.total = self.total.checked_add(entry.size).ok_or(ManifestError::TooLarge)?;
        // Grow by a quarter instead of doubling, so that a large offer takes little more than its contents.
        if self.names.capacity() - self.names.len() < len {
            self.names.reserve_exact(len.max(self.names.len() / 4));
        }
        if self.records.capacity() == self.records.len() {
            self.records.reserve_exact((self.records.len() / 4).max(4));
        }
        self.names.push_str(name);
        self.names.push_str(target);
        let Entry { kind, mode, modified: Modified { seconds, nanos }, .. } = *entry;
        let size = entry.written_size();
        // The bound on the cost is far below 2³².
        let end = u32::try_from(self.names.len()).map_err(|_| ManifestError::TooMany)?;
        self.records.push(Record { size, seconds, nanos, end, mode, kind });
        Ok(())
    }

    /// Checks that the entries can exist side by side. To be called once all entries have been
    /// added.
    ///
    /// # Errors
    /// If two have the same name, a file or link would have to be a directory, or a link leads to
    /// nothing in the offer.
    pub fn check(&self) -> Result<(), ManifestError> {
        let mut order = Order::new(self);
        for (first, second) in order.pairs() {
            let (above, below) = (self.name(first), self.name(second));
            if above == below {
                return Err(ManifestError::Twice(Name::known(above)));
            }
            // In this order, everything within an entry follows directly after the entry.
            let within = below.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'));
            if within && self.kind(first) != Some(Kind::Directory) {
                return Err(ManifestError::FileAndDirectory(Name::known(above)));
            }
        }
        match self.astray_in(&mut order)?.first() {
            Some(index) => Err(ManifestError::Astray(Name::known(self.name(*index)))),
            None => Ok(()),
        }
    }

    /// Positions of the links that lead to nothing in the offer.
    ///
    /// # Errors
    /// If following all of them takes more than [`MAX_STEPS`].
    pub fn astray(&self) -> Result<Vec<usize>, ManifestError> {
        self.astray_in(&mut Order::new(self))
    }

    fn astray_in(&self, order: &mut Order<'_>) -> Result<Vec<usize>, ManifestError> {
        let mut astray = Vec::new();
        for link in (0..self.len()).filter(|index| self.kind(*index) == Some(Kind::Link)) {
            if !order.leads_there(link)? {
                astray.push(link);
            }
        }
        Ok(astray)
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Cost of keeping the manifest, as [`MAX_COST`] bounds it.
    pub fn cost(&self) -> usize {
        self.names.len() + self.records.len() * ENTRY_COST
    }

    /// An entry, by its position.
    pub fn entry(&self, index: usize) -> Option<Entry> {
        let Record { size, seconds, nanos, mode, kind, .. } = *self.records.get(index)?;
        let (name, modified) = (Name::known(self.name(index)), Modified { seconds, nanos });
        let target = self.target(index);
        let size = if kind == Kind::Link { 0 } else { size };
        Some(Entry { name, kind, mode, size, modified, target })
    }

    /// The entries, in order; an entry's index is its position.
    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        (0..self.records.len()).filter_map(|index| self.entry(index))
    }

    /// How many entries are files or streams.
    pub fn files(&self) -> usize {
        self.records.iter().filter(|record| record.kind.has_bytes()).count()
    }

    /// Bytes of all files.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// A SHA-256 that two offers share only if all their entries are equal.
    pub fn identity(&self) -> [u8; 32] {
        let mut context = Context::new(&SHA256);
        let mut bytes = Vec::new();
        for entry in self.entries() {
            bytes.clear();
            entry.encode(&mut bytes);
            context.update(&(bytes.len() as u64).to_be_bytes());
            context.update(&bytes);
        }
        let mut identity = [0; 32];
        identity.copy_from_slice(context.finish().as_ref());
        identity
    }

    pub(super) fn kind(&self, index: usize) -> Option<Kind> {
        self.records.get(index).map(|record| record.kind)
    }

    pub(super) fn name(&self, index: usize) -> &str {
        self.text(index).0
    }

    pub(super) fn target(&self, index: usize) -> Option<Target> {
        let link = self.kind(index) == Some(Kind::Link);
        link.then(|| Target::known(self.text(index).1))
    }

    /// A name, and the target that follows it.
    fn text(&self, index: usize) -> (&str, &str) {
        let end = |index: usize| self.records.get(index).map_or(0, |record| record.end as usize);
        let start = index.checked_sub(1).map_or(0, end);
        let whole = self.names.get(start..end(index)).unwrap_or_default();
        let target = match self.records.get(index) {
            Some(Record { kind: Kind::Link, size, .. }) => *size as usize,
            _ => 0,
        };
        whole.split_at_checked(whole.len().saturating_sub(target)).unwrap_or((whole, ""))
    }
}
