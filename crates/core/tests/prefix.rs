//! Tests that coding neither delays nor reorders data. The first symbol of a block is sent at once,
//! and the application reads a prefix of the written data despite losses and reordering.

use anabranch_core::endpoint::EndpointConfig;
use anabranch_core::path::received::Ecn;
use anabranch_core::profiles::Profile;
use anabranch_core::testing::{Network, Pair, Sent};
use anabranch_policy::Axis;
use anabranch_types::{Rng, Time};
use core::time::Duration;
use proptest::prelude::*;

const DELAY: Duration = Duration::from_millis(10);
const STEP: Duration = Duration::from_millis(1);
/// Time by which the handshake has ended.
const CONNECTED: Time = Time::from_millis(500);

/// A profile's name, its code and its redundancy.
type Coding = (&'static str, &'static str, &'static str);

const CODINGS: [Coding; 8] = [
    ("fmtcp", "raptorq", "delta-complete"),
    ("fmtcp", "raptorq", "delta-complete:block=262144,append=2"),
    ("fmtcp", "lt", "delta-complete"),
    ("fmtcp", "random-linear", "delta-complete:block=4096"),
    ("anabranch", "reed-solomon", "budget"),
    ("anabranch", "raptorq", "budget"),
    ("anabranch", "sliding-window", "sliding:every=5,reach=64,sources=64"),
    ("mplot", "reed-solomon", "mean-sigma"),
];

fn pair<N: Network>(coding: Coding, whole_blocks: bool, paths: u32, network: N) -> Pair<N> {
    let (name, code, redundancy) = coding;
    let mut profile = Profile::named(name).unwrap();
    profile.set(Axis::Code, code).unwrap();
    profile.set(Axis::Redundancy, redundancy).unwrap();
    let mut config = EndpointConfig::new(profile);
    config.transport.whole_blocks = whole_blocks;
    Pair::with(config, paths, network)
}

/// Data that fits into one symbol arrives after the path's delay, even if it fills only a small
/// part of a block. More data is paced.
#[test]
fn nothing_waits_for_its_block_to_fill() {
    for coding in CODINGS {
        for bytes in [1, 100, 1000, 5000, 30_000] {
            let perfect = |sent: &Sent<'_>| Some((sent.now + DELAY, sent.ecn));
            let mut pair = pair(coding, false, 2, perfect);
            for _ in 0..300 {
                pair.round(STEP);
            }
            pair.ends[0].unwritten = bytes;
            let written = pair.now;
            while pair.ends[1].read < bytes.min(1000) {
                pair.round(STEP);
                let late = pair.now.since(written).saturating_sub(DELAY);
                let read = pair.ends[1].read;
                assert!(late <= 2 * STEP, "{coding:?}: {read} of {bytes} bytes read {late:?} late");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// At each step the data read so far is a prefix of the written data, which the pair checks. At
    /// the end all data has been read.
    #[test]
    fn a_reader_has_a_prefix_of_what_was_written(
        coding in prop::sample::select(CODINGS.as_slice()),
        whole_blocks: bool,
        (loss, mix) in (0.0..0.4_f64, 0..60_u64),
        paths in 1..4_u32,
        bytes in 1..60_000_u64,
        seed: u64,
    ) {
        let mut rng = Rng::new(seed);
        let network = move |sent: &Sent<'_>| -> Option<(Time, Ecn)> {
            let wait = Duration::from_millis(rng.below(mix + 1));
            // Handshakes are tested elsewhere.
            let is_lost = sent.now >= CONNECTED && rng.chance(loss);
            (!is_lost).then(|| (sent.now + DELAY + wait, sent.ecn))
        };
        let mut pair = pair(coding, whole_blocks, paths, network);
        while pair.now < CONNECTED {
            pair.round(STEP);
        }
        pair.ends[0].unwritten = bytes;
        while pair.ends[1].read < bytes {
            pair.round(STEP);
            prop_assert!(pair.ends[1].read <= pair.ends[0].written);
            prop_assert!(pair.now < Time::from_secs(300), "{} bytes in 300 s", pair.ends[1].read);
        }
    }
}
