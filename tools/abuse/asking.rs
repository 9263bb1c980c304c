//! Handshakes of a hostile peer, from one address or from a thousand.

use core::ops::Range;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use anabranch::crypto::NoiseCrypto;
use anabranch::{PublicKey, SecretKey, TransportConfig};
use anabranch_core::handshake::{Established, Initiator, Opening, Schedule};
use anabranch_core::wire::ConnectionId;
use anabranch_types::{PathId, Time};

use crate::Failure;
use crate::forge::wall_clock;

/// Connection ids of a hostile peer for its paths, from path 0 on.
pub const IDS: Range<u32> = 1..10;
/// Addresses of a crowd, each a source of its own.
const CROWD: usize = 1000;

/// A handshake under way.
pub struct Asking {
    crypto: NoiseCrypto,
    initiator: Initiator,
}

impl Asking {
    /// A handshake with the endpoint `victim`, for a connection with this code of repairs, or the default one.
    pub fn new(secret: &SecretKey, victim: PublicKey, code: Option<&str>) -> Result<Self, Failure> {
        let mut crypto = NoiseCrypto::new(secret.clone())?;
        let mut parameters = TransportConfig::default().parameters("anabranch");
        (parameters.max_data, parameters.max_stream_data) = (1 << 40, 1 << 40);
        parameters.connection_ids = IDS.skip(1).map(ConnectionId).collect();
        parameters.codes = code.map(str::to_owned).or(parameters.codes);
        let opening = Opening {
            peer: victim,
            local_id: IDS.start,
            timestamp: wall_clock(),
            parameters: &parameters.encode(),
        };
        let mut initiator = Initiator::new(&mut crypto, opening, Schedule::default(), Time::ZERO)
            .map_err(|error| format!("{error:?}"))?;
        initiator.add_path(PathId(0), Time::ZERO);
        Ok(Asking { crypto, initiator })
    }

    /// The first message, if it is due to be sent or repeated.
    pub fn message(&mut self, time: Time) -> Option<Vec<u8>> {
        let mut message = Vec::new();
        self.initiator.poll(&self.crypto, PathId(0), time, &mut message).then_some(message)
    }

    /// Reads what has come back: a cookie, or the answer that establishes the connection.
    pub fn hear(&mut self, time: Time, bytes: &[u8]) -> Option<Established> {
        let _ = self.initiator.on_cookie_reply(&self.crypto, PathId(0), time, bytes);
        self.initiator.on_response(&self.crypto, bytes).ok()
    }
}

/// Sockets on a thousand addresses, made when they are first used.
#[derive(Default)]
pub struct Crowd {
    members: Vec<Member>,
    next: usize,
}

struct Member {
    socket: UdpSocket,
    asking: Option<Asking>,
}

impl Crowd {
    /// The next member asks for a connection. If it `proves` its address and has received a cookie, it repeats its last
    /// message with the cookie.
    pub fn ask(
        &mut self,
        secret: &SecretKey,
        victim: PublicKey,
        target: SocketAddr,
        proves: bool,
    ) -> Result<(), Failure> {
        if self.members.is_empty() {
            self.members = (0..CROWD).map(Member::new).collect::<Result<_, Failure>>()?;
        }
        let index = self.next;
        self.next = (index + 1) % self.members.len();
        let Some(member) = self.members.get_mut(index) else { return Ok(()) };
        let proof = member.proof().filter(|_| proves);
        let message = match proof {
            Some(message) => message,
            None => {
                let mut asking = Asking::new(secret, victim, None)?;
                let message = asking.message(Time::ZERO).unwrap_or_default();
                member.asking = Some(asking);
                message
            }
        };
        send(&member.socket, &message, target)
    }
}

/// Sends a datagram. It is lost if the socket's buffer is full.
pub fn send(socket: &UdpSocket, datagram: &[u8], target: SocketAddr) -> Result<(), Failure> {
    match socket.send_to(datagram, target) {
        Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error.into()),
        _ => Ok(()),
    }
}

impl Member {
    fn new(index: usize) -> Result<Self, Failure> {
        let ip = Ipv4Addr::new(127, 11, (index / 250) as u8, (index % 250) as u8 + 2);
        let socket = UdpSocket::bind((ip, 0))?;
        socket.set_nonblocking(true)?;
        Ok(Member { socket, asking: None })
    }

    /// The member's last message with a cookie, if a cookie came back.
    fn proof(&mut self) -> Option<Vec<u8>> {
        let mut buffer = [0; 2048];
        let mut asking = self.asking.take();
        let mut proof = None;
        while let Ok(count) = self.socket.recv(&mut buffer) {
            let Some(asking) = &mut asking else { continue };
            if asking.hear(Time::ZERO, &buffer[..count]).is_none() {
                proof = asking.message(Time::ZERO).or(proof);
            }
        }
        proof
    }
}
