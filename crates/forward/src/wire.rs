//! The messages at the beginning of a stream, before the bytes of the connection that it carries.

use std::io;

use super::place::{Place, SocketPath};
use super::target::{MAX_HOST, Target};
use anabranch::TrafficClass;
use anabranch::types::PeerText;

/// Version of the forwarding protocol.
pub const VERSION: u8 = 0;
/// Bytes of the fixed part of a request or an answer.
pub const HEAD_LEN: usize = 10;
/// Bytes of the text that follows it, at most.
pub const MAX_TEXT: usize = 1024;

const MAGIC: [u8; 4] = *b"abfw";

/// Request of the side that opens a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Connect to this target and splice.
    Connect(Place),
    /// Accept connections there, and open a stream for each, for as long as this stream is open.
    Listen(Place),
    /// A connection that was accepted for the request to listen with this number.
    Accepted(u16),
    /// Carry datagrams of this class to this UDP target, for as long as this stream is open.
    Datagrams(Target, TrafficClass),
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The request is granted; to a request to listen, the port in use and the listener's number.
    Done {
        /// Port that is listened on, 0 for other requests.
        port: u16,
        /// Number of the listener, 0 for other requests.
        listener: u16,
    },
    /// The request is refused, with a reason for programs and a text for people.
    Refused(Reason, PeerText),
}

/// Why a request is refused, as far as programs act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// None of the others, or one that this side does not know.
    Other,
    /// The side that refuses does not permit it.
    NotPermitted,
    /// Nothing listens at the target.
    ConnectionRefused,
    /// The target does not answer.
    HostUnreachable,
    /// There is no route to the target.
    NetworkUnreachable,
    /// The target's name has no address.
    NoSuchHost,
}

/// Reasons with their numbers on the wire, and the kind of error that each comes from and becomes again.
const REASONS: [(u16, Reason, io::ErrorKind); 6] = [
    (0, Reason::Other, io::ErrorKind::Other),
    (1, Reason::NotPermitted, io::ErrorKind::PermissionDenied),
    (2, Reason::ConnectionRefused, io::ErrorKind::ConnectionRefused),
    (3, Reason::HostUnreachable, io::ErrorKind::HostUnreachable),
    (4, Reason::NetworkUnreachable, io::ErrorKind::NetworkUnreachable),
    (5, Reason::NoSuchHost, io::ErrorKind::NotFound),
];

impl Reason {
    /// The reason that stands for an error.
    pub fn of(error: &io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::TimedOut => io::ErrorKind::HostUnreachable,
            io::ErrorKind::NetworkDown => io::ErrorKind::NetworkUnreachable,
            kind => kind,
        };
        REASONS.into_iter().find(|row| row.2 == kind).map_or(Reason::Other, |row| row.1)
    }

    /// The kind of error that the reason stands for.
    pub fn kind(self) -> io::ErrorKind {
        REASONS.into_iter().find(|row| row.1 == self).map_or(io::ErrorKind::Other, |row| row.2)
    }

    fn number(self) -> u16 {
        REASONS.into_iter().find(|row| row.1 == self).map_or(0, |row| row.0)
    }

    fn from_number(number: u16) -> Self {
        REASONS.into_iter().find(|row| row.0 == number).map_or(Reason::Other, |row| row.1)
    }
}

/// Error in a message of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The bytes are no message of the forwarding protocol.
    #[error("the peer does not speak the forwarding protocol")]
    Magic,
    /// The message is of another version.
    #[error("the peer speaks version {0} of the forwarding protocol, this side {VERSION}: {advice}",
        advice = if *.0 > VERSION { "update this side" } else { "update the peer" })]
    Version(u8),
    /// The kind of the message is unknown, or a field cannot have this value.
    #[error("the peer sent a wrong forwarding message")]
    Value,
}

/// The fixed part: magic, version, kind, a number, and the length of the text that follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    kind: u8,
    number: u16,
    /// Bytes of text that follow.
    pub text: u16,
}

impl Head {
    /// Reads the fixed part.
    ///
    /// # Errors
    /// If it is something else, of another version, or announces too long a text.
    pub fn decode(bytes: [u8; HEAD_LEN]) -> Result<Self, WireError> {
        let [a, b, c, d, version, kind, n0, n1, t0, t1] = bytes;
        if [a, b, c, d] != MAGIC {
            return Err(WireError::Magic);
        }
        if version != VERSION {
            return Err(WireError::Version(version));
        }
        let text = u16::from_be_bytes([t0, t1]);
        if usize::from(text) > MAX_TEXT {
            return Err(WireError::Value);
        }
        Ok(Head { kind, number: u16::from_be_bytes([n0, n1]), text })
    }
}

fn encode(kind: u8, number: u16, text: &str) -> Vec<u8> {
    let text = &text.as_bytes()[..text.floor_char_boundary(MAX_TEXT)];
    let mut out = Vec::with_capacity(HEAD_LEN + text.len());
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&[VERSION, kind]);
    out.extend_from_slice(&number.to_be_bytes());
    out.extend_from_slice(&(text.len() as u16).to_be_bytes());
    out.extend_from_slice(text);
    out
}

impl Request {
    /// The request as bytes.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Request::Connect(Place::Port(target)) => encode(1, target.port, &target.host),
            Request::Listen(Place::Port(target)) => encode(2, target.port, &target.host),
            Request::Connect(Place::Socket(path)) => encode(7, 0, path.as_str()),
            Request::Listen(Place::Socket(path)) => encode(8, 0, path.as_str()),
            Request::Accepted(listener) => encode(3, *listener, ""),
            Request::Datagrams(target, TrafficClass::Bulk) => encode(6, target.port, &target.host),
            Request::Datagrams(target, class) => {
                encode(9, target.port, &format!("{} {}", class.name(), target.host))
            }
        }
    }

    /// Reads a request from its fixed part and its text.
    ///
    /// # Errors
    /// If it is no valid request.
    pub fn decode(head: Head, text: &[u8]) -> Result<Self, WireError> {
        let of_host = |host: &str, least: u16| {
            let host = Some(host).filter(|host| host.len() <= MAX_HOST);
            let target = host.and_then(|host| Target::new(host, head.number));
            target.filter(|target| target.port >= least).ok_or(WireError::Value)
        };
        let written = core::str::from_utf8(text).map_err(|_| WireError::Value);
        let target = |least: u16| of_host(written?, least);
        let socket = || {
            let path = core::str::from_utf8(text).ok().and_then(SocketPath::new);
            path.map(Place::Socket).ok_or(WireError::Value)
        };
        match head.kind {
            1 => target(1).map(|target| Request::Connect(Place::Port(target))),
            2 => target(0).map(|target| Request::Listen(Place::Port(target))),
            7 => socket().map(Request::Connect),
            8 => socket().map(Request::Listen),
            3 if text.is_empty() => Ok(Request::Accepted(head.number)),
            6 => Ok(Request::Datagrams(target(1)?, TrafficClass::Bulk)),
            9 => {
                let (class, host) = written?.split_once(' ').ok_or(WireError::Value)?;
                let class = TrafficClass::named(class).ok_or(WireError::Value)?;
                Ok(Request::Datagrams(of_host(host, 1)?, class))
            }
            _ => Err(WireError::Value),
        }
    }
}

impl Answer {
    /// The answer as bytes.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Answer::Done { port, listener } if *listener == 0 => encode(4, *port, ""),
            Answer::Done { port, listener } => encode(4, *port, &listener.to_string()),
            Answer::Refused(reason, why) => encode(5, reason.number(), why.as_untrusted()),
        }
    }

    /// Reads an answer from its fixed part and its text.
    ///
    /// # Errors
    /// If it is no valid answer.
    pub fn decode(head: Head, text: &[u8]) -> Result<Self, WireError> {
        let text = core::str::from_utf8(text).map_err(|_| WireError::Value)?;
        match head.kind {
            4 if text.is_empty() => Ok(Answer::Done { port: head.number, listener: 0 }),
            4 => {
                let listener = text.parse().map_err(|_| WireError::Value)?;
                Ok(Answer::Done { port: head.number, listener })
            }
            5 => Ok(Answer::Refused(Reason::from_number(head.number), text.into())),
            _ => Err(WireError::Value),
        }
    }
}
