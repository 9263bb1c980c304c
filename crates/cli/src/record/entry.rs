//! The entries of a recording.

use std::borrow::Cow;

use anabranch_core::observe::Observation;
use anabranch_policy::view::PathState;
use anabranch_results::trace::Symbol;
use anabranch_types::Time;
use serde::{Deserialize, Serialize};

/// Value of [`Header::kind`] in every recording.
pub const KIND: &str = "anabranch-recording";
/// The version of the format described here; raised when a reader of the old one would misread it.
pub const FORMAT: u32 = 2;

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// [`KIND`].
    pub kind: String,
    /// [`FORMAT`].
    pub format: u32,
    /// Version of the program that recorded.
    pub version: String,
    /// The sender's profile, or what a qlog file is called.
    pub profile: String,
    /// Seed of the emulated links; a real connection has none.
    pub seed: Option<u64>,
    /// Names of the paths, by path identifier.
    pub paths: Vec<String>,
}

/// Every other line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Nanoseconds since the sender's endpoint started.
    pub t: u64,
    /// The event or decision.
    #[serde(flatten)]
    pub entry: Entry,
}

/// A name given by a policy or the core.
pub type Word = Cow<'static, str>;

/// An event or decision; the fields are those of [`Observation`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Entry {
    /// The scheduler sent something on a path.
    Scheduled { path: u32, what: Word, symbol: Symbol, reason: Word },
    /// The scheduler held a path back.
    Held { path: u32, until: u64, reason: Word },
    /// A coding block closed.
    BlockClosed { first: Symbol, sources: u16, repairs: u16, loss_permille: u16 },
    /// A block lacked symbols.
    RepairsDue { first: Symbol, count: u16 },
    /// Packets were declared lost.
    Lost { path: u32, packets: u32 },
    /// A probe timer fired.
    Timeout { path: u32, consecutive: u32 },
    /// Data in flight on a path was made due on other paths.
    Reinjected { path: u32, packets: u32 },
    /// Full packets on a path have another size.
    PathMtu { path: u32, bytes: u32, reason: Word },
    /// Two paths were found to share a bottleneck, or no longer to.
    SharedBottleneck { path: u32, with: u32, shared: bool },
    /// A path changed its state.
    PathState { path: u32, state: Word, reason: Word },
    /// A congestion window or pacing rate changed.
    Congestion {
        path: u32,
        #[serde(rename = "window")]
        cwnd: u64,
        pacing_bps: u64,
        phase: Word,
    },
    /// Nothing was sent from `since` on, because something was missing.
    Waited {
        since: u64,
        #[serde(rename = "for")]
        what: Word,
    },
    /// The recording is complete, except for `missed` events that came faster than the disk could
    /// take them.
    End { missed: u64 },
}

impl Line {
    /// The line that says that `observation` was made at `now`; `None` if it is about single packets, which recordings
    /// leave out.
    pub fn new(now: Time, observation: &Observation) -> Option<Self> {
        Some(Line { t: now.as_nanos(), entry: Entry::of(observation)? })
    }
}

impl Entry {
    /// The entry for an observation; `None` if it is about single packets.
    fn of(observation: &Observation) -> Option<Self> {
        Some(match *observation {
            Observation::Scheduled { path, what, symbol, reason } => {
                let symbol = symbol.into();
                Entry::Scheduled { path: path.0, what: what.into(), symbol, reason: reason.into() }
            }
            Observation::Held { path, until, reason } => {
                Entry::Held { path: path.0, until: until.as_nanos(), reason: reason.into() }
            }
            Observation::BlockClosed { first, sources, repairs, loss_permille } => {
                Entry::BlockClosed { first: first.into(), sources, repairs, loss_permille }
            }
            Observation::RepairsDue { first, count } => {
                Entry::RepairsDue { first: first.into(), count }
            }
            Observation::Lost { path, packets } => Entry::Lost { path: path.0, packets },
            Observation::Timeout { path, consecutive } => {
                Entry::Timeout { path: path.0, consecutive }
            }
            Observation::Reinjected { path, packets } => {
                Entry::Reinjected { path: path.0, packets }
            }
            Observation::PathMtu { path, bytes, reason } => {
                Entry::PathMtu { path: path.0, bytes, reason: reason.into() }
            }
            Observation::SharedBottleneck { path, with, shared } => {
                Entry::SharedBottleneck { path: path.0, with: with.0, shared }
            }
            Observation::PathState { path, state, reason } => Entry::PathState {
                path: path.0,
                state: state_name(state).into(),
                reason: reason.into(),
            },
            Observation::Congestion { path, cwnd, pacing_bps, phase } => {
                Entry::Congestion { path: path.0, cwnd, pacing_bps, phase: phase.into() }
            }
            Observation::Waited { since, what } => {
                Entry::Waited { since: since.as_nanos(), what: what.into() }
            }
            Observation::PacketSent { .. }
            | Observation::PacketReceived { .. }
            | Observation::Acknowledged { .. }
            | Observation::PacketLost { .. }
            | Observation::Metrics { .. } => return None,
        })
    }
}

fn state_name(state: PathState) -> &'static str {
    match state {
        PathState::Validating => "validating",
        PathState::Active => "active",
        PathState::Suspect => "suspect",
        PathState::Probation => "probation",
        PathState::Closed => "closed",
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use anabranch_policy::view::{SymbolId, SymbolSpace};
    use anabranch_types::PathId;

    /// One observation of each kind.
    pub(crate) fn observations(path: PathId) -> [Observation; 12] {
        [
            Observation::Scheduled {
                path,
                what: "repair",
                symbol: SymbolId(7),
                reason: "own share",
            },
            Observation::Held { path, until: Time::from_millis(9), reason: "would be late" },
            Observation::BlockClosed {
                first: SymbolId(0),
                sources: 64,
                repairs: 9,
                loss_permille: 55,
            },
            Observation::RepairsDue { first: SymbolSpace::Live.symbol(64), count: 2 },
            Observation::Lost { path, packets: 3 },
            Observation::Timeout { path, consecutive: 1 },
            Observation::Reinjected { path, packets: 3 },
            Observation::PathMtu { path, bytes: 1500, reason: "a probe arrived" },
            Observation::SharedBottleneck { path, with: PathId(0), shared: true },
            Observation::PathState { path, state: PathState::Suspect, reason: "silence" },
            Observation::Congestion { path, cwnd: 1, pacing_bps: 2, phase: "startup" },
            Observation::Waited { since: Time::from_millis(6), what: "reader" },
        ]
    }

    #[test]
    fn lines_survive_the_file() {
        for observation in observations(PathId(2)) {
            let line = Line::new(Time::from_nanos(5), &observation).unwrap();
            let text = serde_json::to_string(&line).unwrap();
            assert!(text.starts_with(r#"{"t":5,"event":""#), "{text}");
            assert_eq!(serde_json::from_str::<Line>(&text).unwrap(), line);
        }
    }
}
