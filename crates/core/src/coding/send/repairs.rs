//! Makes several repairs at a time. The code then reads each source once for all of them; reading
//! the sources is most of the work.

use anabranch_policy::code::{CodeError, Coverage, Encoder};

use super::super::pool::{Buffer, Pool};
use super::super::{MAX_BLOCK, USUAL_BLOCK};
use super::block::{Block, Source};

/// Most repairs made at a time. The vector kernels make about this many before they read the
/// sources again.
const MAX_TOGETHER: usize = 12;

/// Repairs that were made together with an earlier one and wait to be sent, by rising key.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    first: usize,
    bytes: Vec<Option<Buffer>>,
}

impl Prepared {
    fn take(&mut self, key: usize) -> Option<Buffer> {
        self.bytes.get_mut(key.checked_sub(self.first)?)?.take()
    }

    /// How many repairs wait.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn len(&self) -> usize {
        self.bytes.iter().flatten().count()
    }

    /// Gives all buffers back.
    pub(super) fn clear(&mut self, pool: &mut Pool) {
        for bytes in self.bytes.drain(..).flatten() {
            pool.put(bytes);
        }
    }
}

impl Block {
    /// Writes the repair with `key` to `out`, which is as long as the longest source. Makes `more`
    /// repairs with the next keys at the same time, which will be needed next.
    #[expect(
        clippy::too_many_arguments,
        reason = "a repair is what it covers, its key and where it goes"
    )]
    pub(super) fn write_repair(
        &mut self,
        pool: &mut Pool,
        coverage: Coverage,
        key: usize,
        more: usize,
        out: &mut [u8],
    ) -> Result<(), CodeError> {
        if let Some(bytes) = self.prepared.take(key) {
            let made = bytes.get(..out.len()).map(|bytes| out.copy_from_slice(bytes));
            pool.put(bytes);
            return made.ok_or(CodeError::Length);
        }
        let (encoder, sources) = (self.encoder.as_mut(), self.sources.as_slice());
        let length = out.len();
        if more == 0 || length > pool.size() {
            return encode(encoder, coverage, key, sources, &mut [out]);
        }
        self.prepared.clear(pool);
        self.prepared.first = key + 1;
        let count = more.min(MAX_TOGETHER - 1);
        self.prepared.bytes.extend((0..count).map(|_| Some(pool.take())));
        let mut outs: [&mut [u8]; MAX_TOGETHER] = Default::default();
        let (own, others) = outs.split_at_mut(1);
        if let Some(own) = own.first_mut() {
            *own = out;
        }
        for (slot, bytes) in others.iter_mut().zip(self.prepared.bytes.iter_mut().flatten()) {
            *slot = bytes.get_mut(..length).ok_or(CodeError::Length)?;
        }
        let outs = outs.get_mut(..=count).ok_or(CodeError::Length)?;
        let made = encode(encoder, coverage, key, sources, outs);
        if made.is_err() {
            self.prepared.clear(pool);
        }
        made
    }
}

/// Makes repairs from the key `first` on. Short blocks use a short list of sources: clearing a long
/// one would take longer than making the repairs.
fn encode(
    encoder: &mut dyn Encoder,
    coverage: Coverage,
    first: usize,
    sources: &[Source],
    repairs: &mut [&mut [u8]],
) -> Result<(), CodeError> {
    if sources.len() <= USUAL_BLOCK {
        encode_up_to::<USUAL_BLOCK>(encoder, coverage, first, sources, repairs)
    } else {
        encode_up_to::<MAX_BLOCK>(encoder, coverage, first, sources, repairs)
    }
}

fn encode_up_to<const MAX: usize>(
    encoder: &mut dyn Encoder,
    coverage: Coverage,
    first: usize,
    sources: &[Source],
    repairs: &mut [&mut [u8]],
) -> Result<(), CodeError> {
    let mut list: [&[u8]; MAX] = [&[]; MAX];
    for (slot, source) in list.iter_mut().zip(sources) {
        *slot = source.bytes.get(..usize::from(source.length)).ok_or(CodeError::Length)?;
    }
    let list = list.get(..sources.len()).ok_or(CodeError::Coverage)?;
    encoder.repairs(coverage, first as u32, list, repairs)
}
