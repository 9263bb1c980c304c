use anabranch_types::{Bitrate, Time};

use super::{
    Air, AirConfig, AirError, Destination, Fixed, MacConfig, Message, Position, Priority, Report,
};

/// A saturated cell: stations on a circle of radius 10 m always have a message for the station in
/// the centre.
///
/// ```
/// use anabranch_sim::wireless::{Cell, MacConfig};
/// use anabranch_types::Time;
///
/// let mut cell = Cell::new(&MacConfig::default(), 5, 1000, 1)?;
/// cell.run_until(Time::from_secs(5));
/// let throughput = cell.throughput().as_mbps();
/// assert!((5.1..5.3).contains(&throughput), "{throughput}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Cell {
    air: Air,
    stations: u32,
    bytes: u32,
    received: u64,
    until: Time,
}

impl Cell {
    /// A cell with `stations` sending stations and one receiver. Messages have `bytes` bytes.
    ///
    /// # Errors
    /// The errors of [`Air::new`]; also when `stations` is 0.
    pub fn new(mac: &MacConfig, stations: u32, bytes: u32, seed: u64) -> Result<Self, AirError> {
        if stations == 0 {
            return Err(AirError::Stations(0));
        }
        let mut places = Fixed::circle(stations as usize, 10.0);
        places.0.push(Position::default());
        let config = AirConfig { mac: mac.clone(), ..AirConfig::default() };
        let air = Air::new(&config, Box::new(places), seed)?;
        let mut cell = Cell { air, stations, bytes, received: 0, until: Time::ZERO };
        for station in 0..stations {
            cell.refill(station);
            cell.refill(station);
        }
        Ok(cell)
    }

    /// Runs the cell until `until`.
    pub fn run_until(&mut self, until: Time) {
        while let Some(report) = self.air.poll(until) {
            match report {
                Report::Received { .. } => self.received += 1,
                Report::Sent { from, .. } | Report::GaveUp { from, .. } => self.refill(from),
                Report::Lost { .. } | Report::Overheard { .. } => {}
            }
        }
        self.until = self.until.max(until);
    }

    /// Received payload divided by the time that has passed.
    pub fn throughput(&self) -> Bitrate {
        let seconds = self.until.as_secs_f64();
        let bits = self.received as f64 * f64::from(self.bytes) * 8.0;
        Bitrate::from_bps(if seconds > 0.0 { (bits / seconds + 0.5) as u64 } else { 0 })
    }

    /// Number of sending stations.
    pub fn stations(&self) -> u32 {
        self.stations
    }

    /// The medium, from which its counters and those of the stations can be read. The station with
    /// the highest number is the receiver.
    pub fn air(&self) -> &Air {
        &self.air
    }

    /// Queues one more message at a station, so that it always has one to send.
    fn refill(&mut self, station: u32) {
        let to = Destination::Station(self.stations);
        let message = Message { token: 0, to, bytes: self.bytes, priority: Priority::Data };
        let now = self.air.now();
        self.air.send(now, station, message);
    }
}
