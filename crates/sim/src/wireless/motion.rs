use core::fmt::Debug;

use anabranch_types::Time;

/// A place in the plane, metres.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Position {
    /// Metres to the east.
    pub x: f64,
    /// Metres to the north.
    pub y: f64,
}

impl Position {
    /// The position with these coordinates, metres.
    pub fn new(x: f64, y: f64) -> Self {
        Position { x, y }
    }

    /// Distance to another position, metres.
    pub fn distance(self, other: Position) -> f64 {
        let (x, y) = (self.x - other.x, self.y - other.y);
        (x * x + y * y).sqrt()
    }
}

/// The positions of stations as a function of time.
pub trait Motion: Debug + Send {
    /// Number of stations.
    fn stations(&self) -> usize;

    /// The position at `now` of a station, counted from 0.
    fn position(&self, station: usize, now: Time) -> Position;

    /// A time until which no station moves after `now`; [`Time::MAX`] if none ever moves.
    fn steady_until(&self, now: Time) -> Time;

    /// An upper bound on the speed of every station, metres per second; infinite if it is not known.
    fn top_speed(&self) -> f64 {
        f64::INFINITY
    }
}

/// Stations that do not move.
#[derive(Clone, Debug, PartialEq)]
pub struct Fixed(pub Vec<Position>);

impl Fixed {
    /// `stations` stations at equal distances on a circle around the origin, with a radius in
    /// metres. The first is in the east, and the others follow anticlockwise.
    pub fn circle(stations: usize, radius: f64) -> Self {
        let turn = 2.0 * core::f64::consts::PI / stations as f64;
        let place = |at: usize| {
            let (sine, cosine) = libm::sincos(turn * at as f64);
            Position::new(radius * cosine, radius * sine)
        };
        Fixed((0..stations).map(place).collect())
    }
}

impl Motion for Fixed {
    fn stations(&self) -> usize {
        self.0.len()
    }

    fn position(&self, station: usize, _: Time) -> Position {
        self.0[station]
    }

    fn steady_until(&self, _: Time) -> Time {
        Time::MAX
    }

    fn top_speed(&self) -> f64 {
        0.0
    }
}
