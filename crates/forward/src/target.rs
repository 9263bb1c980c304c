use core::fmt;
use core::str::FromStr;
use std::net::SocketAddr;

use anabranch::TrafficClass;

/// Longest host name (RFC 1035 §2.3.4).
pub(super) const MAX_HOST: usize = 255;

/// A host, by name or address, and a TCP port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// Name or address, without brackets; 1 to 255 bytes.
    pub host: String,
    /// Port; 0 only where one is to be chosen by the system.
    pub port: u16,
}

impl Target {
    /// A target; `None` if `host` cannot be the name or address of a host.
    pub fn new(host: &str, port: u16) -> Option<Self> {
        let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        let fits = (1..=MAX_HOST).contains(&host.len())
            && host.bytes().all(|byte| byte.is_ascii_graphic() && !b"[]/@,".contains(&byte));
        fits.then(|| Target { host: host.to_owned(), port })
    }

    /// A target that can be connected to: its port is not 0.
    pub(super) fn to_reach(host: &str, port: &str) -> Option<Self> {
        port.parse().ok().filter(|port| *port != 0).and_then(|port| Target::new(host, port))
    }
}

impl From<SocketAddr> for Target {
    fn from(address: SocketAddr) -> Self {
        Target { host: address.ip().to_string(), port: address.port() }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Target { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

impl FromStr for Target {
    type Err = ParseForwardError;

    /// Reads `HOST:PORT`; an IPv6 address stands in brackets.
    fn from_str(text: &str) -> Result<Self, ParseForwardError> {
        let error = || ParseForwardError { given: text.to_owned(), allowed: TARGET };
        match parts(text).as_slice() {
            [host, port] => Target::to_reach(host, port).ok_or_else(error),
            _ => Err(error()),
        }
    }
}

/// A forward of UDP, written as ssh writes those of TCP: `[BIND:]PORT:HOST:PORT`. A class may follow: `,class=live`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpForward {
    /// Where datagrams are received; the loopback address unless given.
    pub bind: Target,
    /// Where the datagrams are sent, as the other side resolves it.
    pub target: Target,
    /// How the datagrams want to be treated, in both directions; like the bytes of TCP connections unless given.
    pub class: TrafficClass,
}

impl fmt::Display for UdpForward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.bind, self.target)?;
        if self.class == TrafficClass::Bulk { Ok(()) } else { write!(f, ", {}", self.class.name()) }
    }
}

/// Where SOCKS clients are accepted, as ssh writes it: `[BIND:]PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dynamic {
    /// Where connections are accepted; the loopback address unless given.
    pub bind: Target,
}

impl fmt::Display for Dynamic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bind.fmt(f)
    }
}

/// A forward does not parse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseForwardError {
    /// The value given.
    pub given: String,
    /// The values that are allowed.
    pub allowed: &'static str,
}

impl fmt::Display for ParseForwardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not accepted; allowed: {}", self.given, self.allowed)
    }
}

impl std::error::Error for ParseForwardError {}

const TARGET: &str = "HOST:PORT, such as localhost:22 or [2001:db8::1]:80";
const DYNAMIC: &str = "[BIND:]PORT, such as 1080, [::1]:1080 or 0.0.0.0:1080";
const LOOPBACK: &str = "127.0.0.1";
const UDP_FORWARD: &str = "[BIND:]PORT:HOST:PORT, such as 5353:localhost:53 or 0.0.0.0:5353:resolver.example:53, and after it \
    ,class=interactive or ,class=live";
pub(super) const FORWARD: &str = "[BIND:]PORT:HOST:PORT, such as 5432:db.example:5432 or \
    0.0.0.0:8080:localhost:80, or for either side the path of a Unix socket, which has a / or ends in .sock, such as \
    8080:/run/app.sock";

impl FromStr for UdpForward {
    type Err = ParseForwardError;

    fn from_str(text: &str) -> Result<Self, ParseForwardError> {
        let read = || {
            let (way, class) = text.split_once(",class=").unwrap_or((text, "bulk"));
            let class = TrafficClass::named(class)?;
            let (bind, target) = match parts(way).as_slice() {
                [port, host, to] => (local(port)?, Target::to_reach(host, to)?),
                [bind, port, host, to] => (bound(bind, port)?, Target::to_reach(host, to)?),
                _ => return None,
            };
            Some(UdpForward { bind, target, class })
        };
        read().ok_or_else(|| ParseForwardError { given: text.to_owned(), allowed: UDP_FORWARD })
    }
}

impl FromStr for Dynamic {
    type Err = ParseForwardError;

    fn from_str(text: &str) -> Result<Self, ParseForwardError> {
        let bind = match parts(text).as_slice() {
            [port] => local(port),
            [bind, port] => bound(bind, port),
            _ => None,
        };
        let error = || ParseForwardError { given: text.to_owned(), allowed: DYNAMIC };
        bind.map(|bind| Dynamic { bind }).ok_or_else(error)
    }
}

/// Where to listen if no address is given.
pub(super) fn local(port: &str) -> Option<Target> {
    bound(LOOPBACK, port)
}

/// Where to listen: `*` and an empty host stand for all addresses.
pub(super) fn bound(host: &str, port: &str) -> Option<Target> {
    let host = if host.is_empty() || host == "*" { "0.0.0.0" } else { host };
    port.parse().ok().and_then(|port| Target::new(host, port))
}

/// Splits at colons outside brackets.
pub(super) fn parts(text: &str) -> Vec<&str> {
    let mut inside = false;
    text.split(|c| {
        match c {
            '[' => inside = true,
            ']' => inside = false,
            _ => {}
        }
        c == ':' && !inside
    })
    .collect()
}
