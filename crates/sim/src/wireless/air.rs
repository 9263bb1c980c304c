mod kinds;

use core::time::Duration;
use std::collections::VecDeque;

use anabranch_types::{Rng, Time};

use super::mac::{Frame, FrameKind, Mac, Notice, Timing};
use super::receiver::{Heard, Receiver};
use super::{Destination, MacCounters, Message, Motion, Position, Radio};
use crate::engine::{Entry, Wheel};

pub(super) use kinds::MAX_STATIONS;
pub use kinds::{AirConfig, AirCounters, AirError, FrameLoss, Report};

/// The medium, and the MACs of all stations.
///
/// At every other station within sensing range, a frame begins and ends later by the propagation
/// delay. Events are handled in the order of time and, at equal times, of scheduling. In steady
/// state, nothing is allocated.
///
/// ```
/// use anabranch_sim::wireless::{
///     Air, AirConfig, Destination, Fixed, Message, Position, Priority, Report,
/// };
/// use anabranch_types::Time;
///
/// let places = Fixed(vec![Position::new(0.0, 0.0), Position::new(100.0, 0.0)]);
/// let mut air = Air::new(&AirConfig::default(), Box::new(places), 1)?;
/// let message =
///     Message { token: 7, to: Destination::Station(1), bytes: 1000, priority: Priority::Data };
/// assert!(air.send(Time::ZERO, 0, message));
/// let reports: Vec<Report> = core::iter::from_fn(|| air.poll(Time::from_millis(5))).collect();
/// let received = Report::Received { at: 1, from: 0, token: 7 };
/// assert_eq!(reports, [received, Report::Sent { from: 0, token: 7 }]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Air {
    now: u64,
    radio: Radio,
    timing: Timing,
    loss: FrameLoss,
    motion: Box<dyn Motion>,
    /// Distance up to which a station can be sensed, metres.
    sense_range: f64,
    /// How long a `near` list is valid. In this time no two stations come closer by `MARGIN`, even
    /// with rounding errors.
    near_for: Duration,
    stations: Vec<Station>,
    flights: Vec<Flight>,
    wheel: Wheel,
    /// Event sources: every station's timer, then every station's frame start, then every station's frame end.
    entries: Vec<Entry>,
    notices: Vec<Notice>,
    reports: VecDeque<Report>,
    counters: AirCounters,
    /// Whether decoded messages for other stations are reported.
    listening: bool,
    /// All frames, with the times at which their first bits left the senders.
    #[cfg(test)]
    log: Vec<(u64, Frame)>,
}

#[derive(Debug)]
struct Station {
    mac: Mac,
    receiver: Receiver,
    loss: Rng,
}

/// A station's latest frame on the air, and the number of stations that its start and its end have
/// reached.
#[derive(Debug)]
struct Flight {
    frame: Frame,
    start: u64,
    /// Number of ears that the frame's start has reached, and number that its end has reached.
    begun: usize,
    ended: usize,
    /// Token of a broadcast that is to be reported as sent once its end has reached every ear.
    broadcast: Option<u32>,
    /// The stations that sense this station, the nearest first.
    ears: Vec<Ear>,
    /// Time until which `ears` is valid.
    steady_until: Time,
    /// The other stations that may come within sensing range before `near_until`, in the order of
    /// their numbers.
    near: Vec<u32>,
    near_until: Time,
}

/// Distance beyond the sensing range up to which another station is listed as near, metres.
const MARGIN: f64 = 50.0;

/// A station within sensing range of another.
#[derive(Clone, Copy, Debug)]
struct Ear {
    station: u32,
    /// Propagation delay of a signal, nanoseconds.
    delay: u32,
    power: f64,
}

impl Air {
    /// A medium with idle stations at the positions of `motion`. Random draws are substreams of
    /// `seed` named after the stations' numbers.
    ///
    /// # Errors
    /// When a constant is out of its range, there are no stations or too many, or a signal can be
    /// sensed farther away than it travels in a SIFS.
    pub fn new(config: &AirConfig, motion: Box<dyn Motion>, seed: u64) -> Result<Self, AirError> {
        config.validate()?;
        let count = motion.stations();
        if count == 0 || count > MAX_STATIONS {
            return Err(AirError::Stations(count));
        }
        let timing = Timing::new(&config.mac);
        let near_for = Duration::try_from_secs_f64(0.99 * MARGIN / (2.0 * motion.top_speed()));
        let station = |id: u32| Station {
            mac: Mac::new(id, count, &timing, Rng::substream(seed, &format!("mac.{id}"))),
            receiver: Receiver::default(),
            loss: Rng::substream(seed, &format!("air.{id}.loss")),
        };
        Ok(Air {
            now: 0,
            radio: config.radio,
            loss: config.loss,
            stations: (0..count as u32).map(station).collect(),
            flights: (0..count).map(|_| Flight::none()).collect(),
            timing,
            motion,
            sense_range: config.radio.sense_range(),
            near_for: near_for.unwrap_or(Duration::MAX),
            wheel: Wheel::new(),
            entries: vec![Entry::UNARMED; 3 * count],
            notices: Vec::new(),
            reports: VecDeque::new(),
            counters: AirCounters::default(),
            listening: false,
            #[cfg(test)]
            log: Vec::new(),
        })
    }

    /// Hands a message to a station's MAC at `now`, which must not be before [`now`](Self::now).
    /// Returns whether the MAC's queue had room. If not, no report follows. A station that does not
    /// exist has no room.
    pub fn send(&mut self, now: Time, from: u32, message: Message) -> bool {
        self.now = self.now.max(now.as_nanos());
        let Some(station) = self.stations.get_mut(from as usize) else { return false };
        let taken = station.mac.submit(self.now, &self.timing, message);
        self.arm(from);
        taken
    }

    /// Turns reports of decoded messages for other stations ([`Report::Overheard`]) on or off.
    /// Retransmissions are reported, too. Loss above the MAC does not apply to these reports.
    pub fn listen(&mut self, listening: bool) {
        self.listening = listening;
    }

    /// Takes back the messages that wait at station `from` for station `to`. Their tokens are
    /// appended to `tokens`, routing packets first, and no reports of them follow. The message
    /// being sent is not taken back.
    pub fn withdraw(&mut self, from: u32, to: u32, tokens: &mut Vec<u32>) {
        if let Some(station) = self.stations.get_mut(from as usize) {
            station.mac.withdraw(Destination::Station(to), tokens);
        }
    }

    /// Advances time to the next report, but not beyond `limit`. Returns `None` if there is none by
    /// then. The time of the report is [`now`](Self::now).
    pub fn poll(&mut self, limit: Time) -> Option<Report> {
        loop {
            if let Some(report) = self.reports.pop_front() {
                return Some(report);
            }
            let (time, source) = self.wheel.pop(&mut self.entries, limit)?;
            self.now = time.as_nanos();
            self.counters.events += 1;
            let count = self.stations.len() as u32;
            match source / count {
                0 => self.run_timer(source),
                1 => self.begin_at_ears(source - count),
                _ => self.end_at_ears(source - 2 * count),
            }
        }
    }

    /// Time of the next event; [`poll`](Self::poll) need not be called earlier.
    pub fn next_event(&mut self) -> Option<Time> {
        if self.reports.is_empty() { self.wheel.next(&mut self.entries) } else { Some(self.now()) }
    }

    /// The time of the last event, or that of the last message sent if it is later.
    pub fn now(&self) -> Time {
        Time::from_nanos(self.now)
    }

    /// The positions of the stations at `now`, in the order of their numbers.
    pub fn positions(&self, now: Time) -> Vec<Position> {
        (0..self.stations.len()).map(|station| self.motion.position(station, now)).collect()
    }

    /// Counters of the medium so far, over all stations.
    pub fn counters(&self) -> AirCounters {
        self.counters
    }

    /// Counters of a station; all zero if there is no such station.
    pub fn station(&self, station: u32) -> MacCounters {
        self.stations.get(station as usize).map_or_else(Default::default, |it| it.mac.counters)
    }

    /// Number of messages at a station, including the one being sent.
    pub fn backlog(&self, station: u32) -> usize {
        self.stations.get(station as usize).map_or(0, |it| it.mac.backlog())
    }

    /// Handles a station's timer, unless it was postponed in the meantime.
    fn run_timer(&mut self, id: u32) {
        let Station { mac, receiver, .. } = &mut self.stations[id as usize];
        if mac.next_timer(&self.timing).is_some_and(|due| due <= self.now) {
            receiver.fall_silent();
            let frame = mac.handle_timer(self.now, &self.timing, &mut self.notices);
            if let Some(frame) = frame {
                receiver.transmit();
                self.launch(id, frame);
            }
            self.relay(id);
        }
        self.arm(id);
    }

    /// Puts a frame on the air.
    fn launch(&mut self, id: u32, frame: Frame) {
        self.counters.frames += 1;
        #[cfg(test)]
        self.log.push((self.now, frame));
        let now = Time::from_nanos(self.now);
        let last = &self.flights[id as usize];
        debug_assert_eq!(last.ended, last.ears.len(), "a station's last frame is over");
        if last.steady_until <= now {
            self.find_ears(id, now);
        }
        let flight = &mut self.flights[id as usize];
        (flight.frame, flight.start) = (frame, self.now);
        (flight.begun, flight.ended) = (0, 0);
        if let Some(nearest) = flight.ears.first() {
            let delay = u64::from(nearest.delay);
            let count = self.stations.len() as u32;
            let start = Time::from_nanos(self.now + delay);
            self.wheel.start(&mut self.entries, count + id, start);
            let end = Time::from_nanos(self.now + frame.airtime + delay);
            self.wheel.start(&mut self.entries, 2 * count + id, end);
        }
    }

    /// Updates the list of stations that sense a station.
    fn find_ears(&mut self, id: u32, now: Time) {
        let flight = &mut self.flights[id as usize];
        let here = self.motion.position(id as usize, now);
        if flight.near_until <= now {
            let count = self.stations.len() as u32;
            let distance = |other: &u32| here.distance(self.motion.position(*other as usize, now));
            let within = self.sense_range + MARGIN;
            flight.near.clear();
            flight
                .near
                .extend((0..count).filter(|other| *other != id && distance(other) <= within));
            flight.near_until = now + self.near_for;
        }
        flight.ears.clear();
        flight.steady_until = self.motion.steady_until(now);
        for station in flight.near.iter().copied() {
            let distance = here.distance(self.motion.position(station as usize, now));
            let power = self.radio.received(distance);
            if power >= self.radio.sense_threshold {
                let delay = Radio::delay(distance) as u32;
                flight.ears.push(Ear { station, delay, power });
            }
        }
        flight.ears.sort_unstable_by_key(|ear| (ear.delay, ear.station));
    }

    /// Handles the arrival of the start of a station's frame at the next ears.
    fn begin_at_ears(&mut self, id: u32) {
        let flight = &mut self.flights[id as usize];
        let end = flight.start + flight.frame.airtime;
        while let Some(ear) = flight.ears.get(flight.begun) {
            let delay = u64::from(ear.delay);
            if flight.start + delay > self.now {
                let source = self.stations.len() as u32 + id;
                let time = Time::from_nanos(flight.start + delay);
                return self.wheel.start(&mut self.entries, source, time);
            }
            flight.begun += 1;
            let Station { mac, receiver, .. } = &mut self.stations[ear.station as usize];
            let decodable = ear.power >= self.radio.reception_threshold;
            let capture = self.radio.capture_ratio;
            if receiver.start((id, end + delay), ear.power, decodable, capture) {
                mac.handle_busy(self.now, &self.timing);
            }
        }
    }

    /// Handles the arrival of the end of a station's frame at the next ears.
    fn end_at_ears(&mut self, id: u32) {
        let Flight { frame, start, .. } = self.flights[id as usize];
        let end = start + frame.airtime;
        while let Some(&ear) = self.flights[id as usize].ears.get(self.flights[id as usize].ended) {
            let time = end + u64::from(ear.delay);
            if time > self.now {
                let source = 2 * self.stations.len() as u32 + id;
                return self.wheel.start(&mut self.entries, source, Time::from_nanos(time));
            }
            self.flights[id as usize].ended += 1;
            self.hear(ear.station, &frame);
            self.relay(ear.station);
            self.arm(ear.station);
        }
        if let Some(token) = self.flights[id as usize].broadcast.take() {
            self.reports.push_back(Report::Sent { from: id, token });
        }
    }

    /// Handles the end of a frame at a station.
    fn hear(&mut self, id: u32, frame: &Frame) {
        let (now, timing) = (self.now, &self.timing);
        let Station { mac, receiver, loss } = &mut self.stations[id as usize];
        let mut heard = receiver.end(frame.from);
        let below = self.loss.below.get();
        if heard == Heard::Clean && below > 0.0 && loss.chance(below) {
            self.counters.lost_below += 1;
            heard = Heard::Garbled;
        }
        let quiet = receiver.is_quiet();
        let to_another = matches!(frame.to, Destination::Station(to) if to != id);
        if self.listening && to_another && heard == Heard::Clean && frame.kind == FrameKind::Data {
            let (from, token) = (frame.from, frame.token);
            self.reports.push_back(Report::Overheard { at: id, from, token });
        }
        match heard {
            Heard::Clean => mac.handle_frame(now, timing, (frame, quiet), &mut self.notices),
            Heard::Garbled => mac.handle_garbled(now, timing, quiet),
            Heard::Nothing => mac.handle_quiet(now, timing, quiet),
        }
    }

    /// Turns a MAC's notices into reports.
    fn relay(&mut self, id: u32) {
        let above = self.loss.above.get();
        for notice in self.notices.drain(..) {
            let report = match notice {
                Notice::Received { from, token } => {
                    let lost = above > 0.0 && self.stations[id as usize].loss.chance(above);
                    self.counters.lost_above += u64::from(lost);
                    match lost {
                        true => Report::Lost { at: id, from, token },
                        false => Report::Received { at: id, from, token },
                    }
                }
                Notice::Sent { token } => {
                    let flight = &mut self.flights[id as usize];
                    let broadcast = flight.frame.to == Destination::Broadcast;
                    if broadcast && flight.ended < flight.ears.len() {
                        // The end of the broadcast has not yet reached all stations.
                        flight.broadcast = Some(token);
                        continue;
                    }
                    Report::Sent { from: id, token }
                }
                Notice::GaveUp { token, to } => Report::GaveUp { from: id, to, token },
            };
            self.reports.push_back(report);
        }
    }

    /// Schedules a station's timer.
    fn arm(&mut self, id: u32) {
        if let Some(due) = self.stations[id as usize].mac.next_timer(&self.timing) {
            self.wheel.arm(&mut self.entries, id, Time::from_nanos(due));
        }
    }
}

impl Flight {
    fn none() -> Self {
        let to = Destination::Broadcast;
        Flight {
            frame: Frame {
                kind: FrameKind::Ack,
                from: 0,
                to,
                airtime: 0,
                reserves: 0,
                sequence: 0,
                token: 0,
            },
            start: 0,
            begun: 0,
            ended: 0,
            broadcast: None,
            ears: Vec::new(),
            steady_until: Time::ZERO,
            near: Vec::new(),
            near_until: Time::ZERO,
        }
    }
}

#[cfg(test)]
mod tests;
