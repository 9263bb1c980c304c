//! The core's work per packet, without sockets and cryptography: two endpoints in virtual time, one
//! stream, 5 % repairs. The benchmark runs under `valgrind --tool=callgrind`, which counts
//! instructions. Unlike time, this count does not depend on other processes.

use anabranch_core::path::received::Ecn;
use anabranch_core::profiles::Profile;
use anabranch_core::testing::{Network, Pair, Sent};
use anabranch_policy::Axis;
use anabranch_types::Time;
use core::time::Duration;

/// Virtual time between rounds, and the most datagrams in a round. A round carries at most one
/// batch, like one system call.
const ROUND: Duration = Duration::from_micros(80);
const BATCH: usize = 44;
/// Packets sent before counting starts, and packets counted.
const WARM_UP: u64 = 20_000;
const COUNTED: u64 = 100_000;

/// A network that delivers the datagrams of one round in the next.
#[derive(Default)]
struct Batches {
    /// When each side sent last, and how many datagrams it sent then.
    sent: [(Time, usize); 2],
}

impl Network for Batches {
    fn carry(&mut self, sent: &Sent<'_>) -> Option<(Time, Ecn)> {
        let (round, count) = &mut self.sent[sent.side];
        *count = if *round == sent.now { *count + 1 } else { 1 };
        *round = sent.now;
        Some((sent.now + ROUND, sent.ecn))
    }

    fn room(&self, now: Time, side: usize) -> usize {
        let (round, count) = self.sent[side];
        BATCH - if round == now { count } else { 0 }
    }
}

fn run(pair: &mut Pair<Batches>, packets: u64) {
    let end = pair.ends[0].packets + packets;
    while pair.ends[0].packets < end {
        pair.round(ROUND);
    }
}

fn main() {
    let mut profile = Profile::named("anabranch").unwrap();
    profile.set(Axis::Redundancy, "fixed:share=0.05").unwrap();
    let mut pair = Pair::new(&profile, 1, Batches::default());
    pair.ends[0].unwritten = u64::MAX;
    pair.train = BATCH;
    run(&mut pair, WARM_UP);
    let figures = |pair: &Pair<Batches>| {
        (pair.ends[0].packets, pair.ends[1].packets, pair.ends[1].read, pair.now)
    };
    let before = figures(&pair);
    run(&mut pair, COUNTED);
    let after = figures(&pair);
    println!(
        "{} packets of data and {} others in {} rounds: {} MB read",
        after.0 - before.0,
        after.1 - before.1,
        after.3.since(before.3).as_micros() / ROUND.as_micros(),
        (after.2 - before.2) / 1_000_000,
    );
}
