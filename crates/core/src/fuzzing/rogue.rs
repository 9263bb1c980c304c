//! A peer that holds the keys of a connection and sends whatever it likes.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};

use anabranch_policy::view::{SymbolId, TrafficClass};
use anabranch_types::{PathId, Rng, Time};
use core::time::Duration;

use super::{MOST_AT_ONCE, events};
use crate::config::TransportConfig;
use crate::connection::{CloseReason, Connection, Event};
use crate::crypto::null::NullCrypto;
use crate::crypto::{Session, TAG_LEN};
use crate::endpoint::{Datagram, Endpoint, EndpointConfig, EndpointEvent, Handle};
use crate::handshake::{Initiating, Opening, Permitted, Schedule};
use crate::path::SocketId;
use crate::path::received::Ecn;
use crate::profiles::Profile;
use crate::wire::codec::Reader;
use crate::wire::fuzzing::{specimens, with_mutants};
use crate::wire::header::{protect, sample, unprotect};
use crate::wire::{
    AckHeader, ConnectionId, ControlFrame, DataHeader, Frame, Frames, HEADER_LEN, SourceFrame,
    StreamId, SymbolFrame, TransportParameters, Writer, expand_number,
};

/// A victim endpoint with one accepted connection, and the keys of the other end of it.
#[derive(Debug)]
pub struct Rogue {
    /// The endpoint under test.
    pub victim: Endpoint,
    /// Its connection with the rogue.
    pub handle: Handle,
    /// The present.
    pub now: Time,
    session: Session,
    remote_id: ConnectionId,
    next_number: BTreeMap<u32, u64>,
    /// Packets of the victim not looked at yet: path, number, frames.
    inbox: VecDeque<(PathId, u64, Vec<u8>)>,
    heard: BTreeMap<u32, u64>,
    closed: Option<CloseReason>,
}

fn address(path: u32) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(10, 0, 0, 1), 1000 + path as u16))
}

impl Rogue {
    /// Connects to a victim with `transport` and the profile of this name, announcing `parameters`.
    pub fn connect(
        transport: TransportConfig,
        profile: &str,
        parameters: &TransportParameters,
    ) -> Rogue {
        let now = Time::from_millis(1);
        let mut config = EndpointConfig::new(Profile::named(profile).expect("it is built in"));
        config.transport = transport;
        config.responder.permitted = Permitted::Anyone;
        let crypto = Box::new(NullCrypto::new([2; 32]));
        let mut victim = Endpoint::new(config, crypto, Rng::new(2), Time::ZERO);
        let mut ours = NullCrypto::new([1; 32]);
        let opening = Opening {
            peer: victim.public_key(),
            local_id: 77,
            timestamp: 1 << 60,
            parameters: &parameters.encode(),
        };
        let rng = Rng::new(1);
        let mut initiating = Initiating::new(&mut ours, opening, Schedule::default(), now, rng)
            .expect("the message is short");
        initiating.add_path(PathId(0), now);
        let mut message = Vec::new();
        initiating.poll(&ours, PathId(0), now, &mut message);
        let payload = message.as_mut_slice();
        let (socket, ecn) = (SocketId(0), Ecn::NotEct);
        victim.handle_datagram(now, Datagram { socket, remote: address(0), ecn, payload });
        let mut buffer = vec![0; 2048];
        let response = victim.poll_transmit(now, &|_| true, &mut buffer).expect("an answer");
        let established =
            initiating.on_response(&ours, &buffer[..response.len]).expect("a true answer");
        let handle = victim.handles().next().expect("a connection");
        let mut rogue = Rogue {
            victim,
            handle,
            now,
            session: established.session,
            remote_id: ConnectionId(established.remote_id),
            next_number: BTreeMap::new(),
            inbox: VecDeque::new(),
            heard: BTreeMap::new(),
            closed: None,
        };
        rogue.send(0, &[0x01]);
        rogue.listen();
        rogue.answer();
        rogue
    }

    /// Answers the challenges among the packets not looked at yet, which are forgotten.
    pub fn answer(&mut self) {
        while let Some((path, _, frames)) = self.take() {
            for frame in Frames::new(&frames).map_while(Result::ok) {
                let Frame::Control(ControlFrame::PathChallenge { data }) = frame else { continue };
                let mut buffer = [0; 16];
                let mut writer = Writer::new(&mut buffer);
                let response = ControlFrame::PathResponse { data };
                response.encode(&mut writer).expect("the response is short");
                self.send(path.0, writer.written());
            }
        }
    }

    /// The victim's connection, until it is forgotten.
    pub fn connection(&mut self) -> Option<&mut Connection> {
        self.victim.connection(self.handle)
    }

    /// Why the victim closed, if it has.
    pub fn closed(&self) -> Option<&CloseReason> {
        self.closed.as_ref()
    }

    /// Sends a packet with these frames and the next number of the path.
    pub fn send(&mut self, path: u32, frames: &[u8]) {
        let number = self.next_number.get(&path).copied().unwrap_or(0);
        self.send_numbered(path, number, frames);
    }

    /// Sends a packet with these frames.
    pub fn send_numbered(&mut self, path: u32, number: u64, frames: &[u8]) {
        self.next_number.insert(path, number + 1);
        let mut packet = vec![0; HEADER_LEN];
        let header = DataHeader {
            connection: self.remote_id,
            epoch: 0,
            path: path as u8,
            number: number as u32,
        };
        header.encode(&mut Writer::new(&mut packet)).expect("the header fits");
        packet.extend_from_slice(frames);
        packet.resize(packet.len() + TAG_LEN, 0);
        self.session.sealer.seal(PathId(path), number, &mut packet, HEADER_LEN);
        let mask = sample(&packet).map(|bytes| self.session.sealer.mask(bytes));
        protect(&mut packet, mask.expect("the packet is long enough"));
        let payload = packet.as_mut_slice();
        let (socket, remote, ecn) = (SocketId(0), address(path), Ecn::Ect0);
        self.victim.handle_datagram(self.now, Datagram { socket, remote, ecn, payload });
        self.note_events();
    }

    /// Lets time pass, up to and including what is due then.
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

    /// Takes every datagram that the victim sends now; returns how many.
    pub fn listen(&mut self) -> usize {
        let mut buffer = vec![0; 2048];
        let mut count = 0;
        while let Some(transmit) = self.victim.poll_transmit(self.now, &|_| true, &mut buffer) {
            count += 1;
            assert!(count < MOST_AT_ONCE, "the victim does not stop sending");
            self.open(&mut buffer[..transmit.len]);
        }
        count
    }

    fn open(&mut self, packet: &mut [u8]) {
        let Some(mask) = sample(packet).map(|bytes| self.session.opener.mask(bytes)) else {
            return;
        };
        unprotect(packet, mask);
        let Ok(header) = DataHeader::decode(packet) else { return };
        let path = PathId(header.path.into());
        let expected = self.heard.get(&path.0).copied().unwrap_or(0);
        let number = expand_number(header.number, expected);
        let opened = self.session.opener.open(header.epoch, path, number, packet, HEADER_LEN);
        let end = opened.expect("the victim seals with the common keys");
        self.heard.insert(path.0, number + 1);
        self.inbox.push_back((path, number, packet[HEADER_LEN..end].to_vec()));
        if self.inbox.len() > 4096 {
            self.inbox.pop_front();
        }
    }

    /// The oldest packet of the victim not looked at yet: path, number, frames.
    pub fn take(&mut self) -> Option<(PathId, u64, Vec<u8>)> {
        self.inbox.pop_front()
    }

    fn note_events(&mut self) {
        for event in events(&mut self.victim) {
            if let EndpointEvent::Connection(_, Event::Closed(reason)) = event {
                self.closed.get_or_insert(reason);
            }
        }
    }

    /// Acknowledges everything heard on a path, truthfully.
    pub fn acknowledge(&mut self, path: u32) {
        let Some(next) = self.heard.get(&path).copied().filter(|next| *next > 0) else { return };
        let header = AckHeader {
            path: PathId(path),
            received_at: self.now.as_micros() as u32,
            ..AckHeader::default()
        };
        let mut buffer = [0; 64];
        let mut writer = Writer::new(&mut buffer);
        header.encode([0..=next - 1], &mut writer).expect("one range fits");
        let frame = writer.written().to_vec();
        self.send(path, &frame);
    }
}

/// A source symbol with stream data.
fn symbol(id: u64, offset: u64, data: &[u8]) -> Vec<u8> {
    let mut payload = [0; 512];
    let mut writer = Writer::new(&mut payload);
    let frame = SymbolFrame::Stream { stream: StreamId(0), offset, fin: false, data };
    frame.encode(&mut writer).expect("the data is short");
    let mut buffer = [0; 600];
    let mut outer = Writer::new(&mut buffer);
    let (symbol, floor) = (SymbolId(id), SymbolId(0));
    let frame = SourceFrame { symbol, floor, payload: writer.written() };
    frame.encode_to_end(&mut outer).expect("the symbol is short");
    outer.written().to_vec()
}

/// A peer with valid keys sends arbitrary frames, among them true acknowledgements and symbols; the
/// victim's application writes and reads. Nothing panics or runs away.
pub fn peer(data: &[u8]) {
    let mut script = Reader::new(data);
    let Ok(choice) = script.u8() else { return };
    let profiles = Profile::all();
    let profile = profiles[usize::from(choice) % profiles.len()].name.as_str();
    let mut transport = TransportConfig { receive_symbols: 300, ..TransportConfig::default() };
    transport.streams.max_stream_data = 4096;
    transport.streams.max_data = 8192;
    let theirs = TransportConfig::default().parameters(profile);
    let mut rogue = Rogue::connect(transport, profile, &theirs);
    let mut next_symbol = 0;
    let mut widest = BTreeMap::new();
    while let Ok(operation) = script.u8() {
        if play(&mut rogue, operation, &mut next_symbol, &mut script).is_none() {
            break;
        }
        audit(&mut rogue, &mut widest);
    }
    rogue.advance(Duration::from_secs(60));
    assert!(rogue.connection().is_none(), "an idle connection goes away");
}

fn play(
    rogue: &mut Rogue,
    operation: u8,
    next_symbol: &mut u64,
    script: &mut Reader<'_>,
) -> Option<()> {
    let path = u32::from(operation & 3);
    match operation >> 2 & 7 {
        0 | 1 => {
            let length = script.u8().ok()?;
            let frames = script.bytes(length.into()).or_else(|_| script.rest()).ok()?.to_vec();
            rogue.send(path, &frames);
        }
        2 => rogue.advance(Duration::from_millis(u64::from(script.u8().ok()?) * 4)),
        3 => {
            rogue.listen();
            rogue.acknowledge(path);
            rogue.answer();
        }
        4 => {
            let data = [*next_symbol as u8; 100];
            rogue.send(path, &symbol(*next_symbol, *next_symbol * 100, &data));
            *next_symbol += 1;
        }
        5 => {
            let connection = rogue.connection()?;
            let stream = connection.open_stream(TrafficClass::Bulk).unwrap_or(StreamId(1));
            let _ = connection.write(stream, &[7; 20_000]);
            let _ = connection.send_datagram(&[8; 100], TrafficClass::Interactive);
        }
        6 => {
            let _ = rogue.connection()?.read(StreamId(0), &mut [0; 1000]);
        }
        _ => {
            let number = u64::from(script.u8().ok()?) << (operation >> 3);
            rogue.send_numbered(path, number, &[0x01]);
        }
    }
    Some(())
}

/// What is in flight fits into the widest window that its path has had: a window that shrinks calls
/// nothing back.
fn audit(rogue: &mut Rogue, widest: &mut BTreeMap<PathId, u64>) {
    let Some(connection) = rogue.connection() else { return };
    let stats = connection.stats();
    assert!(stats.paths.len() <= 8, "{} paths", stats.paths.len());
    for path in &stats.paths {
        let window = widest.entry(path.id).or_insert(20_000);
        *window = path.window.max(*window);
        // Probes may leave beyond the window, but few.
        assert!(path.bytes_in_flight <= *window + 200_000, "{path:?}");
    }
}

/// Inputs for [`peer`].
pub fn peer_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for profile in 0..3 {
        let mut seed = vec![profile, 5 << 2];
        for frame in specimens().into_iter().filter(|frame| frame.len() < 200) {
            seed.extend([0, frame.len() as u8]);
            seed.extend(frame);
        }
        seeds.push(seed);
        // A transfer both ways with true acknowledgements.
        let round = [5 << 2, 3 << 2, 4 << 2, 2 << 2, 10, 4 << 2 | 1, 3 << 2, 6 << 2, 2 << 2, 30];
        seeds.push([&[profile][..], &round.repeat(8)].concat());
    }
    with_mutants(seeds)
}
