use super::frame::{MAX_PAYLOAD, MAX_TEXT};
use super::manifest::{MAX_COST, MAX_ENTRIES};
use super::*;
use anabranch::SecretKey;
use proptest::prelude::*;

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn entry(text: &str, kind: Kind, size: u64) -> Entry {
    Entry { name: name(text), kind, mode: 0o644, size, modified: Modified::default(), target: None }
}

fn file(text: &str, size: u64) -> Entry {
    entry(text, Kind::File, size)
}

#[test]
fn names_stay_in_their_directory() {
    for good in ["a", "a/b", "a b/ü.txt", "...", ".hidden", "a/.b/c..d", "-", "C:\\x"] {
        assert_eq!(name(good).as_str(), good);
    }
    let deep = ["d"; 65].join("/");
    let long = "x".repeat(256);
    for (bad, error) in [
        ("", NameError::Empty),
        ("/etc/passwd", NameError::Empty),
        ("a/", NameError::Empty),
        ("a//b", NameError::Empty),
        (".", NameError::Dots),
        ("..", NameError::Dots),
        ("a/../b", NameError::Dots),
        ("./a", NameError::Dots),
        ("a\nb", NameError::Control),
        ("a\0", NameError::Control),
        ("\u{1b}[2J", NameError::Control),
        ("\u{85}", NameError::Control),
        (".anabranch-x.part", NameError::Reserved),
        ("a/.anabranch-", NameError::Reserved),
        (long.as_str(), NameError::TooLong),
        (deep.as_str(), NameError::TooLong),
    ] {
        assert_eq!(Name::new(bad), Err(error), "{bad}");
    }
    assert_eq!(Name::new(["ab"; 1400].join("/")), Err(NameError::TooLong));
    assert!(name("a/b").is_within("a") && name("a").is_within("a"));
    assert!(!name("ab").is_within("a") && !name("a").is_within("a/b"));
    assert_eq!(name("a/b/c").ancestors().collect::<Vec<_>>(), ["a", "a/b"]);
}

fn manifest(entries: &[Entry]) -> Manifest {
    let mut manifest = Manifest::default();
    entries.iter().for_each(|entry| manifest.push(entry).unwrap());
    manifest
}

#[test]
fn an_offer_is_consistent() {
    let good = [
        entry("d", Kind::Directory, 0),
        file("d/a", 5),
        file("e/f", 7),
        file("d-b", 1),
        file("d!", 0),
    ];
    let offer = manifest(&good);
    assert_eq!(offer.check(), Ok(()));
    assert_eq!((offer.len(), offer.files(), offer.total()), (5, 4, 13));
    assert_eq!(offer.entries().collect::<Vec<_>>(), good);
    assert_eq!((offer.entry(2), offer.entry(5)), (Some(good[2].clone()), None));
    let clash = |text: &str| ManifestError::FileAndDirectory(name(text));
    for (bad, error) in [
        (file("d/a", 5), ManifestError::Twice(name("d/a"))),
        (entry("d", Kind::Directory, 0), ManifestError::Twice(name("d"))),
        (file("d/a/x", 5), clash("d/a")),
        (file("d/a/x/y", 5), clash("d/a")),
        (file("e", 1), clash("e")),
        (entry("e", Kind::Stream, 0), clash("e")),
    ] {
        let mut offer = offer.clone();
        offer.push(&bad).unwrap();
        assert_eq!(offer.check(), Err(error));
    }
    let mut offer = offer.clone();
    let identity = offer.identity();
    assert_eq!(offer.push(&file("f", u64::MAX)), Err(ManifestError::TooLarge));
    assert_eq!((offer.len(), offer.identity()), (5, identity));
    offer.push(&entry("e", Kind::Directory, 0)).unwrap();
    assert_eq!(offer.check(), Ok(()));
    assert_ne!(offer.identity(), identity);
}

fn link(text: &str, target: &str) -> Entry {
    let target = Some(Target::new(target).unwrap());
    Entry { mode: 0, target, ..entry(text, Kind::Link, 0) }
}

#[test]
fn links_lead_to_what_is_on_offer() {
    let base = [
        file("d/a", 5),
        file("d/e/b", 7),
        link("d/l", "a"),
        link("d/e/up", "../a"),
        link("now", "d/e"),
        link("over", "now/b"),
        link("further", "over"),
        link("back", "d/e/up"),
        // A directory may be in the offer without an entry of its own.
        link("whole", "d"),
    ];
    let offer = manifest(&base);
    assert_eq!((offer.check(), offer.astray()), (Ok(()), Ok(vec![])));
    assert_eq!((offer.files(), offer.total()), (2, 12));
    assert_eq!(offer.entries().collect::<Vec<_>>(), base);
    for (text, target) in [
        ("x", "nowhere"),
        ("x", "x"),
        ("x", "../d/a"),
        ("d/x", "../../d/a"),
        ("x", "now/a"),
        ("x", "d/a/b"),
        ("x", "d/l/b"),
        ("x", "back/a"),
        ("x", "d/aa"),
    ] {
        let mut offer = offer.clone();
        offer.push(&link(text, target)).unwrap();
        assert_eq!(offer.check(), Err(ManifestError::Astray(name(text))), "{text} {target}");
        assert_eq!(offer.astray(), Ok(vec![base.len()]));
    }
    for (bad, clash) in [(file("d/l/x", 1), "d/l"), (link("now/x", "../d"), "now")] {
        let mut offer = offer.clone();
        offer.push(&bad).unwrap();
        assert_eq!(offer.check(), Err(ManifestError::FileAndDirectory(name(clash))));
    }
    let identity = |target| manifest(&[file("a", 1), file("b", 1), link("l", target)]).identity();
    assert_ne!(identity("a"), identity("b"));
}

#[test]
fn links_go_over_few_others_and_cost_little() {
    let chain = |over: u32| {
        let mut entries = vec![file("0", 1)];
        entries.extend((1..=over + 1).map(|n| link(&n.to_string(), &(n - 1).to_string())));
        manifest(&entries).check()
    };
    assert_eq!((chain(8), chain(9)), (Ok(()), Err(ManifestError::Astray(name("10")))));
    let circle = manifest(&[link("a", "b"), link("b", "a")]);
    assert_eq!(circle.astray(), Ok(vec![0, 1]));
    // Each leads through 60 directories.
    let deep = vec!["d"; 60].join("/");
    let mut entries = vec![file(&format!("{deep}/0"), 1)];
    entries.extend((1..9).map(|n| link(&format!("{deep}/{n}"), &(n - 1).to_string())));
    entries.extend((0..70_000).map(|n| link(&format!("l{n}"), &format!("{deep}/8"))));
    assert_eq!(manifest(&entries).check(), Err(ManifestError::TooMany));
}

#[test]
fn links_are_read_with_care() {
    let read = |mode: u16, size: u64, seconds: i64, text: &str| {
        let mut payload = vec![3];
        payload.extend(mode.to_be_bytes());
        payload.extend(size.to_be_bytes());
        payload.extend(seconds.to_be_bytes());
        payload.extend([0; 4]);
        payload.extend(text.as_bytes());
        Frame::decode(3, &payload)
    };
    assert_eq!(read(0, 4, 0, "d/l../a"), Ok(Frame::Entry(link("d/l", "../a"))));
    for (frame, error) in [
        (read(0o777, 4, 0, "d/l../a"), FrameError::Value),
        (read(0, 4, 1, "d/l../a"), FrameError::Value),
        (read(0, 8, 0, "d/l../a"), FrameError::Length),
        (read(0, u64::MAX, 0, "d/l../a"), FrameError::Length),
        (read(0, 7, 0, "d/l../a"), FrameError::Name(NameError::Empty)),
        (read(0, 0, 0, "d/l"), FrameError::Target(NameError::Empty)),
        (read(0, 1, 0, "lü"), FrameError::Length),
        (read(0, 4, 0, "l/etc"), FrameError::Target(NameError::Empty)),
        (read(0, 2, 0, "l.."), FrameError::Target(NameError::Dots)),
        (read(0, 6, 0, "la/../b"), FrameError::Target(NameError::Dots)),
    ] {
        assert_eq!(frame, Err(error));
    }
    let (longest, target) = (vec!["x".repeat(255); 16].join("/"), "a/".repeat(1999) + "ab");
    let entry = link(&longest, &target);
    assert_eq!((longest.len(), target.len()), (4095, 4000));
    let mut bytes = Vec::new();
    Frame::Entry(entry.clone()).encode(&mut bytes);
    let Ok(Header::Frame(3, len)) = Header::decode(*bytes.first_chunk().unwrap()) else { panic!() };
    assert_eq!(Frame::decode(3, &bytes[5..]), Ok(Frame::Entry(entry)));
    assert!(len > 8000 && len <= MAX_PAYLOAD);
}

#[test]
fn an_offer_is_bounded() {
    let long = vec!["x".repeat(255); 15].join("/") + "/";
    for part in ["", "a-directory-of-some-length/", long.as_str()] {
        let mut manifest = Manifest::default();
        let full = |number: &u32| manifest.push(&file(&format!("{part}{number}"), 0)).is_err();
        let count = (0..u32::MAX).find(full).unwrap() as usize;
        assert_eq!(manifest.len(), count);
        assert!(count <= MAX_ENTRIES && manifest.cost() <= MAX_COST, "{count}");
        assert!(manifest.cost() > MAX_COST - 5000 || count == MAX_ENTRIES, "{count}");
    }
}

#[test]
fn prefaces_tell_strangers_and_versions_apart() {
    for role in [Role::Offers, Role::Takes] {
        let preface = Preface { role };
        assert_eq!(Preface::decode(preface.encode()), Ok(preface));
        assert_eq!(role.opposite().opposite(), role);
    }
    assert_eq!(Preface::decode(*b"GET / HT"), Err(FrameError::Magic));
    let future = Preface::decode(*b"abtf\x03new").unwrap_err();
    assert_eq!(future, FrameError::Version(3));
    assert!(future.to_string().contains("update this side"), "{future}");
    assert_eq!(Preface::decode(*b"abtf\0\x02\0\0"), Err(FrameError::Value));
    assert_eq!(Preface::decode(*b"abtf\0\x01\0\x01"), Err(FrameError::Value));
}

#[test]
fn wrong_frames_are_named() {
    let header = |kind: u8, len: usize| {
        let mut bytes = Header::of_data(len);
        bytes[0] = kind;
        Header::decode(bytes)
    };
    assert_eq!(header(8, 0), Err(FrameError::Length));
    assert_eq!(header(8, 65_536), Ok(Header::Data(65_536)));
    assert_eq!(header(8, 65_537), Err(FrameError::Length));
    assert_eq!(header(3, MAX_PAYLOAD), Ok(Header::Frame(3, MAX_PAYLOAD)));
    assert_eq!(header(3, MAX_PAYLOAD + 1), Err(FrameError::Length));
    for (kind, payload, error) in [
        (0x00, vec![], FrameError::Type(0)),
        (0x08, vec![1], FrameError::Type(8)),
        (0x0f, vec![], FrameError::Length),
        (0x11, vec![], FrameError::Type(17)),
        (0x10, vec![0], FrameError::Length),
        (0x0b, vec![0; 3], FrameError::Length),
        (0x0b, vec![0; 5], FrameError::Length),
        (0x02, vec![0], FrameError::Length),
        (0x01, vec![0xff], FrameError::Text),
        (0x01, b"../x".to_vec(), FrameError::Name(NameError::Dots)),
        (0x03, vec![9; 30], FrameError::Value),
        (0x0d, vec![b'x'; MAX_TEXT + 3], FrameError::Length),
    ] {
        assert_eq!(Frame::decode(kind, &payload), Err(error), "{kind} {payload:?}");
    }
    let mut bytes = Vec::new();
    let text = "ü".repeat(MAX_TEXT);
    Frame::Failed { code: Code::Storage, text: text.into() }.encode(&mut bytes);
    let Ok(Frame::Failed { code, text }) = Frame::decode(0x0d, &bytes[5..]) else { panic!() };
    assert_eq!((code, text.as_untrusted().len()), (Code::Storage, MAX_TEXT));
    for number in 0..20 {
        assert_eq!(Code::from_number(number).number(), number);
    }
}

fn ticket() -> Ticket {
    let addresses = ["192.0.2.1:7", "[2001:db8::1]:65535"].map(|text| text.parse().unwrap());
    let key = SecretKey::from_bytes([9; 32]).public_key();
    Ticket::new(Role::Takes, key, 1_763_800_000, addresses.to_vec()).unwrap()
}

#[test]
fn tickets_survive_copying_and_nothing_else() {
    let ticket = ticket();
    let text = ticket.to_text();
    assert_eq!(Ticket::parse(&text), Ok(ticket.clone()));
    let wrapped = format!(" {}\n{}\r\n", &text[..40], &text[40..]);
    assert_eq!(Ticket::parse(&wrapped), Ok(ticket.clone()));
    assert!(Ticket::is_meant(&text) && !Ticket::is_meant("anabranch1.iso"));
    assert!(text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_'));
    for end in 10..text.len() {
        assert_eq!(Ticket::parse(&text[..end]), Err(TicketError::Damaged), "{end}");
    }
    for at in 10..text.len() {
        let other = if text.as_bytes()[at] == b'A' { "B" } else { "A" };
        let changed = format!("{}{other}{}", &text[..at], &text[at + 1..]);
        assert_eq!(Ticket::parse(&changed), Err(TicketError::Damaged), "{changed}");
    }
    assert_eq!(Ticket::parse(&text.replacen('1', "2", 1)), Err(TicketError::Version));
    assert_eq!(Ticket::parse("photo.jpg"), Err(TicketError::Prefix));
    assert_eq!(Ticket::parse(&"anabranch1".repeat(500)), Err(TicketError::Damaged));
}

/// The keys of a ticket as Python's `hmac` derives them from its secret by `docs/spec/transfer-0.md`.
#[test]
fn the_keys_of_a_ticket_are_those_of_the_specification() {
    for (text, holder, preshared) in [
        (
            include_str!("tickets.txt").lines().next().unwrap(),
            "c8d04bf32429c19832cacd8ec913ef1af09cd3b26989ab97130a9e898e670c78",
            "30359ad7b7fabd486a67d27a03330b16596117060c32e9c52bd5e8e4876a9684",
        ),
        (
            include_str!("tickets.txt").lines().nth(1).unwrap(),
            "83dd869e7664f63f51d7777e735b34cefb639ef6776a9307df255bba01abfaba",
            "6c23cbc9df2207f801013ae640a15d28686cbb79f4679b22a5e417bced20201d",
        ),
    ] {
        let ticket = Ticket::parse(text).unwrap();
        assert_eq!(hex(ticket.holder().as_bytes()), holder);
        assert_eq!(hex(ticket.preshared().as_bytes()), preshared);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn tickets_are_secret_and_unlike_each_other() {
    let (one, two) = (ticket(), ticket());
    assert_ne!(one.holder().public_key(), two.holder().public_key());
    assert_eq!(
        one.holder().public_key(),
        Ticket::parse(&one.to_text()).unwrap().holder().public_key()
    );
    assert_ne!(one.preshared().as_bytes(), two.preshared().as_bytes());
    let shown = format!("{one:?}");
    assert!(!shown.contains("secret"), "{shown}");
    let key = one.peer;
    assert_eq!(Ticket::new(Role::Takes, key, 0, vec![]), Err(TicketError::Addresses));
    let many = vec![one.addresses[0]; 17];
    assert_eq!(Ticket::new(Role::Takes, key, 0, many), Err(TicketError::Addresses));
}

proptest! {
    #[test]
    fn no_bytes_do_harm(mut data in prop::collection::vec(any::<u8>(), 0..300), whole in any::<bool>()) {
        if whole && data.len() > 13 {
            data[..8].copy_from_slice(b"abtf\0\0\0\0");
            data[8] %= 18;
            let len = (data.len() - 13) as u32;
            data[9..13].copy_from_slice(&len.to_be_bytes());
        }
        fuzzing::frames(&data);
        fuzzing::ticket(&data);
    }

    #[test]
    fn names_that_pass_are_paths_below(text in "[./a\\\\-]{0,12}") {
        if let Ok(name) = Name::new(text) {
            let path = std::path::Path::new("/out").join(name.as_str());
            prop_assert!(path.starts_with("/out"));
            prop_assert_eq!(path.components().count(), 2 + name.parts().count());
        }
    }
}
