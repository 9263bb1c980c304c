//! The ECN bits of an IP header, which links read and write.

use anabranch_types::Ecn;

/// The ECN codepoint of an IP packet; Not-ECT if the bytes do not start with an IP header.
pub(super) fn ecn(packet: &[u8]) -> Ecn {
    Ecn::from_bits(match packet {
        [0x40..=0x4f, service, ..] => service & 3,
        [0x60..=0x6f, class, ..] => class >> 4 & 3,
        _ => 0,
    })
}

/// Sets the ECN codepoint of an IP packet and, in IPv4, updates the header checksum.
pub fn set_ecn(packet: &mut [u8], new: Ecn) {
    let old = ecn(packet).bits();
    if old == new.bits() {
        return;
    }
    match packet {
        [0x40..=0x4f, service, _, _, _, _, _, _, _, _, high, low, ..] => {
            *service = *service & !3 | new.bits();
            // RFC 1624, equation 3: HC' = ~(~HC + ~m + m').
            let sum = u32::from(!u16::from_be_bytes([*high, *low]))
                + u32::from(!u16::from(old))
                + u32::from(new.bits());
            let sum = (sum & 0xffff) + (sum >> 16);
            let sum = (sum & 0xffff) + (sum >> 16);
            [*high, *low] = (!(sum as u16)).to_be_bytes();
        }
        [0x60..=0x6f, class, ..] => *class = *class & !0x30 | new.bits() << 4,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ones' complement sum of a header's words (RFC 1071).
    fn sum(header: &[u8]) -> u16 {
        let words = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
        let sum: u32 = words.sum();
        ((sum & 0xffff) + (sum >> 16)) as u16
    }

    /// An IPv4 header with this type-of-service byte, this total length and a valid checksum.
    fn header(service: u8, length: u8) -> Vec<u8> {
        let mut header =
            vec![0x45, service, 0, length, 7, 7, 0x40, 0, 64, 17, 0, 0, 10, 77, 1, 1, 10, 77, 1, 2];
        let checksum = !sum(&header);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        header
    }

    #[test]
    fn every_codepoint_can_follow_every_other() {
        for (service, length) in (0..=255).flat_map(|s| [20, 21, 200].map(|l| (s, l))) {
            for new in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
                let mut packet = header(service, length);
                assert_eq!(ecn(&packet).bits(), service & 3);
                set_ecn(&mut packet, new);
                assert_eq!(packet, header(service & !3 | new.bits(), length));
            }
        }
        let mut packet = [0x6f, 0xab, 0xcd, 0xef];
        assert_eq!(ecn(&packet), Ecn::Ect0);
        set_ecn(&mut packet, Ecn::Ce);
        assert_eq!(packet, [0x6f, 0xbb, 0xcd, 0xef]);
    }

    #[test]
    fn what_is_no_packet_is_left_alone() {
        for bytes in [&[][..], &[0x45], &[0x45, 2, 0], &[0x12, 0xff, 0, 0]] {
            let mut packet = bytes.to_vec();
            set_ecn(&mut packet, Ecn::Ce);
            assert_eq!(packet, bytes);
        }
    }
}
