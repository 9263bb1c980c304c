//! Blocks are delivered as a whole, in order.

use anabranch_policy::registry::Registry;
use anabranch_policy::scheduler::Work;
use anabranch_policy::view::{SymbolId, TrafficClass};
use anabranch_types::Time;

use crate::coding::code;
use crate::coding::receive::ReceiveBlocks;
use crate::coding::send::{OutgoingSymbol, SendBlocks};
use crate::path::sent::Carried;

const SIZE: usize = 8;

/// Two blocks of three symbols, each filled with its id, where a repair follows each block.
fn sent() -> (SendBlocks, Vec<OutgoingSymbol>) {
    let mut send = SendBlocks::new(code::of_peer(&Registry::new(), None), SIZE, u64::MAX);
    let mut packets = Vec::new();
    for _ in 0..2 {
        let block = send.open(Time::ZERO, TrafficClass::Bulk, 3, SIZE as u16);
        for _ in 0..3 {
            let fill = |id: SymbolId, buffer: &mut [u8]| {
                buffer.fill(id.0 as u8);
                SIZE
            };
            let (taken, _) = send.push(fill).unwrap();
            send.on_sent(taken.carried, 0);
            packets.push(taken);
        }
        send.close();
        send.plan_repairs(block, 1);
        let repair = send.take(Work::Block(block), 0).unwrap();
        send.on_sent(repair.carried, 0);
        packets.push(repair);
    }
    (send, packets)
}

/// Ids of the symbols delivered when each of the packets arrives. Packets are numbered in the order
/// of sending: three sources and a repair, twice.
fn delivered(arriving: &[usize], whole: bool) -> Vec<Vec<u8>> {
    let (mut send, packets) = sent();
    let receiver = ReceiveBlocks::new(code::of_peer(&Registry::new(), None), SIZE, 100);
    let mut receiver = if whole { receiver.in_whole_blocks() } else { receiver };
    let mut all = Vec::new();
    for number in arriving {
        let taken = &packets[*number];
        let mut bytes = vec![0; usize::from(taken.length)];
        send.write(taken, &mut bytes).unwrap();
        let mut now = Vec::new();
        let mut sink = |payload: &[u8]| {
            assert!(payload.iter().all(|byte| *byte == payload[0]));
            now.push(payload[0]);
        };
        match taken.carried {
            Carried::Source(_, id) => {
                if send.ends_block(id) {
                    receiver.note_end(id);
                }
                receiver.on_source(id, &bytes, &mut sink).unwrap();
            }
            Carried::Repair(_, key) => {
                receiver.on_repair(taken.coverage, key, &bytes, &mut sink).unwrap();
            }
        }
        all.push(now);
    }
    all
}

#[test]
fn nothing_of_a_block_is_delivered_before_all_of_it() {
    assert_eq!(delivered(&[0, 1, 2], true), [vec![], vec![], vec![0, 1, 2]]);
    assert_eq!(delivered(&[0, 1, 2], false), [[0], [1], [2]]);
    // The last symbol, whose packet says where the block ends, arrives first.
    assert_eq!(delivered(&[2, 1, 0], true), [vec![], vec![], vec![0, 1, 2]]);
}

#[test]
fn a_repair_completes_a_block_and_tells_where_it_ends() {
    assert_eq!(delivered(&[0, 1, 3], true), [vec![], vec![], vec![0, 1, 2]]);
    assert_eq!(delivered(&[3, 0, 2], true), [vec![], vec![], vec![0, 1, 2]]);
    // By default, a recovered symbol follows those that arrived.
    assert_eq!(delivered(&[0, 2, 3], false), [[0], [2], [1]]);
}

#[test]
fn blocks_are_delivered_in_order() {
    let late = delivered(&[4, 5, 6, 0, 1, 2], true);
    assert_eq!(late[..5], [vec![], vec![], vec![], vec![], vec![]]);
    assert_eq!(late[5], [0, 1, 2, 3, 4, 5]);
    let recovered = delivered(&[4, 7, 6, 3, 1, 0], true);
    assert_eq!(recovered[5], [0, 1, 2, 3, 4, 5]);
    assert!(recovered[..5].iter().all(Vec::is_empty));
}

#[test]
fn what_is_given_up_is_not_waited_for() {
    let mut receiver =
        ReceiveBlocks::new(code::of_peer(&Registry::new(), None), SIZE, 100).in_whole_blocks();
    let mut got = Vec::new();
    let mut sink = |payload: &[u8]| got.push(payload[0]);
    receiver.on_source(SymbolId(1), &[1; SIZE], &mut sink).unwrap();
    receiver.abandon(SymbolId(0), 3, &mut sink);
    assert_eq!(receiver.first_missing(), SymbolId(3));
    receiver.note_end(SymbolId(3));
    receiver.on_source(SymbolId(3), &[3; SIZE], &mut sink).unwrap();
    assert_eq!(receiver.first_missing(), SymbolId(4));
    assert_eq!(got, [1, 3]);
}
