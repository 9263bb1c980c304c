use core::fmt;
use core::str::FromStr;

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
    /// A target, if the host can be one.
    pub fn new(host: &str, port: u16) -> Option<Self> {
        let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        let fits = (1..=MAX_HOST).contains(&host.len())
            && host.bytes().all(|byte| byte.is_ascii_graphic() && !b"[]/@,".contains(&byte));
        fits.then(|| Target { host: host.to_owned(), port })
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
            [host, port] => {
                let port = port.parse().ok().filter(|port| *port != 0).ok_or_else(error)?;
                Target::new(host, port).ok_or_else(error)
            }
            _ => Err(error()),
        }
    }
}

/// A forward as ssh writes it: `[BIND:]PORT:HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// Where connections are accepted; the loopback address unless given.
    pub bind: Target,
    /// Where they lead, as the other side resolves it.
    pub target: Target,
}

impl fmt::Display for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.bind, self.target)
    }
}

/// A forward does not parse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseForwardError {
    /// What was given.
    pub given: String,
    /// What is allowed.
    pub allowed: &'static str,
}

impl fmt::Display for ParseForwardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not accepted; allowed: {}", self.given, self.allowed)
    }
}

impl std::error::Error for ParseForwardError {}

const TARGET: &str = "HOST:PORT, such as localhost:22 or [2001:db8::1]:80";
const FORWARD: &str =
    "[BIND:]PORT:HOST:PORT, such as 5432:db.example:5432 or 0.0.0.0:8080:localhost:80";

impl FromStr for Forward {
    type Err = ParseForwardError;

    fn from_str(text: &str) -> Result<Self, ParseForwardError> {
        let error = || ParseForwardError { given: text.to_owned(), allowed: FORWARD };
        let (bind, port, host, to) = match parts(text).as_slice() {
            [port, host, to] => ("127.0.0.1", *port, *host, *to),
            [bind, port, host, to] => {
                (if bind.is_empty() || *bind == "*" { "0.0.0.0" } else { *bind }, *port, *host, *to)
            }
            _ => return Err(error()),
        };
        let bind = port.parse().ok().and_then(|port| Target::new(bind, port));
        let target = to.parse().ok().filter(|to| *to != 0).and_then(|to| Target::new(host, to));
        match (bind, target) {
            (Some(bind), Some(target)) => Ok(Forward { bind, target }),
            _ => Err(error()),
        }
    }
}

/// Splits at colons outside brackets.
fn parts(text: &str) -> Vec<&str> {
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
