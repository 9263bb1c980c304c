//! Random networks full of faults: every byte arrives once, in order and unchanged.
//!
//! Each schedule is made from its number. `FAULTS=1000` runs that many of each kind (`--nocapture`
//! shows the progress), and `FAULTS_AFTER=5000` runs those after number 5000. `FAULT=17` runs
//! number 17 alone and prints its description.

mod support;

use anabranch_core::config::TransportConfig;
use anabranch_core::profiles::Profile;
use anabranch_policy::Axis;
use anabranch_policy::view::TrafficClass;
use anabranch_sim::endpoint::PathChange;
use anabranch_sim::link::{FaultConfig, LinkConfig};
use anabranch_sim::report::RunReport;
use anabranch_sim::scenario::{FlowPlan, Plan, RunError};
use anabranch_sim::traffic::Messages;
use anabranch_types::Rng;
use core::fmt;
use core::ops::Range;
use core::time::Duration;

use support::Dice;

/// Number of schedules in a usual run of each test: with unchanged profiles, and with other codes.
const USUAL: u64 = 400;
const USUAL_CODED: u64 = 120;

impl Dice {
    fn count(&mut self, range: Range<u64>) -> u64 {
        range.start + self.0.below(range.end - range.start)
    }

    fn chance(&mut self, p: f64) -> bool {
        self.0.chance(p)
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.0.below(of.len() as u64) as usize]
    }

    /// A random loss model, with at most `most` per cent at any time.
    fn loss(&mut self, most: f64) -> String {
        let first = self.within(0.0..most);
        let second = self.within(0.0..most);
        let dwell = self.spread(5.0..2000.0);
        match self.count(0..6) {
            0 => String::new(),
            1 | 2 => format!(",loss={first:.2}%"),
            3 => format!(",loss=markov:{first:.2}%/{second:.2}%@{dwell:.3}ms"),
            4 => {
                let (enter, leave) = (self.within(0.1..5.0), self.within(5.0..50.0));
                format!(",loss=ge:{enter:.2}%/{leave:.2}%/{:.2}%/{second:.2}%", first / 4.0)
            }
            _ => format!(",loss={first:.2}%/{second:.2}%@{:.3}s", self.spread(0.05..5.0)),
        }
    }

    /// One direction of a link.
    fn link(&mut self, most_loss: f64) -> String {
        let delay = self.spread(1.0..200.0);
        let rate = self.spread(1.0..50.0);
        let mut text = format!("rate={rate:.3}mbit,delay={delay:.3}ms");
        text += &self.loss(most_loss);
        if self.chance(0.4) {
            text += &format!(",jitter={:.3}ms", self.spread(0.1..delay.max(0.2)));
            if self.chance(0.7) {
                text += ",reorder";
            }
        }
        match self.count(0..4) {
            0 => text += &format!(",buffer={}p", self.count(2..40)),
            1 => text += ",buffer=2MiB",
            _ => {}
        }
        if self.chance(0.3) {
            let start = self.within(0.0..6.0);
            text += &format!(",blackout={start:.3}s-{:.3}s", start + self.spread(0.02..5.0));
        }
        if self.chance(0.4) {
            text += self.pick(&[",ecn", ",ecn", ",red"]);
        }
        text
    }

    fn faults(&mut self) -> FaultConfig {
        let mut chance = || if self.chance(0.7) { self.spread(0.001..0.15) } else { 0.0 };
        FaultConfig {
            flip: chance(),
            truncate: chance(),
            duplicate: chance(),
            replay: chance(),
            inject: chance(),
            hold: chance(),
            thin_acks: 0,
        }
    }
}

fn parse(text: &str) -> LinkConfig {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Policies on some axes, used with all profiles that use a code.
type Axes = &'static [(Axis, &'static str)];

/// The schedule with this number, and its description as text.
fn schedule(number: u64, lying: bool, axes: Axes) -> (Plan, String) {
    let name = if lying { "faults.lying" } else { "faults" };
    let mut dice = Dice(Rng::substream(number, name));
    let count = dice.count(1..6);
    let most = 60.0;
    let texts: Vec<String> = (0..count).map(|_| dice.link(most)).collect();
    let mut plan = Plan::parallel(texts.iter().map(|text| parse(text)));
    let mut profile = Profile::named(dice.pick(&["anabranch", "mplot", "uncoded"])).unwrap();
    if profile.name == "uncoded" && Rng::substream(number, "faults.ptcp").chance(0.5) {
        profile = Profile::named("ptcp").unwrap();
    }
    if Rng::substream(number, "faults.mtcp").chance(0.2) {
        profile = Profile::named("mtcp").unwrap();
    }
    let bytes = dice.spread(20_000.0..1_000_000.0) as u64;
    let mut description = format!("links {texts:#?}\nprofile {}", profile.name);
    if dice.chance(0.5) {
        let texts: Vec<String> = (0..count).map(|_| dice.link(most / 2.0)).collect();
        plan = plan.with_reverse(texts.iter().map(|text| parse(text)));
        description += &format!("\nreverse {texts:#?}");
    }
    let codes = profile.policy(Axis::Code).name != "none";
    let axes = if codes { axes } else { &[] };
    for (axis, choice) in axes {
        profile.set(*axis, choice).unwrap();
    }
    let flows = flows(&mut dice, FlowPlan::core(profile).of(bytes), codes);
    let limits = limits(&mut dice, flows[0].transport.clone());
    for flow in flows {
        plan = plan.flow(FlowPlan { transport: limits.clone(), ..flow });
    }
    if dice.chance(0.4) {
        plan = events(&mut dice, plan, count);
    }
    if lying {
        let faults = dice.faults();
        plan.links.iter_mut().for_each(|link| link.config.faults = faults);
    }
    for flow in &plan.flows {
        let FlowPlan { start, traffic, messages, transport, host, .. } = flow;
        description += &format!("\n{traffic:?} from {start:?}, {messages:?}");
        description += &format!(", host {host:?}\n{transport:?}");
    }
    description += &format!("\n{:?}\n{:?}", plan.events, plan.links[0].config.faults);
    (plan.within(Duration::from_secs(20_000)), description)
}

fn events(dice: &mut Dice, mut plan: Plan, paths: u64) -> Plan {
    for _ in 0..dice.count(1..5) {
        let at = Duration::from_micros(dice.count(0..5_000_000));
        let path = dice.count(0..paths) as usize;
        let change = dice.pick(&[PathChange::Rebind, PathChange::Move, PathChange::Down]);
        plan = plan.event(at, path, change);
        if change == PathChange::Down {
            let at = at + Duration::from_micros(dice.count(0..5_000_000));
            plan = plan.event(at, path, PathChange::Up);
        }
    }
    plan
}

fn flows(dice: &mut Dice, mut flow: FlowPlan, codes: bool) -> Vec<FlowPlan> {
    // Without coding, heavy loss leaves too little capacity even for few and small messages.
    if dice.chance(0.3) && codes {
        // Messages are few and small: urgent data is sent first and must leave room for the rest on
        // any link. Blocks that lose more than half of their symbols leave no room, so the number
        // of messages is limited.
        let size = dice.count(16..300) as u32;
        let interval = Duration::from_micros(dice.spread(50_000.0..500_000.0) as u64);
        let class = TrafficClass::Interactive;
        flow.messages = Some(Messages { interval, size, count: 1000, class });
    }
    let mut flows = vec![flow];
    if dice.chance(0.2) {
        // In half of these cases the flows are connections of the same two endpoints.
        if dice.chance(0.5) {
            flows[0] = flows[0].clone().at("host");
        }
        for _ in 0..2 {
            let start = Duration::from_micros(dice.count(0..1_000_000));
            let bytes = dice.spread(1_000.0..300_000.0) as u64;
            flows.push(FlowPlan { start, ..flows[0].clone().of(bytes) });
        }
    }
    flows
}

/// Random limits, sometimes with so little credit that the transfer is held back all the time.
fn limits(dice: &mut Dice, mut transport: TransportConfig) -> TransportConfig {
    transport.max_datagram = dice.pick(&[1200, 1232, 1452]);
    if dice.chance(0.3) {
        transport.receive_symbols = dice.spread(64.0..1000.0) as u64;
    }
    if dice.chance(0.3) {
        transport.streams.max_stream_data = dice.spread(16_384.0..200_000.0) as u64;
        transport.streams.max_data = transport.streams.max_stream_data * dice.count(1..3);
    }
    if dice.chance(0.3) {
        transport.streams.send_buffer = dice.spread(2_000.0..100_000.0) as u64;
    }
    if dice.chance(0.2) {
        transport.max_ack_delay = Duration::from_millis(dice.count(0..100));
    }
    transport.ecn = dice.chance(0.8);
    transport
}

fn go(number: u64, lying: bool, axes: Axes) -> Result<RunReport, RunError> {
    // The run checks every byte when it is read, and that no message arrives twice.
    schedule(number, lying, axes).0.run(number)
}

/// Why a run is not complete; `None` if it is complete.
fn unfinished(report: &RunReport) -> Option<String> {
    let stuck = report.flows.iter().find(|flow| !flow.done)?;
    Some(format!("{} at {} bytes: {:?}", stuck.subject, stuck.bytes, stuck.failure))
}

/// Totals of many schedules.
#[derive(Debug, Default)]
struct Tally {
    connections: usize,
    datagrams: u64,
    bytes: u64,
    virtual_time: Duration,
    corrupt: Vec<u64>,
    unfinished: Vec<u64>,
    panicked: Vec<u64>,
}

impl Tally {
    /// Runs one schedule and counts it. On failure it prints everything that is needed to repeat
    /// the run.
    fn add(&mut self, number: u64, lying: bool, axes: Axes) {
        let outcome = std::panic::catch_unwind(|| go(number, lying, axes));
        let (list, why) = match outcome {
            Ok(Ok(report)) => match unfinished(&report) {
                None => {
                    self.connections += report.flows.len();
                    self.datagrams += report.packets();
                    self.bytes += report.bytes();
                    self.virtual_time += report.elapsed();
                    return;
                }
                Some(why) => (&mut self.unfinished, why),
            },
            Ok(Err(error @ RunError::Corrupt { .. })) => (&mut self.corrupt, error.to_string()),
            Ok(Err(error)) => (&mut self.unfinished, error.to_string()),
            Err(_) => (&mut self.panicked, "panicked".to_owned()),
        };
        list.push(number);
        println!("fault schedule {number}: {why}\n{}", schedule(number, lying, axes).1);
    }

    fn is_clean(&self) -> bool {
        self.corrupt.is_empty() && self.unfinished.is_empty() && self.panicked.is_empty()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { connections, datagrams, bytes, virtual_time, .. } = self;
        write!(
            f,
            "{connections} connections, {datagrams} datagrams, {bytes} bytes delivered in {:.0} s of \
             virtual time; lost, repeated, reordered or changed bytes in {}, unfinished {}, panics {}",
            virtual_time.as_secs_f64(),
            self.corrupt.len(),
            self.unfinished.len(),
            self.panicked.len()
        )?;
        match peak_memory() {
            Some(kilobytes) => write!(f, "; peak memory {} MB", kilobytes / 1024),
            None => Ok(()),
        }
    }
}

/// Peak memory of this process, kB, if the system reports it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// Runs all requested schedules, whatever the outcome of each, then fails if any failed.
fn go_all(lying: bool, axes: Axes) {
    let number = |name| std::env::var(name).ok().map(|text| text.parse().unwrap());
    if let Some(one) = number("FAULT") {
        println!("{}", schedule(one, lying, axes).1);
        let report = go(one, lying, axes).unwrap();
        println!("{report:#?}");
        assert_eq!(unfinished(&report), None);
        return;
    }
    let networks = if lying { "networks that lie as well" } else { "networks that only lose" };
    let schedules = number("FAULTS").unwrap_or(if axes.is_empty() { USUAL } else { USUAL_CODED });
    let done = number("FAULTS_AFTER").unwrap_or(0);
    let mut tally = Tally::default();
    for count in 1..=schedules {
        tally.add(done + count, lying, axes);
        if count.is_multiple_of(1000) || count == schedules {
            println!("{count} of {schedules} schedules over {networks}: {tally}");
        }
    }
    assert!(tally.is_clean(), "{tally:?}");
}

#[test]
fn nothing_is_lost_in_random_networks() {
    go_all(false, &[]);
}

#[test]
fn nothing_is_believed_from_networks_that_lie() {
    go_all(true, &[]);
}

/// A code that often fails with as many symbols as sources, so that only the receiver knows when a
/// block is complete.
#[test]
fn nothing_is_lost_with_a_code_that_fails() {
    go_all(false, &[(Axis::Code, "random-linear")]);
}

#[test]
fn nothing_is_believed_with_a_code_that_fails() {
    go_all(true, &[(Axis::Code, "random-linear:sources=64")]);
}

/// Decoding may fail with as many symbols as sources, and the number of further symbols needed is
/// then unknown.
#[test]
fn nothing_is_lost_with_a_code_that_counts() {
    go_all(false, &[(Axis::Code, "raptorq"), (Axis::Redundancy, "fixed:share=0.1,sources=20")]);
}

/// Decoding needs far more symbols than the block has sources.
#[test]
fn nothing_is_lost_with_a_code_that_peels() {
    go_all(false, &[(Axis::Code, "lt"), (Axis::Redundancy, "fixed:share=0.3,sources=40")]);
}

/// Repairs overlap and are sent between the data.
const SLIDING: Axes =
    &[(Axis::Code, "sliding-window"), (Axis::Redundancy, "sliding:every=8,reach=48")];

#[test]
fn nothing_is_lost_with_a_code_that_slides() {
    go_all(false, SLIDING);
}

#[test]
fn nothing_is_believed_with_a_code_that_slides() {
    go_all(true, SLIDING);
}

#[test]
fn nothing_is_lost_with_blocks_of_a_code_that_slides() {
    go_all(false, &[(Axis::Code, "sliding-window")]);
}

/// Short symbols, several of which share a packet.
const SHORT_SLIDING: Axes = &[
    (Axis::Code, "sliding-window"),
    (Axis::Redundancy, "sliding:every=4,reach=32,symbol=300,together=4"),
];

#[test]
fn nothing_is_lost_when_symbols_share_packets() {
    go_all(false, &[(Axis::Redundancy, "fixed:share=0.2,sources=12,symbol=200,together=7")]);
}

#[test]
fn nothing_is_believed_when_sliding_symbols_share_packets() {
    go_all(true, SHORT_SLIDING);
}

/// A network that holds a packet back until the next one arrives can make a round-trip sample as
/// long as the time between two probes. The probe timeout grew with such samples, and connections
/// ended by the idle timeout.
#[test]
fn held_packets_do_not_end_connections() {
    let with_codes: [(Axes, &[u64]); 4] = [
        (&[], &[27645, 58658, 65917]),
        (&[(Axis::Code, "random-linear:sources=64")], &[58370]),
        (SLIDING, &[13271]),
        (SHORT_SLIDING, &[16490]),
    ];
    for (axes, numbers) in with_codes {
        for number in numbers {
            assert_eq!(unfinished(&go(*number, true, axes).unwrap()), None, "schedule {number}");
        }
    }
}

#[test]
fn schedules_repeat_to_the_last_packet() {
    for number in 1..=5 {
        for lying in [false, true] {
            let again = || go(number, lying, &[]).unwrap();
            let (first, second) = (again(), again());
            assert_eq!((first.digest, first.elapsed()), (second.digest, second.elapsed()));
        }
    }
}
