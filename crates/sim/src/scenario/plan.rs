//! The plan of one point of a scenario: every group expanded, every name resolved.

use core::time::Duration;

use anabranch_core::config::TransportConfig;
use anabranch_policy::PolicySpec;
use anabranch_policy::view::TrafficClass;
use anabranch_types::{Bitrate, DataSize};

use super::profiles::Protocol;
use crate::endpoint::PathChange;
use crate::link::LinkConfig;
use crate::traffic::{Messages, Traffic};
use crate::wireless::mesh::MeshConfig;
use crate::wireless::{RandomWaypoint, Waypoints};

/// One point of a scenario, ready to be built.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Virtual time of a run.
    pub duration: Duration,
    /// Initial time of the run that is not measured; below the duration.
    pub warm_up: Duration,
    /// If given, the run ends once every flow that ends by itself has delivered everything; checked at this
    /// interval, and whenever something is recorded.
    pub stop_when_done: Option<Duration>,
    /// The directed links.
    pub links: Vec<LinkPlan>,
    /// The named routes.
    pub paths: Vec<PathPlan>,
    /// Stations with radios, in place of links.
    pub mesh: Option<MeshPlan>,
    /// Transport connections, one by one.
    pub flows: Vec<FlowPlan>,
    /// Datagram sources, one by one.
    pub loads: Vec<LoadPlan>,
    /// Changes of paths during the run.
    pub events: Vec<EventPlan>,
    /// Figures to record.
    pub probes: Vec<ProbePlan>,
}

/// Stations with radios; flows are between two of them.
#[derive(Clone, Debug)]
pub struct MeshPlan {
    /// Radio, loss and routing; its flows are those of the [`Plan`].
    pub config: MeshConfig,
    /// Where the stations are.
    pub movement: Movement,
    /// Number of this run among those with the same movements, from 1: each has other draws of everything else.
    pub run: u64,
}

/// Where stations are.
#[derive(Clone, Debug, PartialEq)]
pub enum Movement {
    /// On a circle, evenly.
    Ring {
        /// How many stations.
        stations: usize,
        /// Radius of the circle, metres.
        radius: f64,
    },
    /// From a movement file of ns-2.
    File(Waypoints),
    /// Random waypoint.
    Random {
        /// The area, the speeds and the pauses.
        model: RandomWaypoint,
        /// Seed of the movements; the run's if there is none.
        seed: Option<u64>,
    },
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkPlan {
    /// Name of the link; the opposite direction of `a` is `a.reverse`.
    pub name: String,
    /// Node where the link begins.
    pub from: String,
    /// Node where the link ends.
    pub to: String,
    /// Rate, delay, loss and other properties of the link.
    pub config: LinkConfig,
}

/// A named route and the way back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPlan {
    /// Name of the path, such as `p2`.
    pub name: String,
    /// The group that the path was written in, such as `p`.
    pub group: String,
    /// Links of the forward direction, by index.
    pub forward: Vec<usize>,
    /// Links of the reverse direction, by index.
    pub back: Vec<usize>,
    /// Congestion control of TCP flows on the path, where it is not the flow's own.
    pub congestion: Option<PolicySpec>,
}

/// One transport connection.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// The group that the flow was written in.
    pub group: String,
    /// Name of the flow in reports: the group's name, and the flow's number if the group has several.
    pub subject: String,
    /// Protocol of the flow with every option.
    pub protocol: Protocol,
    /// Limits and buffers of core endpoints.
    pub transport: TransportConfig,
    /// Bytes that a core endpoint's packets have on the wire beyond their UDP payload.
    pub overhead: i32,
    /// Paths that the flow may use, at least one.
    pub paths: Vec<PathPlan>,
    /// Source and destination station, in a mesh.
    pub stations: Option<(u32, u32)>,
    /// When the flow begins, jitter not included.
    pub start: Duration,
    /// Extra wait, uniform from zero to this.
    pub start_jitter: Duration,
    /// Traffic of the application.
    pub traffic: Traffic,
    /// Messages in addition to the traffic, between core endpoints.
    pub messages: Option<Messages>,
    /// Traffic class of a core endpoint's streams.
    pub class: TrafficClass,
    /// When the application stops writing; what was written by then is delivered.
    pub stop: Option<Duration>,
    /// Packets after which a packet key of a core endpoint is due for replacement; `None` for no limit.
    pub key_limit: Option<u64>,
    /// Core flows of one host share an endpoint at either end, whose limits are those of the first of them;
    /// they use the same paths. What arrives over a path is then counted for all of them.
    pub host: Option<String>,
}

/// A change of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPlan {
    /// The time.
    pub at: Duration,
    /// Name of the path that changes, for every flow that uses it.
    pub path: String,
    /// The kind.
    pub change: PathChange,
}

/// One datagram source.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadPlan {
    /// The group that the load was written in.
    pub group: String,
    /// Name of the load in reports.
    pub subject: String,
    /// Path of the source's packets.
    pub path: PathPlan,
    /// Source and destination station, in a mesh.
    pub stations: Option<(u32, u32)>,
    /// Rate while sending, headers included.
    pub rate: Bitrate,
    /// Bytes of a packet on the wire.
    pub packet: u32,
    /// Mean times of sending and of silence; `None` for always on.
    pub on_off: Option<(Duration, Duration)>,
    /// When the load begins.
    pub start: Duration,
    /// When the load ends, if before the run does.
    pub stop: Option<Duration>,
}

/// Figures that one probe records.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbePlan {
    /// Subjects, each existing.
    pub of: Vec<String>,
    /// Metrics to follow over time.
    pub series: Vec<&'static str>,
    /// Metrics of which every value is kept.
    pub samples: Vec<&'static str>,
    /// Figures to measure in addition to those that every run has.
    pub figures: Vec<&'static str>,
    /// Time between two points of a series.
    pub interval: Duration,
    /// Length of the stream slices whose delays are measured as blocks.
    pub slice: DataSize,
    /// Whether blocks of flows that code are their coding blocks, not slices.
    pub coding_blocks: bool,
}
