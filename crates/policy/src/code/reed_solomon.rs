//! Reed–Solomon.

use crate::code::{
    CodeError, CodeLimits, Coverage, Decoder, Encoder, ErasureCode, HeldRepair, HeldSource,
    Workspace,
};
use crate::registry::{Entry, Options, PolicyError};
use anabranch_fec::reed_solomon::{self, MAX_SYMBOLS};

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "reed-solomon",
    summary: "systematic Cauchy Reed–Solomon over GF(2^8), at most 255 symbols a block",
    source: "Blömer et al. 1995; Sharma et al. 2008 §II-A",
    options: &[],
};

/// Systematic Reed–Solomon over GF(2^8): any F of at most 255 symbols decode.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReedSolomon;

/// Builds the policy, which has no options.
pub fn build(_: &Options<'_>) -> Result<Box<dyn ErasureCode>, PolicyError> {
    Ok(Box::new(ReedSolomon))
}

impl ErasureCode for ReedSolomon {
    fn limits(&self) -> CodeLimits {
        CodeLimits {
            sources: MAX_SYMBOLS as u16,
            symbols: MAX_SYMBOLS as u32,
            repairs: true,
            any_symbols_suffice: true,
            surplus: 0,
            slides: None,
        }
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        Box::new(ReedSolomon)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(Counting::default())
    }
}

/// The encoder keeps nothing from repair to repair, since the coefficients come from a table.
impl Encoder for ReedSolomon {
    fn repairs(
        &mut self,
        _: Coverage,
        first: u32,
        sources: &[&[u8]],
        repairs: &mut [&mut [u8]],
    ) -> Result<(), CodeError> {
        let first = u8::try_from(first).map_err(|_| CodeError::Key)?;
        reed_solomon::encode(first, sources, repairs).map_err(|_| CodeError::Length)
    }
}

/// Counts symbols: any F of them decode a block of F sources, so the count is the rank.
#[derive(Clone, Copy, Debug, Default)]
struct Counting {
    sources: u16,
    missing: u16,
    repairs: u16,
}

impl Decoder for Counting {
    fn begin(&mut self, sources: u16) {
        *self = Counting { sources, missing: sources, repairs: 0 };
    }

    fn source(&mut self, _: u16) {
        self.missing = self.missing.saturating_sub(1);
    }

    fn repair(&mut self, _: u32) -> bool {
        let helps = self.deficit() > 0;
        self.repairs += u16::from(helps);
        helps
    }

    fn deficit(&self) -> u16 {
        self.missing.saturating_sub(self.repairs)
    }

    fn recover(
        &mut self,
        sources: &[HeldSource<'_>],
        repairs: &[HeldRepair<'_>],
        work: &mut Workspace,
        out: &mut dyn FnMut(u16, &[u8]),
    ) -> Result<(), CodeError> {
        let length = repairs.first().map_or(0, |repair| repair.bytes.len());
        let known = sources.iter().map(|source| (source.index as u8, source.bytes));
        let extra = repairs.iter().map(|repair| (repair.key as u8, repair.bytes));
        let buffers = (core::mem::take(&mut work.partial), core::mem::take(&mut work.rebuilt));
        let mut decoder = reed_solomon::Decoder::with_buffers(buffers);
        let decoded = decoder.decode(usize::from(self.sources), length, known, extra);
        let result = decoded.map_err(|_| CodeError::Underdetermined).map(|recovered| {
            for (index, bytes) in recovered {
                out(u16::from(index), bytes);
            }
        });
        (work.partial, work.rebuilt) = decoder.into_buffers();
        result
    }
}
