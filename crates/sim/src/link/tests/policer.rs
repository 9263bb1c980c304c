//! Tests of policers.

use core::time::Duration;

use super::*;

#[test]
fn a_policer_lets_its_burst_and_its_rate_through_and_drops_the_rest() {
    // For 10 s, 20 Mb/s are offered in packets of 1250 B; the policer allows 8 Mb/s and 10 kB.
    let mut link = link("rate=100mbit,delay=1ms,policer=8mbit/10kB");
    let out = constant_traffic(&mut link, 20_000, 1250, Duration::from_micros(500));
    let counters = link.counters();
    // The policer passes 10 000 B at once, and then 1 MB/s until the last packet at 9.9995 s.
    assert_eq!(counters.bytes_delivered / 1250, (10_000 + 9_999_500) / 1250);
    assert_eq!(counters.dropped_policed + counters.packets_delivered, 20_000);
    let first_drop = out.iter().find_map(|output| match output {
        LinkOutput::Dropped(drop) => Some((drop.token, drop.cause)),
        LinkOutput::Delivered(_) => None,
    });
    // Between two packets of 1250 B the bucket gains 500 B, so 12 packets pass before it holds too
    // little for the next.
    assert_eq!(first_drop, Some((12, DropCause::Policed)));
    // No packet waits: accepted packets are sent at the link's own rate.
    for output in &out {
        if let LinkOutput::Delivered(delivery) = output {
            let sent = Time::from_micros(500 * delivery.token);
            assert_eq!(delivery.time, sent + Duration::from_micros(1_100));
        }
    }
}

#[test]
fn a_rest_fills_the_bucket_and_no_more() {
    let mut link = link("rate=1gbit,delay=0ms,policer=1mbit/3000B");
    let mut offer = |millis| {
        let now = Time::from_millis(millis);
        (0..4).filter(|token| link.enqueue(now, 1500, Ecn::NotEct, *token).is_ok()).count()
    };
    assert_eq!((offer(0), offer(11), offer(12), offer(60_000)), (2, 0, 1, 2));
}

#[test]
fn capacity_is_at_most_what_the_policer_allows() {
    let bits = |text: &str| link(text).capacity_integral(Time::ZERO, Time::from_secs(10));
    let text = "rate=20mbit/5mbit@5s,delay=1ms,loss=10%";
    assert_eq!(bits(text), 0.9 * 125e6);
    assert_eq!(bits(&format!("{text},policer=8mbit/64KiB")), 0.9 * 65e6);
}
