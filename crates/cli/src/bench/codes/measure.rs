//! Measures one erasure code over blocks that lose symbols.

use std::hint::black_box;
use std::time::Instant;

use anabranch_core::coding::most_sources;
use anabranch_core::coding::receive::{Arrival, CodingViolation, ReceiveBlocks, SymbolSink};
use anabranch_policy::code::{self, Coverage, Encoder, ErasureCode};
use anabranch_policy::view::SymbolId;
use anabranch_policy::{PolicyError, PolicySpec};
use anabranch_types::Rng;

/// Bytes of a packet beside its symbol: header, tag and frame.
const AROUND: usize = 36;

/// The blocks of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Source symbols.
    pub sources: u16,
    /// Bytes of each symbol.
    pub symbol: usize,
    /// Share of the symbols that is lost.
    pub loss: f64,
}

/// Measurements of one block.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Seconds spent making the planned repairs.
    pub encode: f64,
    /// Seconds that the receiver spent.
    pub decode: f64,
    /// Seconds that the receiver spent on the last symbol.
    pub last: f64,
    /// Seconds spent copying the block.
    pub copy: f64,
    /// Symbols received until the block was recovered, beyond the number of sources.
    pub beyond: u32,
    /// Bytes of symbols that the receiver kept.
    pub held: u64,
    /// Symbols whose decoded bytes differ from those sent.
    pub wrong: u64,
}

/// A code, and the block that it is tried with.
#[derive(Debug)]
pub struct Trial {
    code: Box<dyn ErasureCode>,
    encoder: Box<dyn Encoder>,
    shape: Shape,
    spec: PolicySpec,
    sources: Vec<Vec<u8>>,
    rng: Rng,
}

/// A repair, and what it covers.
#[derive(Debug)]
struct Made {
    coverage: Coverage,
    key: u32,
    bytes: Vec<u8>,
}

/// Counts and compares what is delivered.
struct Check<'a> {
    sources: &'a [Vec<u8>],
    delivered: usize,
    wrong: u64,
}

impl SymbolSink for Check<'_> {
    fn arrived(&mut self, _: SymbolId, _: &[u8]) -> u16 {
        self.delivered += 1;
        0
    }

    fn recovered(&mut self, payload: &[u8]) {
        self.delivered += 1;
        let place = payload.first_chunk().map(|place| u32::from_be_bytes(*place) as usize);
        let source = place.and_then(|place| self.sources.get(place));
        self.wrong += u64::from(source.is_none_or(|source| source != payload));
    }

    fn forgotten(&mut self, _: SymbolId, _: &[u8]) {}
}

/// The receiver of one block, and what it has taken.
struct Receiver<'a> {
    blocks: ReceiveBlocks,
    check: Check<'a>,
    sample: Sample,
    arrived: u32,
}

impl Receiver<'_> {
    fn take(
        &mut self,
        bytes: &[u8],
        take: impl FnOnce(&mut ReceiveBlocks, &mut Check<'_>) -> Result<Arrival, CodingViolation>,
    ) {
        let (blocks, check) = (&mut self.blocks, &mut self.check);
        let (seconds, arrival) = timed(|| {
            blocks.on_packet(bytes.len() + AROUND);
            take(blocks, check)
        });
        self.sample.last = seconds;
        self.sample.decode += seconds;
        self.arrived += 1;
        self.sample.held += if arrival == Ok(Arrival::New) { bytes.len() as u64 } else { 0 };
    }

    fn repair(&mut self, made: &Made) {
        self.take(&made.bytes, |blocks, check| {
            blocks.on_repair(made.coverage, made.key, &made.bytes, check)
        });
    }

    fn is_complete(&self) -> bool {
        self.check.delivered >= self.check.sources.len()
    }
}

/// Does `work` and returns how many seconds it took, and its result.
#[expect(clippy::disallowed_methods, reason = "real time is what is measured")]
fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed().as_secs_f64(), result)
}

impl Trial {
    /// `None` if the code cannot have such blocks.
    ///
    /// # Errors
    /// If there is no such code, or its options are wrong.
    pub fn new(spec: &PolicySpec, shape: Shape, seed: u64) -> Result<Option<Self>, PolicyError> {
        let code = code::build(spec)?;
        let limits = code.limits();
        let most = if limits.slides.is_some() { u16::MAX } else { most_sources(&limits) };
        if !limits.repairs || shape.sources > most {
            return Ok(None);
        }
        let mut rng = Rng::substream(seed, "bench.codes.bytes");
        let sources = (0..u32::from(shape.sources)).map(|place| {
            let mut bytes = vec![0; shape.symbol];
            rng.fill(&mut bytes);
            bytes[..4].copy_from_slice(&place.to_be_bytes());
            bytes
        });
        let sources = sources.collect();
        let rng = Rng::substream(seed, "bench.codes.losses");
        Ok(Some(Trial { encoder: code.encoder(), code, spec: spec.clone(), shape, sources, rng }))
    }

    /// The repairs from `key` on, all of one coverage, and the seconds that it took to make them.
    fn make(&mut self, coverage: Coverage, key: u32, count: u32) -> Option<(f64, Vec<Made>)> {
        if key + count > self.code.limits().keys(coverage.count) {
            return None;
        }
        let first = coverage.first.0 as usize;
        let covered = self.sources.get(first..coverage.end() as usize)?;
        let covered: Vec<&[u8]> = covered.iter().map(Vec::as_slice).collect();
        let mut bytes = vec![vec![0; self.shape.symbol]; count as usize];
        let mut outs: Vec<&mut [u8]> = bytes.iter_mut().map(Vec::as_mut_slice).collect();
        let encoder = &mut self.encoder;
        let (seconds, made) = timed(|| encoder.repairs(coverage, key, &covered, &mut outs));
        made.ok()?;
        let made = (key..).zip(bytes).map(|(key, bytes)| Made { coverage, key, bytes });
        Some((seconds, made.collect()))
    }

    /// Coverage of a repair that is sent before source `end`. A block code covers the block. A sliding code covers as
    /// many sources as it allows, from the first that the receiver is known to miss, or else the newest.
    fn coverage(&self, missing: Option<u64>, end: u16) -> Coverage {
        let limits = self.code.limits();
        if limits.slides.is_none() {
            return Coverage { first: SymbolId(0), count: self.shape.sources };
        }
        let first = missing.unwrap_or_else(|| end.saturating_sub(limits.sources).into());
        let count = (u64::from(end) - first).min(limits.sources.into()) as u16;
        Coverage { first: SymbolId(first), count }
    }

    /// The repairs that make up for the expected loss, each with the number of sources that are sent before it; and
    /// the seconds that it took to make them. A sliding code spreads its repairs over the block.
    fn planned(&mut self) -> Option<(f64, Vec<(u16, Made)>)> {
        let (sources, loss) = (self.shape.sources, self.shape.loss);
        let count = ((f64::from(sources) * loss / (1.0 - loss)).ceil() as u32).max(1);
        self.encoder.reset();
        if self.code.limits().slides.is_none() {
            let (seconds, made) = self.make(self.coverage(None, sources), 0, count)?;
            return Some((seconds, made.into_iter().map(|made| (sources, made)).collect()));
        }
        let (mut seconds, mut all) = (0.0, Vec::new());
        for key in 0..count {
            let end = ((key + 1) * u32::from(sources) / count).max(1) as u16;
            let (time, made) = self.make(self.coverage(None, end), key, 1)?;
            seconds += time;
            all.extend(made.into_iter().map(|made| (end, made)));
        }
        Some((seconds, all))
    }

    fn copy(&self) -> f64 {
        let mut copies: Vec<Vec<u8>> =
            self.sources.iter().map(|_| vec![1; self.shape.symbol]).collect();
        let (seconds, ()) = timed(|| {
            for (copy, source) in copies.iter_mut().zip(&self.sources) {
                copy.copy_from_slice(black_box(source));
            }
        });
        black_box(&copies);
        seconds
    }

    /// Measures another block; `None` if the code cannot make enough repairs.
    pub fn block(&mut self) -> Option<Sample> {
        let copy = self.copy();
        let (encode, planned) = self.planned()?;
        let sources = self.sources.clone();
        let mut receiver = Receiver {
            blocks: ReceiveBlocks::new(code::build(&self.spec).ok()?, self.shape.symbol, 4096),
            check: Check { sources: &sources, delivered: 0, wrong: 0 },
            sample: Sample { copy, encode, ..Sample::default() },
            arrived: 0,
        };
        let mut repairs = planned.into_iter().peekable();
        let mut key = repairs.len() as u32;
        for (sent, source) in (1..).zip(&sources) {
            if !self.rng.chance(self.shape.loss) {
                let id = SymbolId(sent - 1);
                receiver.take(source, |blocks, check| blocks.on_source(id, source, check));
            }
            while let Some((_, made)) = repairs.next_if(|(before, _)| u64::from(*before) <= sent) {
                if !receiver.is_complete() && !self.rng.chance(self.shape.loss) {
                    receiver.repair(&made);
                }
            }
        }
        while !receiver.is_complete() {
            let missing = receiver.blocks.first_missing().0;
            let coverage = self.coverage(Some(missing), self.shape.sources);
            let (_, made) = self.make(coverage, key, 1)?;
            key += 1;
            if !self.rng.chance(self.shape.loss) {
                made.iter().for_each(|made| receiver.repair(made));
            }
        }
        let Receiver { check, mut sample, arrived, .. } = receiver;
        sample.wrong = check.wrong;
        sample.beyond = arrived - u32::from(self.shape.sources);
        Some(sample)
    }
}
