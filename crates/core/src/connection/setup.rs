//! The parts from which a connection is made.

use std::collections::VecDeque;

use anabranch_policy::view::SymbolSpace;
use anabranch_policy::{
    AckPolicy, Axis, LossEstimator, PolicyError, RecoveryPolicy, RedundancyPolicy, Scheduler,
};
use anabranch_types::{Rng, Time};

use super::addresses::Addresses;
use super::attention::Attention;
use super::connection_ids::ConnectionIds;
use super::credit::SymbolCredit;
use super::keys::Keys;
use super::memory::MemoryAccount;
use super::paths::PathTable;
use super::silence::Silence;
use super::{Connection, Scratch, close, mtu, statistics};
use crate::coding::code;
use crate::coding::receive::ReceiveBlocks;
use crate::coding::send::SendBlocks;
use crate::coding::spaces::{ReceiveSpaces, SendSpaces};
use crate::config::TransportConfig;
use crate::crypto::{PublicKey, Randomness, Session};
use crate::profiles::Profile;
use crate::stream::Streams;
use crate::wire::{ConnectionId, Role, TransportParameters};

/// Keys, settings and ids from which a new connection is made.
#[derive(Debug)]
pub(crate) struct Setup {
    pub role: Role,
    pub peer: PublicKey,
    /// The ids under which this side receives on the paths 0, 1, …; at least one.
    pub local_ids: Vec<ConnectionId>,
    pub remote_id: ConnectionId,
    pub session: Session,
    pub config: TransportConfig,
    pub profile: Profile,
    pub peer_parameters: TransportParameters,
    pub random: Box<dyn Randomness>,
    pub now: Time,
}

/// Identity of the two ends: roles, keys and ids.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) role: Role,
    pub(super) peer: PublicKey,
    /// The id under which this side receives on path 0, which names the connection on this side.
    pub(super) local_id: ConnectionId,
    /// The id under which the peer receives on path 0.
    pub(super) remote_id: ConnectionId,
}

/// The policies of one connection.
#[derive(Debug)]
pub(super) struct Policies {
    pub(super) scheduler: Box<dyn Scheduler>,
    pub(super) redundancy: Box<dyn RedundancyPolicy>,
    pub(super) recovery: Box<dyn RecoveryPolicy>,
    pub(super) ack: Box<dyn AckPolicy>,
    pub(super) estimator: Box<dyn LossEstimator>,
}

impl Policies {
    fn build(profile: &Profile, ack_profile: &Profile) -> Result<Policies, PolicyError> {
        let recovery: Box<dyn RecoveryPolicy> = profile.make()?;
        Ok(Policies {
            scheduler: recovery.around(profile.make()?),
            redundancy: profile.make()?,
            recovery,
            ack: ack_profile.make()?,
            estimator: profile.make()?,
        })
    }
}

/// Both directions of coding: a side uses a code that the other decodes. Live data has its own
/// symbol space if `separates_live` and the peer agrees.
fn coding(
    config: &TransportConfig,
    profile: &Profile,
    peer: &TransportParameters,
    separates_live: bool,
) -> Result<(SendSpaces, ReceiveSpaces), PolicyError> {
    let codes = peer.codes.as_deref();
    let own = &profile.policy(Axis::Code).name;
    let decoded = peer.max_block > 0 && code::is_decoded(codes, own);
    let code = if decoded { profile.make()? } else { code::none() };
    let largest = config.largest_datagram().min(peer.max_udp_payload);
    let capacity = usize::from(mtu::symbol_room(largest));
    let mut main = SendBlocks::new(code, capacity, peer.max_block);
    main.limit_history(peer.max_symbols.min(config.send_symbols) / 4);
    let separate = separates_live
        && main.makes_repairs()
        && !main.slides()
        && peer.max_live_symbols > 0
        && code::live_data_is_decoded(codes);
    let live = separate.then(|| {
        let blocks = SendBlocks::new(code::of_live_data(), capacity, peer.max_block);
        let mut blocks = blocks.in_space(SymbolSpace::Live);
        blocks.limit_history(peer.max_live_symbols.min(config.live_send_symbols()) / 4);
        blocks
    });
    let capacity = usize::from(config.largest_datagram());
    let code = code::of_peer(profile.registry(), codes);
    let receive = ReceiveBlocks::new(code, capacity, config.receive_symbols);
    let receive = if config.whole_blocks { receive.in_whole_blocks() } else { receive };
    let receive = ReceiveSpaces::new(receive, capacity, config.live_receive_symbols());
    Ok((SendSpaces::new(main, live), receive))
}

/// Streams within the limits of both sides.
fn streams(role: Role, config: &TransportConfig, peer: &TransportParameters) -> Streams {
    let mut streams = Streams::new(role, config.streams);
    streams.set_peer_limits(peer.max_data, peer.max_stream_data, peer.max_streams);
    streams.set_datagram_limit(mtu::datagram_limit(config, peer));
    streams
}

impl Connection {
    pub(crate) fn new(setup: Setup) -> Result<Connection, PolicyError> {
        let Setup { role, peer, ref local_ids, remote_id, .. } = setup;
        let local_id = local_ids.first().copied().unwrap_or_default();
        let remote_ids = [&[remote_id], &setup.peer_parameters.connection_ids[..]].concat();
        let ids = ConnectionIds::new(local_ids, &remote_ids, &setup.peer_parameters);
        let Setup { config, profile, peer_parameters, now, mut random, .. } = setup;
        let asked_for = peer_parameters.ack_profile.as_deref().and_then(Profile::named);
        let policies = Policies::build(&profile, asked_for.as_ref().unwrap_or(&profile))?;
        let separates_live = policies.redundancy.separates_live();
        let (send, receive) = coding(&config, &profile, &peer_parameters, separates_live)?;
        let silence = Silence::new(config.heartbeat);
        Ok(Connection {
            identity: Identity { role, peer, local_id, remote_id },
            ids,
            keys: Keys::new(role, setup.session, now),
            streams: streams(role, &config, &peer_parameters),
            config,
            profile,
            policies,
            bottlenecks: None,
            paths: PathTable::default(),
            addresses: Addresses::default(),
            send,
            receive,
            credit: [
                SymbolCredit::new(SymbolSpace::Main, peer_parameters.max_symbols),
                SymbolCredit::new(SymbolSpace::Live, peer_parameters.max_live_symbols),
            ],
            peer_parameters,
            unprovisioned: Vec::new(),
            control: VecDeque::new(),
            attention: Attention::new(),
            events: VecDeque::new(),
            closing: close::Closing::default(),
            established: false,
            started: now,
            last_received: now,
            silence,
            was_drained: true,
            linger: Default::default(),
            rng: Rng::new(random.next_u64()),
            random,
            observer: None,
            wait: Default::default(),
            scratch: Scratch::default(),
            dropped: statistics::Dropped::default(),
            memory: MemoryAccount::default(),
            response: Vec::new(),
        })
    }
}
