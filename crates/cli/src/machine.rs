//! Classifies this machine's addresses.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use anabranch::interfaces::{self, Interface, is_link_local};
pub use anabranch::paths::{are_neighbours, is_private};

use crate::failure::Failure;

/// Every interface with an address.
pub fn interfaces() -> Result<Vec<Interface>, Failure> {
    interfaces::list().map_err(|error: io::Error| {
        Failure::failed(format!("cannot list the network interfaces: {error}"))
    })
}

/// Addresses at which other machines may reach this one: of each running interface the first of each
/// family, those that the internet routes first. Without any, those of the loopback interface.
pub fn reachable(list: &[Interface]) -> Vec<IpAddr> {
    let mut found: Vec<IpAddr> = Vec::new();
    for interface in list.iter().filter(|interface| interface.running && !interface.loopback) {
        for v4 in [true, false] {
            let fits = |ip: &&IpAddr| ip.is_ipv4() == v4 && !is_link_local(**ip);
            found.extend(interface.addresses.iter().find(fits));
        }
    }
    if found.is_empty() {
        let loopback = list.iter().filter(|interface| interface.loopback);
        found.extend(loopback.flat_map(|interface| &interface.addresses));
    }
    found.sort_by_key(|ip| is_private(*ip));
    found
}

/// The interface with this address.
pub fn interface_of(list: &[Interface], ip: IpAddr) -> Option<&Interface> {
    let loopback = |interface: &&Interface| interface.loopback && ip.is_loopback();
    let exact = list.iter().find(|interface| interface.addresses.contains(&ip));
    exact.or_else(|| list.iter().find(loopback))
}

/// Whether the system knows a way to `remote`, from `local` or from anywhere. Nothing is sent:
/// connecting a UDP socket asks the routing table only.
pub fn has_route(local: Option<IpAddr>, remote: SocketAddr) -> bool {
    let any: IpAddr = match remote {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind(SocketAddr::new(local.unwrap_or(any), 0));
    socket.is_ok_and(|socket| socket.connect(remote).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn interface(name: &str, addresses: &[&str], running: bool, loopback: bool) -> Interface {
        let addresses = addresses.iter().map(|text| ip(text)).collect();
        Interface { name: name.to_owned(), index: 1, addresses, running, loopback }
    }

    #[test]
    fn addresses_that_others_can_reach_come_first() {
        let lo = interface("lo", &["127.0.0.1", "::1"], true, true);
        let lan = ["192.168.1.5", "192.168.1.6", "fe80::1", "2001:db8::5"];
        let lan = interface("eth0", &lan, true, false);
        let down = interface("eth1", &["198.51.100.1"], false, false);
        let list = [lo, lan, down];
        assert_eq!(reachable(&list), [ip("2001:db8::5"), ip("192.168.1.5")]);
        assert_eq!(reachable(&list[..1]), [ip("127.0.0.1"), ip("::1")]);
        assert_eq!(interface_of(&list, ip("192.168.1.6")).unwrap().name, "eth0");
        assert_eq!(interface_of(&list, ip("127.0.0.9")).unwrap().name, "lo");
        assert!(interface_of(&list, ip("8.8.8.8")).is_none());
    }

    #[test]
    fn the_routing_table_is_asked() {
        assert!(has_route(None, "127.0.0.1:9".parse().unwrap()));
        assert!(!has_route(Some(ip("192.0.2.77")), "127.0.0.1:9".parse().unwrap()));
    }
}
