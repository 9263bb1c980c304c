//! The machine's network interfaces and changes to them.

mod route;
mod watch;

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

pub use route::{Route, route};
pub use watch::Watch;

/// A network interface with its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Name of the interface, such as `wlan0`.
    pub name: String,
    /// The system's number for it; another one after it has been unplugged and plugged in again.
    pub index: u32,
    /// Addresses of the interface, in the system's order.
    pub addresses: Vec<IpAddr>,
    /// Whether the interface is switched on and has a carrier.
    pub running: bool,
    /// Whether the interface leads back to this machine only.
    pub loopback: bool,
}

impl Interface {
    /// The address from which it would reach `remote`: of the same family, and link-local exactly if
    /// `remote` is. `None` if it has no such address.
    pub fn source_for(&self, remote: IpAddr) -> Option<IpAddr> {
        let fits = |address: &&IpAddr| {
            address.is_ipv4() == remote.is_ipv4()
                && is_link_local(**address) == is_link_local(remote)
        };
        self.addresses.iter().find(fits).copied()
    }
}

/// Whether an address is in 169.254.0.0/16 or fe80::/10: of use to neighbours only, and ambiguous
/// without an interface (RFC 3927, RFC 4291 §2.5.6).
pub fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

/// Every interface that has an address, by rising number.
///
/// # Errors
/// If the system does not tell, or on systems where this library does not know how to ask.
#[cfg(unix)]
pub fn list() -> io::Result<Vec<Interface>> {
    use nix::net::if_::{InterfaceFlags, if_nametoindex};
    let mut found: BTreeMap<String, Interface> = BTreeMap::new();
    for entry in nix::ifaddrs::getifaddrs()? {
        let flags = entry.flags;
        let interface = found.entry(entry.interface_name.clone()).or_insert_with(|| Interface {
            index: if_nametoindex(entry.interface_name.as_str()).unwrap_or(0),
            name: entry.interface_name,
            addresses: Vec::new(),
            running: flags.contains(InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING),
            loopback: flags.contains(InterfaceFlags::IFF_LOOPBACK),
        });
        let Some(address) = entry.address else { continue };
        if let Some(v4) = address.as_sockaddr_in() {
            interface.addresses.push(v4.ip().into());
        } else if let Some(v6) = address.as_sockaddr_in6() {
            interface.addresses.push(v6.ip().into());
        }
    }
    let mut list: Vec<_> = found.into_values().filter(|i| !i.addresses.is_empty()).collect();
    list.sort_by_key(|interface| interface.index);
    Ok(list)
}

/// Interfaces cannot be listed here.
#[cfg(not(unix))]
pub fn list() -> io::Result<Vec<Interface>> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "interfaces can be listed on Unix only"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(addresses: &[&str]) -> Interface {
        let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
        Interface { name: "wan".into(), index: 3, addresses, running: true, loopback: false }
    }

    #[test]
    fn a_source_is_of_the_family_and_scope_of_the_destination() {
        let wan = interface(&["fe80::1", "192.0.2.7", "2001:db8::7", "169.254.3.4"]);
        let source = |remote: &str| wan.source_for(remote.parse().unwrap()).map(|a| a.to_string());
        assert_eq!(source("198.51.100.1").as_deref(), Some("192.0.2.7"));
        assert_eq!(source("2001:db8::1").as_deref(), Some("2001:db8::7"));
        assert_eq!(source("fe80::2").as_deref(), Some("fe80::1"));
        assert_eq!(source("169.254.0.1").as_deref(), Some("169.254.3.4"));
        assert_eq!(interface(&["fe80::1"]).source_for("192.0.2.1".parse().unwrap()), None);
    }

    #[test]
    fn the_machine_reaches_itself() {
        let list = list().unwrap();
        let loopback = list.iter().find(|interface| interface.loopback).unwrap();
        assert!(loopback.running && loopback.index > 0, "{loopback:?}");
        assert!(loopback.addresses.iter().any(IpAddr::is_loopback), "{loopback:?}");
    }
}
