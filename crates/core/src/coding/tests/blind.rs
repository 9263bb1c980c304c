//! A code whose decoder does not know its rank. It keeps repairs, tries to decode, fails, and needs
//! more.

use anabranch_policy::PolicySpec;
use anabranch_policy::code::{
    self, CodeError, CodeLimits, Decoder, Encoder, ErasureCode, HeldRepair, HeldSource, Workspace,
};

/// The random linear code, decoded by trial.
#[derive(Debug)]
pub(super) struct Blind;

fn inner() -> Box<dyn ErasureCode> {
    code::build(&PolicySpec::new("random-linear")).unwrap()
}

impl ErasureCode for Blind {
    fn limits(&self) -> CodeLimits {
        CodeLimits { surplus: 40, ..inner().limits() }
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        inner().encoder()
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(Trying { inner: inner().decoder(), missing: 0, repairs: 0, failed: false })
    }
}

#[derive(Debug)]
struct Trying {
    inner: Box<dyn Decoder>,
    missing: u16,
    repairs: u16,
    failed: bool,
}

impl Decoder for Trying {
    fn begin(&mut self, sources: u16) {
        self.inner.begin(sources);
        (self.missing, self.repairs, self.failed) = (sources, 0, false);
    }

    fn source(&mut self, index: u16) {
        self.inner.source(index);
        self.missing -= 1;
        self.failed = false;
    }

    fn repair(&mut self, _: u32) -> bool {
        self.repairs += 1;
        self.failed = false;
        true
    }

    fn deficit(&self) -> u16 {
        self.missing.saturating_sub(self.repairs).max(self.failed.into())
    }

    fn recover(
        &mut self,
        sources: &[HeldSource<'_>],
        repairs: &[HeldRepair<'_>],
        work: &mut Workspace,
        out: &mut dyn FnMut(u16, &[u8]),
    ) -> Result<(), CodeError> {
        let mut trial = inner().decoder();
        trial.begin(self.missing + sources.len() as u16);
        sources.iter().for_each(|source| trial.source(source.index));
        let helpful: Vec<_> =
            repairs.iter().copied().filter(|repair| trial.repair(repair.key)).collect();
        let result = if trial.deficit() > 0 {
            Err(CodeError::Underdetermined)
        } else {
            trial.recover(sources, &helpful, work, out)
        };
        self.failed = result.is_err();
        result
    }
}
