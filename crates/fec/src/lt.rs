//! LT codes (Luby, "LT Codes", FOCS 2002) for blocks of up to 512 source symbols, with a peeling
//! decoder.
//!
//! A repair is the exclusive or of some sources. Their number, its *degree*, is drawn from the
//! robust soliton distribution, of mean ln F or more; the sources are drawn at random; the key
//! seeds both draws. A repair with a single unknown source gives that source, which may leave other
//! repairs with a single unknown, and so on: peeling takes one addition for each source of each
//! repair used, about F ln F where all of a block is lost. In return, more repairs are needed than
//! with Gaussian elimination; [`Peeling`] gives measured numbers.
//!
//! Sources are sent as they are. Where few of them are lost, most repairs contain none of the lost ones, so many more
//! repairs are needed than sources are lost: about F ln m ÷ ln F to rebuild m of F. FMTCP's paper names these codes as
//! the ones that Raptor codes improve on (§III).

mod peeling;

pub use peeling::{Held, Peeling};

use anabranch_types::math;

use crate::kernel::{Kernel, MAX_INPUTS};
use crate::random_linear::mix;

/// The most source symbols that a block can have.
pub const MAX_SOURCES: usize = 512;

/// Words of a set that has a bit for each source.
const WORDS: usize = MAX_SOURCES / 64;

/// Luby's c, which scales how many repairs of degree 1 are expected at any time (Definition 11).
const C: f64 = 0.1;
/// Luby's δ, a bound on the chance that decoding fails.
const DELTA: f64 = 0.5;

/// Why encoding or decoding failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A block has from 1 to [`MAX_SOURCES`] sources.
    #[error("{0} source symbols; 1 to 512 are allowed")]
    Sources(usize),
    /// A source is longer than the repairs, or the repairs differ in length.
    #[error("symbols differ in length")]
    Length,
    /// The symbols do not determine the missing sources by peeling.
    #[error("more symbols are needed")]
    NotEnough,
}

/// The distribution of degrees in blocks of one number of sources, and the choice of a repair's sources.
#[derive(Clone, Debug, Default)]
pub struct Soliton {
    /// By degree from 1: the probability of this degree or a lower one, times 2^32. Empty for blocks of no sources.
    below: Vec<u64>,
}

impl Soliton {
    /// The robust soliton distribution μ(d) = (ρ(d) + τ(d)) ÷ β (Luby 2002, Definitions 9 and 11), where
    /// R = c ln(F ÷ δ) √F and
    ///
    /// - ρ(1) = 1 ÷ F, ρ(d) = 1 ÷ (d (d − 1));
    /// - τ(d) = R ÷ (d F) for d < F ÷ R, R ln(R ÷ δ) ÷ F at d = F ÷ R, and 0 above.
    ///
    /// # Errors
    /// If a block cannot have this many sources.
    pub fn of(sources: usize) -> Result<Self, Error> {
        if sources == 0 || sources > MAX_SOURCES {
            return Err(Error::Sources(sources));
        }
        let count = sources as f64;
        let ripple = C * math::ln(count / DELTA) * math::sqrt(count);
        let spike = (count / ripple) as usize;
        let chance = |degree: usize| {
            let d = degree as f64;
            let ideal = if degree == 1 { 1.0 / count } else { 1.0 / (d * (d - 1.0)) };
            let extra = match degree.cmp(&spike) {
                core::cmp::Ordering::Less => ripple / (d * count),
                core::cmp::Ordering::Equal => ripple * math::ln(ripple / DELTA).max(0.0) / count,
                core::cmp::Ordering::Greater => 0.0,
            };
            ideal + extra
        };
        let all: f64 = (1..=sources).map(chance).sum();
        let mut sum = 0.0;
        let below = (1..=sources).map(|degree| {
            sum += chance(degree);
            (sum / all * 4_294_967_296.0) as u64
        });
        Ok(Soliton { below: below.collect() })
    }

    /// How many sources the blocks have.
    pub fn sources(&self) -> usize {
        self.below.len()
    }

    /// The sources of the repair with `key`. The draws are the upper halves of SplitMix64's outputs, from the state
    /// key + F · 2^30. The first gives the degree. Each further one, times F and divided by 2^32, gives a source,
    /// until there are as many different sources as the degree says. If the degree is above F ÷ 2, the sources that
    /// the repair lacks are drawn instead.
    fn members(&self, key: u32) -> Members {
        let count = self.sources() as u64;
        let mut state = u64::from(key).wrapping_add(count << 30);
        let mut draw = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mix(state) >> 32
        };
        let first = draw();
        let degree = 1 + self.below.partition_point(|below| *below <= first);
        let degree = degree.min(self.sources());
        let all_but = 2 * degree > self.sources();
        let mut left = if all_but { self.sources() - degree } else { degree };
        let mut bits = [0_u64; WORDS];
        while left > 0 {
            let source = ((draw() * count) >> 32) as usize;
            let (word, bit) = (&mut bits[source / 64 % WORDS], 1 << (source % 64));
            left -= usize::from(*word & bit == 0);
            *word |= bit;
        }
        if all_but {
            for (at, word) in bits.iter_mut().enumerate() {
                let beyond = self.sources().saturating_sub(64 * at);
                let mask = if beyond >= 64 { u64::MAX } else { (1 << beyond) - 1 };
                *word = !*word & mask;
            }
        }
        Members { bits, at: 0 }
    }

    /// How many sources the repair with `key` has.
    pub fn degree(&self, key: u32) -> usize {
        self.members(key).bits.iter().map(|word| word.count_ones() as usize).sum()
    }
}

/// The sources of a repair in ascending order.
struct Members {
    bits: [u64; WORDS],
    at: usize,
}

impl Iterator for Members {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        loop {
            let word = self.bits.get_mut(self.at)?;
            if *word != 0 {
                let bit = word.trailing_zeros() as usize;
                *word &= *word - 1;
                return Some(64 * self.at + bit);
            }
            self.at += 1;
        }
    }
}

/// Adds up symbols, at most [`MAX_INPUTS`] in one call of the kernel.
#[derive(Debug)]
struct Sum<'a> {
    inputs: [&'a [u8]; MAX_INPUTS],
    count: usize,
    begun: bool,
}

impl<'a> Sum<'a> {
    fn new() -> Self {
        Sum { inputs: [&[]; MAX_INPUTS], count: 0, begun: false }
    }

    fn add(&mut self, symbol: &'a [u8], out: &mut [u8]) {
        self.inputs[self.count] = symbol;
        self.count += 1;
        if self.count == MAX_INPUTS {
            self.finish(out);
        }
    }

    fn finish(&mut self, out: &mut [u8]) {
        let inputs = &self.inputs[..self.count];
        if self.begun {
            Kernel::best().multiply_add(inputs, &mut [out], |_, _| 1);
        } else {
            Kernel::best().multiply(inputs, &mut [out], |_, _| 1);
        }
        (self.begun, self.count) = (true, 0);
    }
}

/// Computes the repairs with the keys `first_key`, `first_key + 1`, … of the block of `sources` into `repairs`.
/// `soliton` must be for the same number of sources. A source shorter than the repairs counts as extended with zeros.
///
/// # Errors
/// Nothing is written if there are no sources or not as many as `soliton` is for, or if lengths disagree.
pub fn encode(
    soliton: &Soliton,
    first_key: u32,
    sources: &[&[u8]],
    repairs: &mut [&mut [u8]],
) -> Result<(), Error> {
    if sources.is_empty() || sources.len() != soliton.sources() {
        return Err(Error::Sources(sources.len()));
    }
    let length = repairs.first().map_or(0, |repair| repair.len());
    if repairs.iter().any(|repair| repair.len() != length)
        || sources.iter().any(|source| source.len() > length)
    {
        return Err(Error::Length);
    }
    let mut key = first_key;
    for repair in repairs {
        let mut sum = Sum::new();
        for source in soliton.members(key) {
            sum.add(sources[source], repair);
        }
        sum.finish(repair);
        key = key.wrapping_add(1);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
