//! Bodies of the fuzz targets for transfers, and seeds for them; see `fuzz/README.md`.

use super::frame::{HEADER_LEN, MAX_DATA, MAX_PAYLOAD, PREFACE_LEN};
use super::{
    Code, Entry, Frame, FrameError, Header, Kind, Manifest, Modified, Name, Preface, Role, Target,
    Ticket,
};
use std::collections::{BTreeMap, VecDeque};

use anabranch::PublicKey;

/// Reads a direction of a transfer: a preface, then frames. What decodes must encode to the same
/// bytes, names must stay in their directory, and offers must count their entries and bytes.
pub fn frames(data: &[u8]) {
    let Some((preface, mut rest)) = data.split_first_chunk::<PREFACE_LEN>() else { return };
    if let Ok(read) = Preface::decode(*preface) {
        assert_eq!(read.encode(), *preface);
    }
    let mut manifest = Manifest::default();
    while let Some((header, after)) = rest.split_first_chunk::<HEADER_LEN>() {
        let (kind, len) = match Header::decode(*header) {
            Ok(Header::Data(len)) => {
                assert!((1..=MAX_DATA).contains(&len));
                assert_eq!(Header::of_data(len), *header);
                rest = after.get(len..).unwrap_or_default();
                continue;
            }
            Ok(Header::Frame(kind, len)) => (kind, len),
            Err(error) => {
                assert_eq!(error, FrameError::Length);
                return;
            }
        };
        assert!(len <= MAX_PAYLOAD);
        let Some((payload, after)) = after.split_at_checked(len) else { return };
        rest = after;
        let Ok(frame) = Frame::decode(kind, payload) else { continue };
        let mut again = Vec::new();
        frame.encode(&mut again);
        assert_eq!(again, [&header[..], payload].concat());
        if let Frame::Entry(entry) = frame {
            add(&mut manifest, entry);
        }
    }
    agrees(&manifest);
}

fn add(manifest: &mut Manifest, entry: Entry) {
    let target = std::path::Path::new("/out").join(entry.name.as_str());
    assert!(target.starts_with("/out") && !target.components().any(|c| c.as_os_str() == ".."));
    let before = (manifest.len(), manifest.total());
    match manifest.push(&entry) {
        Ok(()) => {
            assert_eq!((manifest.len(), manifest.total()), (before.0 + 1, before.1 + entry.size));
            assert_eq!(manifest.entry(before.0), Some(entry));
        }
        Err(_) => assert_eq!((manifest.len(), manifest.total()), before),
    }
}

/// An offer passes if and only if each of its names stands for one thing, and each link leads to one of them.
fn agrees(manifest: &Manifest) {
    let mut entries = BTreeMap::new();
    let twice = manifest.entries().any(|entry| entries.insert(entry.name.clone(), entry).is_some());
    let wrong = |entry: &Entry| {
        let mut above = entry.name.ancestors().filter_map(|up| entries.get(&Name::new(up).ok()?));
        above.any(|up| up.kind != Kind::Directory)
            || entry.target.as_ref().is_some_and(|target| !lands(&entries, &entry.name, target))
    };
    assert_eq!(manifest.check().is_err(), twice || entries.values().any(wrong));
}

/// Whether a link leads to an entry, resolved part by part as by a kernel.
fn lands(entries: &BTreeMap<Name, Entry>, link: &Name, target: &Target) -> bool {
    let parts = |text: &str| text.split('/').map(str::to_owned).collect::<VecDeque<_>>();
    let mut place: Vec<String> = link.parts().map(str::to_owned).collect();
    place.pop();
    let (mut left, mut over) = (parts(target.as_str()), 0);
    while let Some(part) = left.pop_front() {
        if part == ".." {
            if place.pop().is_none() {
                return false;
            }
            continue;
        }
        place.push(part);
        let here = Name::new(place.join("/")).ok().and_then(|here| entries.get(&here));
        if let Some(next) = here.and_then(|here| here.target.as_ref()) {
            over += 1;
            place.pop();
            left = parts(next.as_str()).into_iter().chain(left).collect();
        }
        if over > 8 {
            return false;
        }
    }
    let end = place.join("/");
    entries.keys().any(|name| name.is_within(&end))
}

/// Reads a ticket. What parses must be written as it was read, except for blank space.
pub fn ticket(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    if let Ok(ticket) = Ticket::parse(text) {
        let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        assert_eq!(*ticket.to_text(), compact);
        assert_eq!(Ticket::parse(&compact), Ok(ticket));
    }
}

/// Inputs for [`frames`].
pub fn frame_seeds() -> Vec<Vec<u8>> {
    let name = |text: &str| Name::new(text).ok();
    let entry = |text: &str, kind, size| {
        let modified = Modified { seconds: 1_763_800_000, nanos: 5 };
        name(text).map(|name| Entry { name, kind, mode: 0o755, size, modified, target: None })
    };
    let mut offer = Preface { role: Role::Offers }.encode().to_vec();
    let entries = [
        entry("a/b", Kind::File, 70_000),
        entry("a", Kind::Directory, 0),
        entry("a/c/d", Kind::File, u64::MAX),
        entry("stdin", Kind::Stream, 0),
    ];
    let mut offers: Vec<Frame> = entries.into_iter().flatten().map(Frame::Entry).collect();
    offers.push(Frame::OfferEnd { entries: 4 });
    offers.push(Frame::File { index: 0, offset: 3 });
    offers.iter().for_each(|frame| frame.encode(&mut offer));
    offer.extend_from_slice(&Header::of_data(5));
    offer.extend_from_slice(b"bytes");
    Frame::FileEnd { index: 0, size: 8, sum: [7; 32] }.encode(&mut offer);
    Frame::Sum { index: 2, offset: 7, sum: [9; 32] }.encode(&mut offer);
    let mut take = Preface { role: Role::Takes }.encode().to_vec();
    let mut takes: Vec<Frame> = name("a").map(Frame::Want).into_iter().collect();
    takes.extend([
        Frame::WantEnd,
        Frame::Fetch { index: 0, offset: 3 },
        Frame::Check { index: 2, offset: 7 },
        Frame::Asking,
        Frame::Durable { index: 0, offset: 6 },
        Frame::Alive,
        Frame::Stored { index: 0 },
        Frame::Done,
        Frame::Failed { code: Code::Storage, text: "no space left".into() },
        Frame::Failed { code: Code::Other(999), text: "".into() },
    ]);
    takes.iter().for_each(|frame| frame.encode(&mut take));
    let escape =
        b"abtf\0\0\0\0\x03\0\0\0\x1e\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0../../up".to_vec();
    let long = [&b"abtf\0\0\0\0\x01"[..], &u32::MAX.to_be_bytes()].concat();
    let future = b"abtf\x07\0\0\0".to_vec();
    with_cuts([offer, take, escape, long, future, links()])
}

/// An offer with links that lead to something, the first over the second.
fn links() -> Vec<u8> {
    let mut bytes = Preface { role: Role::Offers }.encode().to_vec();
    let entry = |name: &str, kind, target: Option<&str>| {
        let (name, modified) = (Name::new(name).ok()?, Modified::default());
        let target = target.and_then(|target| Target::new(target).ok());
        Some(Frame::Entry(Entry { name, kind, mode: 0, size: 0, modified, target }))
    };
    let entries = [
        entry("bin", Kind::Link, Some("now/bin")),
        entry("now", Kind::Link, Some("releases/5")),
        entry("releases/5/bin", Kind::Directory, None),
        entry("releases/old", Kind::Link, Some("../now")),
    ];
    entries.iter().flatten().for_each(|frame| frame.encode(&mut bytes));
    Frame::OfferEnd { entries: 4 }.encode(&mut bytes);
    bytes
}

/// Inputs for [`ticket`].
pub fn ticket_seeds() -> Vec<Vec<u8>> {
    // Secrets are drawn at random, so these texts were made once and are kept.
    let kept = include_str!("tickets.txt").lines().map(|line| line.as_bytes().to_vec());
    let other = b"anabranch2AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".to_vec();
    with_cuts(kept.chain([other]))
}

/// A ticket of each kind, for the seeds.
pub fn sample_tickets() -> Vec<String> {
    let addresses = |texts: &[&str]| texts.iter().filter_map(|text| text.parse().ok()).collect();
    let made = [
        (Role::Takes, addresses(&["192.0.2.7:4433"])),
        (Role::Offers, addresses(&["[2001:db8::1]:9", "198.51.100.3:65535"])),
    ];
    let tickets = made.into_iter().filter_map(|(role, addresses)| {
        Ticket::new(role, PublicKey([0xa5; 32]), 1_763_800_000, addresses).ok()
    });
    tickets.map(|ticket| ticket.to_text().to_string()).collect()
}

/// The seeds, each also cut in the middle and with a bit flipped there.
fn with_cuts(seeds: impl IntoIterator<Item = Vec<u8>>) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for seed in seeds {
        let middle = seed.len() / 2;
        let mut turned = seed.clone();
        if let Some(byte) = turned.get_mut(middle) {
            *byte ^= 1;
        }
        all.push(seed.get(..middle).unwrap_or_default().to_vec());
        all.push(turned);
        all.push(seed);
    }
    all
}
