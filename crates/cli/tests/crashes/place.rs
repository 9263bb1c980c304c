//! The networks that the two sides run in.

use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::lab::Lab;
use super::process::{Running, program, recovered};
use super::slow::Slow;

/// Megabits a second of each link.
const RATE: u32 = 40;
/// Delay, and packets lost per thousand, of each link in each direction.
pub type Links = [(Duration, u32); 2];
/// The usual links.
const LINKS: Links = [(Duration::from_millis(12), 10), (Duration::from_millis(30), 5)];
/// Links that lose one packet in ten each way.
pub const LOSSY: Links = [(Duration::from_millis(12), 100), (Duration::from_millis(30), 100)];
/// Links with a round trip of a fifth of a second.
pub const LONG: Links = [(Duration::from_millis(100), 5), (Duration::from_millis(100), 10)];

/// A side of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The side that listens.
    Server,
    /// The side that connects.
    Client,
}

/// The two sides on loopback, or each in a network namespace of its own, with two links between them.
pub struct Place {
    lab: Option<(Slow, Lab)>,
    is_long: bool,
}

impl Place {
    /// Both sides on loopback.
    pub fn loopback() -> Self {
        Place { lab: None, is_long: false }
    }

    /// Both sides in namespaces, named after a test. Where these cannot be made, prints why and returns `None`.
    pub fn apart(name: &str) -> Option<Self> {
        Place::beyond(name, LINKS)
    }

    /// Both sides in namespaces, with other links.
    pub fn beyond(name: &str, links: Links) -> Option<Self> {
        let lab = Lab::new(name, links.len() as u8, RATE)?;
        let slow = Slow::new(&lab, &links)?;
        Some(Place { lab: Some((slow, lab)), is_long: links == LONG })
    }

    /// Makes the first link drop everything, or carry packets again.
    pub fn silence(&self, silent: bool) {
        let Some((_, lab)) = &self.lab else { return };
        if silent { lab.silence(1) } else { lab.unsilence(1) }
    }

    /// The longest time from the restart of what was killed until bytes are carried again: [`recovered`]; where round trips
    /// take long, five round trips more, since a peer counts as silent only after some.
    pub fn recovered(&self) -> Duration {
        recovered() + if self.is_long { LONG[0].0 * 10 } else { Duration::ZERO }
    }

    /// Whether links lie between the sides.
    pub fn is_apart(&self) -> bool {
        self.lab.is_some()
    }

    /// The server's IP address.
    pub fn server(&self) -> &'static str {
        if self.is_apart() { Lab::SERVER } else { "127.0.0.1" }
    }

    /// A UDP address of the server that is free now.
    pub fn free_address(&self) -> String {
        let any = format!("{}:0", self.server());
        self.on(Side::Server, || UdpSocket::bind(any).unwrap().local_addr().unwrap().to_string())
    }

    /// Starts the program on one side, with these words; its state goes below `home`.
    pub fn start(&self, side: Side, home: &Path, words: &[&str]) -> Running {
        let mut command = match &self.lab {
            None => Command::new(program()),
            Some((_, lab)) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", &lab.space(name(side)), &program()]);
                command
            }
        };
        command.args(words);
        Running::run(command, home)
    }

    /// Runs `act` in the namespace of one side.
    pub fn on<T: Send>(&self, side: Side, act: impl FnOnce() -> T + Send) -> T {
        match &self.lab {
            None => act(),
            Some((_, lab)) => lab.inside(name(side), |_| act()),
        }
    }
}

/// The name of a side's namespace in the lab.
const fn name(side: Side) -> &'static str {
    match side {
        Side::Server => "s",
        Side::Client => "c",
    }
}
