//! The cases: honest packets, and attacks of hostile peers.

use anabranch_core::testing::Rogue;
use anabranch_core::wire::{ControlFrame, StreamId};
use anabranch_policy::view::{SymbolId, TrafficClass};
use anabranch_types::PathId;
use core::time::Duration;

use crate::peer::{
    LONGEST_SYMBOL, MOST_REPAIRS, Packet, ack, after, connect, control, datagrams, full,
    full_symbol, packed, pieces, ranks as ranks_of, recovering, repair, source, stream,
};
use crate::prepared::Prepared;

/// Sender of the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A peer that keeps to the rules.
    Honest,
    /// A peer that tries to cause much work.
    Hostile,
}

/// Packets of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Name of the case.
    pub name: &'static str,
    /// Sender of the packets.
    pub kind: Kind,
    /// The honest case that the packets are compared with.
    pub like: &'static str,
    /// How many of the packets are counted.
    pub packets: u32,
    /// Prepares the connection and the packets.
    pub prepare: fn() -> Prepared,
}

const fn honest(name: &'static str, prepare: fn() -> Prepared) -> Case {
    Case { name, kind: Kind::Honest, like: DATA, packets: 2, prepare }
}

const fn hostile(name: &'static str, prepare: fn() -> Prepared) -> Case {
    Case { name, kind: Kind::Hostile, like: DATA, packets: 2, prepare }
}

/// A case whose packets cost different amounts, so that several are counted.
const fn uneven(name: &'static str, prepare: fn() -> Prepared) -> Case {
    Case { packets: 4, ..hostile(name, prepare) }
}

/// Repairs, compared with an honest one of the same code, which costs a symbol's length for each symbol that it covers.
const fn repairs(name: &'static str, like: &'static str, prepare: fn() -> Prepared) -> Case {
    Case { name, kind: Kind::Hostile, like, packets: 1, prepare }
}

/// The case that most others are compared with.
pub const DATA: &str = "stream data in order";
const REED_SOLOMON: &str = "a repair, Reed-Solomon";
const LINEAR: &str = "a repair, random linear";
const LT: &str = "a repair, LT";
const RAPTORQ: &str = "a block of RaptorQ, for each packet";
const SLIDING: &str = "a repair of a sliding window";

/// All cases. Most are compared with the first.
pub const CASES: &[Case] = &[
    honest(DATA, data_in_order),
    honest(REED_SOLOMON, || honest_repairs(None)),
    honest(LINEAR, || honest_repairs(Some("random-linear"))),
    Case { packets: 1, ..honest(SLIDING, || honest_repairs(Some("sliding-window"))) },
    honest(LT, || honest_repairs(Some("lt"))),
    Case { packets: BLOCK as u32, ..honest(RAPTORQ, raptorq_block) },
    honest("an acknowledgement of two packets", acknowledgements),
    hostile("ABANDON of single symbols beside many blocks", abandon_singles),
    hostile("ABANDON of long runs, again and again", abandon_runs),
    hostile("repairs that each begin a block", repairs_of_new_blocks),
    hostile("short repairs of one block, Reed-Solomon", || short_repairs("reed-solomon", 200, 5)),
    repairs("short repairs of one block, random linear", LINEAR, || {
        short_repairs("random-linear", 1000, 5)
    }),
    repairs("short repairs of one block, LT", LT, || short_repairs("lt", 500, 5)),
    repairs("short sources that repairs wait for, LT", LT, awaited_sources),
    repairs("short repairs of one window", SLIDING, short_repairs_of_a_window),
    repairs("short sources of one window", SLIDING, short_sources_of_a_window),
    repairs("ABANDON of single symbols in a window", SLIDING, abandon_in_a_window),
    Case { packets: 3, ..repairs("short symbols of many blocks, RaptorQ", RAPTORQ, short_blocks) },
    Case {
        packets: 2,
        ..repairs("empty symbols and a long repair, RaptorQ", RAPTORQ, empty_blocks)
    },
    hostile("pieces of a stream before many others", pieces_before_others),
    Case { packets: 28, ..hostile("pieces that make buffers grow", growing_buffers) },
    uneven("buffers that double, with nothing in them", doubling_buffers),
    hostile("empty pieces", empty_pieces),
    hostile("empty datagrams", || datagram_flood(0)),
    hostile("datagrams of a byte", || datagram_flood(1)),
    hostile("tiny symbols with a hole before each", tiny_symbols),
    hostile("copies of symbols", copied_symbols),
    hostile("RANK, again and again", ranks),
    hostile("ACK, again and again", acks),
    hostile("ACK of many ranges", ack_ranges),
    hostile("limits that rise", limits),
    uneven("streams opened and reset", resets),
    Case { packets: 1, ..hostile("streams of a byte", tiny_streams) },
    Case { packets: 1, ..hostile("streams of a byte, in many symbols", tiny_streams_of_symbols) },
    repairs("streams of a byte, in repairs", REED_SOLOMON, recovered_streams),
    repairs("empty datagrams, in repairs", REED_SOLOMON, recovered_datagrams),
    hostile("questions", questions),
    hostile("path states", path_states),
    hostile("acknowledgement floors", floors),
    uneven("paths opened and abandoned", path_churn),
    hostile("connection ids", connection_ids),
];

const CREDIT: u64 = 16_384;

fn data_in_order() -> Prepared {
    let rogue = connect(None);
    let symbol = |n: usize| full([source(n as u64, pieces(0, [n as u64 * 1370], 1370))]);
    after(rogue, (0..4).map(symbol), |n| symbol(n + 4)).reading(0)
}

/// Repairs of a block of which an eighth is missing.
fn honest_repairs(code: Option<&str>) -> Prepared {
    let rogue = connect(code);
    let symbol = |n: u64| full([source(n, pieces(0, [n * 1200], 1200))]);
    let held = (0..250).filter(|n| n % 8 != 0).map(symbol);
    after(rogue, held, |n| full([repair(0, 250, n as u32 % 5, 1220)]))
}

/// Symbols of a RaptorQ block in these cases: few, because counting the instructions of solving it
/// takes long.
const BLOCK: u64 = 10;

/// A block of full symbols of which a tenth is lost: its last packet is the one that solves it.
fn raptorq_block() -> Prepared {
    after(connect(Some("raptorq")), [], |n| {
        let n = n as u64;
        if n < BLOCK - 1 {
            full([source(n, pieces(0, [n * 1200], 1200))])
        } else {
            full([repair(0, BLOCK as u16, n as u32, 1220)])
        }
    })
}

/// Packets with as many blocks as possible, of symbols of one byte, after 20 packets that use up the first budget.
fn short_blocks() -> Prepared {
    let block = |first: u64| {
        let sources = (1..BLOCK).map(move |n| source(first + n, vec![0; 1]));
        sources.chain([repair(first, BLOCK as u16, 0, 1)])
    };
    let mut packets = packed((0..).map(|n| n * BLOCK).flat_map(block));
    let before: Vec<Packet> = packets.by_ref().take(20).collect();
    after(connect(Some("raptorq")), before, |_| packets.next().unwrap_or_default())
}

/// A block in each packet, of symbols without bytes and a long repair.
fn empty_blocks() -> Prepared {
    let packet = |n: u64| {
        let sources = (1..17).map(|k| source(17 * n + k, Vec::new()));
        full(sources.chain([repair(17 * n, 17, 0, 1000)]))
    };
    after(connect(Some("raptorq")), (0..10).map(packet), |n| packet(10 + n as u64))
}

/// A connection on which the victim has opened this many streams.
fn busy_sender(profile_streams: usize) -> Rogue {
    let mut rogue = connect(None);
    if let Some(connection) = rogue.connection() {
        for _ in 0..profile_streams {
            let _ = connection.open_stream(TrafficClass::Bulk);
        }
    }
    rogue
}

fn write_all(rogue: &mut Rogue) {
    let Some(connection) = rogue.connection() else { return };
    while connection.write(StreamId(1), &[7; 4096]).is_ok_and(|count| count > 0) {}
}

/// Opens the victim's congestion window by acknowledging its packets for `rounds` rounds.
fn open_window(rogue: &mut Rogue, rounds: usize) {
    for _ in 0..rounds {
        write_all(rogue);
        rogue.advance(Duration::from_millis(10));
        while rogue.take().is_some() {}
        rogue.acknowledge(0);
    }
    write_all(rogue);
    rogue.advance(Duration::from_millis(10));
    rogue.listen();
}

/// The numbers of the packets in flight, in the order of sending.
fn in_flight(rogue: &mut Rogue) -> Vec<u64> {
    core::iter::from_fn(|| rogue.take()).map(|heard| heard.number).collect()
}

fn acknowledgements() -> Prepared {
    let mut rogue = busy_sender(1);
    open_window(&mut rogue, 60);
    let flight = in_flight(&mut rogue);
    let from = flight.first().copied().unwrap_or_default();
    after(rogue, [], |n| ack([from..=from + 2 * n as u64 + 1]))
}

fn abandon_singles() -> Prepared {
    let rogue = connect(None);
    let blocks: Vec<u64> = (1..CREDIT / 2).map(|n| 2 * n).collect();
    let packet = |firsts: &[u64]| full(firsts.iter().map(|first| repair(*first, 2, 0, 1)));
    after(rogue, blocks.chunks(MOST_REPAIRS).map(packet), |_| full((0..).map(|_| abandon(1, 1))))
}

fn abandon(first: u64, count: u64) -> crate::peer::Written<'static> {
    control(ControlFrame::Abandon { first: SymbolId(first), count })
}

fn abandon_runs() -> Prepared {
    after(connect(None), [], |_| full((0..).map(|_| abandon(40, 1000))))
}

fn repairs_of_new_blocks() -> Prepared {
    let rogue = connect(None);
    let block = |n: usize| (CREDIT - 2 - 2 * n as u64).max(2);
    let packet = |from: usize| full((from..).map(|n| repair(block(n), 2, 0, 1)));
    after(rogue, (0..880).map(|n| packet(n * 8)), |n| packet(7040 + n * 8))
}

fn short_repairs(code: &str, count: u16, held: u64) -> Prepared {
    let rogue = connect(Some(code));
    let symbol = |n: u64| full([source(n, pieces(0, [n * 1200], 1200))]);
    let held = (1..=held).map(symbol);
    after(rogue, held, |n| full((0..).map(|k| repair(0, count, (n * 8 + k) as u32 % 55, 1))))
}

/// Sources of one byte of a block that nearly this many repairs wait for.
fn awaited_sources() -> Prepared {
    let repairs = |n: u32| full((0..).map(|k| repair(0, 500, n * 8 + k, 1)));
    let sources = |n: u64| full((16 * n..500).map(|id| source(id, vec![0; 1])));
    after(connect(Some("lt")), (0..50).map(repairs), |n| sources(n as u64 % 30))
}

/// A window of 500 missing sources, and 480 repairs of them, which are too few to recover any.
fn full_window() -> (Rogue, impl Iterator<Item = Packet>) {
    let long = |n: u64| full([repair(n % 6 * 50, 250, n as u32, 1300)]);
    (connect(Some("sliding-window")), (0..480).map(long))
}

fn short_repairs_of_a_window() -> Prepared {
    let (rogue, before) = full_window();
    let frame = |n: u64| repair(n % 6 * 50, 250, 1000 + n as u32, 1);
    after(rogue, before, |n| full((0..).map(|k| frame(n as u64 * 8 + k))))
}

/// Sources of one byte that all repairs of the window wait for.
fn short_sources_of_a_window() -> Prepared {
    let (rogue, before) = full_window();
    let each = |n: u64| source(499 - n, vec![0; 1]);
    after(rogue, before, |n| full((n as u64 % 30 * 16..).map(each)))
}

/// Every second source of the window is given up.
fn abandon_in_a_window() -> Prepared {
    let (rogue, before) = full_window();
    after(rogue, before, |n| full((0..100).map(|k| abandon(n as u64 % 2 * 200 + 2 * k + 1, 1))))
}

/// Pieces of one byte at every second offset of a stream, the last first.
fn pieces_before_others() -> Prepared {
    let rogue = connect(None);
    let from = |n: usize| (60_000_u64).saturating_sub(n as u64 * 200);
    let symbol = |n: usize| {
        let offsets = (0..200).map(|k| 2 * (from(n) - k) + 1);
        full([source(n as u64, pieces(0, offsets, 1))])
    };
    after(rogue, (0..200).map(symbol), |n| symbol(n + 200))
}

/// Pieces far from the beginning of a hundred streams, in turn.
fn growing_buffers() -> Prepared {
    let rogue = connect(None);
    let symbol = |n: usize| {
        let piece = |k: u64| stream(4 * (k % 100), 1000 + k / 100 * 500, 1, false);
        let payload = full_symbol(LONGEST_SYMBOL, (40 * n as u64..).map(piece));
        full([source(n as u64, payload)])
    };
    after(rogue, [], symbol)
}

/// A byte twice as far from the beginning of a stream each time.
fn doubling_buffers() -> Prepared {
    let symbol = |n: usize| {
        let offsets = (10..22).map(|power| (1_u64 << power) + 1);
        full([source(n as u64, pieces(4 * n as u64, offsets, 1))])
    };
    after(connect(None), [], |n| if n < 3 { symbol(n) } else { Vec::new() })
}

fn empty_pieces() -> Prepared {
    let payload = || pieces(0, (0..).map(|_| 0), 0);
    after(connect(None), [], |n| full([source(n as u64, payload())]))
}

fn datagram_flood(length: usize) -> Prepared {
    // Nobody reads the datagrams, and the queue is full after the first few.
    let packet = move |n: usize| full([source(n as u64, datagrams(LONGEST_SYMBOL, length))]);
    after(connect(None), (0..40).map(packet), move |n| packet(40 + n))
}

fn tiny_symbols() -> Prepared {
    let symbols = |n: u64| (16 * n..).map(|k| source(2 * k + 1, Vec::new()));
    after(connect(None), [], |n| full(symbols(n as u64)))
}

fn copied_symbols() -> Prepared {
    let symbols = || (0..500).map(|k| source(k % 60, Vec::new()));
    after(connect(None), [full(symbols())], |_| full(symbols()))
}

fn ranks() -> Prepared {
    let mut rogue = busy_sender(1);
    open_window(&mut rogue, 60);
    after(rogue, [], |n| full([ranks_of(n as u64)]))
}

fn acks() -> Prepared {
    let mut rogue = busy_sender(1);
    open_window(&mut rogue, 60);
    let flight = in_flight(&mut rogue);
    let from = flight.first().copied().unwrap_or_default();
    let last = flight.last().copied().unwrap_or_default();
    after(rogue, [ack([from + 1..=last])], |_| ack([from + 1..=last]))
}

fn ack_ranges() -> Prepared {
    let mut rogue = busy_sender(1);
    open_window(&mut rogue, 60);
    let flight = in_flight(&mut rogue);
    let last = flight.last().copied().unwrap_or_default();
    let ranges = || (0..64).map(|n| last - 2 * n..=last - 2 * n);
    // Deliver the first one beforehand: what it sets off is the victim's own sending.
    after(rogue, [ack(ranges())], |_| ack(ranges()))
}

fn limits() -> Prepared {
    let mut rogue = busy_sender(100);
    write_all(&mut rogue);
    let frame = |n: u64| {
        control(ControlFrame::MaxStreamData { stream: StreamId(1 + 4 * (n % 100)), limit: 60 + n })
    };
    after(rogue, [], |n| full((0..500).map(|k| frame(n as u64 * 500 + k))))
}

fn resets() -> Prepared {
    let frame = |n: u64| {
        let stream = StreamId(4 * (n % 100));
        if (n / 100).is_multiple_of(2) {
            control(ControlFrame::ResetStream { stream, code: 1, final_size: 0 })
        } else {
            control(ControlFrame::StopSending { stream, code: 1 })
        }
    };
    after(connect(None), [], |n| full((0..300).map(|k| frame(n as u64 * 300 + k))))
}

/// Streams that are opened and ended with one byte each.
fn tiny_streams() -> Prepared {
    after(connect(None), [], |_| full([source(0, tiny_streams_from(0, LONGEST_SYMBOL))]))
}

/// The payload of a symbol of up to `length` bytes that opens and ends streams.
fn tiny_streams_from(first: u64, length: usize) -> Vec<u8> {
    full_symbol(length, (first..).map(|n| stream(4 * n, 0, 1, true)))
}

/// Streams as in [`tiny_streams`], in as many symbols as a packet may hold.
fn tiny_streams_of_symbols() -> Prepared {
    let symbol = |k: u64| source(k, tiny_streams_from(3 * k, 64));
    after(connect(None), [], |_| full((0..).map(symbol)))
}

/// Streams as in [`tiny_streams`], in symbols recovered from as many repairs as a packet may hold.
fn recovered_streams() -> Prepared {
    let repair = |k: u64| recovering(k, &tiny_streams_from(6 * k, 160));
    after(connect(None), [], |_| full((0..).map(repair)))
}

fn recovered_datagrams() -> Prepared {
    let repair = |id: u64| recovering(id, &datagrams(160, 0));
    after(connect(None), [], |n| full((8 * n as u64..).map(repair)))
}

fn questions() -> Prepared {
    let frame = |n: u64| control(ControlFrame::PathChallenge { data: n.to_be_bytes() });
    after(connect(None), [], |n| full((0..300).map(|k| frame(n as u64 * 300 + k))))
}

fn path_states() -> Prepared {
    let frame = |n: u64| {
        let status =
            [anabranch_core::wire::PathUse::Backup, anabranch_core::wire::PathUse::Available];
        control(ControlFrame::PathStatus {
            path: PathId(0),
            sequence: n,
            status: status[n as usize % 2],
        })
    };
    after(connect(None), [], |n| full((0..500).map(|k| frame(n as u64 * 500 + k))))
}

fn floors() -> Prepared {
    let frame = |floor: u64| control(ControlFrame::AckFloor { path: PathId(0), floor });
    after(connect(None), [], |n| full((0..500).map(|k| frame(n as u64 * 500 + k))))
}

/// Each packet opens a path and abandons the one before.
fn path_churn() -> Prepared {
    let mut rogue = connect(None);
    // Connection ids exist for this many paths.
    let packets = (1..9_u32)
        .map(|id| {
            let abandon = ControlFrame::PathAbandon { path: PathId(id - 1), reason: 0 };
            (id, rogue.prepare(id, &full([control(abandon)])))
        })
        .collect();
    Prepared::new(rogue, packets)
}

/// Ids of all paths that may be opened, repeatedly.
fn connection_ids() -> Prepared {
    let frame = |k: u32| {
        let path = k % 16 + 1;
        control(ControlFrame::NewConnectionId { path: PathId(path), id: Rogue::id(path) })
    };
    after(connect(None), [], |_| full((0..300).map(frame)))
}
