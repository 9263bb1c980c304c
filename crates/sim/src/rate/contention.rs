use core::time::Duration;

use anabranch_types::{Bitrate, Rng, Time, math};

use super::RateError;
use crate::wireless::bianchi::{Access, Channel, Slots};

/// Largest number of stations.
const MAX_STATIONS: u32 = 256;
/// Payload of Bianchi's Table II, bytes.
const PAYLOAD: u32 = 1023;

/// The rate of one station of a saturated 802.11 channel, by Bianchi's model with the parameters of
/// his Table II (Bianchi 2000). The service time of a packet is the time until the station's next
/// success.
///
/// The nominal rate is the station's mean rate. The model only determines how service times vary
/// around their mean. Service times are independent of each other and of the traffic on other
/// links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContendedRate {
    /// Basic access or RTS/CTS.
    pub access: Access,
    /// Number of stations on the channel, including this one: 1 to 256.
    pub stations: u32,
}

impl ContendedRate {
    /// Checks the parameters.
    ///
    /// # Errors
    /// When `access` is [`Access::Tdma`], or the number of stations is out of its range.
    pub fn validate(&self) -> Result<(), RateError> {
        let contend = self.access != Access::Tdma && (1..=MAX_STATIONS).contains(&self.stations);
        if contend { Ok(()) } else { Err(RateError::Stations) }
    }
}

/// Draws the service times of a [`ContendedRate`].
#[derive(Clone, Debug)]
pub struct ContendedCourse {
    slots: Slots,
    /// Probability that a busy slot is a success of this station.
    own: f64,
    /// Probability that a busy slot is a success of any station.
    success: f64,
    /// Mean time from one success of this station to the next, seconds.
    mean: f64,
    draws: Rng,
}

impl ContendedCourse {
    /// The course of `config`; its random draws are the substream of `seed` called `stream`.
    ///
    /// # Errors
    /// When a parameter of `config` is out of its range.
    pub fn new(config: &ContendedRate, seed: u64, stream: &str) -> Result<Self, RateError> {
        config.validate()?;
        let slots = Channel::fhss().slots(config.access, config.stations, PAYLOAD);
        let success = slots.success / (1.0 - slots.idle);
        let stations = f64::from(config.stations);
        let mean = slots.mean_seconds() * stations / slots.success;
        let draws = Rng::substream(seed, stream);
        Ok(ContendedCourse { slots, own: success / stations, success, mean, draws })
    }

    /// When the service of a packet of `size` bytes ends that begins at `start`, on a link of
    /// nominal rate `rate`.
    pub fn finish(&mut self, start: Time, size: u32, rate: Bitrate) -> Time {
        let mean = 8.0 * f64::from(size) / rate.as_bps().max(1) as f64;
        start + Duration::from_secs_f64(mean * (self.wait() / self.mean))
    }

    /// Time until this station's next success, seconds.
    fn wait(&mut self) -> f64 {
        let mut wait = 0.0;
        loop {
            wait += self.idle_slots() * self.slots.idle_seconds;
            let kind = self.draws.uniform();
            if kind >= self.success {
                wait += self.slots.collision_seconds;
                continue;
            }
            wait += self.slots.success_seconds;
            if kind < self.own {
                return wait;
            }
        }
    }

    /// Draws the number of idle slots before the next busy slot, which is geometrically
    /// distributed.
    fn idle_slots(&mut self) -> f64 {
        (math::ln(1.0 - self.draws.uniform()) / math::ln(self.slots.idle)).floor()
    }
}
