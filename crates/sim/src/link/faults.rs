//! Configuration of a link's faults: damaged, duplicated, held back and injected packets.

use anabranch_types::Rng;

/// Faults at the end of a link. Each field except `thin_acks` is the probability of a fault per
/// packet, from 0 to 1; the faults are independent of each other. A damaged datagram arrives
/// damaged. Any other damaged packet fails its checksum and is dropped.
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
    /// In addition to a datagram, another one of fewer than 1500 random bytes arrives. Half of the
    /// injected datagrams start with the same bytes as the real datagram, and half have another UDP
    /// port of the sender.
    pub inject: f64,
    /// The packet arrives undamaged, right after the next packet.
    pub hold: f64,
    /// Of the pure acknowledgements of a TCP connection that arrive at one instant, the link keeps
    /// the last and one in `thin_acks` of the others. 0 and 1 keep all of them.
    pub thin_acks: u32,
}

/// Maximum number of bits flipped in a damaged datagram.
const FLIPS: u64 = 8;
/// Exclusive upper bound of the length of an injected datagram, bytes.
const LONGEST: u64 = 1500;

impl FaultConfig {
    /// Whether no fault is configured.
    pub fn is_none(&self) -> bool {
        self.only_thins() && self.thin_acks <= 1
    }

    /// Whether no fault is configured except perhaps the thinning of acknowledgements.
    pub(crate) fn only_thins(&self) -> bool {
        *self == FaultConfig { thin_acks: self.thin_acks, ..FaultConfig::default() }
    }

    /// Truncates a datagram with probability `truncate`, and flips some of its bits with
    /// probability `flip`.
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

    /// Random bytes. With probability 1/2 they start like the datagram `like`, so that they pass
    /// more checks.
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
