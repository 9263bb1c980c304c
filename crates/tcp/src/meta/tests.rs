//! Streams over two or three paths in virtual time.

mod closing;
mod contract;
mod fallback;
mod membership;
mod pipes;
mod random;
mod script;
mod sound;

use anabranch_policy::PolicySpec;
use anabranch_types::{Rng, Time};
use core::time::Duration;

use super::*;
use crate::segment::Segment;
use crate::testing::Underway;

/// One path with its rate, one-way delay and loss. Its queue holds 50 ms.
#[derive(Clone, Copy)]
struct Path {
    mbps: u64,
    delay: Duration,
    loss: f64,
    busy_until: Time,
    /// Time from which on nothing passes.
    dies: Time,
    /// Whether a middlebox removes the options of multipath connections.
    strips: bool,
}

fn path(mbps: u64, delay_ms: u64, loss: f64) -> Path {
    let delay = Duration::from_millis(delay_ms);
    Path { mbps, delay, loss, busy_until: Time::ZERO, dies: Time::MAX, strips: false }
}

/// A sender and a receiver over paths in virtual time.
struct Run {
    sender: MetaSender,
    receiver: MetaReceiver,
    paths: Vec<Path>,
    rng: Rng,
    underway: Underway,
    now: Time,
    /// How many steps there have been, and every how many steps the sender is checked.
    steps: u64,
    check_every: u64,
}

impl Run {
    fn new(config: &MetaConfig, paths: &[Path], seed: u64) -> Self {
        let control: PolicySpec = "reno:initial=2".parse().expect("a policy");
        let sender = MetaSender::new(config, &vec![control; paths.len()]).expect("policies");
        Run::of(sender, config, paths, seed)
    }

    fn of(sender: MetaSender, config: &MetaConfig, paths: &[Path], seed: u64) -> Self {
        Run {
            sender,
            receiver: MetaReceiver::new(config, paths.len()),
            paths: paths.to_vec(),
            rng: Rng::new(seed),
            underway: Underway::default(),
            now: Time::ZERO,
            steps: 0,
            check_every: 16,
        }
    }

    fn post(&mut self, at: Time, to_receiver: bool, index: usize, segment: Segment) {
        let segment = if self.paths[index].strips { segment.stripped() } else { segment };
        self.underway.post(at, (to_receiver, index, segment));
    }

    fn drain(&mut self) {
        while let Some((index, segment)) = self.sender.poll_transmit(self.now) {
            let path = &mut self.paths[index];
            if path.busy_until.since(self.now) > Duration::from_millis(50) {
                continue;
            }
            let bits = u64::from(segment.len + 60) * 8;
            path.busy_until =
                path.busy_until.max(self.now) + Duration::from_nanos(bits * 1000 / path.mbps);
            let at = path.busy_until + path.delay;
            if at < path.dies && !self.rng.chance(path.loss) {
                self.post(at, true, index, segment);
            }
        }
        while let Some((index, segment)) = self.receiver.poll_transmit(self.now) {
            let path = self.paths[index];
            if self.now < path.dies {
                self.post(self.now + path.delay, false, index, segment);
            }
        }
    }

    /// Sends all segments that may leave, then processes the next event. Returns false if there is
    /// none.
    fn step(&mut self) -> bool {
        self.drain();
        let timers = [self.sender.next_timeout(), self.receiver.next_timeout()];
        match self.underway.step(&mut self.now, timers) {
            None => return false,
            Some(None) => {}
            Some(Some((true, index, segment))) => {
                self.receiver.handle_segment(self.now, index, &segment, false);
            }
            Some(Some((false, index, segment))) => {
                self.sender.handle_segment(self.now, index, &segment);
            }
        }
        self.sender.handle_timeout(self.now);
        self.receiver.handle_timeout(self.now);
        // The check walks the whole table, so it is not made after every step.
        self.steps += 1;
        if self.steps.is_multiple_of(self.check_every) {
            self.sender.check();
        }
        true
    }

    /// Processes all events before `end`.
    fn run_until(&mut self, end: Time) {
        while self.now < end && self.step() {}
        self.drain();
    }

    /// Sends `bytes`; the reader takes at most `chunk` after each event. Returns the seconds it took.
    fn transfer(&mut self, bytes: u64, chunk: u64) -> f64 {
        let mut left = bytes;
        for _ in 0..2_000_000 {
            left -= self.sender.write(left);
            if left == 0 {
                self.sender.finish();
                if self.sender.is_complete() {
                    return self.now.as_secs_f64();
                }
            }
            self.receiver.read(chunk);
            assert!(self.step() || self.sender.is_complete(), "nothing will ever happen");
        }
        panic!("stuck at {} of {bytes}", self.sender.acknowledged());
    }

    fn sent_on(&self, index: usize) -> u64 {
        self.sender.subflow(index).expect("it exists").statistics().data_bytes
    }
}

fn policy(text: &str) -> PolicySpec {
    text.parse().expect("a policy")
}

fn config(scheduler: &str) -> MetaConfig {
    let subflow = Config { mss: 1000, ..Config::default() };
    MetaConfig { scheduler: policy(scheduler), ..MetaConfig::new(subflow) }
}

#[test]
fn two_paths_add_up() {
    let paths = [path(8, 20, 0.0), path(4, 40, 0.0)];
    let mut run = Run::new(&config("min-rtt"), &paths, 1);
    let seconds = run.transfer(12_000_000, u64::MAX);
    assert_eq!(run.receiver.delivered(), 12_000_000);
    let goodput = 96.0 / seconds;
    assert!((9.5..11.4).contains(&goodput), "{goodput} of 12 Mb/s");
    assert!(run.sent_on(0) > run.sent_on(1) && run.sent_on(1) > 2_500_000);
    assert!(run.receiver.statistics().out_of_order > 0);
}

#[test]
fn round_robin_splits_evenly_where_paths_are_equal() {
    let paths = [path(5, 20, 0.0), path(5, 20, 0.0)];
    let mut run = Run::new(&config("round-robin"), &paths, 1);
    run.transfer(4_000_000, u64::MAX);
    let (a, b) = (run.sent_on(0) as f64, run.sent_on(1) as f64);
    assert!((a / b - 1.0).abs() < 0.05, "{a} and {b}");
}

#[test]
fn redundant_paths_hide_each_others_losses() {
    let paths = [path(5, 20, 0.05), path(5, 20, 0.05)];
    let seconds = |scheduler| Run::new(&config(scheduler), &paths, 7).transfer(500_000, u64::MAX);
    let mut run = Run::new(&config("redundant"), &paths, 7);
    run.transfer(500_000, u64::MAX);
    assert!(run.sender.statistics().rebound_bytes > 200_000);
    assert!(run.receiver.statistics().duplicates > 200);
    // A redundant transfer is not faster than one that shares the load, but must not take three
    // times as long.
    assert!(seconds("redundant") < 3.0 * seconds("min-rtt"));
}

#[test]
fn every_byte_arrives_whatever_is_moved() {
    let mut seed = 0;
    for scheduler in ["min-rtt", "round-robin", "redundant"] {
        for timeout in ["nothing", "reinject", "copy"] {
            for cut in ["keep", "unbind"] {
                seed += 1;
                let config = MetaConfig {
                    recovery: policy(&format!("resend:timeout={timeout},cut={cut}")),
                    receive_buffer: 40_000,
                    send_buffer: 60_000,
                    read_at_once: false,
                    ..config(scheduler)
                };
                let paths = [path(8, 10, 0.03), path(2, 60, 0.1), path(1, 5, 0.2)];
                let mut run = Run::new(&config, &paths, seed);
                run.transfer(300_123, 3000);
                assert_eq!(run.receiver.delivered(), 300_123);
                let waiting = run.receiver.statistics().peak_waiting;
                assert!(waiting <= 40_000, "{waiting}");
            }
        }
    }
}

#[test]
fn a_path_that_dies_holds_its_data_up_only_without_reinjection() {
    let mut paths = [path(5, 20, 0.0), path(5, 20, 0.0)];
    paths[1].dies = Time::from_millis(700);
    let reinject = MetaConfig { recovery: policy("resend"), ..config("min-rtt") };
    let seconds = Run::new(&reinject, &paths, 1).transfer(2_000_000, u64::MAX);
    assert!(seconds < 8.0, "{seconds}");
}

#[test]
fn a_cut_unbinds_what_lies_beyond_the_window() {
    let recovery = policy("resend:timeout=nothing,cut=unbind");
    let config = MetaConfig { recovery, ..config("min-rtt") };
    let paths = [path(10, 50, 0.0), path(10, 20, 0.02)];
    let mut run = Run::new(&config, &paths, 3);
    run.transfer(4_000_000, u64::MAX);
    let statistics = run.sender.statistics();
    assert!(statistics.unbound_bytes > 0);
    // No more is bound again than was unbound, and duplicates are a small share of all segments.
    assert!(statistics.rebound_bytes <= statistics.unbound_bytes);
    assert!(run.receiver.statistics().duplicates < 1000);
}

#[test]
fn a_shut_shared_window_is_probed() {
    let config = MetaConfig { receive_buffer: 10_000, read_at_once: false, ..config("min-rtt") };
    let mut run = Run::new(&config, &[path(5, 20, 0.0)], 1);
    run.sender.write(20_000);
    for _ in 0..300 {
        run.step();
    }
    assert_eq!(run.sender.acknowledged(), 10_000);
    assert!(run.sender.statistics().window_probes >= 5);
}
