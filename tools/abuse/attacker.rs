//! Sends floods, and counts what comes back.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use crate::Failure;
use crate::report::Flood;
use crate::sender::now;

/// Addresses of 127.0.0.0/8 that floods come from; each counts as a source of its own.
pub const SOURCES: usize = 256;

/// Datagrams are sent in bunches at this interval.
const TICK: Duration = Duration::from_millis(1);

/// Sockets on many addresses, and one that nobody reads.
pub struct Attacker {
    target: SocketAddr,
    rate: u64,
    sockets: Vec<UdpSocket>,
    decoy: UdpSocket,
}

impl Attacker {
    /// An attacker that sends `rate` messages a second to `target`.
    pub fn new(target: SocketAddr, rate: u64) -> Result<Self, Failure> {
        let mut sockets = Vec::new();
        for source in 0..SOURCES {
            let ip = Ipv4Addr::new(127, 9, (source / 250) as u8, (source % 250) as u8 + 2);
            let socket = UdpSocket::bind((ip, 0))?;
            socket.set_nonblocking(true)?;
            sockets.push(socket);
        }
        let decoy = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        Ok(Attacker { target, rate, sockets, decoy })
    }

    /// Sends the first message alone.
    pub fn send_one(&self, messages: &[Vec<u8>]) -> Result<(), Failure> {
        let (socket, message) = (self.sockets.first(), messages.first());
        let (socket, message) = socket.zip(message).ok_or("nothing to send")?;
        socket.send_to(message, self.target)?;
        std::thread::sleep(Duration::from_millis(50));
        self.drain();
        Ok(())
    }

    /// Floods the target from this many sources.
    pub fn flood(
        &self,
        sources: usize,
        messages: &[Vec<u8>],
        time: Duration,
    ) -> Result<Flood, Failure> {
        self.send(self.target, sources, messages, time)
    }

    /// Floods the socket that nobody reads.
    pub fn flood_decoy(&self, messages: &[Vec<u8>], time: Duration) -> Result<Flood, Failure> {
        self.send(self.decoy.local_addr()?, SOURCES, messages, time)
    }

    fn send(
        &self,
        to: SocketAddr,
        sources: usize,
        messages: &[Vec<u8>],
        time: Duration,
    ) -> Result<Flood, Failure> {
        let start = now();
        let mut flood = Flood::default();
        let mut pool = messages.iter().cycle();
        let mut sockets = self.sockets.iter().take(sources).cycle();
        while start.elapsed() < time {
            let due = (start.elapsed().as_secs_f64() * self.rate as f64) as u64;
            while flood.packets < due {
                let (Some(message), Some(socket)) = (pool.next(), sockets.next()) else { break };
                match socket.send_to(message, to) {
                    Ok(count) => flood.bytes += count as u64,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error.into()),
                }
                flood.packets += 1;
            }
            std::thread::sleep(TICK);
        }
        let (answers, answered) = self.drain();
        (flood.answers, flood.answered) = (answers, answered);
        Ok(flood)
    }

    /// Datagrams that have come back, and their bytes.
    fn drain(&self) -> (u64, u64) {
        let (mut packets, mut bytes) = (0, 0);
        let mut buffer = [0; 2048];
        for socket in &self.sockets {
            while let Ok(count) = socket.recv(&mut buffer) {
                packets += 1;
                bytes += count as u64;
            }
        }
        (packets, bytes)
    }
}
