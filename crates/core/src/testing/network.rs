//! The network between a pair of endpoints.

use std::net::{Ipv4Addr, SocketAddr};

use anabranch_types::Time;

use crate::path::received::Ecn;

/// Room for the longest datagram.
pub(super) const ROOM: usize = 2048;

/// The network between the two ends. A closure is one, too, and serves as [`carry`](Self::carry).
pub trait Network {
    /// When a datagram arrives, and with which mark; `None` if it is lost.
    fn carry(&mut self, sent: &Sent<'_>) -> Option<(Time, Ecn)>;

    /// Where the datagrams that `side` sends on a path seem to come from. Answers reach it only there.
    fn source(&self, side: usize, path: u32) -> SocketAddr {
        address(side, path)
    }

    /// How many more datagrams `side` may send now.
    fn room(&self, _now: Time, _side: usize) -> usize {
        usize::MAX
    }

    /// A datagram left for an address that is not the other end's.
    fn stray(&mut self, _sent: &Sent<'_>) {}
}

impl<F: FnMut(&Sent<'_>) -> Option<(Time, Ecn)>> Network for F {
    fn carry(&mut self, sent: &Sent<'_>) -> Option<(Time, Ecn)> {
        self(sent)
    }
}

/// The address of an end on a path, as long as nothing translates it.
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
    /// Where the datagram is sent to.
    pub remote: SocketAddr,
    /// The sender's mark.
    pub ecn: Ecn,
    /// How many datagrams are under way already.
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
    /// Where the datagram seems to come from.
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
