//! A minimal simulation, in virtual time, of one connection over one bottleneck.

use anabranch_policy::congestion;
use anabranch_tcp::{Config, Receiver, Segment, Sender};
use anabranch_types::{Rng, Time};
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

/// A drop-tail bottleneck followed by random loss. Acknowledgements pass no bottleneck.
#[derive(Clone, Debug)]
pub struct Path {
    pub bits_per_second: u64,
    pub delay: Duration,
    pub queue: usize,
    pub loss: f64,
    /// Chance that an acknowledgement is lost, that a segment arrives late, and that it arrives
    /// twice.
    pub ack_loss: f64,
    pub late: f64,
    pub twice: f64,
}

impl Path {
    pub fn new(mbps: f64, delay_ms: u64, queue: usize, loss: f64) -> Self {
        Path {
            bits_per_second: (mbps * 1e6) as u64,
            delay: Duration::from_millis(delay_ms),
            queue,
            loss,
            ack_loss: 0.0,
            late: 0.0,
            twice: 0.0,
        }
    }
}

pub struct Run {
    pub config: Config,
    pub path: Path,
    pub sender: Sender,
    pub receiver: Receiver,
    pub now: Time,
    rng: Rng,
    busy_until: Time,
    departures: VecDeque<Time>,
    events: BTreeMap<(Time, u64), (bool, Segment)>,
    order: u64,
}

impl Run {
    pub fn new(config: &Config, control: &str, path: Path, seed: u64) -> Self {
        let spec = control.parse().expect("a policy");
        let controller = congestion::build(&spec, u64::from(config.mss)).expect("a controller");
        Run {
            config: config.clone(),
            path,
            sender: Sender::new(config, controller),
            receiver: Receiver::new(config),
            now: Time::ZERO,
            rng: Rng::new(seed),
            busy_until: Time::ZERO,
            departures: VecDeque::new(),
            events: BTreeMap::new(),
            order: 0,
        }
    }

    fn schedule(&mut self, at: Time, to_receiver: bool, segment: Segment) {
        self.order += 1;
        self.events.insert((at, self.order), (to_receiver, segment));
    }

    fn send_data(&mut self, segment: Segment) {
        while self.departures.front().is_some_and(|at| *at <= self.now) {
            self.departures.pop_front();
        }
        // The segment being sent does not count as waiting.
        if self.departures.len() > self.path.queue {
            return;
        }
        let bits = u64::from(segment.wire_size(&self.config.wire)) * 8;
        let service = Duration::from_nanos(bits * 1_000_000_000 / self.path.bits_per_second);
        self.busy_until = self.busy_until.max(self.now) + service;
        self.departures.push_back(self.busy_until);
        let mut arrival = self.busy_until + self.path.delay;
        if self.rng.chance(self.path.loss) {
            return;
        }
        if self.rng.chance(self.path.late) {
            arrival += self.path.delay;
        }
        self.schedule(arrival, true, segment);
        if self.rng.chance(self.path.twice) {
            self.schedule(arrival + self.path.delay, true, segment);
        }
    }

    fn drain(&mut self) {
        while let Some(segment) = self.sender.poll_transmit(self.now) {
            self.send_data(segment);
        }
        while let Some(segment) = self.receiver.poll_transmit(self.now) {
            if !self.rng.chance(self.path.ack_loss) {
                self.schedule(self.now + self.path.delay, false, segment);
            }
        }
    }

    /// Runs until `end` or until there is no further event. Calls `each` at the start and after
    /// every event.
    pub fn until(&mut self, end: Time, mut each: impl FnMut(&mut Run)) {
        loop {
            self.drain();
            each(self);
            self.drain();
            let event = self.events.first_key_value().map(|((at, _), _)| *at);
            let timers = [event, self.sender.next_timeout(), self.receiver.next_timeout()];
            let Some(next) = timers.into_iter().flatten().min() else { return };
            if next > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(next);
            if let Some(entry) = self.events.first_entry()
                && entry.key().0 <= self.now
            {
                let (to_receiver, segment) = entry.remove();
                if to_receiver {
                    self.receiver.handle_segment(self.now, &segment, false);
                } else {
                    self.sender.handle_segment(self.now, &segment);
                }
            }
            self.sender.handle_timeout(self.now);
            self.receiver.handle_timeout(self.now);
        }
    }
}
