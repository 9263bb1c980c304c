//! A connection: paths, coding windows and streams under one set of keys.
//!
//! This file holds the state and the application's verbs; packets come in through `ingress`, leave
//! through `egress`, time passes in `timers`, and `feedback` digests acknowledgements.

mod close;
mod cut;
mod egress;
mod events;
mod feedback;
mod ingress;
mod lifecycle;
mod mtu;
mod packet;
mod paths;
mod queue;
mod recover;
mod reports;
mod statistics;
mod symbols;
mod timers;
mod views;

use std::collections::VecDeque;

use anabranch_policy::recovery::RecoveryPolicy;
use anabranch_policy::redundancy::RedundancyPolicy;
use anabranch_policy::scheduler::{Pick, Scheduler, SchedulerAction};
use anabranch_policy::view::{SymbolId, TrafficClass, WindowId};
use anabranch_policy::{AckPolicy, LossDetector, LossEstimator, PolicyError};
use anabranch_policy::{ack, loss};
use anabranch_types::{PathId, Rng, Time};

use crate::coding::code;
use crate::coding::receive::ReceiveWindows;
use crate::coding::send::SendWindows;
use crate::config::TransportConfig;
use crate::crypto::{PublicKey, Session};
use crate::observe::{Observation, Observer};
use crate::path::PathAddress;
use crate::profiles::Profile;
use crate::stream::{ReadOutcome, StreamError, Streams};
use crate::wire::{CloseCode, ConnectionId, ControlFrame, Role, StreamId, TransportParameters};

use paths::{PathIndex, PathTable};

pub use close::CloseReason;
pub use egress::Transmit;
pub use events::Event;
pub use lifecycle::AddPathError;
pub use statistics::{ConnectionStats, EcnStats, PathStats};
pub(crate) use timers::Earliest;
pub use timers::TimeoutReason;

/// The policies of one connection.
#[derive(Debug)]
struct Policies {
    scheduler: Box<dyn Scheduler>,
    redundancy: Box<dyn RedundancyPolicy>,
    recovery: Box<dyn RecoveryPolicy>,
    ack: Box<dyn AckPolicy>,
    detector: Box<dyn LossDetector>,
    estimator: Box<dyn LossEstimator>,
}

impl Policies {
    fn build(profile: &Profile, ack_profile: &Profile) -> Result<Policies, PolicyError> {
        Ok(Policies {
            scheduler: profile.make_scheduler()?,
            redundancy: profile.make_redundancy()?,
            recovery: profile.make_recovery()?,
            ack: ack::build(&ack_profile.ack)?,
            detector: loss::build_detector(&profile.loss_detector)?,
            estimator: loss::build_estimator(&profile.loss_estimator)?,
        })
    }
}

/// Reused vectors, so that steady state allocates nothing.
#[derive(Debug, Default)]
struct Scratch {
    picks: Vec<Pick>,
    actions: Vec<SchedulerAction>,
    ack_paths: Vec<PathId>,
    /// Windows of whose symbols something became known, until it has been asked what they need.
    touched: Vec<WindowId>,
    recovered: Vec<WindowId>,
    numbers: Vec<u64>,
}

/// What a new connection is made from.
#[derive(Debug)]
pub(crate) struct Setup {
    pub role: Role,
    pub peer: PublicKey,
    pub local_id: ConnectionId,
    pub remote_id: ConnectionId,
    pub session: Session,
    pub config: TransportConfig,
    pub profile: Profile,
    pub peer_parameters: TransportParameters,
    pub rng: Rng,
    pub now: Time,
}

/// State of one connection.
#[derive(Debug)]
pub struct Connection {
    role: Role,
    peer: PublicKey,
    local_id: ConnectionId,
    remote_id: ConnectionId,
    session: Session,
    config: TransportConfig,
    profile: Profile,
    policies: Policies,
    peer_parameters: TransportParameters,
    paths: PathTable,
    identifiers: lifecycle::Identifiers,
    /// Sequence number of the newest path status told to the peer, and of the newest it told us.
    path_status: u64,
    peer_path_status: u64,
    streams: Streams,
    send: SendWindows,
    receive: ReceiveWindows,
    peer_symbol_limit: u64,
    /// Windows of which it is to be asked what they still need.
    unprovisioned: Vec<WindowId>,
    /// Highest floor of symbols that any packet has told the peer.
    floor_told: u64,
    control: VecDeque<ControlFrame>,
    /// Counts everything that may change a scheduler's mind.
    changes: u64,
    /// When the scheduler was last woken: earlier wake-up times count as none.
    woken: Option<Time>,
    /// The scheduler knows that the receiver's credit is what keeps data waiting.
    receiver_limited: bool,
    events: VecDeque<Event>,
    closing: close::Closing,
    established: bool,
    started: Time,
    last_received: Time,
    /// Whose turn it is to send.
    next_path: PathIndex,
    rng: Rng,
    observer: Option<Box<dyn Observer>>,
    scratch: Scratch,
    dropped: statistics::Dropped,
    was_drained: bool,
    old_key_until: Option<Time>,
    response: Vec<u8>,
}

impl Connection {
    pub(crate) fn new(setup: Setup) -> Result<Connection, PolicyError> {
        let Setup { role, config, profile, peer_parameters, .. } = setup;
        let ack_profile = peer_parameters
            .ack_profile
            .as_deref()
            .and_then(Profile::named)
            .unwrap_or_else(|| profile.clone());
        let policies = Policies::build(&profile, &ack_profile)?;
        let largest = config.largest_datagram().min(peer_parameters.max_udp_payload);
        let capacity = usize::from(mtu::symbol_room(largest));
        let codes = peer_parameters.codes.as_deref();
        let decoded = peer_parameters.max_window > 0 && code::is_decoded(codes, &profile.code.name);
        let code = if decoded { code::build(&profile.code)? } else { code::none() };
        let receive_capacity = usize::from(config.largest_datagram());
        let receive =
            ReceiveWindows::new(code::of_peer(codes), receive_capacity, config.receive_symbols);
        let mut send = SendWindows::new(code, capacity, peer_parameters.max_window);
        send.limit_history(peer_parameters.max_symbols.min(config.send_symbols) / 4);
        let mut streams = Streams::new(role, config.streams);
        streams.set_peer_limits(
            peer_parameters.max_data,
            peer_parameters.max_stream_data,
            peer_parameters.max_streams,
        );
        streams.set_datagram_limit(mtu::datagram_limit(&config, &peer_parameters));
        Ok(Connection {
            role,
            peer: setup.peer,
            local_id: setup.local_id,
            remote_id: setup.remote_id,
            session: setup.session,
            config,
            profile,
            policies,
            peer_symbol_limit: peer_parameters.max_symbols,
            unprovisioned: Vec::new(),
            floor_told: 0,
            peer_parameters,
            paths: PathTable::default(),
            identifiers: lifecycle::Identifiers::default(),
            path_status: 0,
            peer_path_status: 0,
            streams,
            send,
            receive,
            control: VecDeque::new(),
            changes: 1,
            woken: None,
            receiver_limited: false,
            events: VecDeque::new(),
            closing: close::Closing::default(),
            established: false,
            started: setup.now,
            last_received: setup.now,
            next_path: PathIndex(0),
            rng: setup.rng,
            observer: None,
            scratch: Scratch::default(),
            dropped: statistics::Dropped::default(),
            was_drained: true,
            old_key_until: None,
            response: Vec::new(),
        })
    }

    /// The peer's static key.
    pub fn peer(&self) -> PublicKey {
        self.peer
    }

    /// The connection id under which this side receives.
    pub fn local_id(&self) -> ConnectionId {
        self.local_id
    }

    /// The connection id under which the peer receives.
    pub fn remote_id(&self) -> ConnectionId {
        self.remote_id
    }

    /// Whether this side opened the connection.
    pub fn role(&self) -> Role {
        self.role
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

    /// Opens a bidirectional stream.
    pub fn open_stream(&mut self, class: TrafficClass) -> Result<StreamId, StreamError> {
        self.streams.open(class)
    }

    /// Takes as many bytes as the send buffer has room for; returns how many.
    pub fn write(&mut self, stream: StreamId, bytes: &[u8]) -> Result<usize, StreamError> {
        let taken = self.streams.write(stream, bytes)?;
        if taken > 0 {
            self.changed();
        }
        Ok(taken)
    }

    /// No more bytes will follow on this stream.
    pub fn finish(&mut self, stream: StreamId) -> Result<(), StreamError> {
        self.streams.finish(stream)?;
        self.changed();
        Ok(())
    }

    /// Abandons what is unsent of a stream.
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
        self.streams.read(stream, out)
    }

    /// Whether reading, stopping or resetting has left something to tell the peer.
    pub fn has_control(&self) -> bool {
        self.streams.has_control()
    }

    /// Queues a datagram: delivered at most once, in no order.
    pub fn send_datagram(&mut self, bytes: &[u8], class: TrafficClass) -> Result<(), StreamError> {
        self.streams.send_datagram(bytes, class)?;
        self.changed();
        Ok(())
    }

    /// Takes the oldest datagram received; returns its length.
    pub fn recv_datagram(&mut self, out: &mut [u8]) -> Option<usize> {
        self.streams.recv_datagram(out)
    }

    /// Whether everything written so far is known to be at the peer.
    pub fn is_drained(&self) -> bool {
        self.send.is_empty() && self.streams.pending().bytes == 0
    }

    /// The handshake's response came back from this address: packets pass both ways there, so data need
    /// not wait for the challenge. (The initiator chose the address itself and may send to it anyway.)
    pub(crate) fn path_answered(&mut self, now: Time, address: PathAddress, response: &[u8]) {
        if self.response != response {
            return;
        }
        if let Some(slot) = self.paths.find(|path| path.address == address) {
            self.validated(now, slot);
        }
    }

    /// The response that was authenticated, to recognise its copies on other paths.
    pub(crate) fn remember_response(&mut self, response: &[u8]) {
        self.response = response.to_vec();
    }

    /// Lost symbols are made good by themselves: by choice, or because the peer decodes nothing.
    fn resends(&self) -> bool {
        self.policies.recovery.resends() || !self.send.makes_repairs()
    }

    fn changed(&mut self) {
        self.changes += 1;
    }

    fn observe(&mut self, now: Time, observation: Observation) {
        if let Some(observer) = &mut self.observer {
            observer.observe(now, &observation);
        }
    }

    fn has_alternative(&self, slot: PathIndex) -> bool {
        self.paths.indexed().any(|(other, path)| other != slot && path.is_usable())
    }

    /// Symbols the peer still accepts, as far as we are willing to keep them until it has them.
    fn symbol_credit(&self) -> u64 {
        let (SymbolId(next), SymbolId(floor)) = (self.send.next_symbol(), self.send.floor());
        let room = self.config.send_symbols.saturating_sub(next - floor);
        self.peer_symbol_limit.saturating_sub(next).min(room)
    }

    /// Closes the connection; the peer is told.
    pub fn close(&mut self, now: Time, code: u64, reason: &str) {
        self.start_close(now, CloseReason::local(CloseCode(code), reason));
    }
}
