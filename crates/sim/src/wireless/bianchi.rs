//! The saturated throughput of an 802.11 channel that n stations share, by Bianchi's model (Bianchi 2000).
//!
//! Every station always has a packet. A station transmits in a slot with probability τ, and its
//! packet collides with probability p. τ and p depend on each other. The throughput is the mean
//! payload per slot divided by the mean duration of a slot.
//!
//! ```
//! use anabranch_sim::wireless::bianchi::{Access, Channel, Preamble};
//!
//! let channel = Channel::dsss_11b(Preamble::Long);
//! let throughput = channel.throughput(Access::Basic, 5, 1500);
//! assert!((throughput.as_mbps() - 6.343).abs() < 0.001);
//! ```

use core::time::Duration;

use anabranch_types::{Bitrate, math};

/// A channel's timing and back-off.
#[derive(Clone, Debug, PartialEq)]
pub struct Channel {
    /// Duration of a back-off slot.
    pub slot: Duration,
    /// The SIFS, the gap before an answer.
    pub sifs: Duration,
    /// The DIFS, the gap before a contending station counts slots.
    pub difs: Duration,
    /// Propagation delay between any two stations.
    pub propagation: Duration,
    /// Duration of the preamble and physical header before every frame.
    pub preamble: Duration,
    /// Rate of data frames, above zero.
    pub data_rate: Bitrate,
    /// Rate of RTS, CTS and ACK frames, above zero.
    pub control_rate: Bitrate,
    /// Bits that the headers add to the payload.
    pub header_bits: u32,
    /// Bits of an ACK frame.
    pub ack_bits: u32,
    /// Bits of an RTS frame.
    pub rts_bits: u32,
    /// Bits of a CTS frame.
    pub cts_bits: u32,
    /// W, the contention window of the first attempt, slots; at least 1.
    pub window: u32,
    /// m, the number of times that the window doubles; at most 16.
    pub stages: u32,
    /// Number of attempts after which a packet is given up (at least 1); `None` for no limit, as in
    /// the paper.
    pub attempts: Option<u32>,
    /// The time after a collided frame in which the channel counts as busy.
    pub collision: CollisionCost,
}

/// The time after a collided frame in which the channel counts as busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollisionCost {
    /// A DIFS, as in the paper.
    Difs,
    /// An EIFS (SIFS + ACK + DIFS), for which stations that could not decode the frame wait
    /// according to the standard and in event simulators.
    Eifs,
}

/// The preamble of 802.11b.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preamble {
    /// 192 µs.
    Long,
    /// 96 µs.
    Short,
}

/// How stations gain access to the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Data and ACK.
    Basic,
    /// RTS and CTS before data and ACK, so that only RTS frames collide.
    RtsCts,
    /// Stations take turns without contention, with data and ACK and a SIFS after each.
    Tdma,
}

/// The solution of the model's two equations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contention {
    /// τ, the probability that a station transmits in a slot.
    pub transmit: f64,
    /// p, the probability that a transmission collides.
    pub collide: f64,
}

/// The slots of a saturated channel. Each slot is idle, a success (exactly one packet), or a
/// collision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slots {
    /// Probability that no station transmits.
    pub idle: f64,
    /// Probability that exactly one station transmits.
    pub success: f64,
    /// Duration of an idle slot, seconds.
    pub idle_seconds: f64,
    /// Time for which a success keeps the channel busy, seconds.
    pub success_seconds: f64,
    /// Time for which a collision keeps the channel busy, seconds.
    pub collision_seconds: f64,
}

impl Slots {
    /// Mean duration of a slot, seconds.
    pub fn mean_seconds(&self) -> f64 {
        let collision = (1.0 - self.idle - self.success).max(0.0);
        self.idle * self.idle_seconds
            + self.success * self.success_seconds
            + collision * self.collision_seconds
    }
}

/// Maximum number of stations; larger numbers are reduced to it.
const MAX_STATIONS: u32 = 100_000;

impl Channel {
    /// The frequency-hopping channel of Bianchi's Table II at 1 Mb/s, with W = 32 and m = 5. The
    /// payload in the paper is 8184 bits, or 1023 bytes.
    pub fn fhss() -> Self {
        Channel {
            slot: Duration::from_micros(50),
            sifs: Duration::from_micros(28),
            difs: Duration::from_micros(128),
            propagation: Duration::from_micros(1),
            preamble: Duration::from_micros(128),
            data_rate: Bitrate::from_bps(1_000_000),
            control_rate: Bitrate::from_bps(1_000_000),
            header_bits: 272,
            ack_bits: 112,
            rts_bits: 160,
            cts_bits: 112,
            window: 32,
            stages: 5,
            attempts: None,
            collision: CollisionCost::Difs,
        }
    }

    /// 802.11b at 11 Mb/s with control frames at 1 Mb/s, W = 32 and m = 5 (IEEE 802.11-1999, §15 and
    /// 802.11b §18).
    pub fn dsss_11b(preamble: Preamble) -> Self {
        let micros = match preamble {
            Preamble::Long => 192,
            Preamble::Short => 96,
        };
        Channel {
            slot: Duration::from_micros(20),
            sifs: Duration::from_micros(10),
            difs: Duration::from_micros(50),
            preamble: Duration::from_micros(micros),
            data_rate: Bitrate::from_bps(11_000_000),
            header_bits: 28 * 8,
            ..Channel::fhss()
        }
    }

    /// τ and p for `stations` stations (eqs 7 and 9 of the paper, or Wu et al. 2002 for a finite
    /// number of attempts). Both are 0 if there are no stations.
    pub fn contention(&self, stations: u32) -> Contention {
        if stations == 0 {
            return Contention { transmit: 0.0, collide: 0.0 };
        }
        let others = f64::from(stations.min(MAX_STATIONS) - 1);
        let implied = |p: f64| 1.0 - math::pow(1.0 - self.transmit(p), others);
        // More collisions cause fewer transmissions, so `implied(p)` falls as p rises. Bisection
        // finds the p at which both are equal.
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if implied(middle) > middle { low = middle } else { high = middle }
        }
        Contention { transmit: self.transmit(low), collide: low }
    }

    /// S, the payload rate that all stations together deliver with payloads of `payload_bytes` (eq.
    /// 13).
    pub fn throughput(&self, access: Access, stations: u32, payload_bytes: u32) -> Bitrate {
        if stations == 0 {
            return Bitrate::ZERO;
        }
        let slots = self.slots(access, stations, payload_bytes);
        let (carried, lasting) =
            (slots.success * 8.0 * f64::from(payload_bytes), slots.mean_seconds());
        Bitrate::from_bps(if lasting > 0.0 { (carried / lasting + 0.5) as u64 } else { 0 })
    }

    /// The slots of a channel on which `stations` stations (at least one) always have packets of
    /// `payload_bytes` bytes. With [`Access::Tdma`], every slot is a success.
    pub fn slots(&self, access: Access, stations: u32, payload_bytes: u32) -> Slots {
        let (success_seconds, collision_seconds) =
            self.durations(access, 8.0 * f64::from(payload_bytes));
        let (idle, success) = if access == Access::Tdma {
            (0.0, 1.0)
        } else {
            let n = f64::from(stations.clamp(1, MAX_STATIONS));
            let tau = self.contention(stations).transmit;
            (math::pow(1.0 - tau, n), n * tau * math::pow(1.0 - tau, n - 1.0))
        };
        let idle_seconds = self.slot.as_secs_f64();
        Slots { idle, success, idle_seconds, success_seconds, collision_seconds }
    }

    /// The throughput divided by the data rate, which is the paper's normalised S.
    pub fn share(&self, access: Access, stations: u32, payload_bytes: u32) -> f64 {
        let throughput = self.throughput(access, stations, payload_bytes).as_bps() as f64;
        throughput / (self.data_rate.as_bps().max(1) as f64)
    }

    /// τ for a given p: the mean number of attempts divided by the mean number of slots that they
    /// take, summed over the stages.
    fn transmit(&self, p: f64) -> f64 {
        let stages = self.stages.min(16);
        let slots = |stage: u32| {
            (f64::from(self.window.max(1)) * f64::from(1_u32 << stage.min(stages)) + 1.0) / 2.0
        };
        let (mut attempts, mut waited, mut reach) = (0.0, 0.0, 1.0);
        for stage in 0..self.attempts.map_or(stages, |attempts| attempts.clamp(1, 1000)) {
            attempts += reach;
            waited += reach * slots(stage);
            reach *= p;
        }
        if self.attempts.is_none() {
            // The last stage is repeated until success, which gives a geometric series.
            let rest = reach / (1.0 - p).max(1e-12);
            attempts += rest;
            waited += rest * slots(stages);
        }
        attempts / waited
    }

    /// The times for which a success and a collision keep the channel busy, seconds (eqs 14 and
    /// 17).
    fn durations(&self, access: Access, payload_bits: f64) -> (f64, f64) {
        let secs = |duration: Duration| duration.as_secs_f64();
        let control = |bits: u32| {
            secs(self.preamble) + f64::from(bits) / self.control_rate.as_bps().max(1) as f64
        };
        let data = secs(self.preamble)
            + (f64::from(self.header_bits) + payload_bits) / self.data_rate.as_bps().max(1) as f64;
        let (sifs, difs, air) = (secs(self.sifs), secs(self.difs), secs(self.propagation));
        let answered = data + air + sifs + control(self.ack_bits) + air;
        let after_collision = match self.collision {
            CollisionCost::Difs => difs,
            CollisionCost::Eifs => sifs + control(self.ack_bits) + difs,
        };
        let reserved = control(self.rts_bits) + air + sifs + control(self.cts_bits) + air + sifs;
        match access {
            Access::Basic => (answered + difs, data + air + after_collision),
            Access::RtsCts => {
                (reserved + answered + difs, control(self.rts_bits) + air + after_collision)
            }
            Access::Tdma => (answered + sifs, 0.0),
        }
    }
}

#[cfg(test)]
mod tests;
