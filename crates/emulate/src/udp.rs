use core::time::Duration;
use std::io;
use std::net::SocketAddr;

use anabranch_types::Ecn;

use crate::clock::Clock;
use crate::egress::Egress;
use crate::ingress::Ingress;
use crate::network::{Arrival, Network};
use crate::socket::Socket;
use crate::worker::Wires;

/// Packets come from and go to UDP sockets: for each path first the socket that faces the sender,
/// then the one that faces the receiver.
#[derive(Debug)]
pub(crate) struct UdpWires {
    receiver: SocketAddr,
    /// Source of the sender's last datagram on each path.
    senders: Vec<Option<SocketAddr>>,
    ingress: Ingress,
    egress: Egress,
}

/// Bytes that IPv4 and UDP headers add to a payload.
const HEADER_BYTES: u32 = 28;

impl UdpWires {
    pub(crate) fn new(receiver: SocketAddr, paths: usize) -> Self {
        let senders = vec![None; paths];
        UdpWires { receiver, senders, ingress: Ingress::new(), egress: Egress::new() }
    }

    /// Address at the other end of a port, if it is known.
    fn peer(&self, port: usize) -> Option<SocketAddr> {
        if port % 2 == 1 {
            return Some(self.receiver);
        }
        self.senders.get(port / 2).copied().flatten()
    }
}

impl Wires for UdpWires {
    type Port = Socket;

    /// Limits the thread to 10 000 wake-ups a second, and lets datagrams that are due at nearly the
    /// same time leave in one system call.
    const GRANULARITY: Duration = Duration::from_micros(100);

    fn receive(
        &mut self,
        socket: &Socket,
        port: usize,
        clock: Clock,
        network: &mut Network,
    ) -> io::Result<bool> {
        let UdpWires { receiver, senders, ingress, .. } = self;
        let reading = clock.reading();
        ingress.receive(socket, |datagram| {
            if port % 2 == 1 && datagram.from != *receiver {
                return;
            }
            if let Some(sender) = senders.get_mut(port / 2).filter(|_| port.is_multiple_of(2)) {
                *sender = Some(datagram.from);
            }
            // A UDP payload is shorter than 2^16 bytes, so the cast loses nothing.
            let size = datagram.payload.len() as u32 + HEADER_BYTES;
            let now = reading.arrival(datagram.stamp);
            let (ecn, bytes) = (datagram.ecn, datagram.payload);
            network.arrive(port, Arrival { now, size, ecn, bytes });
        })
    }

    fn send(&mut self, socket: &Socket, port: usize, ecn: Ecn, bytes: &mut [u8]) -> u64 {
        match self.peer(port) {
            Some(peer) => self.egress.push(socket, peer, ecn, bytes),
            None => 1,
        }
    }

    fn flush(&mut self, socket: &Socket, port: usize) -> u64 {
        self.peer(port).map_or(0, |peer| self.egress.flush(socket, peer))
    }
}
