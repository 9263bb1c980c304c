//! Sender and receiver together: whatever the channel does, every symbol is delivered once and
//! unchanged, and the sender's views match the symbols in flight.

use core::time::Duration;

use anabranch_policy::code::{Coverage, ErasureCode};
use anabranch_policy::scheduler::Work;
use anabranch_policy::view::{SymbolId, SymbolSpace, TrafficClass};
use anabranch_policy::{PolicySpec, Registry};
use anabranch_types::{Rng, Time};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

use super::blind::Blind;
use crate::coding::code;
use crate::coding::receive::{Arrival, ReceiveBlocks};
use crate::coding::send::{OutgoingSymbol, SendBlocks};
use crate::path::sent::Carried;

const CAPACITY: usize = 48;
const PATHS: u64 = 3;
/// Steps within which a channel without losses must deliver and acknowledge everything.
const PATIENCE: usize = 400;

/// A packet that has left.
#[derive(Clone, Debug)]
struct Packet {
    carried: Carried,
    coverage: Coverage,
    floor: u64,
    slot: u8,
    bytes: Vec<u8>,
}

/// The fate of a packet as the sender assumes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Belief {
    InFlight,
    Lost,
}

/// A symbol's block, whether it is a repair, and its number or key.
type Name = (u64, bool, u64);

fn name(carried: Carried) -> Name {
    match carried {
        Carried::Source(block, id) => (block.0, false, id.0),
        Carried::Repair(block, key) => (block.0, true, key.into()),
    }
}

/// The codes that the model is run with.
const CODES: [&str; 7] =
    ["none", "reed-solomon", "random-linear", "blind", "lt", "raptorq", "sliding-window"];

/// The sender's code and the receiver's.
fn codes(name: &str) -> [Box<dyn ErasureCode>; 2] {
    match name {
        "none" => [code::none(), code::of_peer(&Registry::new(), None)],
        "blind" => [Box::new(Blind), Box::new(Blind)],
        name => [(); 2].map(|()| anabranch_policy::code::build(&PolicySpec::new(name)).unwrap()),
    }
}

struct Model {
    rng: Rng,
    resends: bool,
    send: SendBlocks,
    receive: ReceiveBlocks,
    packets: Vec<Packet>,
    /// Packets in the channel; a packet may be there more than once.
    channel: Vec<usize>,
    beliefs: BTreeMap<usize, Belief>,
    /// Packets that have arrived and whose acknowledgements have not.
    acks: Vec<usize>,
    /// Symbols that wait in a path's queue, each with its path.
    queued: Vec<(OutgoingSymbol, u8)>,
    /// Symbols that the sender knows to have arrived.
    known: BTreeSet<Name>,
    credit: u64,
    delivered: BTreeSet<u64>,
    arrived_new: u64,
}

fn length_of(id: u64) -> usize {
    8 + (id.wrapping_mul(2_654_435_761) >> 7) as usize % (CAPACITY - 7)
}

fn content(id: u64) -> Vec<u8> {
    let mut bytes = id.to_be_bytes().to_vec();
    let tail =
        (8..length_of(id)).map(|at| (SymbolId(id).ordinal() as usize * 31 + at * 7) as u8 | 1);
    bytes.extend(tail);
    bytes
}

impl Model {
    fn new(seed: u64, [sender, receiver]: [Box<dyn ErasureCode>; 2], credit: u64) -> Self {
        let resends = !sender.limits().repairs;
        let space = SymbolSpace::ALL[(seed % 2) as usize];
        let mut send = SendBlocks::new(sender, CAPACITY, u64::MAX).in_space(space);
        send.limit_history(credit / 4);
        Model {
            rng: Rng::new(seed),
            resends,
            send,
            receive: ReceiveBlocks::new(receiver, CAPACITY + 8, credit).in_space(space),
            packets: Vec::new(),
            channel: Vec::new(),
            beliefs: BTreeMap::new(),
            acks: Vec::new(),
            queued: Vec::new(),
            known: BTreeSet::new(),
            credit,
            delivered: BTreeSet::new(),
            arrived_new: 0,
        }
    }

    fn produce(&mut self) {
        if self.send.next_symbol().ordinal() >= self.credit {
            self.close();
            return;
        }
        if self.send.open_block().is_none() {
            let most = if self.rng.chance(0.1) { 300 } else { 40 };
            let sources = 1 + self.rng.below(most) as u16;
            self.send.open(Time::ZERO, TrafficClass::Bulk, sources, CAPACITY as u16);
        }
        if self.push() || self.rng.chance(0.03) {
            self.close();
        }
    }

    /// Adds a symbol to the open block; returns true if the block is then full.
    fn push(&mut self) -> bool {
        let pushed = self.send.push(|id, buffer| {
            let bytes = content(id.0);
            buffer[..bytes.len()].copy_from_slice(&bytes);
            bytes.len()
        });
        let (taken, full) = pushed.expect("there is always something to write");
        if self.send.slides() && self.rng.chance(0.2) {
            let end = self.send.next_symbol().0;
            let count = 1 + self.rng.below(80.min(end)) as u16;
            let block = taken.carried.block();
            let first = SymbolId(end - u64::from(count));
            self.send.set_coverage(block, Coverage { first, count });
            self.send.add_repairs(block, 1);
        }
        self.assign(taken);
        full
    }

    fn close(&mut self) {
        let Some(id) = self.send.close() else { return };
        if !self.resends {
            self.send.plan_repairs(id, self.rng.below(5) as u16);
        }
    }

    /// Sends most symbols at once. Others wait in a queue, and may become unnecessary meanwhile.
    fn assign(&mut self, taken: OutgoingSymbol) {
        let slot = self.rng.below(PATHS) as u8;
        if self.rng.chance(0.1) {
            self.send.enqueue(taken.carried, slot);
            self.queued.push((taken, slot));
        } else {
            self.transmit(&taken, slot);
        }
    }

    /// Sends the newest waiting symbol, or takes it back.
    fn serve_queue(&mut self) {
        let Some((taken, slot)) = self.queued.pop() else { return };
        if self.rng.chance(0.3) {
            self.send.take_back(taken.carried, slot);
        } else if let Some(taken) = self.send.dequeue(taken.carried, slot) {
            self.transmit(&taken, slot);
        }
    }

    fn transmit(&mut self, taken: &OutgoingSymbol, slot: u8) {
        let mut bytes = vec![0; usize::from(taken.length)];
        if self.send.write(taken, &mut bytes).is_err() {
            // Writing fails only for a block that has been recovered and retired.
            assert!(self.send.again(taken.carried).is_none());
            return;
        }
        self.send.on_sent(taken.carried, slot);
        let floor = self.send.oldest_needed().0.min(taken.coverage.first.0);
        let OutgoingSymbol { carried, coverage, .. } = *taken;
        let number = self.packets.len();
        self.packets.push(Packet { carried, coverage, floor, slot, bytes });
        self.beliefs.insert(number, Belief::InFlight);
        self.channel.push(number);
    }

    fn send_due(&mut self) {
        let with_work = self.send.views().iter().find(|view| view.has_work()).map(|view| view.id);
        if let Some(id) = with_work
            && let Some(taken) = self.send.take(Work::Block(id), 0)
        {
            self.assign(taken);
        }
        let slot = self.rng.below(PATHS) as u8;
        let any = self.send.views().first().map(|view| view.id);
        if self.rng.chance(0.05)
            && let Some(taken) = any.and_then(|id| self.send.take(Work::Copy(id), slot))
        {
            if self.rng.chance(0.5) {
                self.send.enqueue(taken.carried, slot);
                self.queued.push((taken, slot));
            } else {
                self.transmit(&taken, slot);
            }
        }
    }

    /// A packet leaves the channel or is lost in it.
    fn carry(&mut self, loss: f64) {
        if self.channel.is_empty() {
            return;
        }
        let at = self.rng.below(self.channel.len() as u64) as usize;
        let number = self.channel[at];
        if !self.rng.chance(0.1 * loss) {
            self.channel.swap_remove(at);
        }
        if !self.rng.chance(loss) {
            self.arrive(number);
        }
    }

    fn arrive(&mut self, number: usize) {
        let packet = self.packets[number].clone();
        let before = self.delivered.len() as u64;
        let delivered = &mut self.delivered;
        let mut deliver = |bytes: &[u8]| {
            let id = u64::from_be_bytes(bytes[..8].try_into().unwrap());
            let expected = content(id);
            assert_eq!(bytes[..expected.len()], expected, "symbol {id}");
            assert!(bytes[expected.len()..].iter().all(|byte| *byte == 0), "symbol {id}");
            assert!(delivered.insert(id), "symbol {id} was delivered twice");
        };
        self.receive.on_packet(packet.bytes.len() + 32);
        let arrival = match packet.carried {
            Carried::Source(_, id) => self.receive.on_source(id, &packet.bytes, &mut deliver),
            Carried::Repair(_, key) => {
                self.receive.on_repair(packet.coverage, key, &packet.bytes, &mut deliver)
            }
        };
        let arrival = arrival.unwrap_or_else(|e| panic!("{e:?} for {packet:?}"));
        if arrival == Arrival::Redundant {
            assert_eq!(self.delivered.len() as u64, before);
        } else if matches!(packet.carried, Carried::Source(..)) {
            self.arrived_new += 1;
        }
        assert_eq!(self.delivered.len() as u64, self.arrived_new + self.receive.decoded());
        self.receive.raise_floor(packet.floor, &mut |_: &[u8]| {});
        self.acks.push(number);
    }

    fn acknowledge(&mut self, loss: f64) {
        if self.acks.is_empty() {
            return;
        }
        let at = self.rng.below(self.acks.len() as u64) as usize;
        let number = self.acks.swap_remove(at);
        if self.rng.chance(loss) {
            return;
        }
        let Packet { carried, slot, .. } = self.packets[number];
        if self.beliefs.contains_key(&number) {
            self.known.insert(name(carried));
        }
        match self.beliefs.remove(&number) {
            Some(Belief::InFlight) => {
                self.send.on_resolved(carried, slot, true);
                self.provision(carried);
            }
            Some(Belief::Lost) => self.send.on_late(carried),
            None => {}
        }
    }

    fn believe_lost(&mut self, number: usize) {
        let Packet { carried, slot, .. } = self.packets[number];
        if self.beliefs.insert(number, Belief::Lost) == Some(Belief::InFlight) {
            self.send.on_resolved(carried, slot, false);
            if self.resends {
                self.send.make_due(carried);
            }
            self.provision(carried);
        }
    }

    /// Declares the oldest packet in flight lost. This is sometimes too early, and the
    /// acknowledgement then arrives late.
    fn lose(&mut self) {
        let open =
            |(number, belief): (&usize, &Belief)| (*belief == Belief::InFlight).then_some(*number);
        if let Some(number) = self.beliefs.iter().find_map(open) {
            self.believe_lost(number);
        }
    }

    fn provision(&mut self, carried: Carried) {
        let mut blocks = vec![carried.block()];
        self.send.match_repairs(|block| blocks.push(block));
        let views = self.send.views().iter().filter(|view| blocks.contains(&view.id));
        for view in views.copied().collect::<Vec<_>>() {
            if view.closed && !self.resends {
                self.send.add_due(Time::ZERO, view.id, view.shortfall(), Duration::ZERO);
            }
        }
    }

    fn report(&mut self) {
        let below = self.receive.first_missing();
        self.send.on_all_received(below);
        for view in self.send.views() {
            let end = below.0.min(view.first.0 + u64::from(view.sources));
            self.known.extend((view.first.0..end).map(|id| (view.id.0, false, id)));
        }
        if self.send.slides() {
            let missing = self.receive.deficits().next().map_or(1, |(_, missing)| missing);
            self.send.on_unfinished(below, missing);
            return self.grant();
        }
        let recovered = self.receive.recovered().map(|first| (first, 0));
        for (first, missing) in self.receive.deficits().chain(recovered) {
            self.send.on_rank(first, missing);
        }
        self.grant();
    }

    fn grant(&mut self) {
        self.credit = self.credit.max(self.receive.new_limit().unwrap_or(0));
    }

    fn retire(&mut self) {
        let delivered = &self.delivered;
        self.send.retire(|view| {
            let end = view.first.0 + u64::from(view.sources);
            assert!((view.first.0..end).all(|id| delivered.contains(&id)), "retired too early");
        });
    }

    fn step(&mut self, loss: f64) {
        match self.rng.below(10) {
            0..3 => self.produce(),
            3 => self.send_due(),
            4..7 => self.carry(loss),
            7 => self.acknowledge(loss),
            8 if self.rng.chance(0.3) => self.lose(),
            8 if self.rng.chance(0.5) => self.serve_queue(),
            8 => self.retire(),
            _ if self.rng.chance(0.2) => self.report(),
            _ => self.send_due(),
        }
    }

    /// Checks that the views match the symbols that are in flight in the model.
    fn audit(&self) {
        for view in self.send.views() {
            let mut on_path = [0_u16; PATHS as usize];
            let mut unknown = BTreeSet::new();
            for (number, belief) in &self.beliefs {
                let packet = &self.packets[*number];
                if packet.carried.block() == view.id && *belief == Belief::InFlight {
                    on_path[usize::from(packet.slot)] += 1;
                    unknown.insert(name(packet.carried));
                }
            }
            assert_eq!(view.in_flight_on[..PATHS as usize], on_path, "{view:?}");
            let mut queued_on = [0_u16; PATHS as usize];
            let mut queued = BTreeSet::new();
            let here = |carried: Carried| carried.block() == view.id;
            for (taken, slot) in self.queued.iter().filter(|(taken, _)| here(taken.carried)) {
                queued_on[usize::from(*slot)] += 1;
                queued.insert(name(taken.carried));
            }
            assert_eq!(view.queued_on[..PATHS as usize], queued_on, "{view:?}");
            queued.retain(|name| !self.known.contains(name) && !unknown.contains(name));
            assert_eq!(usize::from(view.queued), queued.len(), "{view:?}");
            unknown.retain(|name| !self.known.contains(name));
            assert_eq!(usize::from(view.in_flight), unknown.len(), "{view:?}");
            assert!(view.sources + view.repairs <= self.send.max_symbols(), "{view:?}");
            assert!(view.received <= view.sources + view.repairs, "{view:?}");
        }
        assert!(self.receive.first_missing().ordinal() <= self.receive.limit());
        assert!(self.send.memory() >= (self.send.held() * CAPACITY) as u64);
        assert!(self.receive.memory() >= (self.receive.held() * CAPACITY) as u64);
    }

    /// Checks that without further losses, all symbols are soon delivered and acknowledged.
    fn settle(&mut self) {
        self.close();
        for _ in 0..PATIENCE {
            while !self.queued.is_empty() {
                self.serve_queue();
            }
            while !self.channel.is_empty() {
                self.carry(0.0);
            }
            while !self.acks.is_empty() {
                self.acknowledge(0.0);
            }
            let open: Vec<usize> = self.beliefs.keys().copied().collect();
            for number in open {
                self.believe_lost(number);
            }
            self.report();
            self.retire();
            if self.send.is_empty() {
                break;
            }
            let views = self.send.views().to_vec();
            for view in views {
                let first = Carried::Source(view.id, view.first);
                self.provision(first);
                while let Some(taken) = self.send.take(Work::Block(view.id), 0) {
                    let slot = self.rng.below(PATHS) as u8;
                    self.transmit(&taken, slot);
                }
            }
        }
        let all = self.send.next_symbol().0;
        let first = self.send.next_symbol().space().symbol(0).0;
        assert!(self.send.is_empty(), "left: {:?}", self.send.views());
        assert!(self.delivered.iter().copied().eq(first..all), "{} symbols", self.delivered.len());
        assert_eq!(self.receive.first_missing().0, all);
        assert_eq!(self.send.floor().0, all);
        assert_eq!(self.receive.deficits().count(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_symbol_is_delivered_once(
        seed in any::<u64>(),
        loss in 0.0..0.95,
        code in 0..CODES.len(),
        credit in prop_oneof![Just(64_u64), 300..5000_u64],
        steps in 100..3000_usize,
    ) {
        let mut model = Model::new(seed, codes(CODES[code]), credit);
        for step in 0..steps {
            model.step(loss);
            if step % 16 == 0 {
                model.audit();
            }
        }
        model.audit();
        model.settle();
    }
}

/// So few packets arrive that all repairs are used up, and the symbols are sent again from the start.
#[test]
fn blocks_wrap_around_when_repairs_run_out() {
    let mut model = Model::new(7, codes("reed-solomon"), 100_000);
    for _ in 0..20 {
        model.produce();
    }
    model.close();
    while model.send.totals().wraps == 0 {
        model.carry(1.0);
        model.lose();
        model.send_due();
        model.serve_queue();
        model.audit();
    }
    let view = model.send.views()[0];
    assert_eq!(view.sources + view.repairs, model.send.max_symbols());
    model.settle();
}

/// Blocks of more symbols than a byte can number, with a code of unlimited repairs.
#[test]
fn large_blocks_are_recovered() {
    let spec = PolicySpec::new("random-linear").with("sources", "1000");
    let code = || anabranch_policy::code::build(&spec).unwrap();
    let mut model = Model::new(11, [code(), code()], 100_000);
    model.send.open(Time::ZERO, TrafficClass::Bulk, 1000, CAPACITY as u16);
    for _ in 0..1000 {
        model.push();
        model.carry(0.3);
    }
    assert_eq!(model.send.views()[0].sources, 1000);
    model.settle();
    assert!(model.receive.decoded() > 100);
}
