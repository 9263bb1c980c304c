//! The operations that a case may perform on any engine.

use std::sync::Arc;

use anabranch_policy::PolicySpec;
use anabranch_policy::scheduler::Scheduler;
use anabranch_types::Time;

/// A symbol that was sent by decision of the scheduler, or retransmitted by a subflow itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    pub path: u32,
    pub symbol: u64,
    pub at: Time,
}

/// The network and the windows under a sender. They are fixed, so that a case knows what fits.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// One-way delay of each path, milliseconds.
    pub delays: &'static [u64],
    /// Congestion window of every path, full packets. The first loss cuts it to a quarter, a
    /// timeout to one packet, a penalty to a half.
    pub cwnd: u64,
    /// Number of symbols that the receiver grants beyond those read; `None` for thousands.
    pub receive: Option<u64>,
    /// Whether the receiving application reads.
    pub reads: bool,
}

impl Setting {
    pub const fn new(delays: &'static [u64], cwnd: u64) -> Self {
        Setting { delays, cwnd, receive: None, reads: true }
    }
}

/// An engine with a scheduler of its own and all paths up, in virtual time.
pub trait Rig {
    /// The current time.
    fn now(&self) -> Time;
    /// Writes data for this many symbols, 50 at most.
    fn write(&mut self, symbols: u64);
    /// Lets a millisecond pass.
    fn step(&mut self);
    /// Sets whether everything on the path is lost from now on.
    fn darken(&mut self, path: u32, dark: bool);
    /// Symbols that have been sent, oldest first.
    fn departures(&self) -> Vec<Departure>;
    /// Number of symbols that the receiver has in order.
    fn delivered(&self) -> u64;
    /// The congestion window of a path, full packets.
    fn cwnd(&mut self, path: u32) -> u64;

    /// Runs for this many milliseconds.
    fn run(&mut self, millis: u64) {
        for _ in 0..millis {
            self.step();
        }
    }

    /// The symbols that left on a path, in order.
    fn on(&self, path: u32) -> Vec<u64> {
        let sent = self.departures();
        sent.iter().filter(|sent| sent.path == path).map(|sent| sent.symbol).collect()
    }
}

/// Makes the scheduler of an engine's one connection.
pub type MakeScheduler = Arc<dyn Fn() -> Box<dyn Scheduler> + Send + Sync>;

/// Makes an engine from its setting, a scheduler, and the specification of a recovery policy.
pub type Make = fn(Setting, MakeScheduler, &PolicySpec) -> Box<dyn Rig>;

/// Every engine that carries out the contract, by name.
pub const ENGINES: [(&str, Make); 2] = [("core", crate::core::make), ("tcp", crate::tcp::make)];
