//! Sliding-window random linear code over GF(2^8).

use crate::code::{CodeError, CodeLimits, Coverage, Encoder, ErasureCode, MAX_KEY, SlidingDecoder};
use crate::registry::{Entry, Options, PolicyError};
use crate::view::SymbolId;
use anabranch_fec::sliding_window::{self, Decoder, Error, MAX_COVERAGE, MAX_MISSING, Repair};

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "sliding-window",
    summary: "random linear code over GF(2^8) whose repairs cover any run of symbols, also while more come",
    source: "RFC 8681",
    options: &[],
};

/// Each repair is a random combination of a run of symbols.
#[derive(Clone, Copy, Debug, Default)]
pub struct SlidingWindow;

/// Builds the policy, which has no options.
pub fn build(_: &Options<'_>) -> Result<Box<dyn ErasureCode>, PolicyError> {
    Ok(Box::new(SlidingWindow))
}

impl ErasureCode for SlidingWindow {
    fn limits(&self) -> CodeLimits {
        CodeLimits {
            sources: MAX_COVERAGE as u16,
            symbols: MAX_KEY,
            repairs: true,
            any_symbols_suffice: false,
            surplus: 0,
            slides: Some(MAX_MISSING as u16),
        }
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        Box::new(SlidingWindow)
    }

    fn sliding_decoder(&self, symbol_length: usize) -> Option<Box<dyn SlidingDecoder>> {
        Some(Box::new(Following(Decoder::new(symbol_length))))
    }
}

fn repair(coverage: Coverage, key: u32) -> Repair {
    Repair { first: coverage.first.0, count: coverage.count.into(), key }
}

impl Encoder for SlidingWindow {
    fn repairs(
        &mut self,
        coverage: Coverage,
        first: u32,
        sources: &[&[u8]],
        repairs: &mut [&mut [u8]],
    ) -> Result<(), CodeError> {
        for (key, out) in (first..).zip(repairs) {
            sliding_window::encode(repair(coverage, key), sources, out).map_err(
                |error| match error {
                    Error::Coverage(_) => CodeError::Coverage,
                    Error::Length => CodeError::Length,
                },
            )?;
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Following(Decoder);

impl SlidingDecoder for Following {
    fn repair<'a>(
        &mut self,
        coverage: Coverage,
        key: u32,
        bytes: &[u8],
        known: &dyn Fn(SymbolId) -> Option<&'a [u8]>,
    ) -> bool {
        self.0.repair(repair(coverage, key), bytes, |number| known(SymbolId(number)))
    }

    fn source(&mut self, symbol: SymbolId, bytes: &[u8]) {
        self.0.source(symbol.0, bytes);
    }

    fn give_up(&mut self, symbol: SymbolId) {
        self.0.give_up(symbol.0);
    }

    fn advance(&mut self, first_missing: SymbolId) {
        self.0.advance(first_missing.0);
    }

    fn take_recovered(&mut self, out: &mut [u8]) -> Option<(SymbolId, usize)> {
        self.0.take_recovered(out).map(|(number, length)| (SymbolId(number), length))
    }

    fn deficit(&self, source: SymbolId) -> u16 {
        self.0.deficit() as u16 + u16::from(!self.0.contains(source.0))
    }
}
