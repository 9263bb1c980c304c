use super::*;
use crate::wire::reports::{MAX_ACK_RANGES, MAX_RANK_ENTRIES};

/// Every frame of version 0, in the order of [`specimens`]. A change here changes the wire format.
const GOLDEN: [&str; 34] = [
    "000000",
    "01",
    "020343ea0102030441f40900010202000843d700",
    "04412c020002204190",
    "05412c0a03616263",
    "06412c0a616263",
    "18412c0a03616263",
    "19412c0a616263",
    "07800111700120050378797a",
    "088001117001200578797a",
    "1441000103627965",
    "030343d4",
    "09412c4040",
    "0a80100000",
    "0b0480004000",
    "0c5000",
    "0d4064",
    "0e7175657374696f6e",
    "0f7175657374696f6e",
    "10030701",
    "11030d",
    "120409c000010000000000",
    "13040a",
    "1504c00002071151",
    "150620010db80000000000000000000000011151",
    "16015a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a",
    "1703deadbeef",
    "44412c010003",
    "45412c0a03616263",
    "46412c0a616263",
    "47412c0120050378797a",
    "48412c01200578797a",
    "4c5000",
    "49412c4040",
];

/// Whether a frame extends to the end of its packet.
fn is_to_end(frame: &[u8]) -> bool {
    matches!(frame[0], 0x06 | 0x08 | 0x19 | 0x46 | 0x48)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn golden_bytes() {
    let frames: Vec<String> = specimens().iter().map(|bytes| hex(bytes)).collect();
    assert_eq!(frames, GOLDEN);
    let symbols: Vec<String> = symbol_specimens().iter().map(|bytes| hex(bytes)).collect();
    assert_eq!(symbols, ["2004000668656c6c6f20", "21040605776f726c64", "2208646174616772616d"],);
}

fn parse(bytes: &[u8]) -> Vec<Result<Frame<'_>, WireError>> {
    Frames::new(bytes).collect()
}

#[test]
fn every_truncation_is_an_error() {
    for whole in specimens() {
        if whole[0] == 0 || is_to_end(&whole) {
            continue; // padding and frames to the end have no end of their own
        }
        assert!(matches!(parse(&whole)[..], [Ok(_)]), "{whole:02x?}");
        for length in 1..whole.len() {
            let frames = parse(&whole[..length]);
            assert_eq!(frames, [Err(WireError::Truncated)], "{:02x?}", &whole[..length]);
        }
    }
    for whole in symbol_specimens() {
        assert_eq!(SymbolFrames::new(&whole).filter(Result::is_ok).count(), 1);
        for length in 1..whole.len() {
            let mut frames = SymbolFrames::new(&whole[..length]);
            assert_eq!(frames.next(), Some(Err(WireError::Truncated)));
            assert_eq!(frames.next(), None);
        }
    }
}

#[test]
fn frames_to_the_end_lose_only_payload() {
    for whole in specimens().into_iter().filter(|bytes| is_to_end(bytes)) {
        let head = whole.len() - 3;
        for length in 1..whole.len() {
            match parse(&whole[..length])[..] {
                [Ok(Frame::Symbol(SourceFrame { payload, .. }))]
                | [Ok(Frame::Repair(RepairFrame { payload, .. }))] => {
                    assert_eq!(payload, &whole[head..length]);
                }
                [Err(WireError::Truncated)] => assert!(length < head),
                ref other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn a_packet_of_everything() {
    let packet: Vec<u8> =
        specimens().into_iter().filter(|bytes| !is_to_end(bytes)).flatten().collect();
    let frames = parse(&packet);
    assert_eq!(frames.len(), GOLDEN.len() - 5);
    assert!(frames.iter().all(Result::is_ok));
    let eliciting = frames.iter().flatten().filter(|frame| frame.is_ack_eliciting()).count();
    assert_eq!(eliciting, frames.len() - 5, "all but PADDING, ACK, both RANKs, CLOSE");
}

#[test]
fn unknown_and_misplaced_types() {
    let about_live_data = [0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4c];
    for kind in (0x1a..=0xff).filter(|kind| !about_live_data.contains(kind)) {
        assert_eq!(parse(&[kind, 0, 0, 0]), [Err(WireError::UnknownFrame(kind))]);
    }
    for kind in (0x01..=0x1f).chain(0x23..=0xff) {
        let bytes = [0, kind, 0, 0];
        let frames: Vec<_> = SymbolFrames::new(&bytes).collect();
        assert_eq!(frames, [Err(WireError::UnknownFrame(kind))]);
    }
}

#[test]
fn padding_is_merged() {
    let mut packet = vec![0; 1200];
    packet[700] = 1;
    let ping = Frame::Control(ControlFrame::Ping);
    let expected = [Frame::Padding { length: 700 }, ping, Frame::Padding { length: 499 }];
    assert_eq!(parse(&packet), expected.map(Ok));
    assert_eq!(SymbolFrames::new(&[0; 1200]).next(), None);
}

#[test]
fn symbols_are_as_long_as_their_frames_are_many() {
    for capacity in [31, 32, 95, 96, 1000] {
        let mut buffer = vec![0xee; capacity];
        let mut writer = SymbolWriter::new(&mut buffer);
        let mut count = 0;
        while writer.room() > 0 {
            writer.datagram(0, |_| {}).unwrap();
            count += 1;
        }
        assert_eq!(writer.datagram(0, |_| {}), Err(NoSpace));
        assert_eq!(count, 1 + capacity / BYTES_PER_FRAME);
        let length = writer.finish();
        assert_eq!(length, (2 * count).max((count - 1) * BYTES_PER_FRAME));
        let symbol = &buffer[..length];
        assert!(SymbolFrames::new(symbol).eq((0..count).map(|_| Ok(SymbolFrame::Datagram(&[])))));
        if count > 1 {
            let errors = SymbolFrames::new(&symbol[..length - 1]).filter(Result::is_err);
            assert!(errors.eq([Err(WireError::TooManyFrames)]), "one byte less is too short");
        }
    }
}

#[test]
fn values_out_of_range() {
    let cases: [(&[u8], &str); 21] = [
        (&[0x02, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 64, 0], "ACK range count"),
        (&[0x02, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10], "ACK range"),
        (&[0x02, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 8, 0], "ACK range"),
        (&[0x02, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 7, 1], "ACK range"),
        (&[0x03, 0xc0, 0, 0, 1, 0, 0, 0, 0, 0], "path id"),
        (&[0x04, 0, 33], "RANK entry count"),
        (&[0x04, 0, 1, 0, 0x80, 1, 0, 0], "RANK deficit"),
        (&[0x05, 3, 4, 0], "symbol floor"),
        (&[0x05, 0xe0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "symbol id"),
        (&[0x45, 0xe0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "symbol id"),
        (&[0x07, 3, 0, 0, 0, 0], "repair count"),
        (&[0x07, 3, 0, 0x80, 1, 0, 0, 0, 0], "repair count"),
        (&[0x07, 3, 0, 1, 0xc0, 0, 0, 0, 0x40, 0, 0, 0, 0], "repair key"),
        (&[0x09, 3, 0], "symbol count"),
        (&[0x49, 1, 0xe0, 0, 0, 0, 0, 0, 0, 0], "symbol count"),
        (&[0x10, 0, 0, 2], "path status"),
        (&[0x14, 0, 2, 0], "close origin"),
        (&[0x15, 5, 192, 0, 2, 7, 1, 1], "address family"),
        (&[0x15, 4, 192, 0, 2, 7, 0, 0], "address"),
        (&[0x15, 4, 0, 0, 0, 0, 1, 1], "address"),
        (&[0x15, 4, 224, 0, 0, 1, 1, 1], "address"),
    ];
    for (bytes, field) in cases {
        assert_eq!(parse(bytes), [Err(WireError::Value(field))], "{bytes:02x?}");
    }
}

#[test]
fn sums_beyond_the_range() {
    let top = [0xff; 8];
    let stream = [&[0x20, 0][..], &top, &[1, 7]].concat();
    assert_eq!(SymbolFrames::new(&stream).next(), Some(Err(WireError::Value("stream offset"))));
    let last = (SymbolSpace::SYMBOLS - 1).to_be_bytes();
    let last: [u8; 8] = core::array::from_fn(|at| last[at] | if at == 0 { 0xc0 } else { 0 });
    let repair = [&[0x07][..], &last, &[0, 2, 0, 0]].concat();
    assert_eq!(parse(&repair), [Err(WireError::Value("repair count"))]);
    let abandon = [&[0x09][..], &last, &[2]].concat();
    assert_eq!(parse(&abandon), [Err(WireError::Value("symbol count"))]);
    let rank = [&[0x04][..], &last, &[1, 1, 0]].concat();
    assert_eq!(parse(&rank), [Err(WireError::Value("RANK offset"))]);
    let streams = [0x0d, 0xd0, 0, 0, 0, 0, 0, 0, 1];
    assert_eq!(parse(&streams), [Err(WireError::Value("stream count"))]);
}

#[test]
fn close_reasons() {
    let reason = "é".repeat(200);
    let frame =
        Frame::Close(CloseFrame { code: CloseCode(1), application: false, reason: &reason });
    match parse(&encode(&frame))[..] {
        [Ok(Frame::Close(close))] => assert_eq!(close.reason, "é".repeat(128)),
        ref other => panic!("{other:?}"),
    }
    let long = [&[0x14, 1, 0, 0x41, 1][..], &[b'a'; 257]].concat();
    assert_eq!(parse(&long), [Err(WireError::Value("close reason length"))]);
    assert_eq!(parse(&[0x14, 1, 0, 1, 0xff]), [Err(WireError::Value("close reason"))]);
}

fn acknowledge(ranges: &[RangeInclusive<u64>], space: usize) -> (usize, Vec<RangeInclusive<u64>>) {
    let mut buffer = vec![0xee; space];
    let mut writer = Writer::new(&mut buffer);
    let written = AckHeader::default().encode(ranges.iter().cloned(), &mut writer).unwrap();
    let position = writer.position();
    match parse(&buffer[..position])[..] {
        [Ok(Frame::Ack(ack))] => {
            assert_eq!(ack.largest, *ranges[0].end());
            (written, ack.ranges().collect())
        }
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn an_ack_takes_what_fits() {
    let ranges: Vec<_> = (0..100_u64).rev().map(|n| n * 10..=n * 10 + 3).collect();
    assert_eq!(acknowledge(&ranges, 1000), (MAX_ACK_RANGES, ranges[..MAX_ACK_RANGES].to_vec()));
    for space in 14..100 {
        let (written, got) = acknowledge(&ranges, space);
        assert!(written >= 1 && written <= (space - 12) / 2);
        assert_eq!(got, ranges[..written]);
    }
}

#[test]
fn an_ack_refuses_ranges_out_of_order() {
    for bad in [5..=9, 9..=9, 10..=12, 20..=30] {
        let (written, got) = acknowledge(&[10..=12, bad], 100);
        assert_eq!((written, got), (1, vec![10..=12]));
    }
    let mut writer_space = [0; 50];
    let mut writer = Writer::new(&mut writer_space);
    assert_eq!(AckHeader::default().encode([], &mut writer), Ok(0));
    assert_eq!(writer.position(), 0);
}

#[test]
fn a_rank_takes_what_fits() {
    let entries: Vec<_> =
        (0..40).map(|n| RankEntry { first: SymbolId(100 + n * 32), missing: n as u16 }).collect();
    let mut buffer = [0; 200];
    for (space, most) in [(200, MAX_RANK_ENTRIES), (4, 0), (6, 1)] {
        let mut writer = Writer::new(&mut buffer[..space]);
        let written =
            RankFrame::encode_entries(SymbolId(100), entries.iter().copied(), &mut writer).unwrap();
        assert_eq!(written, most);
        match parse(writer.written())[..] {
            [Ok(Frame::Rank(rank))] => assert!(rank.entries().eq(entries[..most].iter().copied())),
            ref other => panic!("{other:?}"),
        }
    }
}

#[test]
fn overheads_cover_ids_below_2_to_the_30() {
    let most = SymbolId((1 << 30) - 1);
    let floor = SymbolId(0);
    let source = SourceFrame { symbol: most, floor, payload: &[], last: false };
    assert_eq!(source.encoded_len_to_end(), SYMBOL_OVERHEAD);
    let repair =
        RepairFrame { first: most, floor, count: u16::MAX, key: MAX_REPAIR_KEY, payload: &[] };
    assert_eq!(repair.encoded_len_to_end(), REPAIR_OVERHEAD);
}

fn space() -> impl Strategy<Value = SymbolSpace> {
    prop::sample::select(&SymbolSpace::ALL[..])
}

fn symbol() -> impl Strategy<Value = SymbolId> {
    let ordinal = varint().prop_map(|number| number % SymbolSpace::SYMBOLS);
    (space(), ordinal).prop_map(|(space, ordinal)| space.symbol(ordinal))
}

fn control() -> impl Strategy<Value = ControlFrame> {
    let path = any::<u32>().prop_map(PathId);
    let stream = varint().prop_map(StreamId);
    prop_oneof![
        Just(ControlFrame::Ping),
        (path.clone(), varint()).prop_map(|(path, floor)| ControlFrame::AckFloor { path, floor }),
        (symbol(), 0.0..1.0).prop_map(|(first, share)| {
            let most = SymbolSpace::SYMBOLS - first.ordinal();
            ControlFrame::Abandon { first, count: ((most as f64 * share) as u64).clamp(1, most) }
        }),
        varint().prop_map(|limit| ControlFrame::MaxData { limit }),
        (stream.clone(), varint())
            .prop_map(|(stream, limit)| ControlFrame::MaxStreamData { stream, limit }),
        (space(), varint()).prop_map(|(space, limit)| ControlFrame::MaxSymbols { space, limit }),
        (0..=1_u64 << 60).prop_map(|count| ControlFrame::MaxStreams { count }),
        any::<[u8; 8]>().prop_map(|data| ControlFrame::PathChallenge { data }),
        any::<[u8; 8]>().prop_map(|data| ControlFrame::PathResponse { data }),
        (path.clone(), varint(), any::<bool>()).prop_map(|(path, sequence, backup)| {
            let status = if backup { PathUse::Backup } else { PathUse::Available };
            ControlFrame::PathStatus { path, sequence, status }
        }),
        (path.clone(), varint())
            .prop_map(|(path, reason)| ControlFrame::PathAbandon { path, reason }),
        (path, any::<u32>()).prop_map(|(path, id)| {
            ControlFrame::NewConnectionId { path, id: ConnectionId(id) }
        }),
        (stream.clone(), varint(), varint()).prop_map(|(stream, code, final_size)| {
            ControlFrame::ResetStream { stream, code, final_size }
        }),
        (stream, varint()).prop_map(|(stream, code)| ControlFrame::StopSending { stream, code }),
        (varint(), any::<([u8; 32], [u8; 16])>()).prop_map(|(epoch, (first, second))| {
            let message = core::array::from_fn(|at| *first.iter().chain(&second).nth(at).unwrap());
            ControlFrame::Rekey { epoch, message }
        }),
    ]
}

proptest! {
    #[test]
    fn control_frames_round_trip(control in control()) {
        let bytes = encode(&control.into());
        prop_assert_eq!(bytes.len(), control.encoded_len());
        prop_assert_eq!(parse(&bytes), [Ok(Frame::Control(control))]);
        for length in 1..bytes.len() {
            prop_assert_eq!(parse(&bytes[..length]), [Err(WireError::Truncated)]);
        }
    }

    #[test]
    fn acks_round_trip(
        header in (any::<u32>(), any::<u32>(), [varint(), varint(), varint(), varint()]),
        steps in prop::collection::vec((2..1_u64 << 40, 0..1_u64 << 40), 1..70),
    ) {
        let (path, received_at, [delay_us, ect0, ect1, ce]) = header;
        let header = AckHeader { path: PathId(path), received_at, delay_us, ect0, ect1, ce };
        let mut ranges = Vec::new();
        let mut next = MAX_VARINT;
        for (gap, length) in steps {
            ranges.push(next - length..=next);
            next -= length + gap;
        }
        let mut buffer = [0; 2048];
        let mut writer = Writer::new(&mut buffer);
        let written = header.encode(ranges.iter().cloned(), &mut writer).unwrap();
        prop_assert_eq!(written, ranges.len().min(MAX_ACK_RANGES));
        let bytes = writer.written();
        match parse(bytes)[..] {
            [Ok(frame @ Frame::Ack(ack))] => {
                prop_assert_eq!(ack.header(), header);
                prop_assert!(ack.ranges().eq(ranges[..written].iter().cloned()));
                prop_assert_eq!(encode(&frame), bytes);
            }
            ref other => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn symbols_round_trip(
        symbol in symbol(),
        before in varint(),
        shape in (1..=u16::MAX, 0..=MAX_REPAIR_KEY),
        last in any::<bool>(),
        payload in prop::collection::vec(any::<u8>(), 0..1500),
    ) {
        let space = symbol.space();
        let floor = space.symbol(symbol.ordinal().saturating_sub(before));
        let last = last && space == SymbolSpace::Main;
        let source = SourceFrame { symbol, floor, payload: &payload, last };
        let bytes = encode(&Frame::Symbol(source));
        prop_assert_eq!(bytes.len(), source.encoded_len());
        prop_assert_eq!(parse(&bytes), [Ok(Frame::Symbol(source))]);

        let (count, key) = shape;
        let first = symbol.ordinal().min(SymbolSpace::SYMBOLS - u64::from(count));
        let first = space.symbol(first);
        let floor = floor.min(first);
        let repair = RepairFrame { first, floor, count, key, payload: &payload };
        let bytes = encode(&Frame::Repair(repair));
        prop_assert_eq!(bytes.len(), repair.encoded_len());
        prop_assert_eq!(parse(&bytes), [Ok(Frame::Repair(repair))]);
        let mut buffer = [0; 2000];
        let mut writer = Writer::new(&mut buffer);
        repair.encode_to_end(&mut writer).unwrap();
        prop_assert_eq!(writer.position(), repair.encoded_len_to_end());
        prop_assert_eq!(parse(writer.written()), [Ok(Frame::Repair(repair))]);
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzzing::frames(&bytes);
        fuzzing::header(&bytes);
    }

    /// Mutated valid packets pass more checks of the decoder than random bytes.
    #[test]
    fn no_mutation_panics(index in 0..specimens().len(), at: prop::sample::Index, value: u8) {
        let mut bytes = specimens()[index].clone();
        let at = at.index(bytes.len());
        bytes[at] = value;
        fuzzing::frames(&bytes);
    }
}
