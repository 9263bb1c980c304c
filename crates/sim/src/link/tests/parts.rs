//! Tests of less common parts of links: traces, fluctuating rates, changing delays, CoDel, shared
//! losses.

use core::time::Duration;

use super::*;
use crate::loss::{LossTrace, LossTraceForm};
use crate::rate::DeliveryTrace;

fn traced(text: &str, delay_ms: u64) -> LinkConfig {
    let trace = DeliveryTrace::parse(text).expect("a trace");
    LinkConfig::from_trace(trace, Duration::from_millis(delay_ms))
}

fn arrivals(out: &[LinkOutput<u64>]) -> Vec<(u64, u64)> {
    out.iter()
        .filter_map(|output| match output {
            LinkOutput::Delivered(d) => Some((d.token, d.time.as_nanos() / 1_000_000)),
            LinkOutput::Dropped(_) => None,
        })
        .collect()
}

#[test]
fn a_trace_delivers_at_its_opportunities() {
    let mut link = Link::new(&traced("4\n4\n10\n", 20), 1, "test").expect("valid");
    assert_eq!(link.rate(), Bitrate::from_bps(3_600_000));
    for (token, size) in [(0, 500), (1, 1000), (2, 100), (3, 1500), (4, 1500)] {
        link.enqueue(Time::ZERO, size, Ecn::NotEct, token).expect("room");
    }
    // Packets 0 and 1 fill the first opportunity at 4 ms; packet 2 and most of 3 fill the second.
    // The opportunity at 10 ms carries the rest of 3 and most of 4, and the next one, at 14 ms, the
    // rest of 4.
    assert_eq!(arrivals(&drain(&mut link)), [(0, 24), (1, 24), (2, 24), (3, 30), (4, 34)]);
    // The unused rest of an opportunity is lost when the link becomes idle, and a packet that
    // arrives at 44 ms is too late for the two opportunities at 44 ms.
    link.enqueue(Time::from_millis(44), 40, Ecn::NotEct, 5).expect("room");
    assert_eq!(arrivals(&drain(&mut link)), [(5, 70)]);
}

#[test]
fn a_saturated_trace_delivers_its_capacity() {
    let config = LinkConfig { queue: Default::default(), ..traced("1\n2\n4\n7\n7\n11\n", 5) };
    let mut link = Link::new(&config, 1, "test").expect("valid");
    let out = constant_traffic(&mut link, 12_000, 700, Duration::from_millis(1));
    let delivered = link.counters().bytes_delivered as f64 * 8.0;
    let last = arrivals(&out).last().map(|(_, millis)| millis - 5).expect("some arrive");
    let capacity = link.capacity_integral(Time::ZERO, Time::from_millis(last));
    // On average 1.17 packets fit into each millisecond, so capacity is unused only while the link
    // is idle.
    assert_eq!(link.counters().packets_delivered, 12_000);
    assert!(delivered < capacity && delivered > 0.8 * capacity, "{delivered} {capacity}");
    // Four times the load fills every opportunity completely.
    let mut full = Link::new(&config, 1, "test").expect("valid");
    let out = constant_traffic(&mut full, 24_000, 1400, Duration::from_micros(500));
    let first_second: u64 = arrivals(&out).iter().filter(|(_, at)| *at <= 1_105).count() as u64;
    // 100 cycles of 6 opportunities carry 900 000 B, which may include part of an unfinished
    // packet.
    assert!((900_000 - 1400 * first_second) < 1400, "{first_second}");
}

#[test]
fn a_dark_trace_link_loses_what_is_under_way_and_starts_afresh() {
    let config = traced("5\n", 0).with_blackout(crate::rate::Blackout {
        start: Time::from_millis(12),
        end: Time::from_millis(21),
    });
    let mut link = Link::new(&config, 1, "test").expect("valid");
    for token in 0..4 {
        link.enqueue(Time::ZERO, 1500, Ecn::NotEct, token).expect("room");
    }
    let out = drain(&mut link);
    assert_eq!(arrivals(&out), [(0, 5), (1, 10)]);
    assert_eq!(link.counters().dropped_blackout, 2);
    link.enqueue(Time::from_millis(21), 1500, Ecn::NotEct, 4).expect("room");
    assert_eq!(arrivals(&drain(&mut link)), [(4, 25)]);
    // Two opportunities before the blackout, and two after it, at 25 and 30 ms.
    assert_eq!(link.capacity_integral(Time::ZERO, Time::from_millis(30)), 4.0 * 12_000.0);
}

#[test]
fn what_is_longer_than_the_mtu_is_dropped_at_once() {
    let mut link = link("rate=12mbit,delay=10ms,buffer=9p,mtu=1500B/1400B@20ms/9kB@30ms");
    let mut offer = |millis, size| {
        let refused = link.enqueue(Time::from_millis(millis), size, Ecn::NotEct, size.into());
        refused.err().map(|dropped| dropped.cause)
    };
    assert_eq!((offer(0, 1500), offer(0, 1501)), (None, Some(DropCause::TooLong)));
    assert_eq!((offer(20, 1400), offer(20, 1401)), (None, Some(DropCause::TooLong)));
    assert_eq!((offer(30, 9000), offer(30, 9001)), (None, Some(DropCause::TooLong)));
    assert_eq!((link.counters().dropped_too_long, link.counters().packets_in), (3, 6));
}

#[test]
fn a_changed_delay_holds_from_its_time_and_keeps_the_order() {
    let send = |text: &str| {
        let mut link = link(text);
        for (token, millis) in [(0, 0), (1, 8), (2, 9), (3, 40)] {
            link.enqueue(Time::from_millis(millis), 125, Ecn::NotEct, token).expect("room");
        }
        arrivals(&drain(&mut link))
    };
    // Each packet takes 1 ms to send. Packet 2 leaves at 10 ms, when the delay has fallen.
    let text = "rate=1mbit,delay=50ms/10ms@10ms/80ms@30ms";
    assert_eq!(send(text), [(0, 51), (1, 59), (2, 59), (3, 121)]);
    let reordered = send(&format!("{text},reorder"));
    assert_eq!(reordered, [(2, 20), (0, 51), (1, 59), (3, 121)]);
}

#[test]
fn a_fluctuating_link_serves_at_its_levels() {
    let text = "rate=5mbit,delay=10ms,fluctuation=1s/20%-100%/10%,buffer=100p";
    let mut link = link(text);
    // The load is 1250 B every 2 ms, or 5 Mb/s, so the transmitter is hardly ever idle.
    let out = constant_traffic(&mut link, 20_000, 1250, Duration::from_millis(2));
    assert_eq!(out.len(), 20_000);
    let busy = Time::from_secs(39);
    let delivered: f64 = arrivals(&out).iter().filter(|(_, at)| *at <= 39_010).count() as f64;
    let capacity = link.capacity_integral(Time::ZERO, busy);
    let ratio = delivered * 10_000.0 / capacity;
    assert!((ratio - 1.0).abs() < 0.02, "{ratio}");
    let nominal = 39.0 * 5e6;
    assert!((0.4..0.8).contains(&(capacity / nominal)), "{capacity}");
    assert_eq!(capacity, seeded(text, 1).capacity_integral(Time::ZERO, busy));
    assert_ne!(capacity, seeded(text, 2).capacity_integral(Time::ZERO, busy));
}

#[test]
fn a_contending_link_serves_at_its_nominal_rate_on_average() {
    let text = "rate=5mbit,delay=10ms,fluctuation=rts-cts/5,buffer=1000p";
    let mut link = link(text);
    // The load is 1250 B every 1.9 ms, which is more than the link carries.
    let out = constant_traffic(&mut link, 20_000, 1250, Duration::from_micros(1_900));
    let busy = Time::from_secs(38);
    let delivered = arrivals(&out).iter().filter(|(_, at)| *at <= 38_010).count() as f64;
    let capacity = link.capacity_integral(Time::ZERO, busy);
    assert_eq!(capacity, 38.0 * 5e6);
    let ratio = delivered * 10_000.0 / capacity;
    assert!((ratio - 1.0).abs() < 0.02, "{ratio}");
    let gaps: Vec<u64> = arrivals(&out).windows(2).map(|pair| pair[1].1 - pair[0].1).collect();
    let longest = gaps.iter().max().copied().unwrap_or(0);
    // Five stations share the channel, so some packets wait until the others have sent many
    // packets.
    assert!((10..60).contains(&longest), "{longest} ms between two arrivals");
    assert_ne!(
        out,
        constant_traffic(&mut seeded(text, 2), 20_000, 1250, Duration::from_micros(1_900))
    );
}

#[test]
fn controlled_delay_holds_a_standing_queue_near_its_target() {
    let run = |queue: &str| {
        let mut link = link(&format!("rate=10mbit,delay=10ms,buffer=3000p,{queue}"));
        // The load exceeds the rate by 10 % for 20 s, so without CoDel the queue would grow to 2 s.
        let out = constant_traffic(&mut link, 27_500, 1000, Duration::from_nanos(727_272));
        let mut late = Duration::ZERO;
        for output in &out {
            match output {
                LinkOutput::Dropped(drop) => {
                    // The time of a drop is the end of the previous packet's service, not the
                    // arrival time.
                    assert_eq!(drop.cause, DropCause::QueueEarly);
                    assert_eq!(drop.time.as_nanos() % 800_000, 0, "at an end of service");
                }
                LinkOutput::Delivered(d) if d.token > 20_000 => {
                    late = late.max(d.time.since(Time::from_nanos(d.token * 727_272)));
                }
                LinkOutput::Delivered(_) => {}
            }
        }
        (late, *link.counters())
    };
    let (late, counters) = run("codel");
    assert!(counters.dropped_early > 1_000 && counters.ecn_marks == 0, "{counters:?}");
    let (never, unmanaged) = run("codel,ecn");
    // Marks have no effect on a sender that ignores them.
    assert!(unmanaged.ecn_marks > 1_000 && unmanaged.dropped_early == 0, "{unmanaged:?}");
    assert!(never > Duration::from_secs(1) && late < never / 4, "{late:?} {never:?}");
}

#[test]
fn links_of_a_group_lose_together_and_others_do_not() {
    let lost = |place: u32, theta: &str, name: &str| -> Vec<u64> {
        let text = format!(
            "rate=10mbit,delay=0ms,loss=20%,buffer=9000p,correlation=air/{place}/{theta}@1ms"
        );
        let config: LinkConfig = text.parse().expect("valid");
        let mut link = Link::new(&config, 3, name).expect("valid");
        let out = constant_traffic(&mut link, 5_000, 1250, Duration::from_millis(1));
        out.iter()
            .filter_map(|o| if let LinkOutput::Dropped(d) = o { Some(d.token) } else { None })
            .collect()
    };
    let first = lost(1, "100%", "a");
    assert!((850..1_150).contains(&first.len()), "{}", first.len());
    assert_eq!(first, lost(2, "100%", "b"));
    assert_ne!(first, lost(2, "0%", "b"));
}

#[test]
fn a_loss_trace_drops_what_it_names() {
    let trace = LossTrace::parse("1\n4\n", LossTraceForm::Indices).expect("a trace");
    let config = LinkConfig::new(Bitrate::from_mbps(1.0), Duration::ZERO)
        .with_loss(crate::loss::LossConfig::Trace(trace));
    let mut link = Link::new(&config, 1, "test").expect("valid");
    let out = constant_traffic(&mut link, 6, 125, Duration::from_millis(2));
    let tokens: Vec<u64> = arrivals(&out).iter().map(|(token, _)| *token).collect();
    assert_eq!(tokens, [0, 2, 3, 5]);
}
