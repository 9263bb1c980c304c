//! The erasure codes behind [`ErasureCode`], by name.

use anabranch_fec::reed_solomon;
use anabranch_policy::code::{CodeError, ErasureCode, Held};

/// Systematic Reed–Solomon over GF(2^8): any F of at most 255 symbols decode.
#[derive(Debug, Default)]
pub struct ReedSolomon {
    decoder: reed_solomon::Decoder,
}

impl ErasureCode for ReedSolomon {
    fn max_symbols(&self) -> u16 {
        reed_solomon::MAX_SYMBOLS as u16
    }

    fn repair(&mut self, key: u16, sources: &[&[u8]], repair: &mut [u8]) -> Result<(), CodeError> {
        self.repairs(key, sources, &mut [repair])
    }

    fn repairs(
        &mut self,
        first: u16,
        sources: &[&[u8]],
        repairs: &mut [&mut [u8]],
    ) -> Result<(), CodeError> {
        let first = u8::try_from(first).map_err(|_| CodeError::Key)?;
        reed_solomon::encode(first, sources, repairs).map_err(|_| CodeError::Length)
    }

    fn recover(
        &mut self,
        count: u16,
        sources: &[Held<'_>],
        repairs: &[Held<'_>],
        out: &mut dyn FnMut(u16, &[u8]),
    ) -> Result<(), CodeError> {
        let length = repairs.first().map_or(0, |repair| repair.bytes.len());
        let known = sources.iter().map(|s| (s.index as u8, s.bytes));
        let extra = repairs.iter().map(|r| (r.index as u8, r.bytes));
        let in_range = |held: &Held<'_>| held.index <= u16::from(u8::MAX);
        if !sources.iter().chain(repairs).all(in_range) {
            return Err(CodeError::Key);
        }
        let recovered = self
            .decoder
            .decode(usize::from(count), length, known, extra)
            .map_err(|_| CodeError::Underdetermined)?;
        for (index, bytes) in recovered {
            out(u16::from(index), bytes);
        }
        Ok(())
    }
}

/// No code: windows group symbols for bookkeeping, and losses are made good by the symbols themselves.
#[derive(Debug, Default)]
pub struct Uncoded;

impl ErasureCode for Uncoded {
    fn max_symbols(&self) -> u16 {
        256
    }

    fn makes_repairs(&self) -> bool {
        false
    }

    fn repair(&mut self, _: u16, _: &[&[u8]], _: &mut [u8]) -> Result<(), CodeError> {
        Err(CodeError::Key)
    }

    fn recover(
        &mut self,
        _: u16,
        _: &[Held<'_>],
        _: &[Held<'_>],
        _: &mut dyn FnMut(u16, &[u8]),
    ) -> Result<(), CodeError> {
        Err(CodeError::Underdetermined)
    }
}

/// The names that [`by_name`] knows, with a line about each.
pub const NAMES: [(&str, &str); 2] = [
    ("reed-solomon", "systematic Cauchy Reed–Solomon over GF(2^8), at most 255 symbols a window"),
    ("none", "no repairs: a lost symbol is sent again"),
];

/// The code called `name`.
pub fn by_name(name: &str) -> Option<Box<dyn ErasureCode>> {
    match name {
        "reed-solomon" => Some(Box::new(ReedSolomon::default())),
        "none" => Some(Box::new(Uncoded)),
        _ => None,
    }
}
