//! Tests with a peer that has valid keys and uses up all its credit. The memory of its connection
//! must stay below [`TransportConfig::most_memory`].

mod allocator;

use allocator::{LIVE, MOST};
use anabranch_core::config::TransportConfig;
use anabranch_core::endpoint::EndpointConfig;
use anabranch_core::profiles::Profile;
use anabranch_core::testing::{Heard, Rogue, rogue_address, written};
use anabranch_core::wire::{
    AckHeader, CloseCode, ControlFrame, Frame, Frames, RepairFrame, SourceFrame, StreamId,
    SymbolFrame, SymbolWriter,
};
use anabranch_policy::view::{SymbolId, SymbolSpace, TrafficClass};
use anabranch_types::PathId;
use core::time::Duration;

const SYMBOLS: u64 = 400;
const STREAM_DATA: u64 = 256 << 10;
const STREAMS: u64 = 200;
/// Payload of the longest symbol that these tests send.
const PAYLOAD: usize = 1100;

/// Most bytes that a connection may use in addition to the memory that it reports.
const UNTOLD: i64 = 3_000_000;

/// Limits so small that a leak in any single place exceeds their sum.
fn transport() -> TransportConfig {
    let mut transport = TransportConfig {
        receive_symbols: SYMBOLS,
        send_symbols: 200,
        ..TransportConfig::default()
    };
    transport.streams.max_data = 1 << 20;
    transport.streams.max_stream_data = STREAM_DATA;
    transport.streams.max_streams = STREAMS;
    transport.streams.send_buffer = 4096;
    transport.streams.datagram_buffer = 8192;
    transport
}

/// Checks that the memory of a connection stays within the bound while its peer runs `abuse`.
fn measure(open: u64, abuse: impl FnOnce(&mut Abuser)) {
    measure_as("anabranch", None, open, abuse);
}

/// Version of [`measure`] for another profile and a peer that uses another code.
fn measure_as(profile: &str, code: Option<&str>, open: u64, abuse: impl FnOnce(&mut Abuser)) {
    let mut theirs = TransportConfig::default().parameters(profile);
    theirs.codes = code.map(str::to_owned);
    (theirs.max_data, theirs.max_stream_data) = (1 << 40, 1 << 40);
    (theirs.max_streams, theirs.max_symbols) = (1 << 20, 1 << 40);
    let before = LIVE.get();
    MOST.set(before);
    let rogue = Rogue::connect(transport(), profile, &theirs);
    let mut abuser = Abuser { rogue, next: 0, packets: 0, before, untold: 0 };
    abuse(&mut abuser);
    // `Connection::memory` does not count the tables of paths and the decoders' records of symbols.
    let untold = abuser.untold;
    assert!(untold < UNTOLD, "{untold} bytes of memory that the connection did not tell of");
    assert_eq!(abuser.rogue.closed(), None, "it keeps to the rules");
    let (most, bound) = (MOST.get() - before, transport().most_memory(open) as i64);
    println!("{most} bytes of {bound}, {untold} of them untold");
    assert!(most <= bound, "{most} bytes, and {bound} are the most");
}

/// A rogue and its progress.
struct Abuser {
    rogue: Rogue,
    /// The next symbol.
    next: u64,
    packets: u64,
    /// Bytes of memory in use before the connection existed.
    before: i64,
    /// Largest number of bytes used so far beyond the memory that the connection reports.
    untold: i64,
}

impl Abuser {
    fn send(&mut self, frame: &[u8]) {
        self.rogue.send(0, frame);
        self.packets += 1;
        if self.packets.is_multiple_of(50) {
            self.rest(Duration::from_millis(1));
        }
    }

    /// Advances the time and discards the packets that the victim sends.
    fn rest(&mut self, time: Duration) {
        self.rogue.advance(time);
        while self.rogue.take().is_some() {}
        let told = self.rogue.connection().map_or(0, |connection| connection.memory() as i64);
        self.untold = self.untold.max(LIVE.get() - self.before - told);
    }

    fn source(&mut self, id: u64, payload: &[u8]) {
        let floor = SymbolId(id.saturating_sub(50).min(self.next));
        let frame = SourceFrame { symbol: SymbolId(id), floor, payload, last: false };
        self.send(&written(|writer| frame.encode(writer).unwrap()));
    }

    fn repair(&mut self, first: u64, count: u16, key: u32) {
        let (first, floor, payload) = (SymbolId(first), SymbolId(0), &[0; PAYLOAD][..]);
        let frame = RepairFrame { first, floor, count, key, payload };
        self.send(&written(|writer| frame.encode(writer).unwrap()));
    }

    fn control(&mut self, frame: ControlFrame) {
        self.send(&written(|writer| frame.encode(writer).unwrap()));
    }

    /// Sends the next symbol with these pieces of a stream.
    fn pieces(&mut self, stream: StreamId, offsets: impl Iterator<Item = u64>, data: &[u8]) {
        let mut payload = [0; PAYLOAD];
        let mut writer = SymbolWriter::new(&mut payload);
        for offset in offsets {
            writer.write(&SymbolFrame::Stream { stream, offset, fin: false, data }).unwrap();
        }
        let length = writer.finish();
        self.source(self.next, &payload[..length]);
        self.next += 1;
    }

    /// Version of `read_unacknowledged` after which the peer acknowledges the victim's packets.
    fn read(&mut self, stream: StreamId) -> usize {
        let count = self.read_unacknowledged(stream);
        self.rogue.acknowledge(0);
        self.rest(Duration::from_millis(1));
        count
    }

    /// Reads all available data of a stream.
    fn read_unacknowledged(&mut self, stream: StreamId) -> usize {
        let (mut buffer, mut count) = (vec![0; 4096], 0);
        let connection = self.rogue.connection().unwrap();
        while let Ok(outcome) = connection.read(stream, &mut buffer)
            && outcome.n > 0
        {
            count += outcome.n;
        }
        count
    }
}

fn stream_of_peer(ordinal: u64) -> StreamId {
    StreamId(4 * ordinal)
}

#[test]
fn symbols_with_a_hole_before_each() {
    measure(0, |abuser| {
        for id in (1..SYMBOLS).step_by(2) {
            abuser.source(id, &[0; PAYLOAD]);
        }
    });
}

/// Long blocks with one repair fewer than symbols, and then short blocks in the same lists.
#[test]
fn repairs_for_blocks_of_every_length() {
    measure(0, |abuser| {
        for count in [100_u16, 20, 2] {
            let end = abuser.next + SYMBOLS / 2;
            let firsts: Vec<u64> =
                (abuser.next..end - u64::from(count)).step_by(count.into()).collect();
            for key in 0..count - 1 {
                for first in &firsts {
                    abuser.repair(*first, count, key.into());
                }
            }
            for id in abuser.next..end {
                abuser.next = id;
                abuser.source(id, &[0; PAYLOAD]);
            }
            abuser.next = end;
            abuser.rest(Duration::from_millis(10));
        }
    });
}

/// With each code, ever shorter blocks with one repair fewer than symbols, and then all sources.
#[test]
fn repairs_of_every_code_that_do_not_suffice() {
    for code in ["random-linear", "lt", "raptorq"] {
        measure_as("fmtcp", Some(code), 0, |abuser| {
            for count in [190_u16, 30, 1] {
                for key in 0..count - 1 {
                    for first in (1..SYMBOLS / 2 - u64::from(count)).step_by(count.into()) {
                        abuser.repair(abuser.next + first, count, key.into());
                    }
                }
                let end = abuser.next + SYMBOLS / 2;
                for id in abuser.next..end {
                    abuser.next = id;
                    abuser.source(id, &[0; PAYLOAD]);
                }
                abuser.next = end;
                abuser.rest(Duration::from_millis(10));
            }
        });
    }
}

/// Sliding repairs need no more memory once they determine all symbols within the credit.
#[test]
fn sliding_repairs_without_end() {
    let flood = |abuser: &mut Abuser, keys: core::ops::Range<u32>| {
        for key in keys {
            let first = 1 + u64::from(key) * 7 % (SYMBOLS - 256);
            abuser.repair(first, 100 + (key % 155) as u16, key);
        }
        LIVE.get()
    };
    measure_as("fmtcp", Some("sliding-window"), 0, |abuser| {
        let before = flood(abuser, 0..1000);
        let growth = flood(abuser, 1000..6000) - before;
        assert!(growth < 200_000, "{growth} bytes more");
    });
}

/// The peer uses up the credit of one stream after the other and sends the end of each first.
#[test]
fn one_stream_after_the_other_to_its_limit() {
    measure(0, |abuser| {
        for stream in (0..STREAMS).map(stream_of_peer) {
            abuser.pieces(stream, [STREAM_DATA - 1].into_iter(), &[1]);
            for offset in (0..STREAM_DATA).step_by(1000) {
                let length = (STREAM_DATA - offset).min(1000) as usize;
                abuser.pieces(stream, [offset].into_iter(), &[2; PAYLOAD][..length]);
            }
            assert_eq!(abuser.read(stream), STREAM_DATA as usize);
        }
    });
}

/// The peer sends every second byte of streams and then the rest.
#[test]
fn streams_in_pieces() {
    const EACH: u64 = 40_000;
    measure(0, |abuser| {
        for stream in (0..STREAMS).step_by(10).map(stream_of_peer) {
            for part in 0..EACH / 50 {
                let offsets = (0..25).map(|n| part * 50 + 2 * n + 1);
                abuser.pieces(stream, offsets, &[1]);
            }
            for part in 0..EACH / 1000 {
                abuser.pieces(stream, [part * 1000].into_iter(), &[2; 1000]);
            }
            assert_eq!(abuser.read(stream), EACH as usize);
        }
    });
}

/// A connection that uses about half of the endpoint's memory is closed if that memory is short.
#[test]
fn a_peer_that_takes_more_than_its_share_loses_the_connection() {
    const BUDGET: u64 = 2 << 20;
    let mut config = EndpointConfig::new(Profile::named("anabranch").unwrap());
    (config.transport, config.memory) = (transport(), BUDGET);
    let mut theirs = TransportConfig::default().parameters("anabranch");
    theirs.max_symbols = 1 << 40;
    let before = LIVE.get();
    let rogue = Rogue::connect_to(config, &theirs);
    let mut abuser = Abuser { rogue, next: 0, packets: 0, before, untold: 0 };
    let mut grown = 0;
    for part in 0.. {
        let (stream, part) = (stream_of_peer(part % 4), part / 4);
        abuser.pieces(stream, [part * 1000].into_iter(), &[2; 1000]);
        if let Some(reason) = abuser.rogue.closed() {
            assert_eq!((reason.code, reason.by_peer), (CloseCode::MEMORY, false));
            break;
        }
        grown = abuser.rogue.connection().unwrap().memory();
    }
    assert!((BUDGET / 4..BUDGET / 2 + (600 << 10)).contains(&grown), "{grown} bytes");
    abuser.rest(Duration::from_secs(2));
    assert!(abuser.rogue.connection().is_none(), "it is forgotten");
    let left = LIVE.get() - before;
    assert!(left < 1 << 20, "{left} bytes are left");
}

#[test]
fn datagrams_that_nobody_reads() {
    measure(0, |abuser| {
        for length in [0, 1000, 1, 100] {
            for _ in 0..2000 {
                let payload = written(|writer| {
                    SymbolFrame::Datagram(&[3; 1000][..length]).encode(writer).unwrap();
                });
                abuser.source(abuser.next, &payload);
                abuser.next += 1;
            }
        }
    });
}

#[test]
fn control_frames_without_end() {
    measure(0, |abuser| {
        for round in 0..20_000_u64 {
            let stream = stream_of_peer(round % STREAMS);
            abuser.control(match round % 5 {
                0 => ControlFrame::PathChallenge { data: round.to_be_bytes() },
                1 => ControlFrame::StopSending { stream, code: round },
                2 => ControlFrame::MaxStreamData { stream, limit: round << 20 },
                3 => ControlFrame::MaxSymbols { space: SymbolSpace::Main, limit: round << 20 },
                _ => ControlFrame::Ping,
            });
            // Send a few packets on each path, each after a gap in the packet numbers.
            abuser.rogue.send_numbered(round as u32 % 10, 3 * round, &[0x01]);
        }
    });
}

/// Lets the application write as much as it may, on many streams and in datagrams.
fn write_all(abuser: &mut Abuser, streams: u64) {
    let connection = abuser.rogue.connection().unwrap();
    let class = |n| [TrafficClass::Bulk, TrafficClass::Interactive, TrafficClass::Live][n % 3];
    for n in 0..streams {
        let stream = StreamId(4 * n + 1);
        while connection.write(stream, &[7; 4096]).is_err() {
            connection.open_stream(class(n as usize)).unwrap();
        }
    }
    while (0..3).any(|n| connection.send_datagram(&[8; 900], class(n)).is_ok()) {}
}

#[test]
fn much_is_sent_and_nothing_acknowledged() {
    measure(100, |abuser| {
        for _ in 0..200 {
            write_all(abuser, 100);
            abuser.rest(Duration::from_millis(100));
        }
    });
}

/// The peer acknowledges every third packet. The window grows, and the other packets are lost.
#[test]
fn much_is_sent_and_a_part_of_it_acknowledged() {
    measure(100, acknowledge_a_third);
}

/// The sender creates repairs of many blocks at the same time.
#[test]
fn fountains_run_for_a_peer_that_acknowledges_a_part() {
    measure_as("fmtcp", None, 100, acknowledge_a_third);
    measure_as("fmtcp", None, 100, |abuser| {
        for _ in 0..200 {
            write_all(abuser, 100);
            abuser.rest(Duration::from_millis(100));
        }
    });
}

fn acknowledge_a_third(abuser: &mut Abuser) {
    for _ in 0..300 {
        write_all(abuser, 100);
        abuser.rogue.advance(Duration::from_millis(30));
        let received_at = abuser.rogue.now.as_micros() as u32;
        let header = AckHeader { path: PathId(0), received_at, ..AckHeader::default() };
        let mut numbers = Vec::new();
        while let Some(Heard { number, .. }) = abuser.rogue.take() {
            numbers.push(number);
        }
        let ranges =
            numbers.iter().rev().filter(|number| *number % 3 == 0).take(60).map(|n| *n..=*n);
        if numbers.iter().any(|number| number % 3 == 0) {
            abuser.send(&written(|writer| {
                header.encode(ranges, writer).unwrap();
            }));
        }
    }
}

/// The peer sends challenges and never acknowledges the answers. Neither the answers nor the
/// reports sent with them may accumulate.
#[test]
fn questions_without_end_whose_answers_are_not_acknowledged() {
    measure(0, |abuser| {
        let mut ask = |rounds: u64| {
            for round in 0..rounds {
                abuser.control(ControlFrame::PathChallenge { data: round.to_be_bytes() });
                abuser.rest(Duration::from_micros(100));
            }
            LIVE.get()
        };
        let before = ask(20_000);
        let growth = ask(100_000) - before;
        assert!(growth < 100_000, "{growth} bytes more");
    });
}

/// Control frames that the peer causes and never acknowledges must not accumulate: neither credit
/// for its streams nor resets of streams that it opens and stops.
#[test]
fn control_frames_that_are_never_acknowledged() {
    let mut theirs = TransportConfig::default().parameters("anabranch");
    theirs.max_symbols = 1 << 40;
    let mut ours = transport();
    ours.streams.max_stream_data = 64;
    let rogue = Rogue::connect(ours, "anabranch", &theirs);
    let mut abuser = Abuser { rogue, next: 0, packets: 0, before: LIVE.get(), untold: 0 };
    let (mut next, mut granted) = (0, STREAMS);
    let mut go = |rounds: u64| {
        for _ in 0..rounds {
            abuser.rogue.advance(Duration::from_millis(1));
            while let Some(heard) = abuser.rogue.take() {
                for frame in Frames::new(&heard.frames) {
                    if let Ok(Frame::Control(ControlFrame::MaxStreams { count })) = frame {
                        granted = granted.max(count);
                    }
                }
            }
            if next >= granted {
                abuser.control(ControlFrame::Ping);
                continue;
            }
            let stream = stream_of_peer(next);
            abuser.pieces(stream, [0].into_iter(), &[1; 60]);
            abuser.read_unacknowledged(stream);
            abuser.control(ControlFrame::ResetStream { stream, code: 0, final_size: 60 });
            abuser.control(ControlFrame::StopSending { stream, code: 0 });
            let _ = abuser.rogue.connection().unwrap().read(stream, &mut [0; 10]);
            next += 1;
        }
        LIVE.get()
    };
    let before = go(10_000);
    let growth = go(50_000) - before;
    println!("{growth} bytes more");
    assert!(growth < 600_000, "{growth} bytes more");
}

/// The peer abandons every second symbol, and then the others.
#[test]
fn symbols_given_up_one_by_one() {
    measure(0, |abuser| {
        for first in (1..SYMBOLS).step_by(2).chain((0..SYMBOLS).step_by(2)) {
            abuser.control(ControlFrame::Abandon { first: SymbolId(first), count: 1 });
        }
    });
}

/// Paths are opened, moved to further addresses, some of which are proven, and abandoned.
#[test]
fn paths_without_end_at_addresses_without_end() {
    let churn = |abuser: &mut Abuser, ids: core::ops::Range<u32>| {
        for id in ids {
            let before = ControlFrame::PathAbandon { path: PathId(id - 1), reason: 0 };
            abuser.rogue.send(id, &written(|writer| before.encode(writer).unwrap()));
            for from in 0..10 {
                abuser.rogue.send_from(id, rogue_address(40 + (id + from) % 5000), &[0x01]);
                abuser.rogue.advance(Duration::from_micros(200));
                while let Some(heard) = abuser.rogue.take() {
                    for data in heard.challenges() {
                        let answer = ControlFrame::PathResponse { data };
                        let answer = written(|writer| answer.encode(writer).unwrap());
                        abuser.rogue.send_from(heard.path.0, heard.remote, &answer);
                    }
                }
            }
        }
        LIVE.get()
    };
    measure(0, |abuser| {
        let before = churn(abuser, 1..500);
        let growth = churn(abuser, 500..3000) - before;
        // The rogue's own records of addresses and numbers grow as well.
        println!("{growth} bytes more");
        assert!(growth < 2_000_000, "{growth} bytes more");
    });
}

/// The peer opens and abandons a hundred thousand paths in a row. No state of them may remain,
/// neither connection ids nor anything else.
#[test]
fn a_hundred_thousand_paths_opened_and_abandoned() {
    let churn = |abuser: &mut Abuser, ids: core::ops::Range<u32>| {
        for id in ids {
            while abuser.rogue.supplied(id).is_none() {
                abuser.rest(Duration::from_millis(500));
                abuser.rogue.acknowledge(0);
            }
            abuser.rogue.supply(id);
            abuser.rogue.send(id, &[0x01]);
            abuser.control(ControlFrame::PathAbandon { path: PathId(id), reason: 0 });
            abuser.rogue.forget(id);
        }
        abuser.rest(Duration::from_secs(10));
        LIVE.get()
    };
    measure(0, |abuser| {
        let before = churn(abuser, 1..5000);
        let growth = churn(abuser, 5000..100_000) - before;
        println!("{growth} bytes more");
        assert!(growth < 50_000, "{growth} bytes more");
    });
}
