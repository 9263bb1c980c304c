use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use tempfile::TempDir;

use super::{Atomic, Directory, Facts, write};

fn place() -> (TempDir, Directory) {
    let dir = tempfile::tempdir().unwrap();
    let directory = Directory::open(dir.path()).unwrap();
    (dir, directory)
}

fn names(path: &Path) -> Vec<String> {
    let items = fs::read_dir(path).unwrap();
    let mut names: Vec<String> =
        items.map(|item| item.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn names_are_of_things_directly_within() {
    let (_dir, directory) = place();
    for name in ["", ".", "..", "a/b", "/etc/passwd", "a/"] {
        let errors = [
            directory.read(name).map(drop),
            directory.edit(name).map(drop),
            directory.create(name, 0o600).map(drop),
            directory.below(name).map(drop),
            directory.make(name, 0o700),
            directory.remove(name),
            directory.look(name).map(drop),
            directory.rename("x", name),
            directory.rename_new(name, "x"),
        ];
        for error in errors {
            assert_eq!(error.unwrap_err().kind(), ErrorKind::InvalidInput, "{name}");
        }
    }
}

#[test]
fn links_are_not_followed() {
    let ((dir, directory), (elsewhere, _)) = (place(), place());
    fs::write(elsewhere.path().join("file"), "theirs").unwrap();
    symlink(elsewhere.path(), dir.path().join("directory")).unwrap();
    symlink(elsewhere.path().join("file"), dir.path().join("file")).unwrap();
    symlink(elsewhere.path().join("none"), dir.path().join("nowhere")).unwrap();
    assert!(directory.below("directory").is_err());
    assert!(directory.read("file").is_err() && directory.edit("file").is_err());
    for name in ["file", "nowhere"] {
        assert_eq!(directory.create(name, 0o600).unwrap_err().kind(), ErrorKind::AlreadyExists);
        let facts = directory.look(name).unwrap().unwrap();
        assert!(!facts.is_file && !facts.is_directory, "{facts:?}");
    }
    assert!(Directory::open(&dir.path().join("directory")).is_ok());
    assert!(Directory::open_itself(&dir.path().join("directory")).is_err());
    // A link is replaced, never written through.
    directory.create_anew("file", 0o600).unwrap().write_all(b"ours").unwrap();
    write(&dir.path().join("nowhere"), b"ours", 0o600).unwrap();
    assert_eq!(fs::read(elsewhere.path().join("file")).unwrap(), b"theirs");
    assert_eq!(names(elsewhere.path()), ["file"]);
}

#[test]
fn pipes_and_directories_are_no_files() {
    let (dir, directory) = place();
    let path = dir.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    directory.make("directory", 0o700).unwrap();
    for name in ["pipe", "directory"] {
        assert!(directory.read(name).is_err() && directory.edit(name).is_err(), "{name}");
    }
}

#[test]
fn a_directory_stays_the_same_when_its_path_leads_elsewhere() {
    let ((dir, _), (elsewhere, _)) = (place(), place());
    let path = dir.path().join("there");
    fs::create_dir(&path).unwrap();
    let held = Directory::open(&path).unwrap();
    fs::rename(&path, dir.path().join("moved")).unwrap();
    symlink(elsewhere.path(), &path).unwrap();
    held.create("a", 0o600).unwrap();
    assert_eq!(names(elsewhere.path()), [""; 0]);
    assert_eq!(names(&dir.path().join("moved")), ["a"]);
}

#[test]
fn a_file_gets_its_name_when_it_is_complete() {
    let (dir, _) = place();
    let path = dir.path().join("a");
    fs::write(&path, "old").unwrap();
    let whole = Atomic::begin(&path, 0o600).unwrap();
    whole.file().write_all(b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(names(dir.path()).len(), 2);
    whole.replace(true).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    // A file that is dropped, or refused because the name is taken, leaves nothing behind; the other file stays.
    drop(Atomic::begin(&path, 0o600).unwrap());
    let late = Atomic::begin(&path, 0o600).unwrap().keep(true);
    assert_eq!(late.unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(names(dir.path()), ["a"]);
    let second = Atomic::begin(&dir.path().join("b"), 0o600).unwrap();
    second.keep(true).unwrap();
    assert_eq!(names(dir.path()), ["a", "b"]);
    for nameless in ["/", "..", ""] {
        assert!(Atomic::begin(Path::new(nameless), 0o600).is_err(), "{nameless}");
    }
}

#[test]
fn a_planted_link_is_not_written_through() {
    let ((dir, directory), (elsewhere, _)) = (place(), place());
    fs::write(elsewhere.path().join("victim"), "theirs").unwrap();
    symlink(elsewhere.path().join("victim"), dir.path().join("a.new")).unwrap();
    let whole = Atomic::within(&directory, "a", "a.new", 0o600).unwrap();
    whole.file().write_all(b"ours").unwrap();
    whole.replace(false).unwrap();
    assert_eq!(fs::read(elsewhere.path().join("victim")).unwrap(), b"theirs");
    assert_eq!(fs::read(dir.path().join("a")).unwrap(), b"ours");
}

#[test]
fn facts_tell_files_apart() {
    let (dir, directory) = place();
    let mut file = directory.create("a", 0o640).unwrap();
    file.write_all(b"12345").unwrap();
    let facts = directory.look("a").unwrap().unwrap();
    assert_eq!(Facts::of(&file).unwrap(), facts);
    assert_eq!((facts.len, facts.names, facts.is_ours()), (5, 1, true));
    assert_eq!(facts.mode & !0o640, 0);
    fs::hard_link(dir.path().join("a"), dir.path().join("b")).unwrap();
    let (a, b) = (directory.look("a").unwrap().unwrap(), directory.look("b").unwrap().unwrap());
    assert_eq!((a.identity, a.names), (b.identity, 2));
    directory.create("c", 0o600).unwrap();
    assert_ne!(directory.look("c").unwrap().unwrap().identity, a.identity);
    assert_eq!(directory.look("d").unwrap(), None);
    let mut text = String::new();
    directory.read("b").unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "12345");
    directory.rename("c", "a").unwrap();
    directory.remove("b").unwrap();
    directory.remove("b").unwrap();
    directory.sync().unwrap();
    assert_eq!(names(dir.path()), ["a"]);
}

#[test]
fn a_lock_is_held_by_one_and_not_through_a_link() {
    let ((dir, directory), (elsewhere, _)) = (place(), place());
    let lock = directory.lock("lock").unwrap();
    assert_eq!(directory.lock("lock").unwrap_err().kind(), ErrorKind::WouldBlock);
    // A child process holds copies of all open descriptors until its program runs.
    let copy = lock.try_clone().unwrap();
    drop(lock);
    directory.lock("lock").unwrap();
    drop(copy);
    fs::write(elsewhere.path().join("victim"), "theirs").unwrap();
    symlink(elsewhere.path().join("victim"), dir.path().join("planted")).unwrap();
    assert!(directory.lock("planted").is_err());
}

#[test]
fn links_are_made_and_read_but_not_followed() {
    let (dir, directory) = place();
    directory.link("../secret", "l").unwrap();
    assert_eq!(directory.target("l").unwrap(), "../secret");
    let again = directory.link("other", "l").unwrap_err();
    assert_eq!(again.kind(), ErrorKind::AlreadyExists);
    assert!(directory.read("l").is_err() && directory.edit("l").is_err());
    fs::write(dir.path().join("f"), "").unwrap();
    assert!(directory.target("f").is_err() && directory.target("none").is_err());
    for name in ["../x", "a/b", "..", ""] {
        assert_eq!(directory.link("t", name).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(directory.target(name).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}
