use super::*;

fn parameters() -> impl Strategy<Value = TransportParameters> {
    let credits = (varint(), varint(), 0..=1_u64 << 60, varint());
    let sizes = (1200..=u16::MAX, varint(), 1..=16_u8);
    let times = (0..1_u64 << 24, prop::option::of(1..=MAX_VARINT));
    let names = (prop::option::of("[a-z:é,]{0,32}"), prop::option::of("[a-z -]{0,256}"));
    let ids = prop::collection::btree_set(any::<u32>(), 0..=16);
    let rest = (any::<Option<u32>>(), ids, any::<bool>(), varint());
    let all = (credits, sizes, times, names, rest);
    all.prop_map(|(credits, sizes, times, (ack_profile, codes), rest)| {
        let (check, ids, whole_blocks, max_live_symbols) = rest;
        TransportParameters {
            max_data: credits.0,
            max_stream_data: credits.1,
            max_streams: credits.2,
            max_symbols: credits.3,
            max_udp_payload: sizes.0,
            max_block: sizes.1,
            max_paths: sizes.2,
            max_ack_delay: Duration::from_micros(times.0),
            idle_timeout: times.1.map(Duration::from_millis),
            ack_profile,
            codes,
            check,
            connection_ids: ids.into_iter().map(ConnectionId).collect(),
            whole_blocks,
            max_live_symbols,
        }
    })
}

proptest! {
    #[test]
    fn round_trip(parameters in parameters()) {
        prop_assert_eq!(TransportParameters::decode(&parameters.encode()), Ok(parameters));
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        fuzzing::transport_parameters(&bytes);
    }
}

#[test]
fn defaults_take_no_bytes() {
    assert_eq!(TransportParameters::default().encode(), []);
    assert_eq!(TransportParameters::decode(&[]), Ok(TransportParameters::default()));
}

#[test]
fn golden() {
    let parameters = TransportParameters {
        max_data: 1 << 20,
        max_paths: 2,
        ack_profile: Some("named".to_owned()),
        connection_ids: vec![ConnectionId(0x6964_2031), ConnectionId(0x6964_2032)],
        ..TransportParameters::default()
    };
    let bytes = b"\x01\x04\x80\x10\x00\x00\x07\x01\x02\x0a\x05named\x0d\x08id 1id 2";
    assert_eq!(parameters.encode(), bytes);
}

#[test]
fn unknown_ids_are_skipped() {
    let bytes = [0x3f, 2, 0xff, 0xff, 7, 1, 4, 0, 0];
    let parameters = TransportParameters::decode(&bytes).unwrap();
    assert_eq!(parameters, TransportParameters { max_paths: 4, ..Default::default() });
}

#[test]
fn violations() {
    let cases: [(&[u8], WireError); 13] = [
        (&[7, 1, 4, 7, 1, 4], WireError::Value("repeated transport parameter")),
        (&[7, 1, 0], WireError::Value("max paths")),
        (&[7, 1, 17], WireError::Value("max paths")),
        (&[7, 2, 4, 0], WireError::Value("transport parameter length")),
        (&[7, 0], WireError::Truncated),
        (&[7, 2, 4], WireError::Truncated),
        (&[5, 2, 0x44, 0xaf], WireError::Value("max UDP payload")),
        (&[8, 4, 0x81, 0, 0, 0], WireError::Value("max acknowledgement delay")),
        (&[3, 8, 0xd0, 0, 0, 0, 0, 0, 0, 1], WireError::Value("max streams")),
        (&[10, 1, 0xff], WireError::Value("text")),
        (&[13, 3, 1, 2, 3], WireError::Truncated),
        (&[13, 8, 1, 2, 3, 4, 1, 2, 3, 4], WireError::Value("connection ids")),
        (&[13, 0, 13, 0], WireError::Value("repeated transport parameter")),
    ];
    for (bytes, error) in cases {
        assert_eq!(TransportParameters::decode(bytes), Err(error), "{bytes:02x?}");
    }
    let ids = (0..17_u32).flat_map(u32::to_be_bytes);
    let many: Vec<u8> = [13, 0x40, 68].into_iter().chain(ids).collect();
    let error = WireError::Value("connection ids");
    assert_eq!(TransportParameters::decode(&many), Err(error));
    let long = [&[10, 0x40, 65][..], &[b'a'; 65]].concat();
    let error = WireError::Value("length of a transport parameter's text");
    assert_eq!(TransportParameters::decode(&long), Err(error));
}

#[test]
fn encoding_brings_values_into_range() {
    let parameters = TransportParameters {
        max_data: u64::MAX,
        max_udp_payload: 500,
        max_paths: 0,
        max_ack_delay: Duration::from_secs(60),
        idle_timeout: Some(Duration::ZERO),
        ack_profile: Some("é".repeat(40)),
        ..TransportParameters::default()
    };
    let decoded = TransportParameters::decode(&parameters.encode()).unwrap();
    assert_eq!(decoded.max_data, MAX_VARINT);
    assert_eq!(decoded.max_udp_payload, 1200);
    assert_eq!(decoded.max_paths, 1);
    assert_eq!(decoded.max_ack_delay, transport_parameters::MAX_ACK_DELAY);
    assert_eq!(decoded.idle_timeout, Some(Duration::from_millis(1)));
    assert_eq!(decoded.ack_profile, Some("é".repeat(32)));
}
