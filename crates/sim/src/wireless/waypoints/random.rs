use core::fmt;
use core::time::Duration;

use anabranch_types::Rng;

use super::super::Position;
use super::super::air::MAX_STATIONS;
use super::{Leg, Waypoints};

/// The longest time that movements are drawn for, warm-up included: ten days.
const LONGEST: Duration = Duration::from_secs(864_000);
/// The longest side of an area, metres, and the highest speed, metres per second.
const FARTHEST: f64 = 1e6;
/// The lowest speed, metres per second: slower stations hardly ever arrive.
const SLOWEST: f64 = 1e-3;

/// Stations that go to a random place at a random speed, wait, and go to the next: random waypoint, as ns-2's
/// `setdest` draws it (Johnson and Maltz 1996, §5.1).
///
/// Places are uniform in a rectangle from the origin, speeds uniform too; each station draws from a stream of its own,
/// so that more stations leave the others' movements as they are. Stations start on the way to their first place.
///
/// In the long run stations are nearer to the middle than at the beginning, and slower, because slow ways take longer:
/// the mean speed at a random moment falls to (max − min)/ln(max/min), without pauses (Yoon, Liu and Noble 2003,
/// eq. 6). [`warm_up`](Self::warm_up) lets that time pass before the movements begin.
///
/// ```
/// use anabranch_sim::wireless::{Motion, RandomWaypoint};
///
/// let motion = RandomWaypoint { stations: 50, max_speed: 20.0, ..RandomWaypoint::default() }.draw(7)?;
/// assert_eq!(motion.stations(), 50);
/// let file = motion.to_string();
/// assert!(file.starts_with("$node_(0) set X_ "));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RandomWaypoint {
    /// How many stations, at least 1.
    pub stations: usize,
    /// Metres from west to east, above zero.
    pub width: f64,
    /// Metres from south to north, above zero.
    pub height: f64,
    /// The least speed, metres per second, 0.001 at least.
    pub min_speed: f64,
    /// The highest speed, metres per second, at least `min_speed`.
    pub max_speed: f64,
    /// How long a station waits at every place.
    pub pause: Duration,
    /// How long stations have already moved when the movements begin.
    pub warm_up: Duration,
    /// How long there are movements; after that every station completes its way to a place and stays there.
    pub duration: Duration,
}

impl Default for RandomWaypoint {
    /// 50 stations in 3000 m × 500 m for 300 s, 1 to 10 m/s without pauses, not warmed up.
    fn default() -> Self {
        RandomWaypoint {
            stations: 50,
            width: 3000.0,
            height: 500.0,
            min_speed: 1.0,
            max_speed: 10.0,
            pause: Duration::ZERO,
            warm_up: Duration::ZERO,
            duration: Duration::from_secs(300),
        }
    }
}

/// Why no movements can be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RandomWaypointError {
    /// There is no station, or there are more than a radio channel takes.
    Stations,
    /// The area is not from 1 mm to 1000 km on each side.
    Area,
    /// The speeds are not between 1 mm/s and 1000 km/s, the least first.
    Speed,
    /// Warm-up and duration, or the pause, are longer than ten days.
    Time,
}

impl fmt::Display for RandomWaypointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RandomWaypointError::Stations => write!(f, "1 to {MAX_STATIONS} stations can move"),
            RandomWaypointError::Area => f.write_str("each side has from 1 mm to 1000 km"),
            RandomWaypointError::Speed => f.write_str(
                "speeds are from 1 mm/s to 1000 km/s, and the highest is no less than the least",
            ),
            RandomWaypointError::Time => {
                f.write_str("stations move and wait for no more than ten days, warm-up included")
            }
        }
    }
}

impl core::error::Error for RandomWaypointError {}

impl RandomWaypoint {
    /// Draws movements. The same seed gives the same ones on every machine.
    ///
    /// # Errors
    /// When a field is out of its range.
    pub fn draw(&self, seed: u64) -> Result<Waypoints, RandomWaypointError> {
        self.check()?;
        let station = |number: usize| {
            let random = Rng::substream(seed, &format!("wireless.waypoints.{number}"));
            self.legs(random)
        };
        Ok(Waypoints { stations: (0..self.stations).map(station).collect() })
    }

    fn check(&self) -> Result<(), RandomWaypointError> {
        let is_length = |metres: f64| (1e-3..=FARTHEST).contains(&metres);
        let is_speed = |speed: f64| (SLOWEST..=FARTHEST).contains(&speed);
        if !(1..=MAX_STATIONS).contains(&self.stations) {
            return Err(RandomWaypointError::Stations);
        }
        if !is_length(self.width) || !is_length(self.height) {
            return Err(RandomWaypointError::Area);
        }
        if !is_speed(self.min_speed) || !is_speed(self.max_speed) || self.min_speed > self.max_speed
        {
            return Err(RandomWaypointError::Speed);
        }
        if self.pause > LONGEST || self.warm_up.saturating_add(self.duration) > LONGEST {
            return Err(RandomWaypointError::Time);
        }
        Ok(())
    }

    fn place(&self, random: &mut Rng) -> Position {
        let x = random.uniform() * self.width;
        Position::new(x, random.uniform() * self.height)
    }

    /// The way of one station: its place when the movements begin, then every leg.
    fn legs(&self, mut random: Rng) -> Vec<Leg> {
        let end = self.duration.as_secs_f64();
        let mut from = self.place(&mut random);
        let mut legs = vec![Leg { start: 0.0, from, to: from, lasting: 0.0 }];
        let mut start = -self.warm_up.as_secs_f64();
        while start < end {
            let to = self.place(&mut random);
            let span = self.max_speed - self.min_speed;
            let speed = self.min_speed + random.uniform() * span;
            let leg = Leg { start, from, to, lasting: from.distance(to) / speed };
            (start, from) = (start + leg.lasting + self.pause.as_secs_f64(), to);
            if start <= 0.0 {
                continue;
            }
            let leg = if leg.start < 0.0 { leg.since(0.0) } else { leg };
            if legs.len() == 1 {
                legs[0] = Leg { from: leg.from, to: leg.from, ..legs[0] };
            }
            // A station that has arrived when the movements begin only waits.
            if leg.start > 0.0 || leg.lasting > 0.0 {
                legs.push(leg);
            }
        }
        legs
    }
}

impl Leg {
    /// The part of the leg after `seconds`.
    fn since(self, seconds: f64) -> Leg {
        let lasting = (self.start + self.lasting - seconds).max(0.0);
        Leg { start: seconds, from: self.at(seconds), to: self.to, lasting }
    }
}

#[cfg(test)]
mod tests;
