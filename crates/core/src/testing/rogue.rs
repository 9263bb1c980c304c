//! A peer that holds the keys of a connection and sends arbitrary frames.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};

use anabranch_types::{PathId, Time};
use core::ops::RangeInclusive;
use core::time::Duration;

use super::{MOST_AT_ONCE, endpoint, events, written};
use crate::config::TransportConfig;
use crate::connection::{CloseReason, Connection, Event};
use crate::crypto::null::NullCrypto;
use crate::crypto::{Session, TAG_LEN};
use crate::endpoint::{Datagram, Endpoint, EndpointConfig, EndpointEvent, Handle};
use crate::handshake::{Initiator, Opening, Permitted, Schedule};
use crate::path::SocketId;
use crate::path::received::Ecn;
use crate::profiles::Profile;
use crate::wire::header::{protect, sample, unprotect};
use crate::wire::reports::MAX_ACK_RANGES;
use crate::wire::{
    AckHeader, ConnectionId, ControlFrame, DataHeader, Frame, Frames, HEADER_LEN,
    TransportParameters, Writer, expand_number,
};

/// Creates a packet to a connection id, with this path, packet number and these frames, encrypted
/// with the session's first keys.
pub fn sealed(
    session: &mut Session,
    connection: ConnectionId,
    (path, number): (u32, u64),
    frames: &[u8],
) -> Vec<u8> {
    let mut packet = vec![0; HEADER_LEN];
    let header = DataHeader { connection, epoch: 0, path: path as u8, number: number as u32 };
    header.encode(&mut Writer::new(&mut packet)).expect("the header fits");
    packet.extend_from_slice(frames);
    packet.resize(packet.len() + TAG_LEN, 0);
    session.keys.sealer.seal(PathId(path), number, &mut packet, HEADER_LEN);
    let mask = sample(&packet).map(|bytes| session.keys.sealer.mask(bytes));
    protect(&mut packet, mask.expect("the packet is long enough"));
    packet
}

/// Least bytes of a packet, including IP and UDP headers.
const SMALLEST: u64 = 48;

/// A peer that attacks a victim endpoint. The victim has accepted one connection, of which the
/// rogue has the keys.
#[derive(Debug)]
pub struct Rogue {
    /// The endpoint under test.
    pub victim: Endpoint,
    /// The victim's connection with the rogue.
    pub handle: Handle,
    /// The current time.
    pub now: Time,
    /// The rogue's keys.
    pub session: Session,
    /// The ids under which the rogue receives and which it has announced to the victim, with their
    /// paths.
    own_ids: BTreeSet<(ConnectionId, u32)>,
    /// The ids under which the victim receives, by path.
    remote_ids: BTreeMap<u32, ConnectionId>,
    next_number: BTreeMap<u32, u64>,
    inbox: VecDeque<Heard>,
    heard: BTreeMap<u32, Vec<RangeInclusive<u64>>>,
    /// Datagrams that each address and the victim have sent to each other.
    traffic: BTreeMap<SocketAddr, Traffic>,
    closed: Option<CloseReason>,
    /// Number of the victim's next packets that will be lost.
    pub losses: usize,
}

/// A packet of the victim.
#[derive(Clone, Debug)]
pub struct Heard {
    /// Destination address of the packet.
    pub remote: SocketAddr,
    /// The connection id in the packet's header.
    pub id: ConnectionId,
    /// Path of the packet.
    pub path: PathId,
    /// Packet number.
    pub number: u64,
    /// Opened payload of the packet.
    pub frames: Vec<u8>,
}

/// Datagrams and bytes of UDP payload in one direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Volume {
    /// Datagrams.
    pub datagrams: u64,
    /// Bytes of payload.
    pub bytes: u64,
}

impl Heard {
    /// The challenges in the packet.
    pub fn challenges(&self) -> Vec<[u8; 8]> {
        let frames = Frames::new(&self.frames).map_while(Result::ok);
        let challenge = |frame| match frame {
            Frame::Control(ControlFrame::PathChallenge { data }) => Some(data),
            _ => None,
        };
        frames.filter_map(challenge).collect()
    }
}

impl Volume {
    /// Counts a datagram of this many bytes.
    pub fn add(&mut self, bytes: usize) {
        self.datagrams += 1;
        self.bytes += bytes as u64;
    }
}

/// Datagrams that an address and the victim have sent to each other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traffic {
    /// Datagrams to the victim.
    pub to_victim: Volume,
    /// Datagrams from the victim.
    pub from_victim: Volume,
}

/// The default source address of a path's packets. Each group of four consecutive paths shares a
/// host.
pub fn address(path: u32) -> SocketAddr {
    let host = Ipv4Addr::new(10, 0, (path / 4) as u8, 1);
    SocketAddr::from((host, 1000 + (path % 60_000) as u16))
}

impl Rogue {
    /// Connects to a victim with `transport` and the profile of this name, and announces
    /// `parameters`. If they contain no connection ids, [ids](Self::id) for as many paths as they
    /// allow are added.
    pub fn connect(
        transport: TransportConfig,
        profile: &str,
        parameters: &TransportParameters,
    ) -> Rogue {
        let mut config = EndpointConfig::new(Profile::named(profile).expect("it is built in"));
        config.transport = transport;
        Self::connect_to(config, parameters)
    }

    /// Version of [`connect`](Self::connect) with a victim of this configuration.
    pub fn connect_to(mut config: EndpointConfig, parameters: &TransportParameters) -> Rogue {
        let now = Time::from_millis(1);
        config.responder.permitted = Permitted::Anyone;
        let mut victim = endpoint(2, config);
        let mut ours = NullCrypto::new([1; 32]);
        let mut parameters = parameters.clone();
        if parameters.connection_ids.is_empty() {
            parameters.connection_ids = (1..=parameters.max_paths.into()).map(Rogue::id).collect();
        }
        let opening = Opening {
            peer: victim.public_key(),
            local_id: Rogue::id(0).0,
            timestamp: 1 << 60,
            parameters: &parameters.encode(),
        };
        let mut initiator = Initiator::new(&mut ours, opening, Schedule::default(), now)
            .expect("the message is short");
        initiator.add_path(PathId(0), now);
        let mut message = Vec::new();
        initiator.poll(&ours, PathId(0), now, &mut message);
        let mut traffic = Traffic::default();
        traffic.to_victim.add(message.len());
        let payload = message.as_mut_slice();
        let (socket, ecn) = (SocketId(0), Ecn::NotEct);
        victim.handle_datagram(now, Datagram { socket, remote: address(0), ecn, payload });
        let mut buffer = vec![0; 2048];
        let response = victim.poll_transmit(now, &|_| true, &mut buffer).expect("an answer");
        traffic.from_victim.add(response.len);
        let established =
            initiator.on_response(&ours, &buffer[..response.len]).expect("a true answer");
        let handle = victim.handles().next().expect("a connection");
        let theirs = TransportParameters::decode(&established.parameters).expect("true parameters");
        let remote_ids =
            [&[ConnectionId(established.remote_id)], &theirs.connection_ids[..]].concat();
        let mut rogue = Rogue {
            victim,
            handle,
            now,
            session: established.session,
            own_ids: BTreeSet::new(),
            remote_ids: (0..).zip(remote_ids).collect(),
            next_number: BTreeMap::new(),
            inbox: VecDeque::new(),
            heard: BTreeMap::new(),
            traffic: BTreeMap::from([(address(0), traffic)]),
            closed: None,
            losses: 0,
        };
        rogue.send(0, &[0x01]);
        rogue.listen();
        rogue.answer();
        rogue
    }

    /// Answers the challenges in the packets that were not taken yet, and removes these packets.
    pub fn answer(&mut self) {
        while let Some(heard) = self.take() {
            for data in heard.challenges() {
                self.respond(heard.path.0, address(heard.path.0), data);
            }
        }
    }

    /// Answers a challenge from an address.
    pub fn respond(&mut self, path: u32, from: SocketAddr, data: [u8; 8]) {
        let response = ControlFrame::PathResponse { data };
        let frames = written(|writer| response.encode(writer).expect("it fits"));
        self.send_from(path, from, &frames);
    }

    /// Datagrams that each address and the victim have sent to each other.
    pub fn traffic(&self) -> &BTreeMap<SocketAddr, Traffic> {
        &self.traffic
    }

    /// The victim's connection, until the victim removes it.
    pub fn connection(&mut self) -> Option<&mut Connection> {
        self.victim.connection(self.handle)
    }

    /// Why the victim closed the connection, if it has.
    pub fn closed(&self) -> Option<&CloseReason> {
        self.closed.as_ref()
    }

    /// Sends a packet with these frames and the next number of the path.
    pub fn send(&mut self, path: u32, frames: &[u8]) {
        self.send_from(path, address(path), frames);
    }

    /// Sends a packet with these frames and the next number of the path from this address.
    pub fn send_from(&mut self, path: u32, from: SocketAddr, frames: &[u8]) {
        let number = self.next_number.get(&path).copied().unwrap_or(0);
        self.send_packet(path, number, from, frames);
    }

    /// Sends a packet with these frames.
    pub fn send_numbered(&mut self, path: u32, number: u64, frames: &[u8]) {
        self.send_packet(path, number, address(path), frames);
    }

    /// Sends a packet with these frames and the next number of the path under this id.
    pub fn send_under(&mut self, id: ConnectionId, path: u32, frames: &[u8]) {
        let number = self.next_number.get(&path).copied().unwrap_or(0);
        let mut packet = self.seal(id, path, number, frames);
        self.deliver_from(address(path), &mut packet);
    }

    fn send_packet(&mut self, path: u32, number: u64, from: SocketAddr, frames: &[u8]) {
        let mut packet = self.seal(self.remote_id(path), path, number, frames);
        self.deliver_from(from, &mut packet);
    }

    /// Creates a packet with these frames and the next number of the path, to be delivered later.
    pub fn prepare(&mut self, path: u32, frames: &[u8]) -> Vec<u8> {
        let number = self.next_number.get(&path).copied().unwrap_or(0);
        self.seal(self.remote_id(path), path, number, frames)
    }

    fn seal(&mut self, connection: ConnectionId, path: u32, number: u64, frames: &[u8]) -> Vec<u8> {
        self.next_number.insert(path, number + 1);
        for frame in Frames::new(frames) {
            if let Ok(Frame::Control(ControlFrame::NewConnectionId { path, id })) = frame {
                self.own_ids.insert((id, path.0));
            }
        }
        sealed(&mut self.session, connection, (path, number), frames)
    }

    /// The id under which the rogue receives on a path.
    pub fn id(path: u32) -> ConnectionId {
        ConnectionId(77 + path)
    }

    /// Sends the rogue's id for a path to the victim, on path 0.
    pub fn supply(&mut self, path: u32) {
        let frame = ControlFrame::NewConnectionId { path: PathId(path), id: Rogue::id(path) };
        self.send(0, &written(|writer| frame.encode(writer).expect("it fits")));
    }

    /// Removes the state of a path.
    pub fn forget(&mut self, path: u32) {
        self.next_number.remove(&path);
        self.heard.remove(&path);
        self.remote_ids.remove(&path);
        self.own_ids.remove(&(Rogue::id(path), path));
        self.traffic.remove(&address(path));
    }

    /// The victim's id for a path, if it has supplied one.
    pub fn supplied(&self, path: u32) -> Option<ConnectionId> {
        self.remote_ids.get(&path).copied()
    }

    /// The path of a packet from the victim, found by the id that the rogue announced for it.
    fn path_of(&self, header: DataHeader) -> PathId {
        let is_of = |path: &u32| *path as u8 == header.path;
        let of_id = self.own_ids.range((header.connection, 0)..=(header.connection, u32::MAX));
        let told = of_id.map(|(_, path)| *path).find(is_of);
        PathId(told.unwrap_or(header.connection.0.wrapping_sub(Rogue::id(0).0)))
    }

    /// The id for packets on a path. If the path has none, the id of path 0.
    fn remote_id(&self, path: u32) -> ConnectionId {
        self.supplied(path).or_else(|| self.supplied(0)).unwrap_or_default()
    }

    /// Delivers a packet to the victim from the path's address.
    pub fn deliver(&mut self, path: u32, packet: &mut [u8]) {
        self.deliver_from(address(path), packet);
    }

    fn deliver_from(&mut self, from: SocketAddr, payload: &mut [u8]) {
        self.traffic.entry(from).or_default().to_victim.add(payload.len());
        let (socket, remote, ecn) = (SocketId(0), from, Ecn::Ect0);
        self.victim.handle_datagram(self.now, Datagram { socket, remote, ecn, payload });
        self.note_events();
    }

    /// Advances the time and handles all timers that become due.
    pub fn advance(&mut self, by: Duration) {
        let end = self.now + by;
        for _ in 0..MOST_AT_ONCE {
            let next = self.victim.next_timeout().map_or(end, |(time, _)| time.min(end));
            self.now = self.now.max(next);
            self.victim.handle_timeout(self.now);
            self.note_events();
            self.listen();
            if self.now >= end {
                return;
            }
        }
        panic!("time does not pass: {:?} at {}", self.victim.next_timeout(), self.now);
    }

    /// Receives all datagrams that the victim sends now. Returns their number.
    pub fn listen(&mut self) -> usize {
        let mut buffer = vec![0; 2048];
        let mut count = 0;
        while let Some(transmit) = self.victim.poll_transmit(self.now, &|_| true, &mut buffer) {
            count += 1;
            assert!(
                count % MOST_AT_ONCE > 0 || count as u64 * SMALLEST <= self.windows(),
                "the victim does not stop sending"
            );
            self.traffic.entry(transmit.remote).or_default().from_victim.add(transmit.len);
            if self.losses > 0 {
                self.losses -= 1;
                continue;
            }
            self.open(transmit.remote, &mut buffer[..transmit.len]);
        }
        count
    }

    /// Sum of the victim's congestion windows, bytes.
    fn windows(&mut self) -> u64 {
        let stats = self.connection().map(|connection| connection.stats());
        stats.iter().flat_map(|stats| &stats.paths).map(|path| path.cwnd).sum()
    }

    fn open(&mut self, remote: SocketAddr, packet: &mut [u8]) {
        let Some(mask) = sample(packet).map(|bytes| self.session.keys.opener.mask(bytes)) else {
            return;
        };
        unprotect(packet, mask);
        let Ok(header) = DataHeader::decode(packet) else { return };
        let path = self.path_of(header);
        let newest = self.heard.get(&path.0).and_then(|runs| runs.first());
        let expected = newest.map_or(0, |run| run.end() + 1);
        let number = expand_number(header.number, expected);
        let opened = self.session.keys.opener.open(path, number, packet, HEADER_LEN);
        let end = opened.expect("the victim seals with the common keys");
        // The victim numbers its packets in order.
        let runs = self.heard.entry(path.0).or_default();
        match runs.first_mut() {
            Some(run) if run.end() + 1 == number => *run = *run.start()..=number,
            _ => runs.insert(0, number..=number),
        }
        runs.truncate(MAX_ACK_RANGES);
        let frames = packet[HEADER_LEN..end].to_vec();
        for frame in Frames::new(&frames) {
            if let Ok(Frame::Control(ControlFrame::NewConnectionId { path, id })) = frame {
                self.remote_ids.insert(path.0, id);
            }
        }
        self.inbox.push_back(Heard { remote, id: header.connection, path, number, frames });
        if self.inbox.len() > 4096 {
            self.inbox.pop_front();
        }
    }

    /// Takes the oldest packet of the victim that was not taken yet.
    pub fn take(&mut self) -> Option<Heard> {
        self.inbox.pop_front()
    }

    fn note_events(&mut self) {
        for event in events(&mut self.victim) {
            if let EndpointEvent::Connection(_, Event::Closed(reason)) = event {
                self.closed.get_or_insert(reason);
            }
        }
    }

    /// Acknowledges exactly the packets received on a path.
    pub fn acknowledge(&mut self, path: u32) {
        let Some(runs) = self.heard.get(&path).cloned() else { return };
        self.acknowledge_runs(path, &runs);
    }

    /// Acknowledges all numbers up to the highest one received on a path, including numbers that
    /// were not received.
    pub fn acknowledge_blindly(&mut self, path: u32) {
        let newest = self.heard.get(&path).and_then(|runs| runs.first()).cloned();
        let Some(newest) = newest else { return };
        self.acknowledge_runs(path, &[0..=*newest.end()]);
    }

    fn acknowledge_runs(&mut self, path: u32, runs: &[RangeInclusive<u64>]) {
        let header = AckHeader {
            path: PathId(path),
            received_at: self.now.as_micros() as u32,
            ..AckHeader::default()
        };
        let frame = written(|writer| {
            header.encode(runs.iter().cloned(), writer).expect("the ranges fit");
        });
        self.send(path, &frame);
    }
}
