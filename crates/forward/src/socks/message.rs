//! The messages of a SOCKS5 client and the answers to them (RFC 1928 §3–6), without I/O.

use core::net::{Ipv4Addr, Ipv6Addr};
use std::io;

use super::super::target::Target;

/// Bytes of the longest message of a client: a request with a name of 255 bytes.
pub const MAX_MESSAGE: usize = 4 + 1 + 255 + 2;

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// The answer to a greeting that allows no authentication.
pub const WELCOME: [u8; 2] = [VERSION, NO_AUTHENTICATION];
/// The answer to a greeting that does not.
pub const NO_METHOD: [u8; 2] = [VERSION, 0xff];

/// How far a message has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// The message goes on for this many bytes or more, at least one: whoever reads them reads nothing behind it.
    More(usize),
    /// It is whole.
    Done(T),
}

/// What is wrong with what a client said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SocksError {
    /// It is another protocol, or SOCKS4.
    #[error("a client does not speak SOCKS5{advice}", advice = if *.0 == 4 {
        " but SOCKS4: set it to SOCKS5, in curl with --socks5-hostname"
    } else {
        ": use this port as a SOCKS5 proxy only"
    })]
    Version(u8),
    /// It insists on authentication.
    #[error("a client insists on a password: set it to use this proxy without one")]
    Method,
    /// It wants something else than a TCP connection.
    #[error("a client asks for SOCKS command {0}: only TCP connections (CONNECT) are carried")]
    Command(u8),
    /// It names the target in an unknown way.
    #[error(
        "a client names its target by address type {0}: use a name, an IPv4 or an IPv6 address"
    )]
    AddressType(u8),
    /// No host can have this name, or the port is 0.
    #[error("a client names an impossible target: check its host name, and that its port is not 0")]
    Target,
}

/// Reads a client's greeting. It is good if the client can do without authentication.
///
/// # Errors
/// If it is none, or the client cannot.
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

/// Reads a client's request: where it wants to be connected to.
///
/// # Errors
/// If it is none, or asks for something else.
pub fn request(bytes: &[u8]) -> Result<Step<Target>, SocksError> {
    let [version, command, _, kind, rest @ ..] = bytes else {
        return Ok(Step::More(4 - bytes.len()));
    };
    check_version(*version)?;
    let host_len = match (*kind, rest.first()) {
        (IPV4, _) => 4,
        (NAME, Some(len)) => 1 + usize::from(*len),
        (NAME, None) => return Ok(Step::More(1)),
        (IPV6, _) => 16,
        (other, _) => return Err(SocksError::AddressType(other)),
    };
    let Some((host, port)) = rest.split_at_checked(host_len) else {
        return Ok(Step::More(host_len + 2 - rest.len()));
    };
    let [high, low, ..] = port else { return Ok(Step::More(2 - port.len())) };
    // The whole request is read before it is refused: closing on unread bytes would reset the connection, and
    // with it the answer.
    if *command != CONNECT {
        return Err(SocksError::Command(*command));
    }
    let port = u16::from_be_bytes([*high, *low]);
    let target = host_text(*kind, host).and_then(|host| Target::new(&host, port));
    target.filter(|target| target.port != 0).map(Step::Done).ok_or(SocksError::Target)
}

fn check_version(version: u8) -> Result<(), SocksError> {
    if version == VERSION { Ok(()) } else { Err(SocksError::Version(version)) }
}

/// The host as text: an address in its usual form, or a name, which its length precedes.
fn host_text(kind: u8, bytes: &[u8]) -> Option<String> {
    match kind {
        IPV4 => <[u8; 4]>::try_from(bytes).ok().map(|bytes| Ipv4Addr::from(bytes).to_string()),
        IPV6 => <[u8; 16]>::try_from(bytes).ok().map(|bytes| Ipv6Addr::from(bytes).to_string()),
        _ => core::str::from_utf8(bytes.get(1..)?).ok().map(str::to_owned),
    }
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reply {
    /// The connection is there.
    Succeeded = 0,
    /// It is not, for no reason that has a number.
    Failure = 1,
    /// The other side does not permit it.
    NotAllowed = 2,
    /// Nothing leads there, or the peer is not connected.
    NetworkUnreachable = 3,
    /// The target does not answer, or has no address.
    HostUnreachable = 4,
    /// Nothing listens there.
    Refused = 5,
    /// Something else than CONNECT was asked for.
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

    /// The reply as bytes. The address that it may tell is left 0, as ssh does: it would be the peer's.
    pub fn encode(self) -> [u8; 10] {
        [VERSION, self as u8, 0, 1, 0, 0, 0, 0, 0, 0]
    }
}

impl SocksError {
    /// What a client that made this mistake is answered; nothing if it would not understand.
    pub fn answer(self) -> Vec<u8> {
        match self {
            SocksError::Version(_) => Vec::new(),
            SocksError::Method => NO_METHOD.to_vec(),
            SocksError::Command(_) => Reply::Command.encode().to_vec(),
            SocksError::AddressType(_) => Reply::AddressType.encode().to_vec(),
            SocksError::Target => Reply::HostUnreachable.encode().to_vec(),
        }
    }
}
