//! What is shown of the paths: their rates over the last seconds, and their states.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use anabranch::paths::{NamedPath, PathStatus};
use serde::{Serialize, Serializer};
use tokio::time::Instant;

use crate::format;

/// Time over which rates, shares and loss are taken.
const SPAN: Duration = Duration::from_secs(2);
/// Longest name that is shown whole.
const NAME: usize = 16;

/// Direction of the data that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From this side to the peer.
    Sending,
    /// From the peer to this side.
    Receiving,
}

/// A path over the last seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Watched {
    /// Name of the path.
    pub name: String,
    /// State of the path.
    #[serde(serialize_with = "by_name")]
    pub state: PathStatus,
    /// Rate at which data arrived, headers and repairs included.
    #[serde(serialize_with = "format::three_decimals")]
    pub mbps: f64,
    /// Share of what all paths carried.
    #[serde(serialize_with = "format::three_decimals")]
    pub share: f64,
    /// Share of the packets that was lost.
    #[serde(serialize_with = "format::three_decimals")]
    pub loss: f64,
    /// Smoothed round-trip time, if it was measured.
    #[serde(serialize_with = "format::maybe_three_decimals")]
    pub rtt_ms: Option<f64>,
}

fn by_name<S: Serializer>(status: &PathStatus, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(status.name())
}

/// Totals of a path at some time.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    bytes: u64,
    packets: u64,
    lost: u64,
}

impl Sample {
    fn of(path: &NamedPath, direction: Direction) -> Self {
        let counters = &path.stats.counters;
        match direction {
            Direction::Sending => Sample {
                bytes: counters.sent_bytes,
                packets: counters.acked_packets + counters.lost_packets,
                lost: counters.lost_packets.saturating_sub(counters.spurious_losses),
            },
            Direction::Receiving => Sample {
                bytes: counters.received_bytes,
                packets: path.stats.peer_sent_packets,
                lost: path.stats.peer_sent_packets.saturating_sub(counters.received_packets),
            },
        }
    }
}

impl Sample {
    /// Bytes carried since `before`, and the share of packets that was lost. What was sent and lost was not carried.
    fn since(self, before: Sample, direction: Direction) -> (f64, f64) {
        let packets = self.packets.saturating_sub(before.packets);
        let lost = self.lost.saturating_sub(before.lost);
        let loss = (lost as f64 / packets.max(1) as f64).min(1.0);
        let bytes = self.bytes.saturating_sub(before.bytes) as f64;
        (if direction == Direction::Sending { bytes * (1.0 - loss) } else { bytes }, loss)
    }
}

/// Bytes that a path has carried: those received, or an estimate of those sent that arrived.
pub fn carried(path: &NamedPath, direction: Direction) -> u64 {
    Sample::of(path, direction).since(Sample::default(), direction).0 as u64
}

/// The paths of the last seconds.
#[derive(Debug)]
pub struct Recent {
    direction: Direction,
    samples: VecDeque<(Instant, BTreeMap<String, Sample>)>,
}

impl Recent {
    /// No samples yet.
    pub fn new(direction: Direction) -> Self {
        Recent { direction, samples: VecDeque::new() }
    }

    /// The paths as of `now`, over the last [`SPAN`].
    pub fn at(&mut self, now: Instant, paths: &[NamedPath]) -> Vec<Watched> {
        let sample = |path: &NamedPath| (path.name.clone(), Sample::of(path, self.direction));
        let samples: BTreeMap<String, Sample> = paths.iter().map(sample).collect();
        self.samples.push_back((now, samples.clone()));
        while self.samples.get(1).is_some_and(|(time, _)| now.duration_since(*time) >= SPAN) {
            self.samples.pop_front();
        }
        let Some((then, before)) = self.samples.front() else { return Vec::new() };
        let seconds = now.duration_since(*then).as_secs_f64();
        let since = |path: &NamedPath| {
            let new = samples.get(&path.name).copied().unwrap_or_default();
            new.since(before.get(&path.name).copied().unwrap_or_default(), self.direction)
        };
        let all: f64 = paths.iter().map(|path| since(path).0).sum();
        let watched = paths.iter().map(|path| {
            let (carried, loss) = since(path);
            let rtt = &path.stats.rtt;
            Watched {
                name: path.name.clone(),
                state: path.status,
                mbps: if seconds > 0.0 { carried * 8e-6 / seconds } else { 0.0 },
                share: carried / all.max(1.0),
                loss,
                rtt_ms: (rtt.samples > 0).then_some(rtt.smoothed.as_secs_f64() * 1e3),
            }
        });
        watched.collect()
    }
}

/// `wan0 18.9 Mb/s 67 %, wan1 down`: for lines that are not redrawn.
pub fn inline(paths: &[Watched]) -> String {
    let one = |path: &Watched| match path.state {
        PathStatus::Down => format!("{} down", path.name),
        state => {
            let (rate, share) = (format::mbps(path.mbps), format::percent(path.share));
            let usual = state == PathStatus::Up;
            let state = if usual { String::new() } else { format!(" {}", state.name()) };
            format!("{}{state} {rate} Mb/s {share}", path.name)
        }
    };
    paths.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// A line for each path, for a terminal; 60 columns hold it if names are short.
pub fn lines(paths: &[Watched]) -> Vec<String> {
    let width = paths.iter().map(|path| path.name.chars().count()).max().unwrap_or(0).min(NAME);
    let one = |path: &Watched| {
        let rtt = path.rtt_ms.map_or("-".to_owned(), |ms| {
            format::millis(Duration::try_from_secs_f64(ms * 1e-3).unwrap_or_default())
        });
        let (name, state) = (shortened(&path.name), path.state.name());
        let (rate, share) = (format::mbps(path.mbps), format::percent(path.share));
        let loss = format::percent(path.loss);
        format!("  {name:<width$} {state:<7} {rate:>5} Mb/s {share:>6}  RTT {rtt:>6}  loss {loss}")
    };
    paths.iter().map(one).collect()
}

/// Shortens a long name at its beginning: names such as IPv6 addresses differ at the end.
fn shortened(name: &str) -> String {
    let beyond = name.chars().count().saturating_sub(NAME);
    if beyond == 0 {
        name.to_owned()
    } else {
        format!("…{}", name.chars().skip(beyond + 1).collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(name: &str, state: PathStatus) -> Watched {
        let (name, rtt_ms) = (name.to_owned(), Some(31.4));
        Watched { name, state, mbps: 18.94, share: 0.67, loss: 0.001, rtt_ms }
    }

    #[test]
    fn each_path_has_a_line_that_fits_narrow_terminals() {
        let paths = [watched("wan0", PathStatus::Up), watched("wlp0s20f3", PathStatus::Probing)];
        let lines = lines(&paths);
        assert_eq!(lines[0], "  wan0      up       18.9 Mb/s   67 %  RTT  31 ms  loss 0.10 %");
        assert!(lines.iter().all(|line| line.chars().count() <= 64), "{lines:#?}");
        let long = super::lines(&[watched("2001:db8:1234:5678::9abc:def0", PathStatus::Up)]);
        assert!(long[0].contains("…5678::9abc:def0"), "{long:?}");
    }

    #[test]
    fn what_was_lost_was_not_carried() {
        let (before, lost) = (Sample { bytes: 1000, packets: 10, lost: 1 }, 46);
        let now = Sample { bytes: 11_000, packets: 110, lost };
        assert_eq!(now.since(before, Direction::Sending), (5500.0, 0.45));
        assert_eq!(now.since(before, Direction::Receiving), (10_000.0, 0.45));
        assert_eq!(before.since(now, Direction::Sending), (0.0, 0.0));
    }

    #[test]
    fn lines_that_stay_name_what_is_not_as_usual() {
        let states = [PathStatus::Up, PathStatus::Down, PathStatus::Backup];
        let paths = states.map(|state| watched("wan0", state));
        assert_eq!(inline(&paths), "wan0 18.9 Mb/s 67 %, wan0 down, wan0 backup 18.9 Mb/s 67 %");
    }
}
