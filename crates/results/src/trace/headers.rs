//! Makes IPv4, TCP and UDP headers for packets that have none in the simulator.

use anabranch_sim::engine::{Packet, Payload, PortId};
use anabranch_tcp::{Flags, Segment};
use anabranch_types::Time;

/// Window scale (RFC 7323) that a SYN announces: windows up to 64 MiB in steps of 1 KiB.
const WINDOW_SCALE: u8 = 10;
/// Lowest port number; both ends of a stream have the same number. Well-known protocols do not use
/// these numbers, so no dissector takes the packets for another protocol.
const PORT: u16 = 58_000;

/// Writes the known bytes of a packet, as they would be on the wire, into `bytes`. Returns the
/// length of the whole packet on the wire.
///
/// A port of the simulator becomes the address `10.x.y.z` that encodes its number plus one. Ports
/// that are joined have numbers that differ in the last bit. The simulator only counts stream bytes
/// and does not carry them, so they are missing.
pub(super) fn write(packet: &Packet, payload: &Payload, bytes: &mut Vec<u8>) -> u32 {
    bytes.clear();
    let protocol = if matches!(payload, Payload::Segment(_)) { 6 } else { 17 };
    ip(packet, protocol, bytes);
    let port = PORT.wrapping_add((packet.stream % 7_000) as u16);
    let length = match payload {
        Payload::Segment(segment) => {
            tcp(segment, port, bytes);
            bytes.len() as u32 + segment.len
        }
        Payload::Datagram(data) => {
            udp(data.len(), port, bytes);
            bytes.extend(data);
            bytes.len() as u32
        }
        Payload::Filler => {
            let data = packet.size.saturating_sub(28);
            udp(data as usize, port, bytes);
            bytes.len() as u32 + data
        }
    };
    complete_ip(length, bytes);
    // Papers count headers differently. Bytes that they count beyond these headers are not in the
    // IP header's total length.
    length.max(packet.size)
}

/// The address of a port: `10.x.y.z`.
pub(super) fn address(port: PortId) -> [u8; 4] {
    let [_, a, b, c] = port.0.wrapping_add(1).to_be_bytes();
    [10, a, b, c]
}

fn ip(packet: &Packet, protocol: u8, bytes: &mut Vec<u8>) {
    let ecn = packet.ecn.bits();
    // Length and checksum are filled in later; "do not fragment" is set, with 64 hops.
    bytes.extend([0x45, ecn, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0]);
    bytes.extend(address(PortId(packet.to.0 ^ 1)));
    bytes.extend(address(packet.to));
}

/// Fills in length and checksum of the IP header at the beginning (RFC 791 §3.1).
fn complete_ip(length: u32, bytes: &mut [u8]) {
    let Some(header) = bytes.get_mut(..20) else { return };
    let length = u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes();
    header[2..4].copy_from_slice(&length);
    let words =
        header.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    header[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
}

fn udp(data: usize, port: u16, bytes: &mut Vec<u8>) {
    let length = u16::try_from(data + 8).unwrap_or(u16::MAX);
    for field in [port, port, length, 0] {
        bytes.extend(field.to_be_bytes());
    }
}

fn tcp(segment: &Segment, port: u16, bytes: &mut Vec<u8>) {
    let options = options(segment);
    let words = 5 + options.len() as u16 / 4;
    let mut flags = words << 12;
    // The bits are those of RFC 9293 and RFC 3168. PSH is not modelled.
    let bits = [
        (Flags::FIN, 1),
        (Flags::SYN, 1 << 1),
        (Flags::RESET, 1 << 2),
        (Flags::ACK, 1 << 4),
        (Flags::ECE, 1 << 6),
        (Flags::CWR, 1 << 7),
    ];
    for (flag, bit) in bits {
        if segment.flags.has(flag) {
            flags |= bit;
        }
    }
    // The model numbers payload bytes from 0 and gives the SYN no number. On the wire the SYN takes
    // one, so payload begins at 1.
    let is_syn = segment.flags.has(Flags::SYN);
    // In the model data carries no acknowledgement, since the other side sends no data. On the wire
    // every segment but the first has one.
    let says_nothing = !is_syn && !segment.flags.has(Flags::ACK);
    if says_nothing {
        flags |= 1 << 4;
    }
    let seq = if is_syn { 0 } else { segment.seq.wrapping_add(1) as u32 };
    let ack = match segment.flags.has(Flags::ACK) {
        true => segment.ack.wrapping_add(1) as u32,
        false => u32::from(says_nothing),
    };
    let window = match (is_syn, says_nothing) {
        (true, _) => segment.window,
        (_, true) => u64::MAX,
        _ => segment.window >> WINDOW_SCALE,
    };
    let window = u16::try_from(window).unwrap_or(u16::MAX);
    for field in [port, port] {
        bytes.extend(field.to_be_bytes());
    }
    bytes.extend(seq.to_be_bytes());
    bytes.extend(ack.to_be_bytes());
    bytes.extend(flags.to_be_bytes());
    bytes.extend(window.to_be_bytes());
    // The checksum and the urgent pointer are zero.
    bytes.extend([0; 4]);
    bytes.extend(options);
}

/// The options, padded to multiples of four bytes; at most 40 bytes.
fn options(segment: &Segment) -> Vec<u8> {
    let mut options = Vec::new();
    if segment.flags.has(Flags::SYN) {
        // SACK permitted, window scale.
        options.extend([4, 2, 3, 3, WINDOW_SCALE]);
    }
    if let Some(timestamps) = segment.timestamps {
        options.extend([1, 1, 8, 10]);
        options.extend(clock(timestamps.value).to_be_bytes());
        let echo = if timestamps.echo == Time::MAX { 0 } else { clock(timestamps.echo) };
        options.extend(echo.to_be_bytes());
    }
    let room = (40 - options.len().min(40)).saturating_sub(4) / 8;
    let blocks = segment.sack.duplicate(segment.ack).into_iter();
    let blocks: Vec<(u64, u64)> = blocks.chain(segment.sack.iter(segment.ack)).take(room).collect();
    if !blocks.is_empty() {
        options.extend([1, 1, 5, 2 + 8 * blocks.len() as u8]);
        for offset in blocks.into_iter().flat_map(|(start, end)| [start, end]) {
            options.extend((offset.wrapping_add(1) as u32).to_be_bytes());
        }
    }
    options.resize(options.len().next_multiple_of(4), 0);
    options
}

/// A timestamp clock of milliseconds (RFC 7323 §5.4 allows 1 ms to 1 s).
fn clock(time: Time) -> u32 {
    (time.as_nanos() / 1_000_000) as u32
}
