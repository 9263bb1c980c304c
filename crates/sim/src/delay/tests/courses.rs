//! Tests of stepping delays, recorded delays and packets released in clumps.

use super::*;
use crate::rate::Schedule;

fn config(delay: Duration) -> DelayConfig {
    DelayConfig {
        schedule: Schedule::constant(delay),
        course: DelayCourse::Steady,
        jitter: Jitter::default(),
        clumps: None,
    }
}

fn process(config: &DelayConfig, seed: u64) -> DelayProcess {
    DelayProcess::new(config, seed, "test").expect("valid")
}

/// The delays, in milliseconds, of `packets` packets sent every `gap` from time zero on.
fn delays(config: &DelayConfig, seed: u64, gap: Duration, packets: u32) -> Vec<f64> {
    let mut process = process(config, seed);
    let times = (0..packets).map(|i| Time::ZERO + gap * i);
    let delay = |sent| {
        let earliest = process.earliest(sent);
        let arrival = process.arrival(sent);
        assert!(earliest <= arrival && earliest >= sent, "{sent}: {earliest} {arrival}");
        arrival.since(sent).as_secs_f64() * 1e3
    };
    times.map(delay).collect()
}

fn steps(period: u32, least: u32, most: u32) -> DelaySteps {
    DelaySteps { period: MS * period, least: MS * least, most: MS * most }
}

#[test]
fn steps_hold_for_a_period_and_jump_by_what_was_asked() {
    let course = DelayCourse::Steps(steps(15_000, 10, 60));
    let config = DelayConfig { course, ..config(20 * MS) };
    let all = delays(&config, 3, 1_500 * MS, 20_000);
    let levels: Vec<f64> = all.chunks(10).map(|period| period[0]).collect();
    for (period, level) in all.chunks(10).zip(&levels) {
        assert!(period.iter().all(|delay| delay == level), "{period:?}");
        assert!((20.0..=80.0).contains(level), "{level}");
    }
    let jumps: Vec<f64> = levels.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    assert!(jumps.iter().all(|jump| (10.0..=60.0).contains(jump)));
    // Levels cover the whole range, and so do jumps.
    let share = |of: &dyn Fn(f64) -> bool| {
        levels.iter().filter(|level| of(**level)).count() as f64 / levels.len() as f64
    };
    assert!((0.15..0.35).contains(&share(&|level| level < 35.0)), "low");
    assert!((0.15..0.35).contains(&share(&|level| level > 65.0)), "high");
    assert!(jumps.iter().any(|jump| *jump > 55.0) && jumps.iter().any(|jump| *jump < 11.0));
    assert_ne!(levels, delays(&config, 4, 15_000 * MS, 2_000), "another seed");
}

#[test]
fn steps_do_not_depend_on_who_asked_when() {
    let course = DelayCourse::Steps(steps(100, 5, 20));
    let config = DelayConfig { course, ..config(MS) };
    let often = delays(&config, 1, 10 * MS, 10_000);
    let seldom = delays(&config, 1, 1_000 * MS, 100);
    let same = often.iter().step_by(100).zip(&seldom).all(|(often, seldom)| often == seldom);
    assert!(same);
}

#[test]
fn clumps_release_together_after_gaps_in_their_range() {
    let clumps = Some(Clumps { least: 2 * MS, most: 8 * MS });
    let config = DelayConfig { clumps, ..config(20 * MS) };
    let mut process = process(&config, 7);
    let gap = Duration::from_micros(100);
    let arrivals: Vec<(u64, u64)> = (0..200_000)
        .map(|i| {
            let sent = Time::ZERO + gap * i;
            (sent.as_nanos(), process.arrival(sent).as_nanos())
        })
        .collect();
    let mut releases: Vec<u64> = arrivals.iter().map(|(_, arrival)| *arrival).collect();
    releases.dedup();
    assert!(releases.is_sorted(), "nothing overtakes");
    let gaps: Vec<f64> = releases.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
    assert!(gaps.iter().all(|gap| (1.999..=8.001).contains(gap)), "gaps");
    // Gaps have a triangular density around 5 ms, so their variance is W²/6 with W = 3 ms.
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    assert!((mean - 5.0).abs() < 0.01 && (variance - 1.5).abs() < 0.1, "{mean} {variance}");
    // A packet waits for the next release and no longer. With gaps G, the mean wait is
    // E[G²]/(2·E[G]) = 2.65 ms.
    let waits = arrivals.iter().map(|(sent, arrival)| (arrival - sent) as f64 / 1e6 - 20.0);
    let wait = waits.sum::<f64>() / arrivals.len() as f64;
    assert!((wait - 2.65).abs() < 0.05, "{wait}");
}

#[test]
fn clumps_may_come_at_a_fixed_pace() {
    let clumps = Some(Clumps { least: 5 * MS, most: 5 * MS });
    let config = DelayConfig { clumps, ..config(3 * MS) };
    assert_eq!(delays(&config, 1, MS, 8), [5.0, 4.0, 3.0, 7.0, 6.0, 5.0, 4.0, 3.0]);
}

#[test]
fn a_recorded_delay_holds_from_line_to_line_and_starts_over() {
    let trace =
        DelayTrace::parse("# ms ms\n1700 20\n\n1702.5 31.25 # a jump\n1705 5\n").expect("ok");
    assert_eq!(trace.period(), Duration::from_micros(7_500));
    assert_eq!(trace.mean(), Duration::from_micros(18_750));
    let course = DelayCourse::Trace(trace);
    let config = DelayConfig { course, ..config(Duration::ZERO) };
    let expected = [20.0, 20.0, 20.0, 31.25, 31.25, 5.0, 5.0, 5.0, 20.0, 20.0, 31.25];
    assert_eq!(delays(&config, 1, MS, 11), expected);
}

#[test]
fn what_is_no_recorded_delay_is_refused_with_its_line() {
    for (text, line) in [
        ("", 0),
        ("# nothing\n", 0),
        ("0 20\n", 1),
        ("0 20\n1\n", 2),
        ("0 20\n1 2 3\n", 2),
        ("0 20\n\n0 21\n", 3),
        ("5 20\n4 21\n", 2),
        ("0 20\n1 -1\n", 2),
        ("0 20\n1 60001\n", 2),
        ("0 20\nNaN 1\n", 2),
        ("0 20\n1 inf\n", 2),
        ("0 20\n864000001 1\n", 2),
        ("\u{0}\u{1}\u{7f}", 1),
    ] {
        let error = DelayTrace::parse(text).expect_err(text);
        assert_eq!(error.line, line, "{text:?}: {error}");
    }
}

#[test]
fn courses_out_of_range_are_refused_by_their_key() {
    let steady = config(MS);
    let refused = |config: DelayConfig| config.validate().err().map(|error| error.key);
    for (wrong, key) in [
        (DelayCourse::Steps(steps(99, 1, 2)), "delay-steps"),
        (DelayCourse::Steps(steps(15_000, 31, 60)), "delay-steps"),
        (DelayCourse::Steps(steps(15_000, 0, 0)), "delay-steps"),
        (DelayCourse::Steps(steps(15_000, 10, 60_001)), "delay-steps"),
    ] {
        assert_eq!(refused(DelayConfig { course: wrong, ..steady.clone() }), Some(key));
    }
    for (least, most) in [(8, 2), (0, 0), (1, 10_001)] {
        let clumps = Some(Clumps { least: MS * least, most: MS * most });
        assert_eq!(refused(DelayConfig { clumps, ..steady.clone() }), Some("clumps"));
    }
    let trace = DelayCourse::Trace(DelayTrace::parse("0 1\n1 2\n").expect("a trace"));
    let schedule = Schedule::new(MS, [(Time::from_secs(1), 2 * MS)]).expect("rises");
    let changes = DelayConfig { schedule, course: trace, ..steady.clone() };
    assert_eq!(refused(changes), Some("delay"));
    assert_eq!(
        refused(DelayConfig { schedule: Schedule::constant(60_001 * MS), ..steady }),
        Some("delay")
    );
}
