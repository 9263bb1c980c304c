use anabranch_policy::view::{Blocked, SymbolId, SymbolSpace, TrafficClass};

use super::fuzzing::{Shelf, audit};
use super::*;
use crate::wire::{CloseCode, ControlFrame, Direction, SymbolFrame, SymbolFrames, Writer};

mod credit;
mod datagram;
mod exchange;
mod hostile;
mod order;
mod parts;
mod verbs;

const LIMITS: StreamLimits = StreamLimits {
    max_data: 1000,
    max_stream_data: 400,
    growth: 2,
    max_streams: 3,
    send_buffer: 500,
    datagram_buffer: 200,
};

/// The streams of an initiator whose peer has the same limits.
fn initiator() -> Streams {
    let mut streams = Streams::new(Role::Initiator, LIMITS);
    streams.set_peer_limits(LIMITS.max_data, LIMITS.max_stream_data, LIMITS.max_streams);
    streams
}

/// The streams of a responder whose peer has the same limits.
fn responder() -> Streams {
    let mut streams = Streams::new(Role::Responder, LIMITS);
    streams.set_peer_limits(LIMITS.max_data, LIMITS.max_stream_data, LIMITS.max_streams);
    streams
}

fn fill(streams: &mut Streams, class: TrafficClass, symbol: u64, size: usize) -> Vec<u8> {
    let mut buffer = vec![0xee; size];
    let n = streams.fill_symbol(class, SymbolId(symbol), &mut buffer);
    audit(streams);
    buffer.truncate(n);
    buffer
}

fn frames(symbol: &[u8]) -> Vec<SymbolFrame<'_>> {
    SymbolFrames::new(symbol).collect::<Result<_, _>>().unwrap()
}

fn stream_symbol(id: u64, offset: u64, fin: bool, data: &[u8]) -> Vec<u8> {
    let mut buffer = vec![0; data.len() + 32];
    let mut writer = Writer::new(&mut buffer);
    let frame = SymbolFrame::Stream { stream: StreamId(id), offset, fin, data };
    frame.encode(&mut writer).unwrap();
    writer.written().to_vec()
}

fn events(streams: &mut Streams) -> Vec<StreamEvent> {
    let events = core::iter::from_fn(|| streams.poll_event()).collect();
    audit(streams);
    events
}

fn controls(streams: &mut Streams) -> Vec<ControlFrame> {
    let controls = core::iter::from_fn(|| streams.poll_control()).collect();
    audit(streams);
    controls
}

fn read(streams: &mut Streams, id: StreamId) -> (Vec<u8>, bool) {
    let mut buffer = vec![0; 4096];
    let outcome = streams.read(id, &mut buffer, &mut Shelf::default()).unwrap();
    audit(streams);
    buffer.truncate(outcome.n);
    (buffer, outcome.finished)
}
