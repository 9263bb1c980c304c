//! Facts that `doctor` found on the machine and the links, not yet judged.

use std::net::{IpAddr, SocketAddr};

use serde::Serialize;

use super::trace::Trace;
use crate::confine::Kernel;

/// Everything that an examination found.
#[derive(Clone, Debug, Serialize)]
pub struct Facts {
    /// This machine.
    pub machine: Machine,
    /// This machine's interfaces with an address, loopback left out.
    pub interfaces: Vec<Interface>,
    /// The peer, if one was named.
    pub peer: Option<Peer>,
}

/// Facts that concern all links.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The program runs as root.
    pub root: bool,
    /// Kernel features that can confine commands; `None` where nothing is known of them.
    pub kernel: Option<Kernel>,
    /// The user has turned confinement off.
    pub unconfined: bool,
    /// The clock shows a time in 2026 or later; this program did not exist before.
    pub clock_is_set: bool,
    /// Capabilities of a UDP socket; `None` if none could be made.
    pub socket: Option<Socket>,
    /// Some interface has an IPv6 address and a route.
    pub ipv6: bool,
}

/// Capabilities of a UDP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Socket {
    /// Most datagrams sent with one call; 1 without segmentation offload.
    pub send_segments: usize,
    /// Most datagrams received as one; 1 without receive offload.
    pub receive_segments: usize,
    /// Size of the send buffer that the system granted, bytes.
    pub send_buffer: usize,
    /// Size of the receive buffer that the system granted, bytes.
    pub receive_buffer: usize,
    /// Size that was requested for each of the two buffers, bytes.
    pub wanted_buffer: usize,
}

/// A network interface.
#[derive(Clone, Debug, Serialize)]
pub struct Interface {
    /// Name of the interface.
    pub name: String,
    /// Addresses of the interface.
    pub addresses: Vec<IpAddr>,
    /// The interface is switched on and has a carrier.
    pub running: bool,
    /// Result of binding a socket to the interface.
    pub binding: Binding,
    /// The reverse-path filter in force for IPv4: 0 none, 1 strict, 2 loose (RFC 3704); `None` if the
    /// system does not tell.
    pub reverse_filter: Option<u8>,
    /// The ways out, one for each family of addresses.
    pub ways: Vec<Way>,
}

/// Result of binding a socket to an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Binding {
    /// Binding works.
    Works,
    /// Binding is not permitted.
    Denied,
    /// Binding was not tried or failed for another reason.
    Unknown,
}

/// The way out of an interface, in one family of addresses.
#[derive(Clone, Debug, Serialize)]
pub struct Way {
    /// The interface's address.
    pub source: IpAddr,
    /// Destination: the peer, or an address that stands for the internet.
    pub to: IpAddr,
    /// A socket bound to the interface has a route; `None` if the system does not tell.
    pub route: Option<bool>,
    /// The router of that route.
    pub gateway: Option<IpAddr>,
    /// Name of the interface through which packets of this address leave if the socket is not bound.
    pub unbound: Option<String>,
}

/// The peer and the links to it.
#[derive(Clone, Debug, Serialize)]
pub struct Peer {
    /// The peer as it was given.
    pub name: String,
    /// An ICMP message reported that nothing listens on the port.
    pub refused: bool,
    /// The links that were tried.
    pub paths: Vec<Path>,
}

/// A link to the peer.
#[derive(Clone, Debug, Serialize)]
pub struct Path {
    /// The interface, or the address if it is on none.
    pub name: String,
    /// Local address.
    pub local: IpAddr,
    /// The peer's address.
    pub remote: SocketAddr,
    /// Result of trying the link.
    pub outcome: Outcome,
    /// Measurements, if the peer answered.
    pub measured: Option<Measured>,
}

/// Result of trying a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The peer answered.
    Answered,
    /// The peer did not answer.
    Silent,
    /// There is no route.
    NoRoute,
    /// A socket could not be made or used, and why.
    Failed(String),
}

/// The fate of the packets on a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Measured {
    /// Least round-trip time, ms; `None` without a sample, as below.
    pub rtt_min_ms: Option<f64>,
    /// Median round-trip time, ms.
    pub rtt_median_ms: Option<f64>,
    /// Packets to the peer whose fate is known.
    pub sent: u64,
    /// Packets to the peer that were lost.
    pub lost: u64,
    /// Packets that the peer sent, as far as their numbers tell.
    pub peer_sent: u64,
    /// Packets from the peer that were lost.
    pub peer_lost: u64,
    /// Packets sent to the peer as ECN-capable, but at most the number acknowledged.
    pub ecn_sent: u64,
    /// ECN-capable packets that arrived with the mark.
    pub ecn_arrived: u64,
    /// ECN-capable packets that arrived with Congestion Experienced.
    pub ecn_ce: u64,
    /// The longest IP packets that were shown to pass to the peer, bytes.
    pub mtu: u32,
    /// The longest IP packets that the settings of the peer and of this program allow, bytes.
    pub mtu_limit: u32,
    /// Results of filling the link, if that was asked for.
    pub load: Option<Load>,
    /// Why the link could not be filled, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_failed: Option<String>,
    /// The recording in short, if one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// Why the link could not be recorded, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_failed: Option<String>,
}

/// Measurements of a link while it is filled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Load {
    /// Rate of acknowledged bytes, Mb/s, headers included.
    pub mbps: f64,
    /// Share of the packets that was lost.
    pub loss: f64,
    /// Median round-trip time meanwhile, ms.
    pub rtt_median_ms: Option<f64>,
}

impl Way {
    /// Whether there is a route, as far as can be told.
    pub fn leads_on(&self) -> bool {
        self.route != Some(false)
    }
}

impl Measured {
    /// Share lost on the way to the peer.
    pub fn loss(&self) -> f64 {
        share(self.lost, self.sent)
    }

    /// Share lost on the way back.
    pub fn peer_loss(&self) -> f64 {
        share(self.peer_lost, self.peer_sent)
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
