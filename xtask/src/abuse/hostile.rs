//! A peer that has a permitted key and sends what it likes.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use anabranch::crypto::NoiseCrypto;
use anabranch::{PublicKey, SecretKey, TransportConfig};
use anabranch_core::crypto::{Session, TAG_LEN};
use anabranch_core::handshake::{Established, Initiator, Opening, Schedule};
use anabranch_core::wire::header::{protect, sample, unprotect};
use anabranch_core::wire::{
    CloseCode, CloseFrame, ConnectionId, ControlFrame, DataHeader, Frame, Frames, HEADER_LEN,
    TransportParameters, Writer, expand_number,
};
use anabranch_types::{PathId, Time};
use std::collections::BTreeMap;

use crate::Failure;
use crate::forge::wall_clock;
use crate::frames::{control, full};
use crate::sender::now;

/// Time for an answer to the first message.
const PATIENCE: Duration = Duration::from_secs(5);

/// Its sockets, of which the first has the connection.
pub struct Hostile {
    secret: SecretKey,
    victim: PublicKey,
    target: SocketAddr,
    sockets: Vec<UdpSocket>,
    session: Option<Session>,
    /// Under which the victim receives, by path.
    ids: BTreeMap<u32, ConnectionId>,
    numbers: BTreeMap<u32, u64>,
    /// The next packet number of the victim on path 0.
    expected: u64,
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
        let (session, ids, numbers) = (None, BTreeMap::new(), BTreeMap::new());
        Ok(Hostile { secret, victim, target, sockets, session, ids, numbers, expected: 0 })
    }

    fn begin(&self) -> Result<(NoiseCrypto, Initiator), Failure> {
        let mut crypto = NoiseCrypto::new(self.secret.clone())?;
        let mut parameters = TransportConfig::default().parameters("anabranch");
        (parameters.max_data, parameters.max_stream_data) = (1 << 40, 1 << 40);
        parameters.connection_ids = (2..10).map(ConnectionId).collect();
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
        self.drain()?;
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
                if let Ok(established) = initiator.on_response(&crypto, bytes) {
                    return self.begin_with(established);
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Err("a permitted key got no connection".into())
    }

    fn begin_with(&mut self, established: Established) -> Result<(), Failure> {
        let Established { session, remote_id, parameters } = established;
        let theirs =
            TransportParameters::decode(&parameters).map_err(|error| format!("{error}"))?;
        let first = core::iter::once(ConnectionId(remote_id));
        self.ids = (0..).zip(first.chain(theirs.connection_ids)).collect();
        (self.session, self.expected) = (Some(session), 0);
        self.numbers.clear();
        self.send(0, 0, &[0x01])
    }

    /// The highest path id below `end` for whose packets there is a connection id.
    pub fn highest_path(&self, end: u32) -> u32 {
        self.ids.range(..end).next_back().map_or(0, |(path, _)| *path)
    }

    /// Sends a packet with these frames on a path from a socket.
    pub fn send(&mut self, socket: usize, path: u32, frames: &[u8]) -> Result<(), Failure> {
        let Some(session) = &mut self.session else { return Ok(()) };
        let Some(connection) = self.ids.get(&path).copied() else { return Ok(()) };
        let number = self.numbers.entry(path).or_default();
        let mut packet = vec![0; HEADER_LEN];
        let sealer = &mut session.keys.sealer;
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

    /// Takes what has come back. On path 0 it proves its address and learns connection ids; all else is forgotten.
    pub fn drain(&mut self) -> Result<(), Failure> {
        let (mut buffer, mut answers) = ([0; 2048], Vec::new());
        for socket in &self.sockets {
            while let Ok(count) = socket.recv(&mut buffer) {
                let Some(session) = &mut self.session else { continue };
                let packet = &mut buffer[..count];
                let Some(frames) = open(session, &mut self.expected, packet) else { continue };
                for frame in Frames::new(frames) {
                    match frame {
                        Ok(Frame::Control(ControlFrame::NewConnectionId { path, id })) => {
                            self.ids.insert(path.0, id);
                        }
                        Ok(Frame::Control(ControlFrame::PathChallenge { data })) => {
                            answers.push(full([control(ControlFrame::PathResponse { data })]));
                        }
                        _ => {}
                    }
                }
            }
        }
        answers.iter().try_for_each(|answer| self.send(0, 0, answer))
    }
}

/// The frames of a packet of the victim on path 0.
fn open<'a>(session: &mut Session, expected: &mut u64, packet: &'a mut [u8]) -> Option<&'a [u8]> {
    let mask = session.keys.opener.mask(sample(packet)?);
    unprotect(packet, mask);
    let header = DataHeader::decode(packet).ok().filter(|header| header.path == 0)?;
    let number = expand_number(header.number, *expected);
    let opened = session.keys.opener.open(PathId(0), number, packet, HEADER_LEN);
    *expected = number + 1;
    packet.get(HEADER_LEN..opened.ok()?)
}
