//! Tests of short symbols that share packets: fewer datagrams are sent, all symbols of a packet
//! have the same fate, and no data is lost.

use anabranch_core::connection::ConnectionStats;
use anabranch_core::path::received::Ecn;
use anabranch_core::profiles::Profile;
use anabranch_core::testing::{Network, Pair, Sent};
use anabranch_policy::view::TrafficClass;
use anabranch_policy::{Axis, code};
use anabranch_types::{Rng, Time};
use core::time::Duration;
use proptest::prelude::*;
use std::collections::BTreeSet;

const DELAY: Duration = Duration::from_millis(10);

fn perfect(sent: &Sent<'_>) -> Option<(Time, Ecn)> {
    Some((sent.now + DELAY, sent.ecn))
}

fn profile(axes: &[(Axis, &str)]) -> Profile {
    let mut profile = Profile::named("anabranch").unwrap();
    for (axis, choice) in axes {
        profile.set(*axis, choice).unwrap();
    }
    profile
}

/// Sends `bytes` bytes and waits until the sender knows that all of them have arrived.
fn transfer<N: Network>(pair: &mut Pair<N>, bytes: u64) -> ConnectionStats {
    pair.ends[0].unwritten += bytes;
    let end = pair.ends[1].read + bytes;
    let limit = pair.now + Duration::from_secs(120);
    while pair.ends[1].read < end || !pair.ends[0].connection().unwrap().is_drained() {
        pair.round(Duration::from_millis(1));
        assert!(pair.now < limit, "{} bytes arrived", pair.ends[1].read);
    }
    pair.ends[0].connection().unwrap().stats()
}

/// Returns the number of data packets and the number of symbols in them.
fn packets_for(redundancy: &str, bytes: u64) -> (u64, u64) {
    let mut pair = Pair::new(&profile(&[(Axis::Redundancy, redundancy)]), 1, perfect);
    let stats = transfer(&mut pair, bytes);
    assert!(stats.paths.iter().all(|path| path.counters.lost_packets == 0));
    assert!(stats.paths.iter().all(|path| path.bytes_in_flight == 0));
    (stats.paths[0].counters.acked_packets, stats.sent.sources + stats.sent.repairs)
}

#[test]
fn short_symbols_that_share_packets_spare_datagrams() {
    let (alone, symbols) = packets_for("fixed:share=0.1,sources=20,symbol=200", 200_000);
    assert!(symbols > 1000 && alone > symbols, "{alone} packets of {symbols} symbols");
    // Even the smallest packet size holds six symbols with their frame headers.
    let (shared, symbols) =
        packets_for("fixed:share=0.1,sources=20,symbol=200,together=5", 200_000);
    assert!(shared * 9 < symbols * 2, "{shared} packets of {symbols} symbols");
    assert!(shared * 4 < alone, "{shared} packets instead of {alone}");
}

#[test]
fn the_last_symbol_shares_a_packet_with_its_repair() {
    let sent = |together: u16| {
        let redundancy = format!("fixed:share=1,together={together}");
        let mut pair = Pair::new(&profile(&[(Axis::Redundancy, &redundancy)]), 1, perfect);
        transfer(&mut pair, 5_000);
        // Leave time to send everything else, such as MTU probes and reports.
        (0..1000).for_each(|_| pair.round(Duration::from_millis(1)));
        let before = pair.ends[0].connection().unwrap().stats();
        let after = transfer(&mut pair, 100);
        assert_eq!(after.sent.repairs, before.sent.repairs + 1);
        after.paths[0].counters.acked_packets - before.paths[0].counters.acked_packets
    };
    assert_eq!((sent(1), sent(2)), (2, 1));
}

/// Blocks are full long before a packet is, so their symbols share a packet with symbols of the
/// next blocks.
#[test]
fn symbols_of_several_blocks_share_packets() {
    let (packets, symbols) = packets_for("fixed:share=0.5,sources=2,symbol=150,together=6", 60_000);
    assert!(packets * 5 < symbols, "{packets} packets of {symbols} symbols");
}

/// No packet may hold more symbols than allowed, even if the symbols are very short, because the
/// peer would close the connection.
#[test]
fn many_short_symbols_keep_to_what_a_packet_may_hold() {
    for share in ["0", "1", "8"] {
        let redundancy = format!("fixed:share={share},sources=8,symbol=64,together=64");
        let mut pair = Pair::new(&profile(&[(Axis::Redundancy, &redundancy)]), 1, perfect);
        let stats = transfer(&mut pair, 20_000);
        let (packets, symbols) =
            (stats.paths[0].counters.sent_packets, stats.sent.sources + stats.sent.repairs);
        assert!(symbols > packets, "share {share}: {packets} packets of {symbols} symbols");
    }
}

/// No symbol and no packet may hold more frames than allowed, even if the application's messages
/// are very short, because the peer would close the connection.
#[test]
fn many_short_messages_keep_to_what_symbols_and_packets_may_hold() {
    const MESSAGES: u16 = 3000;
    for shape in ["", ",symbol=200", ",symbol=200,together=8", ",symbol=64,together=64"] {
        let redundancy = format!("fixed:share=0.2,sources=20{shape}");
        let mut pair = Pair::new(&profile(&[(Axis::Redundancy, &redundancy)]), 1, perfect);
        (0..20).for_each(|_| pair.round(Duration::from_millis(10)));
        let (mut sent, mut arrived) = (0_u16, BTreeSet::new());
        for _ in 0..500 {
            let connection = pair.ends[0].connection().expect("the sender's end is open");
            while sent < MESSAGES
                && connection.send_datagram(&sent.to_be_bytes(), TrafficClass::Bulk).is_ok()
            {
                sent += 1;
            }
            pair.round(Duration::from_millis(1));
            let connection = pair.ends[1].connection().expect("the receiver's end is open");
            let mut message = [0; 2];
            while connection.recv_datagram(&mut message) == Some(2) {
                arrived.insert(u16::from_be_bytes(message));
            }
        }
        assert_eq!(arrived.len(), usize::from(MESSAGES), "{shape}");
    }
}

/// One datagram with five symbols is lost. Five symbols are sent again, and one packet counts as
/// lost.
#[test]
fn all_symbols_of_a_lost_packet_are_lost() {
    let axes = [
        (Axis::Redundancy, "fixed:share=0,symbol=200,together=5"),
        (Axis::Recovery, "resend"),
        (Axis::Code, "none"),
    ];
    let mut full = 0;
    let network = |sent: &Sent<'_>| {
        let is_full = sent.side == 0 && sent.payload.len() > 1000;
        full += u64::from(is_full);
        (!(is_full && full == 40)).then(|| (sent.now + DELAY, sent.ecn))
    };
    let mut pair = Pair::new(&profile(&axes), 1, network);
    let stats = transfer(&mut pair, 100_000);
    assert_eq!(stats.paths[0].counters.lost_packets, 1);
    assert_eq!(stats.sent.resends, 5);
    assert_eq!(stats.paths[0].bytes_in_flight, 0);
}

/// A path fails while packets of many symbols are in flight. All these symbols are sent on the
/// other path.
#[test]
fn symbols_of_a_dead_path_are_sent_on_another() {
    for recovery in ["resend", "resend:timeout=copy,cut=unbind", "fresh-repairs"] {
        let axes = [
            (Axis::Redundancy, "fixed:share=0.1,symbol=150,together=8"),
            (Axis::Recovery, recovery),
        ];
        let dies = Time::from_millis(120);
        let network = |sent: &Sent<'_>| {
            (sent.path == 0 || sent.now < dies).then(|| (sent.now + DELAY, sent.ecn))
        };
        let mut pair = Pair::new(&profile(&axes), 2, network);
        let stats = transfer(&mut pair, 600_000);
        assert!(stats.paths[1].counters.acked_packets > 0, "{recovery}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// For all codes, sizes and losses, every byte arrives (which the pair checks), and no packet
    /// counts as in flight at the end.
    #[test]
    fn nothing_is_lost_however_symbols_share_packets(
        code in 0..code::TABLE.len(),
        symbol in 64_u16..1500,
        together in 1_u16..12,
        sources in 1_u16..40,
        slides in any::<bool>(),
        loss in 0.0..0.4,
        bytes in 1_u64..120_000,
        seed in any::<u64>(),
    ) {
        let code = code::TABLE[code].0.name;
        let shape = format!("sources={sources},symbol={symbol},together={together}");
        let redundancy = match (code, slides) {
            ("sliding-window", true) => format!("sliding:every=3,{shape}"),
            _ => format!("fixed:share=0.3,{shape}"),
        };
        let mut rng = Rng::new(seed);
        let network = |sent: &Sent<'_>| {
            let lost = sent.now > Time::from_millis(50) && rng.chance(loss);
            let late = Duration::from_micros(rng.below(3_000));
            (!lost).then(|| (sent.now + DELAY + late, sent.ecn))
        };
        let choice = profile(&[(Axis::Code, code), (Axis::Redundancy, &redundancy)]);
        let mut pair = Pair::new(&choice, 2, network);
        let stats = transfer(&mut pair, bytes);
        let sent: u64 = stats.paths.iter().map(|path| path.counters.sent_packets).sum();
        let symbols = stats.sent.sources + stats.sent.repairs + stats.sent.resends;
        prop_assert!(stats.sent.sources > 0 && symbols <= sent * u64::from(together));
    }
}
