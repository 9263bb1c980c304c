//! The network between a pair of endpoints.

use std::net::{Ipv4Addr, SocketAddr};

use anabranch_types::Time;

use crate::path::received::Ecn;

/// Buffer size that holds the longest datagram, bytes.
pub(super) const ROOM: usize = 2048;

/// The network between the two ends. A closure also implements the trait, as
/// [`carry`](Self::carry).
pub trait Network {
    /// Decides when a datagram arrives and with which ECN mark; `None` if it is lost.
    fn carry(&mut self, sent: &Sent<'_>) -> Option<(Time, Ecn)>;

    /// The source address of datagrams that `side` sends on a path, as the other end sees it.
    /// Datagrams reach `side` only at this address.
    fn source(&self, side: usize, path: u32) -> SocketAddr {
        address(side, path)
    }

    /// Number of datagrams that `side` may send now.
    fn room(&self, _now: Time, _side: usize) -> usize {
        usize::MAX
    }

    /// Notes a datagram to an address that is not the other end's.
    fn stray(&mut self, _sent: &Sent<'_>) {}
}

impl<F: FnMut(&Sent<'_>) -> Option<(Time, Ecn)>> Network for F {
    fn carry(&mut self, sent: &Sent<'_>) -> Option<(Time, Ecn)> {
        self(sent)
    }
}

/// The address of an end on a path without address translation.
pub fn address(side: usize, path: u32) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(10, 0, path as u8, 1 + side as u8), 1000))
}

/// A datagram that an endpoint sends.
#[derive(Clone, Copy, Debug)]
pub struct Sent<'a> {
    /// The current time.
    pub now: Time,
    /// Sending side: 0 connects, 1 accepts.
    pub side: usize,
    /// The path, which is the number of the socket on both sides.
    pub path: u32,
    /// Destination address of the datagram.
    pub remote: SocketAddr,
    /// The sender's ECN mark.
    pub ecn: Ecn,
    /// Number of datagrams already in the network.
    pub flying: usize,
    /// The UDP payload.
    pub payload: &'a [u8],
}

/// A datagram in the network.
#[derive(Clone, Debug)]
pub struct Flying {
    /// When the datagram arrives.
    pub arrives: Time,
    /// Receiving side: 0 connects, 1 accepts.
    pub to: usize,
    /// Path of the datagram.
    pub path: u32,
    /// Source address of the datagram, as the receiver sees it.
    pub from: SocketAddr,
    /// ECN mark on arrival.
    pub ecn: Ecn,
    pub(super) room: Vec<u8>,
}

impl Flying {
    /// The UDP payload.
    pub fn payload(&mut self) -> &mut [u8] {
        &mut self.room
    }
}
