//! Configuration of a link's faults: damaged, repeated, held back and injected packets.

use anabranch_types::Rng;

/// Faults at the end of a link. Except for `thin_acks`, each has a probability per packet, from 0 to 1, independent
/// of the others. A damaged datagram arrives damaged; any other damaged packet fails its checksum and is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FaultConfig {
    /// One to eight bits of the packet are flipped.
    pub flip: f64,
    /// The packet is truncated to a random length.
    pub truncate: f64,
    /// The packet arrives twice.
    pub duplicate: f64,
    /// One of the last 64 packets arrives again.
    pub replay: f64,
    /// Along with a datagram, one of fewer than 1500 random bytes arrives. Half of these start with the beginning of
    /// the real datagram, and half name another UDP port of the sending end.
    pub inject: f64,
    /// The packet arrives right after the next one, undamaged.
    pub hold: f64,
    /// Of the pure acknowledgements of a TCP connection that arrive at one instant, the last stays, and one in this
    /// many of the others. 0 and 1 keep all of them.
    pub thin_acks: u32,
}

/// Bits flipped in a damaged datagram, at most.
const FLIPS: u64 = 8;
/// Garbage is shorter than this, bytes.
const LONGEST: u64 = 1500;

impl FaultConfig {
    /// Whether nothing happens to any packet.
    pub fn is_none(&self) -> bool {
        self.only_thins() && self.thin_acks <= 1
    }

    /// Whether no fault is configured except perhaps the thinning of acknowledgements.
    pub(crate) fn only_thins(&self) -> bool {
        *self == FaultConfig { thin_acks: self.thin_acks, ..FaultConfig::default() }
    }

    /// Truncates a datagram and flips some of its bits, each with its probability.
    pub(crate) fn damage(&self, random: &mut Rng, bytes: &mut Vec<u8>) {
        if random.chance(self.truncate) {
            let len = random.below(bytes.len() as u64 + 1) as usize;
            bytes.truncate(len);
        }
        if random.chance(self.flip) && !bytes.is_empty() {
            for _ in 0..=random.below(FLIPS) {
                let at = random.below(bytes.len() as u64 * 8) as usize;
                if let Some(byte) = bytes.get_mut(at / 8) {
                    *byte ^= 1 << (at % 8);
                }
            }
        }
    }

    /// Random bytes; half of the time they start like the datagram `like`, so that they pass more checks.
    pub(crate) fn garbage(random: &mut Rng, like: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; random.below(LONGEST) as usize];
        random.fill(&mut bytes);
        if random.chance(0.5) {
            let len = random.below(like.len().min(bytes.len()) as u64 + 1) as usize;
            if let (Some(to), Some(from)) = (bytes.get_mut(..len), like.get(..len)) {
                to.copy_from_slice(from);
            }
        }
        bytes
    }
}
