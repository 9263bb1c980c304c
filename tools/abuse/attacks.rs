//! The attacks of a hostile peer with a permitted key.

use std::sync::LazyLock;

use anabranch_core::wire::{ControlFrame, StreamId, SymbolFrame};
use anabranch_policy::view::SymbolId;
use anabranch_transfer::{Entry, Frame, Kind, Modified, Name, Preface, Role, Target};
use anabranch_types::PathId;

use crate::Failure;
use crate::frames::{
    LONGEST_SYMBOL, Packet, ack, control, datagrams as datagrams_of, full, full_symbol, pieces,
    ranks, recovering, repair, source, stream,
};
use crate::hostile::Hostile;
use crate::receiver::DOWNLOAD;

/// Bytes of a stream in a packet of a peer that keeps to the rules.
const PIECE: u64 = 1200;

/// An attack: its name, and how it sends packet number n.
pub struct Attack {
    /// The attack in a few words.
    pub name: &'static str,
    /// Sends one packet, or a few.
    pub strike: fn(&mut Hostile, u64) -> Result<(), Failure>,
    /// The code of its repairs, if not the default one.
    pub code: Option<&'static str>,
    /// Packets after which the peer opens another connection, because its credit is used up.
    pub lasts: u64,
}

/// A peer that keeps to the rules, for comparison.
pub const HONEST: Attack = Attack {
    name: "no attack: a stream in order",
    strike: write_in_order,
    code: None,
    lasts: u64::MAX,
};

/// All attacks.
pub const ATTACKS: &[Attack] = &[
    Attack {
        name: "symbols given up again and again",
        strike: give_up,
        code: None,
        lasts: u64::MAX,
    },
    Attack { name: "blocks begun", strike: begin_blocks, code: None, lasts: 1000 },
    Attack {
        name: "short repairs of a sliding window",
        strike: slide,
        code: Some("sliding-window"),
        lasts: 900,
    },
    Attack { name: "pieces of a stream", strike: leave_pieces, code: None, lasts: 200 },
    Attack { name: "streams opened and reset", strike: reset_streams, code: None, lasts: 2 },
    Attack { name: "streams of one byte", strike: tiny_streams, code: None, lasts: u64::MAX },
    Attack { name: "pieces without bytes", strike: empty_pieces, code: None, lasts: u64::MAX },
    Attack {
        name: "datagrams without bytes",
        strike: empty_datagrams,
        code: None,
        lasts: u64::MAX,
    },
    Attack {
        name: "datagrams without bytes, in repairs",
        strike: recovered_datagrams,
        code: None,
        lasts: u64::MAX,
    },
    Attack { name: "datagrams that nobody reads", strike: datagrams, code: None, lasts: u64::MAX },
    Attack { name: "limits that rise by one", strike: raise_limits, code: None, lasts: u64::MAX },
    Attack { name: "streams far ahead, which close", strike: far_ahead, code: None, lasts: 1 },
    Attack { name: "RANK, again and again", strike: rank, code: None, lasts: u64::MAX },
    Attack { name: "ACK of many ranges", strike: acknowledge, code: None, lasts: u64::MAX },
    Attack { name: "offers of links to links", strike: offer, code: None, lasts: OFFER_PIECES },
    Attack { name: "questions", strike: ask_questions, code: None, lasts: u64::MAX },
    Attack { name: "paths opened and abandoned", strike: churn_paths, code: None, lasts: u64::MAX },
    Attack { name: "packets from many addresses", strike: move_about, code: None, lasts: u64::MAX },
    Attack { name: "pings to be acknowledged", strike: ping, code: None, lasts: u64::MAX },
    Attack {
        name: "connections half open",
        strike: |hostile, _| hostile.ask(),
        code: None,
        lasts: u64::MAX,
    },
    Attack {
        name: "the same from 1000 addresses",
        strike: |hostile, _| hostile.ask_from_crowd(false),
        code: None,
        lasts: u64::MAX,
    },
    Attack {
        name: "the same with cookies",
        strike: |hostile, _| hostile.ask_from_crowd(true),
        code: None,
        lasts: u64::MAX,
    },
];

fn on_path_0(hostile: &mut Hostile, frames: Packet) -> Result<(), Failure> {
    hostile.send(0, 0, &frames)
}

fn write_in_order(hostile: &mut Hostile, n: u64) -> Result<(), Failure> {
    on_path_0(hostile, full([source(n, pieces(0, [n * PIECE], PIECE as usize))]))
}

fn give_up(hostile: &mut Hostile, _: u64) -> Result<(), Failure> {
    let frame = || control(ControlFrame::Abandon { first: SymbolId(9), count: 1000 });
    on_path_0(hostile, full((0..).map(|_| frame())))
}

fn begin_blocks(hostile: &mut Hostile, n: u64) -> Result<(), Failure> {
    let first = |k: u64| (16_382 - 2 * (8 * n + k) % 16_000).max(2);
    on_path_0(hostile, full((0..).map(|k| repair(first(k), 2, 0, 1))))
}

/// Repairs of a window that is never recovered. A long one in every second packet raises the budget for the short ones.
fn slide(hostile: &mut Hostile, n: u64) -> Result<(), Failure> {
    let length = if n.is_multiple_of(2) { 1300 } else { 1 };
    let frame = |k: u64| repair((n + k) % 6 * 50, 250, (8 * n + k) as u32, length);
    on_path_0(hostile, full((0..).map(frame)))
}

fn leave_pieces(hostile: &mut Hostile, n: u64) -> Result<(), Failure> {
    let from = 60_000_u64.saturating_sub(n * 200);
    let offsets = (0..200).map(|k| 2 * from.saturating_sub(k) + 1);
    on_path_0(hostile, full([source(n, pieces(0, offsets, 1))]))
}

fn reset_streams(hostile: &mut Hostile, n: u64) -> Result<(), Failure> {
    let reset = |k: u64| {
        let stream = StreamId(4 * k);
        if n.is_multiple_of(2) {
            control(ControlFrame::ResetStream { stream, code: 1, final_size: 0 })
        } else {
            control(ControlFrame::StopSending { stream, code: 1 })
        }
    };
    on_path_0(hostile, full((0..100).map(reset)))
}

/// Opens streams as fast as the victim allows, and ends each after one byte.
fn tiny_streams(hostile: &mut Hostile, n: u64) -> Result<(), Failure> {
    let pieces = (0..40).map(|k| stream(4 * (n * 40 + k), 0, 1, true));
    on_path_0(hostile, full([source(n, full_symbol(LONGEST_SYMBOL, pieces))]))
}

fn empty_pieces(hostile: &mut Hostile, n: u64) -> Result<(), Failure> {
    on_path_0(hostile, full([source(n, pieces(0, (0..).map(|_| 0), 0))]))
}

fn empty_datagrams(hostile: &mut Hostile, n: u64) -> Result<(), Failure> {
    on_path_0(hostile, full([source(n, datagrams_of(LONGEST_SYMBOL, 0))]))
}

fn datagrams(hostile: &mut Hostile, n: u64) -> Result<(), Failure> {
    on_path_0(hostile, full([source(n, datagrams_of(LONGEST_SYMBOL, 20))]))
}

fn recovered_datagrams(hostile: &mut Hostile, n: u64) -> Result<(), Failure> {
    let repairs = (8 * n..).map(|id| recovering(id, &datagrams_of(160, 0)));
    on_path_0(hostile, full(repairs))
}

fn raise_limits(hostile: &mut Hostile, n: u64) -> Result<(), Failure> {
    let frame = |k: u64| control(ControlFrame::MaxData { limit: (1 << 30) + n * 128 + k });
    on_path_0(hostile, full((0..).map(frame)))
}

/// Breaks a rule in the first packet of each connection.
fn far_ahead(hostile: &mut Hostile, _: u64) -> Result<(), Failure> {
    on_path_0(hostile, full([source(0, full_symbol(100, [stream(1 << 60, 0, 1, false)]))]))
}

/// Sends a part of stream 0 with these bytes, as the symbol of this number.
fn say(hostile: &mut Hostile, symbol: u64, offset: u64, data: &[u8]) -> Result<(), Failure> {
    let frame = SymbolFrame::Stream { stream: StreamId(0), offset, fin: false, data };
    on_path_0(hostile, full([source(symbol, full_symbol(LONGEST_SYMBOL, [frame]))]))
}

/// Asks for a download, repeatedly, since the first packet may be lost.
fn download(hostile: &mut Hostile, n: u64) -> Result<(), Failure> {
    if n.is_multiple_of(1000) { say(hostile, 0, 0, &[DOWNLOAD]) } else { Ok(()) }
}

/// Reports that blocks of a download lack symbols.
fn rank(hostile: &mut Hostile, n: u64) -> Result<(), Failure> {
    download(hostile, n)?;
    on_path_0(hostile, full([ranks(n % 100)]))
}

/// Acknowledges every second packet of a download, again and again.
fn acknowledge(hostile: &mut Hostile, n: u64) -> Result<(), Failure> {
    download(hostile, n)?;
    let heard: Vec<u64> = hostile.heard().rev().step_by(2).collect();
    on_path_0(hostile, ack(heard.into_iter().map(|number| number..=number)))
}

/// Packets of an offer.
const OFFER_PIECES: u64 = 1000;

/// An offer in which every entry but the first is a link, and links lead to links as far as they may.
static OFFER: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut bytes = Preface { role: Role::Offers }.encode().to_vec();
    let mut entries = 0_u32;
    while bytes.len() < ((OFFER_PIECES - 1) * PIECE) as usize {
        Frame::Entry(link(entries)).encode(&mut bytes);
        entries += 1;
    }
    Frame::OfferEnd { entries }.encode(&mut bytes);
    bytes
});

/// The file `0`, or the link of this number to the number before; every eighth leads to the file.
fn link(number: u32) -> Entry {
    let before = if number.is_multiple_of(8) { 0 } else { number.saturating_sub(1) };
    let is_file = number == 0;
    Entry {
        name: Name::new(number.to_string()).expect("a number is a name"),
        kind: if is_file { Kind::File } else { Kind::Link },
        mode: 0,
        size: 0,
        modified: Modified::default(),
        target: (!is_file).then(|| Target::new(before.to_string()).expect("a number is a target")),
    }
}

fn offer(hostile: &mut Hostile, n: u64) -> Result<(), Failure> {
    let bytes = OFFER.chunks(PIECE as usize).nth(n as usize).unwrap_or_default();
    say(hostile, n, n * PIECE, bytes)
}

fn ask_questions(hostile: &mut Hostile, n: u64) -> Result<(), Failure> {
    let frame = |k: u64| control(ControlFrame::PathChallenge { data: (n * 200 + k).to_be_bytes() });
    on_path_0(hostile, full((0..).map(frame)))
}

fn churn_paths(hostile: &mut Hostile, n: u64) -> Result<(), Failure> {
    // Abandon only paths that have a connection id. Path 0 stays open, so that the victim can supply further ids.
    let id = hostile.highest_path(n as u32 + 1);
    let abandon = ControlFrame::PathAbandon { path: PathId(id.max(2) - 1), reason: 0 };
    hostile.send(0, id, &full([control(abandon)]))
}

fn move_about(hostile: &mut Hostile, n: u64) -> Result<(), Failure> {
    hostile.send(n as usize % 16, 0, &[0x01])
}

fn ping(hostile: &mut Hostile, _: u64) -> Result<(), Failure> {
    on_path_0(hostile, vec![0x01; 128])
}
