//! Symbolic links: which are sent, and which are accepted.

use std::os::unix::fs::symlink;

use anabranch_transfer::Target;

use super::super::source::Why;
use super::*;

fn link(name: &str, target: &str) -> Entry {
    let target = Some(Target::new(target).unwrap());
    Entry {
        kind: Kind::Link,
        mode: 0,
        size: 0,
        modified: Modified::default(),
        target,
        ..file(name, 0)
    }
}

fn target(place: &Place, name: &str) -> String {
    fs::read_link(place.path(name)).unwrap().to_str().unwrap().to_owned()
}

/// Stores files of one byte, and then the links.
fn store(place: &Place, entries: &[Entry]) -> Result<(), TransferError> {
    let mut store = place.store(entries);
    for frame in fill(&mut store)? {
        match frame {
            Frame::Fetch { index, .. } => drop(bring(&mut store, index, b"x", 0)?),
            Frame::Check { index, offset } => {
                let sum = sum(b"x");
                hand(&mut store, Incoming::Frame(Frame::Sum { index, offset, sum }))?;
            }
            frame => panic!("{frame:?}"),
        }
    }
    assert!(store.is_done());
    store.finish()
}

#[test]
fn links_are_made_last_and_may_be_there_already() {
    let place = Place::new();
    let entries = [link("now", "d/e"), link("d/l", "../a"), file("a", 1), directory("d/e")];
    let mut first = place.store(&entries);
    assert_eq!(fill(&mut first).unwrap(), [Frame::Fetch { index: 2, offset: 0 }]);
    assert_eq!(place.names(), ["d", "d/e"]);
    for _ in 0..2 {
        store(&place, &entries).unwrap();
        assert_eq!(place.names(), ["a", "d", "d/e", "d/l", "now"]);
        assert_eq!((target(&place, "now"), target(&place, "d/l")), ("d/e".into(), "../a".into()));
    }
    assert_eq!(fs::read(place.path("d/l")).unwrap(), b"x");
}

#[test]
fn a_link_takes_no_place_unasked() {
    let mut place = Place::new();
    fs::write(place.path("mine"), b"mine").unwrap();
    fs::create_dir(place.path("full")).unwrap();
    symlink("mine", place.path("other")).unwrap();
    for name in ["mine", "full", "other"] {
        let error = store(&place, &[file("a", 1), link(name, "a")]).unwrap_err();
        assert_eq!(code(error), Code::Exists, "{name}");
    }
    assert_eq!(fs::read(place.path("mine")).unwrap(), b"mine");
    assert_eq!(target(&place, "other"), "mine");
    place.overwrite = true;
    store(&place, &[file("a", 1), link("mine", "a"), link("other", "a")]).unwrap();
    assert_eq!((target(&place, "mine"), target(&place, "other")), ("a".into(), "a".into()));
    let error = store(&place, &[file("a", 1), link("full", "a")]).unwrap_err();
    assert_eq!(code(error), Code::Exists);
    assert_eq!(place.names(), ["a", "full", "mine", "other"]);
}

#[test]
fn a_link_goes_through_no_link_to_its_place() {
    let (place, elsewhere) = (Place::new(), tempfile::tempdir().unwrap());
    symlink(elsewhere.path(), place.path("d")).unwrap();
    let error = store(&place, &[file("a", 1), link("d/l", "../a")]).unwrap_err();
    assert_eq!(code(error), Code::Exists);
    // A target that is reached through another link is refused as well.
    let error = store(&place, &[file("d/a", 1), link("l", "d/a")]).unwrap_err();
    assert_eq!(code(error), Code::Exists);
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    assert!(!place.path("l").is_symlink());
}

#[test]
fn a_file_that_is_a_link_of_an_earlier_offer_is_not_written_through() {
    let place = Place::new();
    store(&place, &[file("a", 1), link("l", "a")]).unwrap();
    assert_eq!(code(store(&place, &[file("l", 1)]).unwrap_err()), Code::Exists);
    let replacing = Place { overwrite: true, ..place };
    fs::write(replacing.path("a"), b"kept").unwrap();
    store(&replacing, &[file("l", 1)]).unwrap();
    assert!(!replacing.path("l").is_symlink());
    assert_eq!(fs::read(replacing.path("a")).unwrap(), b"kept");
}

fn picking(paths: &[&Path], exclude: &[&str], links: bool) -> Source {
    let files = paths.iter().map(|path| path.to_str().unwrap().to_owned()).collect();
    let exclude: Vec<String> = exclude.iter().map(|glob| (*glob).to_owned()).collect();
    Source::new(files, "stdin".to_owned(), Pick::new(&exclude, links).unwrap())
}

#[test]
fn links_are_offered_if_what_they_lead_to_is() {
    let place = Place::new();
    fs::create_dir_all(place.path("d/e")).unwrap();
    fs::write(place.path("d/e/a"), b"a").unwrap();
    fs::write(place.path("d/b.tmp"), b"b").unwrap();
    let links = [
        ("d/absolute", "/etc/passwd"),
        ("d/dangling", "nowhere"),
        ("d/dir", "./e/"),
        ("d/e/file", "../e/a"),
        ("d/left", "b.tmp"),
        ("d/out", "../other"),
        ("d/over", "dir/file"),
        ("d/round", "e/../e/a"),
        ("d/twice", "left"),
    ];
    for (link, target) in links {
        symlink(target, place.path(link)).unwrap();
    }
    let offer = picking(&[&place.path("d")], &["*.tmp"], true).collect().unwrap();
    let sent: Vec<(String, Option<Target>)> =
        offer.manifest.entries().map(|entry| (entry.name.to_string(), entry.target)).collect();
    let target = |text: &str| Some(Target::new(text).unwrap());
    let expected = [
        ("d", None),
        ("d/dir", target("e")),
        ("d/e", None),
        ("d/e/a", None),
        ("d/e/file", target("../e/a")),
        ("d/over", target("dir/file")),
    ];
    assert_eq!(sent, expected.map(|(name, target)| (name.to_owned(), target)));
    let mut skipped: Vec<_> = offer
        .skipped
        .iter()
        .map(|skipped| {
            let name = skipped.path.file_name().unwrap().to_str().unwrap();
            let Why::Astray(leads) = &skipped.why else { panic!("{skipped:?}") };
            (name, leads.to_str().unwrap())
        })
        .collect();
    skipped.sort_unstable();
    let astray = ["absolute", "dangling", "left", "out", "round", "twice"];
    assert_eq!(skipped.iter().map(|(name, _)| *name).collect::<Vec<_>>(), astray);
    // A link cannot be asked for without its target.
    let name = |text: &str| Name::new(text).unwrap();
    assert!(offer.clone().wanted(&[name("d/e")]).is_ok());
    let error = offer.wanted(&[name("d/over")]).unwrap_err();
    assert!(error.to_string().contains("dir/file"), "{error}");
    assert_eq!(code(error), Code::NotFound);
    let without = picking(&[&place.path("d")], &["*.tmp"], false).collect().unwrap();
    assert_eq!(without.skipped.len(), links.len());
    assert!(without.skipped.iter().all(|skipped| skipped.why == Why::Link));
}

#[test]
fn what_is_excluded_is_not_even_read() {
    let place = Place::new();
    for name in ["d/keep.o", "d/a.o", "d/cache/x", "d/e/cache", "d/e/b"] {
        fs::create_dir_all(place.path(name).parent().unwrap()).unwrap();
        fs::write(place.path(name), name).unwrap();
    }
    symlink("nowhere", place.path("d/link")).unwrap();
    // Excluded names need not be names that can be sent.
    fs::write(place.path("d/cache/a\nb"), "").unwrap();
    let exclude = ["*.o", "!keep.o", "cache/", "/d/link"];
    let offer = picking(&[&place.path("d")], &exclude, false).collect().unwrap();
    let names: Vec<String> = offer.manifest.entries().map(|e| e.name.to_string()).collect();
    assert_eq!(names, ["d", "d/e", "d/e/b", "d/e/cache", "d/keep.o"]);
    assert_eq!(offer.skipped, []);
    let nothing = picking(&[&place.path("d")], &["d"], false).collect().unwrap();
    assert!(nothing.manifest.is_empty());
}
