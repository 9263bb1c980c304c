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
