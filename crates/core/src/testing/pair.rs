//! Two honest endpoints in virtual time.

use std::collections::VecDeque;
use std::net::SocketAddr;

use anabranch_policy::view::TrafficClass;
use anabranch_types::Time;
use core::time::Duration;

use super::audit::Flight;
use super::network::{Flying, Network, ROOM, Sent, address};
use super::{MOST_AT_ONCE, endpoint};
use crate::connection::{CloseReason, Connection, Event, Transmit};
use crate::endpoint::{ConnectConfig, Datagram, Endpoint, EndpointConfig, EndpointEvent, Handle};
use crate::handshake::Permitted;
use crate::path::received::Ecn;
use crate::path::{PathAddress, SocketId};
use crate::profiles::Profile;
use crate::stream::StreamEvent;
use crate::wire::{CloseCode, StreamId};

/// Period of the streams' bytes. It is prime, so that a lost or repeated block is always noticed.
const PERIOD: usize = 65_521;

/// Number of bytes after which the next class has its turn.
const TURN: u64 = 10_000;

/// One of the two ends and its application, which sends and receives known bytes on one stream.
#[derive(Debug)]
pub struct End {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The newest connection with the other end.
    pub handle: Option<Handle>,
    /// When the connection was established.
    pub opened: Option<Time>,
    /// The connection's stream, opened by the end that writes first.
    pub stream: Option<StreamId>,
    /// The classes of the written bytes, which take turns.
    pub classes: &'static [TrafficClass],
    /// The class of the last bytes written.
    class: TrafficClass,
    /// Number of bytes that the application still has to write; `u64::MAX` means without end.
    pub unwritten: u64,
    /// Number of bytes written.
    pub written: u64,
    /// Number of bytes read.
    pub read: u64,
    /// Number of datagrams sent.
    pub packets: u64,
    /// Why the connection ended.
    pub closed: Option<CloseReason>,
}

impl End {
    /// The connection with the other end, until the endpoint removes it.
    pub fn connection(&mut self) -> Option<&mut Connection> {
        self.handle.and_then(|handle| self.endpoint.connection(handle))
    }
}

/// Cost of the endpoints' work, measured by the pair's meter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Cost of [`Endpoint::poll_transmit`].
    pub sending: u64,
    /// Cost of [`Endpoint::handle_datagram`].
    pub receiving: u64,
    /// Cost of [`Endpoint::handle_timeout`].
    pub timeouts: u64,
    /// Cost of events, writing and reading.
    pub application: u64,
    /// Number of datagrams received.
    pub packets: u64,
}

/// Two endpoints that write to each other over a network. The pair checks the following for every
/// network. The bytes read are those written, in order. No endpoint sends without end or exceeds
/// its congestion window. No endpoint closes because of a protocol violation. No timer that is due
/// remains unhandled.
#[derive(Debug)]
pub struct Pair<N> {
    /// The current time.
    pub now: Time,
    /// The end that connects, and the end that accepts.
    pub ends: [End; 2],
    /// The network that carries the datagrams.
    pub network: N,
    /// Datagrams in the network, sorted by arrival time and then by send time.
    pub flying: VecDeque<Flying>,
    /// Most datagrams requested from an endpoint in one call.
    pub train: usize,
    /// Cost meter, read before and after each call of an endpoint. The tally sums the differences.
    pub meter: fn() -> u64,
    /// Cost of the calls, measured by the meter.
    pub tally: Tally,
    profile: Profile,
    spare: Vec<Vec<u8>>,
    batch: Vec<u8>,
    pattern: Vec<u8>,
    buffer: Vec<u8>,
}

impl<N: Network> Pair<N> {
    /// Creates two endpoints with default limits. The first starts to connect over this many paths.
    pub fn new(profile: &Profile, paths: u32, network: N) -> Self {
        Self::with(EndpointConfig::new(profile.clone()), paths, network)
    }

    /// Version of [`new`](Self::new) that uses `config` for both ends, except that anyone may
    /// connect.
    pub fn with(mut config: EndpointConfig, paths: u32, network: N) -> Self {
        let profile = config.profile.clone();
        config.responder.permitted = Permitted::Anyone;
        let ends = [1, 2].map(|seed| endpoint(seed, config.clone()));
        let mut pair = Self::of(ends, &profile, network);
        pair.connect(paths);
        pair
    }

    /// Creates a pair of these endpoints, which are not connected.
    pub fn of(ends: [Endpoint; 2], profile: &Profile, network: N) -> Self {
        let end = |endpoint| End {
            endpoint,
            handle: None,
            opened: None,
            stream: None,
            classes: &[TrafficClass::Bulk],
            class: TrafficClass::Bulk,
            unwritten: 0,
            written: 0,
            read: 0,
            packets: 0,
            closed: None,
        };
        let byte = |n: usize| (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
        Pair {
            now: Time::from_millis(1),
            ends: ends.map(end),
            network,
            flying: VecDeque::with_capacity(1024),
            train: 1,
            meter: || 0,
            tally: Tally::default(),
            profile: profile.clone(),
            spare: Vec::with_capacity(1024),
            batch: Vec::new(),
            pattern: (0..PERIOD).map(|n| byte(n) as u8).collect(),
            buffer: vec![0; PERIOD],
        }
    }

    /// Lets the first end connect to the second.
    ///
    /// # Panics
    /// Panics if the limits of the first end allow no further connection or not this many paths.
    pub fn connect(&mut self, paths: u32) {
        let remote = |path| PathAddress { socket: SocketId(path), remote: address(1, path) };
        let config = ConnectConfig {
            peer: self.ends[1].endpoint.public_key(),
            paths: (0..paths).map(remote).collect(),
            profile: self.profile.clone(),
        };
        self.ends[0].endpoint.connect(self.now, config).expect("nothing speaks against it");
    }

    /// Advances the time in one step. At its end, datagrams that arrived and timers that are due
    /// are handled, and then the applications and both endpoints do what they can.
    pub fn round(&mut self, by: Duration) {
        self.advance(by);
        self.news();
        for side in 0..2 {
            let unwritten = self.ends[side].unwritten;
            if unwritten > 0 {
                let written = self.write(side, unwritten);
                let endless = unwritten == u64::MAX;
                self.ends[side].unwritten -= if endless { 0 } else { written };
            }
            self.read(side, usize::MAX);
        }
        self.send();
    }

    /// Advances the time, delivers the datagrams that arrived, and then handles the timers that are
    /// due.
    pub fn advance(&mut self, by: Duration) {
        self.now += by;
        self.deliver_due();
        for side in 0..2 {
            let end = &mut self.ends[side].endpoint;
            if end.next_timeout().is_some_and(|(time, _)| time <= self.now) {
                let before = (self.meter)();
                end.handle_timeout(self.now);
                self.tally.timeouts += (self.meter)() - before;
            }
        }
    }

    /// Delivers the datagrams that have arrived by now. Returns their number.
    pub fn deliver_due(&mut self) -> usize {
        let mut count = 0;
        while self.flying.front().is_some_and(|first| first.arrives <= self.now)
            && let Some(datagram) = self.flying.pop_front()
        {
            self.deliver(datagram);
            count += 1;
        }
        count
    }

    /// Delivers a datagram now.
    pub fn deliver(&mut self, mut datagram: Flying) {
        let Flying { to, path, from, ecn, .. } = datagram;
        self.inject(to, path, from, ecn, datagram.payload());
        self.forget(datagram);
    }

    /// Drops a datagram.
    pub fn forget(&mut self, datagram: Flying) {
        self.spare.push(datagram.room);
    }

    /// Delivers a datagram to an end. It need not come from the other end.
    #[expect(clippy::too_many_arguments, reason = "the fields of a datagram")]
    pub fn inject(&mut self, to: usize, path: u32, from: SocketAddr, ecn: Ecn, bytes: &mut [u8]) {
        let datagram = Datagram { socket: SocketId(path), remote: from, ecn, payload: bytes };
        let before = (self.meter)();
        self.ends[to].endpoint.handle_datagram(self.now, datagram);
        self.tally.receiving += (self.meter)() - before;
        self.tally.packets += 1;
    }

    /// Lets both endpoints send all that they may.
    pub fn send(&mut self) {
        for side in 0..2 {
            self.send_from(side);
        }
    }

    /// Lets one endpoint send all that it may. Returns the number of datagrams.
    pub fn send_from(&mut self, side: usize) -> usize {
        let flight = Flight::of(&mut self.ends[side]);
        let mut count = 0;
        let waits = loop {
            let room = self.network.room(self.now, side);
            let sent = if room > 0 { self.send_train(side, room) } else { 0 };
            if sent == 0 {
                break room == 0;
            }
            count += sent;
            assert!(count < MOST_AT_ONCE, "end {side} does not stop sending");
        };
        flight.check(&mut self.ends[side]);
        let due = self.ends[side].endpoint.next_timeout();
        assert!(waits || due.is_none_or(|(time, _)| time > self.now), "{due:?} is not dealt with");
        self.ends[side].packets += count as u64;
        count
    }

    /// Lets one endpoint send a train of at most `room` datagrams. Returns their number.
    fn send_train(&mut self, side: usize, room: usize) -> usize {
        let most = self.train.min(room);
        if self.batch.len() < most * ROOM {
            self.batch.resize(most * ROOM, 0);
        }
        let mut batch = core::mem::take(&mut self.batch);
        let before = (self.meter)();
        let end = &mut self.ends[side].endpoint;
        let transmit = end.poll_train(self.now, &|_| true, &mut batch, most);
        self.tally.sending += (self.meter)() - before;
        let mut count = 0;
        if let Some(transmit) = transmit {
            for payload in batch[..transmit.len].chunks(transmit.segment) {
                self.send_one(side, &transmit, payload);
                count += 1;
            }
        }
        assert!(count <= most, "end {side} sends {count} datagrams instead of {most}");
        self.batch = batch;
        count
    }

    fn send_one(&mut self, side: usize, transmit: &Transmit, payload: &[u8]) {
        let now = self.now;
        let (path, remote, ecn) = (transmit.socket.0, transmit.remote, transmit.ecn);
        let sent = Sent { now, side, path, remote, ecn, flying: self.flying.len(), payload };
        if remote != self.network.source(1 - side, path) {
            self.network.stray(&sent);
            return;
        }
        let Some((arrives, ecn)) = self.network.carry(&sent) else { return };
        let mut room = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(ROOM));
        room.clear();
        room.extend_from_slice(payload);
        let (to, from) = (1 - side, self.network.source(side, path));
        let at = self.flying.partition_point(|earlier| earlier.arrives <= arrives);
        let datagram = Flying { arrives, to, path, from, ecn, room };
        if at == self.flying.len() {
            self.flying.push_back(datagram);
        } else {
            self.flying.insert(at, datagram);
        }
    }

    /// Passes all events to both applications.
    pub fn news(&mut self) {
        for side in 0..2 {
            loop {
                let before = (self.meter)();
                let event = self.ends[side].endpoint.poll_event();
                self.tally.application += (self.meter)() - before;
                let Some(event) = event else { break };
                self.hear(side, event);
            }
        }
    }

    fn hear(&mut self, side: usize, event: EndpointEvent) {
        let end = &mut self.ends[side];
        match event {
            EndpointEvent::Connected(handle) | EndpointEvent::Accepted(handle) => {
                (end.handle, end.stream, end.opened) = (Some(handle), None, Some(self.now));
            }
            EndpointEvent::Connection(handle, Event::Stream(StreamEvent::Opened(stream))) => {
                assert_eq!((end.handle, end.stream), (Some(handle), None), "of end {side}");
                end.stream = Some(stream);
            }
            EndpointEvent::Connection(handle, Event::Closed(reason)) => {
                // Neither endpoint violates the protocol, so no connection may end by an error. It
                // may end by choice, by silence, or because a test's keys are used up.
                let allowed = [
                    CloseCode::IDLE,
                    CloseCode::ALL_PATHS_DOWN,
                    CloseCode::UNKNOWN_TO_PEER,
                    CloseCode::KEY_LIMIT,
                ];
                let is_allowed = allowed.contains(&reason.code);
                assert!(is_allowed || reason.code >= CloseCode::FIRST_APPLICATION, "{reason:?}");
                if end.handle == Some(handle) {
                    end.closed = Some(reason);
                }
            }
            _ => {}
        }
    }

    /// Lets an application write at most `most` bytes on its stream, which is opened if there is
    /// none. Returns the number of bytes written.
    pub fn write(&mut self, side: usize, most: u64) -> u64 {
        let Pair { ends, pattern, meter, tally, .. } = self;
        let end = &mut ends[side];
        let Some(connection) = end.handle.and_then(|handle| end.endpoint.connection(handle)) else {
            return 0;
        };
        let turn = (end.written / TURN) as usize % end.classes.len();
        let class = end.classes[turn];
        end.stream = end.stream.or_else(|| connection.open_stream(TrafficClass::Bulk).ok());
        let Some(stream) = end.stream else { return 0 };
        if core::mem::replace(&mut end.class, class) != class {
            connection.set_stream_class(stream, class).expect("the stream is open");
        }
        let before = meter();
        let mut written = 0;
        while written < most {
            let at = (end.written + written) as usize % PERIOD;
            let length = (PERIOD - at).min(usize::try_from(most - written).unwrap_or(PERIOD));
            let taken = connection.write(stream, &pattern[at..at + length]).unwrap_or(0);
            written += taken as u64;
            if taken < length {
                break;
            }
        }
        tally.application += meter() - before;
        end.written += written;
        written
    }

    /// Lets an application read at most `most` bytes. Returns the number of bytes read.
    pub fn read(&mut self, side: usize, most: usize) -> usize {
        let written = self.ends[1 - side].written;
        let Pair { ends, pattern, buffer, meter, tally, .. } = self;
        let end = &mut ends[side];
        let (Some(handle), Some(stream)) = (end.handle, end.stream) else { return 0 };
        let Some(connection) = end.endpoint.connection(handle) else { return 0 };
        let mut read = 0;
        while read < most {
            // One read must not cross the end of the pattern.
            let at = end.read as usize % PERIOD;
            let room = &mut buffer[..(PERIOD - at).min(most - read)];
            let before = meter();
            let outcome = connection.read(stream, room);
            tally.application += meter() - before;
            let count = outcome.map_or(0, |outcome| outcome.n);
            if count == 0 {
                break;
            }
            let place = end.read;
            assert!(room[..count] == pattern[at..at + count], "bytes {place} to +{count} differ");
            end.read += count as u64;
            read += count;
        }
        assert!(end.read <= written, "{} bytes read of {written} written", end.read);
        read
    }
}
