//! One direction of a link: a queue, a transmitter, random loss, then propagation.
//!
//! ```
//! use anabranch_sim::link::{Link, LinkConfig, LinkOutput};
//! use anabranch_types::{Ecn, Time};
//!
//! let config: LinkConfig = "rate=12mbit,delay=40ms".parse()?;
//! let mut link = Link::new(&config, 1, "lte.forward")?;
//! link.enqueue(Time::ZERO, 1500, Ecn::NotEct, "packet").expect("the link is empty");
//! // 1 ms on the wire, then 40 ms of propagation.
//! assert_eq!(link.next_event(), Some(Time::from_millis(41)));
//! link.advance(Time::from_millis(41), |output| match output {
//!     LinkOutput::Delivered(delivery) => assert_eq!(delivery.token, "packet"),
//!     LinkOutput::Dropped(drop) => panic!("{:?}", drop.cause),
//! });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod capacity;
mod config;
mod counters;
mod draft;
mod faults;
mod parse;
mod parse_loss;
mod pipe;
mod policer;
mod serialiser;
mod transmitter;

#[cfg(test)]
mod tests;

use core::time::Duration;
use std::collections::VecDeque;

use anabranch_types::{Bitrate, Ecn, Probability, Rng, Time};

pub use config::{LinkConfig, LinkConfigError};
pub use counters::LinkCounters;
pub use draft::ReadFile;
pub use faults::FaultConfig;
pub use policer::Policer;
pub(crate) use serialiser::Serialiser;

use crate::delay::DelayProcess;
use crate::loss::{LossModel, LossProcess};
use crate::queue::{Admission, Departure, Idle, Packet, Queue, Refusal};
use crate::rate::RateProcess;
use capacity::Capacity;
use pipe::{Flying, Pipe};
use policer::Bucket;
use transmitter::Transmitter;

/// One direction of a link. It does no I/O and has no clock; the caller passes the time.
///
/// `T` is the caller's handle for a packet. Every handle given to [`enqueue`](Self::enqueue) comes
/// back exactly once, with a delivery or a drop. Times should not decrease from call to call; an
/// earlier time counts as the latest time seen. Once the buffers have grown to the size that the
/// traffic needs, nothing allocates.
#[derive(Clone, Debug)]
pub struct Link<T> {
    config: LinkConfig,
    seed: u64,
    stream: String,
    now: Time,
    rate: RateProcess,
    delays: DelayProcess,
    policer: Option<Bucket>,
    queue: Queue<T>,
    transmitter: Transmitter<T>,
    loss: LossProcess,
    pipe: Pipe<T>,
    dropped: VecDeque<Dropped<T>>,
    counters: LinkCounters,
    capacity: Capacity,
    /// How long the most recently dequeued packet waited.
    waited: Duration,
    /// The smallest MTU at any time. Packets up to this size always fit.
    least_mtu: u32,
}

/// An output of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkOutput<T> {
    /// A packet has arrived at the far end.
    Delivered(Delivery<T>),
    /// A packet that had been accepted will not arrive.
    Dropped(Dropped<T>),
}

/// A packet that has arrived at the far end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery<T> {
    /// When the packet arrived; not later than the time that the link was advanced to.
    pub time: Time,
    /// The caller's handle.
    pub token: T,
    /// Size on the wire, bytes.
    pub size: u32,
    /// The ECN codepoint after any marking.
    pub ecn: Ecn,
}

/// A packet that will not arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped<T> {
    /// When the packet was dropped; for random loss, when it would have arrived.
    pub time: Time,
    /// The caller's handle.
    pub token: T,
    /// The reason for the drop.
    pub cause: DropCause,
}

/// Why a link dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// The buffer was full.
    QueueFull,
    /// RED dropped the packet before the buffer was full, or CoDel when the packet left the queue.
    QueueEarly,
    /// The link was in a blackout.
    Blackout,
    /// The packet was lost at random after it was serialised.
    Random,
    /// The packet was longer than the link's MTU.
    TooLong,
    /// The packet came faster than the policer allows.
    Policed,
    /// The packet was a pure acknowledgement that a later one made redundant.
    Thinned,
    /// The packet was damaged and failed its receiver's checksum.
    Damaged,
}

/// The prefix of the names of the random substreams of the link called `name`.
fn stream(name: &str) -> String {
    format!("link.{name}")
}

impl<T> Link<T> {
    /// A link as `config` describes it, idle at time zero.
    ///
    /// Random draws of the link are the substreams of `seed` called `link.<name>.…`, so links of
    /// different names draw independently, and two links of the same name lose the same packets.
    ///
    /// # Errors
    /// When a field of `config` is out of its range.
    pub fn new(config: &LinkConfig, seed: u64, name: &str) -> Result<Self, LinkConfigError> {
        config.validate()?;
        let stream = stream(name);
        let (rate, loss) = Self::medium(config, seed, &stream)?;
        let queue = Rng::substream(seed, &format!("{stream}.queue"));
        let queue = Queue::new(&config.queue, config.buffer(), queue)
            .map_err(|why| LinkConfigError::new("buffer", "the queue", why))?;
        Ok(Link {
            config: config.clone(),
            delays: config.delay_process(seed, &stream)?,
            policer: config.policer.map(Bucket::full),
            seed,
            now: Time::ZERO,
            queue,
            transmitter: Transmitter::new(),
            pipe: Pipe::new(config.jitter.reorder),
            dropped: VecDeque::new(),
            counters: LinkCounters::default(),
            least_mtu: config.mtu.steps().iter().map(|(_, mtu)| *mtu).min().unwrap_or(u32::MAX),
            waited: Duration::ZERO,
            capacity: Capacity::new(rate.clone(), loss.clone(), config.policer),
            rate,
            loss,
            stream,
        })
    }

    /// Offers a packet of `size` bytes at `now`.
    ///
    /// Afterwards, [`next_event`](Self::next_event) may be earlier than before.
    ///
    /// # Errors
    /// Returns the token at once when the queue or the policer refuses the packet, the packet is
    /// longer than the MTU, or the link is in a blackout.
    pub fn enqueue(&mut self, now: Time, size: u32, ecn: Ecn, token: T) -> Result<(), Dropped<T>> {
        let now = self.run(now);
        self.counters.packets_in += 1;
        self.counters.bytes_in += u64::from(size);
        let rate = self.rate.current();
        if rate == Bitrate::ZERO {
            self.counters.dropped_blackout += 1;
            return Err(Dropped { time: now, token, cause: DropCause::Blackout });
        }
        if size > self.least_mtu && size > self.config.mtu.at(now) {
            self.counters.dropped_too_long += 1;
            return Err(Dropped { time: now, token, cause: DropCause::TooLong });
        }
        if self.policer.as_mut().is_some_and(|bucket| !bucket.takes(now, size)) {
            self.counters.dropped_policed += 1;
            return Err(Dropped { time: now, token, cause: DropCause::Policed });
        }
        let idle = self
            .transmitter
            .is_idle()
            .then(|| Idle { lasted: now.since(self.transmitter.free_at()), rate });
        match self.queue.offer(Packet { token, size, ecn, arrived: now }, idle) {
            Ok(Admission::Marked) => self.counters.ecn_marks += 1,
            Ok(Admission::Unchanged) => {}
            Err((packet, refusal)) => return Err(self.refused(packet, refusal)),
        }
        if idle.is_some()
            && let Some(packet) = self.depart(now)
        {
            self.serve(packet, now, true);
        }
        Ok(())
    }

    /// Advances the link to `now` and passes all outputs until then to `sink`, in the order of
    /// time.
    pub fn advance(&mut self, now: Time, mut sink: impl FnMut(LinkOutput<T>)) {
        let now = self.run(now);
        loop {
            let arrival = self.pipe.next_arrival();
            let dropped = self.dropped.front().map(|drop| drop.time);
            if dropped.is_some_and(|time| arrival.is_none_or(|arrival| time <= arrival)) {
                let Some(drop) = self.dropped.pop_front() else { break };
                sink(LinkOutput::Dropped(drop));
                continue;
            }
            let Some(Flying { arrival, packet, lost, .. }) = self.pipe.pop_arrived(now) else {
                break;
            };
            let Packet { token, size, ecn, .. } = packet;
            sink(if lost {
                LinkOutput::Dropped(Dropped { time: arrival, token, cause: DropCause::Random })
            } else {
                self.counters.packets_delivered += 1;
                self.counters.bytes_delivered += u64::from(size);
                LinkOutput::Delivered(Delivery { time: arrival, token, size, ecn })
            });
        }
    }

    /// The earliest time at which [`advance`](Self::advance) may have an output, or `None` while
    /// the link is empty. If advancing to this time gives no output, `next_event` then returns a
    /// later time.
    pub fn next_event(&self) -> Option<Time> {
        // The packet in service arrives no earlier than its end of service plus the least delay. If
        // the packet behind it may be dropped on departure, this is decided at the end of service.
        let in_service = self.transmitter.finish().map(|finish| {
            let drops = self.queue.drops_on_departure() && !self.queue.is_empty();
            if drops { finish } else { self.delays.earliest(finish) }
        });
        let dropped = self.dropped.front().map(|drop| drop.time);
        [dropped, self.pipe.next_arrival(), in_service].into_iter().flatten().min()
    }

    /// The probability with which a packet that finished serialisation at `now` would be lost.
    pub fn loss_state(&mut self, now: Time) -> Probability {
        let now = self.run(now);
        self.loss.probability(now)
    }

    /// Bits that could have been delivered since time zero, whatever the traffic: ∫ rate·(1 − loss
    /// state) dt over `[0, now)`. Where there is a policer, the rate is at most the policer's.
    pub fn capacity_bits(&mut self, now: Time) -> f64 {
        self.capacity.until(now)
    }

    /// Bits that can be delivered in `[from, to)`, in the past or in the future: the difference of
    /// two [`capacity_bits`](Self::capacity_bits). Every call computes the loss process from time
    /// zero on.
    pub fn capacity_integral(&self, from: Time, to: Time) -> f64 {
        match Self::medium(&self.config, self.seed, &self.stream) {
            Ok((rate, loss)) if from < to => {
                let mut capacity = Capacity::new(rate, loss, self.config.policer);
                let before = capacity.until(from);
                capacity.until(to) - before
            }
            _ => 0.0,
        }
    }

    /// The counters so far.
    pub fn counters(&self) -> &LinkCounters {
        &self.counters
    }

    /// The configuration that the link was made from.
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// The current rate; zero in a blackout.
    pub fn rate(&self) -> Bitrate {
        self.rate.current()
    }

    /// The queue, without the packet being serialised.
    pub fn queue(&self) -> &Queue<T> {
        &self.queue
    }

    /// How long the most recently dequeued packet waited; zero before the first packet.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// Packets inside the link: waiting, being serialised or propagating.
    pub fn packets_inside(&self) -> usize {
        self.queue.len() + usize::from(!self.transmitter.is_idle()) + self.pipe.len()
    }

    /// The rate process, at time zero, of a link called `name` with this configuration.
    ///
    /// # Errors
    /// When the fluctuation of its rate is out of range.
    pub fn rate_course(
        config: &LinkConfig,
        seed: u64,
        name: &str,
    ) -> Result<RateProcess, LinkConfigError> {
        config.rate_process(seed, &format!("{}.rate", stream(name)))
    }

    /// The rate process and the loss process of `config` at time zero.
    fn medium(
        config: &LinkConfig,
        seed: u64,
        stream: &str,
    ) -> Result<(RateProcess, LossProcess), LinkConfigError> {
        let loss = LossProcess::new(&config.loss, seed, &format!("{stream}.loss"))
            .map_err(|why| LinkConfigError::new("loss", "the model", why))?;
        Ok((config.rate_process(seed, &format!("{stream}.rate"))?, loss))
    }

    /// Advances the transmitter and the rate to `now`, or to the latest time seen if that is later.
    /// Returns this time.
    ///
    /// Ends of service and changes of rate are handled in the order of time. A packet whose service
    /// ends at the instant of a change is sent completely; the next packet starts at the new rate.
    fn run(&mut self, now: Time) -> Time {
        self.now = self.now.max(now);
        loop {
            let change = self.rate.next_change();
            match self.transmitter.finish() {
                Some(finish) if finish <= change => {
                    if finish > self.now {
                        break;
                    }
                    self.complete();
                }
                None if !self.queue.is_empty() && change > self.transmitter.free_at() => {
                    let start = self.transmitter.free_at();
                    if let Some(packet) = self.depart(start) {
                        self.serve(packet, start, false);
                    }
                }
                None if self.queue.is_empty() => {
                    self.rate.advance(self.now);
                    break;
                }
                _ => {
                    if change > self.now || change == Time::MAX {
                        break;
                    }
                    self.rate.step();
                    if self.rate.current() == Bitrate::ZERO {
                        self.drop_all(change);
                    }
                }
            }
        }
        self.now
    }

    /// Takes the next packet from the queue at `now`. Packets that the queue drops on departure are
    /// put into `dropped`.
    fn depart(&mut self, now: Time) -> Option<Packet<T>> {
        loop {
            let packet = match self.queue.depart(now)? {
                Departure::Sent(packet) => packet,
                Departure::Marked(packet) => {
                    self.counters.ecn_marks += 1;
                    packet
                }
                Departure::Dropped(packet) => {
                    self.counters.dropped_early += 1;
                    let cause = DropCause::QueueEarly;
                    self.dropped.push_back(Dropped { time: now, token: packet.token, cause });
                    continue;
                }
            };
            self.waited = now.since(packet.arrived);
            return Some(packet);
        }
    }

    /// Puts `packet` on the wire at `now`; `idle` tells whether the transmitter was idle before.
    fn serve(&mut self, packet: Packet<T>, now: Time, idle: bool) {
        match self.rate.opportunity(now, packet.size, idle) {
            Some(finish) => self.transmitter.start_until(packet, finish),
            None => self.transmitter.start(packet, now, self.rate.current()),
        }
    }

    /// Takes the serialised packet from the transmitter, decides whether it is lost, and lets it
    /// propagate.
    fn complete(&mut self) {
        let Some((packet, finish)) = self.transmitter.complete() else { return };
        self.counters.packets_serialised += 1;
        self.counters.bytes_serialised += u64::from(packet.size);
        let lost = self.loss.is_lost(finish);
        self.counters.lost_random += u64::from(lost);
        let arrival = self.delays.arrival(finish);
        self.pipe.push(packet, arrival, lost);
    }

    /// Drops the packet being serialised and all waiting packets.
    fn drop_all(&mut self, time: Time) {
        while let Some(packet) = self.transmitter.abort(time).or_else(|| self.queue.pop()) {
            self.counters.dropped_blackout += 1;
            let cause = DropCause::Blackout;
            self.dropped.push_back(Dropped { time, token: packet.token, cause });
        }
    }

    fn refused(&mut self, packet: Packet<T>, refusal: Refusal) -> Dropped<T> {
        let (counter, cause) = match refusal {
            Refusal::Full => (&mut self.counters.dropped_full, DropCause::QueueFull),
            Refusal::Early => (&mut self.counters.dropped_early, DropCause::QueueEarly),
        };
        *counter += 1;
        Dropped { time: self.now, token: packet.token, cause }
    }
}
