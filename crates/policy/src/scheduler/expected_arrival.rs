//! FMTCP's allocation: the symbols of the pending blocks, in order, are each given to the path on
//! which they are expected to arrive first, until the asking path gets one.
//!
//! Only this symbol is sent. The allocation to other paths is virtual: when another path asks, the
//! allocation is computed again from the state at that time. If the asking path's symbol comes
//! after new symbols allocated to other paths, these are cut ([`Work::Ahead`]) but not assigned to
//! a path.

use crate::analysis::fountain::DeliveryPath;
use crate::registry::{Entry, Options, PolicyError, option};
use crate::scheduler::work::{carrier, carriers, one};
use crate::scheduler::{Pick, Pull, Scheduler, Work};
use crate::view::{BlockId, BlockView, MAX_PATHS, PathView, SchedulerView, TrafficClass};
use anabranch_types::PathId;

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "expected-arrival",
    summary: "symbols of pending blocks, in order, each on the path where it should arrive first; the others' share is virtual",
    source: "FMTCP §V-B, eqs 8 to 10 and algorithm 1",
    options: &[
        option(
            "scheduling",
            "by expected arrival (on), or of the first block that needs any, whatever the path (off)",
            "on",
        ),
        option("pending", "blocks that may be pending at a time, 1 to 127", "127"),
    ],
};

/// Larger loss counts as this.
const MAX_LOSS: f64 = 0.99;

/// FMTCP's scheduler; the module's documentation describes it.
#[derive(Clone, Debug)]
pub struct ExpectedArrival {
    virtually: bool,
    pending: usize,
    /// Source symbols for which the newest block was opened; later blocks are assumed to get as
    /// many.
    planned: u16,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn Scheduler>, PolicyError> {
    Ok(Box::new(ExpectedArrival {
        virtually: options.choice("scheduling", &[("on", true), ("off", false)])?,
        pending: options.integer("pending", 1..=127)? as usize,
        planned: 0,
    }))
}

/// Expected delivery time of a path, seconds (FMTCP eq. 8).
pub fn delivery(path: &PathView) -> f64 {
    estimates(path).expected_delivery()
}

/// Expected response time of a path, seconds (FMTCP eq. 9).
pub fn response(path: &PathView) -> f64 {
    estimates(path).response_time()
}

fn estimates(path: &PathView) -> DeliveryPath {
    DeliveryPath {
        loss: path.loss.mean_up_to(MAX_LOSS),
        rtt: path.rtt.smoothed.as_secs_f64(),
        rto: path.rto.as_secs_f64(),
    }
}

/// A path with the packets that are virtually given to it.
#[derive(Clone, Copy, Debug)]
struct Turn {
    id: PathId,
    slot: u8,
    /// Packets given virtually: the first `free` leave at once, the others a window at a time.
    given: u64,
    free: u64,
    window: u64,
    delivery: f64,
    response: f64,
    /// Seconds until the first response, for which packets beyond `free` wait.
    first_response: f64,
    per_packet: u32,
    /// Expected arrival of the next packet, seconds from now.
    arrival: f64,
}

impl Turn {
    fn new(path: &PathView, view: &SchedulerView<'_>) -> Self {
        let response = response(path);
        let age = path.oldest_unacked.map_or(0.0, |sent| view.now.since(sent).as_secs_f64());
        let mut turn = Turn {
            arrival: 0.0,
            id: path.id,
            slot: path.slot % MAX_PATHS as u8,
            given: 0,
            free: path.free_packets(),
            window: path.cwnd_packets(),
            delivery: delivery(path),
            response,
            // A response that is overdue is expected at once.
            first_response: (response - age).max(0.0),
            per_packet: per_packet(path, view),
        };
        turn.arrival = turn.next_arrival();
        turn
    }

    /// FMTCP eq. 10. Each window after the first full one follows a response time later.
    fn next_arrival(&self) -> f64 {
        match self.given.checked_sub(self.free) {
            None => self.delivery,
            Some(waiting) => {
                let windows = (waiting / self.window) as f64;
                self.delivery + self.first_response + windows * self.response
            }
        }
    }

    /// How many more symbols are expected to arrive at the time `arrival`.
    fn run(&self) -> u32 {
        let packets = match self.given.checked_sub(self.free) {
            None => self.free - self.given,
            Some(waiting) => self.window - waiting % self.window,
        };
        packets.min(1 << 20) as u32 * self.per_packet
    }

    fn give(&mut self, symbols: u32) {
        self.given += u64::from(symbols.div_ceil(self.per_packet));
        self.arrival = self.next_arrival();
    }
}

/// Symbols of the current size in a full packet.
fn per_packet(path: &PathView, view: &SchedulerView<'_>) -> u32 {
    let most = view.demand.symbols_per_packet();
    if most == 1 {
        return 1;
    }
    let size = u64::from(view.fresh.symbol_size.max(1));
    (path.packet_size / size).clamp(1, u64::from(most)) as u32
}

/// Kind of the next symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Symbol {
    /// A due symbol of the block, or a repair of it.
    Of(BlockId),
    /// A new symbol.
    Fresh,
    /// A repair of a block that is not cut yet.
    Later,
}

/// The symbols that pending blocks need, in order: the more urgent class first, then the older block.
#[derive(Debug)]
struct Pending<'a, 'b> {
    view: &'a SchedulerView<'b>,
    by_repairs: bool,
    /// Classes that are still to be examined, as bits, and the current class.
    classes: u8,
    class: TrafficClass,
    /// New symbols of the current class that are not given yet, and new symbols of all classes that
    /// were given.
    fresh: u32,
    cut: u32,
    /// Blocks that may still be opened, and the source symbols that each is assumed to get.
    openings: usize,
    planned: u16,
    /// The current block, and its index among the blocks; the index is beyond them if the block is
    /// still to be opened.
    place: usize,
    block: BlockView,
    /// Symbols of the current block that are due, symbols that are not cut yet, and symbols given
    /// to each path.
    due: u32,
    uncut: u16,
    handed: [u16; MAX_PATHS],
    /// Symbols that may be given before the block's need is computed again.
    wanted: u32,
}

impl<'a, 'b> Pending<'a, 'b> {
    fn new(view: &'a SchedulerView<'b>, most: usize, planned: u16) -> Self {
        let by_repairs = view.demand.by_repairs();
        // Without a code, blocks are only groups of symbols.
        let most = if by_repairs { most } else { usize::MAX };
        let new = view.fresh.classes().map(|(class, _)| class);
        let classes = view.blocks.iter().map(|block| block.class).chain(new);
        Pending {
            view,
            by_repairs,
            classes: classes.fold(0, |all, class| all | 1 << class as u8),
            class: TrafficClass::Interactive,
            fresh: 0,
            cut: 0,
            openings: most.saturating_sub(view.blocks.len()),
            planned: planned.max(1),
            place: view.blocks.len(),
            block: BlockView::default(),
            due: 0,
            uncut: 0,
            handed: [0; MAX_PATHS],
            wanted: 0,
        }
    }

    /// Moves to the next class that has a block in need or opens a new block. Returns false if
    /// there is none.
    fn turn_to_class(&mut self) -> bool {
        while let Some(class) = TrafficClass::ALL.get(self.classes.trailing_zeros() as usize) {
            self.classes &= self.classes - 1;
            self.class = *class;
            let new = self.view.fresh.classes().filter(|(new, _)| new == class);
            self.fresh = new.map(|(_, symbols)| symbols).sum();
            if self.turn_to(0) {
                return true;
            }
        }
        false
    }

    /// Moves to the first block of the current class, from index `place` on, that may need symbols,
    /// or else to a block that is still to be opened. Returns false if there is neither.
    fn turn_to(&mut self, place: usize) -> bool {
        let blocks = self.view.blocks.get(place..).unwrap_or_default();
        let found = self.view.demand.first_in_need(blocks, self.class);
        if found.is_none() && (self.fresh == 0 || self.openings == 0) {
            return false;
        }
        self.openings -= usize::from(found.is_none());
        self.place = found.map_or(self.view.blocks.len(), |found| place + found);
        let next = self.view.fresh.class == self.class;
        // Symbols that are cut before those of another class form their own block.
        let all = if next && self.view.fresh.beyond > 0 { self.fresh } else { u32::MAX };
        let planned = u32::from(self.planned).min(all) as u16;
        let opening = BlockView { planned, ..BlockView::default() };
        let shown = self.view.blocks.get(self.place);
        let block = shown.unwrap_or(&opening);
        let room = if block.closed { 0 } else { block.planned.saturating_sub(block.sources) };
        // The open block closes if symbols of another class come before those of its own class.
        let joins = shown.is_none() || next;
        self.uncut = if joins { u32::from(room).min(self.fresh) as u16 } else { 0 };
        self.due = block.takeable();
        // Repairs are planned once the block is full, so its need is computed as of then. Symbols
        // that are due or planned are the ones being given, so they are left out.
        self.block = BlockView {
            sources: block.sources + self.uncut,
            closed: true,
            due: 0,
            proactive_left: 0,
            ..*block
        };
        self.handed = [0; MAX_PATHS];
        // A block that is still filling needs all of its sources in any case.
        self.wanted = if self.uncut > 0 { self.due + u32::from(self.uncut) } else { 0 };
        true
    }

    /// Moves on to the first block that needs a symbol. Returns false if none does.
    fn find(&mut self) -> bool {
        while self.wanted == 0 {
            let can_repair = self.can_repair();
            if (self.due > 0 || can_repair)
                && self.view.demand.needs_more(&self.block, &self.handed)
            {
                // The block does not decode with fewer symbols, whatever paths carry them.
                let handed: u32 = self.handed.iter().map(|n| u32::from(*n)).sum();
                let coming =
                    u32::from(self.block.in_flight) + u32::from(self.block.queued) + handed;
                self.wanted = u32::from(self.block.deficit()).saturating_sub(coming).max(1);
                if !can_repair {
                    self.wanted = self.wanted.min(self.due);
                }
                return true;
            }
            if !self.turn_to(self.place + 1) && !self.turn_to_class() {
                return false;
            }
        }
        true
    }

    /// Whether the block can have repairs: it must be full or closed. The engine closes a block
    /// that stays open for lack of data.
    fn can_repair(&self) -> bool {
        let full = self.block.sources >= self.block.planned;
        let closed = self.view.blocks.get(self.place).map_or(full, |block| block.closed || full);
        closed && self.by_repairs
    }

    /// What the next symbol is.
    fn next(&self) -> Symbol {
        match self.view.blocks.get(self.place) {
            Some(block) if self.due > 0 => Symbol::Of(block.id),
            _ if self.uncut > 0 => Symbol::Fresh,
            Some(block) if block.closed => Symbol::Of(block.id),
            _ => Symbol::Later,
        }
    }

    /// Gives up to `count` symbols of the current block to the path in `slot`; returns how many.
    fn give(&mut self, count: u32, slot: u8) -> u32 {
        let given = count.min(self.wanted);
        self.wanted -= given;
        let due = given.min(self.due);
        self.due -= due;
        let new = (given - due).min(u32::from(self.uncut));
        self.uncut -= new as u16;
        self.fresh -= new;
        self.cut += new;
        let on = &mut self.handed[usize::from(slot) % MAX_PATHS];
        *on = on.saturating_add(given as u16);
        given
    }
}

/// The path that should deliver a packet first; among equals, the first one. Times are not
/// negative, so their bits have the same order as their values.
fn first(turns: &mut [Turn]) -> Option<&mut Turn> {
    turns.iter_mut().min_by_key(|turn| turn.arrival.to_bits())
}

/// The carriers, the asking path first, and how many there are.
fn turns(asking: &PathView, view: &SchedulerView<'_>, alone: bool) -> ([Turn; MAX_PATHS], usize) {
    let own = Turn::new(asking, view);
    let mut turns = [own; MAX_PATHS];
    let mut count = 1;
    if alone {
        return (turns, count);
    }
    // A path that can send nothing and has nothing in flight never gets a turn.
    let waits = |path: &&PathView| path.free_packets() > 0 || path.bytes_in_flight > 0;
    let others = carriers(view).filter(|path| path.id != asking.id).filter(waits);
    for (slot, path) in turns.iter_mut().skip(1).zip(others) {
        *slot = Turn::new(path, view);
        count += 1;
    }
    (turns, count)
}

impl Scheduler for ExpectedArrival {
    fn pull(&mut self, asking: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull {
        let path = match carrier(view, asking) {
            Ok(path) => path,
            Err(answer) => return answer,
        };
        self.planned = view.blocks.last().map_or(self.planned, |block| block.planned);
        let mut pending = Pending::new(view, self.pending, self.planned);
        let (mut turns, count) = turns(path, view, !self.virtually);
        let turns = &mut turns[..count];
        while pending.find() {
            let Some(first) = first(turns) else { break };
            if first.id == asking {
                return answer(&pending, asking, picks);
            }
            let mut left = first.run();
            let all = left;
            while left > 0 && pending.find() {
                left -= pending.give(left, first.slot);
            }
            first.give(all - left);
        }
        Pull::Idle("every pending block is complete with what other paths will carry")
    }
}

/// The decision when the asking path gets a symbol.
fn answer(pending: &Pending<'_, '_>, asking: PathId, picks: &mut Vec<Pick>) -> Pull {
    let next = pending.next();
    let fresh = pending.view.fresh;
    let own = !matches!(next, Symbol::Of(_));
    // If all new symbols of the next class go to other paths, this path asks again for the symbols
    // after them, since the number of new symbols is only estimated from bytes.
    let leaves = own && fresh.beyond > 0 && pending.cut >= fresh.symbols;
    let ahead = if leaves { fresh.symbols } else { pending.cut };
    let ahead = ahead.min(u16::MAX.into()) as u16;
    if own && ahead > 0 {
        picks.push(Pick { count: ahead, ..one(Work::Ahead, asking) });
    }
    if leaves {
        return Pull::Send("left to another path, what follows comes next");
    }
    match next {
        Symbol::Of(id) if pending.by_repairs => picks.push(one(Work::Repair(id), asking)),
        Symbol::Of(id) => picks.push(one(Work::Block(id), asking)),
        Symbol::Fresh => picks.push(one(Work::Fresh, asking)),
        // The block is only being cut now. The path asks again, and then gets a repair of the
        // block.
        Symbol::Later => {}
    }
    Pull::Send("earliest expected arrival")
}
