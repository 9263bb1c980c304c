//! A peer that has a permitted key and sends what it likes.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use anabranch::crypto::NoiseCrypto;
use anabranch::{PublicKey, SecretKey, TransportConfig};
use anabranch_core::crypto::{Session, TAG_LEN};
use anabranch_core::handshake::{Established, Initiator, Opening, Schedule};
use anabranch_core::wire::header::{protect, sample};
use anabranch_core::wire::{CloseCode, CloseFrame, ConnectionId, DataHeader, HEADER_LEN, Writer};
use anabranch_types::{PathId, Time};
use std::collections::BTreeMap;

use crate::Failure;
use crate::forge::wall_clock;
use crate::sender::now;

/// Time for an answer to the first message.
const PATIENCE: Duration = Duration::from_secs(5);

/// Its sockets, of which the first has the connection.
pub struct Hostile {
    secret: SecretKey,
    victim: PublicKey,
    target: SocketAddr,
    sockets: Vec<UdpSocket>,
    session: Option<(Session, ConnectionId)>,
    numbers: BTreeMap<u32, u64>,
}

impl Hostile {
    /// One that will connect to `target`.
    pub fn new(secret: SecretKey, victim: PublicKey, target: SocketAddr) -> Result<Self, Failure> {
        let mut sockets = Vec::new();
        for _ in 0..16 {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            socket.set_nonblocking(true)?;
            sockets.push(socket);
        }
        let (session, numbers) = (None, BTreeMap::new());
        Ok(Hostile { secret, victim, target, sockets, session, numbers })
    }

    fn begin(&self) -> Result<(NoiseCrypto, Initiator), Failure> {
        let mut crypto = NoiseCrypto::new(self.secret.clone())?;
        let mut parameters = TransportConfig::default().parameters("anabranch");
        (parameters.max_data, parameters.max_stream_data) = (1 << 40, 1 << 40);
        let opening = Opening {
            peer: self.victim,
            local_id: 1,
            timestamp: wall_clock(),
            parameters: &parameters.encode(),
        };
        let mut initiator = Initiator::new(&mut crypto, opening, Schedule::default(), Time::ZERO)
            .map_err(|error| format!("{error:?}"))?;
        initiator.add_path(PathId(0), Time::ZERO);
        Ok((crypto, initiator))
    }

    /// A first message, whose answer nobody reads.
    pub fn ask(&mut self) -> Result<(), Failure> {
        let (crypto, mut initiator) = self.begin()?;
        let mut message = Vec::new();
        initiator.poll(&crypto, PathId(0), Time::ZERO, &mut message);
        self.transmit(0, &message)
    }

    /// Sends to another address from now on.
    pub fn turn_to(&mut self, target: SocketAddr) {
        self.target = target;
    }

    /// Has a new connection in the place of the one before.
    pub fn connect(&mut self) -> Result<(), Failure> {
        let close = CloseFrame { code: CloseCode::NO_ERROR, application: false, reason: "" };
        let mut frame = [0; 16];
        let mut writer = Writer::new(&mut frame);
        close.encode(&mut writer).map_err(|_| "no room for a CLOSE")?;
        let length = writer.position();
        self.send(0, 0, &frame[..length])?;
        self.drain();
        let (crypto, mut initiator) = self.begin()?;
        let (start, mut buffer) = (now(), [0; 2048]);
        while start.elapsed() < PATIENCE {
            let time = Time::ZERO + start.elapsed();
            let mut message = Vec::new();
            if initiator.poll(&crypto, PathId(0), time, &mut message) {
                self.transmit(0, &message)?;
            }
            while let Ok(count) = self.sockets[0].recv(&mut buffer) {
                let bytes = &buffer[..count];
                let _ = initiator.on_cookie_reply(&crypto, PathId(0), time, bytes);
                if let Ok(Established { session, remote_id, .. }) =
                    initiator.on_response(&crypto, bytes)
                {
                    self.session = Some((session, ConnectionId(remote_id)));
                    self.numbers.clear();
                    return self.send(0, 0, &[0x01]);
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Err("a permitted key got no connection".into())
    }

    /// Sends a packet with these frames on a path from a socket.
    pub fn send(&mut self, socket: usize, path: u32, frames: &[u8]) -> Result<(), Failure> {
        let Some((session, connection)) = &mut self.session else { return Ok(()) };
        let number = self.numbers.entry(path).or_default();
        let mut packet = vec![0; HEADER_LEN];
        let (connection, sealer) = (*connection, &mut session.keys.sealer);
        let header = DataHeader { connection, epoch: 0, path: path as u8, number: *number as u32 };
        header.encode(&mut Writer::new(&mut packet)).map_err(|_| "no room for a header")?;
        packet.extend_from_slice(frames);
        packet.resize(packet.len() + TAG_LEN, 0);
        sealer.seal(PathId(path), *number, &mut packet, HEADER_LEN);
        if let Some(mask) = sample(&packet).map(|bytes| sealer.mask(bytes)) {
            protect(&mut packet, mask);
        }
        *number += 1;
        self.transmit(socket, &packet)
    }

    fn transmit(&self, socket: usize, packet: &[u8]) -> Result<(), Failure> {
        let socket = self.sockets.get(socket).or(self.sockets.first()).ok_or("no socket")?;
        match socket.send_to(packet, self.target) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Forgets what has come back.
    pub fn drain(&self) {
        let mut buffer = [0; 2048];
        for socket in &self.sockets {
            while socket.recv(&mut buffer).is_ok() {}
        }
    }
}
