//! A connection: paths, coding blocks and streams under one set of keys.
//!
//! This file has the state and the application's operations. `ingress` processes received packets,
//! `egress` makes packets, `timers` handles timeouts, and `feedback` processes acknowledgements.

mod acknowledged;
mod addresses;
mod allowance;
mod attention;
mod close;
mod connection_ids;
mod credit;
mod egress;
mod events;
mod feedback;
mod identifiers;
mod inflow;
mod ingress;
mod keys;
mod lifecycle;
mod memory;
mod moves;
mod mtu;
mod packet;
mod packetize;
mod paths;
mod queue;
mod recover;
mod rekey;
mod reports;
mod setup;
mod sharing;
mod silence;
mod statistics;
mod symbols;
mod timers;
mod train;
mod views;
mod watch;

use std::collections::VecDeque;

use anabranch_policy::bottleneck::Bottlenecks;
use anabranch_policy::scheduler::{Pick, SchedulerAction};
use anabranch_policy::view::{BlockId, SymbolSpace, TrafficClass};
use anabranch_types::{PathId, Rng, Time};
use bytes::Bytes;

use crate::coding::spaces::{ReceiveSpaces, SendSpaces};
use crate::config::TransportConfig;
use crate::crypto::{PublicKey, Randomness};
use crate::observe::{Observation, Observer};
use crate::path::PathAddress;
use crate::profiles::Profile;
use crate::stream::{Pending, ReadOutcome, StreamError, Streams};
use crate::wire::{CloseCode, ConnectionId, ControlFrame, Role, StreamId, TransportParameters};

use attention::Attention;
use credit::SymbolCredit;
use keys::Keys;
use paths::{PathIndex, PathTable};
use setup::{Identity, Policies};

pub use crate::coding::send::{BlockRecord, Totals};
pub use close::CloseReason;
pub use egress::Transmit;
pub use events::Event;
pub use lifecycle::AddPathError;
pub(crate) use setup::Setup;
pub(crate) use silence::CHECK_AGAIN;
pub use statistics::{ConnectionStats, Dropped, EcnStats, PathStats};
pub(crate) use timers::Earliest;
pub use timers::TimeoutReason;

/// Reused vectors, so that nothing is allocated in the steady state.
#[derive(Debug, Default)]
struct Scratch {
    picks: Vec<Pick>,
    actions: Vec<SchedulerAction>,
    ack_paths: Vec<PathId>,
    /// Blocks whose symbols have changed state, until the policy is asked what they need.
    touched: Vec<BlockId>,
    recovered: Vec<BlockId>,
    numbers: Vec<u64>,
    /// Packet numbers acknowledged for the first time.
    runs: Vec<core::ops::Range<u64>>,
    /// Packets that are reported to the estimator together; empty between acknowledgements.
    resolved: feedback::ResolvedRun,
}

/// State of one connection.
#[derive(Debug)]
pub struct Connection {
    identity: Identity,
    ids: connection_ids::ConnectionIds,
    keys: Keys,
    config: TransportConfig,
    profile: Profile,
    policies: Policies,
    /// Which paths share a bottleneck; `None` until there are two paths.
    bottlenecks: Option<Box<Bottlenecks>>,
    peer_parameters: TransportParameters,
    paths: PathTable,
    addresses: addresses::Addresses,
    streams: Streams,
    send: SendSpaces,
    receive: ReceiveSpaces,
    /// One entry for each symbol space.
    credit: [SymbolCredit; SymbolSpace::ALL.len()],
    /// Blocks for which the policy is asked what they need once the receiver's reports have been read.
    unprovisioned: Vec<BlockId>,
    /// Control frames that may leave on any path.
    control: VecDeque<ControlFrame>,
    attention: Attention,
    events: VecDeque<Event>,
    closing: close::Closing,
    /// Whether packets have been exchanged under the keys.
    established: bool,
    started: Time,
    last_received: Time,
    silence: silence::Silence,
    was_drained: bool,
    /// One entry for each symbol space.
    linger: [Option<packetize::Linger>; SymbolSpace::ALL.len()],
    /// For values that an attacker must not guess.
    random: Box<dyn Randomness>,
    /// For choices that may be predictable.
    rng: Rng,
    observer: Option<Box<dyn Observer>>,
    /// The sender's current wait, kept for the observer.
    wait: watch::Wait,
    scratch: Scratch,
    dropped: statistics::Dropped,
    memory: memory::MemoryAccount,
    /// The response that was authenticated.
    response: Vec<u8>,
}

impl Connection {
    /// The peer's static key.
    pub fn peer(&self) -> PublicKey {
        self.identity.peer
    }

    /// The connection id under which this side receives on path 0. It names the connection on this side.
    pub fn local_id(&self) -> ConnectionId {
        self.identity.local_id
    }

    /// The connection id under which the peer receives on path 0.
    pub fn remote_id(&self) -> ConnectionId {
        self.identity.remote_id
    }

    /// Whether this side opened the connection.
    pub fn role(&self) -> Role {
        self.identity.role
    }

    /// The profile in use.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Whether packets have been exchanged under the connection's keys.
    pub fn is_established(&self) -> bool {
        self.established
    }

    /// Records observations from now on.
    pub fn set_observer(&mut self, observer: Option<Box<dyn Observer>>) {
        self.observer = observer;
    }

    /// Opens a stream that both sides can write to.
    pub fn open_stream(&mut self, class: TrafficClass) -> Result<StreamId, StreamError> {
        self.streams.open(class)
    }

    /// Opens a stream that only this side can write to.
    pub fn open_uni_stream(&mut self, class: TrafficClass) -> Result<StreamId, StreamError> {
        self.streams.open_uni(class)
    }

    /// Sets a stream's priority among the streams of its class, for what this side sends: the
    /// highest first, streams of the same priority in turn. Every stream begins at 0.
    pub fn set_stream_priority(
        &mut self,
        stream: StreamId,
        priority: i32,
    ) -> Result<(), StreamError> {
        self.streams.set_priority(stream, priority)
    }

    /// The class and the priority of the data that this side sends on a stream; `None` if there is
    /// no such stream.
    pub fn stream_urgency(&self, stream: StreamId) -> Option<(TrafficClass, i32)> {
        self.streams.urgency(stream)
    }

    /// The longest datagram that can be sent now, bytes. It follows the sizes of packets that the paths carry.
    pub const fn max_datagram_size(&self) -> usize {
        self.streams.datagram_limit()
    }

    /// Bytes of the most urgent class with waiting data that wait for congestion windows, as far as
    /// the peer's credit admits them.
    pub fn waiting_bytes(&self) -> u64 {
        self.streams.pending().bytes
    }

    /// Bytes free in the send queue of a class's datagrams. A datagram takes its length plus
    /// [`DATAGRAM_COST`](crate::stream::DATAGRAM_COST).
    pub fn datagram_send_buffer_space(&self, class: TrafficClass) -> usize {
        self.streams.datagram_space(class)
    }

    /// Changes the class of the bytes that this side writes to a stream, from the first byte that
    /// is in no symbol yet. Streams that the peer opened begin as bulk.
    pub fn set_stream_class(
        &mut self,
        stream: StreamId,
        class: TrafficClass,
    ) -> Result<(), StreamError> {
        self.streams.set_class(stream, class)?;
        self.changed();
        Ok(())
    }

    /// Takes as many bytes as the send buffer has room for; returns how many.
    pub fn write(&mut self, stream: StreamId, bytes: &[u8]) -> Result<usize, StreamError> {
        let taken = self.streams.write(stream, bytes)?;
        if taken > 0 {
            self.memory.on_moved(taken);
            self.changed();
        }
        Ok(taken)
    }

    /// Zero-copy version of [`write`](Self::write): keeps a reference to the bytes until they are
    /// sent, except for short chunks. The bytes taken are removed from the front of `chunk`.
    pub fn write_chunk(
        &mut self,
        stream: StreamId,
        chunk: &mut Bytes,
    ) -> Result<usize, StreamError> {
        let taken = self.streams.write_chunk(stream, chunk)?;
        if taken > 0 {
            self.memory.on_moved(taken);
            self.changed();
        }
        Ok(taken)
    }

    /// Ends the stream: no more bytes will follow.
    pub fn finish(&mut self, stream: StreamId) -> Result<(), StreamError> {
        self.streams.finish(stream)?;
        self.changed();
        Ok(())
    }

    /// Abandons the unsent bytes of a stream.
    pub fn reset(&mut self, stream: StreamId, code: u64) -> Result<(), StreamError> {
        self.streams.reset(stream, code)?;
        self.changed();
        Ok(())
    }

    /// Asks the peer to stop sending on a stream.
    pub fn stop_sending(&mut self, stream: StreamId, code: u64) -> Result<(), StreamError> {
        self.streams.stop_sending(stream, code)?;
        self.changed();
        Ok(())
    }

    /// Reads bytes in order.
    pub fn read(&mut self, stream: StreamId, out: &mut [u8]) -> Result<ReadOutcome, StreamError> {
        let outcome = self.streams.read(stream, out, &mut self.receive)?;
        self.memory.on_moved(outcome.n);
        Ok(outcome)
    }

    /// Bytes of a stream that can be read now; `None` if there is no such stream.
    pub fn readable(&self, stream: StreamId) -> Option<u64> {
        self.streams.readable(stream)
    }

    /// Whether control frames for the peer are waiting because of reading, stopping or resetting.
    pub fn has_control(&self) -> bool {
        self.streams.has_control()
    }

    /// Queues a datagram, which is delivered at most once and in no particular order.
    pub fn send_datagram(&mut self, bytes: &[u8], class: TrafficClass) -> Result<(), StreamError> {
        self.streams.send_datagram(bytes, class)?;
        self.changed();
        Ok(())
    }

    /// Takes the oldest datagram received; returns its length.
    pub fn recv_datagram(&mut self, out: &mut [u8]) -> Option<usize> {
        self.streams.recv_datagram(out)
    }

    /// Whether all data written so far is known to have reached the peer.
    pub fn is_drained(&self) -> bool {
        self.send.is_empty() && self.streams.is_idle() && !self.is_released()
    }

    /// Notes that a copy of the handshake's response came from this address. Packets pass in both
    /// directions there, so data need not wait for the challenge. (The initiator chose the address
    /// itself and may send to it anyway.)
    pub fn path_answered(&mut self, now: Time, address: PathAddress, response: &[u8]) {
        if self.response != response {
            return;
        }
        if let Some(slot) = self.paths.find(|path| path.address == address) {
            self.validated(now, slot);
        }
    }

    /// Remembers the response that was authenticated, to recognise copies of it on other paths.
    pub(crate) fn remember_response(&mut self, response: &[u8]) {
        self.response = response.to_vec();
    }

    /// Whether lost symbols are sent again instead of repaired, by policy or because the peer
    /// decodes no code.
    fn resends(&self) -> bool {
        self.policies.recovery.resends() || !self.send[SymbolSpace::Main].makes_repairs()
    }

    fn changed(&mut self) {
        self.attention.changed();
    }

    fn observe(&mut self, now: Time, observation: Observation) {
        if let Some(observer) = &mut self.observer {
            observer.observe(now, &observation);
        }
    }

    fn has_alternative(&self, slot: PathIndex) -> bool {
        self.paths.indexed().any(|(other, path)| other != slot && path.is_usable())
    }

    /// Data that could fill symbols. Data for whose space there is credit goes before other data.
    fn pending(&self) -> Pending {
        if self.send.has_live() {
            let has_credit = |class| self.symbol_credit(self.send.of_class(class)) > 0;
            let pending = self.streams.pending_of(has_credit);
            if pending.class.is_some() {
                return pending;
            }
        }
        self.streams.pending()
    }

    /// The symbol space of the data that is sent next.
    fn next_space(&self) -> SymbolSpace {
        if !self.send.has_live() {
            return SymbolSpace::Main;
        }
        self.send.of_class(self.pending().class.unwrap_or_default())
    }

    /// Symbols of a space that may still be sent, within the peer's credit and the number that this side keeps.
    fn symbol_credit(&self, space: SymbolSpace) -> u64 {
        let (next, floor) = (self.send[space].next_symbol(), self.send[space].floor());
        let most = match space {
            SymbolSpace::Main => self.config.send_symbols,
            SymbolSpace::Live => self.config.live_send_symbols(),
        };
        self.credit[space as usize].left(next).min(most.saturating_sub(next.0 - floor.0))
    }

    /// Closes the connection; the peer is told.
    pub fn close(&mut self, now: Time, code: u64, reason: &str) {
        self.start_close(now, CloseReason::local(CloseCode(code), reason));
    }
}
