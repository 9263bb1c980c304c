//! Link faults: packets that are damaged, repeated, held back or injected.

use std::collections::VecDeque;

use anabranch_types::Rng;

use super::packet::{Packet, Payload, Slab};
use super::thinning::Thinning;
use crate::link::{Delivery, DropCause, Dropped, FaultConfig, LinkOutput};

/// Maximum number of packets that are kept for replays.
const MEMORY: usize = 64;
/// Garbage changes only the low 16 bits of a stream number, in which core endpoints keep the
/// version of the sender's UDP port. This is the exclusive upper bound of the number that is XORed
/// in.
const STRAY: u64 = 1 << 16;

/// Applies a link's faults to the packets that the link delivers.
#[derive(Debug)]
pub(super) struct Faults {
    config: FaultConfig,
    random: Rng,
    /// The most recent packets, kept for replays.
    old: VecDeque<(Packet, Payload)>,
    held: Option<Delivery<u32>>,
    thinning: Option<Thinning>,
}

impl Faults {
    /// The faults of the link called `name`; `None` if `config` has none.
    pub(super) fn new(config: FaultConfig, seed: u64, name: &str) -> Option<Box<Self>> {
        if config.is_none() {
            return None;
        }
        let random = Rng::substream(seed, &format!("link.{name}.faults"));
        let thinning = Thinning::new(config.thin_acks);
        Some(Box::new(Faults { config, random, old: VecDeque::new(), held: None, thinning }))
    }

    /// Applies the faults to the packets delivered in `outputs`.
    pub(super) fn pass(&mut self, outputs: &mut Vec<LinkOutput<u32>>, packets: &mut Slab) {
        if let Some(thinning) = &mut self.thinning {
            thinning.pass(outputs, packets);
        }
        if self.config.only_thins() {
            return;
        }
        for output in core::mem::take(outputs) {
            match output {
                LinkOutput::Delivered(delivery) => self.deliver(delivery, outputs, packets),
                dropped => outputs.push(dropped),
            }
        }
    }

    fn deliver(
        &mut self,
        delivery: Delivery<u32>,
        outputs: &mut Vec<LinkOutput<u32>>,
        packets: &mut Slab,
    ) {
        let copy = |packet: &mut Packet, payload: &mut Payload| (*packet, payload.clone());
        let original = packets.with_payload(delivery.token, copy);
        let mut again = |(packet, payload): (Packet, Payload)| {
            let (size, ecn) = (packet.size, packet.ecn);
            let token = packets.insert(packet, payload);
            LinkOutput::Delivered(Delivery { time: delivery.time, token, size, ecn })
        };
        if self.random.chance(self.config.inject)
            && let Some(garbage) = self.garbage(&original)
        {
            outputs.push(again(garbage));
        }
        if self.random.chance(self.config.replay) && !self.old.is_empty() {
            let index = self.random.below(self.old.len() as u64) as usize;
            outputs.extend(self.old.get(index).cloned().map(&mut again));
        }
        if self.random.chance(self.config.duplicate) {
            outputs.push(again(original.clone()));
        }
        if self.config.replay > 0.0 {
            self.old.push_back(original);
            if self.old.len() > MEMORY {
                self.old.pop_front();
            }
        }
        // A packet that is held back is delivered right after the next one.
        let released = self.held.take();
        if released.is_none() && self.random.chance(self.config.hold) {
            self.held = Some(delivery);
        } else {
            outputs.push(self.damage(delivery, packets));
        }
        outputs.extend(released.map(LinkOutput::Delivered));
    }

    fn damage(&mut self, delivery: Delivery<u32>, packets: &mut Slab) -> LinkOutput<u32> {
        let Delivery { time, token, .. } = delivery;
        packets.with_payload(token, |packet, payload| {
            if let Payload::Datagram(bytes) = payload {
                let before = bytes.len() as u32;
                self.config.damage(&mut self.random, bytes);
                packet.size -= (before - bytes.len() as u32).min(packet.size - 1);
                return LinkOutput::Delivered(Delivery { size: packet.size, ..delivery });
            }
            let damaged =
                self.random.chance(self.config.truncate) | self.random.chance(self.config.flip);
            if damaged {
                return LinkOutput::Dropped(Dropped { time, token, cause: DropCause::Damaged });
            }
            LinkOutput::Delivered(delivery)
        })
    }

    /// A datagram of garbage on the route of `like`; `None` if `like` is not a datagram, since the
    /// checksum of other packets would reveal garbage.
    fn garbage(&mut self, (like, payload): &(Packet, Payload)) -> Option<(Packet, Payload)> {
        let Payload::Datagram(bytes) = payload else { return None };
        let garbage = FaultConfig::garbage(&mut self.random, bytes);
        let header = like.size.saturating_sub(bytes.len() as u32);
        let mut packet = Packet { size: (header + garbage.len() as u32).max(1), ..*like };
        if self.random.chance(0.5) {
            packet.stream ^= self.random.below(STRAY) as u32;
        }
        Some((packet, Payload::Datagram(garbage)))
    }
}
