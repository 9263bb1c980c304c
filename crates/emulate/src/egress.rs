use anabranch_types::Ecn;
use std::io;
use std::net::SocketAddr;

use quinn_udp::{EcnCodepoint, Transmit};

use crate::socket::Socket;

/// Sends datagrams that are due together with few system calls: a run of datagrams with equal size
/// and ECN codepoint goes out as one segmented buffer (GSO) if the kernel supports it.
#[derive(Debug)]
pub(crate) struct Egress {
    buffer: Vec<u8>,
    segment: usize,
    count: usize,
    ecn: Ecn,
    /// Whether the run ends with a shorter datagram, after which none can be added.
    closed: bool,
}

/// Longest run, bytes: the length field of an IPv4 header must be able to hold it.
const MAX_RUN_BYTES: usize = 65_000;

impl Egress {
    pub(crate) fn new() -> Self {
        Egress {
            buffer: Vec::with_capacity(1 << 16),
            segment: 0,
            count: 0,
            ecn: Ecn::NotEct,
            closed: false,
        }
    }

    /// Adds a datagram to the run. If the datagram does not fit, the run is sent first. Returns how
    /// many datagrams could not be sent.
    pub(crate) fn push(
        &mut self,
        socket: &Socket,
        to: SocketAddr,
        ecn: Ecn,
        payload: &[u8],
    ) -> u64 {
        let unsent = if self.fits(socket, ecn, payload) { 0 } else { self.flush(socket, to) };
        if self.count == 0 {
            self.segment = payload.len();
            self.ecn = ecn;
        }
        self.closed = payload.len() < self.segment || payload.is_empty();
        self.buffer.extend_from_slice(payload);
        self.count += 1;
        unsent
    }

    /// Sends the run. Returns how many datagrams could not be sent.
    pub(crate) fn flush(&mut self, socket: &Socket, to: SocketAddr) -> u64 {
        if self.count == 0 {
            return 0;
        }
        let unsent = match self.send(socket, to, &self.buffer) {
            Ok(()) => 0,
            Err(_) if self.count > 1 => self.send_singly(socket, to),
            Err(_) => 1,
        };
        self.buffer.clear();
        self.count = 0;
        self.closed = false;
        unsent
    }

    fn fits(&self, socket: &Socket, ecn: Ecn, payload: &[u8]) -> bool {
        self.count == 0
            || !self.closed
                && ecn == self.ecn
                && payload.len() <= self.segment
                && !payload.is_empty()
                && self.count < socket.state.max_gso_segments()
                && self.buffer.len() + payload.len() <= MAX_RUN_BYTES
    }

    fn send(&self, socket: &Socket, to: SocketAddr, contents: &[u8]) -> io::Result<()> {
        let transmit = Transmit {
            destination: to,
            ecn: EcnCodepoint::from_bits(self.ecn.bits()),
            contents,
            segment_size: (contents.len() > self.segment).then_some(self.segment),
            src_ip: None,
        };
        socket.state.try_send(socket.as_ref(), &transmit)
    }

    /// Sends the run with one system call per datagram, for kernels or routes that refuse segmented
    /// buffers.
    fn send_singly(&self, socket: &Socket, to: SocketAddr) -> u64 {
        let singles = self.buffer.chunks(self.segment.max(1));
        singles.map(|datagram| u64::from(self.send(socket, to, datagram).is_err())).sum()
    }
}
