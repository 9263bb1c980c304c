//! How large a path's packets may be: packetisation-layer path MTU discovery (RFC 8899, RFC 9000 §14.3).
//!
//! All sizes are UDP payloads in bytes. An acknowledged probe proves a size. A size is given up
//! when its losses are unlikely at the path's own loss rate. With a fixed number of lost probes
//! instead, the MTU of a path that loses a third of its packets would be underestimated.

use anabranch_types::Time;
use core::time::Duration;

use super::{Path, UDP_OVERHEAD, ip_udp_headers};
use crate::wire::transport_parameters::MIN_UDP_PAYLOAD;

/// Time after which larger sizes are tried again (`PMTU_RAISE_TIMER`, RFC 8899 §5.1.1).
const RAISE_AFTER: Duration = Duration::from_secs(600);
/// A size is given up if random loss alone would lose its probes with less than this probability.
const PROBES_BY_CHANCE: f64 = 0.02;
/// A size in use is given up if random loss alone would cause its losses with less than this
/// probability. The test is made with every run of losses, so its error rate must be far lower.
const HOLE_BY_CHANCE: f64 = 1e-5;
/// The path is given up if no packet of the least size arrives for this long. A shorter time would
/// be wrong, because a policer with an almost empty token bucket passes only short packets for a
/// moment.
const UNUSABLE_AFTER: Duration = Duration::from_secs(2);
/// Least loss assumed.
const LEAST_LOSS: f64 = 0.1;
/// Most loss assumed, so that the number of probes of a size stays bounded even if everything was lost for a while.
const MOST_LOSS: f64 = 0.7;
/// Number of packets, one of them lost, that are added to the counts so that the estimate of a new
/// path is stable.
const SUPPOSED: u32 = 10;
/// Most packets over which the loss is counted; older packets count less.
const MOST_COUNTED: u32 = 1000;

/// State of path MTU discovery on one path.
#[derive(Clone, Copy, Debug)]
pub struct PathMtu {
    /// Size of full packets.
    size: u16,
    /// Size that is assumed to pass without proof.
    base: u16,
    /// Largest size that is tried. `None` means that all packets have the base size.
    ceiling: Option<u16>,
    /// Least size known or believed to fail; above the ceiling if there is no such size.
    fails: u16,
    /// The search is over until this time.
    rests_until: Option<Time>,
    probe: Option<Probe>,
    /// Probability that random loss alone lost the probes of the size that is being tried.
    chance: f64,
    hole: Option<Hole>,
    fates: Fates,
    /// Send time of the newest packet that has arrived.
    passed: Time,
}

/// Packets whose fate is known, and how many of them were lost. Both are halved from time to time.
#[derive(Clone, Copy, Debug, Default)]
struct Fates {
    known: u32,
    lost: u32,
}

impl Fates {
    fn count(&mut self, lost: bool) {
        self.known += 1;
        self.lost += u32::from(lost);
        if self.known > MOST_COUNTED {
            (self.known, self.lost) = (self.known / 2, self.lost / 2);
        }
    }

    /// Loss estimate within `LEAST_LOSS..=MOST_LOSS`.
    fn loss(&self) -> f64 {
        let loss = f64::from(self.lost + 1) / f64::from(self.known + SUPPOSED);
        loss.clamp(LEAST_LOSS, MOST_LOSS)
    }
}

/// A probe in flight.
#[derive(Clone, Copy, Debug)]
struct Probe {
    size: u16,
    /// Time at which the probe counts as lost if it was not acknowledged.
    deadline: Time,
}

/// A run of lost large packets. No packet as long, sent after the first of them, has arrived.
#[derive(Clone, Copy, Debug)]
struct Hole {
    /// Sizes of the shortest and the longest of them. Repairs are a little longer than the symbols
    /// that they cover, so a path may carry symbols but not repairs.
    shortest: u16,
    longest: u16,
    /// When the first of them was sent, and when it was declared lost.
    first: Time,
    declared: Time,
    /// When the last of them was sent.
    last: Time,
    /// Send time of the first packet that was sent after `last` and has arrived.
    next: Option<Time>,
    /// The path's loss before the first loss, and the counts of that estimate. Later counts include
    /// these losses.
    loss: f64,
    before: Fates,
    /// Probability that random loss alone causes all these losses, or those of the longest size.
    chance: f64,
    chance_longest: f64,
}

impl Hole {
    /// Processes the loss of a packet of `size` bytes sent at `sent`. The newest packet that has
    /// arrived was sent at `passed`. Losses may come in runs, each of which counts as one loss. A
    /// packet that passes between two losses shows that they belong to different runs.
    fn on_lost(&mut self, size: u16, sent: Time, passed: Time) {
        let is_apart = self.next.is_some_and(|next| next <= sent);
        let chance = if is_apart { self.loss } else { 1.0 };
        self.last = self.last.max(sent);
        self.next = self.next.filter(|next| *next > self.last);
        self.next = self.next.or((passed > self.last).then_some(passed));
        self.shortest = self.shortest.min(size);
        self.chance *= chance;
        if size > self.longest {
            (self.longest, self.chance_longest) = (size, self.loss);
        } else if size == self.longest {
            self.chance_longest *= chance;
        }
    }

    /// Processes the arrival of a packet of `size` bytes sent at `sent`. Returns false if the path
    /// carries all sizes that were lost.
    fn on_acked(&mut self, size: u16, sent: Time) -> bool {
        if sent > self.last {
            self.next = Some(self.next.map_or(sent, |next| next.min(sent)));
        }
        if size >= self.shortest {
            (self.shortest, self.chance) = (self.longest, self.chance_longest);
        }
        size < self.longest
    }
}

/// Consequence of a loss for the path's MTU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Narrowing {
    /// Full packets are shorter from now on.
    Shrunk,
    /// Not even packets of the least size pass.
    Unusable,
}

impl PathMtu {
    /// Starts with packets of `base` bytes. Larger packets of at most `ceiling` bytes are used once
    /// they are known to pass. Without a ceiling, or with one below the base, the size is fixed.
    pub fn new(base: u16, ceiling: Option<u16>) -> Self {
        let ceiling = ceiling.filter(|ceiling| *ceiling >= base);
        PathMtu {
            size: base,
            base,
            ceiling,
            fails: ceiling.unwrap_or(base).saturating_add(1),
            rests_until: None,
            probe: None,
            chance: 1.0,
            hole: None,
            fates: Fates::default(),
            passed: Time::ZERO,
        }
    }

    /// Bytes of UDP payload in a full packet.
    pub const fn size(&self) -> u16 {
        self.size
    }

    /// Whether the size adapts to the path.
    pub const fn adapts(&self) -> bool {
        self.ceiling.is_some()
    }

    /// Discards the learnt sizes because the route has changed.
    pub fn restart(&mut self) {
        *self = PathMtu::new(self.base, self.ceiling);
    }

    /// The size of the probe to be sent now, if one is due.
    pub fn probe_due(&self, now: Time) -> Option<u16> {
        let ceiling = self.ceiling?;
        let next = match self.rests_until {
            Some(until) if until > now => None,
            // A size that failed before may pass now.
            Some(_) => Some(ceiling),
            // The ceiling usually passes. If not, bisect.
            None if self.fails > ceiling => Some(ceiling),
            None => Some(self.size + (self.fails - self.size) / 2),
        };
        next.filter(|size| *size > self.size && self.probe.is_none())
    }

    /// Notes that a probe of `size` bytes is sent. It counts as lost at `deadline` if it is not
    /// acknowledged.
    pub fn on_probe_sent(&mut self, size: u16, deadline: Time) {
        if self.rests_until.take().is_some() {
            self.fails = self.ceiling.unwrap_or(self.base).saturating_add(1);
        }
        self.probe = Some(Probe { size, deadline });
    }

    /// When the probe in flight counts as lost.
    pub fn deadline(&self) -> Option<Time> {
        self.probe.map(|probe| probe.deadline)
    }

    /// Processes a probe that arrived, perhaps after it was given up. Returns true if full packets
    /// are larger from now on.
    pub fn on_probe_acked(&mut self, now: Time, size: u16) -> bool {
        if self.probe.is_some_and(|probe| probe.size == size) {
            self.probe = None;
        }
        let grows = self.ceiling.is_some_and(|ceiling| size <= ceiling) && size > self.size;
        if grows {
            self.size = size;
            self.chance = 1.0;
            self.hole = None;
            if self.fails <= size {
                self.fails = self.ceiling.unwrap_or(size).saturating_add(1);
            }
        }
        self.rest_if_done(now);
        grows
    }

    /// Processes a probe of this size that was lost or counts as lost. The path loses the fraction
    /// `loss` of its packets.
    pub fn on_probe_lost(&mut self, now: Time, size: u16, loss: f64) {
        if self.probe.is_none_or(|probe| probe.size != size) {
            return;
        }
        self.probe = None;
        self.chance *= self.fates.loss().max(loss.min(MOST_LOSS));
        if self.chance < PROBES_BY_CHANCE && size > self.size {
            self.fails = self.fails.min(size);
            self.chance = 1.0;
        }
        self.rest_if_done(now);
    }

    /// Counts the probe in flight as lost if its deadline has passed.
    pub fn on_timer(&mut self, now: Time, loss: f64) {
        if let Some(probe) = self.probe.filter(|probe| probe.deadline <= now) {
            self.on_probe_lost(now, probe.size, loss);
        }
    }

    fn rest_if_done(&mut self, now: Time) {
        if self.fails.saturating_sub(self.size) <= 1 && self.probe.is_none() {
            self.rests_until = Some(now + RAISE_AFTER);
            self.chance = 1.0;
        }
    }

    /// Processes the arrival of a packet of `size` bytes sent at `sent`.
    pub fn on_acked(&mut self, size: u16, sent: Time) {
        self.fates.count(false);
        self.passed = self.passed.max(sent);
        if let Some(hole) = &mut self.hole
            && sent > hole.first
            && !hole.on_acked(size, sent)
        {
            self.hole = None;
        }
    }

    /// Processes the loss of a packet of `size` bytes sent at `sent`.
    ///
    /// The path MTU is assumed to have shrunk if random loss is very unlikely to cause the losses
    /// of large packets, while shorter packets sent between them arrived. A large packet sent after
    /// the first loss was declared must be lost as well; otherwise a short blackout would count.
    pub fn on_lost(&mut self, now: Time, size: u16, sent: Time) -> Option<Narrowing> {
        let before = self.fates;
        self.fates.count(true);
        // Longer packets were sent before the size was reduced.
        if !self.adapts() || size <= self.below() || size > self.size {
            return None;
        }
        let loss = before.loss();
        let least = self.least();
        let hole = self.hole.get_or_insert(Hole {
            shortest: size,
            longest: size,
            first: sent,
            declared: now,
            last: sent,
            next: None,
            loss,
            before,
            chance: loss,
            chance_longest: loss,
        });
        hole.on_lost(size, sent, self.passed);
        if hole.chance > HOLE_BY_CHANCE || sent < hole.declared {
            return None;
        }
        if self.size <= least && now.since(hole.declared) < UNUSABLE_AFTER {
            return None;
        }
        Some(self.shrink())
    }

    /// The size to fall back to when full packets no longer pass.
    fn below(&self) -> u16 {
        match self.size {
            size if size > self.base => self.base,
            size if size > self.least() => self.least(),
            _ => self.least() / 2,
        }
    }

    /// The least packet size that every path must carry.
    fn least(&self) -> u16 {
        self.base.min(MIN_UDP_PAYLOAD)
    }

    fn shrink(&mut self) -> Narrowing {
        if self.size <= self.least() {
            return Narrowing::Unusable;
        }
        let (size, fates) = (self.below(), self.hole.map_or(self.fates, |hole| hole.before));
        self.restart();
        (self.size, self.fates) = (size, fates);
        Narrowing::Shrunk
    }
}

impl Path {
    /// Applies the current size of full packets.
    pub fn take_packet_size(&mut self) {
        self.packet_size = u64::from(self.mtu.size()) + UDP_OVERHEAD;
        self.congestion.set_packet_size(self.packet_size);
    }

    /// The longest IP packet that the path is assumed to carry, bytes.
    pub fn ip_mtu(&self) -> u32 {
        self.ip_bytes(self.mtu.size())
    }

    /// The longest IP packet that both sides' settings allow, bytes. Discovery tries no longer
    /// packets.
    pub fn ip_mtu_limit(&self) -> u32 {
        self.ip_bytes(self.mtu.ceiling.unwrap_or(self.mtu.base))
    }

    fn ip_bytes(&self, payload: u16) -> u32 {
        u32::from(payload) + u32::from(ip_udp_headers(&self.address))
    }
}

#[cfg(test)]
mod tests;
