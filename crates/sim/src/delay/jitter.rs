use core::time::Duration;

use anabranch_types::{Rng, Time};

use super::law::Deviation;
use super::quantile::normal;
use super::{DelayError, JitterLaw};

/// How the delay varies from packet to packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Jitter {
    /// The standard deviation; for the uniform law, the largest extra delay. At most a minute; zero means no
    /// jitter.
    pub size: Duration,
    /// How delays are distributed.
    pub law: JitterLaw,
    /// The time between two packets at which the correlation of their delays is 1/e; zero if delays
    /// are independent. At most a day.
    pub correlation: Duration,
    /// Whether a packet may overtake one sent before it, by jitter or because the delay fell. If not, a packet
    /// that would overtake arrives at the same instant as the earlier one, without a transmission time of its own.
    pub reorder: bool,
}

/// The largest jitter.
const MAX_SIZE: Duration = Duration::from_secs(60);
/// The longest correlation.
pub(crate) const MAX_CORRELATION: Duration = Duration::from_secs(86_400);
/// The largest ratio of standard deviation to mean for laws whose shape depends on it.
const MAX_VARIATION: u32 = 4;

impl Jitter {
    /// Checks the parameters for a link whose delay begins with `delay`.
    ///
    /// # Errors
    /// When a parameter is out of its range; the error names the first such parameter and its range.
    pub fn validate(&self, delay: Duration) -> Result<(), DelayError> {
        let error = |key, given, allowed| Err(DelayError::new(key, format!("{given:?}"), allowed));
        if self.size > MAX_SIZE {
            return error("jitter", self.size, "at most 60s");
        }
        if self.correlation > MAX_CORRELATION {
            return error("jitter-correlation", self.correlation, "at most 1 day");
        }
        if self.size.is_zero() {
            return Ok(());
        }
        if self.law.has_shape() && self.size > delay.saturating_mul(MAX_VARIATION) {
            let allowed = "at most four times the delay, with this jitter-law";
            return error("jitter", self.size, allowed);
        }
        Ok(())
    }

    /// The jitter process of a link whose delay begins with `delay`; its random draws are the substream of
    /// `seed` called `stream`.
    ///
    /// # Errors
    /// The errors of [`validate`](Self::validate).
    pub(super) fn process(
        &self,
        delay: Duration,
        seed: u64,
        stream: &str,
    ) -> Result<JitterProcess, DelayError> {
        self.validate(delay)?;
        let random = Rng::substream(seed, stream);
        let source = if self.size.is_zero() {
            Source::None
        } else if self.law == JitterLaw::Uniform && self.correlation.is_zero() {
            Source::Uniform(u64::try_from(self.size.as_nanos()).unwrap_or(u64::MAX - 1))
        } else {
            Source::Normal {
                deviation: Deviation::new(self.law, self.size, delay),
                correlation: self.correlation.as_secs_f64(),
                last: None,
            }
        };
        Ok(JitterProcess { random, source, law: self.law })
    }
}

/// Draws the delays of one link's packets.
///
/// Successive normal numbers follow an Ornstein–Uhlenbeck process, the continuous form of a first-order
/// autoregression: zₙ = ρ·zₙ₋₁ + √(1 − ρ²)·εₙ with ρ = e^(−Δt/τ), where Δt is the time between the two packets.
/// The law's quantiles map these numbers to delays, so correlation does not change the law.
#[derive(Clone, Debug)]
pub(super) struct JitterProcess {
    random: Rng,
    source: Source,
    law: JitterLaw,
}

#[derive(Clone, Debug)]
enum Source {
    None,
    /// The extra delay is uniform between zero and this many nanoseconds.
    Uniform(u64),
    Normal {
        deviation: Deviation,
        /// The correlation time, seconds.
        correlation: f64,
        last: Option<(Time, f64)>,
    },
}

impl JitterProcess {
    /// The delay of a packet sent at `sent` over a link whose delay is `delay`. Every call draws a
    /// new delay; `sent` must not decrease between calls.
    ///
    /// The link's first delay sets the shape of the law. When the delay changes, the same deviations are added to
    /// the new delay.
    pub(super) fn delay(&mut self, sent: Time, delay: Duration) -> Duration {
        match &mut self.source {
            Source::None => delay,
            Source::Uniform(most) => delay + Duration::from_nanos(self.random.below(*most + 1)),
            Source::Normal { deviation, correlation, last } => {
                let fresh = normal(self.random.uniform(), self.random.uniform());
                let z = match *last {
                    Some((before, z)) if *correlation > 0.0 => {
                        let kept = libm::exp(-sent.since(before).as_secs_f64() / *correlation);
                        kept * z + libm::sqrt(1.0 - kept * kept) * fresh
                    }
                    _ => fresh,
                };
                *last = Some((sent, z));
                let seconds = delay.as_secs_f64() + deviation.seconds(z);
                // The normal number is below 9 here, so even a standard deviation of a minute gives
                // a delay that fits into a `Duration`.
                Duration::from_secs_f64(seconds.max(0.0))
            }
        }
    }

    /// A lower bound on [`Self::delay`] while the link's delay is `delay`.
    pub(super) fn least(&self, delay: Duration) -> Duration {
        match (&self.source, self.law) {
            (Source::None | Source::Uniform(_), _) | (_, JitterLaw::Uniform) => delay,
            _ => Duration::ZERO,
        }
    }
}
