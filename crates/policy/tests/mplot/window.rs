//! §II-C: congestion control that reacts to marks and timeouts only.

use anabranch_policy::congestion::{AckEvent, CongestionController, TimeoutEvent, build};
use anabranch_policy::loss::build_detector;
use anabranch_policy::view::{LossView, RttView};
use anabranch_types::Time;
use core::time::Duration;

const PACKET: u64 = 750;

fn control(spec: &str) -> Box<dyn CongestionController> {
    build(&spec.parse().unwrap(), PACKET).unwrap()
}

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// Acknowledges this many packets, which were sent 40 ms before `now`.
fn acked(now: u64, packets: u32) -> AckEvent {
    AckEvent {
        now: ms(now),
        acked_bytes: u64::from(packets) * PACKET,
        acked_packets: packets,
        largest_acked_sent: ms(now - 40),
        ..AckEvent::default()
    }
}

/// A window of 32 packets, just after a mark halved it at 1000 ms.
fn halved(spec: &str) -> Box<dyn CongestionController> {
    let mut control = control(spec);
    while control.cwnd() < 64 * PACKET {
        let packets = (control.cwnd() / PACKET).min(64 - control.cwnd() / PACKET);
        control.on_ack(&acked(500, packets as u32), &[]);
    }
    assert_eq!(control.cwnd(), 64 * PACKET);
    control.on_ack(&AckEvent { ce_packets: 1, ..acked(1000, 1) }, &[]);
    assert_eq!((control.cwnd(), control.ssthresh()), (32 * PACKET, 32 * PACKET));
    control
}

#[test]
fn a_mark_halves_the_window_once_per_round_trip() {
    let mut control = halved("ecn-reno");
    // Marks of packets sent before the cut come from the same queue.
    control.on_ack(&AckEvent { ce_packets: 3, ..acked(1030, 3) }, &[]);
    assert_eq!(control.cwnd(), 32 * PACKET);
    control.on_ack(&AckEvent { ce_packets: 1, ..acked(1050, 1) }, &[]);
    assert_eq!(control.cwnd(), 16 * PACKET);
}

#[test]
fn losses_neither_cut_the_window_nor_start_a_fast_recovery() {
    let mut control = halved("ecn-reno");
    let (cwnd, threshold) = (control.cwnd(), control.ssthresh());
    for now in 1050..1060 {
        let lost = AckEvent {
            lost_bytes: 8 * PACKET,
            lost_packets: 8,
            largest_lost_sent: ms(now - 40),
            ..acked(now, 0)
        };
        control.on_ack(&lost, &[]);
        assert_eq!((control.cwnd(), control.ssthresh()), (cwnd, threshold));
        assert_eq!(control.phase(), "congestion-avoidance");
    }
}

#[test]
fn growth_is_divided_by_the_share_that_arrives() {
    let grown = |loss: f64| {
        let mut control = halved("ecn-reno");
        // The share 1 − p of ten windows is acknowledged, packet by packet.
        let before = control.cwnd();
        for now in 0..(320.0 * (1.0 - loss)) as u64 {
            let loss = LossView { mean: loss, deviation: 0.0 };
            control.on_ack(&AckEvent { loss, ..acked(1100 + now, 1) }, &[]);
        }
        (control.cwnd() - before) / PACKET
    };
    // Ten windows of 32 packets and more add eight packets, whatever the loss.
    assert_eq!([grown(0.0), grown(0.25), grown(0.5), grown(0.75)], [8; 4]);
}

#[test]
fn a_path_times_out_by_itself_and_starts_over_from_one_packet() {
    let mut control = halved("ecn-reno");
    let timeout = |consecutive, flight| TimeoutEvent {
        now: ms(2000),
        bytes_in_flight: flight * PACKET,
        consecutive,
    };
    control.on_timeout(&timeout(1, 20));
    assert_eq!((control.cwnd(), control.ssthresh()), (PACKET, 10 * PACKET));
    control.on_timeout(&timeout(2, 1));
    assert_eq!((control.cwnd(), control.ssthresh()), (PACKET, 10 * PACKET));
    let mut eight = halved("ecn-reno:restart=8");
    eight.on_timeout(&timeout(1, 20));
    assert_eq!((eight.cwnd(), eight.ssthresh()), (8 * PACKET, 10 * PACKET));
    let mut few = halved("ecn-reno");
    few.on_timeout(&timeout(1, 1));
    assert_eq!(few.ssthresh(), 2 * PACKET, "two packets at least");
}

#[test]
fn timeouts_are_standard_and_double_unless_told_not_to() {
    let rtt = RttView {
        smoothed: Duration::from_millis(400),
        variation: Duration::from_millis(30),
        samples: 9,
        ..RttView::default()
    };
    let detector = |spec: &str| build_detector(&spec.parse().unwrap()).unwrap();
    assert_eq!(detector("dupack").timeout(&rtt), Duration::from_millis(520));
    let fast = RttView { smoothed: Duration::from_millis(10), ..rtt };
    assert_eq!(detector("dupack").timeout(&fast), Duration::from_millis(200));
    assert!(detector("dupack").timeout_loses_flight());
    assert!(detector("dupack").backoff_limit() > 0);
    assert_eq!(detector("dupack:backoff=0").backoff_limit(), 0);
    let tcp = detector("dupack:max=60s,probes=0");
    assert_eq!((tcp.longest_timeout(), tcp.probes()), (Some(Duration::from_secs(60)), 0));
}
