//! The saturated throughput of an 802.11 channel that n stations share, by Bianchi's model (Bianchi 2000).
//!
//! Every station always has a packet. A station transmits in a slot with probability τ, and its packet
//! collides with probability p, each a function of the other; the throughput is the mean payload per slot
//! over the mean duration of a slot.
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
    /// A back-off slot.
    pub slot: Duration,
    /// Gap before an answer.
    pub sifs: Duration,
    /// Gap before a contender counts slots.
    pub difs: Duration,
    /// Propagation delay between any two stations.
    pub propagation: Duration,
    /// Preamble and physical header, before every frame.
    pub preamble: Duration,
    /// Rate of data frames, above zero.
    pub data_rate: Bitrate,
    /// Rate of RTS, CTS and ACK frames, above zero.
    pub control_rate: Bitrate,
    /// Bits that the medium-access layer adds to the payload.
    pub header_bits: u32,
    /// Bits of an ACK frame.
    pub ack_bits: u32,
    /// Bits of an RTS frame.
    pub rts_bits: u32,
    /// Bits of a CTS frame.
    pub cts_bits: u32,
    /// W: the contention window of the first attempt, slots; at least 1.
    pub window: u32,
    /// m: how many times the window doubles; at most 16.
    pub stages: u32,
    /// Attempts after which a packet is given up (at least 1); `None` for never, as in the paper.
    pub attempts: Option<u32>,
    /// How long a collision keeps the channel busy beyond the frame.
    pub collision: CollisionCost,
}

/// How long a collision keeps the channel busy beyond the frame itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollisionCost {
    /// A DIFS, as in the paper.
    Difs,
    /// An EIFS, SIFS + ACK + DIFS, during which stations that could not decode the frame wait: what the standard says
    /// and event simulators do.
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
    /// Data, then ACK.
    Basic,
    /// RTS and CTS before the data: only RTS frames collide.
    RtsCts,
    /// In turn, without contention: data and ACK, a SIFS after each.
    Tdma,
}

/// The fixed point of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contention {
    /// τ: the chance that a station transmits in a slot.
    pub transmit: f64,
    /// p: the probability that a transmission of this station collides.
    pub collide: f64,
}

/// Larger numbers of stations are clamped to this.
const MAX_STATIONS: u32 = 100_000;

impl Channel {
    /// The frequency-hopping channel of Bianchi's Table II at 1 Mb/s, with W = 32 and m = 5. His payload has
    /// 8184 bits, 1023 bytes.
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

    /// τ and p of `stations` stations (eqs 7 and 9 of the paper; with a finite number of attempts after Wu et al.
    /// 2002); both 0 without stations.
    pub fn contention(&self, stations: u32) -> Contention {
        if stations == 0 {
            return Contention { transmit: 0.0, collide: 0.0 };
        }
        let others = f64::from(stations.min(MAX_STATIONS) - 1);
        let implied = |p: f64| 1.0 - math::pow(1.0 - self.transmit(p), others);
        // More collisions mean fewer transmissions, so the implied p falls as p rises; bisection finds their
        // intersection.
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if implied(middle) > middle { low = middle } else { high = middle }
        }
        Contention { transmit: self.transmit(low), collide: low }
    }

    /// S: the payload that all stations together deliver, for payloads of `payload_bytes` (eq. 13).
    pub fn throughput(&self, access: Access, stations: u32, payload_bytes: u32) -> Bitrate {
        if stations == 0 {
            return Bitrate::ZERO;
        }
        let payload = 8.0 * f64::from(payload_bytes);
        let (success, collision) = self.durations(access, payload);
        let slot = self.slot.as_secs_f64();
        let (carried, lasting) = if access == Access::Tdma {
            (payload, success)
        } else {
            let n = f64::from(stations.min(MAX_STATIONS));
            let tau = self.contention(stations).transmit;
            let idle = math::pow(1.0 - tau, n);
            let one = n * tau * math::pow(1.0 - tau, n - 1.0);
            let several = (1.0 - idle - one).max(0.0);
            (one * payload, idle * slot + one * success + several * collision)
        };
        Bitrate::from_bps(if lasting > 0.0 { (carried / lasting + 0.5) as u64 } else { 0 })
    }

    /// The throughput as a share of the data rate, the paper's normalised S.
    pub fn share(&self, access: Access, stations: u32, payload_bytes: u32) -> f64 {
        let throughput = self.throughput(access, stations, payload_bytes).as_bps() as f64;
        throughput / (self.data_rate.as_bps().max(1) as f64)
    }

    /// τ for a given p: attempts over the slots they take, stage by stage.
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
            // The last stage repeats until success: a geometric series.
            let rest = reach / (1.0 - p).max(1e-12);
            attempts += rest;
            waited += rest * slots(stages);
        }
        attempts / waited
    }

    /// How long a success and a collision keep the channel busy, seconds (eqs 14 and 17).
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
