//! Golden digests of canonical networks: any change of behaviour shows as a difference from
//! `golden/engine.txt`.
//!
//! Each line is a run: its name, the digest of every packet's fate on every link, packet-hops,
//! events, and the bytes delivered. `BLESS=1` (or `cargo xtask bless`) writes the file again.

mod networks;

use std::fmt::Write as _;
use std::path::Path;

use anabranch_sim::engine::{Observer, PacketEvent};
use networks::{Built, all};

#[test]
fn engine_traces_are_golden() {
    let mut actual = String::new();
    for (name, build) in all() {
        let mut built = build(1).build();
        built.run();
        let (engine, delivered) = (&built.engine, built.delivered());
        let (digest, hops, events) = (engine.digest(), engine.packet_hops(), engine.events());
        writeln!(actual, "{name} {digest:016x} {hops} {events} {delivered}")
            .expect("a string takes all");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/engine.txt");
    if std::env::var("BLESS").is_ok_and(|value| value == "1") {
        std::fs::write(&path, &actual).expect("the golden file can be written");
    }
    let golden = std::fs::read_to_string(&path).expect("the golden file can be read");
    assert_eq!(actual, golden, "if this change is meant: cargo xtask bless");
}

#[test]
fn another_seed_gives_another_run_where_anything_is_random() {
    for (name, build) in all() {
        let digest = |seed| {
            let mut built = build(seed).build();
            built.run();
            built.engine.digest()
        };
        let random = !["udp-constant", "parking-lot"].contains(&name);
        assert_eq!(digest(2) != digest(3), random, "{name}");
    }
}

/// Counts the packets that enter and leave the links, and checks that time does not go back.
#[derive(Default)]
struct Ledger {
    entered: u64,
    left: u64,
    lost_inside: u64,
    refused: u64,
    last: anabranch_types::Time,
}

impl Observer for Ledger {
    fn packet(&mut self, event: &PacketEvent<'_>) {
        use anabranch_sim::engine::PacketEventKind::{Delivered, Dropped, Entered, Marked};
        use anabranch_sim::link::DropCause::Random;
        assert!(event.time >= self.last);
        self.last = event.time;
        match event.kind {
            Entered => self.entered += 1,
            Delivered => self.left += 1,
            Dropped(Random) => self.lost_inside += 1,
            Dropped(_) => self.refused += 1,
            Marked => {}
        }
    }
}

#[test]
fn every_packet_is_accounted_for_and_watching_changes_nothing() {
    for (name, build) in all() {
        let mut plain = build(1).build();
        plain.run();
        let mut watched = build(1).build();
        let mut ledger = Ledger::default();
        watched.engine.run_until_with(watched.until, &mut ledger);
        assert_eq!(plain.engine.digest(), watched.engine.digest(), "{name}");
        assert_eq!(ledger.left, watched.engine.packet_hops(), "{name}");
        accounted(name, &watched, &ledger);
    }
}

fn accounted(name: &str, Built { engine, .. }: &Built, ledger: &Ledger) {
    let links = (0..engine.topology().links() as u32).map(anabranch_sim::engine::LinkId);
    let (mut offered, mut dropped, mut inside) = (0, 0, 0);
    for link in links.filter_map(|link| engine.link(link)) {
        let counters = link.counters();
        offered += counters.packets_in;
        dropped += counters.dropped_by_queue() + counters.dropped_blackout;
        inside += link.packets_inside();
        assert!(counters.packets_delivered + counters.lost_random <= counters.packets_in);
    }
    // A packet that the queue drops on departure has entered the link; a packet that the queue
    // refuses has not.
    assert!(offered >= ledger.entered && offered <= ledger.entered + ledger.refused, "{name}");
    assert_eq!(dropped, ledger.refused, "{name}");
    assert_eq!(offered, ledger.left + ledger.lost_inside + dropped + inside, "{name}");
    assert_eq!(inside, engine.packets_in_flight() as u64, "{name}");
}
