//! Tests with a peer that has valid keys and violates the protocol. The connection must close with
//! the right code, or drop the frames; memory must stay bounded.

use anabranch_core::config::TransportConfig;
use anabranch_core::testing::{Heard, Rogue, written};
use anabranch_core::wire::{
    AckHeader, CloseCode, ControlFrame, Frame, Frames, PathUse, RankEntry, RankFrame, RepairFrame,
    SourceFrame, StreamId, SymbolFrame,
};
use anabranch_policy::view::{PathState, SymbolId, SymbolSpace, TrafficClass};
use anabranch_types::PathId;
use core::time::Duration;

const CREDIT: u64 = 100;

fn transport() -> TransportConfig {
    let mut transport = TransportConfig { receive_symbols: CREDIT, ..TransportConfig::default() };
    transport.streams.max_stream_data = 1000;
    transport.streams.max_data = 1500;
    transport.streams.max_streams = 2;
    transport
}

fn rogue() -> Rogue {
    let parameters = TransportConfig::default().parameters("anabranch");
    Rogue::connect(transport(), "anabranch", &parameters)
}

fn control(frame: ControlFrame) -> Vec<u8> {
    written(|writer| frame.encode(writer).unwrap())
}

fn ack(path: u32, range: core::ops::RangeInclusive<u64>) -> Vec<u8> {
    let header = AckHeader { path: PathId(path), ..AckHeader::default() };
    written(|writer| {
        header.encode([range], writer).unwrap();
    })
}

fn source(id: u64, payload: &[u8]) -> Vec<u8> {
    let frame = SourceFrame { symbol: SymbolId(id), floor: SymbolId(0), payload, last: false };
    written(|writer| frame.encode(writer).unwrap())
}

fn repair(first: u64, count: u16, key: u32, payload: &[u8]) -> Vec<u8> {
    let (first, floor) = (SymbolId(first), SymbolId(0));
    let frame = RepairFrame { first, floor, count, key, payload };
    written(|writer| frame.encode(writer).unwrap())
}

fn stream(id: u64, stream: u64, offset: u64, fin: bool, data: &[u8]) -> Vec<u8> {
    let frame = SymbolFrame::Stream { stream: StreamId(stream), offset, fin, data };
    source(id, &written(|writer| frame.encode(writer).unwrap()))
}

/// Sends packets of one frame each. The last must close the connection with `code` and cause a
/// CLOSE frame to the peer.
fn closes(packets: &[Vec<u8>], code: CloseCode) {
    let mut rogue = rogue();
    for (index, frames) in packets.iter().enumerate() {
        assert_eq!(rogue.closed(), None, "closed before packet {index}");
        rogue.send(0, frames);
    }
    let reason = rogue.closed().expect("the connection is closed").clone();
    assert_eq!((reason.code, reason.by_peer), (code, false), "{reason:?}");
    rogue.listen();
    let mut told = false;
    while let Some(Heard { frames, .. }) = rogue.take() {
        told |= Frames::new(&frames)
            .any(|frame| matches!(frame, Ok(Frame::Close(close)) if close.code == code));
    }
    assert!(told, "the peer is told");
    rogue.advance(Duration::from_secs(2));
    assert!(rogue.connection().is_none(), "nothing is kept of it");
}

#[test]
fn acknowledging_what_was_never_sent_closes() {
    closes(&[ack(0, 0..=1_000_000)], CloseCode::PROTOCOL_VIOLATION);
    closes(&[ack(0, 1 << 61..=(1 << 62) - 1)], CloseCode::PROTOCOL_VIOLATION);
}

#[test]
fn symbols_beyond_the_credit_close() {
    closes(&[source(CREDIT - 1, &[0]), source(CREDIT, &[0])], CloseCode::CODING);
    closes(&[source(SymbolSpace::SYMBOLS - 1, &[0])], CloseCode::CODING);
    closes(&[repair(CREDIT - 3, 4, 0, &[1])], CloseCode::CODING);
}

#[test]
fn repairs_that_contradict_close() {
    closes(&[repair(0, 10, 0, &[1; 9]), repair(0, 10, 1, &[1; 8])], CloseCode::CODING);
    closes(&[repair(0, 10, 0, &[1; 9]), repair(5, 10, 0, &[1; 9])], CloseCode::CODING);
    closes(&[repair(0, 10, 0, &[1; 9]), repair(2, 3, 0, &[1; 9])], CloseCode::CODING);
    closes(&[repair(0, 10, 246, &[1; 9])], CloseCode::CODING);
    closes(&[repair(0, 300, 0, &[1; 9])], CloseCode::CODING);
    closes(&[repair(0, 10, 0, &[])], CloseCode::CODING);
}

#[test]
fn packets_of_more_frames_than_they_may_hold_close() {
    let code = CloseCode::FRAME_ENCODING;
    // A run of PADDING counts as one frame.
    let fullest = [vec![0x01; 127], vec![0; 100]].concat();
    closes(&[fullest.clone(), vec![0x01; 128], [fullest, vec![0x01]].concat()], code);
    closes(
        &[
            (0..8).flat_map(|key| repair(0, 40, key, &[1])).collect(),
            repair(0, 40, 20, &[1]),
            (0..9).flat_map(|key| repair(0, 40, key, &[1])).collect(),
        ],
        code,
    );
    let rank = written(|writer| {
        RankFrame::encode_entries(SymbolId(0), [], writer).unwrap();
    });
    closes(&[rank.clone(), rank.repeat(2)], code);
    closes(&[ack(0, 0..=0), ack(0, 0..=0).repeat(2)], code);
}

/// The payload of a symbol of `length` bytes: `frames` empty datagrams, each encoded as `datagram`, and padding.
fn crowded(datagram: [u8; 2], frames: usize, length: usize) -> Vec<u8> {
    let mut payload = datagram.repeat(frames);
    payload.resize(length, 0);
    payload
}

#[test]
fn symbols_of_more_frames_than_their_length_is_worth_close() {
    let code = CloseCode::FRAME_ENCODING;
    for (most, length) in [(1, 31), (2, 32), (2, 63), (3, 64), (32, 1023), (33, 1024)] {
        let symbol = |id: u64, frames: usize| source(id, &crowded([0x22, 0], frames, length));
        closes(&[symbol(0, most), symbol(1, most + 1)], code);
        // The limit also holds for decoded symbols. This repair is the symbol divided by 2.
        let half = |id: u64, frames: usize| repair(id, 1, 253, &crowded([0x11, 0], frames, length));
        closes(&[half(0, most), half(1, most + 1)], code);
    }
}

#[test]
fn packets_of_more_symbols_than_they_may_hold_close() {
    let symbols = |ids: core::ops::Range<u64>| ids.flat_map(|id| source(id, &[])).collect();
    closes(&[symbols(0..16), symbols(16..33)], CloseCode::FRAME_ENCODING);
}

#[test]
fn frames_that_do_not_parse_close() {
    closes(&[vec![0x7f]], CloseCode::FRAME_ENCODING);
    closes(&[vec![0x02, 0x00]], CloseCode::FRAME_ENCODING);
    // A symbol frame outside a symbol, and a packet frame inside one.
    closes(&[vec![0x22, 1, 0]], CloseCode::FRAME_ENCODING);
    let inner = control(ControlFrame::MaxData { limit: 9 });
    let mut rogue = rogue();
    rogue.send(0, &source(0, &inner));
    assert!(rogue.closed().is_some());
}

#[test]
fn every_truncated_frame_closes_or_says_less() {
    let whole = [
        ack(0, 0..=0),
        control(ControlFrame::MaxStreamData { stream: StreamId(1), limit: 1 << 40 }),
        control(ControlFrame::PathStatus { path: PathId(0), sequence: 9, status: PathUse::Backup }),
        stream(0, 0, 0, false, b"hello"),
        repair(0, 4, 0, b"hello"),
    ];
    for frame in whole {
        for length in 1..frame.len() {
            let mut rogue = rogue();
            rogue.send(0, &frame[..length]);
            let code = rogue.closed().map(|reason| reason.code);
            assert_eq!(code, Some(CloseCode::FRAME_ENCODING), "{:x?}", &frame[..length]);
        }
    }
}

#[test]
fn stream_rules_close_with_their_own_codes() {
    closes(&[stream(0, 0, 1000, false, b"x")], CloseCode::FLOW_CONTROL);
    let both = [stream(0, 0, 0, false, &[1; 1000]), stream(1, 4, 0, false, &[1; 501])];
    closes(&both, CloseCode::FLOW_CONTROL);
    closes(&[stream(0, 8, 0, false, b"x")], CloseCode::STREAM_LIMIT);
    let ends = [stream(0, 0, 0, true, b"end"), stream(1, 0, 0, true, b"later end")];
    closes(&ends, CloseCode::FINAL_SIZE);
    closes(&[stream(0, 1, 0, false, b"x")], CloseCode::STREAM_STATE);
}

#[test]
fn lies_about_rank_do_not_reach_beyond_what_was_sent() {
    let mut rogue = rogue();
    let connection = rogue.connection().unwrap();
    let id = connection.open_stream(TrafficClass::Bulk).unwrap();
    connection.write(id, &[5; 50_000]).unwrap();
    rogue.listen();
    for first in [0, 1, 7, SymbolSpace::SYMBOLS - 1] {
        let entries = [0, 1, 300, 1 << 20].map(|offset| RankEntry {
            first: SymbolId((first + offset).min(SymbolSpace::SYMBOLS - 1)),
            missing: u16::MAX,
        });
        rogue.send(
            0,
            &written(|writer| {
                RankFrame::encode_entries(SymbolId(first), entries, writer).unwrap();
            }),
        );
        rogue.advance(Duration::from_millis(100));
    }
    assert_eq!(rogue.closed(), None);
    // Symbols that the peer falsely claims to have are not sent again, and the rest of the stream
    // continues.
    let before = rogue.connection().unwrap().stats().sent.sources;
    assert_eq!(rogue.connection().unwrap().write(id, &[6; 5000]), Ok(5000));
    for _ in 0..10 {
        rogue.acknowledge(0);
        rogue.advance(Duration::from_millis(50));
    }
    assert!(rogue.connection().unwrap().stats().sent.sources > before);
}

#[test]
fn path_ids_out_of_reach_are_dropped() {
    let mut rogue = rogue();
    for path in [200, 250, 9] {
        rogue.send(path, &[0x01]);
    }
    let stats = rogue.connection().unwrap().stats();
    // The rogue has no connection ids for these paths.
    assert_eq!((stats.paths.len(), stats.dropped.unopened), (1, 3));
    // Paths open up to the limit and no further, regardless of the order of packets.
    for path in (1..=8).rev().chain(1..30) {
        rogue.send(path, &[0x01]);
    }
    let stats = rogue.connection().unwrap().stats();
    assert_eq!(stats.paths.len(), usize::from(transport().max_paths));
    assert_eq!(rogue.closed(), None);
}

#[test]
fn challenges_in_a_flood_are_answered_sparingly() {
    let mut rogue = rogue();
    let many: Vec<u8> = (0..100_u64)
        .flat_map(|n| control(ControlFrame::PathChallenge { data: n.to_be_bytes() }))
        .collect();
    for _ in 0..100 {
        rogue.send(0, &many);
    }
    rogue.listen();
    let mut answers = 0;
    while let Some(Heard { frames, .. }) = rogue.take() {
        let responses = Frames::new(&frames)
            .filter(|frame| matches!(frame, Ok(Frame::Control(ControlFrame::PathResponse { .. }))));
        answers += responses.count();
    }
    assert!((1..=8).contains(&answers), "{answers} answers");
    assert_eq!(rogue.closed(), None);
}

/// Responses to challenges that were never sent prove nothing.
#[test]
fn an_address_is_not_proven_by_guessing() {
    let mut rogue = rogue();
    rogue.send(3, &[0x01]);
    for guess in 0..1000_u64 {
        rogue.send(3, &control(ControlFrame::PathResponse { data: guess.to_be_bytes() }));
    }
    let stats = rogue.connection().unwrap().stats();
    let path = stats.paths.iter().find(|path| path.id == PathId(3)).unwrap();
    assert_eq!(path.state, PathState::Validating);
}

/// Until its address is proven, a path is sent at most three times the bytes received from it (RFC
/// 9000 §8.1).
#[test]
fn unproven_addresses_are_not_flooded() {
    let mut rogue = rogue();
    let connection = rogue.connection().unwrap();
    let id = connection.open_stream(TrafficClass::Bulk).unwrap();
    connection.write(id, &[5; 100_000]).unwrap();
    rogue.send(5, &[0x01]);
    rogue.advance(Duration::from_secs(20));
    let stats = rogue.connection().unwrap().stats();
    for path in stats.paths.iter().filter(|path| path.state == PathState::Validating) {
        let counters = path.counters;
        assert!(counters.sent_bytes <= 3 * counters.received_bytes, "{counters:?}");
    }
    assert_eq!(stats.paths[1].state, PathState::Validating);
}

/// Each frame is repeated a hundred thousand times, and the victim must send few answers.
#[test]
fn floods_of_control_frames_cause_no_flood() {
    let frames = [
        control(ControlFrame::MaxData { limit: 1 << 40 }),
        control(ControlFrame::MaxStreams { count: 1 << 40 }),
        control(ControlFrame::MaxSymbols { space: SymbolSpace::Main, limit: 1 << 40 }),
        control(ControlFrame::MaxStreamData { stream: StreamId(0), limit: 1 << 40 }),
        control(ControlFrame::Abandon { first: SymbolId(0), count: 1 << 40 }),
        control(ControlFrame::AckFloor { path: PathId(0), floor: 1 << 40 }),
        control(ControlFrame::PathAbandon { path: PathId(0), reason: 1 }),
        control(ControlFrame::StopSending { stream: StreamId(0), code: 1 }),
    ];
    let mut rogue = rogue();
    let id = rogue.connection().unwrap().open_stream(TrafficClass::Bulk).unwrap();
    rogue.send(0, &stream(0, 0, 0, false, b"open"));
    for round in 0..200 {
        let packet: Vec<u8> = frames[round % frames.len()].repeat(60);
        rogue.send(0, &packet);
    }
    let answers = rogue.listen();
    assert!(answers < 20, "{answers} packets in answer");
    assert_eq!(rogue.closed(), None);
    assert!(rogue.connection().unwrap().write(id, &[1; 100]).is_ok());
}

/// Packet numbers jump far ahead and then far back. The replay window must hold, so that no packet
/// is processed twice.
#[test]
fn packet_numbers_may_jump_but_not_repeat() {
    let mut rogue = rogue();
    for number in [1 << 20, (1 << 20) + 1, 1 << 31] {
        rogue.send_numbered(0, number, &[0x01]);
    }
    let dropped = |rogue: &mut Rogue| rogue.connection().unwrap().stats().dropped.unopened;
    assert_eq!(dropped(&mut rogue), 0);
    for number in [1 << 31, (1 << 31) - 8192, 5] {
        let before = dropped(&mut rogue);
        rogue.send_numbered(0, number, &[0x7f]);
        assert_eq!(dropped(&mut rogue), before + 1, "number {number}");
    }
    assert_eq!(rogue.closed(), None);
}

#[test]
fn an_initiator_that_announces_addresses_is_closed() {
    let frame = control(ControlFrame::AddAddress { address: ([192, 0, 2, 1], 443).into() });
    closes(&[frame], CloseCode::PROTOCOL_VIOLATION);
}

/// A peer that acknowledges packets before they arrive, to make the sender faster, also
/// acknowledges skipped numbers. A peer that acknowledges only received packets is not affected.
#[test]
fn acknowledging_a_number_that_was_left_out_closes() {
    for blind in [false, true] {
        let mut rogue = rogue();
        let connection = rogue.connection().unwrap();
        let id = connection.open_stream(TrafficClass::Bulk).unwrap();
        for round in 0..500 {
            let Some(connection) = rogue.connection() else { break };
            let _ = connection.write(id, &[5; 1000]);
            rogue.listen();
            if blind {
                rogue.acknowledge_blindly(0);
            } else {
                rogue.acknowledge(0);
            }
            rogue.send(0, &control(ControlFrame::MaxData { limit: 2000 * (round + 1) }));
            let limit = 2000 * (round + 1);
            rogue.send(0, &control(ControlFrame::MaxStreamData { stream: id, limit }));
            rogue.advance(Duration::from_millis(20));
        }
        let code = rogue.closed().map(|reason| reason.code);
        assert_eq!(code, blind.then_some(CloseCode::OPTIMISTIC_ACK), "blind: {blind}");
    }
}
