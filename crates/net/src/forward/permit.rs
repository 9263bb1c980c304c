use core::fmt;
use core::str::FromStr;
use std::net::{IpAddr, SocketAddr};

use super::target::Target;

/// Where a peer's forwards may lead, or where it may listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permit {
    /// Anything on this machine's loopback addresses: what is permitted unless said otherwise.
    Loopback,
    /// Anything at all.
    Any,
    /// This host, as the peer writes it, at this port, or at any port.
    Only(String, Option<u16>),
}

impl Permit {
    /// Whether a forward to `target`, which was resolved to `address`, is covered.
    pub fn covers(&self, target: &Target, address: SocketAddr) -> bool {
        match self {
            Permit::Any => true,
            Permit::Loopback => is_loopback(address.ip()),
            Permit::Only(host, port) => {
                host.eq_ignore_ascii_case(&target.host)
                    && port.is_none_or(|port| port == target.port)
            }
        }
    }
}

/// Also of an IPv4 address in IPv6 form.
fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// A permission does not parse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsePermitError(String);

impl fmt::Display for ParsePermitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not accepted; allowed: loopback, any, HOST:PORT or HOST:*", self.0)
    }
}

impl std::error::Error for ParsePermitError {}

impl FromStr for Permit {
    type Err = ParsePermitError;

    fn from_str(text: &str) -> Result<Self, ParsePermitError> {
        let error = || ParsePermitError(text.to_owned());
        match text {
            "loopback" => Ok(Permit::Loopback),
            "any" => Ok(Permit::Any),
            _ => match text.strip_suffix(":*") {
                Some(host) => {
                    let target = Target::new(host, 1).ok_or_else(error)?;
                    Ok(Permit::Only(target.host, None))
                }
                None => {
                    let target: Target = text.parse().map_err(|_| error())?;
                    Ok(Permit::Only(target.host, Some(target.port)))
                }
            },
        }
    }
}
