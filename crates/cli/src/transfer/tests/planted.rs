//! Files and links that another user of a shared directory plants where the receiver writes.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

/// Names of the receiver's own files for an entry, with the ending left out.
fn own(entry: &Entry) -> String {
    let place = Place::new();
    interrupted(&place, entry, &[1; 5000], 3000);
    let part = place.own_file("part");
    part.file_stem().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn planted_links_are_not_written_through() {
    let entry = file("film", 5000);
    let stem = own(&entry);
    for ending in ["part", "state", "new"] {
        let (place, elsewhere) = (Place::new(), tempfile::tempdir().unwrap());
        let victim = elsewhere.path().join("victim");
        fs::write(&victim, "untouched").unwrap();
        symlink(&victim, place.path(&format!("{stem}.{ending}"))).unwrap();
        interrupted(&place, &entry, &[1; 5000], 3000);
        assert_eq!(fs::read(&victim).unwrap(), b"untouched", "{ending}");
        // Bytes received in spite of the link are resumed.
        let mut store = place.store(std::slice::from_ref(&entry));
        assert_eq!(fill(&mut store).unwrap(), [check(3000), fetch(3000)]);
        assert_eq!(tell(&mut store, 3000, &[1; 3000]).unwrap(), []);
        bring(&mut store, 0, &[1; 5000], 3000).unwrap();
        assert_eq!(
            (place.names(), fs::read(&victim).unwrap()),
            (vec!["film".to_owned()], b"untouched".to_vec())
        );
    }
}

#[test]
fn a_planted_pipe_stops_nobody() {
    let entry = file("film", 5000);
    let stem = own(&entry);
    for name in [format!("{stem}.state"), format!("{stem}.part")] {
        let place = Place::new();
        let made = std::process::Command::new("mkfifo").arg(place.path(&name)).status().unwrap();
        assert!(made.success());
        let mut store = place.store(std::slice::from_ref(&entry));
        assert_eq!(fill(&mut store).unwrap(), [fetch(0)]);
        bring(&mut store, 0, &[1; 5000], 0).unwrap();
        assert_eq!(place.names(), ["film"]);
    }
}

#[test]
fn a_link_in_the_place_of_a_file_is_replaced_and_not_followed() {
    let (mut place, elsewhere) = (Place::new(), tempfile::tempdir().unwrap());
    let victim = elsewhere.path().join("victim");
    fs::write(&victim, "same").unwrap();
    symlink(&victim, place.path("a")).unwrap();
    place.overwrite = true;
    let mut store = place.store(&[file("a", 4)]);
    // The file is not even compared with what the link leads to.
    assert_eq!(fill(&mut store).unwrap(), [fetch(0)]);
    bring(&mut store, 0, b"sent", 0).unwrap();
    assert!(!place.path("a").is_symlink());
    assert_eq!(
        (fs::read(place.path("a")).unwrap(), fs::read(&victim).unwrap()),
        (b"sent".to_vec(), b"same".to_vec())
    );
}

#[test]
fn a_directory_that_becomes_a_link_takes_nothing_along() {
    let (place, elsewhere) = (Place::new(), tempfile::tempdir().unwrap());
    fs::create_dir(place.path("d")).unwrap();
    let mut store = place.store(&[file("d/a", 4)]);
    fill(&mut store).unwrap();
    fs::remove_dir(place.path("d")).unwrap();
    symlink(elsewhere.path(), place.path("d")).unwrap();
    // Whether the link is noticed or not, the file does not get there.
    let _ = bring(&mut store, 0, b"sent", 0);
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn a_private_file_stays_private_when_it_is_replaced() {
    let mut place = Place::new();
    fs::write(place.path("a"), "mine").unwrap();
    fs::set_permissions(place.path("a"), fs::Permissions::from_mode(0o600)).unwrap();
    place.overwrite = true;
    let mut store = place.store(&[file("a", 5)]);
    fill(&mut store).unwrap();
    bring(&mut store, 0, b"other", 0).unwrap();
    let mode = fs::metadata(place.path("a")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn senders_do_not_get_at_each_others_partial_files() {
    let place = Place::new();
    let entry = file("film", 5000);
    let of = |sender: u8| {
        let mut manifest = Manifest::default();
        manifest.push(&entry).unwrap();
        let root = Root::open(place.dir.path()).unwrap().of_sender(PublicKey([sender; 32]));
        Store::new(Out::Directory(root), Grant::default(), manifest, Arc::default()).unwrap()
    };
    let mut first = of(1);
    fill(&mut first).unwrap();
    hand(&mut first, Incoming::Frame(Frame::File { index: 0, offset: 0 })).unwrap();
    hand(&mut first, data(vec![1; 3000])).unwrap();
    first.suspend();
    drop(first);
    assert_eq!(fill(&mut of(2)).unwrap(), [fetch(0)]);
    assert_eq!(fill(&mut of(1)).unwrap(), [check(3000), fetch(3000)]);
}
