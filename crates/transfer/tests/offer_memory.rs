//! The memory that a peer's offer of files takes at the receiver.

#[path = "../../core/tests/allocator/mod.rs"]
mod allocator;

use allocator::{LIVE, MOST};
use anabranch_transfer::manifest::MAX_COST;
use anabranch_transfer::{Entry, Kind, Manifest, Modified, Name};

fn entry(name: &str) -> Entry {
    let (name, modified) = (Name::new(name).unwrap(), Modified::default());
    Entry { name, kind: Kind::File, mode: 0o644, size: 1, modified, target: None }
}

/// Peak and final bytes of memory while an offer is read and checked, and the number of its entries.
fn measure(names: impl Iterator<Item = String>) -> (i64, i64, usize) {
    let before = LIVE.get();
    MOST.set(before);
    let mut manifest = Manifest::default();
    for name in names {
        if manifest.push(&entry(&name)).is_err() {
            break;
        }
    }
    manifest.check().unwrap();
    let (most, live) = (MOST.get() - before, LIVE.get() - before);
    println!("{} entries: {most} bytes at most, {live} kept", manifest.len());
    (most, live, manifest.len())
}

#[test]
fn an_offer_costs_little() {
    let names = |count: u32| (0..count).map(|n| format!("photos/2026/11/{n:06}.jpg"));
    let (most, _, count) = measure(names(200_000));
    assert_eq!(count, 200_000);
    assert!(most < 24 << 20, "{most}");
}

#[test]
fn no_offer_costs_more_than_a_bound() {
    let long = vec!["x".repeat(255); 15].join("/");
    for part in ["", "some-directory/", &(long + "/")] {
        let (most, live, _) = measure((0..u32::MAX).map(|n| format!("{part}{n}")));
        // Tables that grow by a quarter have up to that much to spare, and exist twice while they grow.
        let cost = MAX_COST as i64;
        assert!(live <= cost + cost / 4 + 4096 && most <= 2 * cost + cost / 4, "{most} {live}");
    }
}
