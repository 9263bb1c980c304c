//! Records series, and figures that are measured only on request, during a run.

use core::time::Duration;
use std::collections::BTreeMap;

use anabranch_types::Time;

use super::build::Live;
use super::stations::Stations;
use super::target::Target;
use crate::endpoint::{Counters, Instant, Watch};
use crate::engine::{LinkId, LinkView};
use crate::report::Series;
use crate::scenario::plan::{Plan, ProbePlan};
use crate::scenario::probes::MESH;

/// All values that a run records on request.
#[derive(Debug)]
pub(super) struct Recorder {
    tracks: Vec<Track>,
    stations: Vec<Stations>,
    /// Links whose mean queue length is requested, with the sum of the samples.
    queues: BTreeMap<usize, f64>,
    looks: u64,
    /// Subjects and metrics of which every single value is recorded.
    pub samples: Vec<(String, &'static str)>,
    /// Subjects and metrics of requested single figures.
    pub figures: Vec<(String, String)>,
}

/// One series.
#[derive(Debug)]
struct Track {
    target: Target,
    interval: Duration,
    due: Time,
    before: f64,
    /// Number of blocks of each flow at the last point.
    known: BTreeMap<usize, usize>,
    series: Series,
}

/// The blocks that are measured by default.
const BLOCKS: Watch = Watch { slice: 65_536, coding_blocks: false };

impl Recorder {
    /// Prepares the recording of all values that the plan's probes ask for, and of the figures
    /// `wanted`.
    pub(super) fn new(plan: &Plan, wanted: &[(String, &str)], live: &mut Live) -> Self {
        let mut recorder = Recorder {
            tracks: Vec::new(),
            stations: Vec::new(),
            queues: BTreeMap::new(),
            looks: 0,
            samples: Vec::new(),
            figures: Vec::new(),
        };
        // Probes about blocks go first, since they say what the blocks are.
        for probe in plan.probes.iter().filter(|probe| probe.is_about_blocks()) {
            for target in probe.of.iter().filter_map(|subject| Target::of(plan, subject)) {
                watch_delays(plan, &target, "block_delay_s", watch(probe), live);
            }
        }
        for probe in &plan.probes {
            recorder.add_probe(plan, probe, live);
        }
        for (subject, metric) in wanted {
            recorder.add_figure(plan, subject, metric, BLOCKS, live);
        }
        recorder
    }

    /// When the next point of a series is due; `None` if there is no series.
    pub(super) fn next_due(&self) -> Option<Time> {
        let stations = self.stations.iter().map(Stations::due);
        self.tracks.iter().map(|track| track.due).chain(stations).min()
    }

    /// Whether queues have to be sampled.
    pub(super) fn watches_queues(&self) -> bool {
        !self.queues.is_empty()
    }

    pub(super) fn look_at_queues(&mut self, live: &Live) {
        self.looks += 1;
        for (link, sum) in &mut self.queues {
            *sum += live
                .engine
                .link(LinkId(*link as u32))
                .map_or(0.0, |link| link.packets_waiting() as f64);
        }
    }

    /// The mean number of packets waiting at a link, if it was watched.
    pub(super) fn mean_queue(&self, link: usize) -> Option<f64> {
        let sum = self.queues.get(&link).filter(|_| self.looks > 0)?;
        Some(sum / self.looks as f64)
    }

    /// Records a point of every series that is due.
    pub(super) fn record(&mut self, now: Time, live: &mut Live) {
        for track in self.tracks.iter_mut().filter(|track| track.due <= now) {
            track.record(now, live);
        }
        for stations in self.stations.iter_mut().filter(|stations| stations.due() <= now) {
            stations.record(now, live);
        }
    }

    /// The series in the order of the probes. Series of stations come last.
    pub(super) fn series(self) -> Vec<Series> {
        let tracks = self.tracks.into_iter().map(|track| track.series);
        tracks.chain(self.stations.into_iter().flat_map(Stations::series)).collect()
    }

    fn add_probe(&mut self, plan: &Plan, probe: &ProbePlan, live: &mut Live) {
        let watch = watch(probe);
        if probe.of.iter().any(|subject| subject == MESH) {
            self.stations.extend(Stations::watch(probe, live));
        }
        for subject in &probe.of {
            let Some(target) = Target::of(plan, subject) else { continue };
            for metric in &probe.series {
                let series = Series::new(subject, *metric);
                let (interval, due) = (probe.interval, Time::ZERO + probe.interval);
                watch_delays(plan, &target, metric, watch, live);
                if exists(&target, metric) {
                    let (target, known) = (target.clone(), BTreeMap::new());
                    self.tracks.push(Track { target, interval, due, before: 0.0, known, series });
                }
            }
            for metric in &probe.samples {
                self.samples.push((subject.clone(), metric));
                watch_delays(plan, &target, metric, watch, live);
            }
            for metric in &probe.figures {
                self.add_figure(plan, subject, metric, watch, live);
            }
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "a figure, of what, how often, and where its values go"
    )]
    fn add_figure(
        &mut self,
        plan: &Plan,
        subject: &str,
        metric: &str,
        watch: Watch,
        live: &mut Live,
    ) {
        let Some(target) = Target::of(plan, subject) else { return };
        if let (Target::Link(link), "queue_mean_packets") = (&target, metric) {
            self.queues.entry(*link).or_insert(0.0);
        }
        watch_delays(plan, &target, metric, watch, live);
        self.figures.push((subject.to_owned(), metric.to_owned()));
    }
}

/// The blocks that `probe` is about.
fn watch(probe: &ProbePlan) -> Watch {
    Watch { slice: probe.slice.as_bytes(), coding_blocks: probe.coding_blocks }
}

/// Makes the target's flows measure their delays, if `metric` is about delays.
fn watch_delays(plan: &Plan, target: &Target, metric: &str, watch: Watch, live: &mut Live) {
    if !metric.starts_with("packet_delay") && !metric.starts_with("block_") {
        return;
    }
    let Live { engine, flows, .. } = live;
    for index in target.flows() {
        if let Some(flow) = flows.get_mut(index).filter(|flow| flow.delays.is_none()) {
            flow.watch_delays(engine, watch, Time::ZERO + plan.warm_up);
        }
    }
}

/// Whether the series `metric` is defined for `target`.
fn exists(target: &Target, metric: &str) -> bool {
    let of_link = [
        "sent_mbps",
        "marks",
        "drops_queue",
        "losses",
        "queue_packets",
        "queue_bytes",
        "queue_delay_s",
    ];
    match target {
        Target::Link(_) => of_link.contains(&metric),
        Target::Loads(_) => metric == "throughput_mbps",
        Target::Flows(_) => !of_link.contains(&metric),
        Target::Paths(_) => {
            let of_path = [
                "throughput_mbps",
                "cwnd_bytes",
                "sequence_bytes",
                "acknowledged_bytes",
                "srtt_s",
                "loss_estimate",
            ];
            of_path.contains(&metric)
        }
    }
}

impl Track {
    fn record(&mut self, now: Time, live: &mut Live) {
        let interval = self.interval.as_secs_f64();
        let value = match self.series.metric.as_str() {
            "goodput_mbps" | "throughput_mbps" | "sent_mbps" => {
                self.change(live).map(|bytes| bytes * 8e-6 / interval)
            }
            "timeouts" | "retransmissions" | "marks" | "drops_queue" | "losses" => {
                self.change(live)
            }
            "delivered_bytes" => Some(self.counter(live)),
            "queue_packets" => self.link(live, |link| link.packets_waiting() as f64),
            "queue_bytes" => self.link(live, |link| link.bytes_waiting() as f64),
            "queue_delay_s" => self.link(live, |link| link.queueing_delay().as_secs_f64()),
            "cwnd_bytes" => self.mean(live, |instant| Some(instant.cwnd)),
            "sequence_bytes" => self.mean(live, |instant| instant.sequence),
            "acknowledged_bytes" => self.mean(live, |instant| instant.acknowledged),
            "srtt_s" => self.mean(live, |instant| instant.srtt),
            "loss_estimate" => self.mean(live, |instant| instant.loss),
            "block_delay_s" => self.longest_block(live),
            _ => None,
        };
        if let Some(value) = value {
            self.series.push(now, value);
        }
        self.due = now + self.interval;
    }

    /// The increase of the counter since the last point.
    fn change(&mut self, live: &mut Live) -> Option<f64> {
        let counter = self.counter(live);
        Some(counter - core::mem::replace(&mut self.before, counter))
    }

    /// The longest delay of the blocks that have become known since the last point.
    fn longest_block(&mut self, live: &Live) -> Option<f64> {
        let mut longest: Option<Duration> = None;
        for flow in self.target.flows() {
            let Some(delays) = live.flows.get(flow).and_then(|flow| flow.delays.as_ref()) else {
                continue;
            };
            let known = self.known.insert(flow, delays.blocks.len()).unwrap_or(0);
            longest = longest.max(delays.blocks.longest_since(known));
        }
        longest.map(|delay| delay.as_secs_f64())
    }

    fn counter(&self, live: &mut Live) -> f64 {
        let metric = self.series.metric.as_str();
        let Live { engine, flows: all, loads: sources, .. } = live;
        match &self.target {
            Target::Flows(flows) => {
                let value = |reading: &Counters| match metric {
                    "goodput_mbps" | "delivered_bytes" => reading.delivered,
                    "throughput_mbps" => reading.arrived.iter().sum(),
                    "timeouts" => reading.timeouts,
                    _ => reading.retransmissions,
                };
                let flows = flows.iter().filter_map(|flow| all.get(*flow));
                flows.map(|flow| value(&flow.read(engine)) as f64).sum()
            }
            Target::Paths(paths) => paths
                .iter()
                .filter_map(|(flow, path)| {
                    let reading = all.get(*flow)?.read(engine);
                    reading.arrived.get(*path).map(|bytes| *bytes as f64)
                })
                .sum(),
            Target::Loads(loads) => {
                let loads = loads.iter().filter_map(|load| sources.get(*load));
                loads.map(|load| load.bytes(engine) as f64).sum()
            }
            Target::Link(link) => {
                let view = engine.link(LinkId(*link as u32));
                let counters = view.map(|view| view.counters()).unwrap_or_default();
                let value = match metric {
                    "sent_mbps" => counters.bytes_in,
                    "marks" => counters.ecn_marks,
                    "drops_queue" => counters.dropped_by_queue(),
                    _ => counters.lost_random,
                };
                value as f64
            }
        }
    }

    fn link(&self, live: &Live, of: impl Fn(LinkView<'_>) -> f64) -> Option<f64> {
        match self.target {
            Target::Link(link) => live.engine.link(LinkId(link as u32)).map(of),
            _ => None,
        }
    }

    /// The mean over those flows or paths that have a value.
    fn mean(&self, live: &mut Live, of: impl Fn(Instant) -> Option<f64>) -> Option<f64> {
        let Live { engine, flows: all, .. } = live;
        let values: Vec<f64> = match &self.target {
            Target::Flows(flows) => {
                flows.iter().filter_map(|flow| of(all.get(*flow)?.instant(engine, None))).collect()
            }
            Target::Paths(paths) => paths
                .iter()
                .filter_map(|(flow, path)| of(all.get(*flow)?.instant(engine, Some(*path))))
                .collect(),
            _ => Vec::new(),
        };
        (!values.is_empty()).then(|| crate::probe::mean(&values))
    }
}
