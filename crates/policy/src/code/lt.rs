//! LT codes.

use crate::code::{
    CodeError, CodeLimits, Coverage, Decoder, Encoder, ErasureCode, HeldRepair, HeldSource,
    MAX_KEY, Workspace,
};
use crate::registry::{Entry, Options, PolicyError, option};
use anabranch_fec::lt::{self, Held, MAX_SOURCES, Peeling, Soliton};

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "lt",
    summary: "LT code, decoded by peeling: cheap, and 20 to 50 % more symbols than sources to decode",
    source: "Luby 2002; Cui et al. 2015 §III",
    options: &[option("sources", "most source symbols of a block, 1 to 512", "512")],
};

/// At most this many symbols of a block are kept beyond its F sources. Peeling needs about 1.21 F
/// symbols where all of 512 sources are lost.
const SURPLUS: u16 = 512;

/// Each repair is the exclusive or of a few sources.
#[derive(Clone, Copy, Debug)]
pub struct Lt {
    sources: u16,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn ErasureCode>, PolicyError> {
    let sources = options.integer("sources", 1..=MAX_SOURCES as u64)? as u16;
    Ok(Box::new(Lt { sources }))
}

impl ErasureCode for Lt {
    fn limits(&self) -> CodeLimits {
        CodeLimits {
            sources: self.sources,
            symbols: MAX_KEY,
            repairs: true,
            any_symbols_suffice: false,
            surplus: SURPLUS,
            slides: None,
        }
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        Box::new(Making::default())
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(Following::default())
    }
}

fn error(error: lt::Error) -> CodeError {
    match error {
        lt::Error::Sources(_) => CodeError::Coverage,
        lt::Error::Length => CodeError::Length,
        lt::Error::NotEnough => CodeError::Underdetermined,
    }
}

/// Encoder that keeps the degree distribution for the size of the last block.
#[derive(Debug, Default)]
struct Making(Soliton);

impl Encoder for Making {
    fn repairs(
        &mut self,
        _: Coverage,
        first: u32,
        sources: &[&[u8]],
        repairs: &mut [&mut [u8]],
    ) -> Result<(), CodeError> {
        if self.0.sources() != sources.len() {
            self.0 = Soliton::of(sources.len()).map_err(error)?;
        }
        lt::encode(&self.0, first, sources, repairs).map_err(error)
    }
}

/// Decoder that peels as symbols arrive.
#[derive(Debug, Default)]
struct Following(Peeling);

impl Decoder for Following {
    fn begin(&mut self, sources: u16) {
        // The receiver has compared the coverage with the limits.
        let _ = self.0.begin(sources.into());
    }

    fn source(&mut self, index: u16) {
        self.0.source(index.into());
    }

    fn repair(&mut self, key: u32) -> bool {
        self.0.repair(key)
    }

    fn deficit(&self) -> u16 {
        self.0.deficit() as u16
    }

    fn recover(
        &mut self,
        sources: &[HeldSource<'_>],
        repairs: &[HeldRepair<'_>],
        work: &mut Workspace,
        out: &mut dyn FnMut(u16, &[u8]),
    ) -> Result<(), CodeError> {
        let known: Vec<(u16, &[u8])> =
            sources.iter().map(|source| (source.index, source.bytes)).collect();
        let kept: Vec<(u32, &[u8])> =
            repairs.iter().map(|repair| (repair.key, repair.bytes)).collect();
        let length = repairs.first().map_or(0, |repair| repair.bytes.len());
        let held = Held { length, known: &known, repairs: &kept };
        self.0.rebuild(&held, &mut work.rebuilt, out).map_err(error)
    }
}
