//! Selects the peer's addresses that are worth trying from an interface.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Destinations tried from one interface, at most.
const MOST: usize = 2;

/// Indices of the pairs in `routed` that are worth trying: a neighbour if there is one, else up to [`MOST`], public
/// ones first. A pair is an address of this machine and one of the peer that it has a route to.
pub(super) fn chosen(routed: &[(IpAddr, SocketAddr)]) -> Vec<usize> {
    let near = |(source, remote): &(IpAddr, SocketAddr)| are_neighbours(*source, remote.ip());
    if let Some(place) = routed.iter().position(near) {
        return vec![place];
    }
    let mut places: Vec<usize> = (0..routed.len()).collect();
    places.sort_by_key(|place| routed.get(*place).is_some_and(|(_, to)| is_private(to.ip())));
    places.truncate(MOST);
    places
}

/// Whether the internet does not route this address.
pub fn is_private(ip: IpAddr) -> bool {
    match ip {
        // 100.64.0.0/10 is shared by the customers of a provider (RFC 6598).
        IpAddr::V4(ip) => {
            ip.is_private() || ip.is_loopback() || shared_bits(ip) == shared_bits(CGN)
        }
        IpAddr::V6(ip) => ip.is_unique_local() || ip.is_loopback(),
    }
}

const CGN: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 0);

fn shared_bits(ip: Ipv4Addr) -> u32 {
    u32::from(ip) >> 22
}

/// Whether two addresses are likely on one link: in the same /24 (IPv4) or the same /64 (IPv6).
pub fn are_neighbours(a: IpAddr, b: IpAddr) -> bool {
    match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => u32::from(a) >> 8 == u32::from(b) >> 8,
        (IpAddr::V6(a), IpAddr::V6(b)) => u128::from(a) >> 64 == u128::from(b) >> 64,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn neighbours_and_private_addresses_are_known() {
        assert!(are_neighbours(ip("192.168.1.5"), ip("192.168.1.9")));
        assert!(!are_neighbours(ip("192.168.1.5"), ip("192.168.2.9")));
        assert!(are_neighbours(ip("2001:db8::5"), ip("2001:db8::9")));
        assert!(!are_neighbours(ip("2001:db8::5"), ip("192.168.1.5")));
        for private in
            ["10.1.2.3", "192.168.0.1", "100.64.0.1", "100.127.255.255", "fd00::1", "::1"]
        {
            assert!(is_private(ip(private)), "{private}");
        }
        for public in ["8.8.8.8", "100.128.0.1", "100.63.0.1", "2001:db8::1"] {
            assert!(!is_private(ip(public)), "{public}");
        }
    }

    #[test]
    fn a_neighbour_is_reached_directly_and_others_by_public_addresses() {
        let remotes = ["192.168.1.9:5", "203.0.113.5:5", "10.9.9.9:5", "8.8.8.8:5"];
        let from = |source: &str| {
            let routed = remotes.map(|remote| (ip(source), remote.parse().unwrap()));
            chosen(&routed)
        };
        assert_eq!(from("192.168.1.5"), [0]);
        assert_eq!(from("172.16.0.5"), [1, 3]);
    }
}
