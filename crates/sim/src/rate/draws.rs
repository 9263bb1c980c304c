//! Uniform random numbers by index, which do not depend on the order in which they are drawn.

use anabranch_types::Rng;

/// A family of independent uniform random numbers with two indices.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    key: u64,
}

impl Draws {
    /// The family called `name` under `seed`.
    pub(crate) fn new(seed: u64, name: &str) -> Self {
        Draws { key: Rng::substream(seed, name).next_u64() }
    }

    /// The number with the indices `row` and `column`, in `[0, 1)` with 53 random bits.
    pub(crate) fn uniform(&self, row: u64, column: u32) -> f64 {
        let bits = mix(mix(self.key ^ row).wrapping_add(u64::from(column)));
        (bits >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }
}

/// The next output of SplitMix64 (Steele, Lea and Flood 2014) from `state`.
fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
