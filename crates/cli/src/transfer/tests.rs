//! Tests of both sides' files without a network: frames are passed from one to the other directly.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use anabranch_transfer::frame::MAX_FETCHES;
use anabranch_transfer::{Code, Entry, Frame, Kind, Manifest, Modified, Name};
use ring::digest::{SHA256, digest};
use tempfile::TempDir;

use anabranch::PublicKey;

use super::channel::Incoming;
use super::consent::Grant;
use super::error::TransferError;
use super::hash::Sum;
use super::pick::Pick;
use super::progress::Progress;
use super::reading::{Outgoing, Reading, Request};
use super::source::Source;
use super::store::{Out, Store};
use super::target::Root;

fn sum(bytes: &[u8]) -> Sum {
    digest(&SHA256, bytes).as_ref().try_into().unwrap()
}

fn file(name: &str, size: u64) -> Entry {
    let modified = Modified { seconds: 1_000_000_000, nanos: 500_000_000 };
    let name = Name::new(name).unwrap();
    Entry { name, kind: Kind::File, mode: 0o644, size, modified, target: None }
}

fn directory(name: &str) -> Entry {
    Entry { kind: Kind::Directory, size: 0, ..file(name, 0) }
}

/// A directory to receive into.
struct Place {
    dir: TempDir,
    overwrite: bool,
}

impl Place {
    fn new() -> Self {
        Place { dir: tempfile::tempdir().unwrap(), overwrite: false }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn store(&self, entries: &[Entry]) -> Store {
        let mut manifest = Manifest::default();
        for entry in entries {
            manifest.push(entry).unwrap();
        }
        let out = Out::Directory(Root::open(self.dir.path()).unwrap());
        let grant = Grant { overwrite: self.overwrite, executable: false };
        Store::new(out, grant, manifest, Arc::<Progress>::default()).unwrap()
    }

    /// Names of everything below, the receiver's own files included.
    fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut waiting = vec![self.dir.path().to_path_buf()];
        while let Some(path) = waiting.pop() {
            for item in fs::read_dir(&path).unwrap() {
                let path = item.unwrap().path();
                let below = path.strip_prefix(self.dir.path()).unwrap();
                names.push(below.to_str().unwrap().to_owned());
                if path.is_dir() && !path.is_symlink() {
                    waiting.push(path);
                }
            }
        }
        names.sort();
        names
    }

    fn own_file(&self, ending: &str) -> std::path::PathBuf {
        let names = self.names();
        let name = names.iter().find(|name| name.ends_with(ending));
        self.path(name.unwrap_or_else(|| panic!("no {ending} in {names:?}")))
    }
}

fn fill(store: &mut Store) -> Result<Vec<Frame>, TransferError> {
    let mut said = Vec::new();
    store.fill(&mut |frame| said.push(frame)).map(|()| said)
}

fn data(bytes: Vec<u8>) -> Incoming {
    Incoming::Data(bytes.into())
}

fn hand(store: &mut Store, incoming: Incoming) -> Result<Vec<Frame>, TransferError> {
    let mut said = Vec::new();
    store.handle(incoming, &mut |frame| said.push(frame)).map(|()| said)
}

/// Hands over the bytes of a file from `offset` on, and the end of the file.
fn bring(
    store: &mut Store,
    index: u32,
    bytes: &[u8],
    offset: usize,
) -> Result<Vec<Frame>, TransferError> {
    hand(store, Incoming::Frame(Frame::File { index, offset: offset as u64 }))?;
    for chunk in bytes[offset..].chunks(1000) {
        hand(store, data(chunk.to_vec()))?;
    }
    let size = bytes.len() as u64;
    hand(store, Incoming::Frame(Frame::FileEnd { index, size, sum: sum(bytes) }))
}

fn code(error: TransferError) -> Code {
    match error {
        TransferError::Local(code, _) | TransferError::File { code, .. } => code,
        TransferError::Protocol(_) => Code::Protocol,
        other => panic!("{other}"),
    }
}

/// Hands over the peer's checksum of the first bytes of its file; returns the answers.
fn tell(store: &mut Store, offset: u64, bytes: &[u8]) -> Result<Vec<Frame>, TransferError> {
    hand(store, Incoming::Frame(Frame::Sum { index: 0, offset, sum: sum(bytes) }))
}

fn check(offset: u64) -> Frame {
    Frame::Check { index: 0, offset }
}

fn fetch(offset: u64) -> Frame {
    Frame::Fetch { index: 0, offset }
}

/// A file of which `arrived` bytes came before the connection broke.
fn interrupted(place: &Place, entry: &Entry, bytes: &[u8], arrived: usize) {
    let mut store = place.store(std::slice::from_ref(entry));
    fill(&mut store).unwrap();
    hand(&mut store, Incoming::Frame(Frame::File { index: 0, offset: 0 })).unwrap();
    hand(&mut store, data(bytes[..arrived].to_vec())).unwrap();
    store.suspend();
}

mod links;
mod planted;
mod sending;

#[test]
fn files_get_their_names_when_they_are_complete() {
    let place = Place::new();
    let mut store = place.store(&[directory("d/empty"), file("d/a", 2500), file("b", 0)]);
    let whole = |index| Frame::Fetch { index, offset: 0 };
    assert_eq!(fill(&mut store).unwrap(), [whole(1), whole(2)]);
    let bytes = vec![7; 2500];
    hand(&mut store, Incoming::Frame(Frame::File { index: 1, offset: 0 })).unwrap();
    hand(&mut store, data(bytes.clone())).unwrap();
    assert!(!place.path("d/a").exists());
    let end = Frame::FileEnd { index: 1, size: 2500, sum: sum(&bytes) };
    assert_eq!(hand(&mut store, Incoming::Frame(end)).unwrap(), [Frame::Stored { index: 1 }]);
    assert!(!store.is_done());
    bring(&mut store, 2, &[], 0).unwrap();
    assert!(store.is_done());
    assert_eq!(fs::read(place.path("d/a")).unwrap(), bytes);
    assert_eq!(place.names(), ["b", "d", "d/a", "d/empty"]);
    let time = fs::metadata(place.path("d/a")).unwrap().modified().unwrap();
    let since = time.duration_since(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(since.as_millis(), 1_000_000_000_500);
}

#[test]
fn a_lost_transfer_goes_on_where_it_stopped() {
    let place = Place::new();
    let bytes: Vec<u8> = (0..5000_u32).map(|i| (i % 251) as u8).collect();
    let entry = file("film", 5000);
    interrupted(&place, &entry, &bytes, 3000);
    let mut store = place.store(std::slice::from_ref(&entry));
    assert_eq!(fill(&mut store).unwrap(), [check(3000), fetch(3000)]);
    assert_eq!(tell(&mut store, 3000, &bytes[..3000]).unwrap(), []);
    // A note cut short, as by a kill during the write.
    fs::write(place.own_file("state").with_extension("new"), "{").unwrap();
    bring(&mut store, 0, &bytes, 3000).unwrap();
    assert_eq!(fs::read(place.path("film")).unwrap(), bytes);
    assert_eq!(place.names(), ["film"]);
}

#[test]
fn bytes_after_the_last_note_do_not_count() {
    use std::io::Write;
    let place = Place::new();
    let entry = file("film", 5000);
    interrupted(&place, &entry, &[1; 5000], 3000);
    let part = place.own_file("part");
    File::options().append(true).open(&part).unwrap().write_all(b"torn").unwrap();
    let mut store = place.store(&[entry]);
    assert_eq!(fill(&mut store).unwrap(), [check(3000), fetch(3000)]);
    assert_eq!(tell(&mut store, 3000, &[1; 3000]).unwrap(), []);
    assert_eq!(fs::metadata(part).unwrap().len(), 3000);
}

#[test]
fn another_version_of_the_file_begins_anew() {
    let place = Place::new();
    interrupted(&place, &file("film", 5000), &[1; 5000], 3000);
    let newer = Entry { modified: Modified::default(), ..file("film", 5000) };
    let mut store = place.store(&[newer]);
    assert_eq!(fill(&mut store).unwrap(), [fetch(0)]);
    bring(&mut store, 0, &[2; 5000], 0).unwrap();
    assert_eq!(fs::read(place.path("film")).unwrap(), [2; 5000]);
    // The checksum tells a file of the same name, size and time with other contents.
    let entry = file("film2", 5000);
    interrupted(&place, &entry, &[1; 5000], 3000);
    let mut store = place.store(&[entry]);
    assert_eq!(fill(&mut store).unwrap(), [check(3000), fetch(3000)]);
    assert_eq!(tell(&mut store, 3000, &[3; 3000]).unwrap(), [fetch(0)]);
    // The rest had been requested before the checksum was known; it is dropped.
    assert_eq!(bring(&mut store, 0, &[3; 5000], 3000).unwrap(), []);
    assert!(!store.is_done());
    bring(&mut store, 0, &[3; 5000], 0).unwrap();
    assert_eq!(fs::read(place.path("film2")).unwrap(), [3; 5000]);
    assert_eq!(place.names(), ["film", "film2"]);
}

/// The limit of unanswered requests is never exceeded, whatever there is of each file.
#[test]
fn many_partial_files_are_asked_for_within_the_limit() {
    let mut place = Place::new();
    let entries: Vec<Entry> = (0..150).map(|nr| file(&format!("f{nr:03}"), 500)).collect();
    for entry in entries.iter().step_by(2) {
        interrupted(&place, entry, &[1; 500], 300);
    }
    for entry in entries.iter().step_by(3) {
        fs::write(place.path(entry.name.as_str()), [9; 500]).unwrap();
    }
    place.overwrite = true;
    let mut store = place.store(&entries);
    let mut unanswered = VecDeque::from(fill(&mut store).unwrap());
    while let Some(request) = unanswered.pop_front() {
        assert!(unanswered.len() < MAX_FETCHES);
        let said = match request {
            Frame::Check { index, offset } => {
                let sum = sum(&[1; 500][..offset as usize]);
                hand(&mut store, Incoming::Frame(Frame::Sum { index, offset, sum })).unwrap()
            }
            Frame::Fetch { index, offset } => {
                bring(&mut store, index, &[1; 500], offset as usize).unwrap()
            }
            frame => panic!("{frame:?}"),
        };
        unanswered.extend(said.into_iter().filter(|frame| !matches!(frame, Frame::Stored { .. })));
        unanswered.extend(fill(&mut store).unwrap());
    }
    assert!(store.is_done());
    for entry in &entries {
        assert_eq!(fs::read(place.path(entry.name.as_str())).unwrap(), [1; 500], "{entry:?}");
    }
}

#[test]
fn a_partial_file_that_somebody_changed_is_refused() {
    let place = Place::new();
    let entry = file("film", 5000);
    for damage in [vec![9; 3000], vec![1; 2999]] {
        interrupted(&place, &entry, &[1; 5000], 3000);
        fs::write(place.own_file("part"), damage).unwrap();
        let mut store = place.store(std::slice::from_ref(&entry));
        fill(&mut store).unwrap();
        let error = tell(&mut store, 3000, &[1; 3000]).unwrap_err();
        assert!(error.to_string().contains(".part"), "{error}");
        assert_eq!(code(error), Code::TargetChanged);
        fs::remove_file(place.own_file("part")).unwrap();
    }
    assert!(fill(&mut place.store(&[entry])).is_ok());
}

#[test]
fn a_file_that_is_there_is_compared() {
    let mut place = Place::new();
    fs::write(place.path("a"), b"same").unwrap();
    let mut store = place.store(&[file("a", 4)]);
    assert_eq!(fill(&mut store).unwrap(), [check(4)]);
    assert_eq!(tell(&mut store, 4, b"same").unwrap(), [Frame::Stored { index: 0 }]);
    assert!(store.is_done());
    // A file that differs is refused, or replaced if that was asked for.
    let mut store = place.store(&[file("a", 4)]);
    fill(&mut store).unwrap();
    assert_eq!(code(tell(&mut store, 4, b"else").unwrap_err()), Code::Exists);
    assert_eq!(code(fill(&mut place.store(&[file("a", 5)])).unwrap_err()), Code::Exists);
    place.overwrite = true;
    let mut store = place.store(&[file("a", 4)]);
    assert_eq!(fill(&mut store).unwrap(), [check(4)]);
    assert_eq!(tell(&mut store, 4, b"else").unwrap(), [fetch(0)]);
    bring(&mut store, 0, b"else", 0).unwrap();
    assert_eq!(fs::read(place.path("a")).unwrap(), b"else");
    let mut store = place.store(&[file("a", 6)]);
    fill(&mut store).unwrap();
    bring(&mut store, 0, b"longer", 0).unwrap();
    assert_eq!(place.names(), ["a"]);
}

#[test]
fn a_file_that_appears_meanwhile_is_left_alone() {
    let mut place = Place::new();
    let mut store = place.store(&[file("a", 4)]);
    fill(&mut store).unwrap();
    fs::write(place.path("a"), b"mine").unwrap();
    assert_eq!(code(bring(&mut store, 0, b"sent", 0).unwrap_err()), Code::TargetChanged);
    assert_eq!(fs::read(place.path("a")).unwrap(), b"mine");
    // Permission to replace one version does not cover another version.
    place.overwrite = true;
    let mut store = place.store(&[file("a", 5)]);
    fill(&mut store).unwrap();
    fs::write(place.path("a"), b"newer").unwrap();
    assert_eq!(code(bring(&mut store, 0, b"sent!", 0).unwrap_err()), Code::TargetChanged);
    assert_eq!(fs::read(place.path("a")).unwrap(), b"newer");
}

#[test]
fn wrong_bytes_get_no_name() {
    for (wrong, expected) in [
        (Frame::FileEnd { index: 0, size: 4, sum: [1; 32] }, Code::Checksum),
        (Frame::FileEnd { index: 0, size: 5, sum: sum(b"sent") }, Code::Protocol),
        (Frame::FileEnd { index: 1, size: 4, sum: sum(b"sent") }, Code::Protocol),
        (Frame::FileEnd { index: 9, size: 4, sum: sum(b"sent") }, Code::Protocol),
        (Frame::File { index: 0, offset: 0 }, Code::Protocol),
        (Frame::Sum { index: 0, offset: 0, sum: sum(&[]) }, Code::Protocol),
        (Frame::Sum { index: 1, offset: 0, sum: sum(&[]) }, Code::Protocol),
        (Frame::Done, Code::Protocol),
    ] {
        let place = Place::new();
        let mut store = place.store(&[file("a", 4), file("b", 4)]);
        fill(&mut store).unwrap();
        hand(&mut store, Incoming::Frame(Frame::File { index: 0, offset: 0 })).unwrap();
        hand(&mut store, data(b"sent".to_vec())).unwrap();
        let error = hand(&mut store, Incoming::Frame(wrong.clone())).unwrap_err();
        assert_eq!(code(error), expected, "{wrong:?}");
        assert!(!place.path("a").exists() && !place.path("b").exists());
    }
    let place = Place::new();
    let mut store = place.store(&[file("a", 4)]);
    assert_eq!(code(hand(&mut store, data(vec![1])).unwrap_err()), Code::Protocol);
    fill(&mut store).unwrap();
    hand(&mut store, Incoming::Frame(Frame::File { index: 0, offset: 0 })).unwrap();
    assert_eq!(code(hand(&mut store, data(vec![1; 5])).unwrap_err()), Code::Protocol);
    let fewer = Frame::FileEnd { index: 0, size: 4, sum: sum(&[]) };
    assert_eq!(code(hand(&mut store, Incoming::Frame(fewer)).unwrap_err()), Code::Protocol);
}

#[test]
fn links_are_not_followed() {
    use std::os::unix::fs::symlink;
    let (place, elsewhere) = (Place::new(), tempfile::tempdir().unwrap());
    symlink(elsewhere.path(), place.path("d")).unwrap();
    fs::write(place.path("f"), b"a file").unwrap();
    for entry in [file("d/a", 1), directory("d"), directory("d/e"), file("f/a", 1)] {
        let error = fill(&mut place.store(&[entry])).unwrap_err();
        assert_eq!(code(error), Code::Exists);
    }
    symlink(elsewhere.path().join("x"), place.path("l")).unwrap();
    assert_eq!(code(fill(&mut place.store(&[file("l", 1)])).unwrap_err()), Code::Exists);
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn a_process_killed_between_two_names_did_no_harm() {
    let place = Place::new();
    let entry = file("a", 4);
    interrupted(&place, &entry, b"sent", 4);
    let part = place.own_file("part");
    fs::hard_link(&part, place.path("a")).unwrap();
    let mut store = place.store(std::slice::from_ref(&entry));
    assert_eq!(fill(&mut store).unwrap(), [check(4)]);
    assert_eq!(tell(&mut store, 4, b"sent").unwrap(), [Frame::Stored { index: 0 }]);
    assert_eq!(place.names(), ["a"]);
    // Replacing the file must not go through the leftover that shares its bytes.
    interrupted(&place, &file("b", 4), b"sent", 2);
    fs::hard_link(place.own_file("part"), place.path("c")).unwrap();
    let mut store = place.store(&[file("b", 4)]);
    assert_eq!(fill(&mut store).unwrap(), [fetch(0)]);
    bring(&mut store, 0, b"more", 0).unwrap();
    assert_eq!(fs::read(place.path("c")).unwrap(), b"se");
}

#[test]
fn two_receivers_do_not_share_a_partial_file() {
    let place = Place::new();
    let entry = file("a", 4);
    let mut first = place.store(std::slice::from_ref(&entry));
    fill(&mut first).unwrap();
    hand(&mut first, Incoming::Frame(Frame::File { index: 0, offset: 0 })).unwrap();
    hand(&mut first, data(b"se".to_vec())).unwrap();
    let mut second = place.store(&[entry]);
    fill(&mut second).unwrap();
    let error = hand(&mut second, Incoming::Frame(Frame::File { index: 0, offset: 0 }));
    assert_eq!(code(error.unwrap_err()), Code::Refused);
    hand(&mut first, data(b"nt".to_vec())).unwrap();
    let end = Frame::FileEnd { index: 0, size: 4, sum: sum(b"sent") };
    hand(&mut first, Incoming::Frame(end)).unwrap();
    assert_eq!(place.names(), ["a"]);
}
