//! RaptorQ, the systematic fountain code of RFC 6330, for blocks of up to 56,403 source symbols.
//!
//! A block of F sources can have 2^24 − F repairs. Any F + e of its symbols fail to rebuild it with
//! a probability of about 5 · 10⁻³ for e = 0, 3 · 10⁻⁵ for e = 1 and less than 10⁻⁶ for e = 2.
//! Repair k is the encoding symbol F + k of a single source block without sub-blocks (RFC 6330
//! §4.4.2). The padding up to a block size of the RFC's table is implied at both ends and never
//! sent.
//!
//! The `raptorq` crate implements the code. It panics on symbols with unexpected numbers or sizes,
//! so this module checks everything that it passes to the crate.

use ::raptorq::{
    EncodingPacket, ObjectTransmissionInformation, PayloadId, SourceBlockDecoder,
    SourceBlockEncoder,
};

/// The most source symbols that a block can have (RFC 6330 §5.1.2, K'_max).
pub const MAX_SOURCES: usize = 56_403;
/// The number of encoding symbols of a block, sources and repairs together (RFC 6330 §3.2: 24 bits).
pub const SYMBOLS: u32 = 1 << 24;

/// Why encoding or decoding failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A block has from 1 to [`MAX_SOURCES`] sources.
    #[error("{0} source symbols; 1 to 56403 are allowed")]
    Sources(usize),
    /// A source is longer than the repairs, the repairs differ in length, or a symbol has no byte or more than 65,535.
    #[error("symbols of wrong length")]
    Length,
    /// There is no such source or repair in a block of this size, or a number occurs twice.
    #[error("a symbol that the block does not have")]
    Number,
    /// The symbols do not determine the missing sources.
    #[error("more symbols are needed")]
    NotEnough,
}

/// The `raptorq` crate's description of a block of this many symbols of this many bytes.
fn block(sources: usize, length: usize) -> Result<ObjectTransmissionInformation, Error> {
    if sources == 0 || sources > MAX_SOURCES {
        return Err(Error::Sources(sources));
    }
    let size = u16::try_from(length).ok().filter(|size| *size > 0).ok_or(Error::Length)?;
    let bytes = sources as u64 * u64::from(size);
    Ok(ObjectTransmissionInformation::new(bytes, size, 1, 1, 1))
}

/// Whether a block of `sources` has the repairs from `first` on, this many of them.
fn has_repairs(sources: usize, first: u32, count: usize) -> bool {
    let beyond = sources as u64 + u64::from(first) + count as u64;
    beyond <= u64::from(SYMBOLS)
}

/// Makes the repairs of one block after another. The intermediate symbols, which all repairs of a
/// block share, are computed for the first repair and kept until [`reset`](Self::reset).
#[derive(Debug, Default)]
pub struct Encoder {
    prepared: Option<Prepared>,
    /// The block's sources one after the other, each extended to the same length.
    contiguous: Vec<u8>,
}

#[derive(Debug)]
struct Prepared {
    sources: usize,
    length: usize,
    encoder: SourceBlockEncoder,
}

impl Encoder {
    /// Forgets the block.
    pub fn reset(&mut self) {
        self.prepared = None;
    }

    /// Computes the repairs `first`, `first + 1`, … of the block of `sources` into `repairs`, which are of one
    /// length. A source shorter than the repairs counts as extended with zeros. The sources must be the same at every
    /// call between two [`reset`](Self::reset)s.
    ///
    /// # Errors
    /// Nothing is written if there are no sources or too many, lengths disagree, or the block has no such repairs.
    pub fn encode(
        &mut self,
        first: u32,
        sources: &[&[u8]],
        repairs: &mut [&mut [u8]],
    ) -> Result<(), Error> {
        let Some(length) = repairs.first().map(|repair| repair.len()) else { return Ok(()) };
        let fits = |source: &&[u8]| source.len() <= length;
        if repairs.iter().any(|repair| repair.len() != length) || !sources.iter().all(fits) {
            return Err(Error::Length);
        }
        if !has_repairs(sources.len(), first, repairs.len()) {
            return Err(Error::Number);
        }
        let prepared = self.prepare(sources, length)?;
        let made = prepared.encoder.repair_packets(first, repairs.len() as u32);
        for (repair, packet) in repairs.iter_mut().zip(&made) {
            repair.copy_from_slice(packet.data());
        }
        Ok(())
    }

    fn prepare(&mut self, sources: &[&[u8]], length: usize) -> Result<&Prepared, Error> {
        let is_same =
            |prepared: &Prepared| prepared.sources == sources.len() && prepared.length == length;
        if !self.prepared.as_ref().is_some_and(is_same) {
            let block = block(sources.len(), length)?;
            self.contiguous.clear();
            self.contiguous.reserve(sources.len() * length);
            for source in sources {
                self.contiguous.extend_from_slice(source);
                self.contiguous.resize(self.contiguous.len() + length - source.len(), 0);
            }
            self.prepared = None;
            let encoder = SourceBlockEncoder::new(0, &block, &self.contiguous);
            return Ok(self.prepared.insert(Prepared { sources: sources.len(), length, encoder }));
        }
        self.prepared.as_ref().ok_or(Error::NotEnough)
    }
}

/// Symbols of a block that have arrived: numbers of sources and of repairs, each with its bytes.
#[derive(Clone, Debug)]
pub struct Held<S, R> {
    /// How many sources the block has.
    pub count: usize,
    /// Length of its symbols, bytes. A source may be shorter; the rest counts as zeros.
    pub length: usize,
    /// Sources by their places from 0, each at most once.
    pub sources: S,
    /// Repairs by their numbers from 0, each at most once.
    pub repairs: R,
}

/// Rebuilds the missing sources of a block; `out` is called with the place and the bytes of each, by rising place.
///
/// The work is that of solving the whole block, however few sources are missing.
///
/// # Errors
/// Nothing is rebuilt if the symbols do not determine the sources, a number is not the block's or occurs twice, or a
/// length is wrong.
pub fn decode<'a, S, R>(held: Held<S, R>, mut out: impl FnMut(usize, &[u8])) -> Result<(), Error>
where
    S: IntoIterator<Item = (usize, &'a [u8])>,
    R: IntoIterator<Item = (u32, &'a [u8])>,
{
    let Held { count, length, sources, repairs } = held;
    let block = block(count, length)?;
    let mut missing = vec![true; count];
    let mut packets = Vec::with_capacity(count);
    for (index, bytes) in sources {
        let place = missing.get_mut(index).filter(|missing| **missing).ok_or(Error::Number)?;
        *place = false;
        if bytes.len() > length {
            return Err(Error::Length);
        }
        let mut whole = Vec::with_capacity(length);
        whole.extend_from_slice(bytes);
        whole.resize(length, 0);
        packets.push(EncodingPacket::new(PayloadId::new(0, index as u32), whole));
    }
    for (number, bytes) in repairs {
        if !has_repairs(count, number, 1) {
            return Err(Error::Number);
        }
        if bytes.len() != length {
            return Err(Error::Length);
        }
        let id = PayloadId::new(0, count as u32 + number);
        packets.push(EncodingPacket::new(id, bytes.to_vec()));
    }
    let mut decoder = SourceBlockDecoder::new(0, &block, block.transfer_length());
    let data = decoder.decode(packets).ok_or(Error::NotEnough)?;
    for (index, bytes) in data.chunks_exact(length).enumerate() {
        if missing.get(index).is_some_and(|missing| *missing) {
            out(index, bytes);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
