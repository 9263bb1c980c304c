//! The layout of a forwarded datagram: request, flow, UDP payload.

use anabranch_core::wire::{Reader, Writer};

use super::MAX_DATAGRAM;
use super::counts::{DatagramCounters, Dropped};
use anabranch::Connection;
use anabranch::DatagramError;
use anabranch::TrafficClass;

/// Longest head: two integers of eight bytes.
const MAX_HEAD: usize = 16;

/// Room for a datagram with its head before it.
pub(crate) fn buffer() -> Vec<u8> {
    vec![0; MAX_HEAD + MAX_DATAGRAM]
}

/// The part of a [`buffer`] that UDP payloads are read into.
pub(crate) fn payload_of(buffer: &mut [u8]) -> &mut [u8] {
    buffer.get_mut(MAX_HEAD..).unwrap_or_default()
}

/// A [`buffer`] of its own for the first `len` bytes of payload in another.
pub(super) fn kept(buffer: &[u8], len: usize) -> Vec<u8> {
    buffer.get(..MAX_HEAD + len).unwrap_or_default().to_vec()
}

/// Writes the head just before the first `len` bytes of payload in a [`buffer`]; gives both.
pub(super) fn framed(buffer: &mut [u8], stream: u64, flow: u64, len: usize) -> Option<&[u8]> {
    let mut head = [0; MAX_HEAD];
    let mut writer = Writer::new(&mut head);
    writer.varint(stream).ok()?;
    writer.varint(flow).ok()?;
    let written = writer.position();
    let start = MAX_HEAD - written;
    buffer.get_mut(start..MAX_HEAD)?.copy_from_slice(head.get(..written)?);
    buffer.get(start..MAX_HEAD + len)
}

/// Sends the first `len` bytes of payload in a [`buffer`] as a datagram of `flow`, if there is room, and counts it.
pub(super) fn send(
    connection: &Connection,
    (stream, flow): (u64, u64),
    (buffer, len): (&mut [u8], usize),
    counters: &DatagramCounters,
) {
    let Some(frame) = framed(buffer, stream, flow, len) else {
        return counters.dropped(Dropped::NoFlow);
    };
    // In the class of the TCP connections' bytes, so that both take turns.
    match connection.try_send_datagram(frame, TrafficClass::Bulk) {
        Ok(()) => counters.sent(len),
        Err(DatagramError::TooLong) => counters.dropped(Dropped::TooLong),
        Err(DatagramError::Full) => counters.dropped(Dropped::NoRoom),
        Err(_) => counters.dropped(Dropped::NotConnected),
    }
}

/// The stream, the flow and the payload of a datagram of the connection; `None` if it is none of ours.
pub(super) fn read(datagram: &[u8]) -> Option<(u64, u64, &[u8])> {
    let mut reader = Reader::new(datagram);
    let (stream, flow) = (reader.varint().ok()?, reader.varint().ok()?);
    Some((stream, flow, reader.peek()))
}
