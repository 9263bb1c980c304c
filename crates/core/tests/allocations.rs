//! Tests that sending and receiving packets allocates nothing in steady state.

mod allocator;

use allocator::COUNT;
use anabranch_core::path::received::Ecn;
use anabranch_core::profiles::Profile;
use anabranch_core::testing::{Network, Pair, Sent, Tally};
use anabranch_policy::Axis;
use anabranch_types::Time;
use core::time::Duration;

const PATHS: usize = 2;
const TICK: Duration = Duration::from_micros(400);
/// Properties of each direction of each path: 12 Mb/s, 10 ms of delay, and a buffer of 100 packets.
const SPACING: Duration = Duration::from_micros(800);
const DELAY: Duration = Duration::from_millis(10);
const BUFFER: u128 = 100;

/// One link in each direction of each path.
struct Links {
    /// For each side and path, when the link becomes free, and how many datagrams were sent.
    links: [[(Time, u64); PATHS]; 2],
    /// One packet of this many is lost.
    loss: u64,
}

impl Network for Links {
    fn carry(&mut self, sent: &Sent<'_>) -> Option<(Time, Ecn)> {
        let (free_at, count) = &mut self.links[sent.side][sent.path as usize];
        *count += 1;
        let starts = sent.now.max(*free_at);
        let queued = starts.since(sent.now).as_micros() / SPACING.as_micros();
        if count.is_multiple_of(self.loss) || queued >= BUFFER {
            return None;
        }
        *free_at = starts + SPACING;
        // Packets are marked if more than a third of the buffer is full, because some profiles
        // react only to marks.
        let ecn = if queued > BUFFER / 3 { Ecn::Ce } else { sent.ecn };
        Some((*free_at + DELAY, ecn))
    }
}

/// Counts the allocations of a profile in ten seconds after a warm-up.
fn steady(profile: &Profile, loss: u64) -> Tally {
    let name = &profile.name;
    let links = Links { links: Default::default(), loss };
    let mut pair = Pair::new(profile, PATHS as u32, links);
    pair.ends[0].unwritten = u64::MAX;
    pair.meter = || COUNT.get();
    let mut run = |seconds: u64| {
        pair.tally = Tally::default();
        let (read, end) = (pair.ends[1].read, pair.now + Duration::from_secs(seconds));
        while pair.now < end {
            pair.round(TICK);
        }
        (pair.tally, pair.ends[1].read - read)
    };
    run(30);
    let (tally, read) = run(10);
    println!("{name}, one in {loss} lost: {read} bytes, {tally:?}");
    assert!(tally.packets > 5_000, "{tally:?}");
    tally
}

/// Least number of packets per allocation. Rings and pools still grow when they reach a new
/// maximum.
const RARE: u64 = 1000;

#[test]
fn packets_allocate_nothing() {
    for name in ["anabranch", "uncoded"] {
        for loss in [u64::MAX, 50] {
            let tally = steady(&Profile::named(name).unwrap(), loss);
            let all = tally.sending + tally.receiving + tally.timeouts + tally.application;
            assert!(all <= tally.packets / RARE, "{name}, one in {loss} lost: {tally:?}");
        }
    }
}

#[test]
fn packets_of_several_symbols_allocate_nothing() {
    let mut profile = Profile::named("anabranch").unwrap();
    profile.set(Axis::Redundancy, "fixed:share=0.1,symbol=300,together=4").unwrap();
    let tally = steady(&profile, 50);
    let all = tally.sending + tally.receiving + tally.timeouts + tally.application;
    assert!(all <= tally.packets / RARE, "{tally:?}");
}

/// The block estimator of `mplot` allocates a record for each block. Packets do not allocate with
/// this profile either.
#[test]
fn blocks_may_allocate_but_packets_do_not() {
    for loss in [u64::MAX, 50] {
        let tally = steady(&Profile::named("mplot").unwrap(), loss);
        assert!(tally.receiving <= tally.packets / 50, "{tally:?}");
        let rest = tally.sending + tally.timeouts + tally.application;
        assert!(rest <= tally.packets / RARE, "one in {loss} lost: {tally:?}");
    }
}
