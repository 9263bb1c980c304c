mod codel;

use core::time::Duration;

use anabranch_types::{Bitrate, DataSize, Probability, Rng, Time};

use super::*;

fn packet(size: u32) -> Packet<u32> {
    Packet { token: size, size, ecn: Ecn::NotEct, arrived: Time::ZERO }
}

fn drop_tail(limit: QueueLimit) -> Queue<u32> {
    Queue::new(&QueueConfig::default(), limit, Rng::new(1)).expect("valid configuration")
}

fn red(config: RedConfig) -> Red {
    Red::new(&config, QueueLimit::Packets(60), Rng::new(1))
}

#[test]
fn drop_tail_counts_bytes_or_packets() {
    let mut queue = drop_tail(QueueLimit::Bytes(DataSize::from_bytes(3000)));
    assert!(queue.offer(packet(1500), None).is_ok());
    assert!(queue.offer(packet(1500), None).is_ok());
    let (refused, why) = queue.offer(packet(1), None).expect_err("no byte is free");
    assert_eq!((refused.token, why), (1, Refusal::Full));
    assert_eq!((queue.len(), queue.bytes()), (2, 3000));
    assert_eq!(queue.pop().map(|p| p.token), Some(1500));
    assert_eq!(queue.bytes(), 1500);

    let mut queue = drop_tail(QueueLimit::Packets(2));
    assert!(queue.offer(packet(60_000), None).is_ok());
    assert!(queue.offer(packet(60_000), None).is_ok());
    assert!(queue.offer(packet(1), None).is_err());
}

#[test]
fn an_empty_queue_takes_even_an_oversized_packet() {
    let mut queue = drop_tail(QueueLimit::Bytes(DataSize::from_bytes(1500)));
    assert!(queue.offer(packet(9000), None).is_ok());
    assert!(queue.offer(packet(40), None).is_err());
}

#[test]
fn red_averages_a_hand_computed_trace() {
    let mut red = red(RedConfig {
        weight: 0.25,
        thresholds: RedThresholds::Packets { min: 50.0, max: 60.0 },
        ..RedConfig::default()
    });
    // The average goes 0 → 1 → 2.75 → 5.0625. Then 0.8 ms of idle time at 10 Mb/s count as two
    // packets of 500 B, a factor of 0.75². The last arrival finds 4 packets.
    let idle = Idle { lasted: Duration::from_micros(800), rate: Bitrate::from_mbps(10.0) };
    let steps: [(u32, Option<Idle>, f64); 5] = [
        (4, None, 1.0),
        (8, None, 2.75),
        (12, None, 5.0625),
        (0, Some(idle), 2.847_656_25),
        (4, None, 3.135_742_187_5),
    ];
    for (waiting, idle, average) in steps {
        assert_eq!(red.on_arrival(f64::from(waiting), idle, false, false), RedVerdict::Admit);
        assert!((red.average() - average).abs() < 1e-12, "{} {average}", red.average());
    }
}

#[test]
fn red_probabilities_follow_the_gentle_line() {
    // With a weight of one, the average is the current queue length.
    let config = RedConfig { weight: 1.0, ..RedConfig::default() };
    let mut gentle = red(config.clone());
    assert_eq!(gentle.thresholds(), (10.0, 30.0));
    let expected =
        [(9, 0.0), (10, 0.0), (20, 0.05), (29, 0.095), (30, 0.1), (45, 0.55), (60, 1.0), (99, 1.0)];
    for (waiting, base) in expected {
        gentle.on_arrival(f64::from(waiting), None, false, false);
        let got = gentle.base_probability();
        assert!((got - base).abs() < 1e-12, "{waiting}: {got}");
    }
    let mut abrupt = red(RedConfig { gentle: false, ..config });
    abrupt.on_arrival(30.0, None, false, false);
    assert_eq!(abrupt.base_probability(), 1.0);
}

#[test]
fn red_evens_out_the_gaps_between_marks() {
    // With a constant p_b of 0.05, the k-th arrival after a mark has p_a = 0.05 / (1 − 0.05k), so
    // the gap is uniform on 1..=19.
    let config = RedConfig { weight: 1.0, ..RedConfig::default() };
    let mut red = red(config);
    let (mut marks, mut gap, mut longest) = (0_u32, 0_u32, 0_u32);
    let mut total = 0_u32;
    for _ in 0..200_000 {
        gap += 1;
        match red.on_arrival(20.0, None, true, false) {
            RedVerdict::Admit => {}
            RedVerdict::Mark => {
                (marks, total, longest) = (marks + 1, total + gap, longest.max(gap));
                gap = 0;
            }
            RedVerdict::Drop => panic!("capable packets are marked"),
        }
    }
    let mean = f64::from(total) / f64::from(marks);
    assert!((mean - 10.0).abs() < 0.2, "{mean}");
    assert!(longest <= 20, "{longest}");
}

#[test]
fn red_in_the_manner_of_ns2_waits_between_marks() {
    // With a constant p_b of 0.05, gaps are uniform from 20 to 39.
    let config = RedConfig { weight: 1.0, ..RedConfig::ns2() };
    let mut red = red(config);
    let (mut marks, mut gap, mut shortest, mut longest, mut total) = (0_u32, 0, u32::MAX, 0, 0_u32);
    for _ in 0..300_000 {
        gap += 1;
        if red.on_arrival(20.0, None, true, false) == RedVerdict::Mark {
            if marks > 0 {
                (shortest, longest) = (shortest.min(gap), longest.max(gap));
                total += gap;
            }
            (marks, gap) = (marks + 1, 0);
        }
    }
    let mean = f64::from(total) / f64::from(marks - 1);
    assert!((mean - 29.5).abs() < 0.3, "{mean}");
    assert!(shortest == 20 && longest == 39, "{shortest} {longest}");
}

#[test]
fn red_in_the_manner_of_ns2_drops_the_capable_beyond_the_upper_threshold() {
    let with = |average: f64| {
        let mut red = red(RedConfig { weight: 1.0, ..RedConfig::ns2() });
        let verdicts = (0..1_000).map(|_| red.on_arrival(average, None, true, false));
        let verdicts: Vec<RedVerdict> = verdicts.collect();
        let seen = |verdict| verdicts.contains(&verdict);
        (seen(RedVerdict::Mark), seen(RedVerdict::Drop))
    };
    assert_eq!(with(29.0), (true, false));
    assert_eq!(with(31.0), (false, true));
    // A high average has no effect while at most one packet waits.
    let mut red = red(RedConfig { weight: 1e-9, ..RedConfig::ns2() });
    let thresholds = RedThresholds::Packets { min: 0.0, max: 1e-6 };
    let mut eager = self::red(RedConfig { thresholds, weight: 1.0, ..RedConfig::ns2() });
    assert_eq!(red.on_arrival(1.0, None, true, false), RedVerdict::Admit);
    assert_eq!(eager.on_arrival(1.0, None, true, false), RedVerdict::Admit);
    assert_eq!(eager.on_arrival(2.0, None, true, false), RedVerdict::Drop);
}

#[test]
fn red_marks_the_capable_drops_the_rest_and_everyone_beyond_twice_max() {
    let config =
        RedConfig { weight: 1.0, max_probability: Probability::ONE, ..RedConfig::default() };
    let mut red = red(config.clone());
    assert_eq!(red.on_arrival(30.0, None, true, false), RedVerdict::Mark);
    assert_eq!(red.on_arrival(30.0, None, false, false), RedVerdict::Drop);
    assert_eq!(red.on_arrival(60.0, None, true, false), RedVerdict::Drop);
    assert_eq!(red.on_arrival(0.0, None, true, true), RedVerdict::Drop);
    let mut deaf = self::red(RedConfig { ecn: false, ..config });
    assert_eq!(deaf.on_arrival(30.0, None, true, false), RedVerdict::Drop);
}

#[test]
fn a_red_queue_sets_the_codepoint_and_counts_only_new_marks() {
    let config = QueueConfig {
        limit: None,
        discipline: Discipline::Red(RedConfig {
            thresholds: RedThresholds::Packets { min: 0.0, max: 1e-9 },
            weight: 1.0,
            max_probability: Probability::ONE,
            ..RedConfig::default()
        }),
    };
    let limit = QueueLimit::Packets(60);
    let mut queue = Queue::new(&config, limit, Rng::new(1)).expect("valid configuration");
    assert_eq!(queue.offer(packet(40), None).ok(), Some(Admission::Unchanged));
    let (_, why) = queue.offer(packet(40), None).expect_err("an average of one is beyond 2·max");
    assert_eq!(why, Refusal::Early);

    let config = QueueConfig {
        discipline: Discipline::Red(RedConfig {
            thresholds: RedThresholds::Packets { min: 0.5, max: 1.0 },
            weight: 1.0,
            max_probability: Probability::ONE,
            ..RedConfig::default()
        }),
        ..config
    };
    let mut queue = Queue::new(&config, limit, Rng::new(1)).expect("valid configuration");
    let with = |ecn| Packet { token: 0, size: 40, ecn, arrived: Time::ZERO };
    assert_eq!(queue.offer(with(Ecn::Ect0), None).ok(), Some(Admission::Unchanged));
    assert_eq!(queue.offer(with(Ecn::Ect1), None).ok(), Some(Admission::Marked));
    queue.pop();
    assert_eq!(queue.offer(with(Ecn::Ce), None).ok(), Some(Admission::Unchanged));
    assert_eq!(queue.pop().map(|p| p.ecn), Some(Ecn::Ce));
}

#[test]
fn parameters_out_of_range_are_refused() {
    let with =
        |red: RedConfig| QueueConfig { limit: None, discipline: Discipline::Red(red) }.validate();
    assert_eq!(with(RedConfig::default()), Ok(()));
    assert_eq!(
        with(RedConfig { weight: 0.0, ..RedConfig::default() }),
        Err(QueueConfigError::Weight)
    );
    assert_eq!(
        with(RedConfig { weight: f64::NAN, ..RedConfig::default() }),
        Err(QueueConfigError::Weight)
    );
    let thresholds = RedThresholds::Packets { min: 5.0, max: 5.0 };
    assert_eq!(
        with(RedConfig { thresholds, ..RedConfig::default() }),
        Err(QueueConfigError::Thresholds)
    );
    let codel = |target, interval| {
        let (target, interval) = (Duration::from_millis(target), Duration::from_millis(interval));
        let discipline = Discipline::Codel(CodelConfig { target, interval, ecn: true });
        QueueConfig { limit: None, discipline }.validate()
    };
    assert_eq!(codel(5, 100), Ok(()));
    for (target, interval) in [(0, 100), (5, 4), (5, 60_001)] {
        assert_eq!(codel(target, interval), Err(QueueConfigError::Codel));
    }
    for limit in [QueueLimit::Packets(0), QueueLimit::Bytes(DataSize::from_bytes(1499))] {
        let config = QueueConfig { limit: Some(limit), discipline: Discipline::DropTail };
        assert_eq!(config.validate(), Err(QueueConfigError::Limit));
    }
}
