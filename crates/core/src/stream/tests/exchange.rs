//! Two sides and a network that reorders and repeats symbols and loses control frames. Every reader
//! must get exactly the bytes that were written.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const CLASSES: [TrafficClass; 3] =
    [TrafficClass::Interactive, TrafficClass::Live, TrafficClass::Bulk];

/// The byte that `side` writes at `offset` of a stream.
fn pattern(side: usize, id: StreamId, offset: u64) -> u8 {
    let mixed = (offset ^ id.0 << 40 ^ (side as u64) << 60).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}

#[derive(Clone, Debug)]
enum Step {
    Open(usize, Direction, usize),
    Write(usize, prop::sample::Index, usize),
    Priority(usize, prop::sample::Index, i32),
    Finish(usize, prop::sample::Index),
    Fill(usize, usize),
    Deliver(usize, prop::sample::Index),
    Repeat(usize, prop::sample::Index),
    Control(usize, bool),
    Read(usize, prop::sample::Index, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let side = 0..2_usize;
    let index = any::<prop::sample::Index>;
    let direction = prop_oneof![Just(Direction::Bidirectional), Just(Direction::Unidirectional)];
    let step = prop_oneof![
        1 => (side.clone(), direction, 0..3_usize).prop_map(|(s, direction, class)| Step::Open(s, direction, class)),
        1 => (side.clone(), index(), -2..3).prop_map(|(s, i, priority)| Step::Priority(s, i, priority)),
        4 => (side.clone(), index(), prop_oneof![0..700_usize, 0..20_000_usize]).prop_map(|(s, i, n)| Step::Write(s, i, n)),
        1 => (side.clone(), index()).prop_map(|(s, i)| Step::Finish(s, i)),
        6 => (side.clone(), prop_oneof![0..300_usize, 300..2000_usize]).prop_map(|(s, n)| Step::Fill(s, n)),
        6 => (side.clone(), index()).prop_map(|(s, i)| Step::Deliver(s, i)),
        2 => (side.clone(), index()).prop_map(|(s, i)| Step::Repeat(s, i)),
        2 => (side.clone(), any::<bool>()).prop_map(|(s, lost)| Step::Control(s, lost)),
        4 => (side, index(), 0..500_usize).prop_map(|(s, i, n)| Step::Read(s, i, n)),
    ];
    prop::collection::vec(step, 0..200)
}

/// One side, and its progress on each stream.
struct Side {
    streams: Streams,
    written: BTreeMap<StreamId, u64>,
    read: BTreeMap<StreamId, u64>,
    finished: BTreeSet<StreamId>,
    ended: BTreeSet<StreamId>,
    acked: BTreeSet<StreamId>,
    /// Symbols sent, and whether each has arrived.
    symbols: Vec<(Vec<u8>, bool)>,
    /// Symbols received and held.
    shelf: Shelf,
}

impl Side {
    fn new(mut streams: Streams) -> Self {
        streams.set_datagram_limit(100);
        Side {
            streams,
            written: BTreeMap::new(),
            read: BTreeMap::new(),
            finished: BTreeSet::new(),
            ended: BTreeSet::new(),
            acked: BTreeSet::new(),
            symbols: Vec::new(),
            shelf: Shelf::default(),
        }
    }

    /// The oldest symbol that has not arrived.
    fn floor(&self) -> SymbolId {
        let first = self.symbols.iter().position(|(_, arrived)| !arrived);
        SymbolId(first.unwrap_or(self.symbols.len()) as u64)
    }

    fn collect_events(&mut self) {
        while let Some(event) = self.streams.poll_event() {
            match event {
                StreamEvent::Opened(id) => {
                    assert_eq!(self.read.insert(id, 0), None, "opened once");
                    if id.direction() == Direction::Bidirectional {
                        self.written.insert(id, 0);
                    }
                }
                StreamEvent::Acked(id) => assert!(self.acked.insert(id), "acknowledged once"),
                StreamEvent::Reset { .. } | StreamEvent::Stopped { .. } => panic!("{event:?}"),
                _ => {}
            }
        }
        for id in &self.acked {
            assert!(self.finished.contains(id));
        }
    }
}

struct Pair([Side; 2]);

impl Pair {
    /// Two sides with [`LIMITS`], whose credits and send buffers are multiplied by `scale`.
    fn new(scale: u64) -> Self {
        let limits = StreamLimits {
            max_data: LIMITS.max_data * scale,
            max_stream_data: LIMITS.max_stream_data * scale,
            send_buffer: LIMITS.send_buffer * scale,
            ..LIMITS
        };
        Pair([Role::Initiator, Role::Responder].map(|role| {
            let mut streams = Streams::new(role, limits);
            streams.set_peer_limits(limits.max_data, limits.max_stream_data, limits.max_streams);
            Side::new(streams)
        }))
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Open(side, direction, class) => self.open(side, direction, CLASSES[class]),
            Step::Priority(side, index, priority) => {
                let side = &mut self.0[side];
                if let Some(id) = pick(&side.written, index) {
                    let known = side.streams.set_priority(id, priority).is_ok();
                    assert_eq!(known, side.streams.urgency(id).is_some());
                }
            }
            Step::Write(side, index, length) => self.write(side, index, length),
            Step::Finish(side, index) => {
                let side = &mut self.0[side];
                let Some(id) = pick(&side.written, index) else { return };
                if side.streams.finish(id).is_ok() {
                    assert!(side.finished.insert(id));
                }
            }
            Step::Fill(side, size) => drop(self.fill(side, size)),
            Step::Deliver(side, index) => self.deliver(side, |n| index.index(n), false),
            Step::Repeat(side, index) => self.deliver(side, |n| index.index(n), true),
            Step::Control(side, lost) => drop(self.control(side, lost)),
            Step::Read(side, index, length) => {
                if let Some(id) = pick(&self.0[side].read, index) {
                    self.read(side, id, length);
                }
            }
        }
        for side in &mut self.0 {
            side.collect_events();
            audit(&side.streams);
        }
    }

    fn open(&mut self, side: usize, direction: Direction, class: TrafficClass) {
        let side = &mut self.0[side];
        let opened = match direction {
            Direction::Bidirectional => side.streams.open(class),
            Direction::Unidirectional => side.streams.open_uni(class),
        };
        let Ok(id) = opened else { return };
        side.written.insert(id, 0);
        if direction == Direction::Bidirectional {
            side.read.insert(id, 0);
        }
    }

    fn write(&mut self, who: usize, index: prop::sample::Index, length: usize) {
        let side = &mut self.0[who];
        let Some(id) = pick(&side.written, index) else { return };
        let written = side.written.entry(id).or_default();
        let data: Vec<u8> = (*written..).take(length).map(|at| pattern(who, id, at)).collect();
        if let Ok(n) = side.streams.write(id, &data) {
            *written += n as u64;
        }
    }

    fn fill(&mut self, side: usize, size: usize) -> bool {
        let side = &mut self.0[side];
        let Some(class) = side.streams.pending().class else { return false };
        let symbol = SymbolId(side.symbols.len() as u64);
        let bytes = fill(&mut side.streams, class, symbol.0, size);
        let filled = !bytes.is_empty();
        if filled {
            side.symbols.push((bytes, false));
        }
        filled
    }

    fn deliver(&mut self, from: usize, choose: impl Fn(usize) -> usize, again: bool) {
        let candidates: Vec<usize> = (0..self.0[from].symbols.len())
            .filter(|symbol| self.0[from].symbols[*symbol].1 == again)
            .collect();
        if candidates.is_empty() {
            return;
        }
        let symbol = candidates[choose(candidates.len())];
        let (bytes, arrived) = &mut self.0[from].symbols[symbol];
        *arrived = true;
        let bytes = bytes.clone();
        let to = &mut self.0[1 - from];
        if again {
            to.streams.on_symbol(&bytes).unwrap();
        } else {
            to.shelf.deliver(&mut to.streams, SymbolId(symbol as u64), &bytes).unwrap();
        }
        let floor = self.0[from].floor();
        self.0[from].streams.on_floor(floor);
    }

    fn control(&mut self, from: usize, lost: bool) -> bool {
        let Some(frame) = self.0[from].streams.poll_control() else { return false };
        let to = &mut self.0[1 - from].streams;
        match frame {
            _ if lost => self.0[from].streams.on_control_lost(&frame),
            ControlFrame::MaxData { limit } => to.on_max_data(limit),
            ControlFrame::MaxStreamData { stream, limit } => {
                to.on_max_stream_data(stream, limit).unwrap();
            }
            ControlFrame::MaxStreams { count } => to.on_max_streams(count),
            other => panic!("{other:?} was not asked for"),
        }
        true
    }

    fn read(&mut self, who: usize, id: StreamId, length: usize) -> bool {
        let side = &mut self.0[who];
        let mut buffer = vec![0; length];
        let Ok(outcome) = side.streams.read(id, &mut buffer, &mut side.shelf) else { return false };
        let read = side.read.entry(id).or_default();
        for byte in &buffer[..outcome.n] {
            assert_eq!(*byte, pattern(1 - who, id, *read), "{id} at {read}");
            *read += 1;
        }
        if outcome.finished {
            assert!(side.ended.insert(id), "the end is said once");
        }
        outcome.n > 0 || outcome.finished
    }

    /// Finishes every stream and delivers all data.
    fn settle(&mut self) {
        for round in 0.. {
            assert!(round < 10_000, "nothing moves any more");
            let mut moved = false;
            for who in 0..2 {
                self.0[who].collect_events();
                let side = &mut self.0[who];
                let unfinished = |id: &&StreamId| side.streams.finish(**id).is_ok();
                let finished: Vec<_> = side.written.keys().filter(unfinished).copied().collect();
                moved |= !finished.is_empty();
                side.finished.extend(finished);
                let readable: Vec<_> = side.read.keys().copied().collect();
                for id in readable {
                    moved |= self.read(who, id, 1000);
                }
                moved |= self.fill(who, 200);
                moved |= self.control(who, false);
                while self.0[who].symbols.iter().any(|(_, arrived)| !arrived) {
                    self.deliver(who, |_| 0, false);
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
    }
}

fn pick(streams: &BTreeMap<StreamId, u64>, index: prop::sample::Index) -> Option<StreamId> {
    let ids: Vec<_> = streams.keys().copied().collect();
    (!ids.is_empty()).then(|| *index.get(&ids))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn readers_get_what_was_written(scale in prop_oneof![Just(1), 2..40_u64], steps in steps()) {
        let mut pair = Pair::new(scale);
        for step in steps {
            pair.step(step);
        }
        pair.settle();
        for (who, side) in pair.0.iter().enumerate() {
            let peer = &pair.0[1 - who];
            for (id, written) in &side.written {
                prop_assert_eq!(peer.read.get(id).copied().unwrap_or(0), *written);
                prop_assert!(peer.ended.contains(id), "stream {} has no end", id);
                prop_assert!(side.acked.contains(id), "stream {} is not acknowledged", id);
            }
            for id in side.read.keys() {
                prop_assert!(peer.written.contains_key(id), "stream {} was read at both ends", id);
            }
            prop_assert_eq!(side.streams.count(), 0);
            prop_assert_eq!(side.streams.pending().blocked, Some(Blocked::Application));
            prop_assert_eq!(side.streams.received, side.streams.consumed);
            prop_assert_eq!(side.streams.received, peer.streams.sent);
        }
    }
}
