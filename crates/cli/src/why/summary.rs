//! Summarises a recording.

use std::collections::BTreeMap;

use serde::Serialize;

use super::cause::{Cause, Causes};
use crate::record::{Entry, Header, Line};

/// A recording in figures.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    /// Version of the program that recorded.
    pub(super) version: String,
    /// The sender's profile.
    pub(super) profile: String,
    /// Seed of the emulated links, if the links were emulated.
    pub(super) seed: Option<u64>,
    /// Time of the last event, seconds after the sender started.
    pub(super) seconds: f64,
    /// Events recorded.
    pub(super) events: u64,
    /// Events that came too fast to be recorded.
    pub(super) missed: u64,
    /// Whether the recording has its end.
    pub(super) complete: bool,
    /// Causes that made the sender slower, the largest first.
    pub(super) causes: Vec<Cause>,
    /// The paths, by identifier.
    pub(super) paths: Vec<PathReport>,
    /// The coding blocks.
    pub(super) blocks: BlockCounts,
    /// The figures of each second.
    pub(super) timeline: Vec<Interval>,
    /// Every change of a path's state.
    pub(super) state_changes: Vec<StateChange>,
}

/// Decisions about one path.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PathReport {
    pub(super) name: String,
    /// Symbols sent on the path, and their share of all.
    pub(super) symbols: u64,
    pub(super) share: f64,
    /// Symbols by kind: source, repair, resend.
    pub(super) sent: Vec<Tally>,
    /// Symbols by the scheduler's reason.
    pub(super) reasons: Vec<Tally>,
    /// Times that the path was held back, by reason.
    pub(super) held: Vec<Tally>,
    pub(super) lost_packets: u64,
    pub(super) timeouts: u64,
    /// Most probe timeouts in a row.
    pub(super) timeouts_in_a_row: u32,
    pub(super) reinjected_packets: u64,
    pub(super) congestion: Option<CongestionReport>,
}

/// How often something was counted, and its share of all of its kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Tally {
    pub(super) name: String,
    pub(super) count: u64,
    pub(super) share: f64,
}

/// Congestion control of one path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct CongestionReport {
    /// Congestion window, bytes: least, most and last.
    pub(super) window_min: u64,
    pub(super) window_max: u64,
    pub(super) window_last: u64,
    /// Last pacing rate, Mb/s; 0 when not paced.
    pub(super) pacing_mbps_last: f64,
    /// Time spent in each phase.
    pub(super) phases: Vec<Phase>,
}

/// Time spent in a phase of a congestion controller.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Phase {
    pub(super) name: String,
    pub(super) seconds: f64,
}

/// Coding blocks and repairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct BlockCounts {
    /// Blocks closed, and their source symbols.
    pub(super) closed: u64,
    pub(super) sources: u64,
    /// Repairs planned when they closed.
    pub(super) repairs_planned: u64,
    /// Repairs that became due because a block lacked symbols.
    pub(super) repairs_due: u64,
    /// Repairs and repeated symbols sent.
    pub(super) repairs_sent: u64,
    pub(super) resent: u64,
    /// Packets lost on all paths.
    pub(super) lost_packets: u64,
    /// Sum over blocks of the loss they were planned for, parts per thousand.
    #[serde(skip)]
    loss_permille: u64,
}

impl BlockCounts {
    /// Mean of the loss that blocks were planned for.
    pub(super) fn mean_loss(&self) -> f64 {
        self.loss_permille as f64 / 1e3 / self.closed.max(1) as f64
    }

    pub(super) fn merge(&mut self, other: &BlockCounts) {
        self.closed += other.closed;
        self.sources += other.sources;
        self.repairs_planned += other.repairs_planned;
        self.repairs_due += other.repairs_due;
        self.repairs_sent += other.repairs_sent;
        self.resent += other.resent;
        self.lost_packets += other.lost_packets;
        self.loss_permille += other.loss_permille;
    }

    fn add(&mut self, entry: &Entry) {
        match entry {
            Entry::BlockClosed { sources, repairs, loss_permille, .. } => {
                self.closed += 1;
                self.sources += u64::from(*sources);
                self.repairs_planned += u64::from(*repairs);
                self.loss_permille += u64::from(*loss_permille);
            }
            Entry::RepairsDue { count, .. } => self.repairs_due += u64::from(*count),
            Entry::Lost { packets, .. } => self.lost_packets += u64::from(*packets),
            Entry::Scheduled { what, .. } => match what.as_ref() {
                "repair" => self.repairs_sent += 1,
                "resend" => self.resent += 1,
                _ => {}
            },
            _ => {}
        }
    }
}

/// A second of the recording.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Interval {
    /// Seconds after the start.
    pub(super) from: u64,
    #[serde(flatten)]
    pub(super) blocks: BlockCounts,
}

/// A path changed its state.
#[derive(Clone, Debug, Serialize)]
pub(super) struct StateChange {
    pub(super) seconds: f64,
    pub(super) path: String,
    pub(super) state: String,
    pub(super) reason: String,
}

/// A path's name: the header's, or its number if the header does not know it.
pub(super) fn path_name(header: &Header, path: u32) -> String {
    let name = usize::try_from(path).ok().and_then(|index| header.paths.get(index));
    name.cloned().unwrap_or_else(|| format!("path {path}"))
}

/// Running totals.
#[derive(Debug)]
pub(super) struct Summary {
    last: u64,
    events: u64,
    end: Option<u64>,
    causes: Causes,
    paths: BTreeMap<u32, PathSums>,
    seconds: BTreeMap<u64, BlockCounts>,
    state_changes: Vec<StateChange>,
}

#[derive(Debug, Default)]
struct PathSums {
    sent: BTreeMap<String, u64>,
    reasons: BTreeMap<String, u64>,
    held: BTreeMap<String, u64>,
    lost: u64,
    timeouts: u64,
    in_a_row: u32,
    reinjected: u64,
    congestion: Option<CongestionSums>,
}

#[derive(Debug)]
struct CongestionSums {
    min: u64,
    max: u64,
    last: u64,
    pacing_bps: u64,
    phase: String,
    since: u64,
    phases: BTreeMap<String, u64>,
}

/// Nanoseconds.
pub(super) const SECOND: u64 = 1_000_000_000;

impl Summary {
    pub(super) fn new(header: &Header) -> Self {
        let known = 0..header.paths.len() as u32;
        Summary {
            last: 0,
            events: 0,
            end: None,
            causes: Causes::default(),
            paths: known.map(|path| (path, PathSums::default())).collect(),
            seconds: BTreeMap::new(),
            state_changes: Vec::new(),
        }
    }

    /// Counts one line.
    pub(super) fn add(&mut self, header: &Header, line: &Line) {
        self.last = self.last.max(line.t);
        if let Entry::End { missed } = &line.entry {
            self.end = Some(*missed);
            return;
        }
        self.events += 1;
        self.seconds.entry(line.t / SECOND).or_default().add(&line.entry);
        self.causes.add(header, line);
        self.add_to_path(header, line);
    }

    fn add_to_path(&mut self, header: &Header, line: &Line) {
        match &line.entry {
            Entry::Scheduled { path, what, reason, .. } => {
                let path = self.paths.entry(*path).or_default();
                count(&mut path.sent, what);
                count(&mut path.reasons, reason);
            }
            Entry::Held { path, reason, .. } => {
                count(&mut self.paths.entry(*path).or_default().held, reason);
            }
            Entry::Lost { path, packets } => {
                self.paths.entry(*path).or_default().lost += u64::from(*packets);
            }
            Entry::Timeout { path, consecutive } => {
                let path = self.paths.entry(*path).or_default();
                path.timeouts += 1;
                path.in_a_row = path.in_a_row.max(*consecutive);
            }
            Entry::Reinjected { path, packets } => {
                self.paths.entry(*path).or_default().reinjected += u64::from(*packets);
            }
            Entry::PathState { path, state, reason } => self.state_changes.push(StateChange {
                seconds: line.t as f64 / SECOND as f64,
                path: path_name(header, *path),
                state: state.to_string(),
                reason: reason.to_string(),
            }),
            Entry::Congestion { path, cwnd, pacing_bps, phase } => {
                let path = self.paths.entry(*path).or_default();
                let sums = path.congestion.get_or_insert_with(|| CongestionSums::new(line.t));
                sums.add(line.t, *cwnd, *pacing_bps, phase);
            }
            Entry::BlockClosed { .. }
            | Entry::RepairsDue { .. }
            | Entry::PathMtu { .. }
            | Entry::SharedBottleneck { .. }
            | Entry::Waited { .. }
            | Entry::End { .. } => {}
        }
    }

    /// The figures; `cut` if the file ended within a line.
    pub(super) fn finish(self, header: &Header, cut: bool) -> Report {
        let all: u64 = self.paths.values().map(|path| path.sent.values().sum::<u64>()).sum();
        let last = self.last;
        let paths = self.paths.into_iter();
        let paths = paths.map(|(path, sums)| sums.finish(path_name(header, path), all, last));
        let mut blocks = BlockCounts::default();
        for second in self.seconds.values() {
            blocks.merge(second);
        }
        let interval = |(from, blocks)| Interval { from, blocks };
        Report {
            version: header.version.clone(),
            profile: header.profile.clone(),
            seed: header.seed,
            seconds: last as f64 / SECOND as f64,
            events: self.events,
            missed: self.end.unwrap_or(0),
            complete: self.end.is_some() && !cut,
            causes: self.causes.finish(),
            paths: paths.collect(),
            blocks,
            timeline: self.seconds.into_iter().map(interval).collect(),
            state_changes: self.state_changes,
        }
    }
}

impl PathSums {
    fn finish(self, name: String, all: u64, last: u64) -> PathReport {
        let symbols: u64 = self.sent.values().sum();
        PathReport {
            name,
            symbols,
            share: symbols as f64 / all.max(1) as f64,
            sent: tallies(self.sent),
            reasons: tallies(self.reasons),
            held: tallies(self.held),
            lost_packets: self.lost,
            timeouts: self.timeouts,
            timeouts_in_a_row: self.in_a_row,
            reinjected_packets: self.reinjected,
            congestion: self.congestion.map(|sums| sums.finish(last)),
        }
    }
}

impl CongestionSums {
    fn new(since: u64) -> Self {
        CongestionSums {
            min: u64::MAX,
            max: 0,
            last: 0,
            pacing_bps: 0,
            phase: String::new(),
            since,
            phases: BTreeMap::new(),
        }
    }

    fn add(&mut self, t: u64, cwnd: u64, pacing_bps: u64, phase: &str) {
        self.min = self.min.min(cwnd);
        self.max = self.max.max(cwnd);
        self.last = cwnd;
        self.pacing_bps = pacing_bps;
        if self.phase != phase {
            self.leave_phase(t);
            self.phase = phase.to_owned();
        }
    }

    fn leave_phase(&mut self, t: u64) {
        if !self.phase.is_empty() {
            let phase = self.phases.entry(self.phase.clone()).or_default();
            *phase = phase.saturating_add(t.saturating_sub(self.since));
        }
        self.since = t;
    }

    fn finish(mut self, last: u64) -> CongestionReport {
        self.leave_phase(last);
        let phase =
            |(name, nanos): (String, u64)| Phase { name, seconds: nanos as f64 / SECOND as f64 };
        let mut phases: Vec<Phase> = self.phases.into_iter().map(phase).collect();
        phases.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        CongestionReport {
            window_min: self.min,
            window_max: self.max,
            window_last: self.last,
            pacing_mbps_last: self.pacing_bps as f64 / 1e6,
            phases,
        }
    }
}

fn count(counts: &mut BTreeMap<String, u64>, name: &str) {
    match counts.get_mut(name) {
        Some(count) => *count += 1,
        None => {
            counts.insert(name.to_owned(), 1);
        }
    }
}

/// The counts, the largest first.
fn tallies(counts: BTreeMap<String, u64>) -> Vec<Tally> {
    let all: u64 = counts.values().sum();
    let tally = |(name, count)| Tally { name, count, share: count as f64 / all.max(1) as f64 };
    let mut tallies: Vec<Tally> = counts.into_iter().map(tally).collect();
    tallies.sort_by_key(|tally| std::cmp::Reverse(tally.count));
    tallies
}
