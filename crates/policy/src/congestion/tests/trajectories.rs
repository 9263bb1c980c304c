use anabranch_types::Bitrate;

use super::*;
use crate::congestion::RateSample;

/// Feeds the events and collects the window after each, in bytes.
fn cwnds(control: &mut dyn CongestionController, events: &[AckEvent]) -> Vec<u64> {
    events
        .iter()
        .map(|event| {
            control.on_ack(event, &[]);
            control.cwnd()
        })
        .collect()
}

#[test]
fn reno_doubles_then_halves_once_per_round_trip_then_adds_a_packet() {
    let mut reno = controller("reno");
    assert_eq!(reno.phase(), "slow-start");
    let trajectory = cwnds(
        &mut *reno,
        &[
            ack(100, 0, 10),
            loss(200, 100, 19),
            loss(210, 190, 1),
            ack(290, 195, 5),
            ack(310, 201, 10),
            ack(410, 311, 11),
        ],
    );
    assert_eq!(trajectory, [24_000, 12_000, 12_000, 12_000, 13_200, 14_400]);
    assert_eq!(reno.ssthresh(), 12_000);
    assert_eq!(reno.phase(), "congestion-avoidance");
}

#[test]
fn reno_grows_by_acknowledgements_when_told_to() {
    let mut reno = controller("reno:initial=2,growth=acks");
    // An acknowledgement of two packets is worth one in slow start.
    let trajectory = cwnds(&mut *reno, &[ack(100, 0, 2), ack(110, 10, 2), loss(120, 110, 1)]);
    assert_eq!(trajectory, [3_600, 4_800, 2_400]);
    // Above the threshold, it is worth packet²/window, however much it covers.
    assert_eq!(cwnds(&mut *reno, &[ack(300, 200, 2), ack(310, 210, 1)]), [3_000, 3_480]);
}

#[test]
fn reno_halves_the_flight_when_told_to() {
    let mut reno = controller("reno:initial=20,halve=flight");
    let event = AckEvent { prior_in_flight: 9_600, ..loss(100, 50, 1) };
    assert_eq!(cwnds(&mut *reno, &[event]), [4_800]);
}

#[test]
fn reno_answers_a_mark_as_a_loss() {
    let mut reno = controller("reno:initial=20");
    assert_eq!(cwnds(&mut *reno, &[mark(100, 0, 1), mark(120, 50, 1)]), [12_000, 12_000]);
}

#[test]
fn reno_collapses_and_keeps_the_threshold_of_the_first_timeout() {
    let mut reno = controller("reno");
    reno.on_timeout(&timeout(500, 10, 1));
    assert_eq!((reno.cwnd(), reno.ssthresh()), (1_200, 6_000));
    reno.on_timeout(&timeout(900, 1, 2));
    assert_eq!((reno.cwnd(), reno.ssthresh()), (1_200, 6_000));
    let trajectory = cwnds(
        &mut *reno,
        &[ack(1000, 901, 1), ack(1100, 1001, 2), ack(1200, 1101, 4), ack(1300, 1201, 5)],
    );
    // The third round crosses the threshold by three packets of credit; the fourth spends it.
    assert_eq!(trajectory, [2_400, 4_800, 6_000, 7_200]);
}

#[test]
fn reno_waits_for_as_many_timeouts_as_it_is_told() {
    let mut reno = controller("reno:collapse=3");
    reno.on_timeout(&timeout(500, 10, 1));
    reno.on_timeout(&timeout(900, 10, 2));
    assert_eq!(reno.cwnd(), 12_000);
    reno.on_timeout(&timeout(1700, 10, 3));
    assert_eq!((reno.cwnd(), reno.ssthresh()), (1_200, 6_000));
}

#[test]
fn an_unused_window_does_not_grow() {
    for spec in ["reno", "cubic", "ecn-reno"] {
        let mut control = controller(spec);
        let before = control.cwnd();
        control.on_ack(&AckEvent { app_limited: true, ..ack(100, 0, 5) }, &[]);
        assert_eq!(control.cwnd(), before, "{spec}");
    }
}

#[test]
fn ecn_reno_ignores_losses_and_grows_by_what_was_sent() {
    let mut control = controller("ecn-reno");
    let half = LossView { mean: 0.5, deviation: 0.0 };
    let event = AckEvent { loss: half, ..loss(100, 0, 2) };
    // Two acknowledged packets at 50 % loss stand for four sent ones.
    assert_eq!(cwnds(&mut *control, &[event]), [2_400 + 4_800]);
    assert_eq!(cwnds(&mut *control, &[mark(200, 101, 3)]), [3_600]);
    assert_eq!(control.ssthresh(), 3_600);
    // A second mark within the round trip neither cuts the window nor lets it grow.
    assert_eq!(cwnds(&mut *control, &[mark(250, 199, 1), ack(260, 199, 3)]), [3_600, 3_600]);
    // In congestion avoidance at 50 % loss, 1.5 acknowledged packets fill the window of 3.
    let event = AckEvent { loss: half, ..ack(310, 210, 2) };
    assert_eq!(cwnds(&mut *control, &[event]), [4_800]);
}

#[test]
fn ecn_reno_restarts_as_it_is_told() {
    for (spec, cwnd) in [("ecn-reno:initial=20", 1_200), ("ecn-reno:initial=20,restart=8", 9_600)] {
        let mut control = controller(spec);
        control.on_timeout(&timeout(500, 20, 1));
        assert_eq!((control.cwnd(), control.ssthresh()), (cwnd, 12_000), "{spec}");
        control.on_timeout(&timeout(900, 3, 1));
        assert_eq!(control.ssthresh(), 2_400, "{spec}: a new episode halves its own flight");
    }
}

#[test]
fn ecn_reno_counts_small_packets_as_full_ones_when_told_to() {
    let small = |control: &mut Box<dyn CongestionController>| {
        let event = AckEvent { acked_bytes: 2_000, ..ack(100, 50, 8) };
        control.on_ack(&event, &[]);
        control.cwnd()
    };
    let mut by_bytes = controller("ecn-reno:initial=10");
    let mut by_packets = controller("ecn-reno:initial=10,growth=packets");
    assert_eq!(small(&mut by_bytes), 12_000 + 2_000);
    assert_eq!(small(&mut by_packets), 12_000 + 8 * 1_200);
}

#[test]
fn ecn_reno_trickles_when_a_window_of_one_is_marked() {
    let mut control = controller("ecn-reno:initial=1");
    control.on_ack(&mark(100, 0, 1), &[]);
    assert_eq!(control.cwnd(), PACKET);
    // 100 ms + 4 · 12.5 ms is below the floor of 200 ms, so 1200 bytes leave every 200 ms.
    assert_eq!(control.pacing_rate(), Some(Bitrate::from_bps(48_000)));
    control.on_ack(&ack(400, 300, 1), &[]);
    assert_eq!(control.pacing_rate(), None);
}

#[test]
fn cubic_follows_its_curve() {
    let mut cubic = controller("cubic:initial=100");
    let mut trajectory = cwnds(&mut *cubic, &[loss(100, 0, 99)]);
    // Each round of 100 ms acknowledges a window.
    for round in 1..=60 {
        let now = 100 + round * 100;
        let packets = (cubic.cwnd() / PACKET) as u32;
        cubic.on_ack(&ack(now, now - 99, packets), &[]);
        if round % 10 == 0 {
            trajectory.push(cubic.cwnd());
        }
    }
    assert_eq!(trajectory, CUBIC);
    assert_eq!(cubic.phase(), "congestion-avoidance");
}

/// The window has 70 packets after the cut, and reaches the plateau of 100 packets K = cbrt(30/0.4)
/// = 4.22 s later.
const CUBIC: [u64; 7] = [84_000, 104_009, 114_768, 119_134, 119_994, 120_230, 123_622];

#[test]
fn cubic_lowers_its_plateau_when_losses_follow_each_other() {
    let mut cubic = controller("cubic:initial=100");
    cubic.on_ack(&loss(100, 0, 1), &[]);
    assert_eq!((cubic.cwnd(), cubic.ssthresh()), (84_000, 84_000));
    cubic.on_ack(&loss(300, 200, 1), &[]);
    assert_eq!(cubic.cwnd(), 58_800);
    // The plateau is now 70·1.7/2 = 59.5 packets, K = cbrt(10.5/0.4) = 2.97 s: 58.5 packets after
    // 1.5 s, where a plateau of 70 would have brought 66.
    for round in 1..=15 {
        let now = 300 + round * 100;
        cubic.on_ack(&ack(now, now - 99, (cubic.cwnd() / PACKET) as u32), &[]);
    }
    let packets = cubic.cwnd() as f64 / PACKET as f64;
    assert!((57.0..60.0).contains(&packets), "{packets}");
}

#[test]
fn cubic_like_linux_counts_whole_packets_and_stays_slow() {
    // A loss at five packets. Linux cuts to three; its Reno-friendly window grows by .53 packets
    // per round trip, and the actual window follows in whole packets. RFC 9438 cuts to 3.5, and
    // grows by one per round trip once the Reno-friendly window is back at five.
    for (spec, expected) in [
        ("cubic:initial=5,like=linux", [3, 3, 4, 4, 5, 5, 6, 6, 7]),
        ("cubic:initial=5", [3, 3, 4, 4, 5, 6, 7, 8, 9]),
    ] {
        let mut cubic = controller(spec);
        cubic.on_ack(&loss(100, 0, 1), &[]);
        let mut packets = vec![cubic.cwnd() / PACKET];
        for round in 1..=8 {
            let now = 100 + round * 100;
            let acked = (cubic.cwnd() / PACKET) as u32;
            cubic.on_ack(&ack(now, now - 99, acked), &[]);
            packets.push(cubic.cwnd() / PACKET);
        }
        assert_eq!(packets, expected, "{spec}");
    }
}

#[test]
fn cubic_restarts_from_one_packet_after_a_timeout() {
    let mut cubic = controller("cubic:initial=100");
    cubic.on_timeout(&timeout(500, 100, 1));
    assert_eq!((cubic.cwnd(), cubic.ssthresh()), (1_200, 84_000));
    cubic.on_ack(&ack(600, 501, 1), &[]);
    assert_eq!(cubic.cwnd(), 2_400);
}

#[test]
fn the_time_an_idle_window_waits_does_not_count_for_cubic() {
    let mut cubic = controller("cubic:initial=100");
    cubic.on_ack(&loss(100, 0, 1), &[]);
    cubic.on_ack(&ack(200, 101, 70), &[]);
    let before = cubic.cwnd();
    cubic.on_ack(&AckEvent { app_limited: true, ..ack(60_000, 59_900, 1) }, &[]);
    cubic.on_ack(&ack(60_100, 60_000, 1), &[]);
    assert!(cubic.cwnd() - before < PACKET, "{}", cubic.cwnd());
}

#[test]
fn penalised_windows_halve_and_stay_above_a_packet() {
    for spec in ["reno", "cubic", "ecn-reno:initial=10", "bbr"] {
        let mut control = controller(spec);
        control.penalise();
        assert_eq!(control.cwnd(), 6_000, "{spec}");
        for _ in 0..10 {
            control.penalise();
        }
        assert_eq!(control.cwnd(), PACKET, "{spec}");
    }
}

#[test]
fn a_larger_packet_raises_the_least_window() {
    for spec in ["reno:initial=1", "cubic:initial=1", "ecn-reno:initial=1", "bbr:initial=1"] {
        let mut control = controller(spec);
        control.set_packet_size(1452);
        assert_eq!(control.cwnd(), 1452, "{spec}");
        assert!(control.ssthresh() > 1_000_000 && control.pacing_rate() != Some(Bitrate::ZERO));
    }
}

/// Acknowledges the ten packets of a round of 100 ms, a rate of 120 kB/s, with the given round-trip
/// time.
fn round(bbr: &mut dyn CongestionController, number: u64, millis: u64) {
    let delivered = 10 * PACKET;
    let event = AckEvent {
        total_delivered: number * delivered,
        rate: Some(RateSample {
            delivered,
            lost: 0,
            departure: Duration::ZERO,
            arrival: Duration::from_millis(100),
            app_limited: false,
            prior_delivered: (number - 1) * delivered,
        }),
        rtt: rtt(millis),
        ..ack(number * 100, number * 100 - millis, 10)
    };
    bbr.on_ack(&event, &[]);
}

#[test]
fn bbr_measures_the_round_trip_anew_when_the_old_one_is_ten_seconds_old() {
    let mut bbr = controller("bbr");
    (1..=20).for_each(|number| round(&mut *bbr, number, 100));
    assert_eq!((bbr.phase(), bbr.bandwidth()), ("probe-bw", Some(Bitrate::from_bps(960_000))));
    // The window is twice the product of 12 kB, plus three packets of slack.
    assert_eq!(bbr.cwnd(), 27_600);
    // The path has become longer: the old least round-trip time is not met again.
    (21..=120).for_each(|number| round(&mut *bbr, number, 110));
    assert_eq!(bbr.phase(), "probe-bw");
    round(&mut *bbr, 121, 110);
    assert_eq!((bbr.phase(), bbr.cwnd()), ("probe-rtt", 4 * PACKET));
    round(&mut *bbr, 122, 110);
    assert_eq!(bbr.phase(), "probe-rtt");
    // After 200 ms and a round, the window is again twice the product plus slack; the product is
    // now 13.2 kB.
    (123..=124).for_each(|number| round(&mut *bbr, number, 110));
    assert_eq!((bbr.phase(), bbr.cwnd()), ("probe-bw", 30_000));
}

#[test]
fn bbr_conserves_packets_for_a_round_after_a_loss() {
    let mut bbr = controller("bbr");
    (1..=20).for_each(|number| round(&mut *bbr, number, 100));
    bbr.on_ack(&AckEvent { bytes_in_flight: 9_600, ..loss(2_010, 1_910, 2) }, &[]);
    assert_eq!(bbr.cwnd(), 9_600 + 2 * PACKET);
    bbr.on_ack(&ack(2_120, 2_011, 1), &[]);
    assert_eq!(bbr.cwnd(), 27_600);
}
