//! Losses that chance explains are distinguished from others.

use core::time::Duration;

use super::super::excess::Excess;
use super::super::random::Random;
use super::ack;
use crate::congestion::AckEvent;

/// `packets` packets from the time `from`, ms, one each millisecond, of which three in ten are lost while none of
/// ours is queued.
fn three_of_ten(random: &mut Random, from: f64, packets: u32, is_short: bool) {
    for packet in 0..packets {
        let mut event = ack(from + f64::from(packet), 0.0);
        if packet % 10 > 6 {
            event.largest_lost_sent = event.largest_lost_sent - Duration::from_millis(3);
            event.lost_packets = 1;
            random.on_lost(&event);
            event.acked_packets = 0;
        }
        random.on_acked(&event, true, is_short);
        if packet % 40 == 0 {
            random.end_round();
        }
    }
}

#[test]
fn little_random_loss_is_believed_in_unless_short_delays_show_it() {
    let mut random = Random::default();
    three_of_ten(&mut random, 1000.0, 2000, false);
    assert!((0.01..0.025).contains(&random.share()), "{}", random.share());
    random.restart(0.3);
    assert!(random.share() < 0.025, "{}", random.share());

    let mut random = Random::default();
    three_of_ten(&mut random, 1000.0, 2000, true);
    assert!((random.share() - 0.3).abs() < 0.02, "{}", random.share());
    // For some seconds, longer delays do not change the estimate.
    three_of_ten(&mut random, 3000.0, 3900, false);
    assert!((random.share() - 0.3).abs() < 0.02, "{}", random.share());
    three_of_ten(&mut random, 6900.0, 300, false);
    assert!(random.share() < 0.025, "{}", random.share());
}

/// First every `known`th packet is lost at random, which gives the estimate. Then 20,000 packets meet a long queue, and
/// every `apart`th of them is lost. Returns how often these losses are found to be too many.
fn times_too_many(known: u32, apart: u32) -> u32 {
    let (mut excess, mut random) = (Excess::default(), Random::default());
    let mut seen = 0;
    for packet in 0..21_000 {
        let mut event = ack(1000.0 + f64::from(packet), 0.0);
        let is_clear = packet < 1000;
        if packet % if is_clear { known } else { apart } == 5 {
            event.largest_lost_sent = event.largest_acked_sent - Duration::from_millis(3);
            event.lost_packets = 1;
            random.on_lost(&event);
            seen += u32::from(excess.on_lost(&event, &random, |_| false));
            event.acked_packets = 0;
        }
        if is_clear {
            random.on_acked(&event, true, true);
        }
        excess.on_acked(&event, !is_clear, &random);
    }
    seen
}

/// One or two more of the 40 packets of a round trip are lost, which no single round trip shows.
#[test]
fn losses_beyond_random_ones_add_up() {
    for (known, more) in [(100, 40), (33, 18), (10, 6)] {
        assert_eq!(times_too_many(known, known), 0, "every {known}th");
        let seen = times_too_many(known, more);
        assert!((5..=60).contains(&seen), "{seen} times if every {more}th is lost for {known}th");
    }
}

/// `packets` packets leave while none of ours is queued, and at each number in `runs` ten in a row are lost. Forty
/// more meet the longest delays, and eight of them are lost in a row. Returns whether these eight are too many.
fn eight_are_too_many(packets: u32, runs: &[u32], is_short: bool) -> bool {
    let (mut excess, mut random) = (Excess::default(), Random::default());
    for packet in 0..packets + 40 {
        let mut event = ack(1000.0 + f64::from(packet), 0.0);
        let is_clear = packet < packets;
        if is_clear {
            random.on_acked(&event, true, is_short);
        }
        if runs.contains(&packet) {
            event.lost_packets = 10;
            event.largest_lost_sent = event.largest_acked_sent;
            random.on_lost(&event);
        }
        excess.on_acked(&event, !is_clear, &random);
        if packet % 40 == 0 {
            random.end_round();
        }
    }
    let last = ack(1000.0 + f64::from(packets + 39), 0.0);
    excess.on_lost(&AckEvent { lost_packets: 8, ..last }, &random, |_| false)
}

/// A link that loses ten packets in a row, once in two thousand or so.
#[test]
fn rare_runs_of_losses_are_chance_once_some_were_seen() {
    let runs = [1000, 3000, 4500, 6200];
    assert!(eight_are_too_many(8000, &[], true), "no run was seen");
    assert!(!eight_are_too_many(8000, &runs, true), "the last run was 1800 packets ago");
    assert!(eight_are_too_many(40_000, &runs, true), "the last run was long ago");
    // If no delay is short, the queue may have dropped the packets, so few of the losses count.
    assert!(eight_are_too_many(8000, &[1000, 1001, 1002, 1003], false));
}
