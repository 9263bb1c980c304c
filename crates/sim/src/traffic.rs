//! The traffic of applications: the data that they send, and when. All transports use the same
//! types.
//!
//! A [`Source`] requests transfers and says how many bytes may be written so far. The agent that
//! owns the source writes them when its transport has room, and reports complete transfers to the
//! source. Each transfer has a connection of its own over TCP, and a stream of its own over
//! `anabranch_core`.

#[cfg(test)]
mod tests;

use core::time::Duration;
use std::collections::VecDeque;

use anabranch_policy::view::TrafficClass;
use anabranch_types::{Bitrate, Rng, Time};

/// Traffic of an application.
#[derive(Clone, Debug, PartialEq)]
pub enum Traffic {
    /// One transfer without end.
    Bulk,
    /// Transfers of one size. Each begins as soon as the one before is complete.
    Transfers {
        /// Bytes of each transfer; at least 1.
        size: u64,
        /// Number of transfers.
        repeat: u64,
    },
    /// Transfers of one size that begin at random times, whether earlier ones are complete or not.
    /// The times between two beginnings are exponentially distributed; the first is counted from
    /// the start of the application.
    Poisson {
        /// Bytes of each transfer; at least 1.
        size: u64,
        /// Mean time between two beginnings.
        interval: Duration,
    },
    /// One transfer without end, in which bursts and pauses alternate, beginning with a burst.
    OnOff {
        /// Mean of the exponentially distributed length of a burst.
        on: Duration,
        /// Mean of the exponentially distributed length of a pause.
        off: Duration,
        /// Rate offered in a burst; `None` for as much as the connection takes.
        rate: Option<Bitrate>,
    },
    /// Only messages of one size at fixed intervals.
    Messages(Messages),
    /// No traffic.
    Silent,
}

/// Messages of one size at fixed intervals. `anabranch_core` sends each message in a DATAGRAM
/// frame, which may be lost. Over TCP, the messages follow each other in one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Messages {
    /// Time between two messages; above zero.
    pub interval: Duration,
    /// Bytes of each message; at least [`Messages::LEAST`].
    pub size: u32,
    /// Maximum number of messages.
    pub count: u64,
    /// Traffic class, where the transport distinguishes classes.
    pub class: TrafficClass,
}

impl Messages {
    /// Smallest size of a message, bytes: each carries the time it was sent and its number.
    pub const LEAST: u32 = 16;
}

/// A transfer that the application opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Number of the transfer, counted from 0.
    pub number: u64,
    /// Bytes of the transfer; `None` without end.
    pub bytes: Option<u64>,
    /// When the application requested the transfer.
    pub opened: Time,
}

/// The application of one flow.
#[derive(Clone, Debug)]
pub struct Source {
    traffic: Traffic,
    random: Rng,
    next_number: u64,
    /// Transfers that are due but not yet opened.
    due: VecDeque<Transfer>,
    completed: u64,
    /// Bytes that an on-off or message source has offered but that were not yet written; `u64::MAX`
    /// for no limit.
    offered: u64,
    /// When the current random time of the source ends: a burst, a pause or the gap before the next
    /// transfer.
    next_change: Time,
    /// When an on-off source with a rate offers its next bytes, or a message source offers its next
    /// message.
    next_quantum: Time,
    on: bool,
    /// When the application stops, and whether it has stopped.
    stop: Time,
    stopped: bool,
    /// Number of messages offered so far.
    messages: u64,
}

/// An on-off source with a rate offers at once the bytes for this period, but at least
/// [`LEAST_QUANTUM`] bytes.
const QUANTUM: Duration = Duration::from_millis(1);
const LEAST_QUANTUM: u64 = 1000;

impl Source {
    /// A source that draws from the substream of `seed` called `traffic.<name>`. It does nothing
    /// before [`start`](Self::start).
    pub fn new(traffic: Traffic, seed: u64, name: &str) -> Self {
        Source {
            traffic,
            random: Rng::substream(seed, &format!("traffic.{name}")),
            next_number: 0,
            due: VecDeque::new(),
            completed: 0,
            offered: 0,
            next_change: Time::MAX,
            next_quantum: Time::MAX,
            on: false,
            stop: Time::MAX,
            stopped: false,
            messages: 0,
        }
    }

    /// Stops the application at `stop`. From then on, it opens no transfers and offers no bytes.
    #[must_use]
    pub fn until(mut self, stop: Time) -> Self {
        self.stop = stop;
        self
    }

    /// Draws a delay of the start from the source's random stream, uniform in `[0, most]`.
    pub fn start_jitter(&mut self, most: Duration) -> Duration {
        let most = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX - 1);
        Duration::from_nanos(self.random.below(most.saturating_add(1)))
    }

    /// Starts the application at `now`.
    pub fn start(&mut self, now: Time) {
        match self.traffic {
            Traffic::Bulk => self.open(now, None),
            Traffic::Transfers { size, repeat } => {
                if repeat > 0 {
                    self.open(now, Some(size.max(1)));
                }
            }
            Traffic::Poisson { interval, .. } => self.next_change = now + self.draw(interval),
            Traffic::OnOff { .. } => {
                self.open(now, None);
                self.next_change = now;
            }
            Traffic::Messages(_) => {
                self.open(now, None);
                self.next_quantum = now;
            }
            Traffic::Silent => {}
        }
    }

    /// Handles everything that is due by `now`.
    pub fn handle(&mut self, now: Time) {
        if now >= self.stop && !self.stopped {
            self.stopped = true;
            (self.next_change, self.next_quantum) = (Time::MAX, Time::MAX);
            self.offered = 0;
        }
        while self.next_change <= now || self.next_quantum <= now {
            let at = self.next_change.min(self.next_quantum);
            match self.traffic {
                Traffic::Poisson { size, interval } => {
                    self.open(at, Some(size.max(1)));
                    self.next_change = at + self.draw(interval).max(Duration::from_nanos(1));
                }
                Traffic::OnOff { on, off, rate } if self.next_change <= self.next_quantum => {
                    self.on = !self.on;
                    let length = self.draw(if self.on { on } else { off });
                    self.next_change = at + length.max(Duration::from_nanos(1));
                    match (self.on, rate) {
                        (true, None) => self.offered = u64::MAX,
                        (false, None) => self.offered = 0,
                        (true, Some(_)) => self.next_quantum = at,
                        (false, Some(_)) => self.next_quantum = Time::MAX,
                    }
                }
                Traffic::OnOff { rate: Some(rate), .. } => {
                    let quantum = rate.bytes_in(QUANTUM).max(LEAST_QUANTUM);
                    self.offered = self.offered.saturating_add(quantum);
                    let spacing = rate.time_to_send(quantum).max(Duration::from_nanos(1));
                    self.next_quantum = at + spacing;
                }
                Traffic::Messages(messages) => {
                    self.offered += u64::from(messages.size);
                    self.messages += 1;
                    let more = self.messages < messages.count;
                    let interval = messages.interval.max(Duration::from_nanos(1));
                    self.next_quantum = if more { at + interval } else { Time::MAX };
                }
                _ => {
                    self.next_change = Time::MAX;
                    self.next_quantum = Time::MAX;
                }
            }
        }
    }

    /// When to call [`handle`](Self::handle) next; `None` if never.
    pub fn next_event(&self) -> Option<Time> {
        let stop = if self.stopped { Time::MAX } else { self.stop };
        let next = self.next_change.min(self.next_quantum).min(stop);
        (next < Time::MAX).then_some(next)
    }

    /// The next transfer to open; `None` if none is due.
    pub fn next_transfer(&mut self) -> Option<Transfer> {
        self.due.pop_front()
    }

    /// Puts back a transfer that could not be opened yet.
    pub fn put_back(&mut self, transfer: Transfer) {
        self.due.push_front(transfer);
    }

    /// Bytes that a transfer without end may write now.
    pub fn offered(&self) -> u64 {
        match self.traffic {
            _ if self.stopped => 0,
            Traffic::OnOff { .. } | Traffic::Messages(_) => self.offered,
            _ => u64::MAX,
        }
    }

    /// Whether the application has stopped.
    pub fn has_stopped(&self) -> bool {
        self.stopped
    }

    /// Number of messages offered so far; zero if the traffic is not messages.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// Subtracts `bytes` that were written from the offered bytes.
    pub fn take(&mut self, bytes: u64) {
        if self.offered < u64::MAX {
            self.offered = self.offered.saturating_sub(bytes);
        }
    }

    /// Records that a transfer is complete, and requests the next one if there is one.
    pub fn complete(&mut self, now: Time) {
        self.completed += 1;
        if let Traffic::Transfers { size, repeat } = self.traffic
            && self.next_number < repeat
            && !self.stopped
        {
            self.open(now, Some(size.max(1)));
        }
    }

    /// Number of transfers that were reported complete.
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// Whether all transfers of the application are complete and no more will follow.
    pub fn is_done(&self) -> bool {
        match self.traffic {
            Traffic::Transfers { repeat, .. } => self.completed >= repeat,
            _ => self.stopped && self.completed >= self.next_number,
        }
    }

    fn open(&mut self, opened: Time, bytes: Option<u64>) {
        self.due.push_back(Transfer { number: self.next_number, bytes, opened });
        self.next_number += 1;
    }

    fn draw(&mut self, mean: Duration) -> Duration {
        Duration::from_nanos((self.random.exponential(mean.as_secs_f64()) * 1e9) as u64)
    }
}
