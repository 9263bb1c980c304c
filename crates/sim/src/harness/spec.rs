use anabranch_core::config::TransportConfig;
use anabranch_core::profiles::Profile;
use anabranch_types::Time;
use core::time::Duration;

use crate::link::LinkConfig;

/// What is run.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The links, one path each: the data direction.
    pub links: Vec<LinkConfig>,
    /// The opposite directions; where missing, the clean reverse of the link.
    pub reverse: Vec<LinkConfig>,
    /// The transfers, each a connection of its own over all links.
    pub flows: Vec<Flow>,
    /// Limits of both endpoints.
    pub transport: TransportConfig,
    /// The random seed of everything.
    pub seed: u64,
    /// Time after which the run is stopped as failed.
    pub give_up: Duration,
    /// Measured from here on, besides the whole run.
    pub warm_up: Duration,
    /// What happens to paths during the run.
    pub events: Vec<PathEvent>,
    /// Packets that one key may seal, if keys shall change more often than they must.
    pub key_limit: Option<u64>,
    /// How the network damages datagrams, besides what the links do.
    pub mangle: Option<Mangle>,
}

/// One transfer, from the first endpoint to the second.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Its policies.
    pub profile: Profile,
    /// When it stops.
    pub goal: Goal,
    /// Small messages beside the bulk.
    pub probes: Option<Probes>,
    /// Which links it uses, by index; empty for all.
    pub links: Vec<usize>,
    /// When it connects.
    pub start: Time,
}

/// When a transfer stops writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// After so many bytes.
    Bytes(u64),
    /// After so long; what was written by then is delivered.
    Time(Duration),
}

/// Small messages of the interactive class, sent as datagrams at a fixed interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probes {
    /// Time between two.
    pub interval: Duration,
    /// Bytes of each, at least 16.
    pub size: usize,
    /// How many there are, at most.
    pub most: u64,
}

/// A change of a path during the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathEvent {
    /// When.
    pub at: Time,
    /// Of the path over which link.
    pub link: usize,
    /// What.
    pub change: PathChange,
}

/// What happens to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathChange {
    /// From then on the sender's datagrams come from another port (NAT rebinding); nobody is told.
    Rebind,
    /// The sender's interface has another address, and the sender knows.
    Readdress,
    /// The sender's interface is gone: the path is removed.
    Unplug,
    /// The sender's interface is back: a path is added.
    Plug,
}

/// What may happen to each datagram at the end of its link, in either direction: chances, each
/// independent of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mangle {
    /// One to eight of its bits are flipped.
    pub flip: f64,
    /// It is cut off anywhere.
    pub truncate: f64,
    /// It arrives twice.
    pub duplicate: f64,
    /// One of the last 64 datagrams, of whichever direction, comes again.
    pub replay: f64,
    /// Garbage arrives besides, at either endpoint; half of it begins like a datagram.
    pub inject: f64,
    /// It arrives after the next datagram.
    pub hold: f64,
}

impl Spec {
    /// A run of one flow of `profile` over `links`.
    pub fn new(links: Vec<LinkConfig>, profile: Profile, goal: Goal, seed: u64) -> Self {
        let flow = Flow { profile, goal, probes: None, links: Vec::new(), start: Time::ZERO };
        Spec {
            links,
            reverse: Vec::new(),
            flows: vec![flow],
            transport: TransportConfig { mtu_limit: None, ..TransportConfig::default() },
            seed,
            give_up: Duration::from_secs(600),
            warm_up: Duration::ZERO,
            events: Vec::new(),
            key_limit: None,
            mangle: None,
        }
    }
}
