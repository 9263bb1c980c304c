//! Fuzzes the receiver of the sliding-window code, and compares it with elimination over all
//! symbols that have arrived.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use anabranch_policy::code::Coverage;
use anabranch_policy::registry::Registry;
use anabranch_policy::view::SymbolId;

use super::honest::{CAPACITY, Delivered, content};
use crate::coding::code;
use crate::coding::receive::{Arrival, CodingViolation, ReceiveBlocks};
use crate::wire::codec::Reader;
use crate::wire::fuzzing::with_mutants;

const CREDIT: u64 = 100;
/// Longer scripts are cut, since a decoder without work budget may refuse repairs.
const OPERATIONS: usize = 120;
const LONGEST: u64 = 100;

/// Acts as a sender whose repairs cover arbitrary runs of symbols. While it is honest, each symbol
/// is delivered once and unchanged, nothing closes the connection, all symbols that elimination
/// over all repairs determines are recovered, and repairs alone complete the missing symbols. After
/// a lie, memory is still bounded.
pub fn sliding(data: &[u8]) {
    let mut script = Reader::new(data);
    let mut machine = Machine::new();
    for _ in 0..OPERATIONS {
        let Ok(operation) = script.u8() else { break };
        match machine.step(operation, &mut script) {
            Some(Ok(())) => machine.audit(),
            Some(Err(violation)) => {
                assert!(machine.delivered.lied, "an honest sender is accused of {violation:?}");
                return;
            }
            None => break,
        }
    }
    if !machine.delivered.lied {
        assert_eq!(machine.determined(), [], "could be recovered");
        machine.complete();
    }
}

struct Machine {
    blocks: ReceiveBlocks,
    delivered: Delivered,
    arrived: u64,
    floor: u64,
    limit: u64,
    /// Symbols that were given up, and those among them that were missing.
    given_up: BTreeSet<u64>,
    lost: BTreeSet<u64>,
    /// Coverages and keys of the repairs that arrived while none of their sources was discarded or
    /// given up.
    repairs: Vec<(Coverage, u32)>,
}

impl Machine {
    fn new() -> Self {
        let code = code::of_peer(&Registry::new(), Some("sliding-window"));
        Machine {
            blocks: ReceiveBlocks::new(code, CAPACITY, CREDIT),
            delivered: Delivered::default(),
            arrived: 0,
            floor: 0,
            limit: CREDIT,
            given_up: BTreeSet::new(),
            lost: BTreeSet::new(),
            repairs: Vec::new(),
        }
    }

    /// A symbol slightly below or above the first missing one.
    fn id(&self, script: &mut Reader<'_>) -> Option<u64> {
        let offset = u64::from(script.u8().ok()?);
        Some((self.blocks.first_missing().0 + offset).saturating_sub(32))
    }

    fn step(
        &mut self,
        operation: u8,
        script: &mut Reader<'_>,
    ) -> Option<Result<(), CodingViolation>> {
        let before = self.blocks.first_missing();
        let done = match operation >> 5 {
            0 => {
                let id = self.id(script)?;
                self.source(id)
            }
            1 | 2 => {
                let (first, count) = (self.id(script)?, script.u8().ok()?);
                self.repair(first, count.into(), operation.into())
            }
            3 => {
                let (first, kept) = (self.id(script)?, script.u32().ok()?);
                let ids = (0..32).filter(|at| kept >> at & 1 != 0).map(|at| first + at);
                ids.into_iter().try_for_each(|id| self.source(id))
            }
            4 => {
                let keep = u64::from(operation & 31);
                self.floor = self.floor.max(before.0.saturating_sub(keep));
                self.blocks.raise_floor(self.floor, &mut |bytes: &[u8]| self.delivered.take(bytes));
                Ok(())
            }
            5 => {
                let first = self.id(script)?;
                self.give_up(first, (operation & 31).into());
                Ok(())
            }
            6 => {
                self.limit = self.blocks.new_limit().unwrap_or(self.limit);
                Ok(())
            }
            _ => self.lie(operation & 3, script)?,
        };
        assert!(before <= self.blocks.first_missing());
        Some(done)
    }

    fn source(&mut self, id: u64) -> Result<(), CodingViolation> {
        if id >= self.limit {
            return Ok(());
        }
        self.send_source(id, &content(id))
    }

    fn send_source(&mut self, id: u64, payload: &[u8]) -> Result<(), CodingViolation> {
        self.blocks.on_packet(payload.len());
        let sink = &mut |bytes: &[u8]| self.delivered.take(bytes);
        let arrival = self.blocks.on_source(SymbolId(id), payload, sink)?;
        self.arrived += u64::from(arrival == Arrival::New);
        Ok(())
    }

    fn repair(&mut self, first: u64, count: u64, key: u32) -> Result<(), CodingViolation> {
        let end = (first + count.min(LONGEST)).min(self.limit);
        if first < self.floor || end <= first {
            return Ok(());
        }
        let coverage = Coverage { first: SymbolId(first), count: (end - first) as u16 };
        // A repair that covers a discarded or given-up source is of no use.
        if first >= self.blocks.first_missing().0.saturating_sub(LONGEST - 1)
            && self.given_up.range(first..end).next().is_none()
        {
            self.repairs.push((coverage, key));
        }
        self.send_repair(coverage, key, &encoded(coverage, key))
    }

    fn send_repair(
        &mut self,
        coverage: Coverage,
        key: u32,
        payload: &[u8],
    ) -> Result<(), CodingViolation> {
        self.blocks.on_packet(payload.len());
        let sink = &mut |bytes: &[u8]| self.delivered.take(bytes);
        self.blocks.on_repair(coverage, key, payload, sink).map(|_| ())
    }

    /// Gives up symbols: the sender will not send them any more, nor repairs that cover them, but
    /// some may be in flight.
    fn give_up(&mut self, first: u64, count: u64) {
        let end = (first + count).min(self.limit);
        if first < end {
            let missing = (first..end).filter(|id| !self.blocks.holds(SymbolId(*id)));
            self.lost.extend(missing);
            self.given_up.extend(first..end);
            let sink = &mut |bytes: &[u8]| self.delivered.take(bytes);
            self.blocks.abandon(SymbolId(first), end - first, sink);
        }
    }

    /// Sends something that no honest sender sends.
    fn lie(&mut self, which: u8, script: &mut Reader<'_>) -> Option<Result<(), CodingViolation>> {
        self.delivered.lied = true;
        let (id, kind) = (self.id(script)?, script.u8().ok()?);
        let id = if kind & 1 != 0 { script.u64().ok()? } else { id };
        let length = usize::from(script.u8().ok()? % 40);
        let payload = script.bytes(length).ok()?;
        Some(match which {
            0 => self.send_source(id, payload),
            1 | 2 => {
                let count = if kind & 2 != 0 { script.u16().ok()? } else { kind.into() };
                let key = if kind & 4 != 0 { script.u32().ok()? } else { kind.into() };
                self.send_repair(Coverage { first: SymbolId(id), count }, key, payload)
            }
            _ => {
                self.delivered.give_up(&mut self.blocks, kind, id);
                Ok(())
            }
        })
    }

    fn audit(&self) {
        let blocks = &self.blocks;
        assert_eq!(self.delivered.count, self.arrived + blocks.decoded());
        assert!(blocks.first_missing().0 <= blocks.limit());
        assert_eq!(blocks.limit(), self.limit);
        assert!(blocks.deficits().all(|(_, missing)| (1..=CREDIT).contains(&missing.into())));
        assert!(blocks.held() <= CREDIT as usize, "{} symbols are held", blocks.held());
    }

    /// Symbols that are missing although elimination over all repairs determines them.
    fn determined(&self) -> Vec<u64> {
        let reached = self.blocks.reached().0;
        let held = |id: &u64| self.blocks.holds(SymbolId(*id)) && !self.lost.contains(id);
        let unknown: Vec<u64> = (0..reached).filter(|id| !held(id)).collect();
        let place: BTreeMap<u64, usize> = unknown.iter().copied().zip(0..).collect();
        let mut rows: Vec<Vec<u8>> = Vec::new();
        for (coverage, key) in &self.repairs {
            let mut row = vec![0; unknown.len()];
            for (id, coefficient) in (coverage.first.0..).zip(coefficients(*coverage, *key)) {
                if let Some(at) = place.get(&id) {
                    row[*at] = coefficient;
                }
            }
            rows.push(row);
        }
        reduce(&mut rows);
        let alone = |row: &Vec<u8>| {
            let mut entries = row.iter().zip(&unknown).filter(|(entry, _)| **entry != 0);
            entries.next().map(|(_, id)| *id).filter(|_| entries.next().is_none())
        };
        rows.iter().filter_map(alone).filter(|id| !self.lost.contains(id)).collect()
    }

    /// Completes all symbols: with repairs of the missing ones, or with the sources if any was
    /// given up.
    fn complete(&mut self) {
        let reached = self.blocks.reached().0;
        let first = self.blocks.first_missing().0;
        if self.given_up.range(first..reached).next().is_some() {
            (first..reached).try_for_each(|id| self.source(id)).expect("an honest sender");
        } else {
            for key in (1000..).take((reached - first) as usize + 8) {
                self.repair(first, reached - first, key).expect("an honest sender");
            }
        }
        assert_eq!(self.blocks.first_missing().0, reached, "stuck");
        assert_eq!(self.blocks.deficits().count(), 0);
        self.audit();
    }
}

/// Coefficients of a repair as the wire format defines them, computed independently of the decoder.
fn coefficients(coverage: Coverage, key: u32) -> Vec<u8> {
    let (count, first) = (u64::from(coverage.count), coverage.first.0);
    let mut state = u64::from(key).wrapping_add(count << 30).wrapping_add(first << 46);
    let mut coefficients = Vec::new();
    while coefficients.len() < usize::from(coverage.count) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let bytes = (mixed ^ mixed >> 31).to_le_bytes();
        coefficients.extend(bytes.map(|byte| byte % 255 + 1));
    }
    coefficients.truncate(coverage.count.into());
    coefficients
}

fn encoded(coverage: Coverage, key: u32) -> Vec<u8> {
    let mut sum = Vec::new();
    for (id, coefficient) in (coverage.first.0..).zip(coefficients(coverage, key)) {
        let bytes = content(id);
        sum.resize(sum.len().max(bytes.len()), 0);
        for (total, byte) in sum.iter_mut().zip(bytes) {
            *total ^= multiply(coefficient, byte);
        }
    }
    sum
}

/// Products in GF(2^8) with the polynomial 0x11d, computed bit by bit.
static PRODUCTS: LazyLock<Vec<[u8; 256]>> = LazyLock::new(|| {
    let product = |mut a: u8, mut b: u8| {
        let mut product = 0;
        while b != 0 {
            product ^= a * (b & 1);
            a = (a << 1) ^ (0x1d * (a >> 7));
            b >>= 1;
        }
        product
    };
    (0..=255).map(|a| core::array::from_fn(|b| product(a, b as u8))).collect()
});

fn multiply(a: u8, b: u8) -> u8 {
    PRODUCTS[usize::from(a)][usize::from(b)]
}

/// Gauss–Jordan elimination.
fn reduce(rows: &mut [Vec<u8>]) {
    let mut rank = 0;
    for column in 0..rows.first().map_or(0, Vec::len) {
        let Some(at) = (rank..rows.len()).find(|at| rows[*at][column] != 0) else { continue };
        rows.swap(rank, at);
        let lead = rows[rank][column];
        let inverse = (1..=255).find(|x| multiply(lead, *x) == 1).expect("not zero");
        let pivot: Vec<u8> = rows[rank].iter().map(|entry| multiply(*entry, inverse)).collect();
        for row in rows.iter_mut() {
            let factor = row[column];
            if factor != 0 {
                for (entry, value) in row.iter_mut().zip(&pivot) {
                    *entry ^= multiply(*value, factor);
                }
            }
        }
        rows[rank] = pivot;
        rank += 1;
    }
}

/// Inputs for [`sliding`].
pub fn sliding_seeds() -> Vec<Vec<u8>> {
    let source = |offset: u8| [0, 32 + offset];
    let repair = |key: u8, back: u8, count: u8| [0x20 | key, 32 - back, count];
    let some = |kept: u32| [&[0x60, 32][..], &kept.to_be_bytes()].concat();
    let in_passing = [some(0xffff_fdff), repair(1, 0, 16).to_vec(), source(30).to_vec()].concat();
    let burst = [some(0xf800_00ff), repair(1, 8, 40).repeat(2), repair(2, 8, 40).to_vec()].concat();
    let burst = [burst, (3..28).flat_map(|key| repair(key, 0, 30)).collect()].concat();
    let gives_up =
        [some(0x0f0f_00fe), repair(3, 0, 32).to_vec(), vec![0xa3, 34, 0x84, 0xa9, 32]].concat();
    let gives_up = [gives_up, (4..30).flat_map(|key| repair(key, 4, 60)).collect()].concat();
    let lies =
        vec![0xe0, 32, 0, 3, 1, 2, 3, 0xe1, 32, 16, 4, 9, 9, 9, 9, 0xe3, 90, 2, 0, 0xe3, 33, 32, 0];
    let late = [burst.clone(), vec![0xc0, 0x85], some(0xffff_ffff), gives_up.clone()].concat();
    let lying = [in_passing.clone(), lies, burst.clone()].concat();
    with_mutants(vec![in_passing, burst, gives_up, late, lying])
}
