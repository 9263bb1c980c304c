//! Configuration of a link's faults: damaged, repeated, held back and injected packets.

use anabranch_types::Rng;

/// What may happen to each packet at the end of a link, with chances from 0 to 1, each independent of the
/// others. A damaged datagram arrives damaged; anything else that is damaged fails its checksum, so it is
/// dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FaultConfig {
    /// One to eight of its bits are flipped.
    pub flip: f64,
    /// It is truncated to a random length.
    pub truncate: f64,
    /// It arrives twice.
    pub duplicate: f64,
    /// One of the last 64 packets arrives again.
    pub replay: f64,
    /// A datagram of up to 1500 random bytes arrives besides, half of them behind the beginning of a real
    /// one; for half of them the sender's address is another.
    pub inject: f64,
    /// It arrives right after the next packet.
    pub hold: f64,
    /// Of the pure acknowledgements of a TCP connection that arrive at one instant, one in this many stays, and the
    /// last. 0 and 1 leave all of them.
    pub thin_acks: u32,
}

/// Bits flipped in a damaged datagram, at most.
const FLIPS: u64 = 8;
/// Longest garbage, bytes.
const LONGEST: u64 = 1500;

impl FaultConfig {
    /// Whether nothing happens to any packet.
    pub fn is_none(&self) -> bool {
        self.only_thins() && self.thin_acks <= 1
    }

    /// Whether nothing happens to any packet but that acknowledgements are left out.
    pub(crate) fn only_thins(&self) -> bool {
        *self == FaultConfig { thin_acks: self.thin_acks, ..FaultConfig::default() }
    }

    /// Damages the bytes of a datagram, or not.
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

    /// Random bytes; half of them behind the beginning of the datagram `like`, so that they get further.
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
