//! The links between the two endpoints, with datagrams inside.

use anabranch_core::connection::Transmit;
use anabranch_core::endpoint::{Datagram, Endpoint};
use anabranch_core::path::received::Ecn as CoreEcn;
use anabranch_core::path::{PathAddress, SocketId, UDP_OVERHEAD};
use anabranch_types::Time;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::app::add_to_bin;
use super::mangle::{Arrived, Mangler};
use super::report::LinkReport;
use super::spec::Mangle;
use crate::link::{Delivery, Ecn, Link, LinkConfig, LinkConfigError, LinkOutput};

/// Which endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

/// A datagram inside a link.
#[derive(Debug)]
pub(super) struct InFlight {
    from: SocketAddr,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct Pair {
    forward: Link<InFlight>,
    reverse: Link<InFlight>,
    /// Address from which the client's datagrams appear to come.
    client: SocketAddr,
    server: SocketAddr,
    /// Bytes sent in the data direction in each bin.
    sent: Vec<u64>,
}

/// All links, both directions.
#[derive(Debug)]
pub(super) struct Network {
    pairs: Vec<Pair>,
    spare: Vec<Vec<u8>>,
    arrived: Vec<Arrived>,
    mangler: Option<Mangler>,
    mangled: Vec<Arrived>,
    pub(super) digest: u64,
    pub(super) datagrams: u64,
}

fn address(host: u8, link: usize, port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, link as u8, host)), port)
}

impl Network {
    pub(super) fn new(
        links: &[LinkConfig],
        reverse: &[LinkConfig],
        mangle: Option<Mangle>,
        seed: u64,
    ) -> Result<Self, LinkConfigError> {
        let mut pairs = Vec::new();
        for (index, config) in links.iter().enumerate() {
            let name = if config.name.is_empty() { index.to_string() } else { config.name.clone() };
            let back = reverse.get(index).cloned().unwrap_or_else(|| config.clean_reverse());
            pairs.push(Pair {
                forward: Link::new(config, seed, &name)?,
                reverse: Link::new(&back, seed, &format!("{name}.reverse"))?,
                client: address(1, index, 1000),
                server: address(2, index, 1000),
                sent: Vec::new(),
            });
        }
        Ok(Network {
            pairs,
            spare: Vec::new(),
            arrived: Vec::new(),
            mangler: mangle.map(|mangle| Mangler::new(mangle, seed)),
            mangled: Vec::new(),
            digest: 0xcbf2_9ce4_8422_2325,
            datagrams: 0,
        })
    }

    /// The client's path over a link.
    pub(super) fn path(&self, link: usize) -> PathAddress {
        PathAddress { socket: SocketId(link as u32), remote: self.pairs[link].server }
    }

    /// The client's datagrams come from another address from now on.
    pub(super) fn rebind(&mut self, link: usize) {
        let port = self.pairs[link].client.port();
        self.pairs[link].client.set_port(port + 1);
    }

    /// The client's interface gets another address.
    pub(super) fn readdress(&mut self, link: usize) {
        let client = &mut self.pairs[link].client;
        let IpAddr::V4(old) = client.ip() else { return };
        let [a, b, c, host] = old.octets();
        client.set_ip(IpAddr::V4(Ipv4Addr::new(a, b.wrapping_add(1), c, host)));
    }

    pub(super) fn next_event(&self) -> Option<Time> {
        let times = self
            .pairs
            .iter()
            .flat_map(|pair| [pair.forward.next_event(), pair.reverse.next_event()]);
        times.flatten().min()
    }

    /// Puts a datagram onto the link that its socket names.
    pub(super) fn send(&mut self, now: Time, from: Side, transmit: &Transmit, payload: &[u8]) {
        let link = transmit.socket.0 as usize;
        self.note(now, link, from, transmit);
        let Some(pair) = self.pairs.get_mut(link) else { return };
        let (channel, source) = match from {
            Side::Client => {
                add_to_bin(&mut pair.sent, now, transmit.len as u64 + UDP_OVERHEAD);
                (&mut pair.forward, pair.client)
            }
            Side::Server => {
                // Only the client's newest address leads anywhere.
                if transmit.remote != pair.client {
                    return;
                }
                (&mut pair.reverse, pair.server)
            }
        };
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(payload);
        let size = (payload.len() as u64 + UDP_OVERHEAD) as u32;
        let token = InFlight { from: source, bytes };
        if let Err(dropped) = channel.enqueue(now, size, to_link(transmit.ecn), token) {
            self.spare.push(dropped.token.bytes);
        }
    }

    fn note(&mut self, now: Time, link: usize, from: Side, transmit: &Transmit) {
        self.datagrams += 1;
        let fields = [
            now.as_nanos(),
            link as u64 * 2 + u64::from(from == Side::Server),
            transmit.len as u64 * 4 + u64::from(transmit.ecn.bits()),
        ];
        for field in fields {
            self.digest = (self.digest ^ field).wrapping_mul(0x0000_0100_0000_01b3);
            self.digest ^= self.digest >> 31;
        }
    }

    /// Hands every datagram that has arrived by `now` to its endpoint.
    pub(super) fn deliver(&mut self, now: Time, client: &mut Endpoint, server: &mut Endpoint) {
        for (index, pair) in self.pairs.iter_mut().enumerate() {
            for (side, channel) in
                [(Side::Server, &mut pair.forward), (Side::Client, &mut pair.reverse)]
            {
                channel.advance(now, |output| match output {
                    LinkOutput::Delivered(Delivery { token, ecn, .. }) => {
                        let InFlight { from, bytes } = token;
                        let ecn = from_link(ecn);
                        self.arrived.push(Arrived { link: index, to: side, from, ecn, bytes });
                    }
                    LinkOutput::Dropped(dropped) => self.spare.push(dropped.token.bytes),
                });
            }
        }
        if let Some(mangler) = &mut self.mangler {
            for arrived in self.arrived.drain(..) {
                mangler.pass(arrived, &mut self.mangled);
            }
            core::mem::swap(&mut self.arrived, &mut self.mangled);
        }
        for Arrived { link, to, from, ecn, mut bytes } in self.arrived.drain(..) {
            let endpoint = match to {
                Side::Server => &mut *server,
                Side::Client => &mut *client,
            };
            let socket = SocketId(link as u32);
            let payload = bytes.as_mut_slice();
            endpoint.handle_datagram(now, Datagram { socket, remote: from, ecn, payload });
            self.spare.push(bytes);
        }
    }

    /// Bits deliverable in the data direction between two times.
    pub(super) fn capacity(&mut self, from: Time, to: Time) -> f64 {
        self.pairs.iter().map(|pair| pair.forward.capacity_integral(from, to)).sum()
    }

    pub(super) fn reports(&self) -> Vec<LinkReport> {
        let report = |pair: &Pair| LinkReport {
            forward: *pair.forward.counters(),
            reverse: *pair.reverse.counters(),
            sent: pair.sent.clone(),
        };
        self.pairs.iter().map(report).collect()
    }
}

fn to_link(ecn: CoreEcn) -> Ecn {
    match ecn {
        CoreEcn::NotEct => Ecn::NotEct,
        CoreEcn::Ect0 => Ecn::Ect0,
        CoreEcn::Ect1 => Ecn::Ect1,
        CoreEcn::Ce => Ecn::Ce,
    }
}

fn from_link(ecn: Ecn) -> CoreEcn {
    match ecn {
        Ecn::NotEct => CoreEcn::NotEct,
        Ecn::Ect0 => CoreEcn::Ect0,
        Ecn::Ect1 => CoreEcn::Ect1,
        Ecn::Ce => CoreEcn::Ce,
    }
}
