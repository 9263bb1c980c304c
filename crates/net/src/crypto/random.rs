//! Random bytes from the operating system.

use anabranch_core::crypto::Randomness;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

/// The system's generator.
///
/// Systems promise that it cannot fail once it has given anything. If it fails all the same, bytes are derived from
/// what it gave when the endpoint was made, since they must not be predictable.
pub(super) struct SystemRandomness {
    system: SystemRandom,
    fallback: hmac::Key,
    derived: u64,
}

impl SystemRandomness {
    /// A source whose fallback is `number` under `key`, so that no two are alike.
    pub(super) fn new(key: &hmac::Key, number: u64) -> Self {
        let own = hmac::sign(key, &number.to_be_bytes());
        let fallback = hmac::Key::new(hmac::HMAC_SHA256, own.as_ref());
        SystemRandomness { system: SystemRandom::new(), fallback, derived: 0 }
    }

    fn derive(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(16) {
            self.derived += 1;
            let block = hmac::sign(&self.fallback, &self.derived.to_be_bytes());
            chunk.copy_from_slice(&block.as_ref()[..chunk.len()]);
        }
    }
}

impl Randomness for SystemRandomness {
    fn fill(&mut self, out: &mut [u8]) {
        if self.system.fill(out).is_err() {
            self.derive(out);
        }
    }
}

impl core::fmt::Debug for SystemRandomness {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SystemRandomness").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_source_repeats_itself_or_another() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"given at the start");
        let mut sources = [1, 2].map(|number| SystemRandomness::new(&key, number));
        let mut seen = std::collections::BTreeSet::new();
        for source in &mut sources {
            for _ in 0..100 {
                let (mut drawn, mut derived) = ([0; 40], [0; 40]);
                source.fill(&mut drawn);
                source.derive(&mut derived);
                assert!(seen.insert(drawn) && seen.insert(derived));
            }
        }
    }
}
