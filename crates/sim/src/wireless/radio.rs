use anabranch_types::math;

/// The propagation of signals by the two-ray ground reflection model, the same for every station.
///
/// Up to the crossover distance 4πh²/λ, the received power is that of free space, Pt·(λ / 4πd)².
/// Beyond, it is that of the direct ray and its reflection, Pt·h⁴/d⁴ (Rappaport, Wireless
/// Communications, §4.6). Antenna gains and the system loss are 1.
///
/// ```
/// use anabranch_sim::wireless::Radio;
///
/// let radio = Radio::default();
/// assert_eq!(radio.reception_range().round(), 250.0);
/// assert_eq!(radio.sense_range().round(), 550.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Radio {
    /// Pt, the transmitted power, watts; above zero.
    pub power: f64,
    /// Carrier frequency, hertz; above zero.
    pub frequency: f64,
    /// h, the height of every antenna above the ground, metres; above zero.
    pub height: f64,
    /// Smallest received power at which a frame can be decoded, watts.
    pub reception_threshold: f64,
    /// Smallest received power at which the channel is sensed busy, watts; at most
    /// `reception_threshold`.
    pub sense_threshold: f64,
    /// A frame that is being received survives a frame that starts later if its power is at least
    /// this many times that of the other; at least 1.
    pub capture_ratio: f64,
}

/// The speed of light, metres per second, rounded as in ns-2.
const LIGHT: f64 = 3e8;

impl Default for Radio {
    /// The radio of ns-2's wireless model: 914 MHz, decoding up to 250 m and sensing up to 550 m.
    fn default() -> Self {
        Radio {
            power: 0.281_838_15,
            frequency: 914e6,
            height: 1.5,
            reception_threshold: 3.652e-10,
            sense_threshold: 1.559e-11,
            capture_ratio: 10.0,
        }
    }
}

impl Radio {
    /// The power received at a distance in metres, watts; at most the transmitted power.
    pub fn received(&self, distance: f64) -> f64 {
        if distance > self.crossover() {
            let ratio = self.height / distance;
            self.power * ratio * ratio * self.height * self.height / (distance * distance)
        } else {
            let ratio = self.wavelength() / (4.0 * core::f64::consts::PI * distance);
            if ratio < 1.0 { self.power * ratio * ratio } else { self.power }
        }
    }

    /// Distance up to which a frame can be decoded, metres.
    pub fn reception_range(&self) -> f64 {
        self.range(self.reception_threshold)
    }

    /// Distance up to which a frame makes the channel busy, metres.
    pub fn sense_range(&self) -> f64 {
        self.range(self.sense_threshold)
    }

    /// Propagation delay over a distance in metres, nanoseconds.
    pub(super) fn delay(distance: f64) -> u64 {
        (distance / LIGHT * 1e9).round() as u64
    }

    fn wavelength(&self) -> f64 {
        LIGHT / self.frequency
    }

    fn crossover(&self) -> f64 {
        4.0 * core::f64::consts::PI * self.height * self.height / self.wavelength()
    }

    /// Distance at which the received power is `threshold`, metres.
    fn range(&self, threshold: f64) -> f64 {
        let far = self.height * math::pow(self.power / threshold, 0.25);
        if far > self.crossover() {
            return far;
        }
        let near = (self.power / threshold).sqrt() * self.wavelength();
        (near / (4.0 * core::f64::consts::PI)).min(self.crossover())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_where_the_power_is_the_threshold() {
        let radio = Radio::default();
        for range in [radio.reception_range(), radio.sense_range()] {
            let threshold = radio.received(range);
            assert!(radio.received(range * 1.001) < threshold);
            assert!(radio.received(range * 0.999) > threshold);
        }
        // At 50 m in free space, the power is 0.28183815 W · (0.32823 m / 4π·50 m)² = 7.69e-8 W.
        let near = Radio { reception_threshold: 7.691e-8, ..radio };
        assert!((near.reception_range() - 50.0).abs() < 0.01, "{}", near.reception_range());
    }

    #[test]
    fn beyond_the_crossover_power_falls_with_the_fourth_power_of_distance() {
        let radio = Radio::default();
        assert!((radio.received(100.0) / radio.received(200.0) - 16.0).abs() < 1e-9);
        assert!((radio.received(20.0) / radio.received(40.0) - 4.0).abs() < 1e-9);
        // A signal from 1.78 times the distance is weaker by the capture ratio of 10.
        let ratio = |factor: f64| radio.received(100.0) / radio.received(100.0 * factor);
        assert!(ratio(1.77) < radio.capture_ratio && ratio(1.79) > radio.capture_ratio);
        assert_eq!(radio.received(0.0), radio.power);
    }

    #[test]
    fn light_takes_three_nanoseconds_a_metre() {
        assert_eq!(Radio::delay(0.0), 0);
        assert_eq!(Radio::delay(250.0), 833);
        assert_eq!(Radio::delay(550.0), 1833);
    }
}
