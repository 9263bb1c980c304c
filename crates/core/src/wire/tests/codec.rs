use super::*;

/// The examples of RFC 9000 appendix A.1.
#[test]
fn varints_of_the_rfc() {
    let examples: [(&[u8], u64); 4] = [
        (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
        (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
        (&[0x7b, 0xbd], 15_293),
        (&[0x25], 37),
    ];
    for (bytes, value) in examples {
        assert_eq!(Reader::new(bytes).varint(), Ok(value));
        let mut buffer = [0; 8];
        let mut writer = Writer::new(&mut buffer);
        writer.varint(value).unwrap();
        assert_eq!(writer.written(), bytes);
    }
    assert_eq!(Reader::new(&[0x40, 0x25]).varint(), Ok(37), "longer than need be");
}

#[test]
fn varint_edges() {
    for (value, length) in [
        (0, 1),
        (63, 1),
        (64, 2),
        (16_383, 2),
        (16_384, 4),
        ((1 << 30) - 1, 4),
        (1 << 30, 8),
        (MAX_VARINT, 8),
    ] {
        assert_eq!(varint_len(value), length);
        let mut buffer = [0; 8];
        let mut writer = Writer::new(&mut buffer[..length]);
        writer.varint(value).unwrap();
        assert_eq!(Reader::new(&buffer).varint(), Ok(value));
        let mut writer = Writer::new(&mut buffer[..length - 1]);
        assert_eq!(writer.varint(value), Err(NoSpace));
        assert_eq!(writer.position(), 0);
    }
    assert_eq!(Writer::new(&mut [0; 8]).varint(MAX_VARINT + 1), Err(NoSpace));
}

#[test]
fn a_failed_read_reads_nothing() {
    let bytes = [0x05, 1, 2, 3];
    let mut reader = Reader::new(&bytes);
    assert_eq!(reader.prefixed(), Err(WireError::Truncated));
    assert_eq!(reader.u64(), Err(WireError::Truncated));
    assert_eq!(reader.bytes(5), Err(WireError::Truncated));
    assert_eq!(reader.varint_up_to(4, "five"), Err(WireError::Value("five")));
    assert_eq!(reader.remaining(), 4);
    assert_eq!(reader.u8(), Ok(5));
    assert_eq!(reader.rest(), Ok(&bytes[1..]));
    assert!(reader.is_empty());
}

#[test]
fn a_failed_frame_writes_nothing() {
    for bytes in specimens() {
        let frame = Frames::new(&bytes).next().unwrap().unwrap();
        let whole = encode(&frame).len();
        for space in 0..whole {
            let mut buffer = vec![0; space];
            let mut writer = Writer::new(&mut buffer);
            assert_eq!(frame.encode(&mut writer), Err(NoSpace), "{frame:?} in {space} bytes");
            assert_eq!(writer.position(), 0);
        }
    }
}

proptest! {
    #[test]
    fn varints_round_trip(value in varint()) {
        let mut buffer = [0; 8];
        let mut writer = Writer::new(&mut buffer);
        writer.varint(value).unwrap();
        prop_assert_eq!(writer.position(), varint_len(value));
        prop_assert_eq!(Reader::new(writer.written()).varint(), Ok(value));
    }

    #[test]
    fn stream_data_room_is_exact(id in varint(), offset in varint(), space in 0..20_000_usize) {
        let fits = |length| symbol::stream_head_len(StreamId(id), offset, length) + length <= space;
        match symbol::stream_data_room(StreamId(id), offset, space) {
            Some(room) => prop_assert!(fits(room) && !fits(room + 1)),
            None => prop_assert!(!fits(0)),
        }
    }
}
