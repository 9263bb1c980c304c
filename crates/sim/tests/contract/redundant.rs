//! Copies on several paths (`redundant`), on every engine.

use std::sync::Arc;

use anabranch_policy::PolicySpec;
use anabranch_policy::scheduler;
use core::time::Duration;

use crate::rig::{ENGINES, Rig, Setting};

/// Runs `play` on every engine with the scheduler that `spec` names.
fn on_each(setting: Setting, spec: &str, play: impl Fn(&str, &mut dyn Rig)) {
    for (engine, make) in ENGINES {
        let spec: PolicySpec = spec.parse().expect("a specification");
        let scheduler = move || scheduler::build(&spec).expect("it exists");
        let mut rig = make(setting, Arc::new(scheduler), &PolicySpec::new("resend"));
        play(engine, rig.as_mut());
    }
}

fn sorted(mut symbols: Vec<u64>) -> Vec<u64> {
    symbols.sort_unstable();
    symbols
}

fn all(symbols: u64) -> Vec<u64> {
    (0..symbols).collect()
}

#[test]
fn each_path_carries_each_symbol_once() {
    on_each(Setting::new(&[5, 30], 20), "redundant", |engine, rig| {
        rig.write(10);
        rig.run(80);
        assert_eq!((sorted(rig.on(0)), sorted(rig.on(1))), (all(10), all(10)), "{engine}");
        assert_eq!(rig.delivered(), 10, "{engine}");
    });
}

#[test]
fn copies_leave_at_random_times_within_the_jitter() {
    on_each(Setting::new(&[20, 20], 20), "redundant:jitter=10ms", |engine, rig| {
        let start = rig.now();
        rig.write(10);
        rig.run(15);
        assert_eq!(rig.on(0), all(10), "{engine}");
        assert_eq!(sorted(rig.on(1)), all(10), "{engine}: each once");
        let departures = rig.departures();
        let delays =
            departures.iter().filter(|sent| sent.path == 1).map(|sent| sent.at.since(start));
        let (least, most) = (delays.clone().min().unwrap(), delays.max().unwrap());
        assert!(least < most && most <= Duration::from_millis(11), "{engine}: {least:?} {most:?}");
    });
}

#[test]
fn a_copy_that_is_no_longer_needed_does_not_leave() {
    // The original is acknowledged after 4 ms. With 40 ms of jitter, few copies have left by then.
    on_each(Setting::new(&[2, 2], 20), "redundant:jitter=40ms", |engine, rig| {
        rig.write(10);
        rig.run(60);
        assert_eq!(rig.delivered(), 10, "{engine}");
        assert!(rig.on(1).len() < 5, "{engine}: {:?}", rig.on(1));
    });
}

/// Writes the data of 20 symbols once round trips are known, and checks which symbols each of three
/// paths carries.
fn spread(spec: &str, check: impl Fn(&str, [Vec<u64>; 3])) {
    on_each(Setting::new(&[30, 5, 20], 30), spec, |engine, rig| {
        // The first symbol makes the round trips known.
        rig.write(1);
        rig.run(150);
        let before = [0, 1, 2].map(|path| rig.on(path).len());
        rig.write(20);
        rig.run(150);
        let on = [0, 1, 2].map(|path| rig.on(path)[before[path as usize]..].to_vec());
        check(engine, on.map(sorted));
        assert_eq!(rig.delivered(), 21, "{engine}");
    });
}

#[test]
fn of_more_paths_those_carry_copies_that_deliver_first() {
    // The data fills 19 or 20 symbols, depending on the length of their headers.
    spread("redundant:paths=2", |engine, [far, near, middle]| {
        assert!(far.is_empty() && near.len() >= 19 && near == middle, "{engine}: {far:?} {near:?}");
    });
    spread("redundant:paths=16", |engine, [far, near, middle]| {
        assert!(near.len() >= 19 && near == middle && near == far, "{engine}: {far:?} {near:?}");
    });
    spread("redundant:paths=1", |engine, [far, near, middle]| {
        assert!(far.is_empty() && middle.is_empty() && near.len() >= 19, "{engine}: {near:?}");
    });
}

#[test]
fn another_path_takes_over_for_one_that_dies_and_gives_way_when_it_is_back() {
    on_each(Setting::new(&[30, 5, 20], 30), "redundant:paths=2,jitter=1ms", |engine, rig| {
        rig.write(2);
        rig.run(200);
        rig.darken(1, true);
        let before = rig.on(0).len();
        for _ in 0..20 {
            rig.write(1);
            rig.run(100);
        }
        assert!(rig.on(0).len() >= before + 10, "{engine}: {:?}", rig.on(0));
        assert_eq!(rig.delivered(), 22, "{engine}");
        rig.darken(1, false);
        let before = rig.on(1).len();
        for _ in 0..20 {
            rig.write(1);
            rig.run(100);
        }
        assert!(rig.on(1).len() >= before + 10, "{engine}: {:?}", rig.on(1));
        assert_eq!(rig.delivered(), 42, "{engine}");
    });
}

#[test]
fn nothing_waits_for_a_path_that_is_gone() {
    for spec in ["redundant", "redundant:paths=2,jitter=5ms", "redundant:class=bulk"] {
        on_each(Setting::new(&[5, 30], 8), spec, |engine, rig| {
            rig.write(2);
            rig.run(100);
            rig.darken(0, true);
            rig.write(10);
            let start = rig.now();
            while rig.delivered() < 12 {
                rig.step();
                let waited = rig.now().since(start);
                assert!(waited <= Duration::from_millis(100), "{engine}: {spec}");
            }
        });
    }
}
