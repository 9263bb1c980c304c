use core::fmt;
use core::time::Duration;

use anabranch_types::Rng;

use super::super::Position;
use super::super::air::MAX_STATIONS;
use super::{Leg, Waypoints};

/// The longest time for which movements are drawn, including the warm-up: ten days.
const LONGEST: Duration = Duration::from_secs(864_000);
/// The longest side of an area, metres, and the highest speed, metres per second.
const FARTHEST: f64 = 1e6;
/// The lowest speed, metres per second: slower stations hardly ever arrive.
const SLOWEST: f64 = 1e-3;

/// The random waypoint model: stations move to a random position at a random speed, wait there, and
/// move to the next, as in ns-2's `setdest` (Johnson and Maltz 1996, §5.1).
///
/// Positions are uniform in a rectangle from the origin on, and speeds are uniform, too. Each
/// station draws from a random stream of its own, so additional stations do not change the
/// movements of the others. Stations begin by moving to their first position.
///
/// In the long run, stations are nearer to the centre than at the beginning. They are also slower,
/// because slow movements take longer: without pauses, the mean speed at a random time falls to
/// (max − min)/ln(max/min) (Yoon, Liu and Noble 2003, eq. 6). With a [`warm_up`](Self::warm_up),
/// this phase is over when the movements begin.
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
    /// Number of stations, at least 1.
    pub stations: usize,
    /// Size from west to east, metres; above zero.
    pub width: f64,
    /// Size from south to north, metres; above zero.
    pub height: f64,
    /// The lowest speed, metres per second; at least 0.001.
    pub min_speed: f64,
    /// The highest speed, metres per second; at least `min_speed`.
    pub max_speed: f64,
    /// How long a station waits at every position.
    pub pause: Duration,
    /// How long stations have already moved when the movements begin.
    pub warm_up: Duration,
    /// Time after which no new movement begins. Every station then completes its movement and stays
    /// where it is.
    pub duration: Duration,
    /// If given, stations 0 and 1 do not move: they stand this many metres apart, one in the west
    /// and one in the east, with the centre of the area between them. At most `width`.
    pub apart: Option<f64>,
}

impl Default for RandomWaypoint {
    /// 50 stations in 3000 m × 500 m for 300 s, at 1 to 10 m/s, without pauses and without warm-up.
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
            apart: None,
        }
    }
}

/// Why no movements can be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RandomWaypointError {
    /// There is no station, or there are more than a radio channel supports.
    Stations,
    /// The area is not from 1 mm to 1000 km on each side.
    Area,
    /// A speed is not between 1 mm/s and 1000 km/s, or the lowest is above the highest.
    Speed,
    /// The sum of warm-up and duration, or the pause, is longer than ten days.
    Time,
    /// The two stations that do not move would stand outside the area.
    Apart,
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
            RandomWaypointError::Apart => f.write_str(
                "the two stations that stand are no farther apart than the area is wide",
            ),
        }
    }
}

impl core::error::Error for RandomWaypointError {}

impl RandomWaypoint {
    /// Draws movements. The same seed gives the same movements on every machine.
    ///
    /// # Errors
    /// When a field is out of its range.
    pub fn draw(&self, seed: u64) -> Result<Waypoints, RandomWaypointError> {
        self.check()?;
        let station = |number: usize| {
            let random = Rng::substream(seed, &format!("wireless.waypoints.{number}"));
            self.standing(number).map_or_else(|| self.legs(random), |at| vec![Leg::wait(at)])
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
        if self.apart.is_some_and(|metres| !(0.0..=self.width).contains(&metres)) {
            return Err(RandomWaypointError::Apart);
        }
        Ok(())
    }

    /// The position of a station that does not move.
    fn standing(&self, number: usize) -> Option<Position> {
        let apart = self.apart.filter(|_| number < 2)?;
        let side = if number == 0 { -0.5 } else { 0.5 };
        Some(Position::new(self.width / 2.0 + side * apart, self.height / 2.0))
    }

    fn place(&self, random: &mut Rng) -> Position {
        let x = random.uniform() * self.width;
        Position::new(x, random.uniform() * self.height)
    }

    /// The movements of one station: its position when the movements begin, and then every leg.
    fn legs(&self, mut random: Rng) -> Vec<Leg> {
        let end = self.duration.as_secs_f64();
        let mut from = self.place(&mut random);
        let mut legs = vec![Leg::wait(from)];
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
            // A station that has already arrived when the movements begin only waits.
            if leg.start > 0.0 || leg.lasting > 0.0 {
                legs.push(leg);
            }
        }
        legs
    }
}

impl Leg {
    /// A wait at a position from the beginning on.
    fn wait(at: Position) -> Leg {
        Leg { start: 0.0, from: at, to: at, lasting: 0.0 }
    }

    /// The part of the leg after `seconds`.
    fn since(self, seconds: f64) -> Leg {
        let lasting = (self.start + self.lasting - seconds).max(0.0);
        Leg { start: seconds, from: self.at(seconds), to: self.to, lasting }
    }
}

#[cfg(test)]
mod tests;
