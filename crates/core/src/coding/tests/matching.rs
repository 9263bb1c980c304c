//! Which lost symbols the repairs of a code that slides replace, whatever block they were planned
//! for.

use core::time::Duration;

use anabranch_policy::PolicySpec;
use anabranch_policy::code::{self, Coverage, ErasureCode};
use anabranch_policy::scheduler::Work;
use anabranch_policy::view::{BlockId, SymbolId, TrafficClass};
use anabranch_types::Time;

use crate::coding::send::SendBlocks;
use crate::path::sent::Carried;

fn sliding_window() -> Box<dyn ErasureCode> {
    code::build(&PolicySpec::new("sliding-window")).unwrap()
}

/// A sender without blocks.
fn blocks() -> SendBlocks {
    SendBlocks::new(sliding_window(), 40, 1 << 20)
}

/// Sends a block of `symbols` symbols on path 0 and closes it. The symbols for which `arrives`
/// returns true arrive.
fn send_block(send: &mut SendBlocks, symbols: u16, arrives: impl Fn(u64) -> bool) {
    send.open(Time::ZERO, TrafficClass::Live, symbols, 40);
    for _ in 0..symbols {
        let (symbol, _) = send.push(|_, buffer| buffer.len()).unwrap();
        send.on_sent(symbol.carried, 0);
        send.on_resolved(symbol.carried, 0, arrives(symbol.coverage.first.0));
    }
    send.close();
}

/// Two blocks of four symbols each, of which all but the `lost` ones have arrived.
fn sent(lost: &[u64]) -> SendBlocks {
    let mut send = blocks();
    (0..2).for_each(|_| send_block(&mut send, 4, |id| !lost.contains(&id)));
    send
}

/// Sends a repair of the block with the given coverage, which arrives.
fn repair(send: &mut SendBlocks, block: u64, first: u64, count: u16) {
    let block = BlockId(block);
    send.set_coverage(block, Coverage { first: SymbolId(first), count });
    send.add_repairs(block, 1);
    let repair = send.take(Work::Block(block), 0).unwrap();
    assert_eq!(repair.coverage, Coverage { first: SymbolId(first), count });
    send.on_sent(repair.carried, 0);
    send.on_resolved(repair.carried, 0, true);
}

/// How many symbols each block still needs, and which blocks need more than before.
fn shortfalls(send: &mut SendBlocks) -> (Vec<u16>, Vec<u64>) {
    let mut more = Vec::new();
    send.match_repairs(|block| more.push(block.0));
    (send.views().iter().map(|view| view.shortfall()).collect(), more)
}

#[test]
fn a_repair_makes_one_symbol_good() {
    let mut send = sent(&[1, 6]);
    assert_eq!(shortfalls(&mut send).0, [1, 1]);
    repair(&mut send, 1, 0, 8);
    assert_eq!(shortfalls(&mut send).0, [1, 0]);
    repair(&mut send, 1, 0, 8);
    assert_eq!(shortfalls(&mut send).0, [0, 0]);
    // The repair was planned for the second block, and replaces a loss of the first.
    let mut send = sent(&[1]);
    repair(&mut send, 1, 0, 8);
    assert_eq!(shortfalls(&mut send).0, [0, 0]);
}

/// One of two repairs covers only the second block, so the other has to replace the loss in the
/// first block.
#[test]
fn repairs_make_as_many_symbols_good_as_they_can() {
    let mut send = sent(&[1, 6]);
    repair(&mut send, 1, 0, 8);
    repair(&mut send, 1, 4, 4);
    assert_eq!(shortfalls(&mut send).0, [0, 0]);
    let mut send = sent(&[1, 6]);
    repair(&mut send, 1, 4, 4);
    repair(&mut send, 1, 0, 8);
    assert_eq!(shortfalls(&mut send).0, [0, 0]);
}

#[test]
fn what_is_lost_and_not_made_good_is_sent_again_itself() {
    let mut send = sent(&[1, 6, 7]);
    repair(&mut send, 0, 0, 4);
    assert_eq!(shortfalls(&mut send).0, [0, 2]);
    // Three symbols are made due, one more than is missing, because some may be lost again.
    send.add_due(Time::ZERO, BlockId(1), 3, Duration::ZERO);
    let due: Vec<_> = core::iter::from_fn(|| send.take(Work::Block(BlockId(1)), 1)).collect();
    let carried = due.iter().map(|symbol| symbol.carried).collect::<Vec<_>>();
    let source = |id| Carried::Source(BlockId(1), SymbolId(id));
    assert_eq!(carried, [source(6), source(7), Carried::Repair(BlockId(1), 0)]);
}

/// The receiver needs one symbol more than expected: it could not keep the repair, or the repair
/// was not independent.
#[test]
fn a_repair_that_was_of_no_use_is_made_up_for() {
    let mut send = sent(&[1, 6]);
    repair(&mut send, 0, 0, 4);
    assert_eq!(shortfalls(&mut send), (vec![0, 1], vec![]));
    send.on_unfinished(SymbolId(1), 1);
    assert_eq!(shortfalls(&mut send), (vec![1, 1], vec![0]));
    send.on_unfinished(SymbolId(1), 0);
    assert_eq!(shortfalls(&mut send), (vec![0, 1], vec![]));
    // With another repair that covers both symbols, the receiver should need no more.
    repair(&mut send, 1, 0, 8);
    send.on_unfinished(SymbolId(1), 0);
    assert_eq!(shortfalls(&mut send), (vec![0, 0], vec![]));
    send.on_unfinished(SymbolId(1), 1);
    assert_eq!(shortfalls(&mut send), (vec![1, 0], vec![0]));
}

/// Repairs do not replace symbols in flight while a symbol is lost.
#[test]
fn repairs_make_lost_symbols_good_before_those_on_their_way() {
    let mut send = sent(&[1, 6]);
    send.add_due(Time::ZERO, BlockId(0), 1, Duration::ZERO);
    let again = send.take(Work::Block(BlockId(0)), 1).unwrap();
    assert_eq!(again.carried, Carried::Source(BlockId(0), SymbolId(1)));
    send.on_sent(again.carried, 1);
    repair(&mut send, 1, 0, 8);
    assert_eq!(shortfalls(&mut send).0, [0, 0]);
    send.on_resolved(again.carried, 1, false);
    assert_eq!(shortfalls(&mut send), (vec![1, 0], vec![]), "the newer one has it");
}

#[test]
fn repairs_of_what_is_recovered_are_forgotten() {
    let mut send = blocks();
    for block in 0..100 {
        send_block(&mut send, 4, |_| true);
        repair(&mut send, block, 4 * block, 4);
        assert_eq!(shortfalls(&mut send).0.iter().sum::<u16>(), 0);
        send.retire(|_| ());
        assert!(send.remembered_repairs() <= 1, "{} repairs", send.remembered_repairs());
    }
}

/// A receiver does not keep a repair if more than 512 missing symbols would then be covered.
#[test]
fn repairs_that_cover_too_much_that_is_missing_count_for_nothing() {
    let most = sliding_window().limits().slides.unwrap();
    for (lost, kept) in [(most, true), (most + 1, false)] {
        let mut send = blocks();
        let mut repairs = Vec::new();
        for (block, symbols) in [200, 200, lost - 400].into_iter().enumerate() {
            send_block(&mut send, symbols, |_| false);
            let block = BlockId(block as u64);
            send.add_repairs(block, 3);
            repairs.extend((0..3).map(|_| send.take(Work::Block(block), 0).unwrap()));
        }
        repairs.iter().for_each(|repair| send.on_sent(repair.carried, 0));
        repairs.iter().for_each(|repair| {
            send.on_resolved(repair.carried, 0, true);
        });
        let (left, _) = shortfalls(&mut send);
        let expected = if kept { lost - 9 } else { lost };
        assert_eq!(left.iter().sum::<u16>(), expected, "{lost} lost");
    }
}
