//! A peer that has a permitted key and sends arbitrary frames.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use anabranch::{PublicKey, SecretKey};
use anabranch_core::crypto::Session;
use anabranch_core::handshake::Established;
use anabranch_core::testing::sealed;
use anabranch_core::wire::header::{sample, unprotect};
use anabranch_core::wire::reports::MAX_ACK_RANGES;
use anabranch_core::wire::{
    CloseCode, CloseFrame, ConnectionId, ControlFrame, DataHeader, Frame, Frames, HEADER_LEN,
    TransportParameters, Writer, expand_number,
};
use anabranch_types::{PathId, Time};
use std::collections::{BTreeMap, VecDeque};

use crate::Failure;
use crate::asking::{Asking, Crowd, IDS, send};
use crate::frames::{control, full};
use crate::sender::now;

/// Time for an answer to the first message.
const PATIENCE: Duration = Duration::from_secs(5);
/// Number of the victim's packets that are remembered: an ACK that names every second one can hold no more.
const HEARD: usize = 2 * MAX_ACK_RANGES;

/// A hostile peer and its sockets, of which the first has the connection.
pub struct Hostile {
    secret: SecretKey,
    victim: PublicKey,
    /// The code of its repairs, if not the default one.
    code: Option<&'static str>,
    target: SocketAddr,
    sockets: Vec<UdpSocket>,
    session: Option<Session>,
    /// The ids under which the victim receives, by path.
    ids: BTreeMap<u32, ConnectionId>,
    /// The number of its next packet on each path.
    numbers: BTreeMap<u32, u64>,
    /// The next packet number of the victim on each path.
    expected: BTreeMap<u32, u64>,
    /// The last numbers of the victim's packets on path 0, in the order of arrival.
    heard: VecDeque<u64>,
    /// The victim has closed the connection.
    closed: bool,
    /// Connections that it has had.
    connections: u64,
    /// How long the last one took to begin.
    took: Duration,
    /// Further addresses of its own.
    crowd: Crowd,
}

impl Hostile {
    /// A hostile peer that will connect to `target`.
    pub fn new(secret: SecretKey, victim: PublicKey, target: SocketAddr) -> Result<Self, Failure> {
        let mut sockets = Vec::new();
        for _ in 0..16 {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            socket.set_nonblocking(true)?;
            sockets.push(socket);
        }
        Ok(Hostile {
            secret,
            victim,
            code: None,
            target,
            sockets,
            session: None,
            ids: BTreeMap::new(),
            numbers: BTreeMap::new(),
            expected: BTreeMap::new(),
            heard: VecDeque::new(),
            closed: false,
            connections: 0,
            took: Duration::ZERO,
            crowd: Crowd::default(),
        })
    }

    /// Sends a first message, whose answer nobody reads.
    pub fn ask(&mut self) -> Result<(), Failure> {
        let message = Asking::new(&self.secret, self.victim, None)?.message(Time::ZERO);
        self.transmit(0, &message.unwrap_or_default())
    }

    /// Sends a first message from the next of a thousand addresses, with a cookie if it `proves` its address.
    pub fn ask_from_crowd(&mut self, proves: bool) -> Result<(), Failure> {
        self.crowd.ask(&self.secret, self.victim, self.target, proves)
    }

    /// Sets the code of repairs for further connections.
    pub fn speak(&mut self, code: Option<&'static str>) {
        self.code = code;
    }

    /// Sends to another address from now on.
    pub fn turn_to(&mut self, target: SocketAddr) {
        self.target = target;
    }

    /// Whether the victim has closed the connection.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Connections that it has had so far.
    pub fn connections(&self) -> u64 {
        self.connections
    }

    /// Closes the connection and opens another; tells whether the victim has answered.
    pub fn connect(&mut self) -> Result<bool, Failure> {
        let close = CloseFrame { code: CloseCode::NO_ERROR, application: false, reason: "" };
        let mut frame = [0; 16];
        let mut writer = Writer::new(&mut frame);
        close.encode(&mut writer).map_err(|_| "no room for a CLOSE")?;
        let length = writer.position();
        self.send(0, 0, &frame[..length])?;
        self.listen()?;
        let mut asking = Asking::new(&self.secret, self.victim, self.code)?;
        let (start, mut buffer) = (now(), [0; 2048]);
        while start.elapsed() < PATIENCE {
            let time = Time::ZERO + start.elapsed();
            if let Some(message) = asking.message(time) {
                self.transmit(0, &message)?;
            }
            while let Ok(count) = self.sockets[0].recv(&mut buffer) {
                if let Some(established) = asking.hear(time, &buffer[..count]) {
                    self.took = start.elapsed();
                    self.begin_with(established)?;
                    return Ok(true);
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(false)
    }

    /// Spends the time that the last connection took to begin, and the same processor time on this side: a second
    /// message stands for reading the answer to the first.
    pub fn connect_to_nobody(&mut self) -> Result<(), Failure> {
        let start = now();
        self.ask()?;
        self.ask()?;
        std::thread::sleep(self.took.saturating_sub(start.elapsed()));
        Ok(())
    }

    fn begin_with(&mut self, established: Established) -> Result<(), Failure> {
        let Established { session, remote_id, parameters } = established;
        let theirs =
            TransportParameters::decode(&parameters).map_err(|error| format!("{error}"))?;
        let first = core::iter::once(ConnectionId(remote_id));
        self.ids = (0..).zip(first.chain(theirs.connection_ids)).collect();
        self.session = Some(session);
        self.numbers.clear();
        self.expected.clear();
        self.heard.clear();
        (self.closed, self.connections) = (false, self.connections + 1);
        self.send(0, 0, &[0x01])
    }

    /// The highest path id below `end` for which the victim has supplied a connection id.
    pub fn highest_path(&self, end: u32) -> u32 {
        self.ids.range(..end).next_back().map_or(0, |(path, _)| *path)
    }

    /// The last numbers of the victim's packets on path 0.
    pub fn heard(&self) -> impl DoubleEndedIterator<Item = u64> {
        self.heard.iter().copied()
    }

    /// Sends a packet with these frames on a path from a socket.
    pub fn send(&mut self, socket: usize, path: u32, frames: &[u8]) -> Result<(), Failure> {
        let Some(session) = &mut self.session else { return Ok(()) };
        let Some(connection) = self.ids.get(&path).copied() else { return Ok(()) };
        let number = self.numbers.entry(path).or_default();
        let packet = sealed(session, connection, (path, *number), frames);
        *number += 1;
        self.transmit(socket, &packet)
    }

    fn transmit(&self, socket: usize, packet: &[u8]) -> Result<(), Failure> {
        let socket = self.sockets.get(socket).or(self.sockets.first()).ok_or("no socket")?;
        send(socket, packet, self.target)
    }

    /// Reads the packets that have come back: answers path challenges, learns connection ids, and notes whether the
    /// connection is closed.
    pub fn listen(&mut self) -> Result<(), Failure> {
        let mut buffer = [0; 2048];
        for index in 0..self.sockets.len() {
            while let Ok(count) = self.sockets[index].recv(&mut buffer) {
                self.hear(index, &mut buffer[..count])?;
            }
        }
        Ok(())
    }

    /// Reads one packet.
    fn hear(&mut self, socket: usize, packet: &mut [u8]) -> Result<(), Failure> {
        let Some(session) = &mut self.session else { return Ok(()) };
        let opened = open(session, &mut self.expected, packet);
        let Some((path, number, frames)) = opened else { return Ok(()) };
        if path == 0 && self.heard.back().is_none_or(|last| *last < number) {
            self.heard.push_back(number);
            self.heard.drain(..self.heard.len().saturating_sub(HEARD));
        }
        let mut answers = Vec::new();
        for frame in Frames::new(frames) {
            match frame {
                Ok(Frame::Control(ControlFrame::NewConnectionId { path, id })) => {
                    self.ids.insert(path.0, id);
                }
                Ok(Frame::Control(ControlFrame::PathChallenge { data })) => {
                    answers.push(full([control(ControlFrame::PathResponse { data })]));
                }
                Ok(Frame::Close(_)) => self.closed = true,
                _ => {}
            }
        }
        answers.iter().try_for_each(|answer| self.send(socket, path, answer))
    }
}

/// The path, the number and the frames of a packet of the victim.
fn open<'a>(
    session: &mut Session,
    expected: &mut BTreeMap<u32, u64>,
    packet: &'a mut [u8],
) -> Option<(u32, u64, &'a [u8])> {
    let mask = session.keys.opener.mask(sample(packet)?);
    unprotect(packet, mask);
    let header = DataHeader::decode(packet).ok()?;
    let path = header
        .connection
        .0
        .checked_sub(IDS.start)
        .filter(|_| IDS.contains(&header.connection.0))?;
    let expected = expected.entry(path).or_default();
    let number = expand_number(header.number, *expected);
    let opened = session.keys.opener.open(PathId(path), number, packet, HEADER_LEN).ok()?;
    *expected = number + 1;
    Some((path, number, packet.get(HEADER_LEN..opened)?))
}
