//! The messages and datagrams of a SOCKS5 client and the answers to them (RFC 1928 §3–7), without I/O.

use core::net::{IpAddr, SocketAddr};
use std::io;

use super::super::target::Target;

/// Bytes of the longest message of a client: a request with a name of 255 bytes.
pub const MAX_MESSAGE: usize = 4 + 1 + 255 + 2;

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const CONNECT: u8 = 1;
const ASSOCIATE: u8 = 3;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// The answer to a greeting that allows no authentication.
pub const WELCOME: [u8; 2] = [VERSION, NO_AUTHENTICATION];
/// The answer to a greeting that insists on authentication.
pub const NO_METHOD: [u8; 2] = [VERSION, 0xff];

/// Request of a SOCKS5 client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A TCP connection to this target.
    Connect(Target),
    /// An association for the client's datagrams, with the address that it sends them from, if it gives one.
    Associate(Option<SocketAddr>),
}

/// Progress of reading a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// Least number of bytes of the message that are missing, 1 or more. Reading them does not go past its end.
    More(usize),
    /// The message is complete.
    Done(T),
}

/// Error in a client's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SocksError {
    /// The client speaks another protocol, or SOCKS4.
    #[error("a client does not speak SOCKS5{advice}", advice = if *.0 == 4 {
        " but SOCKS4: set it to SOCKS5, in curl with --socks5-hostname"
    } else {
        ": use this port as a SOCKS5 proxy only"
    })]
    Version(u8),
    /// The client insists on authentication.
    #[error("a client requires authentication: set it to use this proxy without a password")]
    Method,
    /// The client asks for another command.
    #[error(
        "a client asks for SOCKS command {0}: only TCP connections (CONNECT) and datagrams (UDP ASSOCIATE) are carried"
    )]
    Command(u8),
    /// The type of the target's address is unknown.
    #[error(
        "a client uses the unknown address type {0}: set it to send a host name, an IPv4 or an IPv6 address"
    )]
    AddressType(u8),
    /// No host can have this name, or the port is 0.
    #[error("a client names an impossible target: check its host name, and that its port is not 0")]
    Target,
    /// A datagram ends within its header.
    #[error("a client sends a datagram without the head that SOCKS5 asks for")]
    Short,
    /// A datagram is a fragment of a longer one.
    #[error("a client sends datagrams in parts: only whole ones are carried")]
    Fragment,
}

/// Reads a client's greeting. It is valid if the client can do without authentication.
///
/// # Errors
/// If the bytes are not a greeting, or the client requires authentication.
pub fn greeting(bytes: &[u8]) -> Result<Step<()>, SocksError> {
    let [version, count, methods @ ..] = bytes else { return Ok(Step::More(2 - bytes.len())) };
    check_version(*version)?;
    let count = usize::from(*count);
    match methods.get(..count) {
        None => Ok(Step::More(count - methods.len())),
        Some(methods) if methods.contains(&NO_AUTHENTICATION) => Ok(Step::Done(())),
        Some(_) => Err(SocksError::Method),
    }
}

/// Reads a client's request.
///
/// # Errors
/// If it is malformed, or asks for another command.
pub fn request(bytes: &[u8]) -> Result<Step<Asked>, SocksError> {
    let [version, command, _, kind, rest @ ..] = bytes else {
        return Ok(Step::More(4 - bytes.len()));
    };
    check_version(*version)?;
    let Named { kind, host, port, .. } = match named(*kind, rest)? {
        Step::More(count) => return Ok(Step::More(count)),
        Step::Done(named) => named,
    };
    // The whole request is read before it is refused: closing on unread bytes would reset the connection, and
    // with it the answer.
    match *command {
        CONNECT => target(kind, host, port).map(|to| Step::Done(Asked::Connect(to))),
        // The address that the client sends from is only a hint; a name is ignored.
        ASSOCIATE => {
            let from = address(kind, host).map(|ip| SocketAddr::new(ip, port));
            Ok(Step::Done(Asked::Associate(from)))
        }
        other => Err(SocksError::Command(other)),
    }
}

/// Reads a client's datagram: its target and its payload.
///
/// # Errors
/// If it is malformed, or only a fragment.
pub fn datagram(bytes: &[u8]) -> Result<(Target, &[u8]), SocksError> {
    let [_, _, fragment, kind, rest @ ..] = bytes else { return Err(SocksError::Short) };
    let Step::Done(Named { kind, host, port, rest }) = named(*kind, rest)? else {
        return Err(SocksError::Short);
    };
    if *fragment != 0 {
        return Err(SocksError::Fragment);
    }
    Ok((target(kind, host, port)?, rest))
}

/// The header of an answer from `target`.
pub fn datagram_head(target: &Target) -> Vec<u8> {
    let mut head = vec![0, 0, 0];
    match target.host.parse() {
        Ok(ip) => push_address(&mut head, SocketAddr::new(ip, target.port)),
        Err(_) => {
            // A host has 255 bytes at most.
            head.extend([NAME, u8::try_from(target.host.len()).unwrap_or(u8::MAX)]);
            head.extend_from_slice(target.host.as_bytes());
            head.extend(target.port.to_be_bytes());
        }
    }
    head
}

fn push_address(out: &mut Vec<u8>, address: SocketAddr) {
    match address.ip() {
        IpAddr::V4(ip) => {
            out.push(IPV4);
            out.extend(ip.octets());
        }
        IpAddr::V6(ip) => {
            out.push(IPV6);
            out.extend(ip.octets());
        }
    }
    out.extend(address.port().to_be_bytes());
}

/// A host and a port as they stand in a message, and what follows them.
struct Named<'a> {
    kind: u8,
    /// An address, or a name preceded by its length.
    host: &'a [u8],
    port: u16,
    rest: &'a [u8],
}

fn named(kind: u8, bytes: &[u8]) -> Result<Step<Named<'_>>, SocksError> {
    let host_len = match (kind, bytes.first()) {
        (IPV4, _) => 4,
        (NAME, Some(len)) => 1 + usize::from(*len),
        (NAME, None) => return Ok(Step::More(1)),
        (IPV6, _) => 16,
        (other, _) => return Err(SocksError::AddressType(other)),
    };
    let Some((host, rest)) = bytes.split_at_checked(host_len) else {
        return Ok(Step::More(host_len + 2 - bytes.len()));
    };
    let [high, low, rest @ ..] = rest else { return Ok(Step::More(2 - rest.len())) };
    Ok(Step::Done(Named { kind, host, port: u16::from_be_bytes([*high, *low]), rest }))
}

fn target(kind: u8, host: &[u8], port: u16) -> Result<Target, SocksError> {
    let target = host_text(kind, host).and_then(|host| Target::new(&host, port));
    target.filter(|target| target.port != 0).ok_or(SocksError::Target)
}

fn address(kind: u8, host: &[u8]) -> Option<IpAddr> {
    match kind {
        IPV4 => <[u8; 4]>::try_from(host).ok().map(IpAddr::from),
        IPV6 => <[u8; 16]>::try_from(host).ok().map(IpAddr::from),
        _ => None,
    }
}

fn check_version(version: u8) -> Result<(), SocksError> {
    if version == VERSION { Ok(()) } else { Err(SocksError::Version(version)) }
}

/// The host as text: an address in its usual form, or a name, which its length precedes.
fn host_text(kind: u8, bytes: &[u8]) -> Option<String> {
    match kind {
        NAME => core::str::from_utf8(bytes.get(1..)?).ok().map(str::to_owned),
        _ => address(kind, bytes).map(|ip| ip.to_string()),
    }
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reply {
    /// The request is granted.
    Succeeded = 0,
    /// The request failed for a reason that has no number.
    Failure = 1,
    /// The peer does not permit the request.
    NotAllowed = 2,
    /// There is no route to the target, or the peer is not connected.
    NetworkUnreachable = 3,
    /// The target does not answer, or has no address.
    HostUnreachable = 4,
    /// Nothing listens at the target.
    Refused = 5,
    /// The command is neither CONNECT nor UDP ASSOCIATE.
    Command = 7,
    /// The kind of address is unknown.
    AddressType = 8,
}

impl Reply {
    /// The reply to a request whose connection failed.
    pub fn to_failed(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Reply::NotAllowed,
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::NotConnected => {
                Reply::NetworkUnreachable
            }
            io::ErrorKind::HostUnreachable | io::ErrorKind::NotFound => Reply::HostUnreachable,
            io::ErrorKind::ConnectionRefused => Reply::Refused,
            _ => Reply::Failure,
        }
    }

    /// The reply as bytes. The address in it is 0, as in ssh, since the real one is an address of the peer.
    pub fn encode(self) -> [u8; 10] {
        [VERSION, self as u8, 0, 1, 0, 0, 0, 0, 0, 0]
    }

    /// The reply that tells where datagrams are to be sent.
    pub fn encode_with(self, address: SocketAddr) -> Vec<u8> {
        let mut reply = vec![VERSION, self as u8, 0];
        push_address(&mut reply, address);
        reply
    }
}

impl SocksError {
    /// The answer to a client that made this mistake; empty if the client would not understand it.
    pub fn answer(self) -> Vec<u8> {
        match self {
            // Another protocol would not understand an answer, and a datagram has none.
            SocksError::Version(_) | SocksError::Short | SocksError::Fragment => Vec::new(),
            SocksError::Method => NO_METHOD.to_vec(),
            SocksError::Command(_) => Reply::Command.encode().to_vec(),
            SocksError::AddressType(_) => Reply::AddressType.encode().to_vec(),
            SocksError::Target => Reply::HostUnreachable.encode().to_vec(),
        }
    }
}
