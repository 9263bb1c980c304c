//! RaptorQ, the fountain code of RFC 6330.

use crate::code::{
    CodeError, CodeLimits, Coverage, Decoder, Encoder, ErasureCode, HeldRepair, HeldSource,
    Workspace,
};
use crate::registry::{Entry, Options, PolicyError, option};
use anabranch_fec::raptorq::{self, Held, SYMBOLS};

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "raptorq",
    summary: "RaptorQ: unlimited repairs; all but one of 200 blocks decode from as many symbols as sources",
    source: "RFC 6330; Cui et al. 2015 §III",
    options: &[option("sources", "most source symbols of a block, 1 to 1016", "1016")],
};

/// How many symbols of a block are kept beyond the number of sources. The chance that so many do
/// not suffice is below 10⁻¹⁶.
const SURPLUS: u16 = 8;

/// Most source symbols of a block. RFC 6330 allows 56,403, but the core holds at most 1024 symbols of a block.
const SOURCES: u16 = 1024 - SURPLUS;

/// Work of solving a block for each of its symbols, in units of 16 instructions; each byte takes one unit more.
/// Measured: 20,000 to 25,000 instructions per symbol and 10 to 19 per byte, in blocks of 1016 to 10 symbols.
const FOR_EACH_SYMBOL: u64 = 1500;

/// RFC 6330 with one source block for each coding block.
#[derive(Clone, Copy, Debug)]
pub struct RaptorQ {
    sources: u16,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn ErasureCode>, PolicyError> {
    let sources = options.integer("sources", 1..=SOURCES.into())? as u16;
    Ok(Box::new(RaptorQ { sources }))
}

impl ErasureCode for RaptorQ {
    fn limits(&self) -> CodeLimits {
        CodeLimits {
            sources: self.sources,
            symbols: SYMBOLS,
            repairs: true,
            any_symbols_suffice: false,
            surplus: SURPLUS,
            slides: None,
        }
    }

    fn recovery_work(&self, sources: u16, length: usize) -> u64 {
        u64::from(sources) * (FOR_EACH_SYMBOL + length as u64)
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        Box::new(Making::default())
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(Counting::default())
    }
}

fn error(error: raptorq::Error) -> CodeError {
    match error {
        raptorq::Error::Sources(_) => CodeError::Coverage,
        raptorq::Error::Length => CodeError::Length,
        raptorq::Error::Number => CodeError::Key,
        raptorq::Error::NotEnough => CodeError::Underdetermined,
    }
}

#[derive(Debug, Default)]
struct Making(raptorq::Encoder);

impl Encoder for Making {
    fn reset(&mut self) {
        self.0.reset();
    }

    fn repairs(
        &mut self,
        _: Coverage,
        first: u32,
        sources: &[&[u8]],
        repairs: &mut [&mut [u8]],
    ) -> Result<(), CodeError> {
        self.0.encode(first, sources, repairs).map_err(error)
    }
}

/// Counts symbols, since their rank is known only when the block is solved.
#[derive(Debug, Default)]
struct Counting {
    sources: u16,
    missing: u16,
    repairs: u16,
    /// Whether solving the block has failed with the symbols that have arrived so far.
    failed: bool,
}

impl Decoder for Counting {
    fn begin(&mut self, sources: u16) {
        *self = Counting { sources, missing: sources, ..Counting::default() };
    }

    fn source(&mut self, _: u16) {
        self.missing = self.missing.saturating_sub(1);
        self.failed = false;
    }

    fn repair(&mut self, _: u32) -> bool {
        let keeps = self.repairs < self.missing.saturating_add(SURPLUS);
        self.repairs += u16::from(keeps);
        self.failed &= !keeps;
        keeps
    }

    fn deficit(&self) -> u16 {
        self.missing.saturating_sub(self.repairs).max(u16::from(self.failed))
    }

    fn recover(
        &mut self,
        sources: &[HeldSource<'_>],
        repairs: &[HeldRepair<'_>],
        _: &mut Workspace,
        out: &mut dyn FnMut(u16, &[u8]),
    ) -> Result<(), CodeError> {
        let held = Held {
            count: self.sources.into(),
            length: repairs.first().map_or(0, |repair| repair.bytes.len()),
            sources: sources.iter().map(|source| (usize::from(source.index), source.bytes)),
            repairs: repairs.iter().map(|repair| (repair.key, repair.bytes)),
        };
        let rebuilt = raptorq::decode(held, |index, bytes| out(index as u16, bytes));
        self.failed = rebuilt.is_err();
        rebuilt.map_err(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_attempt_asks_for_one_more() {
        let mut decoder = Counting::default();
        decoder.begin(3);
        decoder.source(1);
        assert_eq!(decoder.deficit(), 2);
        assert!(decoder.repair(0) && decoder.repair(9));
        assert_eq!(decoder.deficit(), 0);
        let short = [HeldRepair { key: 0, bytes: &[1, 2] }];
        let source = [HeldSource { index: 1, bytes: &[5] }];
        let mut work = Workspace::default();
        let error = decoder.recover(&source, &short, &mut work, &mut |_, _| panic!("rebuilt"));
        assert_eq!((error, decoder.deficit()), (Err(CodeError::Underdetermined), 1));
        assert!(decoder.repair(7));
        assert_eq!(decoder.deficit(), 0);
    }

    #[test]
    fn no_more_is_kept_than_can_be_needed() {
        let mut decoder = Counting::default();
        decoder.begin(4);
        let kept = (0..1000).filter(|key| decoder.repair(*key)).count();
        assert_eq!(kept, 4 + usize::from(SURPLUS));
    }
}
