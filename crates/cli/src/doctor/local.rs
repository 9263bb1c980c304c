//! Looking at this machine.

use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{SystemTime, UNIX_EPOCH};

use anabranch::interfaces::{self, Interface as Listed, is_link_local};
use anabranch::{SocketAbilities, SocketSpec};

use super::facts::{Binding, Interface, Machine, Socket, Way};
use crate::failure::Failure;
use crate::machine;

/// Addresses that stand for the internet: documentation's (RFC 5737, RFC 3849), for which no route can
/// be but the default one. Nothing is sent to them.
const INTERNET: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
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
    let others = list.iter().filter(|interface| !interface.loopback);
    let found: Vec<Interface> = others.map(|interface| look_at(&list, interface, peer)).collect();
    let leads_on = |way: &Way| way.source.is_ipv6() && way.route != Some(false);
    let machine = Machine {
        clock_is_set: clock_is_set(),
        socket: socket(),
        ipv6: found
            .iter()
            .any(|interface| interface.running && interface.ways.iter().any(leads_on)),
    };
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

fn look_at(list: &[Listed], interface: &Listed, peer: Option<IpAddr>) -> Interface {
    let targets: Vec<IpAddr> = peer.map_or(INTERNET.to_vec(), |peer| vec![peer]);
    let way = |to: &IpAddr| way(list, interface, *to);
    let ways =
        if interface.running { targets.iter().filter_map(way).collect() } else { Vec::new() };
    Interface {
        name: interface.name.clone(),
        addresses: interface.addresses.clone(),
        running: interface.running,
        binding: binding(interface),
        reverse_filter: reverse_filter(&interface.name),
        ways,
    }
}

/// The way from an interface to an address, if it has one of that family to start from.
fn way(list: &[Listed], interface: &Listed, to: IpAddr) -> Option<Way> {
    let source = interface.source_for(to)?;
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

/// The greater of the interface's setting and of that for all (Documentation/networking/ip-sysctl).
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
