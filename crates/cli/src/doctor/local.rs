//! Collects facts about this machine.

use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{SystemTime, UNIX_EPOCH};

use anabranch::interfaces::{self, Interface as Listed, is_link_local};
use anabranch::{SocketAbilities, SocketSpec};

use super::facts::{Binding, Interface, Machine, Socket, Way};
use crate::confine::{self, is_root};
use crate::failure::Failure;
use crate::machine::{self, are_neighbours};

/// Addresses that stand for the internet, by family: those for documentation (RFC 5737, RFC 3849,
/// RFC 9637), which as a rule only the default route covers. Nothing is sent to them.
const INTERNET: [&[IpAddr]; 2] = [
    &[
        IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
        IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1)),
        IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1)),
    ],
    &[
        IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
        IpAddr::V6(Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 1)),
    ],
];
/// The beginning of 2026, when this program did not exist yet: seconds since 1970.
const BEFORE: u64 = 1_767_225_600;

/// Looks at the machine and its interfaces: at the ways to `peer`, or to the internet if there is none.
/// Must be called within a tokio runtime.
///
/// # Errors
/// When the interfaces cannot be listed.
pub fn examine(peer: Option<IpAddr>) -> Result<(Machine, Vec<Interface>), Failure> {
    let list = machine::interfaces()?;
    let others = || list.iter().filter(|interface| !interface.loopback);
    let internet = internet(&list);
    let targets = peer.map_or_else(|| internet.clone(), |peer| vec![peer]);
    let ipv6 = internet.iter().filter(|to| to.is_ipv6());
    let machine = Machine {
        root: is_root(),
        kernel: confine::kernel(),
        unconfined: confine::is_turned_off(),
        clock_is_set: clock_is_set(),
        socket: socket(),
        ipv6: ipv6.flat_map(|to| others().filter_map(|i| way(&list, i, *to))).any(|w| w.leads_on()),
    };
    let found = others().map(|interface| look_at(&list, interface, &targets)).collect();
    Ok((machine, found))
}

fn socket() -> Option<Socket> {
    let local = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let found = SocketAbilities::of(&local.into()).ok()?;
    Some(Socket {
        send_segments: found.send_segments,
        receive_segments: found.receive_segments,
        send_buffer: found.send_buffer,
        receive_buffer: found.receive_buffer,
        wanted_buffer: SocketAbilities::WANTED_BUFFER,
    })
}

/// For each family, the first address of [`INTERNET`] that is on no link of this machine; test
/// networks sometimes use addresses for documentation.
fn internet(list: &[Listed]) -> Vec<IpAddr> {
    let own =
        |ip: &IpAddr| list.iter().flat_map(|i| &i.addresses).any(|own| are_neighbours(*own, *ip));
    INTERNET.iter().filter_map(|stand_ins| stand_ins.iter().copied().find(|ip| !own(ip))).collect()
}

fn look_at(list: &[Listed], interface: &Listed, targets: &[IpAddr]) -> Interface {
    let ways = targets.iter().filter_map(|to| way(list, interface, *to)).collect();
    Interface {
        name: interface.name.clone(),
        addresses: interface.addresses.clone(),
        running: interface.running,
        binding: binding(interface),
        reverse_filter: reverse_filter(&interface.name),
        ways,
    }
}

/// The way from a running interface to an address, if it has one of that family to start from.
fn way(list: &[Listed], interface: &Listed, to: IpAddr) -> Option<Way> {
    let source = interface.source_for(to).filter(|_| interface.running)?;
    let bound = interfaces::route(to, None, Some(interface.index));
    let unbound = interfaces::route(to, Some(source), None).ok().flatten();
    let name = |index: u32| list.iter().find(|i| i.index == index).map(|i| i.name.clone());
    Some(Way {
        source,
        to,
        route: bound.as_ref().ok().map(Option::is_some),
        gateway: bound.ok().flatten().and_then(|route| route.gateway),
        unbound: unbound.and_then(|route| name(route.interface)),
    })
}

fn binding(interface: &Listed) -> Binding {
    let own = interface.addresses.iter().find(|address| !is_link_local(**address));
    let Some(own) = own.filter(|_| interface.running) else { return Binding::Unknown };
    let spec = SocketSpec { local: SocketAddr::new(*own, 0), device: Some(interface.name.clone()) };
    match SocketAbilities::of(&spec) {
        Ok(_) => Binding::Works,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Binding::Denied,
        Err(_) => Binding::Unknown,
    }
}

/// The greater of the settings for this interface and for all interfaces (Documentation/networking/ip-sysctl).
fn reverse_filter(interface: &str) -> Option<u8> {
    let read = |name: &str| -> Option<u8> {
        let path = format!("/proc/sys/net/ipv4/conf/{name}/rp_filter");
        fs::read_to_string(path).ok()?.trim().parse().ok()
    };
    Some(read("all")?.max(read(interface)?))
}

#[expect(clippy::disallowed_methods, reason = "the wall clock itself is examined")]
fn clock_is_set() -> bool {
    SystemTime::now().duration_since(UNIX_EPOCH).is_ok_and(|time| time.as_secs() >= BEFORE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_internet_is_not_on_a_link_of_this_machine() {
        let interface = |address: &str| Listed {
            name: "eth0".to_owned(),
            index: 1,
            addresses: vec![address.parse().unwrap()],
            running: true,
            loopback: false,
        };
        let v4 = |address: &str| internet(&[interface(address)])[0].to_string();
        assert_eq!(v4("10.0.0.2"), "192.0.2.1");
        assert_eq!(v4("192.0.2.7"), "198.51.100.1");
    }
}
