//! A network that damages, repeats, holds back and invents datagrams.

use std::collections::VecDeque;
use std::net::SocketAddr;

use anabranch_core::path::received::Ecn;
use anabranch_types::Rng;

use super::network::Side;
use super::spec::Mangle;

/// Datagrams remembered for replays.
const MEMORY: usize = 64;
/// Longest garbage, bytes.
const LONGEST: u64 = 1500;
/// Bits flipped in a damaged datagram, at most.
const FLIPS: u64 = 8;

/// A datagram at the end of its link.
#[derive(Clone, Debug)]
pub(super) struct Arrived {
    pub(super) link: usize,
    pub(super) to: Side,
    pub(super) from: SocketAddr,
    pub(super) ecn: Ecn,
    pub(super) bytes: Vec<u8>,
}

/// Decides what comes out of a link in the place of each datagram.
#[derive(Debug)]
pub(super) struct Mangler {
    mangle: Mangle,
    rng: Rng,
    old: VecDeque<Arrived>,
    held: Option<Arrived>,
}

impl Mangler {
    pub(super) fn new(mangle: Mangle, seed: u64) -> Self {
        let rng = Rng::substream(seed, "harness.mangle");
        Mangler { mangle, rng, old: VecDeque::new(), held: None }
    }

    /// Puts what `arrived` becomes into `out`: nothing, itself, or several datagrams.
    pub(super) fn pass(&mut self, arrived: Arrived, out: &mut Vec<Arrived>) {
        let chances = self.mangle;
        if self.rng.chance(chances.inject) {
            let garbage = self.garbage(&arrived);
            out.push(garbage);
        }
        if self.rng.chance(chances.replay) && !self.old.is_empty() {
            let index = self.rng.below(self.old.len() as u64) as usize;
            out.push(self.old[index].clone());
        }
        self.old.push_back(arrived.clone());
        if self.old.len() > MEMORY {
            self.old.pop_front();
        }
        if self.rng.chance(chances.duplicate) {
            out.push(arrived.clone());
        }
        // One held back comes right after the next datagram, whichever way that one goes.
        let released = self.held.take();
        if released.is_none() && self.rng.chance(chances.hold) {
            self.held = Some(arrived);
        } else {
            let damaged = self.damage(arrived);
            out.push(damaged);
        }
        out.extend(released);
    }

    fn damage(&mut self, mut arrived: Arrived) -> Arrived {
        let bytes = &mut arrived.bytes;
        if self.rng.chance(self.mangle.truncate) {
            let len = self.rng.below(bytes.len() as u64 + 1) as usize;
            bytes.truncate(len);
        }
        if self.rng.chance(self.mangle.flip) && !bytes.is_empty() {
            for _ in 0..=self.rng.below(FLIPS) {
                let at = self.rng.below(bytes.len() as u64 * 8) as usize;
                bytes[at / 8] ^= 1 << (at % 8);
            }
        }
        arrived
    }

    /// Random bytes; half of them behind the beginning of a real datagram, so that they get further.
    fn garbage(&mut self, like: &Arrived) -> Arrived {
        let mut bytes = vec![0; self.rng.below(LONGEST) as usize];
        self.rng.fill(&mut bytes);
        if self.rng.chance(0.5) {
            let len = self.rng.below(like.bytes.len().min(bytes.len()) as u64 + 1) as usize;
            bytes[..len].copy_from_slice(&like.bytes[..len]);
        }
        let to = if self.rng.chance(0.5) { Side::Client } else { Side::Server };
        let mut from = like.from;
        if self.rng.chance(0.5) {
            from.set_port(self.rng.below(1 << 16) as u16);
        }
        Arrived { to, from, bytes, ..*like }
    }
}
