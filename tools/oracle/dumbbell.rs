//! Table 2: ten flows over a dumbbell whose bottleneck is drop-tail, RED or RED with ECN.

use anabranch_sim::endpoint::{TcpProtocol, TcpReceiver, TcpSender};
use anabranch_sim::engine::{AgentId, Engine, LinkId, NodeId, Topology};
use anabranch_sim::link::{LinkConfig, LinkCounters};
use anabranch_sim::queue::{Discipline, QueueLimit, RedConfig};
use anabranch_sim::traffic::Traffic;
use anabranch_types::{Bitrate, Rng, Time};
use core::time::Duration;
use serde_json::json;
use std::collections::BTreeMap;

use crate::arguments::Arguments;
use crate::bottleneck::SECONDS;
use crate::report::Line;
use crate::senders::{Imitation, imitate};
use crate::statistics::{Estimate, jain};
use crate::table::{Row, Table};
use crate::workers;

/// Second at which the statistics begin.
pub const WARM_UP: usize = 20;

/// The dumbbell of the reference data: 1 Gb/s and 1 ms at each end, 18 ms between.
#[derive(Clone, Debug)]
pub struct Dumbbell {
    pub mbps: f64,
    pub flows: usize,
    pub queue_packets: u32,
    pub discipline: &'static str,
    pub sender: Imitation,
}

/// Results of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Bytes acknowledged by each flow at each whole second.
    pub seconds: Vec<Vec<u64>>,
    pub drops: f64,
    pub marks: f64,
    pub timeouts: f64,
    pub retransmissions: f64,
    pub responses: f64,
}

impl Outcome {
    /// Mean rate of each flow after the warm-up, Mb/s.
    pub fn rates(&self) -> Vec<f64> {
        let (Some(first), Some(last)) = (self.seconds.get(WARM_UP), self.seconds.last()) else {
            return Vec::new();
        };
        let seconds = (self.seconds.len() - 1 - WARM_UP) as f64;
        last.iter().zip(first).map(|(l, f)| (l - f) as f64 * 8e-6 / seconds).collect()
    }
}

/// The disciplines that the tables name.
pub fn discipline(name: &str) -> Option<&'static str> {
    ["droptail", "red", "redecn"].into_iter().find(|known| *known == name)
}

impl Dumbbell {
    fn bottleneck(&self) -> LinkConfig {
        let delay = Duration::from_millis(18);
        // ns-2 counts the arriving packet, as for the single flow.
        let limit = QueueLimit::Packets(self.queue_packets.saturating_sub(1).max(1));
        let mut link = LinkConfig::new(Bitrate::from_mbps(self.mbps), delay).with_buffer(limit);
        if self.discipline != "droptail" {
            let ecn = self.discipline == "redecn";
            link.queue.discipline = Discipline::Red(RedConfig { ecn, ..RedConfig::ns2() });
        }
        link
    }

    /// Runs the flows, each with its own access links, for [`SECONDS`].
    pub fn run(&self, seed: u64) -> Result<Outcome, String> {
        let (mut engine, senders, bottleneck) = self.build(seed)?;
        let mut seconds = Vec::new();
        let mut early = LinkCounters::default();
        for second in 0..=SECONDS {
            engine.run_until(Time::from_secs(second));
            let acked = senders
                .iter()
                .map(|id| engine.agent_as::<TcpSender>(*id).map_or(0, TcpSender::acknowledged));
            seconds.push(acked.collect());
            if second as usize == WARM_UP {
                early = engine.link(bottleneck).ok_or("no bottleneck")?.counters();
            }
        }
        let link = engine.link(bottleneck).ok_or("no bottleneck")?.counters();
        let mut outcome = Outcome {
            seconds,
            drops: (link.dropped_by_queue() - early.dropped_by_queue()) as f64,
            marks: (link.ecn_marks - early.ecn_marks) as f64,
            timeouts: 0.0,
            retransmissions: 0.0,
            responses: 0.0,
        };
        for id in senders {
            let agent = engine.agent_as::<TcpSender>(id).ok_or("a sender is gone")?;
            let counters = agent.statistics();
            outcome.timeouts += counters.timeouts as f64;
            outcome.retransmissions += counters.retransmissions as f64;
            outcome.responses += counters.ecn_responses as f64;
        }
        Ok(outcome)
    }

    fn build(&self, seed: u64) -> Result<(Engine, Vec<AgentId>, LinkId), String> {
        let mut topology = Topology::new();
        let (left, right) = (topology.add_node("left"), topology.add_node("right"));
        let add =
            |topology: &mut Topology, from: NodeId, to: NodeId, link: &LinkConfig, name: String| {
                topology.add_link(from, to, link, name).map_err(|error| error.to_string())
            };
        let bottleneck = add(&mut topology, left, right, &self.bottleneck(), "bottleneck".into())?;
        let back = LinkConfig::new(Bitrate::from_mbps(self.mbps), Duration::from_millis(18))
            .with_buffer(QueueLimit::Packets(1_000_000));
        add(&mut topology, right, left, &back, "back".into())?;
        let access = LinkConfig::new(Bitrate::from_mbps(1000.0), Duration::from_millis(1))
            .with_buffer(QueueLimit::Packets(1_000_000));
        let mut ends = Vec::new();
        for flow in 0..self.flows {
            let (s, r) =
                (topology.add_node(format!("s{flow}")), topology.add_node(format!("r{flow}")));
            let pairs = [(s, left), (left, s), (right, r), (r, right)];
            for (at, (from, to)) in pairs.into_iter().enumerate() {
                add(&mut topology, from, to, &access, format!("access{flow}.{at}"))?;
            }
            ends.push((s, r));
        }
        let mut routes = Vec::new();
        for (s, r) in ends {
            let there = topology.route(s, r).map_err(|error| error.to_string())?;
            let home = topology.route(r, s).map_err(|error| error.to_string())?;
            routes.push((there, home));
        }
        let mut engine = Engine::new(topology, seed).map_err(|error| error.to_string())?;
        let senders = self.add_flows(&mut engine, &routes, seed)?;
        Ok((engine, senders, bottleneck))
    }

    fn add_flows(
        &self,
        engine: &mut Engine,
        routes: &[(anabranch_sim::engine::RouteId, anabranch_sim::engine::RouteId)],
        seed: u64,
    ) -> Result<Vec<AgentId>, String> {
        let mut starts = Rng::substream(seed, "starts");
        let mut config = self.sender.config.clone();
        config.ecn = self.discipline == "redecn";
        let control = self.sender.control.parse().map_err(|_| "no such controller")?;
        // Jitter of one packet time, as in the reference: it breaks the phase between the flows.
        let bits = f64::from(config.mss + config.wire.header_bytes) * 8.0;
        let send_jitter = Duration::from_nanos((bits / self.mbps * 1e3) as u64);
        let protocol = TcpProtocol { send_jitter, ..TcpProtocol::new(config, control) }.into();
        let mut senders = Vec::new();
        for (flow, (there, home)) in routes.iter().enumerate() {
            let agent = TcpSender::new(&protocol, Traffic::Bulk, seed, &format!("flow{flow}"))
                .map_err(|error| error.to_string())?;
            let start = Time::from_nanos((starts.uniform() * 1e9) as u64);
            let sender = engine.add_agent(Box::new(agent), start);
            let receiver = engine.add_agent(Box::new(TcpReceiver::new(&protocol)), Time::ZERO);
            engine.connect(sender, receiver, *there, *home).map_err(|error| error.to_string())?;
            senders.push(sender);
        }
        Ok(senders)
    }
}

/// Measurements of one experiment, seed by seed.
#[derive(Default)]
struct Group {
    goodput: Vec<f64>,
    jain: Vec<f64>,
    drops: Vec<f64>,
    marks: Vec<f64>,
    timeouts: Vec<f64>,
}

/// Rate in kb/s, discipline, delayed acknowledgements: what rows of one experiment share.
type Key = (u64, &'static str, bool);

fn read(row: &Row<'_>) -> Result<Option<(Key, Dumbbell)>, String> {
    let delayed = row.number("delack", 0.0, 1.0)? > 0.5;
    let mbps = row.number("bw_mbps", 0.001, 1e6)?;
    let name = row.text("queue")?;
    let discipline = discipline(name)
        .ok_or_else(|| row.error(&format!("queue: '{name}' is not droptail, red or redecn")))?;
    if (row.number("rtt_ms", 0.0, 60_000.0)? - 40.0).abs() > 1e-9 {
        return Err(row.error("rtt_ms: the dumbbell has 40 ms"));
    }
    let flows = row.number("nflows", 1.0, 10_000.0)? as usize;
    let queue_packets = row.number("queue_pkts", 1.0, 1e6)? as u32;
    let Some(sender) = imitate(row.text("sim")?, delayed) else { return Ok(None) };
    let dumbbell = Dumbbell { mbps, flows, queue_packets, discipline, sender };
    Ok(Some((((mbps * 1000.0) as u64, discipline, delayed), dumbbell)))
}

/// Runs every experiment of the table and sets ours beside it.
pub fn compare(table: &Table, arguments: &Arguments) -> Result<Vec<Line>, String> {
    let mut groups: BTreeMap<_, (Group, Dumbbell)> = BTreeMap::new();
    for row in table.rows() {
        let Some((key, dumbbell)) = read(&row)? else { continue };
        if arguments.quick && dumbbell.mbps > 10.0 {
            continue;
        }
        let group = &mut groups.entry(key).or_insert((Group::default(), dumbbell)).0;
        group.goodput.push(row.number("total_goodput_mbps", 0.0, 1e6)?);
        group.jain.push(row.number("jain", 0.0, 1.0)?);
        for (column, list) in [
            ("drops", &mut group.drops),
            ("marks", &mut group.marks),
            ("timeouts", &mut group.timeouts),
        ] {
            list.push(row.number(column, -1.0, 1e12)?);
        }
    }
    let groups: Vec<(Group, Dumbbell)> = groups.into_values().collect();
    let seeds = arguments.seeds as usize;
    let outcomes = workers::map(groups.len() * seeds, arguments.jobs, |index| {
        groups[index / seeds].1.run((index % seeds) as u64 + 1)
    })?;
    Ok(groups.iter().zip(outcomes.chunks(seeds)).map(|((g, d), o)| line(g, d, o)).collect())
}

fn line(group: &Group, dumbbell: &Dumbbell, outcomes: &[Outcome]) -> Line {
    let of = |field: &dyn Fn(&Outcome) -> f64| {
        Estimate::of(&outcomes.iter().map(field).collect::<Vec<_>>())
    };
    let goodput = of(&|o| o.rates().iter().sum());
    let fairness = of(&|o| jain(&o.rates()));
    let (drops, marks) = (of(&|o| o.drops), of(&|o| o.marks));
    let timeouts = of(&|o| o.timeouts);
    let published = |values: &[f64]| Estimate::of(values);
    let (their_drops, their_marks) = (published(&group.drops), published(&group.marks));
    let (their_goodput, their_jain) = (published(&group.goodput), published(&group.jain));
    let their_timeouts = published(&group.timeouts);
    let few = |reference: &Estimate| reference.mean < 20.0;
    let inside = goodput.agrees(&their_goodput, 0.15)
        && (fairness.mean - their_jain.mean).abs() <= 0.01
        && (few(&their_drops) || drops.agrees(&their_drops, 0.15))
        && (few(&their_marks) || marks.agrees(&their_marks, 0.15));
    Line {
        fields: vec![
            ("bw_mbps", json!(dumbbell.mbps)),
            ("queue", json!(dumbbell.discipline)),
            ("delack", json!(u8::from(dumbbell.sender.config.delayed_ack.every > 1))),
            ("reference_mbps", json!(their_goodput.mean)),
            ("ours_mean_mbps", json!(goodput.mean)),
            ("reference_jain", json!(their_jain.mean)),
            ("ours_jain", json!(fairness.mean)),
            ("reference_drops", json!(their_drops.mean)),
            ("ours_drops", json!(drops.mean)),
            ("reference_marks", json!(their_marks.mean)),
            ("ours_marks", json!(marks.mean)),
            ("reference_timeouts", json!(their_timeouts.mean)),
            ("ours_timeouts", json!(timeouts.mean)),
        ],
        counted: dumbbell.sender.reference,
        inside,
    }
}
