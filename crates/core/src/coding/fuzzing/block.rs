//! Fuzzes the receiver of block and fountain codes with a sender that follows the rules until the
//! script makes it lie.

use core::sync::atomic::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anabranch_policy::code::{Coverage, Encoder, ErasureCode, TABLE};
use anabranch_policy::registry::Registry;
use anabranch_policy::view::SymbolId;

use super::honest::{CAPACITY, Counting, Delivered, Spent, content};
use crate::coding::receive::{Arrival, CodingViolation, ReceiveBlocks};
use crate::coding::{MAX_BLOCK, code};
use crate::wire::codec::Reader;
use crate::wire::fuzzing::with_mutants;

const CREDIT: u64 = 300;
/// Blocks have these sizes in turn.
const SIZES: usize = 4;
const LONGEST: u64 = 40;
/// Longer scripts are cut.
const OPERATIONS: usize = 1000;
/// The script uses only repair keys below this.
const FRESH_KEY: u32 = 1 << 16;

/// Acts as a sender of blocks with the code, the sizes and the events given by `data`. While it is
/// honest, each symbol is delivered once and unchanged, nothing closes the connection, and repairs
/// alone complete the blocks. After a lie, memory and work are still bounded.
pub fn block(data: &[u8]) {
    let mut script = Reader::new(data);
    let Some(mut machine) = Machine::new(&mut script) else { return };
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
        machine.complete();
    }
}

/// A block's symbols.
#[derive(Clone, Copy, Debug)]
struct Block {
    first: u64,
    count: u16,
}

impl Block {
    fn end(self) -> u64 {
        self.first + u64::from(self.count)
    }

    fn coverage(self) -> Coverage {
        Coverage { first: SymbolId(self.first), count: self.count }
    }

    /// The length of a repair, which is that of the longest source.
    fn length(self) -> usize {
        (self.first..self.end()).map(|id| content(id).len()).max().unwrap_or(0)
    }
}

struct Machine {
    code: Box<dyn ErasureCode>,
    /// Encoder of each block, by first symbol, so that work that the block's repairs share is done
    /// once.
    encoders: BTreeMap<u64, Box<dyn Encoder>>,
    blocks: ReceiveBlocks,
    sizes: [u64; SIZES],
    delivered: Delivered,
    whole: bool,
    arrived: u64,
    /// First symbols of blocks that were given up.
    given_up: BTreeSet<u64>,
    limit: u64,
    packets: u64,
    bytes: u64,
    spent: Arc<Spent>,
}

impl Machine {
    fn new(script: &mut Reader<'_>) -> Option<Self> {
        let choice = script.u8().ok()?;
        let sizes = script.array::<SIZES>().ok()?.map(|size| 1 + u64::from(size) % LONGEST);
        let build = |name| code::of_peer(&Registry::new(), Some(name));
        let names: Vec<&str> = TABLE.iter().map(|(entry, _)| entry.name).collect();
        let (name, whole) = (names[usize::from(choice >> 1) % names.len()], choice & 1 != 0);
        let code = build(name);
        if code.limits().slides.is_some() {
            return None;
        }
        let spent = Arc::new(Spent::default());
        let counting = Counting { code: build(name), spent: Arc::clone(&spent) };
        let mut blocks = ReceiveBlocks::new(Box::new(counting), CAPACITY, CREDIT);
        if whole {
            blocks = blocks.in_whole_blocks();
        }
        Some(Machine {
            encoders: BTreeMap::new(),
            code,
            blocks,
            sizes,
            delivered: Delivered { in_order: whole, ..Delivered::default() },
            whole,
            arrived: 0,
            given_up: BTreeSet::new(),
            limit: CREDIT,
            packets: 0,
            bytes: 0,
            spent,
        })
    }

    /// The block of a symbol.
    fn block_of(&self, id: u64) -> Block {
        let period: u64 = self.sizes.iter().sum();
        let mut first = id - id % period;
        for size in self.sizes {
            if id < first + size {
                return Block { first, count: size as u16 };
            }
            first += size;
        }
        unreachable!("the sizes add up to the period")
    }

    /// The block that is `ahead` blocks after the first one with a missing symbol.
    fn near(&self, ahead: u8) -> Block {
        let mut block = self.block_of(self.blocks.first_missing().0);
        for _ in 0..ahead {
            block = self.block_of(block.end());
        }
        block
    }

    /// A symbol slightly below or above the first missing one.
    fn id(&self, script: &mut Reader<'_>) -> Option<u64> {
        let offset = u64::from(script.u8().ok()?);
        Some((self.blocks.first_missing().0 + offset).saturating_sub(16))
    }

    /// Performs one operation; `None` when the script is over.
    fn step(
        &mut self,
        operation: u8,
        script: &mut Reader<'_>,
    ) -> Option<Result<(), CodingViolation>> {
        let before = self.blocks.first_missing();
        let ahead = operation & 3;
        let done = match operation >> 5 {
            0 => {
                let id = self.id(script)?;
                self.source(id)
            }
            1 => {
                let key = script.u8().ok()?.into();
                self.repair(self.near(ahead), key)
            }
            2 => {
                // The sources of a block whose bits are set in `kept`.
                let (block, kept) = (self.near(ahead), script.u64().ok()?);
                let ids =
                    (block.first..block.end()).filter(|id| kept >> (id - block.first) & 1 != 0);
                ids.into_iter().try_for_each(|id| self.source(id))
            }
            3 => {
                let count = script.u8().ok()? % 32;
                let block = self.near(ahead);
                (0..count).try_for_each(|key| self.repair(block, u32::from(key) << 16))
            }
            4 => {
                let floor = self.near(0).first;
                self.blocks.raise_floor(floor, &mut |bytes: &[u8]| self.delivered.take(bytes));
                Ok(())
            }
            5 => {
                self.give_up(self.near(ahead));
                Ok(())
            }
            6 => {
                self.limit = self.blocks.new_limit().unwrap_or(self.limit);
                Ok(())
            }
            _ => self.lie(ahead, script)?,
        };
        assert!(before <= self.blocks.first_missing());
        Some(done)
    }

    /// Gives up a block: the sender will not send its symbols any more, but some may be in flight.
    fn give_up(&mut self, block: Block) {
        if block.end() <= self.limit {
            // Held symbols of the block are delivered at once, before blocks for which the receiver
            // still waits.
            self.delivered.in_order = false;
            self.given_up.insert(block.first);
            let sink = &mut |bytes: &[u8]| self.delivered.take(bytes);
            self.blocks.abandon(SymbolId(block.first), block.count.into(), sink);
        }
    }

    /// Adds a packet of `bytes` bytes to the receiver's decoding budget.
    fn packet(&mut self, bytes: usize) {
        self.blocks.on_packet(bytes);
        self.packets += 1;
        self.bytes += bytes as u64;
    }

    fn source(&mut self, id: u64) -> Result<(), CodingViolation> {
        if id >= self.limit {
            return Ok(());
        }
        self.send_source(id, &content(id))
    }

    fn send_source(&mut self, id: u64, payload: &[u8]) -> Result<(), CodingViolation> {
        self.packet(payload.len());
        let sink = &mut |bytes: &[u8]| self.delivered.take(bytes);
        let arrival = self.blocks.on_source(SymbolId(id), payload, sink)?;
        self.arrived += u64::from(arrival == Arrival::New);
        Ok(())
    }

    fn repair(&mut self, block: Block, key: u32) -> Result<(), CodingViolation> {
        let keys = self.code.limits().keys(block.count);
        if keys == 0 || block.end() > self.limit {
            return Ok(());
        }
        let key = key % keys;
        let bytes = self.encode(block, key);
        self.send_repair(block.coverage(), key, &bytes)
    }

    fn encode(&mut self, block: Block, key: u32) -> Vec<u8> {
        let sources: Vec<Vec<u8>> = (block.first..block.end()).map(content).collect();
        let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
        let mut bytes = vec![0; block.length()];
        let encoder = self.encoders.entry(block.first).or_insert_with(|| self.code.encoder());
        let made = encoder.repairs(block.coverage(), key, &sources, &mut [&mut bytes]);
        made.expect("the block has this repair");
        bytes
    }

    fn send_repair(
        &mut self,
        coverage: Coverage,
        key: u32,
        payload: &[u8],
    ) -> Result<(), CodingViolation> {
        self.packet(payload.len());
        let sink = &mut |bytes: &[u8]| self.delivered.take(bytes);
        self.blocks.on_repair(coverage, key, payload, sink).map(|_| ())
    }

    /// Sends something that no honest sender sends.
    fn lie(&mut self, which: u8, script: &mut Reader<'_>) -> Option<Result<(), CodingViolation>> {
        self.delivered.lied = true;
        let (id, kind) = (self.id(script)?, script.u8().ok()?);
        let id = if kind & 1 != 0 { script.u64().ok()? } else { id };
        Some(match which {
            0 => {
                let length = script.u8().ok()?.into();
                let payload = script.bytes(length).ok()?;
                self.send_source(id, payload)
            }
            1 => {
                let count = if kind & 2 != 0 { script.u16().ok()? } else { u16::from(kind >> 2) };
                let key = if kind & 4 != 0 { script.u32().ok()? } else { u32::from(kind >> 3) };
                let length = script.u8().ok()? % 40;
                let payload = script.bytes(length.into()).ok()?;
                self.send_repair(Coverage { first: SymbolId(id), count }, key, payload)
            }
            // A repair of the right form with one wrong byte.
            2 => {
                let block = self.near(kind >> 6);
                let key = u32::from(kind >> 1 & 31);
                if key >= self.code.limits().keys(block.count) {
                    return Some(Ok(()));
                }
                let mut bytes = self.encode(block, key);
                let at = usize::from(script.u8().ok()?) % bytes.len();
                bytes[at] ^= script.u8().ok()?;
                self.send_repair(block.coverage(), key, &bytes)
            }
            _ => {
                self.delivered.give_up(&mut self.blocks, kind, id);
                Ok(())
            }
        })
    }

    fn audit(&self) {
        let blocks = &self.blocks;
        if !self.whole {
            assert_eq!(self.delivered.count, self.arrived + blocks.decoded());
        }
        assert!(blocks.first_missing().0 <= blocks.limit());
        assert_eq!(blocks.limit(), self.limit);
        let firsts: Vec<u64> = blocks.deficits().map(|(first, _)| first.0).collect();
        assert!(firsts.is_sorted_by(|a, b| a < b), "{firsts:?}");
        assert!(blocks.deficits().all(|(_, missing)| (1..=CREDIT).contains(&missing.into())));
        let most = CREDIT as usize + CREDIT as usize + MAX_BLOCK;
        assert!(blocks.held() <= most, "{} symbols are held", blocks.held());
        // The budget of work grows with the packets (wire format, Codes), and a packet with one symbol recovers at most
        // one block.
        let earned = (1 << 18) + 24 * (self.bytes + 40 * self.packets);
        let [work, attempts] =
            [&self.spent.work, &self.spent.attempts].map(|sum| sum.load(Ordering::Relaxed));
        assert!(self.code.recovery_work(1, 1) == 0 || work <= earned, "{work} of {earned}");
        assert!(attempts <= self.packets, "{attempts} attempts in {} packets", self.packets);
    }

    /// Completes every block that has begun, with fresh repairs if possible, else with its sources.
    fn complete(&mut self) {
        let reached = self.blocks.reached().0;
        while self.blocks.first_missing().0 < reached {
            let block = self.near(0);
            assert!(!self.given_up.contains(&block.first), "what is given up is waited for");
            // Blocks that reach beyond the credit have no repairs yet; LT codes may need any number of repairs.
            let repairable = self.code.limits().keys(block.count) > FRESH_KEY
                && self.code.limits().surplus < 100
                && block.end() <= self.limit;
            if repairable {
                for key in (FRESH_KEY..).take(usize::from(block.count) + 64) {
                    self.packet(1 << 12);
                    self.repair(block, key).expect("an honest sender");
                }
            } else {
                let end = block.end().min(self.limit);
                (block.first..end).try_for_each(|id| self.source(id)).expect("an honest sender");
            }
            assert!(
                self.blocks.first_missing().0 >= block.end().min(reached),
                "{block:?} is stuck"
            );
            self.audit();
        }
    }
}

/// Inputs for [`block`].
pub fn block_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for code in 0..2 * TABLE.len() as u8 {
        let begin = [code, 23, 9, 0, 40];
        let some = |ahead: u8, kept: u64| [&[0x40 | ahead][..], &kept.to_be_bytes()].concat();
        // Losses in two blocks, of which the second is repaired first, and then late symbols.
        let losses = [some(0, 0x3f_0ff0), some(1, 0x0f), vec![0x61, 9, 0x60, 20, 0x20, 7]].concat();
        let late = [0x00, 0x00, 0x10, 0x12, 0x80, 0xc0];
        let gives_up = [some(0, 0xff), vec![0x22, 3, 0xa1, 0x21, 4, 0xa0, 0x80, 0x20, 1]].concat();
        let lies = [
            vec![0x60, 5, 0xe0, 16, 0, 3, 1, 2, 3, 0xe2, 16, 6, 4, 1, 0x60, 30],
            vec![0xe1, 16, 0x42, 0, 24, 7, 4, 1, 2, 3, 4, 0xe3, 20, 2, 0xe3, 16, 32],
        ]
        .concat();
        seeds.push([&begin[..], &losses, &late].concat());
        seeds.push([&begin[..], &gives_up, &losses].concat());
        seeds.push([&begin[..], &losses, &lies].concat());
    }
    with_mutants(seeds)
}
