//! Bodies and seeds of the fuzz targets for the receivers of coded symbols. A body panics if the
//! code violates an invariant.

mod block;
mod honest;
mod sliding;

pub use block::{block, block_seeds};
pub use sliding::{sliding, sliding_seeds};

use anabranch_policy::code::{Coverage, TABLE};
use anabranch_policy::registry::Registry;
use anabranch_policy::view::SymbolId;
use std::collections::BTreeSet;

use super::code;
use super::receive::{Arrival, ReceiveBlocks};
use crate::wire::codec::Reader;
use crate::wire::fuzzing::with_mutants;

const CAPACITY: usize = 24;
const CREDIT: u64 = 300;

struct Machine {
    blocks: ReceiveBlocks,
    /// Source symbols that arrived themselves.
    arrived: BTreeSet<u64>,
    delivered: u64,
    limit: u64,
}

/// Acts as a hostile sender against the receiver of every code; `data` is a list of symbols,
/// repairs and floors. Nothing may be delivered twice or beyond the credit, and the counts must
/// agree.
pub fn receive(data: &[u8]) {
    for (entry, _) in TABLE {
        play(entry.name, data);
    }
}

fn play(code: &str, data: &[u8]) {
    let mut machine = Machine {
        blocks: ReceiveBlocks::new(code::of_peer(&Registry::new(), Some(code)), CAPACITY, CREDIT),
        arrived: BTreeSet::new(),
        delivered: 0,
        limit: CREDIT,
    };
    let mut script = Reader::new(data);
    while let Ok(operation) = script.u8() {
        if machine.step(operation, &mut script).is_none() {
            break;
        }
    }
}

impl Machine {
    /// Performs one operation; `None` when the script or the connection is over.
    fn step(&mut self, operation: u8, script: &mut Reader<'_>) -> Option<()> {
        let before = self.blocks.first_missing();
        match operation >> 6 {
            0 => self.source(operation, script)?,
            1 => self.repair(operation, script)?,
            2 => {
                let floor = self.id(operation, script)?;
                self.blocks.raise_floor(floor, &mut |_: &[u8]| {});
            }
            _ => {
                let first = self.id(operation, script)?;
                let count = u64::from(script.u8().ok()?) << (operation & 0x20);
                self.blocks.abandon(SymbolId(first), count, &mut |_: &[u8]| {});
                self.limit = self.blocks.new_limit().unwrap_or(self.limit);
            }
        }
        assert!(before <= self.blocks.first_missing());
        self.audit();
        Some(())
    }

    /// An id near the lowest missing one, or an arbitrary one.
    fn id(&self, operation: u8, script: &mut Reader<'_>) -> Option<u64> {
        if operation & 0x10 != 0 {
            return script.array().ok().map(u64::from_be_bytes);
        }
        let offset = u64::from(script.u8().ok()?);
        Some((self.blocks.first_missing().0 + offset).saturating_sub(8))
    }

    fn source(&mut self, operation: u8, script: &mut Reader<'_>) -> Option<()> {
        let id = self.id(operation, script)?;
        let payload = script.bytes((operation & 15).into()).ok()?;
        let mut first = None;
        let delivered = &mut self.delivered;
        let mut deliver = |bytes: &[u8]| {
            first.get_or_insert_with(|| bytes.to_vec());
            *delivered += 1;
        };
        self.blocks.on_packet(payload.len());
        let outcome = self.blocks.on_source(SymbolId(id), payload, &mut deliver);
        if outcome.ok()? == Arrival::New {
            assert_eq!(first.as_deref(), Some(payload), "a symbol passes through at once");
            assert!(id < self.limit, "{id} is beyond the credit");
            assert!(self.arrived.insert(id), "{id} was new twice");
        } else {
            assert_eq!(first, None, "what is redundant delivers nothing");
        }
        Some(())
    }

    fn repair(&mut self, operation: u8, script: &mut Reader<'_>) -> Option<()> {
        let first = SymbolId(self.id(operation, script)?);
        let count = u16::from(script.u8().ok()?);
        let key = u32::from(script.u8().ok()?);
        // All repairs have one length unless a bit selects another, since repairs of arbitrary
        // lengths would hardly ever match.
        let length = if operation & 0x20 != 0 { usize::from(operation & 15) * 2 } else { 4 };
        let payload = script.bytes(length).ok()?;
        let delivered = &mut self.delivered;
        let mut deliver = |bytes: &[u8]| {
            assert!(bytes.len() <= CAPACITY);
            *delivered += 1;
        };
        let coverage = Coverage { first, count };
        self.blocks.on_packet(payload.len());
        let arrival = self.blocks.on_repair(coverage, key, payload, &mut deliver).ok()?;
        let end = first.0.saturating_add(count.into());
        assert!(arrival == Arrival::Redundant || end <= self.limit, "beyond the credit");
        Some(())
    }

    fn audit(&self) {
        let blocks = &self.blocks;
        assert_eq!(self.delivered, self.arrived.len() as u64 + blocks.decoded());
        assert!(blocks.first_missing().0 <= blocks.limit());
        assert_eq!(blocks.limit(), self.limit);
        // Each waiting block begins above the previous one and lacks symbols.
        let mut previous = None;
        for (first, missing) in blocks.deficits() {
            assert!(previous.is_none_or(|previous| previous < first));
            assert!((1..=CREDIT).contains(&missing.into()), "{missing} missing");
            previous = Some(first);
        }
        assert!(blocks.recovered().count() <= CREDIT as usize);
    }
}

/// Inputs for [`receive`].
pub fn receive_seeds() -> Vec<Vec<u8>> {
    let source = |offset: u8| [&[4, offset + 8][..], b"true"].concat();
    let repair =
        |offset: u8, count: u8, key: u8| [&[0x40, offset + 8, count, key][..], b"more"].concat();
    let in_order = [source(0), source(0), source(0), vec![0x80, 8, 0xc0, 0, 3]];
    let decoding = [source(1), repair(0, 3, 0), source(2), repair(0, 3, 1), repair(0, 3, 2)];
    let only_repairs: Vec<Vec<u8>> = (0..6).map(|key| repair(0, 5, key)).collect();
    let overlapping = [repair(0, 10, 0), repair(5, 10, 0)];
    let beyond = [vec![0x14, 255, 255, 255, 255, 255, 255, 255, 255, 1, 2, 3, 4]];
    let adjacent = [repair(0, 4, 3), repair(4, 200, 54), source(3), source(2), vec![0x80, 255]];
    with_mutants(vec![
        in_order.concat(),
        decoding.concat(),
        only_repairs.concat(),
        overlapping.concat(),
        beyond.concat(),
        adjacent.concat(),
    ])
}
