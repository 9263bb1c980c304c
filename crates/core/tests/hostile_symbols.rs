//! Tests with a peer that has valid keys and chooses each of the codes. It violates the rules of
//! the code, or follows them without ever completing a block. The connection must close with
//! `CODING`, or drop the symbols and continue.

use anabranch_core::config::TransportConfig;
use anabranch_core::testing::{Rogue, written};
use anabranch_core::wire::{
    CloseCode, RepairFrame, SourceFrame, StreamId, SymbolFrame, TransportParameters,
};
use anabranch_policy::view::{SymbolId, SymbolSpace, TrafficClass};
use core::time::Duration;

const CREDIT: u64 = 300;
/// Length in bytes of the longest agreed packet and of the longest accepted symbol.
const LONGEST: usize = 1200;
/// Block codes, and the number of keys left in a block of 10 sources.
const BLOCK_CODES: [(&str, u32); 4] = [
    ("reed-solomon", 255 - 10),
    ("random-linear", (1 << 30) - 1 - 10),
    ("lt", (1 << 30) - 1 - 10),
    ("raptorq", (1 << 24) - 10),
];
const SLIDING: &str = "sliding-window";

fn rogue_with(code: &str) -> Rogue {
    let transport = TransportConfig {
        receive_symbols: CREDIT,
        max_datagram: LONGEST as u16,
        mtu_limit: None,
        ..TransportConfig::default()
    };
    let parameters = TransportParameters {
        codes: Some(code.to_owned()),
        ..TransportConfig::default().parameters("fmtcp")
    };
    Rogue::connect(transport, "fmtcp", &parameters)
}

fn source(id: u64, payload: &[u8]) -> Vec<u8> {
    let frame = SourceFrame { symbol: SymbolId(id), floor: SymbolId(0), payload, last: false };
    written(|writer| frame.encode(writer).unwrap())
}

/// A SYMBOL frame with bytes of the first stream.
fn stream(id: u64, offset: u64, data: &[u8]) -> Vec<u8> {
    let frame = SymbolFrame::Stream { stream: StreamId(0), offset, fin: false, data };
    source(id, &written(|writer| frame.encode(writer).unwrap()))
}

fn repair(first: u64, count: u16, key: u32, payload: &[u8]) -> Vec<u8> {
    let (first, floor) = (SymbolId(first), SymbolId(0));
    let frame = RepairFrame { first, floor, count, key, payload };
    written(|writer| frame.encode(writer).unwrap())
}

/// Checks that the last of these packets closes the connection, and none before it.
fn closes(code: &str, packets: &[Vec<u8>]) {
    let mut rogue = rogue_with(code);
    for (index, frames) in packets.iter().enumerate() {
        assert_eq!(rogue.closed(), None, "{code}: closed before packet {index}");
        rogue.send(0, frames);
    }
    let reason = rogue.closed().map(|reason| (reason.code, reason.by_peer));
    assert_eq!(reason, Some((CloseCode::CODING, false)), "{code}: {packets:x?}");
}

/// Checks that none of these packets delivers data or closes the connection, and that the
/// connection still works afterwards.
fn are_dropped(code: &str, packets: impl Iterator<Item = Vec<u8>>) {
    let mut rogue = rogue_with(code);
    for frames in packets {
        rogue.send(0, &frames);
        assert_eq!(rogue.closed(), None, "{code}: {frames:x?}");
    }
    assert_eq!(rogue.connection().unwrap().stats().decoded, 0, "{code}");
    still_works(&mut rogue);
}

/// Checks that the first symbol of the stream is delivered at once.
fn still_works(rogue: &mut Rogue) {
    rogue.send(0, &stream(0, 0, b"goes on"));
    let mut buffer = [0; 20];
    let outcome = rogue.connection().unwrap().read(StreamId(0), &mut buffer).unwrap();
    assert_eq!(buffer[..outcome.n], *b"goes on");
}

fn all_codes() -> impl Iterator<Item = &'static str> {
    BLOCK_CODES.into_iter().map(|(code, _)| code).chain([SLIDING])
}

#[test]
fn symbols_out_of_reach_close() {
    for code in all_codes() {
        closes(code, &[source(CREDIT - 1, &[0]), source(CREDIT, &[0])]);
        closes(code, &[source(SymbolSpace::SYMBOLS - 1, &[0])]);
        closes(code, &[repair(CREDIT - 9, 9, 0, &[1]), repair(CREDIT - 9, 10, 0, &[1])]);
        closes(code, &[repair(SymbolSpace::SYMBOLS - 11, 10, 0, &[1])]);
    }
}

#[test]
fn keys_and_coverages_beyond_the_code_close() {
    for (code, keys) in BLOCK_CODES {
        closes(code, &[repair(0, 10, keys - 1, &[1]), repair(0, 10, keys, &[1])]);
    }
    closes(SLIDING, &[repair(0, 10, (1 << 30) - 12, &[1]), repair(0, 10, (1 << 30) - 11, &[1])]);
    closes(SLIDING, &[repair(0, 255, 0, &[1]), repair(0, 256, 0, &[1])]);
    closes("reed-solomon", &[repair(0, 254, 0, &[1]), repair(0, 256, 0, &[1])]);
    // RaptorQ's blocks may be longer than the credit allows.
    closes("raptorq", &[repair(0, 1017, 0, &[1])]);
    closes("lt", &[repair(0, 513, 0, &[1])]);
}

#[test]
fn symbols_of_wrong_size_close() {
    let long = [0; LONGEST + 1];
    for code in all_codes() {
        closes(code, &[source(0, &long)]);
        closes(code, &[repair(0, 10, 0, &long)]);
        closes(code, &[repair(0, 10, 0, &[])]);
    }
    for (code, _) in BLOCK_CODES {
        closes(code, &[repair(0, 10, 0, &[1; 9]), repair(0, 10, 1, &[1; 8])]);
    }
}

/// Two repairs whose blocks contradict each other.
#[test]
fn blocks_that_contradict_each_other_close() {
    for (code, _) in BLOCK_CODES {
        closes(code, &[repair(5, 10, 0, &[1; 9]), repair(0, 10, 0, &[1; 9])]);
        closes(code, &[repair(5, 10, 0, &[1; 9]), repair(5, 11, 0, &[1; 9])]);
        closes(code, &[repair(5, 10, 0, &[1; 9]), repair(7, 2, 0, &[1; 9])]);
    }
}

/// A peer that announces no code that this side knows must not send repairs.
#[test]
fn repairs_of_no_known_code_close() {
    closes("fountain-of-youth", &[source(1, &[0]), repair(0, 1, 0, &[1])]);
}

/// The peer omits one symbol of every block, and then sends the same symbols repeatedly.
#[test]
fn blocks_that_never_complete_are_waited_for_and_do_no_harm() {
    for (code, _) in BLOCK_CODES {
        let blocks = || (0..14).map(|block| 1 + 20 * block);
        let almost = (0..19).flat_map(move |key| blocks().map(move |first| (first, key)));
        let packets = almost.cycle().take(5000);
        are_dropped(code, packets.map(|(first, key)| repair(first, 20, key, &[7; 30])));
    }
    let packets = (0..5000_u64).map(|n| repair(1 + n % 40, 200, (n % 200) as u32, &[7; 30]));
    are_dropped(SLIDING, packets);
}

/// Repairs of delivered blocks are neither stored nor decoded.
#[test]
fn repairs_of_what_is_there_are_dropped() {
    for code in all_codes() {
        let mut rogue = rogue_with(code);
        let mut offset = 0;
        for id in 0..40 {
            rogue.send(0, &stream(id, offset, &[id as u8; 10]));
            offset += 10;
        }
        for key in 0..200 {
            rogue.send(0, &repair(20 * u64::from(key % 2), 20, key, &[9; 30]));
        }
        assert_eq!(rogue.closed(), None, "{code}");
        let connection = rogue.connection().unwrap();
        assert_eq!(connection.stats().decoded, 0, "{code}");
        let mut buffer = vec![0; 1000];
        assert_eq!(connection.read(StreamId(0), &mut buffer).unwrap().n, 400, "{code}");
    }
}

/// A symbol decoded from false repairs is treated like a source symbol with the same content: it
/// closes the connection if it does not parse.
#[test]
fn lies_that_decode_are_judged_as_symbols_are() {
    for code in all_codes() {
        let mut rogue = rogue_with(code);
        for key in 0..60 {
            rogue.send(0, &repair(0, 8, key, &[key as u8 | 1; 30]));
        }
        let reason = rogue.closed().expect("frames of noise do not parse");
        assert!(!reason.by_peer && reason.code == CloseCode::FRAME_ENCODING, "{code}: {reason:?}");
    }
}

/// A sender whose peer acknowledges nothing sends one window and then probes at increasing
/// intervals until it gives up.
#[test]
fn a_peer_that_never_acknowledges_is_given_up() {
    for profile in ["fmtcp", "anabranch"] {
        for code in ["raptorq", SLIDING] {
            let parameters = TransportParameters {
                codes: Some(code.to_owned()),
                ..TransportConfig::default().parameters(profile)
            };
            let transport = TransportConfig {
                idle_timeout: Some(Duration::from_secs(10)),
                ..TransportConfig::default()
            };
            let mut rogue = Rogue::connect(transport, profile, &parameters);
            let connection = rogue.connection().unwrap();
            let id = connection.open_stream(TrafficClass::Bulk).unwrap();
            connection.write(id, &[5; 100_000]).unwrap();
            rogue.listen();
            let first = rogue.connection().unwrap().stats().sent.sources;
            assert!((1..=20).contains(&first), "{profile}: {first} symbols at once");
            for _ in 0..200 {
                rogue.advance(Duration::from_millis(100));
                rogue.listen();
                while rogue.take().is_some() {}
            }
            let packets =
                rogue.traffic().values().map(|all| all.from_victim.datagrams).sum::<u64>();
            assert!(packets < 80, "{profile}, {code}: {packets} packets for nothing");
            assert!(rogue.connection().is_none(), "{profile}, {code}: kept for 20 s");
        }
    }
}
