use std::io;
use std::net::IpAddr;

/// A route from the system's routing tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Number of the interface that packets leave through.
    pub interface: u32,
    /// The router that gets the packets; `None` if the destination is on the link itself.
    pub gateway: Option<IpAddr>,
}

/// Looks up the route to `to` in the routing tables, for packets with the source address `from`, and for
/// sockets bound to the interface with number `via`. `None` if there is none. Nothing is sent.
///
/// A socket that is bound to an interface without a route can send all the same: Linux then supposes
/// that every address is on the link. That is not a route, and is not reported as one.
///
/// # Errors
/// If the system does not tell, or on systems where this library does not know how to ask.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn route(to: IpAddr, from: Option<IpAddr>, via: Option<u32>) -> io::Result<Option<Route>> {
    use nix::sys::socket::{
        AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto,
        socket,
    };
    use std::os::fd::AsRawFd;
    let kind = SockProtocol::NetlinkRoute;
    let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, kind)?;
    let fd = socket.as_raw_fd();
    sendto(fd, &message::request(to, from, via), &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
    let mut buffer = [0; 4096];
    let length = recv(fd, &mut buffer, MsgFlags::empty())?;
    message::answer(buffer.get(..length).unwrap_or_default())
}

/// Routes cannot be asked for here.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn route(_: IpAddr, _: Option<IpAddr>, _: Option<u32>) -> io::Result<Option<Route>> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "routes can be asked for on Linux only"))
}

/// The messages of rtnetlink(7), in the byte order of the machine.
#[cfg(any(target_os = "linux", target_os = "android"))]
mod message {
    use super::Route;
    use nix::libc;
    use std::io;
    use std::net::IpAddr;

    /// Length of `struct nlmsghdr`.
    const HEADER: usize = 16;
    /// Length of `struct rtmsg`.
    const ROUTE: usize = 12;
    /// Asks for the matching table entry itself, not for the route computed from it (`linux/rtnetlink.h`).
    const RTM_F_FIB_MATCH: u32 = 0x2000;

    /// The message RTM_GETROUTE, which asks for a route.
    pub(super) fn request(to: IpAddr, from: Option<IpAddr>, via: Option<u32>) -> Vec<u8> {
        let bits = |ip: IpAddr| if ip.is_ipv4() { 32 } else { 128 };
        let family = if to.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let mut body = vec![family as u8, bits(to), from.map_or(0, bits), 0, 0, 0, 0, 0];
        body.extend(RTM_F_FIB_MATCH.to_ne_bytes());
        attribute(&mut body, libc::RTA_DST, &octets(to));
        if let Some(from) = from {
            attribute(&mut body, libc::RTA_SRC, &octets(from));
        }
        if let Some(via) = via {
            attribute(&mut body, libc::RTA_OIF, &via.to_ne_bytes());
        }
        let mut message = Vec::with_capacity(HEADER + body.len());
        message.extend(((HEADER + body.len()) as u32).to_ne_bytes());
        message.extend(libc::RTM_GETROUTE.to_ne_bytes());
        message.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
        message.extend([0; 8]);
        message.append(&mut body);
        message
    }

    fn octets(ip: IpAddr) -> Vec<u8> {
        match ip {
            IpAddr::V4(ip) => ip.octets().to_vec(),
            IpAddr::V6(ip) => ip.octets().to_vec(),
        }
    }

    fn attribute(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
        body.extend((4 + value.len() as u16).to_ne_bytes());
        body.extend(kind.to_ne_bytes());
        body.extend(value);
    }

    /// Reads the answer: RTM_NEWROUTE, or an error in its place.
    pub(super) fn answer(message: &[u8]) -> io::Result<Option<Route>> {
        let short =
            || io::Error::new(io::ErrorKind::UnexpectedEof, "the system's answer is too short");
        let kind =
            message.get(4..6).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes);
        let kind = kind.ok_or_else(short)?;
        if i32::from(kind) == libc::NLMSG_ERROR {
            let code = word(message, HEADER).ok_or_else(short)? as i32;
            let error = io::Error::from_raw_os_error(code.wrapping_neg());
            return match error.raw_os_error() {
                Some(libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ESRCH) => Ok(None),
                _ => Err(error),
            };
        }
        // Routes of other kinds lead to no peer: blackhole, unreachable and prohibit drop packets, local keeps them
        // here.
        let usable = message.get(HEADER + 7).is_some_and(|kind| *kind == libc::RTN_UNICAST);
        let attributes = message.get(HEADER + ROUTE..).ok_or_else(short)?;
        let interface = find(attributes, libc::RTA_OIF).and_then(|value| word(value, 0));
        let gateway = find(attributes, libc::RTA_GATEWAY).and_then(address);
        Ok(interface.filter(|_| usable).map(|interface| Route { interface, gateway }))
    }

    fn word(bytes: &[u8], at: usize) -> Option<u32> {
        Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
    }

    fn address(octets: &[u8]) -> Option<IpAddr> {
        let v4 = <[u8; 4]>::try_from(octets).ok().map(IpAddr::from);
        v4.or_else(|| <[u8; 16]>::try_from(octets).ok().map(IpAddr::from))
    }

    /// The value of an attribute.
    fn find(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
        loop {
            let half = |at: usize| {
                let bytes = attributes.get(at..at + 2)?.try_into().ok()?;
                Some(u16::from_ne_bytes(bytes))
            };
            let (length, kind) = (usize::from(half(0)?), half(2)?);
            let value = attributes.get(4..length)?;
            if kind == wanted {
                return Some(value);
            }
            attributes = attributes.get(length.next_multiple_of(4)..)?;
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn answers_that_make_no_sense_are_errors_and_none_panics() {
            for length in 0..64 {
                for byte in [0, 1, 4, 255] {
                    let _ = answer(&vec![byte; length]);
                }
            }
            assert!(answer(&[]).is_err());
        }

        #[test]
        fn attributes_are_found_behind_padding() {
            let mut body = Vec::new();
            attribute(&mut body, 9, &[7]);
            body.extend([0; 3]);
            attribute(&mut body, libc::RTA_OIF, &3_u32.to_ne_bytes());
            assert_eq!(find(&body, libc::RTA_OIF).and_then(|value| word(value, 0)), Some(3));
            assert_eq!(find(&body, libc::RTA_GATEWAY), None);
            body.truncate(10);
            assert_eq!(find(&body, libc::RTA_OIF), None);
        }
    }
}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use super::*;

    #[test]
    fn an_interface_leads_to_its_own_network_and_loopback_to_nowhere() {
        let list = super::super::list().unwrap();
        let loopback = list.iter().find(|interface| interface.loopback).unwrap();
        // This is a network for documentation (RFC 5737), to which no loopback interface leads.
        let elsewhere = "192.0.2.1".parse().unwrap();
        assert_eq!(route(elsewhere, None, Some(loopback.index)).unwrap(), None);
        assert!(route(elsewhere, None, Some(u32::MAX)).is_err());
    }
}
