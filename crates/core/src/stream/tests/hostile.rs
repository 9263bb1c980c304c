//! Tests with peers that violate the protocol.

use super::*;
use crate::wire::WireError;
use proptest::prelude::*;

#[test]
fn streams_that_cannot_be() {
    let mut streams = responder();
    for (id, error, code) in [
        (12, Violation::StreamLimit(StreamId(12)), CloseCode::STREAM_LIMIT),
        (1, Violation::StreamState(StreamId(1)), CloseCode::STREAM_STATE),
        (3, Violation::StreamState(StreamId(3)), CloseCode::STREAM_STATE),
        (u64::MAX >> 2, Violation::StreamState(StreamId(u64::MAX >> 2)), CloseCode::STREAM_STATE),
    ] {
        assert_eq!(streams.on_symbol(&stream_symbol(id, 0, false, b"x")), Err(error));
        assert_eq!(streams.on_reset(StreamId(id), 0, 0), Err(error));
        assert_eq!(streams.on_stop_sending(StreamId(id), 0), Err(error));
        assert_eq!(streams.on_max_stream_data(StreamId(id), 0), Err(error));
        assert_eq!(error.close_code(), code);
    }
    assert_eq!(streams.count(), 0);
}

#[test]
fn streams_of_both_directions_share_the_limit() {
    let mut streams = responder();
    streams.on_symbol(&stream_symbol(0, 0, false, b"x")).unwrap();
    streams.on_symbol(&stream_symbol(6, 0, false, b"x")).unwrap();
    assert_eq!(events(&mut streams).len(), 5, "three opened, two readable");
    for id in [4, 10, u64::MAX >> 2 & !3, u64::MAX >> 2 & !1] {
        let beyond = Violation::StreamLimit(StreamId(id));
        assert_eq!(streams.on_symbol(&stream_symbol(id, 0, false, b"x")), Err(beyond), "{id}");
    }
    assert_eq!(streams.count(), 3);
}

#[test]
fn only_the_opener_sends_on_a_unidirectional_stream() {
    let mut streams = responder();
    let own = streams.open_uni(TrafficClass::Bulk).unwrap();
    assert_eq!(own, StreamId(3));
    let wrong = Err(Violation::StreamState(own));
    for (data, fin) in [(&b"x"[..], false), (b"", true)] {
        assert_eq!(streams.on_symbol(&stream_symbol(own.0, 0, fin, data)), wrong);
    }
    assert_eq!(streams.on_reset(own, 0, 0), wrong);
    let theirs = StreamId(2);
    streams.on_symbol(&stream_symbol(theirs.0, 0, false, b"x")).unwrap();
    assert_eq!(streams.on_stop_sending(theirs, 0), Err(Violation::StreamState(theirs)));
    assert_eq!(streams.on_max_stream_data(theirs, 9), Err(Violation::StreamState(theirs)));
    assert_eq!(streams.write(theirs, b"x"), Err(StreamError::Ended));
    assert_eq!(streams.finish(theirs), Err(StreamError::Ended));
    assert_eq!(streams.reset(theirs, 0), Err(StreamError::Ended));
    assert_eq!(streams.read(own, &mut [0], &mut Shelf::default()), Err(StreamError::Ended));
    assert_eq!(streams.stop_sending(own, 0), Err(StreamError::Ended));
}

#[test]
fn ends_that_move() {
    for second in [
        stream_symbol(0, 0, true, b"four"),
        stream_symbol(0, 0, true, b"four five"),
        stream_symbol(0, 5, false, b"x"),
    ] {
        let mut streams = responder();
        streams.on_symbol(&stream_symbol(0, 0, true, b"fives")).unwrap();
        let error = Violation::FinalSize(StreamId(0));
        assert_eq!(streams.on_symbol(&second), Err(error));
        assert_eq!(error.close_code(), CloseCode::FINAL_SIZE);
    }
    let mut streams = responder();
    streams.on_symbol(&stream_symbol(0, 90, false, b"x")).unwrap();
    let early = stream_symbol(0, 0, true, b"early end");
    assert_eq!(streams.on_symbol(&early), Err(Violation::FinalSize(StreamId(0))));
    assert_eq!(streams.on_reset(StreamId(0), 0, 90), Err(Violation::FinalSize(StreamId(0))));
}

#[test]
fn symbols_that_do_not_parse() {
    let mut streams = responder();
    let error = streams.on_symbol(&[0x20, 0, 0, 9, 1]).unwrap_err();
    assert_eq!(error, Violation::Encoding(WireError::Truncated));
    assert_eq!(error.close_code(), CloseCode::FRAME_ENCODING);
    let error = streams.on_symbol(&[0, 1]).unwrap_err();
    assert_eq!(error, Violation::Encoding(WireError::UnknownFrame(1)));
}

#[test]
fn what_came_first_stays() {
    let mut streams = responder();
    streams.on_symbol(&stream_symbol(0, 4, false, b"EFG")).unwrap();
    streams.on_symbol(&stream_symbol(0, 0, false, b"abcdefghij")).unwrap();
    streams.on_symbol(&stream_symbol(0, 2, true, b"XXXXXXXXkl")).unwrap();
    assert_eq!(read(&mut streams, StreamId(0)), (b"abcdEFGhijkl".to_vec(), true));
}

#[test]
fn pieces_survive_the_growth_of_the_buffer() {
    let limits = StreamLimits { max_data: 1 << 20, max_stream_data: 1 << 20, ..LIMITS };
    let mut streams = Streams::new(Role::Responder, limits);
    let data: Vec<u8> = (0..100_000_u32).map(|n| ((n * 7) >> 3) as u8).collect();
    let mut got = Vec::new();
    for half in [0..50_000, 50_000..100_000] {
        for parity in [1, 0] {
            for (index, chunk) in data[half.clone()].chunks(1000).enumerate() {
                if index % 2 == parity {
                    let offset = half.start + index * 1000;
                    streams.on_symbol(&stream_symbol(0, offset as u64, false, chunk)).unwrap();
                }
            }
        }
        let mut buffer = [0; 777];
        while let Ok(ReadOutcome { n: n @ 1.., .. }) =
            streams.read(StreamId(0), &mut buffer, &mut Shelf::default())
        {
            got.extend_from_slice(&buffer[..n]);
        }
    }
    assert_eq!(got, data);
}

#[test]
fn pieces_are_bounded() {
    let credit = 4 * MAX_GAPS as u64;
    let limits = StreamLimits { max_data: credit, max_stream_data: credit, ..LIMITS };
    let mut streams = Streams::new(Role::Responder, limits);
    for piece in 0..MAX_GAPS as u64 {
        let symbol = stream_symbol(0, 1 + piece * 2, false, b"x");
        streams.on_symbol(&symbol).unwrap();
    }
    audit(&streams);
    let one_more = stream_symbol(0, 1 + MAX_GAPS as u64 * 2, false, b"x");
    assert_eq!(streams.on_symbol(&one_more), Err(Violation::Gaps));
}

#[test]
fn nothing_is_kept_for_streams_that_nobody_reads() {
    let mut streams = responder();
    streams.on_symbol(&stream_symbol(0, 10, false, b"x")).unwrap();
    streams.stop_sending(StreamId(0), 0).unwrap();
    for offset in (20..300).step_by(10) {
        streams.on_symbol(&stream_symbol(0, offset, false, b"xyz")).unwrap();
        audit(&streams);
    }
    assert_eq!((streams.pieces, streams.received, streams.consumed), (0, 293, 293));
}

/// Symbols of plausible frames, which pass more checks than random bytes.
fn symbols() -> impl Strategy<Value = Vec<u8>> {
    let frame = (0..5_u64, 0..500_u64, any::<bool>(), prop::collection::vec(any::<u8>(), 0..100))
        .prop_map(|(stream, offset, fin, data)| {
            stream_symbol(stream * 4, offset, fin && offset > 400, &data)
        });
    prop::collection::vec(frame, 0..3).prop_map(|frames| frames.concat())
}

fn script() -> impl Strategy<Value = Vec<u8>> {
    let symbol = symbols().prop_filter_map("a length of seven bits", |symbol| {
        (symbol.len() < 0x80).then(|| [&[symbol.len() as u8], symbol.as_slice()].concat())
    });
    let operation = (0x80..=0xff_u8, any::<u8>()).prop_map(|(first, second)| vec![first, second]);
    prop::collection::vec(prop_oneof![symbol, operation], 0..60).prop_map(|steps| steps.concat())
}

proptest! {
    #[test]
    fn no_symbols_panic(payloads in prop::collection::vec(symbols(), 0..20)) {
        let mut streams = responder();
        for payload in payloads {
            let result = streams.on_symbol(&payload);
            audit(&streams);
            if result.is_err() {
                break;
            }
        }
    }

    #[test]
    fn no_script_panics(script in script()) {
        fuzzing::symbol(&script);
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        fuzzing::symbol(&bytes);
    }
}
