//! δ-completeness: eq. 4 over one path and over several, and which symbols count as in flight.

use super::*;
use crate::analysis::fountain::{decoding_failure, extra_packets, window_under_loss};

/// One path that loses a share `p` and admits a window of packets.
fn lossy(id: u32, window: u64, p: f64) -> PathView {
    let mut path = path(id, window, 100);
    path.loss.mean = p;
    path
}

/// A closed block of which `symbols` by path are in flight.
fn flying(sources: u16, received: u16, symbols: &[u16]) -> BlockView {
    let mut block = BlockView { received, ..closed(sources) };
    block.in_flight_on[..symbols.len()].copy_from_slice(symbols);
    block.in_flight = symbols.iter().sum();
    block
}

/// P(fewer than `needed` of the symbols arrive), computed symbol by symbol.
fn naive(needed: u16, symbols: &[(u16, f64)]) -> f64 {
    let mut chance = vec![1.0];
    for (count, p) in symbols {
        for _ in 0..*count {
            let at = |i: usize| chance.get(i).copied().unwrap_or(0.0);
            chance = (0..=chance.len())
                .map(|i| at(i) * p + if i > 0 { at(i - 1) * (1.0 - p) } else { 0.0 })
                .collect();
        }
    }
    chance.iter().take(usize::from(needed)).sum()
}

#[test]
fn a_block_on_one_path_is_sent_until_eq_4_says_so() {
    let complete = policy("delta-complete");
    for p in [0.01, 0.02, 0.05, 0.1] {
        // The mean window of a TCP at this loss, for which the paper's numbers hold. The block is
        // larger.
        let window = window_under_loss(p).round() as u32;
        let paths = [lossy(0, window.into(), p)];
        let extra = extra_packets(window, p, 0.05, 99) as u16;
        assert_eq!(extra, if p < 0.1 { 1 } else { 2 });
        let window = window as u16;
        let more = |sent: u16| {
            let block = flying(40, 40 - window, &[window + sent]);
            complete.still_needed(&block, &NOWHERE, &view(&paths, p, 0.0))
        };
        // All packets in flight are at risk, even if they exceed the window.
        assert_eq!(more(0), extra, "{p}");
        assert_eq!(more(extra), 0, "{p}");
        assert!(decoding_failure(window.into(), extra.into(), p) <= 0.05);
    }
}

#[test]
fn only_a_window_of_what_is_to_be_sent_is_at_risk() {
    let complete = policy("delta-complete");
    let paths = [lossy(0, 10, 0.1)];
    let view = view(&paths, 0.1, 0.0);
    // Of 100 symbols still to be sent, the fate of 90 is known before the last ten have left.
    let window = extra_packets(10, 0.1, 0.05, 99) as u16;
    let whole = extra_packets(100, 0.1, 0.05, 99) as u16;
    assert!(window <= 3 && whole >= 12, "{window} {whole}");
    let mut large = policy("delta-complete:block=140000");
    assert_eq!(large.next_block(&view).sources, 112);
    assert_eq!(large.proactive(&closed(100), &view), window);
    // A block of five packets needs extra packets for these five only.
    let five = extra_packets(5, 0.1, 0.05, 99) as u16;
    assert_eq!(complete.still_needed(&closed(5), &NOWHERE, &view), 5 + five);
    // Symbols sent in a larger window may all be lost.
    let before = complete.still_needed(&flying(100, 0, &[100]), &NOWHERE, &view);
    assert!(before > window, "{before}");
}

#[test]
fn extra_packets_may_be_fixed() {
    let paths = [lossy(0, 50, 0.3)];
    let view = view(&paths, 0.3, 0.0);
    for append in [0, 1, 7] {
        let mut fixed = policy(&format!("delta-complete:append={append}"));
        assert_eq!(fixed.proactive(&flying(20, 0, &[19]), &view), append);
        assert_eq!(fixed.still_needed(&flying(20, 3, &[15]), &NOWHERE, &view), 2 + append);
        let mut hypothetical = NOWHERE;
        hypothetical[0] = 2;
        assert_eq!(fixed.still_needed(&flying(20, 3, &[15]), &hypothetical, &view), append);
        assert_eq!(fixed.still_needed(&flying(20, 20, &[]), &NOWHERE, &view), 0);
    }
}

#[test]
fn extra_packets_hold_several_symbols_where_they_share_one() {
    let paths = [lossy(0, 50, 0.05)];
    let view = view(&paths, 0.05, 0.0);
    let together = policy("delta-complete:symbol=300,together=4");
    let whole = policy("delta-complete");
    // 40 symbols are ten packets, and an extra packet is four symbols.
    let packets = whole.still_needed(&closed(10), &NOWHERE, &view) - 10;
    assert_eq!(together.still_needed(&closed(40), &NOWHERE, &view), 40 + 4 * packets);
    let fixed = policy("delta-complete:symbol=300,together=4,append=2");
    assert_eq!(fixed.still_needed(&closed(40), &NOWHERE, &view), 48);
}

#[test]
fn blocks_are_of_bytes_and_leave_room_for_repairs() {
    let paths = [lossy(0, 50, 0.05)];
    let narrow = view(&paths, 0.05, 0.0);
    let wide = RedundancyView { max_symbol_size: 8000, max_symbols: 60_000, ..narrow };
    let shape = |spec: &str, view: &RedundancyView<'_>| {
        let BlockShape { sources, symbol_size } = policy(spec).next_block(view);
        (sources, symbol_size)
    };
    assert_eq!(shape("delta-complete", &wide), (24, 1400));
    assert_eq!(shape("delta-complete", &narrow), (27, 1250));
    assert_eq!(shape("delta-complete:symbol=64", &narrow), (127, 64));
    assert_eq!(shape("delta-complete:symbol=64", &wide), (512, 64));
    assert_eq!(shape("delta-complete:block=100", &narrow), (1, 1250));
}

#[test]
fn a_block_that_nothing_can_complete_asks_for_a_bounded_number() {
    for mean in [1.0, f64::NAN, f64::INFINITY, -1.0] {
        let mut paths = [lossy(0, 0, mean), lossy(1, 1 << 40, mean)];
        paths[0].packet_size = 0;
        for spec in ["delta-complete", "delta-complete:append=1000", "delta-complete:together=64"] {
            let needed = policy(spec).still_needed(&closed(9), &NOWHERE, &view(&paths, mean, 0.0));
            assert!((9..=255).contains(&needed), "{spec} {mean}: {needed}");
            let nowhere = policy(spec).still_needed(&closed(9), &NOWHERE, &view(&[], mean, 0.0));
            assert!((9..=255).contains(&nowhere), "{spec} without a path: {nowhere}");
        }
    }
}

proptest! {
    /// The shortcuts change no result: the number of symbols suffices, and one less does not.
    #[test]
    fn as_many_symbols_as_the_distribution_asks_for(
        losses in proptest::collection::vec(0.0..0.6_f64, 1..8),
        counts in proptest::collection::vec(0..40_u16, 8),
        sources in 1..60_u16,
        failure in 0.001..0.9_f64,
    ) {
        let paths: Vec<PathView> =
            losses.iter().zip(0..).map(|(p, id)| lossy(id, 2000, *p)).collect();
        let view = RedundancyView { max_symbols: 60_000, ..view(&paths, 0.0, 0.0) };
        let complete = policy(&format!("delta-complete:failure={failure}"));
        let block = flying(sources, 0, &counts[..losses.len()]);
        let more = complete.still_needed(&block, &NOWHERE, &view);
        let best = losses.iter().copied().fold(1.0, f64::min);
        let all = |more: u16| {
            let sent: Vec<(u16, f64)> =
                counts.iter().copied().zip(losses.iter().copied()).chain([(more, best)]).collect();
            naive(sources, &sent)
        };
        prop_assert_eq!(complete.needs_more(&block, &NOWHERE, &view), more > 0);
        prop_assert!(all(more) <= failure + 1e-9, "{more} leave {}", all(more));
        if more > 0 {
            prop_assert!(all(more - 1) >= failure - 1e-9, "{} would do", more - 1);
        }
    }
}

#[test]
fn extra_packets_are_a_number_or_auto() {
    for spec in ["auto", "0", "1000"] {
        policy(&format!("delta-complete:append={spec}"));
    }
    for spec in ["x", "1001", "-1"] {
        let error = build(&format!("delta-complete:append={spec}").parse().unwrap()).unwrap_err();
        let told = error.to_string();
        assert!(told.contains("auto or a whole number from 0 to 1000"), "{told}");
    }
}
