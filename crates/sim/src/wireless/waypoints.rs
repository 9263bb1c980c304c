use core::fmt;

use anabranch_types::Time;

use super::{Motion, Position};

mod random;

pub use random::{RandomWaypoint, RandomWaypointError};

/// Stations that move in straight lines from one position to the next.
///
/// They are read from movement files of ns-2, as its program `setdest` writes them:
///
/// ```
/// use anabranch_sim::wireless::{Motion, Position, Waypoints};
/// use anabranch_types::Time;
///
/// let text = "
///     $node_(0) set X_ 0.0
///     $node_(0) set Y_ 10.0
///     $ns_ at 1.0 \"$node_(0) setdest 100.0 10.0 20.0\"
/// ";
/// let motion: Waypoints = text.parse()?;
/// assert_eq!(motion.position(0, Time::from_secs(3)), Position::new(40.0, 10.0));
/// assert_eq!(motion.position(0, Time::from_secs(60)), Position::new(100.0, 10.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waypoints {
    stations: Vec<Vec<Leg>>,
}

/// A straight movement to the next position, and then a wait there.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Leg {
    /// Start of the movement, seconds.
    start: f64,
    from: Position,
    to: Position,
    /// Duration of the movement, seconds; afterwards the station waits.
    lasting: f64,
}

impl Leg {
    fn at(&self, seconds: f64) -> Position {
        let passed = seconds - self.start;
        if passed >= self.lasting {
            return self.to;
        }
        let share = passed / self.lasting;
        let between = |from: f64, to: f64| from + share * (to - from);
        Position::new(between(self.from.x, self.to.x), between(self.from.y, self.to.y))
    }
}

impl Motion for Waypoints {
    fn stations(&self) -> usize {
        self.stations.len()
    }

    fn position(&self, station: usize, now: Time) -> Position {
        let seconds = now.as_secs_f64();
        let legs = &self.stations[station];
        // The first leg is the position at the beginning.
        let next = legs.partition_point(|leg| leg.start <= seconds).max(1);
        legs[next - 1].at(seconds)
    }

    fn steady_until(&self, now: Time) -> Time {
        now
    }

    fn top_speed(&self) -> f64 {
        let legs = self.stations.iter().flatten().filter(|leg| leg.lasting > 0.0);
        legs.map(|leg| leg.from.distance(leg.to) / leg.lasting).fold(0.0, f64::max)
    }
}

impl core::str::FromStr for Waypoints {
    type Err = WaypointsError;

    /// Reads lines `$node_(N) set X_ METRES` (and `Y_`) and `$ns_ at SECONDS "$node_(N) setdest X Y
    /// METRES_PER_SECOND"`. The latter must be in the order of time for each station. `Z_`,
    /// comments and the lines of ns-2's `god` are ignored.
    fn from_str(text: &str) -> Result<Self, WaypointsError> {
        let mut motion = Waypoints::default();
        for (at, line) in text.lines().enumerate() {
            let words: Vec<&str> = line
                .split(|c: char| c.is_whitespace() || c == '"')
                .filter(|w| !w.is_empty())
                .collect();
            let known = match words[..] {
                [] => Some(()),
                [first, ..] if first.starts_with('#') => Some(()),
                [god, ..] | [_, "at", _, god, ..] if god.starts_with("$god_") => Some(()),
                [node, "set", axis, value] => motion.place(node, axis, value),
                [_, "at", time, node, "setdest", x, y, speed] => {
                    motion.go(node, time, [x, y, speed])
                }
                _ => None,
            };
            known.ok_or(WaypointsError { line: at + 1 })?;
        }
        Ok(motion)
    }
}

impl Waypoints {
    fn place(&mut self, node: &str, axis: &str, value: &str) -> Option<()> {
        let value = number(value)?;
        let legs = self.legs(node)?;
        let [Leg { from, to, .. }] = &mut legs[..] else { return None };
        match axis {
            "X_" => from.x = value,
            "Y_" => from.y = value,
            "Z_" => {}
            _ => return None,
        }
        *to = *from;
        Some(())
    }

    fn go(&mut self, node: &str, time: &str, [x, y, speed]: [&str; 3]) -> Option<()> {
        let (start, speed) = (number(time)?, number(speed)?);
        let to = Position::new(number(x)?, number(y)?);
        let legs = self.legs(node)?;
        let last = legs.last()?;
        if start < last.start || speed < 0.0 {
            return None;
        }
        let from = last.at(start);
        let leg = match from.distance(to) / speed {
            lasting if lasting.is_finite() => Leg { start, from, to, lasting },
            // At speed 0, the station does not move.
            _ => Leg { start, from, to: from, lasting: 0.0 },
        };
        legs.push(leg);
        Some(())
    }

    /// The legs of `$node_(N)`.
    fn legs(&mut self, node: &str) -> Option<&mut Vec<Leg>> {
        let index: usize = node.strip_prefix("$node_(")?.strip_suffix(')')?.parse().ok()?;
        if index >= super::air::MAX_STATIONS {
            return None;
        }
        if self.stations.len() <= index {
            self.stations.resize_with(index + 1, || vec![Leg::default()]);
        }
        self.stations.get_mut(index)
    }
}

impl fmt::Display for Waypoints {
    /// Writes a movement file of ns-2. Reading the file gives the same movements to within a
    /// micrometre.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (station, legs) in self.stations.iter().enumerate() {
            let Some(Leg { to, .. }) = legs.first() else { continue };
            for (axis, metres) in [("X", to.x), ("Y", to.y), ("Z", 0.0)] {
                writeln!(f, "$node_({station}) set {axis}_ {metres}")?;
            }
        }
        let legs = self.stations.iter().enumerate().flat_map(|(station, legs)| {
            legs.iter().skip(1).map(move |leg| (leg.start, station, leg))
        });
        let mut legs: Vec<_> = legs.collect();
        legs.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (start, station, Leg { from, to, lasting, .. }) in legs {
            let speed = if *lasting > 0.0 { from.distance(*to) / lasting } else { 0.0 };
            writeln!(f, "$ns_ at {start} \"$node_({station}) setdest {} {} {speed}\"", to.x, to.y)?;
        }
        Ok(())
    }
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// The error for a line of a movement file that cannot be read or is out of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaypointsError {
    /// The line, counted from 1.
    pub line: usize,
}

impl fmt::Display for WaypointsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {}: neither `$node_(N) set X_ METRES` nor \
             `$ns_ at SECONDS \"$node_(N) setdest X Y METRES_PER_SECOND\"` in the order of time",
            self.line
        )
    }
}

impl core::error::Error for WaypointsError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(motion: &Waypoints, station: usize, millis: u64) -> (f64, f64) {
        let place = motion.position(station, Time::from_millis(millis));
        (place.x, place.y)
    }

    #[test]
    fn a_new_goal_starts_from_where_the_station_is_then() {
        let text = "# comment\n\
            $node_(1) set X_ 10.0\n$node_(1) set Y_ 20.0\n$node_(1) set Z_ 0.0\n\
            $god_ set-dist 0 1 2\n$ns_ at 5.0 \"$god_ set-dist 0 1 1\"\n\
            $ns_ at 1.0 \"$node_(1) setdest 10.0 120.0 10.0\"\n\
            $ns_ at 6.0 \"$node_(1) setdest 40.0 70.0 3.0\"\n\
            $ns_ at 30.0 \"$node_(1) setdest 0.0 0.0 0.0\"\n";
        let motion: Waypoints = text.parse().unwrap();
        assert_eq!(motion.stations(), 2);
        assert_eq!(at(&motion, 0, 9000), (0.0, 0.0));
        assert_eq!(at(&motion, 1, 500), (10.0, 20.0));
        assert_eq!(at(&motion, 1, 3500), (10.0, 45.0));
        // Halfway, the station is at (10, 70) and turns east, for 30 m at 3 m/s.
        assert_eq!(at(&motion, 1, 6000), (10.0, 70.0));
        assert_eq!(at(&motion, 1, 11_000), (25.0, 70.0));
        assert_eq!(at(&motion, 1, 20_000), (40.0, 70.0));
        assert_eq!(at(&motion, 1, 90_000), (40.0, 70.0));
    }

    #[test]
    fn errors_name_the_line() {
        let good = "$node_(0) set X_ 1.0\n$ns_ at 2.0 \"$node_(0) setdest 5.0 5.0 1.0\"\n";
        for bad in [
            "$ns_ at 1.0 \"$node_(0) setdest 5.0 5.0 1.0\"",
            "$ns_ at 3.0 \"$node_(0) setdest 5.0 5.0 -1.0\"",
            "$ns_ at 3.0 \"$node_(0) setdest 5.0 inf 1.0\"",
            "$node_(99999999) set X_ 1.0",
            "$node_(0) set X_ 2.0",
            "$node_(1) set W_ 2.0",
            "puts hello",
        ] {
            let error = format!("{good}{bad}\n").parse::<Waypoints>().unwrap_err();
            assert_eq!(error.line, 3, "{bad}");
        }
    }
}
