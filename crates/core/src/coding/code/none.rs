//! No code.

use anabranch_policy::code::{
    CodeError, CodeLimits, Decoder, Encoder, ErasureCode, HeldRepair, HeldSource, Workspace,
};
use anabranch_policy::registry::{Entry, Options, PolicyError};

/// What the registry says about it.
pub const ENTRY: Entry = Entry {
    axis: "code",
    name: "none",
    summary: "no repairs: a lost symbol is sent again",
    source: "",
    options: &[],
};

/// No code: windows group symbols for bookkeeping, and losses are made good by the symbols themselves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uncoded;

/// Makes it.
pub fn build(_: &Options<'_>) -> Result<Box<dyn ErasureCode>, PolicyError> {
    Ok(Box::new(Uncoded))
}

impl ErasureCode for Uncoded {
    fn limits(&self) -> CodeLimits {
        CodeLimits {
            sources: 256,
            symbols: 256,
            repairs: false,
            any_symbols_suffice: true,
            surplus: 0,
        }
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        Box::new(Uncoded)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(Uncoded)
    }
}

impl Encoder for Uncoded {
    fn repairs(&mut self, _: u32, _: &[&[u8]], _: &mut [&mut [u8]]) -> Result<(), CodeError> {
        Err(CodeError::Key)
    }
}

/// Never asked: a receiver accepts no repairs of it.
impl Decoder for Uncoded {
    fn begin(&mut self, _: u16) {}

    fn source(&mut self, _: u16) {}

    fn repair(&mut self, _: u32) -> bool {
        false
    }

    fn deficit(&self) -> u16 {
        1
    }

    fn recover(
        &mut self,
        _: &[HeldSource<'_>],
        _: &[HeldRepair<'_>],
        _: &mut Workspace,
        _: &mut dyn FnMut(u16, &[u8]),
    ) -> Result<(), CodeError> {
        Err(CodeError::Underdetermined)
    }
}
