//! Coupled controllers, compared with values computed by hand from their formulas.

use anabranch_types::PathId;

use super::*;
use crate::congestion::coupling::flow_share;
use crate::congestion::cubic::Cubic;
use crate::view::{InterLoss, PathState, PathView};

/// An open path with a window in packets and a round-trip time.
fn sibling(id: u32, packets: u64, millis: u64) -> PathView {
    let view = PathView::unknown(PathId(id));
    PathView { cwnd: packets * PACKET, rtt: rtt(millis), ..view }
}

/// Ends slow start at `packets`, then acknowledges `rounds` windows; returns the growth in packets.
fn growth(spec: &str, packets: u64, siblings: &[PathView], rounds: u64) -> f64 {
    let initial = 2 * packets;
    let mut control = controller(&format!("{spec}:initial={initial}"));
    control.on_ack(&loss(10, 5, 1), &[]);
    let start = control.cwnd();
    // The siblings stay as they are, so that the gain per packet is constant.
    for n in 0..rounds * packets {
        let event = AckEvent { path: Some(PathId(0)), ..ack(200 + n, 100 + n, 1) };
        control.on_ack(&event, siblings);
    }
    (control.cwnd() as f64 - start as f64) / PACKET as f64
}

#[test]
fn alone_they_are_reno() {
    let alone = [sibling(0, 20, 100)];
    for spec in ["lia", "olia", "balia"] {
        assert_eq!(growth(spec, 20, &alone, 1), 1.0, "{spec}");
    }
    // Veno's first cut leaves 32 packets of 40.
    assert_eq!((growth("mveno", 20, &alone, 1), growth("mveno", 20, &alone, 2)), (0.0, 1.0));
}

#[test]
fn lia_takes_half_each_on_two_equal_paths() {
    // α = 40·(20/.01)/(400)² = .5 per total 40 packets: .25 of Reno's 1/20.
    let paths = [sibling(0, 20, 100), sibling(1, 20, 100)];
    assert_eq!(growth("lia", 20, &paths, 4), 1.0);
    // With a slow second path: 400/(40 + 10)² = .16 per packet, .64 of Reno's 1/4.
    let paths = [sibling(0, 4, 100), sibling(1, 4, 400)];
    assert_eq!((growth("lia", 4, &paths, 1), growth("lia", 4, &paths, 2)), (0.0, 1.0));
    // By the formula, a large window on a slow path would gain 20·20000/220² = 8.3 packets; it
    // gains at most one.
    let slow = [sibling(0, 20, 1_000), sibling(1, 2, 10)];
    assert_eq!(growth("lia", 20, &slow, 1), 1.0);
}

#[test]
fn a_window_beside_other_paths_may_fall_to_one_packet() {
    let paths = [sibling(0, 2, 100), sibling(1, 50, 100)];
    for (spec, alone, beside) in [("lia", 2, 2), ("olia", 2, 1), ("balia", 2, 1), ("mveno", 2, 2)] {
        let left = |siblings: &[PathView]| {
            let mut control = controller(&format!("{spec}:initial=2"));
            control.on_ack(&loss(100, 50, 1), siblings);
            let after_loss = (control.cwnd() / PACKET, control.phase());
            control.on_timeout(&timeout(500, 1, 1));
            assert_eq!(
                (control.cwnd(), control.ssthresh() / PACKET),
                (PACKET, after_loss.0),
                "{spec}"
            );
            after_loss
        };
        assert_eq!(left(&paths[..1]), (alone, "congestion-avoidance"), "{spec}");
        assert_eq!(left(&paths), (beside, "congestion-avoidance"), "{spec}");
    }
}

#[test]
fn mveno_is_lia_that_asks_the_queue() {
    let paths = [sibling(0, 40, 100), sibling(1, 40, 100)];
    // Nine rounds of 40 packets, the round-trip time rising to `millis` in the third; then `event`.
    let after = |millis: u64, event: fn(u64, u64, u32) -> AckEvent| {
        let mut control = controller("mveno:initial=80");
        control.on_ack(&loss(10, 5, 1), &paths);
        let (mut sent, mut grown) = (11, 0.0);
        for round in 0..10 {
            let taken = if round < 2 { 100 } else { millis };
            let (packets, event) =
                if round < 9 { (40, ack as fn(_, _, _) -> _) } else { (1, event) };
            grown = control.cwnd() as f64 / PACKET as f64;
            for _ in 0..packets {
                control
                    .on_ack(&AckEvent { rtt: rtt(taken), ..event(sent + taken, sent, 1) }, &paths);
            }
            sent += taken + 1;
        }
        (grown, control.cwnd() as f64 / PACKET as f64)
    };
    // The first loss cuts from 80 to 64 packets. Then the window grows as LIA's, by 4000/800² = 1/160 for each acknowledged
    // packet: by 2.25 for 360. Of 66 packets 66·4/104 = 2.5 wait, fewer than 3: a loss leaves four fifths, a mark half.
    assert_eq!((after(104, loss), after(104, mark)), ((66.0, 52.8), (66.0, 33.0)));
    // 64·10/110 = 5.8 wait from the fourth round on: 120/160 + 240/320 = 1.5.
    assert_eq!(after(110, loss), (65.0, 32.5));
}

#[test]
fn balia_weighs_by_share_and_ratio() {
    // x/Σx = ½, a = 1: a quarter of Reno.
    let equal = [sibling(0, 20, 100), sibling(1, 20, 100)];
    assert_eq!(growth("balia", 20, &equal, 4), 1.0);
    // This path at 200 beside 600 packets/s: share ¼, a = 3: (1/16)·2·1.4 = .175 of Reno.
    let unequal = [sibling(0, 20, 100), sibling(1, 60, 100)];
    assert_eq!(growth("balia", 20, &unequal, 5), 0.0);
    assert_eq!(growth("balia", 20, &unequal, 6), 1.0);
}

/// `path` with `packets` acknowledged since its last loss.
fn lossless_for(packets: u64, path: PathView) -> PathView {
    let mut inter_loss = InterLoss::default();
    inter_loss.on_acked(packets * PACKET);
    PathView { inter_loss, ..path }
}

#[test]
fn olia_moves_growth_from_the_largest_window_to_the_best_path() {
    // Two equal paths: (½)² of Reno each, and nothing is moved.
    let equal = [sibling(0, 20, 100), sibling(1, 20, 100)].map(|path| lossless_for(500, path));
    assert_eq!(growth("olia", 20, &equal, 4), 1.0);
    // Path 1 has the largest window and path 0 loses less: (1/4)² + ½ of Reno on path 0.
    let best = [lossless_for(900, sibling(0, 20, 100)), lossless_for(100, sibling(1, 60, 100))];
    assert_eq!((growth("olia", 20, &best, 1), growth("olia", 20, &best, 2)), (0.0, 1.0));
    // The best path has the largest window: nothing is moved, and (1/4)² of Reno is left.
    let content = [lossless_for(100, sibling(0, 20, 100)), lossless_for(900, sibling(1, 60, 100))];
    assert_eq!((growth("olia", 20, &content, 15), growth("olia", 20, &content, 16)), (0.0, 1.0));
    // Path 0 has the largest window, but not the fewest losses: (2/3)² − ½ of Reno is a decrease.
    let widest = [lossless_for(100, sibling(0, 20, 100)), lossless_for(900, sibling(1, 10, 100))];
    assert_eq!((growth("olia", 20, &widest, 17), growth("olia", 20, &widest, 19)), (0.0, -1.0));
    // A short round trip makes up for losses, since its square counts.
    let near = [lossless_for(100, sibling(0, 20, 100)), lossless_for(900, sibling(1, 30, 400))];
    assert_eq!(growth("olia", 20, &near, 1), 1.0, "(.727)² + ½ is more than Reno's");
}

#[test]
fn balia_cuts_a_slow_path_deeper() {
    let cut = |siblings: &[PathView]| {
        let mut balia = controller("balia:initial=40");
        balia.on_ack(&loss(100, 50, 1), siblings);
        balia.cwnd() / PACKET
    };
    assert_eq!(cut(&[sibling(0, 40, 100)]), 20);
    // a = 1.25: 40 − 20·1.25; beyond 1.5 it stays at 40 − 30.
    assert_eq!(cut(&[sibling(0, 40, 100), sibling(1, 50, 100)]), 15);
    assert_eq!(cut(&[sibling(0, 40, 100), sibling(1, 400, 100)]), 10);
}

#[test]
fn weighted_vegas_keeps_its_share_of_the_total() {
    // The path has three quarters of the rate: 7.5 of the 10 packets in queues.
    let siblings = [sibling(0, 30, 100), sibling(1, 10, 100)];
    let mut control = controller("wvegas:initial=60");
    control.on_ack(&loss(10, 5, 1), &siblings);
    let mut sent = 11;
    let mut after = |millis: u64| {
        for _ in 0..5 {
            let event = AckEvent { rtt: rtt(millis), ..ack(sent + millis, sent, 1) };
            control.on_ack(&event, &siblings);
        }
        sent += millis + 1;
        control.cwnd() / PACKET
    };
    // Without a queue, the window grows by a packet in each round.
    after(100);
    assert_eq!(after(100), 31);
    // 32·20/120 = 5.3 ≥ 2: the share becomes 10·(32/.12)/(400) = 6.7, and 5.3 is below it.
    assert_eq!(after(120), 32);
    assert_eq!(after(160), 33);
    // 33·60/160 = 12.4 is above. The queueing delay has more than doubled from 20 ms: half of 32·100/160.
    assert_eq!(after(100), 10);
}

#[test]
fn paths_at_one_bottleneck_have_equal_parts_of_a_flows_share() {
    let mut paths = [0, 1, 2, 3].map(|id| sibling(id, 20, 100));
    let share = |path, paths: &[PathView]| {
        flow_share(&AckEvent { path: Some(PathId(path)), ..AckEvent::default() }, paths)
    };
    assert_eq!(share(0, &paths), 1.0);
    (paths[0].shares, paths[1].shares, paths[3].shares) = (0b1010, 0b1001, 0b0011);
    assert_eq!(
        [0, 1, 2, 3].map(|path| share(path, &paths)),
        [1.0 / 3.0, 1.0 / 3.0, 1.0, 1.0 / 3.0]
    );
    // A path that is not usable takes no part.
    paths[3].state = PathState::Suspect;
    assert_eq!(share(0, &paths), 0.5);
    assert_eq!(flow_share(&AckEvent::default(), &paths), 1.0);
}

/// Mean window, in packets, over 2,000 round trips of 100 ms in which every `nth` packet is lost.
fn mean_window(share: f64, nth: f64) -> f64 {
    let mut cubic = Cubic::at(20 * PACKET, PACKET);
    cubic.set_share(share);
    let (mut sent, mut sum) = (0.0, 0.0);
    for round in 1..=2_000 {
        let (now, packets) = (100 * round, cubic.cwnd() as f64 / PACKET as f64);
        let lost = (sent + packets) % nth < packets;
        let event = if lost { loss } else { ack };
        cubic.on_ack(&event(now, now - 99, packets as u32), &[]);
        sent += packets;
        sum += packets;
    }
    sum / 2_000.0
}

#[test]
fn a_share_of_cubic_has_that_share_of_its_window_at_the_same_loss() {
    // With few losses the cubic function decides, with many losses the Reno-friendly region.
    for nth in [20_000.0, 300.0] {
        let ratio = mean_window(0.5, nth) / mean_window(1.0, nth);
        assert!((0.42..0.58).contains(&ratio), "{ratio} with a loss in {nth}");
    }
}
