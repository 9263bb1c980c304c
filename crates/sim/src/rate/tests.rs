use anabranch_types::{Bitrate, Time};

use super::*;

fn mbps(value: u64) -> Bitrate {
    Bitrate::from_bps(value * 1_000_000)
}

#[test]
fn a_schedule_holds_each_value_from_its_time_on() {
    let schedule =
        Schedule::new(1, [(Time::from_secs(1), 2), (Time::from_secs(3), 3)]).expect("times rise");
    assert_eq!(schedule.at(Time::ZERO), 1);
    assert_eq!(schedule.at(Time::from_nanos(999_999_999)), 1);
    assert_eq!(schedule.at(Time::from_secs(1)), 2);
    assert_eq!(schedule.at(Time::MAX), 3);
}

#[test]
fn a_cursor_agrees_with_lookup() {
    let schedule =
        Schedule::new(1, [(Time::from_secs(1), 2), (Time::from_secs(3), 3)]).expect("times rise");
    let mut cursor = schedule.cursor();
    for millis in (0..5_000).step_by(250) {
        let now = Time::from_millis(millis);
        cursor.advance(now);
        assert_eq!(cursor.current(), schedule.at(now), "{now}");
        assert!(cursor.next_change() > now);
    }
    cursor.step();
    assert_eq!((cursor.current(), cursor.next_change()), (3, Time::MAX));
}

#[test]
fn times_must_rise() {
    assert!(Schedule::new(1, [(Time::ZERO, 2)]).is_err());
    let repeated = [(Time::from_secs(1), 2), (Time::from_secs(1), 3)];
    let error = Schedule::new(1, repeated).expect_err("same time twice");
    assert_eq!((error.time, error.after), (Time::from_secs(1), Time::from_secs(1)));
}

#[test]
fn blackouts_cut_holes_and_the_rate_underneath_returns() {
    let rate = Schedule::new(mbps(10), [(Time::from_secs(4), mbps(20))]).expect("times rise");
    let blackouts = [
        Blackout { start: Time::from_secs(3), end: Time::from_secs(5) },
        Blackout { start: Time::from_secs(4), end: Time::from_secs(6) },
        Blackout { start: Time::from_secs(8), end: Time::from_secs(9) },
    ];
    let expected = [(0, 10), (3, 0), (6, 20), (8, 0), (9, 20)]
        .map(|(secs, rate)| (Time::from_secs(secs), mbps(rate)));
    assert_eq!(darken(&rate, &blackouts).steps(), expected);
}

mod contention {
    use super::*;
    use crate::wireless::bianchi::{Access, Channel};

    /// Service times of packets of 750 bytes at 3 Mb/s, divided by their mean of 2 ms.
    fn times(access: Access, stations: u32) -> Vec<f64> {
        let config = ContendedRate { access, stations };
        let mut course = ContendedCourse::new(&config, 1, "link.test.rate").expect("valid");
        let time = |_| course.finish(Time::ZERO, 750, mbps(3)).as_nanos() as f64 / 2e6;
        (0..100_000).map(time).collect()
    }

    /// Before its own success, a station waits through a geometrically distributed number of
    /// collisions and successes of others. A geometrically distributed number of idle slots
    /// precedes each of these busy slots.
    #[test]
    fn service_times_have_the_mean_and_the_deviation_of_the_slots() {
        for access in [Access::Basic, Access::RtsCts] {
            for stations in [1, 2, 5, 10] {
                let slots = Channel::fhss().slots(access, stations, 1023);
                let busy = 1.0 - slots.idle;
                let own = slots.success / busy / f64::from(stations);
                let other = slots.success / busy - own;
                let collision = 1.0 - own - other;
                let idle_mean = slots.idle / busy * slots.idle_seconds;
                let idle_variance = slots.idle / busy.powi(2) * slots.idle_seconds.powi(2);
                let (success, lost) = (slots.success_seconds, slots.collision_seconds);
                let before = |power: i32| {
                    (other * success.powi(power) + collision * lost.powi(power))
                        / (1.0 - own).max(1e-9)
                };
                let (wait, spread) =
                    (idle_mean + before(1), idle_variance + before(2) - before(1).powi(2));
                let waits = (1.0 - own) / own;
                let mean = waits * wait + idle_mean + success;
                let variance = waits * spread + waits / own * wait.powi(2) + idle_variance;
                let expected = variance.sqrt() / mean;

                let times = times(access, stations);
                let n = times.len() as f64;
                let measured = times.iter().sum::<f64>() / n;
                let deviation =
                    (times.iter().map(|time| (time - measured).powi(2)).sum::<f64>() / n).sqrt();
                assert!((measured - 1.0).abs() < 0.01, "{access:?} {stations}: mean {measured}");
                assert!(
                    (deviation / expected - 1.0).abs() < 0.02,
                    "{access:?} {stations}: deviation {deviation}, expected {expected}"
                );
            }
        }
    }

    #[test]
    fn nobody_contends_in_turns_or_in_a_crowd_without_end() {
        for (access, stations) in [(Access::Tdma, 3), (Access::Basic, 0), (Access::RtsCts, 257)] {
            let config = ContendedRate { access, stations };
            assert_eq!(config.validate(), Err(RateError::Stations), "{config:?}");
        }
    }
}

mod random {
    use core::time::Duration;

    use super::*;

    fn course(seed: u64) -> RandomCourse {
        let config = RandomRate::ptcp(Duration::from_secs(1));
        RandomCourse::new(&config, seed, "link.test.rate").expect("valid")
    }

    #[test]
    fn levels_are_tenths_with_half_weight_at_the_ends() {
        let mut course = course(1);
        let n = 80_000;
        let mut counts = [0_u32; 11];
        let mut sum = 0.0;
        for second in 0..n {
            course.advance(Time::from_secs(second));
            let tenths = course.share() * 10.0;
            assert!((tenths - tenths.round()).abs() < 1e-9, "{tenths}");
            counts[tenths.round() as usize] += 1;
            sum += course.share();
        }
        assert_eq!(counts[..2], [0, 0]);
        // The tolerances are five standard deviations: 10000 ± 5·94 for the inner levels, and 5000
        // ± 5·69 for the first and the last level, which have half the probability.
        for (tenth, count) in counts.iter().enumerate().skip(2) {
            let (expected, slack) =
                if tenth == 2 || tenth == 10 { (5_000, 345) } else { (10_000, 470) };
            assert!(count.abs_diff(expected) < slack, "{counts:?}");
        }
        let mean = sum / n as f64;
        assert!((mean - 0.6).abs() < 0.005, "{mean}");
    }

    #[test]
    fn a_level_holds_its_period_and_does_not_depend_on_the_way_there() {
        let (mut stepped, mut jumped) = (course(3), course(3));
        for millis in (0..20_000).step_by(250) {
            let now = Time::from_millis(millis);
            stepped.advance(now);
            assert_eq!(stepped.next_change(), Time::from_secs(millis / 1_000 + 1));
        }
        jumped.advance(Time::from_millis(19_999));
        assert_eq!(stepped.share(), jumped.share());
        jumped.advance(Time::MAX);
        assert_eq!(jumped.next_change(), Time::MAX);
        let shares = |seed| -> Vec<f64> {
            let mut course = course(seed);
            let mut at = |second| {
                course.advance(Time::from_secs(second));
                course.share()
            };
            (0..20).map(&mut at).collect()
        };
        assert_eq!(shares(7), shares(7));
        assert_ne!(shares(7), shares(8));
    }

    #[test]
    fn a_process_joins_nominal_rate_levels_and_blackouts() {
        let rate = Schedule::new(mbps(5), [(Time::from_secs(10), mbps(50))]).expect("times rise");
        let dark = [Blackout { start: Time::from_secs(4), end: Time::from_secs(6) }];
        let random = Fluctuation::Random(RandomRate::ptcp(Duration::from_secs(1)));
        let mut process =
            RateProcess::new(&rate, &random, &dark, 3, "link.test.rate").expect("valid");
        let mut levels = course(3);
        for second in 0..20 {
            let now = Time::from_secs(second);
            process.advance(now);
            levels.advance(now);
            let nominal = if second < 10 { 5e6 } else { 50e6 };
            let share = if (4..6).contains(&second) { 0.0 } else { levels.share() };
            let expected = (nominal * share).round() as u64;
            assert_eq!(process.current().as_bps(), expected, "{second}");
            assert_eq!(process.next_change(), Time::from_secs(second + 1));
        }
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let base = RandomRate::ptcp(Duration::from_secs(1));
        assert_eq!(base.validate(), Ok(()));
        let short = Duration::from_micros(1);
        assert_eq!(RandomRate { period: short, ..base }.validate(), Err(RateError::Period(short)));
        let wrong = [
            RandomRate { least: 0.0, ..base },
            RandomRate { least: 0.04, ..base },
            RandomRate { least: 1.1, ..base },
            RandomRate { most: 11.0, ..base },
            RandomRate { step: 0.0, ..base },
            RandomRate { step: f64::NAN, ..base },
            RandomRate { most: f64::NAN, ..base },
        ];
        for random in wrong {
            assert_eq!(random.validate(), Err(RateError::Shares), "{random:?}");
        }
    }
}

mod trace {
    use core::time::Duration;

    use super::*;

    fn trace(text: &str) -> DeliveryTrace {
        DeliveryTrace::parse(text).expect("a trace")
    }

    #[test]
    fn a_trace_repeats_after_its_last_opportunity() {
        let trace = trace("# two in the third millisecond\n1\n3\n3\n10\n");
        assert_eq!((trace.opportunities(), trace.period()), (4, Duration::from_millis(10)));
        // The trace carries 6000 B in 10 ms.
        assert_eq!(trace.mean_rate(), Bitrate::from_bps(4_800_000));
        let counts = [0, 1, 2, 3, 9, 10, 11, 13, 20, 21].map(|t| trace.count(Time::from_millis(t)));
        assert_eq!(counts, [0, 1, 1, 3, 3, 4, 5, 7, 8, 9]);
        let zero = super::super::DeliveryTrace::parse("0\n4\n").expect("a trace");
        // The last opportunity of a cycle and the first of the next are at the same time.
        assert_eq!([0, 3, 4, 8].map(|t| zero.count(Time::from_millis(t))), [1, 1, 3, 5]);
    }

    #[test]
    fn packets_share_and_span_opportunities() {
        let mut course = TraceCourse::new(&trace("1\n3\n3\n10\n"));
        let ms = Time::from_millis;
        // The first packet takes 500 B of the first opportunity, so 1000 B remain for the next
        // packet.
        assert_eq!(course.finish(ms(0), 500, true), ms(1));
        assert_eq!(course.finish(ms(1), 1000, false), ms(1));
        assert_eq!(course.finish(ms(1), 100, false), ms(3));
        // 1400 B are left at 3 ms, so a packet of 4400 B ends with the opportunity at 10 ms.
        assert_eq!(course.finish(ms(3), 4400, false), ms(10));
        assert_eq!(course.finish(ms(10), 1, false), ms(11));
        // When the queue empties, the unused bytes of an opportunity are lost. An opportunity at
        // the instant of an arrival is lost, too.
        assert_eq!(course.finish(ms(11), 1, true), ms(13));
        assert_eq!(course.finish(Time::from_micros(19_999), 1500, true), ms(20));
        assert_eq!(course.finish(ms(20), u32::MAX, false), course.finish(ms(20), 1, false));
    }

    #[test]
    fn what_is_no_trace_is_refused_with_its_line() {
        let line = |text: &str| DeliveryTrace::parse(text).expect_err("no trace").line;
        assert_eq!(line("1\n2\n1\n"), 3);
        assert_eq!(line("1\n\n2ms\n"), 3);
        assert_eq!(line("-4"), 1);
        assert_eq!(line("1.5"), 1);
        assert_eq!(line("1\n99999999999999999999\n"), 2);
        assert_eq!(line("864000001"), 1);
        assert_eq!(line("0\n0\n"), 2);
        assert_eq!(line(""), 0);
        assert_eq!(line("# only words\n"), 0);
        let error = DeliveryTrace::parse("PK\u{3}\u{4}").expect_err("no trace").to_string();
        assert!(error.contains("line 1") && error.contains("millisecond"), "{error}");
    }
}

#[test]
fn a_recorded_rate_gives_opportunities_at_that_rate() {
    // The rate is 12 Mb/s for a second, zero for half a second, and 1.2 Mb/s for half a second.
    let recorded =
        DeliveryTrace::parse("1718.0 12 # Mb/s\n\n1719 0\n1719.5\t1.2\n").expect("a trace");
    assert_eq!((recorded.period().as_millis(), recorded.opportunities()), (2_000, 1_050));
    let count = |millis| recorded.count(Time::from_millis(millis));
    assert_eq!((count(1), count(500), count(1_000)), (1, 500, 1_000));
    assert_eq!((count(1_499), count(1_511), count(2_000)), (1_000, 1_001, 1_050));
    assert_eq!((count(2_500), count(3_600)), (1_550, 2_060));
    assert_eq!(recorded.mean_rate(), Bitrate::from_bps(6_300_000));
    // A rate of zero at the end belongs to the period.
    let silent = DeliveryTrace::parse("0 12\n1 0\n").expect("a trace");
    assert_eq!(
        (silent.period().as_millis(), silent.count(Time::from_millis(2_500))),
        (2_000, 1_500)
    );
    for (text, line) in [
        ("0 1\n", 1),
        ("0 1\n1\n", 2),
        ("0 1\n0 2\n", 2),
        ("5 1\n4 2\n", 2),
        ("0 1\n1 -1\n", 2),
        ("0 1\n1 1e7\n", 2),
        ("0 1\n1 2 3\n", 2),
        ("0 1\nNaN 2\n", 2),
        ("0 0\n1 0\n", 2),
        ("0 1e6\n1 1e6\n9e5 1\n", 3),
        ("time rate\n0 1\n", 1),
    ] {
        assert_eq!(DeliveryTrace::parse(text).expect_err(text).line, line, "{text:?}");
    }
}
