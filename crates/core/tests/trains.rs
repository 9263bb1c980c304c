//! Tests that a train equals the same number of single packets, byte for byte.

use anabranch_core::path::received::Ecn;
use anabranch_core::profiles::Profile;
use anabranch_core::testing::{Network, Pair, Sent};
use anabranch_policy::Axis;
use anabranch_types::Time;
use core::time::Duration;
use std::hash::{DefaultHasher, Hash, Hasher};

/// One link in each direction of each path, with a rate, a delay, a buffer and a loss rate.
struct Links {
    /// Transmission time of a full packet.
    spacing: Duration,
    /// One packet of this many is lost.
    loss: u64,
    /// For each side and path, when the link becomes free, and how many datagrams were sent.
    links: [[(Time, u64); 2]; 2],
    /// For each datagram, a hash of its send time, sender, path, ECN mark and bytes.
    sent: Vec<u64>,
}

impl Network for Links {
    fn carry(&mut self, sent: &Sent<'_>) -> Option<(Time, Ecn)> {
        let mut hash = DefaultHasher::new();
        (sent.now, sent.side, sent.path, sent.ecn.bits(), sent.payload).hash(&mut hash);
        self.sent.push(hash.finish());
        let (free_at, count) = &mut self.links[sent.side][sent.path as usize];
        *count += 1;
        let starts = sent.now.max(*free_at);
        let queue = starts.since(sent.now);
        if count.is_multiple_of(self.loss) || queue > Duration::from_millis(5) {
            return None;
        }
        // Mark packets that meet a long queue, because some profiles react only to marks.
        let ecn = if queue > Duration::from_millis(2) { Ecn::Ce } else { sent.ecn };
        let share = sent.payload.len() as f64 / 1452.0;
        *free_at = starts + self.spacing.mul_f64(share);
        Some((*free_at + Duration::from_millis(2), ecn))
    }
}

/// Returns the datagrams of a run in which both sides write now and then. Trains have at most
/// `train` datagrams.
fn run(profile: &Profile, paths: u32, spacing: Duration, loss: u64, train: usize) -> Vec<u64> {
    let links = Links { spacing, loss, links: Default::default(), sent: Vec::new() };
    let mut pair = Pair::new(profile, paths, links);
    pair.train = train;
    for round in 0..800_u64 {
        pair.ends[0].unwritten += (round % 7) * 3_000 + if round % 50 == 0 { 800_000 } else { 0 };
        pair.ends[1].unwritten += round % 3 * 100;
        pair.round(Duration::from_micros(250));
    }
    assert!(pair.ends[1].read > 100_000, "only {} bytes", pair.ends[1].read);
    pair.network.sent
}

fn profile(name: &str, redundancy: Option<&str>) -> Profile {
    let mut profile = Profile::named(name).unwrap();
    if let Some(redundancy) = redundancy {
        profile.set(Axis::Redundancy, redundancy).unwrap();
    }
    profile
}

#[test]
fn trains_are_what_single_packets_would_have_been() {
    let fast = Duration::from_micros(2);
    let slow = Duration::from_micros(100);
    let profiles = [
        profile("anabranch", None),
        profile("anabranch", Some("fixed:share=0.1")),
        profile("anabranch", Some("fixed:share=0.1,symbol=300,together=4")),
        profile("uncoded", None),
        profile("mplot", None),
    ];
    for profile in profiles {
        for (paths, spacing, loss) in [(1, fast, u64::MAX), (1, fast, 40), (2, slow, 40)] {
            let single = run(&profile, paths, spacing, loss, 1);
            for most in [2, 44] {
                let trains = run(&profile, paths, spacing, loss, most);
                let same = single.iter().zip(&trains).take_while(|(a, b)| a == b).count();
                let name = &profile.name;
                assert_eq!(
                    (same, trains.len()),
                    (single.len(), single.len()),
                    "{name}, {paths} paths, {spacing:?}, one in {loss} lost, at most {most}"
                );
            }
        }
    }
}
