//! Symbols that a receiver accepts, ignores, or treats as a violation.

use anabranch_policy::code::Coverage;
use anabranch_policy::registry::Registry;
use anabranch_policy::view::SymbolId;

use crate::coding::code;
use crate::coding::receive::{Arrival, CodingViolation, ReceiveBlocks};

fn receiver(credit: u64) -> ReceiveBlocks {
    ReceiveBlocks::new(code::of_peer(&Registry::new(), None), 32, credit)
}

fn source(blocks: &mut ReceiveBlocks, id: u64, bytes: &[u8]) -> Result<Arrival, CodingViolation> {
    blocks.on_source(SymbolId(id), bytes, &mut |_: &[u8]| {})
}

fn repair(
    blocks: &mut ReceiveBlocks,
    (first, count): (u64, u16),
    key: u32,
    bytes: &[u8],
) -> Result<Arrival, CodingViolation> {
    blocks.on_repair(Coverage { first: SymbolId(first), count }, key, bytes, &mut |_: &[u8]| {})
}

#[test]
fn credit_counts_from_the_floor() {
    let mut blocks = receiver(8);
    assert_eq!(source(&mut blocks, 7, b"x"), Ok(Arrival::New));
    assert_eq!(source(&mut blocks, 8, b"x"), Err(CodingViolation::Credit));
    assert_eq!(source(&mut blocks, u64::MAX, b"x"), Err(CodingViolation::Credit));
    assert_eq!(repair(&mut blocks, (6, 3), 0, b"x"), Err(CodingViolation::Credit));
    assert_eq!(repair(&mut blocks, (u64::MAX, 9), 0, b"x"), Err(CodingViolation::Credit));
    for id in 0..4 {
        assert_eq!(source(&mut blocks, id, b"x"), Ok(Arrival::New));
    }
    assert_eq!(blocks.new_limit(), None);
    // A floor above a missing symbol has no effect.
    blocks.raise_floor(6, &mut |_: &[u8]| {});
    assert_eq!(blocks.first_missing(), SymbolId(4));
    assert_eq!(blocks.new_limit(), Some(12));
    assert_eq!(blocks.new_limit(), None);
    assert_eq!(source(&mut blocks, 11, b"x"), Ok(Arrival::New));
    assert_eq!(source(&mut blocks, 12, b"x"), Err(CodingViolation::Credit));
    assert_eq!(source(&mut blocks, 2, b"x"), Ok(Arrival::Redundant));
}

#[test]
fn symbols_have_the_agreed_length() {
    let mut blocks = receiver(8);
    assert_eq!(source(&mut blocks, 0, &[1; 33]), Err(CodingViolation::Length));
    assert_eq!(repair(&mut blocks, (0, 4), 0, &[1; 33]), Err(CodingViolation::Length));
    assert_eq!(repair(&mut blocks, (0, 4), 0, &[]), Err(CodingViolation::Length));
    assert_eq!(repair(&mut blocks, (0, 4), 0, &[1; 20]), Ok(Arrival::New));
    assert_eq!(repair(&mut blocks, (0, 4), 1, &[1; 21]), Err(CodingViolation::Length));
}

#[test]
fn keys_and_coverages_have_ranges() {
    let mut blocks = receiver(1000);
    assert_eq!(repair(&mut blocks, (0, 0), 0, b"x"), Err(CodingViolation::Coverage));
    assert_eq!(repair(&mut blocks, (0, 256), 0, b"x"), Err(CodingViolation::Coverage));
    assert_eq!(repair(&mut blocks, (0, 200), 55, b"x"), Err(CodingViolation::Key));
    assert_eq!(repair(&mut blocks, (0, 200), u32::MAX, b"x"), Err(CodingViolation::Key));
    assert_eq!(repair(&mut blocks, (0, 200), 54, b"x"), Ok(Arrival::New));
    assert_eq!(repair(&mut blocks, (0, 200), 54, b"y"), Ok(Arrival::Redundant));
    for overlapping in [(199, 2), (0, 199), (100, 1), (0, 201)] {
        assert_eq!(repair(&mut blocks, overlapping, 0, b"x"), Err(CodingViolation::Coverage));
    }
    assert_eq!(repair(&mut blocks, (200, 1), 0, b"x"), Ok(Arrival::New));
}

#[test]
fn a_repair_below_the_floor_cannot_be_used() {
    let mut blocks = receiver(100);
    for id in 0..10 {
        assert_eq!(source(&mut blocks, id, b"x"), Ok(Arrival::New));
    }
    blocks.raise_floor(10, &mut |_: &[u8]| {});
    assert_eq!(repair(&mut blocks, (0, 10), 0, b"x"), Ok(Arrival::Redundant));
    assert_eq!(repair(&mut blocks, (8, 10), 0, b"x"), Err(CodingViolation::Coverage));
}

#[test]
fn abandoning_frees_credit_only_from_the_floor_on() {
    let mut blocks = receiver(8);
    for id in 0..6 {
        assert_eq!(source(&mut blocks, id, b"x"), Ok(Arrival::New));
    }
    blocks.abandon(SymbolId(3), 3, &mut |_: &[u8]| {});
    assert_eq!(blocks.new_limit(), None);
    blocks.abandon(SymbolId(0), 6, &mut |_: &[u8]| {});
    assert_eq!(blocks.new_limit(), Some(14));
    // Symbols beyond the limit cannot be given up.
    blocks.abandon(SymbolId(0), u64::MAX, &mut |_: &[u8]| {});
    assert_eq!((blocks.first_missing(), blocks.new_limit()), (SymbolId(14), Some(22)));
}

/// The sender has abandoned a block, so neither its symbols nor its repairs matter any more.
#[test]
fn abandoned_holes_are_not_waited_for() {
    let mut blocks = receiver(100);
    for id in [0, 1, 5, 9] {
        assert_eq!(source(&mut blocks, id, b"x"), Ok(Arrival::New));
    }
    assert_eq!(repair(&mut blocks, (4, 4), 0, b"x"), Ok(Arrival::New));
    assert_eq!(blocks.deficits().count(), 1);
    blocks.abandon(SymbolId(4), 4, &mut |_: &[u8]| {});
    assert_eq!((blocks.first_missing(), blocks.deficits().count()), (SymbolId(2), 0));
    assert_eq!(source(&mut blocks, 2, b"x"), Ok(Arrival::New));
    assert_eq!(source(&mut blocks, 3, b"x"), Ok(Arrival::New));
    assert_eq!(blocks.first_missing(), SymbolId(8));
    // These symbols and repairs were in flight when the block was given up.
    assert_eq!(source(&mut blocks, 4, b"x"), Ok(Arrival::Redundant));
    assert_eq!(repair(&mut blocks, (4, 4), 1, b"x"), Ok(Arrival::Redundant));
    blocks.raise_floor(8, &mut |_: &[u8]| {});
    assert_eq!(repair(&mut blocks, (4, 4), 2, b"x"), Ok(Arrival::Redundant));
    assert_eq!(source(&mut blocks, 8, b"x"), Ok(Arrival::New));
    assert_eq!(blocks.first_missing(), SymbolId(10));
}

/// Packets overtake each other: a new floor may arrive before the ABANDON frame that explains it,
/// and before repairs that were sent before the block was abandoned.
#[test]
fn late_repairs_of_a_block_that_was_taken_apart_are_no_contradiction() {
    let mut blocks = receiver(100);
    for id in 0..6 {
        assert_eq!(source(&mut blocks, id, b"x"), Ok(Arrival::New));
    }
    // The block has the symbols 4 to 11, of which 6 is missing.
    blocks.raise_floor(12, &mut |_: &[u8]| {});
    assert_eq!(repair(&mut blocks, (4, 8), 0, b"x"), Ok(Arrival::Redundant));
    // A repair that reaches beyond the floor cannot belong to this block.
    assert_eq!(repair(&mut blocks, (4, 9), 0, b"x"), Err(CodingViolation::Coverage));
    blocks.abandon(SymbolId(4), 8, &mut |_: &[u8]| {});
    assert_eq!(blocks.first_missing(), SymbolId(12));
}

/// Repairs with arbitrary bytes decode to arbitrary symbols, but only once, and to no more symbols
/// than were missing.
#[test]
fn repairs_that_lie_deliver_no_symbol_twice() {
    let mut blocks = receiver(100);
    let mut delivered = 0;
    let coverage = Coverage { first: SymbolId(0), count: 4 };
    for key in 0..4 {
        let payload = [key as u8 + 1; 16];
        blocks.on_repair(coverage, key, &payload, &mut |_: &[u8]| delivered += 1).unwrap();
    }
    assert_eq!(delivered, 4);
    assert_eq!(blocks.first_missing(), SymbolId(4));
    assert_eq!(blocks.deficits().count(), 0);
    for id in 0..4 {
        assert_eq!(source(&mut blocks, id, b"the true content"), Ok(Arrival::Redundant));
    }
    assert_eq!(repair(&mut blocks, (0, 4), 9, b"x"), Ok(Arrival::Redundant));
}

/// A block of short symbols is decoded when the packets that have arrived pay for the work; until
/// then, one more symbol is requested.
#[test]
fn work_is_earned_by_what_arrives() {
    let mut blocks =
        ReceiveBlocks::new(code::of_peer(&Registry::new(), Some("raptorq")), 1400, 2000);
    let mut deliver = |_: &[u8]| {};
    for id in 1..400 {
        assert_eq!(source(&mut blocks, id, b"x"), Ok(Arrival::New));
    }
    let first = |blocks: &ReceiveBlocks| blocks.deficits().collect::<Vec<_>>();
    assert_eq!(repair(&mut blocks, (0, 400), 0, b"y"), Ok(Arrival::New));
    assert_eq!((blocks.decoded(), first(&blocks)), (0, vec![(SymbolId(0), 1)]));
    // The work is 400 symbols of 1501 units each; with the initial budget, ten full packets do not
    // pay for it, eleven do.
    for packets in 0..10 {
        blocks.on_packet(1300);
        let copy = repair(&mut blocks, (0, 400), 0, b"y");
        assert_eq!((copy, blocks.decoded()), (Ok(Arrival::Redundant), 0), "{packets} packets");
    }
    blocks.on_packet(1300);
    let coverage = Coverage { first: SymbolId(0), count: 400 };
    assert_eq!(blocks.on_repair(coverage, 0, b"y", &mut deliver), Ok(Arrival::New));
    assert_eq!((blocks.decoded(), blocks.first_missing()), (1, SymbolId(400)));
    assert_eq!(first(&blocks), vec![]);
}

/// Repairs that determine no symbol are held, but not more than the credit allows; only the oldest
/// block may exceed it.
#[test]
fn repairs_that_tell_little_do_not_fill_the_memory() {
    let (credit, code) = (40, code::of_peer(&Registry::new(), Some("lt")));
    // Whether a repair of a block of two symbols contains the one at `index`.
    let contains = |key: u32, index: u16| {
        let mut decoder = code.decoder();
        decoder.begin(2);
        decoder.source(1 - index);
        decoder.repair(key)
    };
    let both: Vec<u32> =
        (0..1000).filter(|key| contains(*key, 0) && contains(*key, 1)).take(30).collect();
    let one = (0..1000).find(|key| contains(*key, 0) != contains(*key, 1)).unwrap();
    let mut blocks = ReceiveBlocks::new(code::of_peer(&Registry::new(), Some("lt")), 8, credit);
    let mut kept = 0;
    for first in (0..credit / 2).rev().map(|block| 2 * block) {
        for key in &both {
            let arrival = repair(&mut blocks, (first, 2), *key, b"x");
            kept += u64::from(arrival == Ok(Arrival::New));
        }
    }
    assert!((credit..=credit + 30).contains(&kept), "{kept} repairs");
    for first in (0..credit).step_by(2) {
        let _ = repair(&mut blocks, (first, 2), both[0], b"x");
        assert_eq!(repair(&mut blocks, (first, 2), one, b"x"), Ok(Arrival::New), "block {first}");
    }
    assert_eq!((blocks.decoded(), blocks.first_missing()), (credit, SymbolId(credit)));
}

/// Honest peers do not have to wait for the budget: the last symbol of a block completes it,
/// whatever the size of its symbols.
#[test]
fn blocks_earn_their_own_solving() {
    // Each shape has the number of symbols of a block, their bytes, and how many share a packet.
    let shapes = [
        (4, 1, 1),
        (24, 1, 1),
        (24, 20, 1),
        (250, 100, 12),
        (1016, 64, 18),
        (1016, 100, 12),
        (1016, 1400, 1),
    ];
    for (count, length, together) in shapes {
        let mut blocks =
            ReceiveBlocks::new(code::of_peer(&Registry::new(), Some("raptorq")), 1400, 10_000);
        // A frame is at least 5 bytes longer than its symbol, and a packet 26 bytes longer than its
        // frames.
        let packet = together * (length + 5) + 26;
        for block in 0..6 {
            let first = block * u64::from(count);
            for id in 1..count {
                if usize::from(id - 1).is_multiple_of(together) {
                    blocks.on_packet(packet);
                }
                let arrival = source(&mut blocks, first + u64::from(id), &vec![7; length]);
                assert_eq!(arrival, Ok(Arrival::New));
            }
            blocks.on_packet(packet);
            let arrival = repair(&mut blocks, (first, count), 5, &vec![9; length]);
            assert_eq!(arrival, Ok(Arrival::New));
            assert_eq!(blocks.decoded(), block + 1, "{count} symbols of {length} bytes");
        }
    }
}
