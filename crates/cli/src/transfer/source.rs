//! The files of the offering side.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::UNIX_EPOCH;

use anabranch::types::escaped;
use anabranch_transfer::manifest::MODE;
use anabranch_transfer::{Code, Entry, Kind, Manifest, ManifestError, Modified, Name, Target};

use super::error::TransferError;
use super::pick::Pick;
use crate::confine;

/// Permissions of data from a pipe, which has none of its own. The receiver's umask applies.
const PIPE: u16 = 0o666;

/// Files to send, and which parts of them.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// Names as on the command line; `-` is standard input.
    files: Vec<String>,
    /// Name under which standard input is sent.
    stdin_name: String,
    /// Selects which files below the named ones are sent.
    pick: Pick,
    /// Standard input can be read only once.
    stdin_read: Arc<AtomicBool>,
}

/// The offer of the sending side, entry by entry.
#[derive(Clone, Debug, Default)]
pub(super) struct Offer {
    pub(super) manifest: Manifest,
    /// Where each entry comes from; `None` is standard input.
    pub(super) origins: Vec<Option<PathBuf>>,
    /// Entries that are not sent, although nobody excluded them.
    pub(super) skipped: Vec<Skipped>,
    pub(super) stdin_read: Arc<AtomicBool>,
}

/// Something that is not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Skipped {
    pub(super) path: PathBuf,
    pub(super) why: Why,
}

/// Why something is not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// A link, and `--links` was not given.
    Link,
    /// A link to this target, which is not sent itself.
    Astray(PathBuf),
    /// A device, a pipe or a socket.
    Special,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Link => f.write_str(
                "a symbolic link: --links sends the link itself; to send its target, name the link on the command line",
            ),
            Why::Astray(target) => {
                let target = escaped(&target.to_string_lossy()).to_string();
                write!(f, "a symbolic link to {target}, which is not sent with it")
            }
            Why::Special => f.write_str("neither file nor directory"),
        }
    }
}

impl Source {
    pub(super) fn new(files: Vec<String>, stdin_name: String, pick: Pick) -> Self {
        Source { files, stdin_name, pick, stdin_read: Arc::default() }
    }

    /// Whether a transfer that broke off can be taken up again.
    pub(super) fn can_be_read_again(&self) -> bool {
        !self.files.iter().any(|file| file == "-")
    }

    /// Collects the entries of all files that were named.
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
                    target: None,
                };
                offer.add(entry, None)?;
            } else {
                offer.add_path(Path::new(file), &self.pick)?;
            }
        }
        let offer = offer.without_astray()?;
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
            None => match part.manifest.astray().map_err(refused)?.first() {
                Some(index) => {
                    let link = part.manifest.entry(*index);
                    let text = link.iter().filter_map(|link| {
                        let target = link.target.as_ref()?;
                        Some(format!(
                            "{} is a link to {target}, which must be requested, too",
                            link.name
                        ))
                    });
                    Err(TransferError::Local(Code::NotFound, text.collect()))
                }
                None => Ok(part),
            },
        }
    }

    /// The offer without links to what is not sent: at the other end they could lead to something that was
    /// there before.
    fn without_astray(mut self) -> Result<Offer, TransferError> {
        let astray: BTreeSet<usize> =
            self.manifest.astray().map_err(refused)?.into_iter().collect();
        if astray.is_empty() {
            return Ok(self);
        }
        let mut rest = Offer {
            skipped: std::mem::take(&mut self.skipped),
            stdin_read: self.stdin_read,
            ..Offer::default()
        };
        for (index, (entry, origin)) in self.manifest.entries().zip(self.origins).enumerate() {
            match (astray.contains(&index), origin, entry.target) {
                (true, Some(path), Some(target)) => {
                    let target = PathBuf::from(target.as_str());
                    rest.skipped.push(Skipped { path, why: Why::Astray(target) });
                }
                (_, origin, target) => rest.add(Entry { target, ..entry }, origin)?,
            }
        }
        Ok(rest)
    }

    fn add(&mut self, entry: Entry, origin: Option<PathBuf>) -> Result<(), TransferError> {
        self.manifest.push(&entry).map_err(refused)?;
        self.origins.push(origin);
        Ok(())
    }

    /// Adds a file or a whole directory, under the last part of its name.
    fn add_path(&mut self, path: &Path, pick: &Pick) -> Result<(), TransferError> {
        let real = path.canonicalize().map_err(|error| unreadable(path, &error))?;
        let last = path.file_name().or(real.file_name()).and_then(|name| name.to_str());
        let top = name(last.unwrap_or_default(), path)?;
        let metadata = fs::metadata(&real).map_err(|error| unreadable(path, &error))?;
        let mut waiting = vec![(top, real, metadata)];
        // Depth first, in the order of names: the next one is at the end.
        while let Some((name, path, metadata)) = waiting.pop() {
            if pick.excludes(&name, metadata.is_dir()) {
                continue;
            }
            if metadata.is_dir() {
                self.add(entry(name.clone(), Kind::Directory, &metadata), Some(path.clone()))?;
                let mut below = self.children(&name, &path)?;
                below.sort_by(|a, b| b.0.cmp(&a.0));
                waiting.append(&mut below);
            } else if metadata.is_file() {
                // A file that cannot be opened is reported now, and not in the middle of the
                // transfer.
                File::open(&path).map_err(|error| unreadable(&path, &error))?;
                self.add(entry(name, Kind::File, &metadata), Some(path))?;
            } else if metadata.is_symlink() {
                self.add_link(name, path, pick)?;
            } else {
                self.skipped.push(Skipped { path, why: Why::Special });
            }
        }
        Ok(())
    }

    /// Adds a link, if links are sent and its target has an acceptable form. That the target is sent too is checked later.
    fn add_link(&mut self, name: Name, path: PathBuf, pick: &Pick) -> Result<(), TransferError> {
        if !pick.links {
            self.skipped.push(Skipped { path, why: Why::Link });
            return Ok(());
        }
        let leads = fs::read_link(&path).map_err(|error| unreadable(&path, &error))?;
        let Some(target) = target(&leads) else {
            self.skipped.push(Skipped { path, why: Why::Astray(leads) });
            return Ok(());
        };
        let modified = Modified::default();
        let link =
            Entry { name, kind: Kind::Link, mode: 0, size: 0, modified, target: Some(target) };
        self.add(link, Some(path))
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
            if file_name.to_str().is_some_and(|n| n.starts_with(anabranch_transfer::name::RESERVED))
            {
                // Partial files of unfinished transfers are not sent.
                continue;
            }
            let text = file_name.to_str().map(|n| format!("{parent}/{n}")).unwrap_or_default();
            let metadata = item.metadata().map_err(|error| unreadable(&item.path(), &error))?;
            below.push((name(&text, &item.path())?, item.path(), metadata));
        }
        Ok(below)
    }
}

/// A link's target without redundant parts, such as `./` and a slash at the end.
fn target(leads: &Path) -> Option<Target> {
    let plain: PathBuf =
        leads.components().filter(|part| *part != std::path::Component::CurDir).collect();
    Target::new(plain.to_str()?).ok()
}

fn entry(name: Name, kind: Kind, metadata: &Metadata) -> Entry {
    let size = if kind == Kind::File { metadata.len() } else { 0 };
    let mode = (metadata.permissions().mode() & u32::from(MODE)) as u16;
    Entry { name, kind, mode, size, modified: modified(metadata), target: None }
}

fn refused(error: ManifestError) -> TransferError {
    TransferError::Local(Code::Unreadable, format!("cannot send: {error}"))
}

/// Modification time of a file; zero where the system does not tell.
pub(super) fn modified(metadata: &Metadata) -> Modified {
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
        return Err(refused("the name is empty or not UTF-8".to_owned()));
    }
    Name::new(text).map_err(|error| refused(error.to_string()))
}

pub(super) fn unreadable(path: &Path, error: &io::Error) -> TransferError {
    // The peer must not learn where the files are.
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
