use core::time::Duration;

use super::*;

fn deliveries(out: &[LinkOutput<u64>]) -> Vec<&Delivery<u64>> {
    out.iter()
        .filter_map(|o| if let LinkOutput::Delivered(d) = o { Some(d) } else { None })
        .collect()
}

fn drops(out: &[LinkOutput<u64>], cause: DropCause) -> Vec<(u64, Time)> {
    out.iter()
        .filter_map(|o| match o {
            LinkOutput::Dropped(d) if d.cause == cause => Some((d.token, d.time)),
            _ => None,
        })
        .collect()
}

/// A hash of all outputs, to compare runs.
fn digest(out: &[LinkOutput<u64>]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut mix = |value: u64| hash = (hash ^ value).wrapping_mul(0x0000_0100_0000_01b3);
    for output in out {
        match output {
            LinkOutput::Delivered(d) => {
                mix(d.time.as_nanos());
                mix(d.token);
                mix(u64::from(d.size) << 2 | u64::from(d.ecn.bits()));
            }
            LinkOutput::Dropped(d) => {
                mix(d.time.as_nanos());
                mix(d.token);
                mix(1 << 40 | d.cause as u64);
            }
        }
    }
    hash
}

#[test]
fn serialisation_does_not_drift() {
    // At 7 Mb/s, 1000 B take 1 142 857 1/7 ns, and 7 000 such packets exactly 8 s.
    let mut link = link("rate=7mbit,delay=0ms,buffer=10000p");
    for token in 0..7_000 {
        link.enqueue(Time::ZERO, 1000, Ecn::NotEct, token).expect("room for all");
    }
    let out = drain(&mut link);
    let arrivals = deliveries(&out);
    assert_eq!(arrivals[0].time, Time::from_nanos(1_142_857));
    assert_eq!(arrivals[6].time, Time::from_millis(8));
    assert_eq!(arrivals[6_999].time, Time::from_secs(8));
    assert!(arrivals.iter().enumerate().all(|(i, d)| d.token == i as u64));
}

#[test]
fn the_remainder_survives_a_change_of_rate_and_ends_with_the_busy_period() {
    // 1 B takes 2666 2/3 ns at 3 Mb/s.
    let mut link = link("rate=3mbit/6mbit@2us,delay=0ms,buffer=100p");
    for token in 0..3 {
        link.enqueue(Time::ZERO, 1, Ecn::NotEct, token).expect("room");
    }
    // The first packet ends at 2666 2/3 ns. The second has twice the rate and ends at 2666 2/3 +
    // 1333 1/3 = 4000 ns, the third at 5333 1/3 ns.
    let out = drain(&mut link);
    let nanos: Vec<u64> = deliveries(&out).iter().map(|d| d.time.as_nanos()).collect();
    assert_eq!(nanos, [2_666, 4_000, 5_333]);
    link.enqueue(Time::from_nanos(10_000), 1, Ecn::NotEct, 3).expect("room");
    assert_eq!(link.next_event(), Some(Time::from_nanos(11_333)));
}

#[test]
fn a_packet_in_service_finishes_at_the_old_rate() {
    let mut link = link("rate=8mbit/80kbit@500us,delay=1ms,buffer=100p");
    link.enqueue(Time::ZERO, 1000, Ecn::NotEct, 0).expect("room");
    link.enqueue(Time::ZERO, 1000, Ecn::NotEct, 1).expect("room");
    let out = drain(&mut link);
    let millis: Vec<u64> = deliveries(&out).iter().map(|d| d.time.as_micros()).collect();
    assert_eq!(millis, [2_000, 102_000]);
}

#[test]
fn the_default_buffer_is_one_bandwidth_delay_product() {
    let bytes = |text: &str| {
        let config: LinkConfig = text.parse().expect("valid");
        match config.buffer() {
            crate::queue::QueueLimit::Bytes(bytes) => bytes.as_bytes(),
            crate::queue::QueueLimit::Packets(_) => 0,
        }
    };
    assert_eq!(bytes("rate=10mbit,delay=20ms"), 50_000);
    assert_eq!(bytes("rate=10mbit/20mbit@1s,delay=20ms"), 100_000);
    assert_eq!(bytes("rate=100kbit,delay=1ms"), 15_000);
}

#[test]
fn overflow_is_dropped_at_the_tail_and_handed_back() {
    let mut link = link("rate=8mbit,delay=0ms,buffer=2p");
    let refused: Vec<u64> = (0..5)
        .filter_map(|token| link.enqueue(Time::ZERO, 1000, Ecn::NotEct, token).err())
        .map(|drop| {
            assert_eq!(drop.cause, DropCause::QueueFull);
            drop.token
        })
        .collect();
    // One packet is in service, and two wait.
    assert_eq!(refused, [3, 4]);
    assert_eq!(deliveries(&drain(&mut link)).len(), 3);
    assert_eq!(link.counters().dropped_full, 2);
}

#[test]
fn lost_packets_use_the_bottleneck_and_are_accounted_for() {
    let mut link = link("rate=8mbit,delay=10ms,loss=30%,buffer=20000p");
    for token in 0..10_000 {
        link.enqueue(Time::ZERO, 1000, Ecn::NotEct, token).expect("room for all");
    }
    let out = drain(&mut link);
    assert_eq!(out.len(), 10_000);
    let last = deliveries(&out).last().map(|d| (d.time, d.token)).expect("some arrive");
    // Lost packets, too, took 1 ms of the transmitter each.
    assert_eq!(last.0, Time::from_millis(11 + last.1));
    let counters = *link.counters();
    assert_eq!(counters.packets_serialised, 10_000);
    assert_eq!(counters.lost_random + counters.packets_delivered, 10_000);
    // The tolerance, 229, is five standard deviations of the binomial distribution.
    assert!(counters.lost_random.abs_diff(3_000) < 229, "{counters:?}");
    let share = counters.lost_random as f64 / 10_000.0;
    assert!((counters.realised_loss().get() - share).abs() < 1e-12);
}

#[test]
fn a_blackout_drops_what_waits_and_what_arrives_but_not_what_flies() {
    let mut link = link("rate=8mbit,delay=10ms,buffer=100p,blackout=2500us-10ms");
    for token in 0..5 {
        link.enqueue(Time::ZERO, 1000, Ecn::NotEct, token).expect("room");
    }
    let in_the_dark = link.enqueue(Time::from_millis(5), 1000, Ecn::NotEct, 5);
    assert_eq!(in_the_dark.map_err(|d| d.cause), Err(DropCause::Blackout));
    link.enqueue(Time::from_millis(10), 1000, Ecn::NotEct, 6).expect("light again");
    let out = drain(&mut link);
    let tokens: Vec<u64> = deliveries(&out).iter().map(|d| d.token).collect();
    assert_eq!(tokens, [0, 1, 6]);
    let dark = Time::from_micros(2_500);
    assert_eq!(drops(&out, DropCause::Blackout), [(2, dark), (3, dark), (4, dark)]);
    assert_eq!(link.counters().dropped_blackout, 4);
}

#[test]
fn jitter_keeps_order_unless_told_otherwise() {
    let run = |flags: &str| {
        let mut link = link(&format!("rate=80mbit,delay=5ms,jitter=2ms{flags}"));
        let out = constant_traffic(&mut link, 2_000, 1000, Duration::from_micros(110));
        let arrivals: Vec<(u64, u64)> =
            deliveries(&out).iter().map(|d| (d.token, d.time.as_micros())).collect();
        assert_eq!(arrivals.len(), 2_000);
        for (token, micros) in &arrivals {
            let delay = micros - token * 110;
            assert!((5_100..=7_100).contains(&delay), "{token}: {delay}");
        }
        assert!(arrivals.windows(2).all(|pair| pair[0].1 <= pair[1].1));
        arrivals.windows(2).filter(|pair| pair[0].0 > pair[1].0).count()
    };
    assert_eq!(run(""), 0);
    assert!(run(",reorder") > 100);
}

#[test]
fn red_marks_on_a_loaded_link() {
    let mut link = link("rate=8mbit,delay=20ms,buffer=40p,ecn");
    let out = constant_traffic(&mut link, 20_000, 1000, Duration::from_micros(990));
    let counters = *link.counters();
    let marked = deliveries(&out).iter().filter(|d| d.ecn == Ecn::Ce).count() as u64;
    assert!(marked > 100, "{counters:?}");
    assert_eq!(marked, counters.ecn_marks);
    assert_eq!(counters.packets_in, counters.packets_delivered + counters.dropped_by_queue());
}

#[test]
fn every_token_comes_back_once() {
    let text = "rate=8mbit/2mbit@300ms,delay=15ms,loss=markov:5%/60%@50ms,jitter=9ms,reorder,\
                buffer=30p,ecn,blackout=100ms-120ms+500ms-520ms";
    for seed in 0..20 {
        let mut link = seeded(text, seed);
        let out = constant_traffic(&mut link, 2_000, 900, Duration::from_micros(700));
        let mut tokens: Vec<u64> = out
            .iter()
            .map(|o| match o {
                LinkOutput::Delivered(d) => d.token,
                LinkOutput::Dropped(d) => d.token,
            })
            .collect();
        tokens.sort_unstable();
        assert!(tokens.into_iter().eq(0..2_000), "seed {seed}");
        assert_eq!(link.packets_inside(), 0);
    }
}

#[test]
fn outcomes_do_not_depend_on_when_the_link_is_polled() {
    let text = "rate=8mbit/3mbit@200ms,delay=15ms,loss=markov:5%/60%@50ms,jitter=2ms,\
                buffer=30p,ecn,blackout=100ms-120ms";
    let mut often = link(text);
    let reference = constant_traffic(&mut often, 1_000, 900, Duration::from_micros(600));
    let mut seldom = link(text);
    let mut out = Vec::new();
    for token in 0..1_000 {
        let now = Time::from_micros(token * 600);
        if let Err(drop) = seldom.enqueue(now, 900, Ecn::Ect0, token) {
            out.push(LinkOutput::Dropped(drop));
        }
    }
    seldom.advance(Time::from_secs(60), |output| out.push(output));
    assert_eq!(often.counters(), seldom.counters());
    let arrivals = |out: &[LinkOutput<u64>]| -> Vec<(u64, Time)> {
        deliveries(out).iter().map(|d| (d.token, d.time)).collect()
    };
    assert_eq!(arrivals(&reference), arrivals(&out));
}

#[test]
fn links_of_other_names_do_not_disturb_each_other() {
    let config: LinkConfig = "rate=8mbit,delay=1ms,loss=50%".parse().expect("valid");
    let run = |names: &[&str]| -> Vec<u64> {
        let mut links: Vec<Link<u64>> =
            names.iter().map(|name| Link::new(&config, 9, name).expect("valid")).collect();
        links
            .iter_mut()
            .map(|link| digest(&constant_traffic(link, 200, 500, Duration::from_millis(1))))
            .collect()
    };
    let alone = run(&["b"]);
    let together = run(&["a", "b", "c"]);
    assert_eq!(alone[0], together[1]);
    assert_ne!(together[0], together[1]);
}

/// The digests were recorded once. A change means that existing results can no longer be
/// reproduced.
#[test]
fn golden_runs() {
    let golden = [
        ("rate=10mbit,delay=20ms,loss=5%", 0xa545_d169_0ee3_d77e),
        ("rate=10mbit,delay=20ms,loss=markov:25%/75%@250ms,ecn", 0x3753_83ad_2ac4_4efa),
        ("rate=10mbit,delay=20ms,loss=ge:1%/20%,jitter=3ms", 0x024e_021d_c572_20fa),
        (
            "rate=7mbit/9mbit@1s,delay=20ms,loss=1%/50%@2s,jitter=3ms,reorder,blackout=3s-3500ms",
            0x17af_6e12_0fc6_0675,
        ),
    ];
    for (text, expected) in golden {
        let run = || {
            let mut link = seeded(text, 42);
            digest(&constant_traffic(&mut link, 5_000, 1250, Duration::from_micros(950)))
        };
        assert_eq!(run(), run(), "{text}");
        assert_eq!(run(), expected, "{text}");
    }
}

#[test]
fn jitter_of_any_law_keeps_order_without_taking_time() {
    for law in ["uniform", "normal", "gamma", "log-normal"] {
        let text = format!("rate=80mbit,delay=20ms,jitter=20ms,jitter-law={law}");
        let run = |more: &str| {
            let mut link = link(&format!("{text}{more}"));
            constant_traffic(&mut link, 5_000, 1000, Duration::from_micros(200))
        };
        let arrivals = |outputs: &[LinkOutput<u64>]| -> Vec<(u64, Time)> {
            let mut all: Vec<_> = outputs
                .iter()
                .map(|output| match output {
                    LinkOutput::Delivered(d) => (d.token, d.time),
                    LinkOutput::Dropped(d) => panic!("{d:?}"),
                })
                .collect();
            all.sort();
            all
        };
        let (ordered, free) = (arrivals(&run("")), arrivals(&run(",reorder")));
        assert_eq!((ordered.len(), free.len()), (5_000, 5_000));
        assert!(free.windows(2).any(|pair| pair[1].1 < pair[0].1), "{law}");
        // When order is kept, a packet arrives at the latest of its own and all earlier packets'
        // arrival times.
        let mut latest = Time::ZERO;
        for ((_, ordered), (_, free)) in ordered.iter().zip(&free) {
            latest = latest.max(*free);
            assert_eq!(*ordered, latest, "{law}");
        }
    }
}
