//! The cost of a pull and of unbinding and rebinding a segment, by the number of outstanding
//! segments (pTCP §6, complexity: unbound packets are put back into a list sorted by sequence
//! number). At the end it prints the ratio of each cost to that at 64 segments, beside the ratio of
//! the logarithms.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anabranch_policy::congestion::{AckEvent, CongestionController, TimeoutEvent};
use anabranch_policy::view::PathView;
use anabranch_policy::{PolicySpec, recovery, scheduler};
use anabranch_tcp::meta::{MetaConfig, MetaSender};
use anabranch_tcp::{Config, Flags, Segment};
use anabranch_types::Time;
use criterion::{BatchSize, Criterion};

const MSS: u64 = 1000;
const SIZES: [u64; 3] = [64, 1024, 16_384];

/// A constant window, which a timeout reduces to one segment.
#[derive(Debug)]
struct Fixed(u64);

impl CongestionController for Fixed {
    fn on_ack(&mut self, _event: &AckEvent, _siblings: &[PathView]) {}

    fn on_timeout(&mut self, _event: &TimeoutEvent) {
        self.0 = MSS;
    }

    fn set_packet_size(&mut self, _bytes: u64) {}

    fn cwnd(&self) -> u64 {
        self.0
    }

    fn phase(&self) -> &'static str {
        "fixed"
    }
}

fn policy(text: &str) -> PolicySpec {
    text.parse().expect("a policy")
}

/// Two pipes, each with half of the `outstanding` segments in flight and its window full.
fn full(outstanding: u64) -> MetaSender {
    pipes(outstanding, outstanding / 2)
}

/// Variant of [`full`] in which the second pipe has a window of `outstanding` segments.
fn roomy(outstanding: u64) -> MetaSender {
    pipes(outstanding, outstanding)
}

/// Variant of [`full`] with a window of `second` segments in the second pipe.
fn pipes(outstanding: u64, second: u64) -> MetaSender {
    let subflow = Config { mss: MSS as u32, handshake: false, ..Config::default() };
    let unbounded = 1 << 40;
    let config = MetaConfig {
        send_buffer: unbounded,
        receive_buffer: unbounded,
        ..MetaConfig::new(subflow)
    };
    let half = outstanding / 2 * MSS;
    let controls: Vec<Box<dyn CongestionController>> =
        vec![Box::new(Fixed(half)), Box::new(Fixed(second * MSS))];
    let scheduler = scheduler::build(&policy("blind")).expect("a scheduler");
    let recovery = recovery::build(&policy("resend:timeout=copy,cut=unbind")).expect("a policy");
    let mut sender = MetaSender::with_policies(&config, controls, scheduler, recovery);
    sender.write(outstanding * MSS);
    assert_eq!(drain(&mut sender, Time::ZERO), outstanding);
    sender
}

fn drain(sender: &mut MetaSender, now: Time) -> u64 {
    let mut sent = 0;
    while let Some(segment) = sender.poll_transmit(now) {
        black_box(segment);
        sent += 1;
    }
    sent
}

/// Acknowledges the next segment of each pipe in turn, 256 in all, and lets a new one be pulled for
/// each. Returns how many were pulled.
fn pull(sender: &mut MetaSender, from: u64) -> u64 {
    let now = Time::from_millis(10);
    let mut pulled = 0;
    for round in from..from + 256 {
        sender.write(MSS);
        let (index, of_pipe) = ((round % 2) as usize, round / 2 + 1);
        let flags = Flags::ACK.with(Flags::MAPPED);
        let (ack, data) = (of_pipe * MSS, round * MSS);
        let segment = Segment { flags, ack, data, window: 1 << 40, ..Segment::EMPTY };
        sender.handle_segment(now, index, &segment);
        pulled += drain(sender, now);
    }
    assert_eq!(pulled, 256);
    pulled
}

/// Lets the first pipe time out, so that all but the first of its segments are taken back. Returns
/// how many these are.
fn unbind(sender: &mut MetaSender) -> u64 {
    let at = sender.subflow(0).and_then(|pipe| pipe.next_timeout()).expect("a timer");
    // The second pipe was heard a moment ago.
    let flags = Flags::ACK.with(Flags::MAPPED);
    let heard = Segment { flags, ack: MSS, window: 1 << 40, ..Segment::EMPTY };
    sender.handle_segment(at - Duration::from_millis(1), 1, &heard);
    sender.handle_timeout(at);
    sender.statistics().unbound_bytes / MSS
}

/// Lets the second pipe take over the segments that the first one gave up, with one pull for each,
/// and a copy of the first pipe's first segment. Returns how many these are.
fn rebind(sender: &mut MetaSender) -> u64 {
    let before = sender.statistics().rebound_bytes;
    drain(sender, Time::from_secs(5));
    let rebound = (sender.statistics().rebound_bytes - before) / MSS;
    assert_eq!(rebound, sender.statistics().unbound_bytes / MSS + 1);
    rebound
}

/// Nanoseconds per unit that `work` counts: the least of `runs` runs, each on a fresh sender.
fn cost(setup: impl Fn() -> MetaSender, work: impl Fn(&mut MetaSender) -> u64, runs: u32) -> f64 {
    let once = || {
        let mut sender = setup();
        #[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
        let begun = Instant::now();
        let count = work(&mut sender);
        begun.elapsed().as_nanos() as f64 / count.max(1) as f64
    };
    (0..runs).map(|_| once()).fold(f64::INFINITY, f64::min)
}

fn unbound(outstanding: u64) -> MetaSender {
    let mut sender = roomy(outstanding);
    unbind(&mut sender);
    sender
}

fn main() {
    type Work = (&'static str, fn(u64) -> MetaSender, fn(&mut MetaSender) -> u64);
    let works: [Work; 3] = [
        ("pull", full, |sender| pull(sender, 0)),
        ("unbind", roomy, unbind),
        ("rebind", unbound, rebind),
    ];
    let mut criterion = Criterion::default()
        .sample_size(10)
        .measurement_time(Duration::from_secs(1))
        .warm_up_time(Duration::from_millis(200))
        .configure_from_args();
    for (name, setup, work) in works {
        for size in SIZES {
            criterion.bench_function(&format!("{name}/{size}"), |bencher| {
                bencher.iter_batched_ref(|| setup(size), work, BatchSize::PerIteration);
            });
        }
    }
    criterion.final_summary();
    println!(
        "nanoseconds of one, and over that at {} segments; the logarithm's: 1.00, 1.67, 2.33",
        SIZES[0]
    );
    for (name, setup, work) in works {
        let costs = SIZES.map(|size| cost(|| setup(size), work, 20));
        let ratios = costs.map(|cost| cost / costs[0]);
        println!("{name:8} {costs:8.0?} {ratios:6.2?}");
    }
}
