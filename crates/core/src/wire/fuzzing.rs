//! Bodies and seeds of the fuzz targets for the wire format. The tests run the bodies over the
//! committed corpora. A body panics if the code violates an invariant.

use anabranch_policy::view::{SymbolId, SymbolSpace};
use anabranch_types::PathId;

use super::codec::{MAX_VARINT, Writer};
use super::header::{connection_of, protect, sample, unprotect};
use super::*;

/// Checks three invariants. A header that decodes encodes to the same bytes. Masking twice restores
/// the packet. The expansion of a packet number keeps its low 32 bits.
pub fn header(data: &[u8]) {
    let _ = data.first().map(|first| PacketKind::of(*first));
    let _ = (connection_of(data), sample(data));
    let mut mask = [0; 6];
    for (byte, value) in mask.iter_mut().zip(data.iter().rev()) {
        *byte = *value;
    }
    let mut packet = data.to_vec();
    protect(&mut packet, mask);
    unprotect(&mut packet, mask);
    assert_eq!(packet, data);
    let Ok(header) = DataHeader::decode(data) else { return };
    let mut buffer = [0; HEADER_LEN];
    header.encode(&mut Writer::new(&mut buffer)).expect("a header fits");
    assert_eq!(buffer, data[..HEADER_LEN]);
    let expected = u64::from(header.connection.0) << 29;
    let number = expand_number(header.number, expected);
    assert_eq!(number as u32, header.number);
    assert!(number <= MAX_VARINT && number.abs_diff(expected.min(MAX_VARINT)) < 1 << 32);
}

/// Checks that frames that decode can be encoded, and that the result decodes to the same frames.
pub fn frames(data: &[u8]) {
    let mut buffer = vec![0; data.len() * 2 + 16];
    for frame in Frames::new(data) {
        let Ok(frame) = frame else { break };
        let mut writer = Writer::new(&mut buffer);
        frame.encode(&mut writer).expect("the shortest encoding fits where a longer one did");
        let mut again = Frames::new(writer.written());
        assert_eq!(again.next(), Some(Ok(frame)));
        assert_eq!(again.next(), None);
        if let Frame::Ack(ack) = frame {
            let mut below = None;
            for range in ack.ranges() {
                assert!(range.start() <= range.end() && below.is_none_or(|b| range.end() + 1 < b));
                below = Some(*range.start());
            }
        }
    }
    for frame in SymbolFrames::new(data) {
        let Ok(frame) = frame else { break };
        let mut writer = Writer::new(&mut buffer);
        frame.encode(&mut writer).expect("the shortest encoding fits where a longer one did");
        assert_eq!(writer.position(), frame.encoded_len());
        assert_eq!(SymbolFrames::new(writer.written()).next(), Some(Ok(frame)));
    }
}

/// Checks that parameters that decode can be encoded, and that the result decodes to the same
/// parameters.
pub fn transport_parameters(data: &[u8]) {
    if let Ok(parameters) = TransportParameters::decode(data) {
        assert_eq!(TransportParameters::decode(&parameters.encode()), Ok(parameters));
    }
}

/// One encoded frame of every type of packet frame.
pub fn specimens() -> Vec<Vec<u8>> {
    let path = PathId(3);
    let stream = StreamId(4);
    let source =
        SourceFrame { symbol: SymbolId(300), floor: SymbolId(290), payload: b"abc", last: false };
    let last = SourceFrame { last: true, ..source };
    let repair = RepairFrame {
        first: SymbolId(70_000),
        floor: SymbolId(69_999),
        count: 32,
        key: 5,
        payload: b"xyz",
    };
    let ack = AckHeader { path, received_at: 0x0102_0304, delay_us: 500, ect0: 9, ect1: 0, ce: 1 };
    let ranges = [1000..=1002, 990..=998, 5..=5];
    let entries = [(300, 2), (332, 400)]
        .map(|(first, missing)| RankEntry { first: SymbolId(first), missing });
    let close = CloseFrame { code: CloseCode(256), application: true, reason: "bye" };
    let control = [
        ControlFrame::AckFloor { path, floor: 980 },
        ControlFrame::Abandon { first: SymbolId(300), count: 64 },
        ControlFrame::MaxData { limit: 1 << 20 },
        ControlFrame::MaxStreamData { stream, limit: 1 << 14 },
        ControlFrame::MaxSymbols { space: SymbolSpace::Main, limit: 4096 },
        ControlFrame::MaxStreams { count: 100 },
        ControlFrame::PathChallenge { data: *b"question" },
        ControlFrame::PathResponse { data: *b"question" },
        ControlFrame::PathStatus { path, sequence: 7, status: PathUse::Backup },
        ControlFrame::PathAbandon { path, reason: 13 },
        ControlFrame::ResetStream { stream, code: 9, final_size: 1 << 40 },
        ControlFrame::StopSending { stream, code: 10 },
        ControlFrame::AddAddress { address: ([192, 0, 2, 7], 4433).into() },
        ControlFrame::AddAddress { address: ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], 4433).into() },
        ControlFrame::Rekey { epoch: 1, message: [0x5a; 48] },
        ControlFrame::NewConnectionId { path, id: ConnectionId(0xdead_beef) },
    ];
    let mut out = vec![
        written(|writer| Frame::Padding { length: 3 }.encode(writer)),
        written(|writer| ControlFrame::Ping.encode(writer)),
        written(|writer| ack.encode(ranges.clone(), writer).map(|_| ())),
        written(|writer| RankFrame::encode_entries(SymbolId(300), entries, writer).map(|_| ())),
        written(|writer| source.encode(writer)),
        written(|writer| source.encode_to_end(writer)),
        written(|writer| last.encode(writer)),
        written(|writer| last.encode_to_end(writer)),
        written(|writer| repair.encode(writer)),
        written(|writer| repair.encode_to_end(writer)),
        written(|writer| close.encode(writer)),
    ];
    out.extend(control.map(|frame| written(|writer| frame.encode(writer))));
    out.extend(live_specimens());
    out
}

/// One encoded frame of every type of frame about symbols of live data.
fn live_specimens() -> [Vec<u8>; 7] {
    let symbol = |ordinal| SymbolSpace::Live.symbol(ordinal);
    let source =
        SourceFrame { symbol: symbol(300), floor: symbol(290), payload: b"abc", last: false };
    let (first, floor) = (symbol(300), symbol(299));
    let repair = RepairFrame { first, floor, count: 32, key: 5, payload: b"xyz" };
    let entry = RankEntry { first, missing: 3 };
    let credit = ControlFrame::MaxSymbols { space: SymbolSpace::Live, limit: 4096 };
    let abandon = ControlFrame::Abandon { first, count: 64 };
    [
        written(|writer| RankFrame::encode_entries(first, [entry], writer).map(|_| ())),
        written(|writer| source.encode(writer)),
        written(|writer| source.encode_to_end(writer)),
        written(|writer| repair.encode(writer)),
        written(|writer| repair.encode_to_end(writer)),
        written(|writer| credit.encode(writer)),
        written(|writer| abandon.encode(writer)),
    ]
}

/// One encoded frame of every type of symbol frame.
pub fn symbol_specimens() -> Vec<Vec<u8>> {
    let stream = StreamId(4);
    [
        SymbolFrame::Stream { stream, offset: 0, fin: false, data: b"hello " },
        SymbolFrame::Stream { stream, offset: 6, fin: true, data: b"world" },
        SymbolFrame::Datagram(b"datagram"),
    ]
    .map(|frame| written(|writer| frame.encode(writer)))
    .to_vec()
}

/// Inputs for [`header`].
pub fn header_seeds() -> Vec<Vec<u8>> {
    let header = DataHeader {
        connection: ConnectionId(0xdead_beef),
        epoch: 2,
        path: 7,
        number: 0x8000_0001,
    };
    let mut packet = written(|writer| header.encode(writer));
    packet.extend_from_slice(&[0xa5; 32]);
    with_mutants(vec![packet])
}

/// Inputs for [`frames`].
pub fn frame_seeds() -> Vec<Vec<u8>> {
    let mut seeds = specimens();
    seeds.extend(symbol_specimens());
    seeds.push(specimens().concat());
    with_mutants(seeds)
}

/// Inputs for [`transport_parameters`].
pub fn transport_parameter_seeds() -> Vec<Vec<u8>> {
    let parameters = TransportParameters {
        max_data: 1 << 24,
        max_stream_data: 1 << 22,
        max_streams: 100,
        max_symbols: 8192,
        max_udp_payload: 1452,
        max_block: 1 << 20,
        max_paths: 8,
        max_ack_delay: core::time::Duration::from_millis(5),
        idle_timeout: Some(core::time::Duration::from_secs(30)),
        ack_profile: Some("named".to_owned()),
        codes: None,
        check: Some(77),
        connection_ids: (1..9).map(ConnectionId).collect(),
        whole_blocks: true,
        max_live_symbols: 2048,
    };
    let list = parameters.encode();
    with_mutants(vec![list.clone(), [list.as_slice(), &list].concat(), Vec::new()])
}

fn written(encode: impl FnOnce(&mut Writer<'_>) -> Result<(), NoSpace>) -> Vec<u8> {
    let mut buffer = [0; 512];
    let mut writer = Writer::new(&mut buffer);
    encode(&mut writer).expect("specimens are short");
    writer.written().to_vec()
}

/// Returns `seeds` and three variants of each seed that is not empty: its half, and two with one
/// byte changed.
pub fn with_mutants(mut seeds: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    for index in 0..seeds.len() {
        let seed = seeds[index].clone();
        if seed.is_empty() {
            continue;
        }
        seeds.push(seed[..seed.len() / 2].to_vec());
        for (at, flip) in [(seed.len() / 3, 0xc0), (seed.len() - 1, 0x0f)] {
            let mut mutant = seed.clone();
            mutant[at] ^= flip;
            seeds.push(mutant);
        }
    }
    seeds
}
