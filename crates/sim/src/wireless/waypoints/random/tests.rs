use super::super::super::Motion;
use super::*;
use anabranch_types::{Time, math};

fn model() -> RandomWaypoint {
    RandomWaypoint { stations: 200, ..RandomWaypoint::default() }
}

/// The speeds of all legs whose length is not zero.
fn speeds(motion: &Waypoints) -> Vec<f64> {
    let legs = motion.stations.iter().flatten().filter(|leg| leg.lasting > 0.0);
    legs.map(|leg| leg.from.distance(leg.to) / leg.lasting).collect()
}

/// The Kolmogorov–Smirnov distance of `values` from the uniform distribution, times the square root of their
/// number.
fn distance_from_uniform(mut values: Vec<f64>, least: f64, most: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let count = values.len() as f64;
    let gaps = values.iter().enumerate().map(|(at, value)| {
        let share = (value - least) / (most - least);
        (share - at as f64 / count).abs().max((share - (at + 1) as f64 / count).abs())
    });
    gaps.fold(0.0, f64::max) * count.sqrt()
}

#[test]
fn places_and_speeds_are_uniform_and_independent() {
    let model = RandomWaypoint { duration: Duration::from_secs(20_000), ..model() };
    let motion = model.draw(3).unwrap();
    // For uniform values, one sample in a thousand has a distance above 1.95.
    let speeds = speeds(&motion);
    assert!(speeds.len() > 5_000, "{}", speeds.len());
    assert!(distance_from_uniform(speeds.clone(), 1.0, 10.0) < 1.95);
    let legs = || motion.stations.iter().flatten().filter(|leg| leg.lasting > 0.0);
    let goals = || legs().map(|leg| leg.to);
    assert!(distance_from_uniform(goals().map(|to| to.x).collect(), 0.0, 3000.0) < 1.95);
    assert!(distance_from_uniform(goals().map(|to| to.y).collect(), 0.0, 500.0) < 1.95);
    let starts: Vec<f64> = motion.stations.iter().map(|legs| legs[0].to.x).collect();
    assert!(distance_from_uniform(starts, 0.0, 3000.0) < 1.95);
    let length = |leg: &Leg| leg.from.distance(leg.to);
    let count = speeds.len() as f64;
    let mean = speeds.iter().sum::<f64>() / count;
    let way = legs().map(length).sum::<f64>() / count;
    let (mut both, mut of_speed, mut of_way) = (0.0, 0.0, 0.0);
    for (leg, speed) in legs().zip(&speeds) {
        let (a, b) = (length(leg) - way, speed - mean);
        (both, of_speed, of_way) = (both + a * b, of_speed + b * b, of_way + a * a);
    }
    let correlation = both / (of_speed * of_way).sqrt();
    assert!(correlation.abs() < 4.0 / count.sqrt(), "{correlation}");
}

#[test]
fn stations_go_on_from_where_they_are_and_wait_at_every_place() {
    let pause = Duration::from_millis(2500);
    for warm_up in [0, 700] {
        let model = RandomWaypoint { pause, warm_up: Duration::from_secs(warm_up), ..model() };
        let motion = model.draw(5).unwrap();
        let mut waiting = 0;
        for legs in &motion.stations {
            assert_eq!((legs[0].start, legs[0].lasting, legs[0].to), (0.0, 0.0, legs[1].from));
            waiting += usize::from(legs[1].start > 0.0);
            assert!(legs[1].start <= 2.5);
            for pair in legs[1..].windows(2) {
                let ends = pair[0].start + pair[0].lasting + 2.5;
                assert_eq!(pair[0].to, pair[1].from);
                assert!((ends - pair[1].start).abs() < 1e-9, "{pair:?}");
            }
            let last = legs.last().unwrap();
            assert!(last.start < 300.0 && last.start + last.lasting + 2.5 >= 300.0, "{last:?}");
        }
        // A movement takes about 250 s, so about two of 200 stations wait.
        assert!(if warm_up == 0 { waiting == 0 } else { waiting < 10 }, "{waiting}");
        for millis in (0..300_000).step_by(7919) {
            for station in 0..motion.stations() {
                let place = motion.position(station, Time::from_millis(millis));
                assert!((0.0..=3000.0).contains(&place.x) && (0.0..=500.0).contains(&place.y));
            }
        }
    }
}

#[test]
fn movements_may_begin_while_a_station_waits() {
    let pause = Duration::from_secs(1000);
    let warm_up = Duration::from_secs(20_000);
    let duration = Duration::from_secs(1000);
    let motion = RandomWaypoint { pause, warm_up, duration, ..model() }.draw(5).unwrap();
    // Stations move for about a fifth of the time.
    let waits = |legs: &&Vec<Leg>| legs.len() < 2 || legs[1].start > 0.0;
    let waiting: Vec<_> = motion.stations.iter().filter(waits).collect();
    assert!((110..190).contains(&waiting.len()), "{}", waiting.len());
    for legs in waiting {
        assert!(legs.iter().skip(1).all(|leg| leg.start > 0.0 && leg.start <= 1000.0));
    }
}

#[test]
fn in_the_long_run_stations_are_slower_and_nearer_to_the_middle() {
    let (mut slow, mut central) = ([0.0; 2], [0.0; 2]);
    let stations = 1000;
    for (at, warm_up) in [0, 3000].into_iter().enumerate() {
        let warm_up = Duration::from_secs(warm_up);
        let model = RandomWaypoint { stations, warm_up, ..RandomWaypoint::default() };
        let motion = model.draw(9).unwrap();
        for legs in &motion.stations {
            let speed = legs[1].from.distance(legs[1].to) / legs[1].lasting;
            slow[at] += speed / stations as f64;
            let middle = (750.0..2250.0).contains(&legs[0].to.x);
            central[at] += f64::from(u8::from(middle)) / stations as f64;
        }
    }
    // At first, the mean speed is 5.5 m/s with a standard deviation of 0.082, and half of the
    // stations are in the middle half, with a standard deviation of 0.016. In the end, the mean
    // speed is (10 − 1)/ln 10 m/s. The tolerance is four standard deviations.
    assert!((slow[0] - 5.5).abs() < 0.33 && (central[0] - 0.5).abs() < 0.064, "{slow:?}");
    let expected = 9.0 / math::ln(10.0);
    assert!((slow[1] - expected).abs() < 0.33, "{slow:?} {expected}");
    // On a line, the density is 6 x (1 − x), so 11/16 of the stations are in the middle half.
    assert!((0.62..0.75).contains(&central[1]), "{central:?}");
}

#[test]
fn a_seed_and_a_station_tell_all() {
    let model = model();
    let motion = model.draw(1).unwrap();
    assert_eq!(motion, model.draw(1).unwrap());
    assert_ne!(motion, model.draw(2).unwrap());
    let fewer = RandomWaypoint { stations: 7, ..model }.draw(1).unwrap();
    assert_eq!(fewer.stations[..], motion.stations[..7]);
    assert_ne!(fewer.stations[0], fewer.stations[1]);
}

#[test]
fn what_is_written_is_read_as_the_same_movements() {
    for warm_up in [0, 1000] {
        let (pause, warm_up) = (Duration::from_secs(1), Duration::from_secs(warm_up));
        let motion = RandomWaypoint { pause, warm_up, ..model() }.draw(11).unwrap();
        let read: Waypoints = motion.to_string().parse().unwrap();
        assert_eq!(read.stations(), motion.stations());
        for millis in (0..310_000).step_by(3989) {
            for station in 0..motion.stations() {
                let now = Time::from_millis(millis);
                let apart = motion.position(station, now).distance(read.position(station, now));
                assert!(apart < 1e-6, "station {station} at {millis} ms: {apart} m");
            }
        }
    }
}

#[test]
fn one_speed_and_a_line_of_a_millimetre_will_do() {
    let model =
        RandomWaypoint { height: 1e-3, min_speed: 10.0, stations: 3, ..RandomWaypoint::default() };
    let motion = model.draw(1).unwrap();
    assert!(speeds(&motion).iter().all(|speed| (speed - 10.0).abs() < 1e-9));
    assert!(RandomWaypoint { duration: Duration::ZERO, ..model }.draw(1).is_ok());
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    type Change = fn(&mut RandomWaypoint);
    let refused = |change: Change| {
        let mut model = RandomWaypoint::default();
        change(&mut model);
        model.draw(1).unwrap_err()
    };
    assert_eq!(refused(|m| m.stations = 0), RandomWaypointError::Stations);
    assert_eq!(refused(|m| m.stations = usize::MAX), RandomWaypointError::Stations);
    let areas: [Change; 3] =
        [|m| m.width = 0.0, |m| m.height = f64::NAN, |m| m.width = f64::INFINITY];
    assert!(areas.into_iter().all(|change| refused(change) == RandomWaypointError::Area));
    let speeds: [Change; 3] =
        [|m| m.min_speed = 0.0, |m| m.min_speed = 11.0, |m| m.max_speed = f64::NAN];
    assert!(speeds.into_iter().all(|change| refused(change) == RandomWaypointError::Speed));
    assert_eq!(refused(|m| m.pause = Duration::MAX), RandomWaypointError::Time);
    assert_eq!(refused(|m| m.warm_up = Duration::MAX), RandomWaypointError::Time);
}

#[test]
fn two_stations_may_stand_while_the_others_move() {
    let moving = RandomWaypoint { stations: 4, ..model() };
    let apart = RandomWaypoint { apart: Some(400.0), ..moving.clone() };
    let (all, some) = (moving.draw(3).unwrap(), apart.draw(3).unwrap());
    for seconds in [0, 10, 299] {
        let at = Time::from_secs(seconds);
        assert_eq!(some.position(0, at), Position::new(1300.0, 250.0));
        assert_eq!(some.position(1, at), Position::new(1700.0, 250.0));
        assert_eq!(some.position(2, at), all.position(2, at), "the others move as before");
        assert_eq!(some.position(3, at), all.position(3, at));
    }
    let outside = RandomWaypoint { apart: Some(3000.1), ..moving };
    assert_eq!(outside.draw(3), Err(RandomWaypointError::Apart));
}
