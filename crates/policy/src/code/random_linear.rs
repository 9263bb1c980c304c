//! Random linear code over GF(2).

use crate::code::{
    CodeError, CodeLimits, Coverage, Decoder, Encoder, ErasureCode, HeldRepair, HeldSource,
    MAX_KEY, Workspace,
};
use crate::registry::{Entry, Options, PolicyError, option};
use anabranch_fec::random_linear::{self, Equations, Held, MAX_SOURCES};

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "random-linear",
    summary: "random linear code over GF(2): unlimited repairs, 1.6 symbols more than sources to decode",
    source: "Cui et al. 2015 §III; RFC 8681 §3.6",
    options: &[option("sources", "most source symbols of a block, 1 to 1024", "1024")],
};

/// Each repair is the exclusive or of a random half of the sources.
#[derive(Clone, Copy, Debug)]
pub struct RandomLinear {
    sources: u16,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn ErasureCode>, PolicyError> {
    let sources = options.integer("sources", 1..=MAX_SOURCES as u64)? as u16;
    Ok(Box::new(RandomLinear { sources }))
}

impl ErasureCode for RandomLinear {
    fn limits(&self) -> CodeLimits {
        CodeLimits {
            sources: self.sources,
            symbols: MAX_KEY,
            repairs: true,
            any_symbols_suffice: false,
            surplus: 0,
            slides: None,
        }
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        Box::new(*self)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(Following::default())
    }
}

impl Encoder for RandomLinear {
    fn repairs(
        &mut self,
        _: Coverage,
        first: u32,
        sources: &[&[u8]],
        repairs: &mut [&mut [u8]],
    ) -> Result<(), CodeError> {
        random_linear::encode(first, sources, repairs).map_err(|error| match error {
            random_linear::Error::Sources(_) => CodeError::Coverage,
            _ => CodeError::Length,
        })
    }
}

/// Decoder that follows the rank.
#[derive(Debug, Default)]
struct Following(Equations);

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
        let mut known: [(u16, &[u8]); MAX_SOURCES] = [(0, &[]); MAX_SOURCES];
        let mut kept: [&[u8]; MAX_SOURCES] = [&[]; MAX_SOURCES];
        for (entry, source) in known.iter_mut().zip(sources) {
            *entry = (source.index, source.bytes);
        }
        for (entry, repair) in kept.iter_mut().zip(repairs) {
            *entry = repair.bytes;
        }
        let length = repairs.first().map_or(0, |repair| repair.bytes.len());
        let (Some(known), Some(kept)) = (known.get(..sources.len()), kept.get(..repairs.len()))
        else {
            return Err(CodeError::Coverage);
        };
        let held = Held { length, known, repairs: kept };
        self.0.rebuild(&held, &mut work.rebuilt, out).map_err(|_| CodeError::Underdetermined)
    }
}
