//! The plan of one point of a scenario, with all groups expanded and all names resolved.

use core::time::Duration;

use anabranch_core::config::TransportConfig;
use anabranch_policy::PolicySpec;
use anabranch_policy::view::TrafficClass;
use anabranch_types::{Bitrate, DataSize};

use super::profiles::Protocol;
use crate::endpoint::{PathChange, Stripe};
use crate::link::LinkConfig;
use crate::traffic::{Messages, Traffic};
use crate::wireless::mesh::MeshConfig;
use crate::wireless::{RandomWaypoint, Waypoints};

/// One point of a scenario, ready to be built.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Virtual time of a run.
    pub duration: Duration,
    /// Time at the beginning of the run that is not measured; less than the duration.
    pub warm_up: Duration,
    /// If given, the run ends once every finite flow has delivered all its data. This is checked at
    /// the given interval, and whenever a value is recorded.
    pub stop_when_done: Option<Duration>,
    /// The directed links.
    pub links: Vec<LinkPlan>,
    /// The named routes.
    pub paths: Vec<PathPlan>,
    /// Stations with radios, in place of links.
    pub mesh: Option<MeshPlan>,
    /// The transport connections.
    pub flows: Vec<FlowPlan>,
    /// The datagram sources.
    pub loads: Vec<LoadPlan>,
    /// Changes of paths during the run.
    pub events: Vec<EventPlan>,
    /// Figures to record.
    pub probes: Vec<ProbePlan>,
}

/// Stations with radios. Each flow is between two stations.
#[derive(Clone, Debug)]
pub struct MeshPlan {
    /// Radio, loss and routing. Its flows are filled in from the [`Plan`].
    pub config: MeshConfig,
    /// The positions of the stations over time.
    pub movement: Movement,
    /// Number of this run among the runs with the same movements, from 1. All other random draws
    /// differ between these runs.
    pub run: u64,
}

/// The positions of stations over time.
#[derive(Clone, Debug, PartialEq)]
pub enum Movement {
    /// At equal distances on a circle, without movement.
    Ring {
        /// Number of stations.
        stations: usize,
        /// Radius of the circle, metres.
        radius: f64,
    },
    /// From a movement file of ns-2.
    File(Waypoints),
    /// From the random waypoint model.
    Random {
        /// The area, the speeds and the pauses.
        model: RandomWaypoint,
        /// Seed of the movements; `None` for the seed of the run.
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

/// A named route and its reverse route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPlan {
    /// Name of the path, such as `p2`.
    pub name: String,
    /// Name of the path's section in the file, such as `p`.
    pub group: String,
    /// Links of the forward direction, by index.
    pub forward: Vec<usize>,
    /// Links of the reverse direction, by index.
    pub back: Vec<usize>,
    /// Congestion control of TCP flows on this path; `None` for that of the flow.
    pub congestion: Option<PolicySpec>,
}

/// One transport connection.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// Name of the flow's section in the file.
    pub group: String,
    /// Name of the flow in reports: the group's name, followed by the flow's number if the group
    /// has several flows.
    pub subject: String,
    /// Protocol of the flow with all options.
    pub protocol: Protocol,
    /// Limits and buffers of core endpoints.
    pub transport: TransportConfig,
    /// Bytes that a core endpoint's packets have on the wire in addition to their UDP payload.
    pub overhead: i32,
    /// Paths that the flow may use, at least one.
    pub paths: Vec<PathPlan>,
    /// Source and destination station, in a mesh.
    pub stations: Option<(u32, u32)>,
    /// When the flow begins, jitter not included.
    pub start: Duration,
    /// The longest additional delay of the start, which is drawn uniformly from zero to this.
    pub start_jitter: Duration,
    /// Traffic of the application.
    pub traffic: Traffic,
    /// Messages in addition to the traffic, between core endpoints.
    pub messages: Option<Messages>,
    /// Traffic class of a core endpoint's streams.
    pub class: TrafficClass,
    /// When the application stops writing. Data written by then is still delivered.
    pub stop: Option<Duration>,
    /// Packets after which a packet key of a core endpoint is due for replacement; `None` for no limit.
    pub key_limit: Option<u64>,
    /// Name of the flow's host, if it has one. The core flows of a host share the endpoints at both
    /// ends, which have the limits of the first flow, and they use the same paths. The bytes that
    /// arrive over a path are then counted for each of these flows.
    pub host: Option<String>,
    /// The part of a core flow in a stream that the flows of its host carry together, if there is
    /// such a stream.
    pub stripe: Option<Stripe>,
}

/// A change of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPlan {
    /// Time of the change.
    pub at: Duration,
    /// Name of the path that changes, for every flow that uses it.
    pub path: String,
    /// Kind of the change.
    pub change: PathChange,
}

/// One datagram source.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadPlan {
    /// Name of the load's section in the file.
    pub group: String,
    /// Name of the load in reports.
    pub subject: String,
    /// Path of the source's packets.
    pub path: PathPlan,
    /// Source and destination station, in a mesh.
    pub stations: Option<(u32, u32)>,
    /// Rate while sending, headers included.
    pub rate: Bitrate,
    /// Size of a packet on the wire, bytes.
    pub packet: u32,
    /// Mean lengths of bursts and pauses; `None` if the load always sends.
    pub on_off: Option<(Duration, Duration)>,
    /// When the load begins.
    pub start: Duration,
    /// When the load ends, if it ends before the run.
    pub stop: Option<Duration>,
}

/// Figures that one probe records.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbePlan {
    /// Names of existing subjects.
    pub of: Vec<String>,
    /// Metrics to follow over time.
    pub series: Vec<&'static str>,
    /// Metrics of which every single value is recorded.
    pub samples: Vec<&'static str>,
    /// Figures to measure in addition to those that every run has.
    pub figures: Vec<&'static str>,
    /// Time between two points of a series.
    pub interval: Duration,
    /// Length of the stream slices whose delays are measured as blocks.
    pub slice: DataSize,
    /// Whether the blocks of flows with a code are their coding blocks instead of slices.
    pub coding_blocks: bool,
}

impl ProbePlan {
    /// Whether any metric of the probe is about blocks.
    pub(super) fn is_about_blocks(&self) -> bool {
        let metrics = self.series.iter().chain(&self.samples).chain(&self.figures);
        metrics.into_iter().any(|metric| metric.starts_with("block_"))
    }
}
