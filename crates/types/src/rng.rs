use rand_core::{Rng as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::math;

/// A deterministic stream of random numbers. Each component has its own named stream, such as
/// `Rng::substream(seed, "link.lte.loss")`, so that adding a component does not change the numbers
/// that others draw.
#[derive(Clone, Debug)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// The stream of `seed` with the empty name.
    pub fn new(seed: u64) -> Self {
        Rng(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// The stream called `name` under `seed`.
    pub fn substream(seed: u64, name: &str) -> Self {
        // FNV-1a over the seed and the name; seed_from_u64 then spreads the hash by SplitMix64.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in seed.to_le_bytes().iter().chain(name.as_bytes()) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Rng::new(hash)
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// The next 32 random bits.
    pub fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// Uniform in `[0, 1)`, with 53 random bits.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Uniform in `0..bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // Lemire's multiply-shift; the bias is below bound / 2^64.
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// True with probability `p` (values outside `[0, 1]` act as the nearer end).
    pub fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// Exponentially distributed with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * math::ln(1.0 - self.uniform())
    }

    /// Fills `out` with random bytes.
    pub fn fill(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(8) {
            let bytes = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_separate_streams_and_seeds_repeat_them() {
        let draw = |seed, name| Rng::substream(seed, name).next_u64();
        assert_eq!(draw(1, "a"), draw(1, "a"));
        assert_ne!(draw(1, "a"), draw(1, "b"));
        assert_ne!(draw(1, "a"), draw(2, "a"));
    }

    #[test]
    fn draws_have_their_moments() {
        let mut rng = Rng::new(7);
        let n = 100_000;
        let mean = (0..n).map(|_| rng.exponential(0.25)).sum::<f64>() / f64::from(n);
        assert!((mean - 0.25).abs() < 0.005, "{mean}");
        let hits = (0..n).filter(|_| rng.chance(0.3)).count();
        assert!((hits as f64 / f64::from(n) - 0.3).abs() < 0.01);
        assert!((0..1000).all(|_| rng.below(7) < 7));
    }
}
