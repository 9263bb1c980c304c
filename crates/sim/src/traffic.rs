//! Traffic of applications: what they send, and when. The same values serve every transport.
//!
//! A [`Source`] opens transfers and says how many bytes of each may be written by now; the agent that
//! owns it writes them as its transport has room, and reports transfers that are complete. Each
//! transfer is a connection of its own over TCP, and a stream of its own over `anabranch_core`.

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
    /// Transfers of one size, each as soon as the one before it is complete.
    Transfers {
        /// Bytes of each; at least 1.
        size: u64,
        /// Number of transfers.
        repeat: u64,
    },
    /// Transfers of one size that begin at random, whether the ones before are complete or not: the
    /// times between two beginnings are exponentially distributed, the first counts from the start.
    Poisson {
        /// Bytes of each; at least 1.
        size: u64,
        /// Mean time between two beginnings.
        interval: Duration,
    },
    /// One transfer without end whose source alternates between bursts and pauses, beginning with a burst.
    OnOff {
        /// Mean length of a burst, exponentially distributed.
        on: Duration,
        /// Mean length of a pause, exponentially distributed.
        off: Duration,
        /// Rate offered in a burst; `None` for as much as the connection takes.
        rate: Option<Bitrate>,
    },
    /// Messages of one size at fixed intervals, and nothing else.
    Messages(Messages),
    /// Nothing.
    Silent,
}

/// Messages of one size at fixed intervals. `anabranch_core` carries each as a datagram frame, which may
/// be lost; over TCP they follow each other in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Messages {
    /// Time between two messages; above zero.
    pub interval: Duration,
    /// Bytes of each; at least [`Messages::LEAST`].
    pub size: u32,
    /// Maximum number of messages.
    pub count: u64,
    /// Traffic class, where the transport distinguishes classes.
    pub class: TrafficClass,
}

impl Messages {
    /// Bytes of the time and the number that each message carries.
    pub const LEAST: u32 = 16;
}

/// A transfer that the application opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Counted from 0.
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
    /// Transfers that are due and not opened yet.
    due: VecDeque<Transfer>,
    completed: u64,
    /// Bytes that an on-off or message source has offered and that were not taken yet; `u64::MAX` for no limit.
    offered: u64,
    /// When the current exponential time of the source ends.
    next_change: Time,
    /// When an on-off source with a rate offers its next quantum, or a message source its next message.
    next_quantum: Time,
    on: bool,
    /// When the application wants to stop, and whether it has.
    stop: Time,
    stopped: bool,
    /// Messages that have been offered.
    messages: u64,
}

/// An on-off source with a rate offers the bytes of this time at once, but at least [`LEAST_QUANTUM`] bytes.
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

    /// Stops the application at `stop`: it opens nothing and offers nothing from then on.
    #[must_use]
    pub fn until(mut self, stop: Time) -> Self {
        self.stop = stop;
        self
    }

    /// A time to wait before the start, uniform in `[0, most]`, from the source's own draws.
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

    /// When to call [`handle`](Self::handle) next.
    pub fn next_event(&self) -> Option<Time> {
        let stop = if self.stopped { Time::MAX } else { self.stop };
        let next = self.next_change.min(self.next_quantum).min(stop);
        (next < Time::MAX).then_some(next)
    }

    /// The next transfer to open.
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

    /// Messages that have been offered, of traffic that consists of them.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// Takes `bytes` off those offered, because they were written.
    pub fn take(&mut self, bytes: u64) {
        if self.offered < u64::MAX {
            self.offered = self.offered.saturating_sub(bytes);
        }
    }

    /// Records that a transfer is complete, and opens the next one if there is one.
    pub fn complete(&mut self, now: Time) {
        self.completed += 1;
        if let Traffic::Transfers { size, repeat } = self.traffic
            && self.next_number < repeat
            && !self.stopped
        {
            self.open(now, Some(size.max(1)));
        }
    }

    /// Transfers reported complete.
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// Whether everything that the application will ever send is complete.
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
