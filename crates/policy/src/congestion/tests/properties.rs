use proptest::prelude::*;

use super::*;
use crate::congestion::{RateSample, SentEvent, TABLE};
use crate::view::PathView;
use anabranch_types::PathId;

/// Something that can happen to a controller, with numbers of any size.
#[derive(Clone, Debug)]
enum Happening {
    Sent {
        bytes: u64,
        flight: u64,
    },
    Ack {
        acked: u64,
        lost: u64,
        ce: u32,
        flight: u64,
        age: u64,
        rate: Option<(u64, u64)>,
        loss: f64,
    },
    Timeout {
        flight: u64,
        consecutive: u32,
    },
    Penalise,
    PacketSize(u64),
}

fn amount() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..100_000_u64, 1 => any::<u64>()]
}

fn happening() -> impl Strategy<Value = Happening> {
    let ack = (
        amount(),
        amount(),
        0..3_u32,
        amount(),
        0..500_u64,
        proptest::option::of((amount(), amount())),
        prop_oneof![3 => 0.0..=1.0, 1 => Just(f64::NAN)],
    );
    prop_oneof![
        4 => (amount(), amount()).prop_map(|(bytes, flight)| Happening::Sent { bytes, flight }),
        8 => ack.prop_map(|(acked, lost, ce, flight, age, rate, loss)| {
            Happening::Ack { acked, lost, ce, flight, age, rate, loss }
        }),
        1 => (amount(), 1..20_u32)
            .prop_map(|(flight, consecutive)| Happening::Timeout { flight, consecutive }),
        1 => Just(Happening::Penalise),
        1 => (500..9000_u64).prop_map(Happening::PacketSize),
    ]
}

fn apply(control: &mut dyn CongestionController, now: Time, happening: &Happening) {
    match *happening {
        Happening::Sent { bytes, flight } => {
            control.on_sent(&SentEvent { now, bytes, bytes_in_flight: flight });
        }
        Happening::Ack { acked, lost, ce, flight, age, rate, loss } => {
            let sent = now - Duration::from_millis(age);
            let rate = rate.map(|(delivered, nanos)| RateSample {
                delivered,
                lost: 0,
                departure: Duration::from_nanos(nanos),
                arrival: Duration::ZERO,
                app_limited: delivered % 3 == 0,
                prior_delivered: delivered / 2,
            });
            let event = AckEvent {
                now,
                acked_bytes: acked,
                acked_packets: (acked / PACKET).min(1000) as u32,
                lost_bytes: lost,
                lost_packets: (lost / PACKET).min(1000) as u32,
                ce_packets: ce,
                bytes_in_flight: flight,
                prior_in_flight: flight.saturating_add(acked),
                largest_acked_sent: sent,
                largest_lost_sent: sent,
                total_delivered: acked,
                rate,
                rtt: rtt(age),
                loss: LossView { mean: loss, deviation: 0.0 },
                app_limited: ce == 2,
                path: None,
            };
            control.on_ack(&event, &[]);
        }
        Happening::Timeout { flight, consecutive } => {
            control.on_timeout(&TimeoutEvent { now, bytes_in_flight: flight, consecutive });
        }
        Happening::Penalise => control.penalise(),
        Happening::PacketSize(bytes) => control.set_packet_size(bytes),
    }
}

proptest! {
    #[test]
    fn windows_stay_between_a_packet_and_a_terabyte(
        steps in proptest::collection::vec((happening(), 0..300_u64), 1..200)
    ) {
        for (entry, _) in TABLE {
            let mut control = controller(entry.name);
            let (mut now, mut packet) = (Time::ZERO, PACKET);
            for (happening, wait) in &steps {
                now += Duration::from_millis(*wait);
                if let Happening::PacketSize(bytes) = happening {
                    packet = *bytes;
                }
                apply(&mut *control, now, happening);
                let cwnd = control.cwnd();
                prop_assert!(cwnd >= packet, "{}: {cwnd} < {packet}", entry.name);
                prop_assert!(cwnd <= 1 << 41, "{}: {cwnd}", entry.name);
                prop_assert!(control.ssthresh() > 0, "{}", entry.name);
            }
        }
    }
}

/// Whether the state of another path changes any window, over a run with losses.
fn depends_on_siblings(name: &str) -> bool {
    let alone = [PathView { cwnd: 20 * PACKET, rtt: rtt(100), ..PathView::unknown(PathId(0)) }];
    let beside = [
        PathView { shares: 0b10, ..alone[0] },
        PathView { cwnd: 90 * PACKET, rtt: rtt(20), shares: 0b1, ..PathView::unknown(PathId(1)) },
    ];
    let windows = |siblings: &[PathView]| -> Vec<u64> {
        let mut control = controller(name);
        let step = |n: u64| {
            let event = if n % 300 == 299 {
                loss(10 * n, 10 * n - 5, 1)
            } else {
                ack(10 * n, 10 * n - 9, 1)
            };
            let rtt = rtt(100 + n % 50);
            control.on_ack(&AckEvent { path: Some(PathId(0)), rtt, ..event }, siblings);
            control.cwnd()
        };
        (1..2000).map(step).collect()
    };
    windows(&alone) != windows(&beside)
}

#[test]
fn controls_that_read_of_other_paths_say_so() {
    for (entry, _) in TABLE {
        let control = controller(entry.name);
        // A controller that couples reads its siblings only while it competes with a rival.
        let depends = control.couples() || depends_on_siblings(entry.name);
        assert_eq!(control.reads_siblings(), depends, "{}", entry.name);
    }
}
