//! Repairs made several at a time: the code reads every source once for all of them, and that reading
//! is most of the work.

use anabranch_policy::code::{CodeError, ErasureCode};

use super::super::pool::Pool;
use super::MAX_WINDOW;
use super::window::Window;

/// Repairs made in one go at most; the vector kernels take about so many before they read the
/// sources again.
const MAX_TOGETHER: usize = 12;

/// Repairs that were made together with an earlier one and wait to be sent, by rising key.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    first: usize,
    bytes: Vec<Option<Box<[u8]>>>,
}

impl Prepared {
    fn take(&mut self, key: usize) -> Option<Box<[u8]>> {
        self.bytes.get_mut(key.checked_sub(self.first)?)?.take()
    }

    /// Gives all buffers back.
    pub(super) fn clear(&mut self, pool: &mut Pool) {
        for bytes in self.bytes.drain(..).flatten() {
            pool.put(bytes);
        }
    }
}

impl Window {
    /// Writes the repair with `key` to `out`, which is as long as the longest source. `more` further
    /// ones will be asked for, the next key first: they are made at once.
    pub(super) fn write_repair(
        &mut self,
        code: &mut dyn ErasureCode,
        pool: &mut Pool,
        key: usize,
        more: usize,
        out: &mut [u8],
    ) -> Result<(), CodeError> {
        if let Some(bytes) = self.prepared.take(key) {
            let made = bytes.get(..out.len()).map(|bytes| out.copy_from_slice(bytes));
            pool.put(bytes);
            return made.ok_or(CodeError::Length);
        }
        let mut sources: [&[u8]; MAX_WINDOW] = [&[]; MAX_WINDOW];
        for (slot, source) in sources.iter_mut().zip(&self.sources) {
            *slot = source.bytes.get(..usize::from(source.length)).ok_or(CodeError::Length)?;
        }
        let sources = sources.get(..self.sources.len()).ok_or(CodeError::Coverage)?;
        let length = out.len();
        if more == 0 || length > pool.size() {
            return code.repairs(key as u16, sources, &mut [out]);
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
        let made = code.repairs(key as u16, sources, outs);
        if made.is_err() {
            self.prepared.clear(pool);
        }
        made
    }
}
