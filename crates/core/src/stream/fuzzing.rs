//! Body and seeds of the fuzz target for streams, and the invariants that the tests check too. The
//! body panics if the code violates an invariant.

use std::collections::BTreeMap;

use anabranch_policy::view::{SymbolId, TrafficClass};
use bytes::Bytes;

use super::*;
use crate::wire::codec::Reader;
use crate::wire::fuzzing::with_mutants;
use crate::wire::{ControlFrame, SymbolFrame, SymbolFrames, Writer};

const LIMITS: StreamLimits = StreamLimits {
    max_data: 4096,
    max_stream_data: 1024,
    growth: 1,
    max_streams: 4,
    send_buffer: 256,
    datagram_buffer: 512,
};

/// Simulates a hostile peer and an arbitrary application: `data` is a list of operations on the
/// streams of one side. For each byte position, the reader must get the value that arrived first,
/// and all counts must be consistent.
pub fn symbol(data: &[u8]) {
    let mut machine = Machine::new();
    let mut script = Reader::new(data);
    while let Ok(operation) = script.u8() {
        if machine.step(operation, &mut script).is_none() {
            break;
        }
        audit(&machine.streams);
    }
}

/// The newest symbols, which are held.
#[derive(Debug, Default)]
pub(super) struct Shelf(BTreeMap<SymbolId, (Vec<u8>, u16)>);

impl Shelf {
    /// Most symbols held at a time.
    const MOST: usize = 4;

    /// Delivers a new symbol and holds it. If too many symbols are held, the oldest is dropped.
    pub(super) fn deliver(
        &mut self,
        streams: &mut Streams,
        id: SymbolId,
        payload: &[u8],
    ) -> Result<(), Violation> {
        let pieces = streams.on_held_symbol(id, payload)?;
        self.0.insert(id, (payload.to_vec(), pieces));
        if self.0.len() > Self::MOST
            && let Some((id, (payload, pieces))) = self.0.pop_first()
            && pieces > 0
        {
            streams.keep(id, &payload);
        }
        Ok(())
    }
}

impl HeldSymbols for Shelf {
    fn read(&mut self, id: SymbolId, read: impl FnOnce(&[u8]) -> bool) {
        let (payload, pieces) = self.0.get_mut(&id).expect("what is left is held");
        if read(payload) {
            *pieces = pieces.checked_sub(1).expect("a piece is read to its end once");
        }
    }
}

struct Machine {
    streams: Streams,
    /// The first value of every byte that arrived.
    arrived: BTreeMap<(StreamId, u64), u8>,
    read: BTreeMap<StreamId, u64>,
    symbol: SymbolId,
    control: Option<ControlFrame>,
    shelf: Shelf,
    arrivals: u64,
}

impl Machine {
    fn new() -> Self {
        let mut streams = Streams::new(Role::Responder, LIMITS);
        streams.set_peer_limits(2048, 512, 2);
        let _ = streams.open(TrafficClass::Live);
        Machine {
            streams,
            arrived: BTreeMap::new(),
            read: BTreeMap::new(),
            symbol: SymbolId(0),
            control: None,
            shelf: Shelf::default(),
            arrivals: 0,
        }
    }

    /// Performs one operation. Returns `None` if the script or the connection has ended.
    fn step(&mut self, operation: u8, script: &mut Reader<'_>) -> Option<()> {
        if operation < 0x80 {
            let payload = script.bytes(operation.into()).or_else(|_| script.rest()).ok()?;
            return self.deliver(payload);
        }
        let id = StreamId(u64::from(operation >> 1 & 7));
        let argument = script.u8().ok()?;
        let wide = u64::from(argument) * 64;
        match operation >> 4 & 7 {
            0 => self.read(id, argument),
            1 => self.write(id, argument),
            2 => self.fill(operation, argument),
            3 => self.exchange_control(),
            4 => drop(self.streams.reset(id, wide)),
            5 => drop(self.streams.stop_sending(id, wide)),
            6 if argument & 1 == 0 => self.streams.on_reset(id, 7, wide / 2).ok()?,
            6 => self.streams.on_stop_sending(id, wide).ok()?,
            _ if argument & 1 == 0 => self.streams.on_max_stream_data(id, wide).ok()?,
            _ => self.streams.on_max_data(wide),
        }
        Some(())
    }

    fn deliver(&mut self, payload: &[u8]) -> Option<()> {
        for frame in SymbolFrames::new(payload).map_while(Result::ok) {
            if let SymbolFrame::Stream { stream, offset, data, .. } = frame {
                for (at, byte) in (offset..).zip(data) {
                    self.arrived.entry((stream, at)).or_insert(*byte);
                }
            }
        }
        self.arrivals += 1;
        self.shelf.deliver(&mut self.streams, SymbolId(self.arrivals), payload).ok()
    }

    fn read(&mut self, id: StreamId, length: u8) {
        let mut buffer = [0; 256];
        let (streams, shelf) = (&mut self.streams, &mut self.shelf);
        let Ok(outcome) = streams.read(id, &mut buffer[..length.into()], shelf) else { return };
        let offset = self.read.entry(id).or_default();
        for byte in &buffer[..outcome.n] {
            assert_eq!(self.arrived.get(&(id, *offset)), Some(byte), "{id} at {offset}");
            *offset += 1;
        }
    }

    fn write(&mut self, id: StreamId, argument: u8) {
        let _ = self.streams.write(id, &[argument; 255][..argument.into()]);
        if argument & 8 != 0 {
            let mut chunk = Bytes::from(vec![argument; usize::from(argument) * 4]);
            let _ = self.streams.write_chunk(id, &mut chunk);
        }
        if argument & 3 == 3 {
            let _ = self.streams.finish(id);
        }
        let _ = self.streams.send_datagram(&[argument; 16], TrafficClass::Bulk);
        let _ = match argument & 4 {
            0 => self.streams.open(TrafficClass::Interactive),
            _ => self.streams.open_uni(TrafficClass::Bulk),
        };
        let _ = self.streams.set_priority(id, i32::from(argument) - 128);
    }

    fn fill(&mut self, operation: u8, argument: u8) {
        let mut buffer = [0; 256];
        let buffer = &mut buffer[..argument.into()];
        while let Some(class) = self.streams.pending().class {
            let n = self.streams.fill_symbol(class, self.symbol, buffer);
            assert!(SymbolFrames::new(&buffer[..n]).all(|frame| frame.is_ok()));
            self.symbol.0 += 1;
            if n == 0 {
                break;
            }
        }
        if operation & 1 == 1 {
            self.streams.on_floor(self.symbol);
        }
    }

    fn exchange_control(&mut self) {
        if let Some(lost) = self.control.take() {
            self.streams.on_control_lost(&lost);
        }
        self.control = self.streams.poll_control();
        while self.streams.poll_event().is_some() {}
        while self.streams.recv_datagram(&mut [0; 8]).is_some() {}
    }
}

/// Checks the invariants that must hold between any two calls.
pub fn audit(streams: &Streams) {
    let all = || streams.streams.values();
    assert_eq!(streams.unsent, all().map(|stream| stream.send.unsent()).sum());
    assert_eq!(streams.pieces, all().map(|stream| stream.receive.pieces()).sum());
    assert!(streams.pieces <= MAX_GAPS);
    assert!(streams.consumed <= streams.received);
    assert!(streams.received <= streams.control.max_data());
    assert!(streams.sent <= streams.sent_limit);
    for (class, queue) in streams.classes.iter().enumerate() {
        let mine = || all().map(|stream| &stream.send).filter(|send| send.class as usize == class);
        assert_eq!(queue.data, mine().map(|send| send.counted.data).sum());
        let lone_fins = mine().filter(|send| send.counted.lone_fin).count();
        assert_eq!(queue.lone_fins, lone_fins as u64);
        let unwritten = mine().filter(|send| send.counted.more).count();
        assert_eq!(queue.unwritten, unwritten as u64);
        assert_eq!(queue.turns.len(), mine().filter(|send| send.queued).count());
        assert!(mine().all(|send| send.counted == send.sendable()));
        assert!(mine().all(|send| send.queued || send.counted.is_none()));
    }
    assert!(streams.room >= streams.counted_room());
    for (id, stream) in &streams.streams {
        let receive = &stream.receive;
        assert!(receive.read + receive.readable() <= receive.highest);
        assert!(receive.highest <= receive.limit);
        assert!(receive.final_size.is_none_or(|size| receive.highest <= size));
        assert!(!receive.discards() || receive.pieces() == 0);
        assert!(stream.events.is_empty() || stream.listed, "{id} has events that nobody will see");
    }
}

/// Inputs for [`symbol`].
pub fn symbol_seeds() -> Vec<Vec<u8>> {
    let frame = |stream: u64, offset: u64, fin: bool, data: &[u8]| {
        let mut buffer = [0; 200];
        let mut writer = Writer::new(&mut buffer);
        let frame = SymbolFrame::Stream { stream: StreamId(stream), offset, fin, data };
        frame.encode(&mut writer).expect("seeds are short");
        let n = writer.position();
        [&[n as u8], &buffer[..n]].concat()
    };
    let in_order = [
        frame(0, 0, false, b"hello "),
        frame(0, 6, true, b"world"),
        vec![0x80, 4, 0x80, 40, 0x80, 1],
    ];
    let holes = [
        frame(0, 900, false, b"far"),
        frame(0, 10, false, b"overlapping"),
        frame(0, 5, false, b"under and over the other one"),
        frame(0, 0, false, b"begin"),
        vec![0x80, 200, 0xb0, 0, 0xb0, 0],
    ];
    let contradiction = [frame(4, 0, true, b"end"), frame(4, 0, true, b"later end")];
    let sending = [vec![0x92, 103, 0xa1, 60, 0xa1, 60, 0xf3, 255, 0xf0, 254, 0xa1, 200, 0xb0, 0]];
    let giving_up = [
        frame(8, 100, false, b"stale"),
        vec![0xd8, 1, 0xc8, 2, 0xb0, 0, 0xb0, 0, 0xb0, 0],
        frame(8, 0, true, &[7; 105]),
        vec![0xe0, 100, 0xe0, 101, 0xb0, 0],
    ];
    let mut two_datagrams = vec![32, 0x22, 1, b'a', 0x22, 1, b'b'];
    two_datagrams.resize(33, 0);
    let datagrams = [two_datagrams, vec![3, 0x22, 9, b'c']];
    with_mutants(vec![
        in_order.concat(),
        holes.concat(),
        contradiction.concat(),
        sending.concat(),
        giving_up.concat(),
        datagrams.concat(),
    ])
}
