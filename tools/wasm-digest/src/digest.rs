//! Folding numbers into one integer.

/// A 64-bit FNV-1a hash over everything pushed so far. It tells results apart; it is not protection
/// against anyone.
#[derive(Clone, Copy, Debug)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Adds bytes; how they are divided among calls does not matter.
    pub fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// Adds an integer.
    pub fn integer(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    /// Adds every bit of a floating-point number. Which bits a NaN has is left open by wasm, so all
    /// of them count as the same.
    pub fn float(&mut self, value: f64) {
        self.integer(if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() });
    }

    /// The hash.
    pub fn finish(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        let mut digest = Digest::default();
        digest.bytes(b"foobar"); // a published test vector of the hash
        assert_eq!(digest.finish(), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn floats_count_bit_by_bit_but_for_nan() {
        let digest = |value| {
            let mut digest = Digest::default();
            digest.float(value);
            digest.finish()
        };
        assert_ne!(digest(0.0), digest(-0.0));
        assert_ne!(digest(1.0), digest(1.0 + f64::EPSILON));
        assert_eq!(digest(f64::NAN), digest(-f64::NAN));
    }
}
