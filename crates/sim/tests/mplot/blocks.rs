//! §II-A: blocks of data, proactive and reactive repairs, and the order of sending.

use anabranch_core::coding::code;
use anabranch_core::coding::receive::{Arrival, ReceiveBlocks};
use anabranch_core::coding::send::{OutgoingSymbol, SendBlocks};
use anabranch_core::path::sent::Carried;
use anabranch_policy::scheduler::Work;
use anabranch_policy::view::{BlockId, TrafficClass};
use anabranch_policy::{PolicySpec, Registry};
use anabranch_types::Time;
use core::time::Duration;

const SIZE: usize = 40;
/// Number of symbols in a codeword of a code over GF(256).
const CODEWORD: u16 = 255;

/// A closed block of `sources` packets with `repairs` planned repairs, and the symbols that its
/// packets carry.
fn block(code: &str, sources: u8, repairs: u16) -> (SendBlocks, BlockId, Vec<OutgoingSymbol>) {
    let mut send = SendBlocks::new(
        anabranch_policy::code::build(&PolicySpec::new(code)).unwrap(),
        SIZE,
        u64::MAX,
    );
    let id = send.open(Time::ZERO, TrafficClass::Bulk, sources.into(), SIZE as u16);
    let data = (0..sources).map(|number| {
        let fill = |_, buffer: &mut [u8]| {
            buffer.fill(number.wrapping_mul(37) ^ 0x5a);
            SIZE
        };
        let (taken, full) = send.push(fill).unwrap();
        assert_eq!(full, number + 1 == sources);
        send.on_sent(taken.carried, 0);
        taken
    });
    let data = data.collect();
    send.close();
    send.plan_repairs(id, repairs);
    (send, id, data)
}

/// Sends the next packet of the block and returns its symbol.
fn next(send: &mut SendBlocks, id: BlockId) -> OutgoingSymbol {
    let taken = send.take(Work::Block(id), 0).expect("something is due");
    send.on_sent(taken.carried, 0);
    taken
}

fn receive(send: &mut SendBlocks, receiver: &mut ReceiveBlocks, taken: &OutgoingSymbol) -> Arrival {
    let mut bytes = vec![0; usize::from(taken.length)];
    send.write(taken, &mut bytes).unwrap();
    let arrival = match taken.carried {
        Carried::Source(_, id) => receiver.on_source(id, &bytes, &mut |_: &[u8]| {}),
        Carried::Repair(_, key) => {
            receiver.on_repair(taken.coverage, key, &bytes, &mut |_: &[u8]| {})
        }
    };
    arrival.unwrap()
}

fn receiver() -> ReceiveBlocks {
    ReceiveBlocks::new(code::of_peer(&Registry::new(), None), SIZE, 1000)
}

/// Position in the codeword: data first, then repairs.
fn index(sources: u8, carried: Carried) -> u64 {
    match carried {
        Carried::Source(_, id) => id.0,
        Carried::Repair(_, key) => u64::from(sources) + u64::from(key),
    }
}

#[test]
fn any_as_many_packets_of_a_block_as_it_has_data_restore_it() {
    let (mut send, id, mut packets) = block("reed-solomon", 6, 4);
    packets.extend((0..4).map(|_| next(&mut send, id)));
    assert!(packets.iter().all(|taken| usize::from(taken.length) == SIZE), "of equal size");
    for choice in 0_u32..1 << packets.len() {
        let mut receiver = receiver();
        for (_, taken) in packets.iter().enumerate().filter(|(at, _)| choice & (1 << at) != 0) {
            receive(&mut send, &mut receiver, taken);
        }
        let whole = receiver.first_missing().0 == 6;
        assert_eq!(whole, choice.count_ones() >= 6, "{choice:b}");
    }
}

#[test]
fn a_codeword_is_data_then_proactive_then_reactive_repairs() {
    let (mut send, id, packets) = block("reed-solomon", 6, 2);
    let order: Vec<u64> = packets.iter().map(|taken| index(6, taken.carried)).collect();
    assert_eq!(order, [0, 1, 2, 3, 4, 5]);
    assert_eq!([0, 0].map(|_| index(6, next(&mut send, id).carried)), [6, 7]);
    assert!(send.take(Work::Block(id), 0).is_none(), "only a need makes more");
    send.add_due(Time::ZERO, id, 2, Duration::ZERO);
    assert_eq!([0, 0].map(|_| index(6, next(&mut send, id).carried)), [8, 9]);
}

#[test]
fn repairs_never_sent_go_out_before_any_packet_goes_twice_and_then_from_the_start() {
    let (mut send, id, packets) = block("reed-solomon", 200, 0);
    // Only the third packet arrives.
    for taken in &packets {
        let arrived = index(200, taken.carried) == 2;
        send.on_resolved(taken.carried, 0, arrived);
    }
    send.add_due(Time::ZERO, id, 60, Duration::ZERO);
    for expected in 200..CODEWORD {
        let taken = next(&mut send, id);
        assert_eq!(index(200, taken.carried), u64::from(expected));
        send.on_resolved(taken.carried, 0, false);
    }
    // The codeword is used up: packets are sent again from index 0 on, except those that are known
    // to have arrived.
    let again: Vec<u64> = (0..5).map(|_| index(200, next(&mut send, id).carried)).collect();
    assert_eq!(again, [0, 1, 3, 4, 5]);
    assert_eq!(send.totals().wraps, 1);
}

#[test]
fn a_packet_that_comes_twice_counts_once_at_either_end() {
    let (mut send, id, packets) = block("reed-solomon", 6, 1);
    let repair = next(&mut send, id);
    let mut receiver = receiver();
    assert_eq!(receive(&mut send, &mut receiver, &packets[1]), Arrival::New);
    assert_eq!(receive(&mut send, &mut receiver, &packets[1]), Arrival::Redundant);
    assert_eq!(receive(&mut send, &mut receiver, &repair), Arrival::New);
    assert_eq!(receive(&mut send, &mut receiver, &repair), Arrival::Redundant);
    // The sender counts distinct packets of the block, whichever copy is acknowledged.
    send.on_sent(packets[1].carried, 1);
    for slot in [0, 1] {
        send.on_resolved(packets[1].carried, slot, true);
        assert_eq!(send.views()[0].received, 1);
    }
}

#[test]
fn the_alternative_sends_exactly_what_was_lost() {
    let (mut send, id, packets) = block("none", 9, 0);
    for taken in &packets {
        let lost = [2, 5].contains(&index(9, taken.carried));
        send.on_resolved(taken.carried, 0, !lost);
        if lost {
            send.make_due(taken.carried);
        }
    }
    assert_eq!([0, 0].map(|_| index(9, next(&mut send, id).carried)), [2, 5]);
    assert!(send.take(Work::Block(id), 0).is_none());
}

#[test]
fn a_codeword_ends_with_its_255th_packet() {
    for (sources, repairs) in [(1, CODEWORD - 1), (200, 55), (255, 0)] {
        let (mut send, id, _) = block("reed-solomon", sources, u16::MAX);
        assert_eq!(send.views()[0].proactive_left, repairs);
        for key in 0..repairs {
            assert_eq!(next(&mut send, id).carried, Carried::Repair(id, key.into()));
        }
        assert_eq!(send.views()[0].sources + send.views()[0].repairs, CODEWORD);
    }
}
