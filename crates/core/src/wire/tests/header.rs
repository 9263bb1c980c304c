use super::*;
use crate::wire::header::{connection_of, protect, sample, unprotect};

#[test]
fn layout() {
    let header = DataHeader {
        connection: ConnectionId(0x0102_0304),
        epoch: 3,
        path: 5,
        number: 0x0607_0809,
    };
    let mut packet = [0; HEADER_LEN + 16];
    header.encode(&mut Writer::new(&mut packet)).unwrap();
    assert_eq!(packet[..HEADER_LEN], [0x70, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(DataHeader::decode(&packet), Ok(header));
    assert_eq!(PacketKind::of(packet[0]), Some(PacketKind::Data));

    protect(&mut packet, [0xff; 6]);
    assert_eq!(packet[..HEADER_LEN], [0x4f, 1, 2, 3, 4, 0xfa, 0xf9, 0xf8, 0xf7, 0xf6]);
    assert_eq!(PacketKind::of(packet[0]), Some(PacketKind::Data));
    assert_eq!(connection_of(&packet), Some(header.connection));
    assert_eq!(DataHeader::decode(&packet), Err(WireError::Value("reserved header bits")));
    unprotect(&mut packet, [0xff; 6]);
    assert_eq!(DataHeader::decode(&packet), Ok(header));
}

#[test]
fn short_packets() {
    let packet = [0x40; HEADER_LEN + 15];
    assert_eq!(connection_of(&packet), None);
    assert_eq!(sample(&packet), None);
    for length in 0..HEADER_LEN {
        assert_eq!(DataHeader::decode(&packet[..length]), Err(WireError::Truncated));
        let mut short = packet[..length].to_vec();
        protect(&mut short, [0xff; 6]);
        assert_eq!(short, packet[..length]);
    }
}

#[test]
fn kinds() {
    let kinds: Vec<_> = (0..=255).filter_map(PacketKind::of).collect();
    assert_eq!(kinds.len(), 3 + 64);
    assert_eq!(PacketKind::of(1), Some(PacketKind::Initiation));
    assert_eq!(PacketKind::of(2), Some(PacketKind::Response));
    assert_eq!(PacketKind::of(3), Some(PacketKind::CookieReply));
    assert_eq!(PacketKind::of(0), None);
    assert_eq!(PacketKind::of(0x80), None);
}

#[test]
fn expansion_at_the_edges() {
    assert_eq!(expand_number(0, 0), 0);
    assert_eq!(expand_number(u32::MAX, 0), u32::MAX.into(), "nothing lies below 0");
    assert_eq!(expand_number(0, 0xffff_fff0), 1 << 32);
    assert_eq!(expand_number(0xffff_fff0, 1 << 32), 0xffff_fff0);
    assert_eq!(expand_number(0, MAX_VARINT), MAX_VARINT + 1 - (1 << 32));
    assert_eq!(expand_number(0, 1 << 31), 1 << 32, "of two equally near, the upper");
    assert_eq!(expand_number(0, (1 << 31) - 1), 0);
}

proptest! {
    #[test]
    fn near_numbers_survive_truncation(number in 0..=MAX_VARINT, distance in -(1_i64 << 31) + 1..1 << 31) {
        let expected = number.saturating_add_signed(distance).min(MAX_VARINT);
        prop_assert_eq!(expand_number(number as u32, expected), number);
    }

    #[test]
    fn headers_round_trip(connection: u32, epoch in 0..4_u8, path: u8, number: u32, mask: [u8; 6]) {
        let header = DataHeader { connection: ConnectionId(connection), epoch, path, number };
        let mut packet = [0; HEADER_LEN];
        header.encode(&mut Writer::new(&mut packet)).unwrap();
        protect(&mut packet, mask);
        unprotect(&mut packet, mask);
        prop_assert_eq!(DataHeader::decode(&packet), Ok(header));
    }
}
