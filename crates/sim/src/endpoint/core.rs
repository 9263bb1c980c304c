//! `anabranch_core` endpoints as agents. Every pair of ports is a path, and there is no
//! cryptography.

mod application;
mod flow;
mod messages;
mod progress;
mod receiver;
mod sender;
mod stripes;

#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::LazyLock;

use anabranch_core::config::TransportConfig;
use anabranch_core::crypto::null::NullCrypto;
use anabranch_core::endpoint::{Datagram, Endpoint, EndpointConfig};
use anabranch_core::handshake::Permitted;
use anabranch_core::path::SocketId;
use anabranch_core::profiles::Profile;
use anabranch_policy::view::TrafficClass;
use anabranch_types::{Rng, Time};

pub use flow::CoreFlow;
pub use receiver::CoreReceiver;
pub use sender::CoreSender;
pub use stripes::Stripe;

use super::FlowFailure;
use crate::engine::{Arrival, Outbox};
use crate::engine::{Payload, PortId};
use crate::traffic::Messages;

/// Configuration of both ends of a flow between core endpoints.
#[derive(Clone, Debug)]
pub struct CoreConfig {
    /// Policies of the connection.
    pub profile: Profile,
    /// Limits of both endpoints.
    pub transport: TransportConfig,
    /// Bytes that a packet has on the wire in addition to its UDP payload: 28 for IPv4 and UDP. A
    /// negative value reproduces the packet sizes of a paper whose headers are smaller.
    pub overhead: i32,
    /// Traffic class of the streams.
    pub class: TrafficClass,
    /// Messages to send in addition to the streams.
    pub messages: Option<Messages>,
    /// When the application stops writing. Data written by then is still delivered.
    pub stop: Time,
    /// Packets after which a packet key is due for replacement; `None` for no limit.
    pub key_limit: Option<u64>,
    /// The connection's part in a stream that several connections carry; `None` if the connection
    /// carries whole streams.
    pub stripe: Option<Stripe>,
}

impl CoreConfig {
    /// This profile with the default limits over IPv4. Path MTU discovery is off, so that packets
    /// have one size and runs can be compared.
    pub fn new(profile: Profile) -> Self {
        let transport = TransportConfig { mtu_limit: None, ..TransportConfig::default() };
        CoreConfig {
            profile,
            transport,
            overhead: 28,
            class: TrafficClass::Bulk,
            messages: None,
            stop: Time::MAX,
            key_limit: None,
            stripe: None,
        }
    }
}

/// First octet of the addresses of both ends, and their port, before any address changes.
const FIRST_NETWORK: u8 = 10;
const FIRST_PORT: u16 = 1000;
/// Length of the pattern, bytes. A prime, so that the pattern never lines up with symbols, buffers
/// or power-of-two sizes.
const PATTERN: usize = 65_521;
/// Maximum number of bytes written or read at a time.
const CHUNK: usize = 16_384;
/// Largest datagram that an endpoint may send, bytes.
const MAX_DATAGRAM: usize = 65_536;
/// Maximum number of datagrams that an endpoint sends at one instant. More indicate an endless
/// loop.
const MOST_AT_ONCE: u32 = 200_000;
/// Approximate bytes of packet, symbol and frame headers in a datagram.
const SYMBOL_HEADER: u64 = 40;
/// Keys of the two ends. Without cryptography they only serve as names.
const SENDER_KEY: u8 = 1;
const RECEIVER_KEY: u8 = 2;

/// The bytes that the sender writes and the receiver must read. They are random and repeat after
/// [`PATTERN`] bytes; one more chunk is stored so that slices never wrap.
#[derive(Clone, Copy, Debug)]
struct Pattern(&'static [u8]);

impl Pattern {
    fn new() -> Self {
        static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| {
            let mut bytes = vec![0; PATTERN];
            Rng::substream(0, "agent.pattern").fill(&mut bytes);
            bytes.extend_from_within(..CHUNK);
            bytes
        });
        Pattern(&BYTES)
    }

    /// The stream's bytes from `offset` on: `len` of them, but at most [`CHUNK`].
    fn at(&self, offset: u64, len: usize) -> &[u8] {
        let start = (offset % PATTERN as u64) as usize;
        self.0.get(start..start + len.min(CHUNK)).unwrap_or_default()
    }
}

/// An endpoint that uses the ports of an agent: its socket `n` is the agent's port `n`.
#[derive(Debug)]
struct Host {
    endpoint: Endpoint,
    ports: Vec<PortId>,
    /// At the sending end, the current version of each port's address.
    versions: Vec<u32>,
    /// The last octet of the other end's addresses.
    other: u8,
    overhead: i32,
    buffer: Vec<u8>,
    failure: Option<FlowFailure>,
}

impl Host {
    fn new(config: &CoreConfig, seed: u64, name: &str, key: u8) -> Self {
        let mut endpoint = EndpointConfig::new(config.profile.clone());
        // Only the limits of the scenario apply; the endpoint has no memory limit of its own.
        endpoint.memory = u64::MAX;
        endpoint.transport = config.transport.clone();
        endpoint.wall_clock = 1_700_000_000_000_000_000;
        if key == RECEIVER_KEY {
            endpoint.responder.permitted = Permitted::Anyone;
        }
        let random = Rng::substream(seed, &format!("agent.{name}.{key}"));
        let limit = config.key_limit.unwrap_or(u64::MAX);
        let crypto = NullCrypto::new([key; 32]).with_key_limit(limit).with_random_numbers(random);
        Host {
            endpoint: Endpoint::new(endpoint, Box::new(crypto), Time::ZERO),
            ports: Vec::new(),
            versions: Vec::new(),
            other: SENDER_KEY + RECEIVER_KEY - key,
            overhead: config.overhead,
            buffer: vec![0; MAX_DATAGRAM],
            failure: None,
        }
    }

    /// The address of an end's port at `version`. The upper 16 bits count how often the interface
    /// has moved, the lower 16 bits how often a NAT has changed the UDP port.
    fn address(end: u8, port: usize, version: u32) -> SocketAddr {
        let [.., high, low] = (port as u32).to_be_bytes();
        let network = FIRST_NETWORK.wrapping_add((version >> 16) as u8);
        let address = IpAddr::V4(Ipv4Addr::new(network, high, low, end));
        SocketAddr::new(address, FIRST_PORT.wrapping_add(version as u16))
    }

    /// The version of the address of a port: the inverse of [`address`](Self::address).
    fn version(address: SocketAddr) -> u32 {
        let IpAddr::V4(ip) = address.ip() else { return 0 };
        let moves = ip.octets()[0].wrapping_sub(FIRST_NETWORK);
        u32::from(moves) << 16 | u32::from(address.port().wrapping_sub(FIRST_PORT))
    }

    /// Hands a packet to the endpoint. The packet's stream number is the version of the sender's
    /// address: the source of data packets and the destination of replies.
    fn receive(&mut self, arrival: Arrival<'_>) {
        let Payload::Datagram(payload) = arrival.payload else { return };
        let Some(port) = self.ports.iter().position(|port| *port == arrival.port) else { return };
        let version = match self.versions.get(port) {
            // Packets to an earlier address are lost.
            Some(own) if *own != arrival.stream => return,
            Some(_) => 0,
            None => arrival.stream,
        };
        let datagram = Datagram {
            socket: SocketId(port as u32),
            remote: Host::address(self.other, port, version),
            ecn: arrival.ecn,
            payload,
        };
        self.endpoint.handle_datagram(arrival.now, datagram);
    }

    /// Sends all packets that the endpoint has ready.
    fn transmit(&mut self, now: Time, out: &mut Outbox<'_>) {
        let mut sent = 0;
        while let Some(transmit) = self.endpoint.poll_transmit(now, &|_| true, &mut self.buffer) {
            let path = transmit.socket.0 as usize;
            let (Some(port), Some(bytes)) = (self.ports.get(path), self.buffer.get(..transmit.len))
            else {
                continue;
            };
            let own = self.versions.get(path).copied();
            let version = own.unwrap_or_else(|| Host::version(transmit.remote));
            let mut payload = out.buffer();
            payload.extend_from_slice(bytes);
            let size = i64::from(self.overhead) + transmit.len as i64;
            let size = u32::try_from(size.max(1)).unwrap_or(u32::MAX);
            out.send_in(*port, version, size, transmit.ecn, Payload::Datagram(payload));
            sent += 1;
            if sent > MOST_AT_ONCE {
                return self.fail(FlowFailure::Stuck);
            }
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.endpoint.next_timeout().is_some_and(|(due, _)| due <= now) {
            self.endpoint.handle_timeout(now);
        }
    }

    fn next_timer(&self) -> Option<Time> {
        // A failed flow sets no timer, so that it cannot keep time from advancing.
        if self.failure.is_some() {
            return None;
        }
        self.endpoint.next_timeout().map(|(due, _)| due)
    }

    fn fail(&mut self, why: FlowFailure) {
        self.failure.get_or_insert(why);
    }
}
