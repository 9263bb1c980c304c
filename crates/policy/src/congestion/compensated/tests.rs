//! Tests of each part of the controller; `sim/tests/neighbours.rs` tests it on whole links.

mod losses;
mod rates;
mod variation;

use anabranch_types::{Rng, Time};
use core::time::Duration;

use super::delay::Delay;
use super::rival::Rival;
use super::startup::Startup;
use crate::congestion::{self, AckEvent, CongestionController, RateSample};
use crate::registry::PolicySpec;
use crate::view::RttView;

const PACKET: u64 = 1250;
const RTT: Duration = Duration::from_millis(40);

/// A packet sent a round trip ago is acknowledged at `now`, milliseconds; it waited for `queue`.
fn ack(now: f64, queue: f64) -> AckEvent {
    let queue = Duration::from_secs_f64(queue / 1e3);
    let now = Time::from_micros((now * 1e3) as u64);
    let rtt = RttView {
        latest: RTT + queue,
        smoothed: RTT,
        min: RTT,
        queue,
        samples: 100,
        ..RttView::default()
    };
    AckEvent {
        now,
        acked_bytes: PACKET,
        acked_packets: 1,
        prior_in_flight: 40 * PACKET,
        largest_acked_sent: now - RTT,
        largest_lost_sent: now - RTT,
        rtt,
        ..AckEvent::default()
    }
}

/// A round trip of 40 packets a millisecond apart, of which `lost` were lost.
fn round(number: u64, lost: u64) -> AckEvent {
    let sample = RateSample {
        delivered: (40 - lost) * PACKET,
        lost: lost * PACKET,
        departure: RTT,
        arrival: RTT,
        app_limited: false,
        prior_delivered: number,
    };
    AckEvent { rate: Some(sample), total_delivered: number + 1, ..ack(0.0, 0.0) }
}

/// A controller after ten round trips of a sender with little to send. In each, 40 packets left in a quarter of the round
/// trip and arrived within `arrival`, and `prior_in_flight` bytes were in flight.
fn with_little_to_send(arrival: Duration, prior_in_flight: u64) -> Box<dyn CongestionController> {
    let spec = PolicySpec::new("compensated");
    let mut controller = congestion::build(&spec, PACKET).expect("its options have defaults");
    for number in 0..10 {
        let event = round(number, 0);
        let rate = event.rate.map(|sample| RateSample {
            departure: RTT / 4,
            arrival,
            app_limited: true,
            ..sample
        });
        let event =
            AckEvent { rate, acked_packets: 40, prior_in_flight, app_limited: true, ..event };
        controller.on_ack(&event, &[]);
    }
    controller
}

#[test]
fn trains_that_arrive_slower_than_they_left_end_startup() {
    let phase = |arrival| with_little_to_send(arrival, 40 * PACKET).phase();
    assert_ne!(phase(RTT / 2), "startup");
    assert_eq!(phase(RTT / 4), "startup", "the bottleneck may be as fast as they were sent");
}

#[test]
fn a_window_that_is_not_in_use_says_nothing_about_the_rate() {
    let pacing = |in_flight| {
        let controller = with_little_to_send(RTT / 4, in_flight * PACKET);
        controller.pacing_rate().expect("a rate is known").as_bps()
    };
    assert_eq!(pacing(160), pacing(400), "what the rate fills a round trip with was in flight");
    assert!(pacing(4) < pacing(400) / 2, "{} {}", pacing(4), pacing(400));
}

/// Half of a window of ten packets may arrive, or a fifth, or all.
#[test]
fn a_few_packets_do_not_show_that_startup_is_over() {
    let mut startup = Startup::default();
    startup.begin(1e6, false);
    let mut arrive = |packets| {
        startup.on_ack(&AckEvent { acked_packets: packets, ..ack(0.0, 0.0) }, false);
        startup.is_full(1e6)
    };
    assert!((0..6).all(|_| !arrive(5)));
    assert!(arrive(5), "35 packets in seven rounds");
}

/// A delay with jitter of ±10 ms around 30 ms, plus `own` ms.
fn jitter(rng: &mut Rng, own: f64) -> f64 {
    20.0 + 20.0 * rng.uniform() + own
}

#[test]
fn a_roads_own_variation_is_no_queue_of_ours() {
    let (mut delay, mut rng) = (Delay::default(), Rng::new(7));
    let mut now = 1000.0;
    delay.measure_floor(&ack(now, 0.0));
    for _ in 0..400 {
        now += 1.0;
        delay.on_ack(&ack(now, jitter(&mut rng, 0.0)));
        assert!(now < 1150.0 || delay.own() == 0.0, "{} at {now}", delay.own());
    }
    assert!((delay.floor() - 0.030).abs() < 0.003, "{}", delay.floor());
    assert!((delay.longest() - 0.080).abs() < 0.002, "{}", delay.longest());
    // The same variation, on top of 30 ms that we add.
    for _ in 0..100 {
        now += 1.0;
        delay.on_ack(&ack(now, jitter(&mut rng, 30.0)));
    }
    assert!((0.015..0.025).contains(&delay.own()), "{}", delay.own());
}

#[test]
fn a_delay_that_grows_while_it_is_measured_is_not_the_floor() {
    // 1 ms of delay is added in every 2 ms: half of what is sent goes into a queue.
    let mut delay = Delay::default();
    delay.measure_floor(&ack(1000.0, 0.0));
    for step in 1..200 {
        delay.on_ack(&ack(1000.0 + f64::from(step), 0.5 * f64::from(step)));
    }
    assert!(delay.floor() < 0.01, "{}", delay.floor());
    // A tenth as much may be the path's own.
    let mut delay = Delay::default();
    delay.measure_floor(&ack(1000.0, 0.0));
    for step in 1..200 {
        delay.on_ack(&ack(1000.0 + f64::from(step), 30.0 + 0.05 * f64::from(step)));
    }
    assert!((0.030..0.036).contains(&delay.floor()), "{}", delay.floor());
}

#[test]
fn a_road_that_becomes_longer_has_a_new_floor() {
    let mut delay = Delay::default();
    for (start, level) in [(1000, 0.0), (2000, 60.0)] {
        delay.measure_floor(&ack(f64::from(start), level));
        for step in 1..200 {
            delay.on_ack(&ack(f64::from(start + step), level));
        }
        assert!((delay.floor() * 1e3 - level).abs() < 0.01, "{}", delay.floor());
        assert_eq!(delay.own(), 0.0);
    }
}

#[test]
fn a_delay_below_the_floor_lowers_it() {
    let mut delay = Delay::default();
    delay.measure_floor(&ack(1000.0, 60.0));
    for step in 1..150 {
        delay.on_ack(&ack(1000.0 + f64::from(step), 60.0));
    }
    assert!((delay.floor() - 0.060).abs() < 1e-4, "{}", delay.floor());
    // The delay measured so far was that of a queue, which drains.
    for step in 150..250 {
        delay.on_ack(&ack(1000.0 + f64::from(step), 5.0));
        if step % 40 == 0 {
            delay.end_round();
        }
    }
    assert!((0.005..0.010).contains(&delay.floor()), "{}", delay.floor());
}

#[test]
fn delays_are_remembered_when_the_least_is_forgotten() {
    let mut delay = Delay::default();
    let later = |now: f64, queue: f64, least: i64| {
        let mut event = ack(now, queue);
        event.rtt.forward = least;
        event
    };
    // The delay is 30 ms above the least; then the least becomes 20 ms longer. The queue seems
    // shorter, but the round trip is the same.
    delay.measure_floor(&later(1000.0, 30.0, 5_000));
    for step in 1..200 {
        assert_eq!(delay.on_ack(&later(1000.0 + f64::from(step), 30.0, 5_000)), 0.0);
    }
    let typical = delay.typical();
    let rise = delay.on_ack(&later(1200.0, 10.0, 25_000));
    assert!((rise - 0.020).abs() < 1e-9, "{rise}");
    assert!((delay.floor() - 0.010).abs() < 1e-4, "{}", delay.floor());
    assert!((delay.typical() - typical).abs() < 1e-4, "{} {typical}", delay.typical());
    assert_eq!(delay.own(), 0.0);
}

/// A flow that starts when the queue is full never sees the queue empty.
#[test]
fn who_never_sees_an_empty_queue_does_not_take_all_losses_for_random() {
    let (mut rival, mut delay) = (Rival::default(), Delay::default());
    let mut seen = |from: u32, to: u32| {
        let mut seen = 0;
        for packet in from..to {
            // The delay varies by 40 ms, and is longest where three of ten packets are lost.
            let queue = 60.0 + f64::from(packet % 400) / 10.0;
            let mut event = ack(1000.0 + f64::from(packet) / 4.0, queue);
            if packet % 10 > 6 {
                (event.acked_packets, event.lost_packets) = (0, 1);
                event.largest_lost_sent = event.largest_acked_sent - Duration::from_millis(3);
            }
            delay.on_ack(&event);
            seen += u32::from(rival.on_ack(&event, packet % 160 == 0, &delay, 0.001));
            if packet == 2000 {
                // The flow has sent less for a while, which emptied nothing.
                rival.stop();
            }
        }
        seen
    };
    assert_eq!(seen(0, 2000), 0, "startup knows nothing");
    assert!(seen(2000, 10_000) >= 20);
}

/// Simulates 200 sawtooth cycles of a queue, each from 0 to 30 ms in 300 packets. Packets are lost
/// with the chance `loss`, above 28 ms also with the chance `full`, and are declared lost `late`
/// after that. Packets that leave in a round trip and a half of the first quarter of a cycle count
/// as sent while none of ours was queued. Returns how often a full queue was seen.
fn sawteeth(loss: f64, full: f64, late: Duration) -> u32 {
    let (mut rival, mut delay, mut rng) = (Rival::default(), Delay::default(), Rng::new(3));
    let mut losses = std::collections::VecDeque::new();
    let mut seen = 0;
    for packet in 0..60_000_u32 {
        let place = packet % 300;
        let queue = f64::from(place) / 10.0;
        let mut event = ack(1000.0 + f64::from(packet), queue);
        if place == 260 {
            delay.measure_floor(&event);
        }
        if rng.chance(if queue > 28.0 { loss + full } else { loss }) {
            losses.push_back(event.largest_acked_sent);
            (event.acked_packets, event.acked_bytes) = (0, 0);
        }
        if losses.front().is_some_and(|&sent| event.now - RTT - late > sent) {
            (event.lost_packets, event.lost_bytes) = (1, PACKET);
            event.largest_lost_sent = losses.pop_front().unwrap();
        }
        delay.on_ack(&event);
        let dropped = rival.on_ack(&event, packet % 40 == 0, &delay, 0.001);
        // The first cycles show how much loss is random.
        seen += u32::from(dropped && packet > 600);
    }
    assert!(
        (rival.random().share() - loss).abs() < 0.3 * loss + 0.01,
        "{}",
        rival.random().share()
    );
    seen
}

#[test]
fn random_losses_are_no_rivals() {
    for loss in [0.0, 0.01, 0.05, 0.3] {
        for late in [3, 100] {
            let seen = sawteeth(loss, 0.0, Duration::from_millis(late));
            // There are 200 cycles, each tested in about three round trips.
            assert!(seen <= 12, "{seen} at {loss}, {late} ms");
        }
    }
}

#[test]
fn losses_of_full_queues_are_seen_beside_random_ones() {
    for loss in [0.0, 0.01, 0.05] {
        for late in [3, 100] {
            let seen = sawteeth(loss, 0.6, Duration::from_millis(late));
            assert!(seen >= 180, "{seen} at {loss}, {late} ms");
        }
    }
}

#[test]
fn the_window_beside_rivals_shrinks_on_their_losses_and_grows_between() {
    let mut rival = Rival::default();
    rival.start(40 * PACKET, PACKET);
    assert_eq!(rival.bytes(), Some(40 * PACKET));
    let event = AckEvent { lost_packets: 1, ..ack(1000.0, 30.0) };
    rival.cut(&event, PACKET);
    assert_eq!(rival.bytes(), Some(28 * PACKET));
    for step in 0..4000 {
        rival.on_ack(&ack(1040.0 + f64::from(step), 5.0), step % 40 == 0, &Delay::default(), 0.001);
    }
    assert!(rival.bytes().is_some_and(|bytes| bytes > 40 * PACKET));
    rival.release_above(40 * PACKET);
    assert_eq!(rival.bytes(), None);
}

#[test]
fn a_window_that_no_loss_has_set_ends_with_the_competition() {
    let mut rival = Rival::default();
    rival.start(40 * PACKET, PACKET);
    rival.stop();
    assert_eq!(rival.bytes(), None);
    rival.cut(&AckEvent { lost_packets: 1, ..ack(1000.0, 30.0) }, PACKET);
    rival.stop();
    assert!(rival.bytes().is_some());
}

#[test]
fn a_road_that_varies_is_no_queue_of_ours() {
    let mut control = congestion::build(&"compensated".parse().unwrap(), PACKET).unwrap();
    let mut own_queue_after = |times: core::ops::Range<u32>, queue: fn(u32) -> f64| {
        for at in times {
            let mut event = ack(1000.0 + f64::from(at), queue(at));
            event.rtt.samples = u64::from(at) + 1;
            control.on_ack(&event, &[]);
        }
        control.own_queue().unwrap()
    };
    // The delay alternates between 0 and 40 ms above the least.
    let varying = own_queue_after(0..400, |at| f64::from(at % 2) * 40.0);
    assert!(varying < Duration::from_millis(5), "{varying:?}");
    let standing = own_queue_after(400..600, |_| 100.0);
    assert!(standing > Duration::from_millis(70), "{standing:?}");
}

/// Startup that a delay of `level` ms has ended, while 10 Mb/s were delivered.
fn ended(level: f64) -> (Startup, Delay) {
    let (mut startup, mut delay) = (Startup::default(), Delay::default());
    delay.on_ack(&ack(0.0, level));
    startup.begin(1e6, false);
    startup.end_by_delay(&ack(100.0, level), &delay, 10e6);
    (startup, delay)
}

#[test]
fn a_delay_that_grows_no_more_was_no_queue() {
    let after = 100.0 + 2.0 * RTT.as_secs_f64() * 1e3;
    let (mut startup, mut delay) = ended(30.0);
    assert!(!startup.waits_no_longer(&ack(100.0, 30.0), &delay), "these left before the end");
    assert!(startup.waits_no_longer(&ack(after, 30.0), &delay));
    assert!(!startup.waits_no_longer(&ack(after, 30.0), &delay), "only the first ones tell");
    assert!(startup.resume(&mut delay) && !startup.resume(&mut delay));

    let (mut startup, mut delay) = ended(30.0);
    for step in 1..=40 {
        delay.on_ack(&ack(100.0 + f64::from(step), 60.0));
    }
    assert!(!startup.waits_no_longer(&ack(after, 60.0), &delay));
}

#[test]
fn startup_does_not_go_on_where_much_was_lost_or_for_ever() {
    let (mut startup, mut delay) = ended(30.0);
    assert!(startup.delivers_more(16e6) && !startup.delivers_more(14e6));
    startup.on_ack(&AckEvent { acked_packets: 8, lost_packets: 2, ..ack(200.0, 30.0) }, false);
    assert!(!startup.resume(&mut delay));

    let (mut startup, mut delay) = ended(30.0);
    let mut resumed = 0;
    while startup.resume(&mut delay) {
        startup.begin(10e6, false);
        startup.end_by_delay(&ack(100.0, 30.0), &delay, 10e6);
        resumed += 1;
        assert!(resumed < 10);
    }
    assert!(resumed > 1, "{resumed}");
}

#[test]
fn startup_that_probing_begins_grows_less() {
    let mut startup = Startup::default();
    startup.begin(1e6, false);
    let first = (startup.gain(), startup.window());
    startup.begin(10e6, true);
    assert!(startup.is_probe() && startup.gain() < first.0 && startup.window() < first.1);
    startup.begin(10e6, false);
    assert_eq!((startup.gain(), startup.window()), first);
}

#[test]
fn a_road_varies_if_its_floor_does() {
    for (spread, varies) in [(2.0, false), (30.0, true)] {
        let mut delay = Delay::default();
        delay.measure_floor(&ack(1000.0, 0.0));
        for step in 0..200 {
            delay.on_ack(&ack(1000.0 + f64::from(step), f64::from(step % 2) * spread));
        }
        assert_eq!(delay.varies(), varies, "{spread} ms of {}", delay.typical());
        assert_eq!(delay.stretch() > 1.0, varies);
        assert!(!delay.holds_up_all(), "only every other packet is slow");
        for step in 0..200 {
            delay.on_ack(&ack(1200.0 + f64::from(step), 40.0 + f64::from(step % 2) * spread));
        }
        assert!(delay.holds_up_all());
    }
}
