//! The contract between schedulers, recovery policies and engines (`anabranch_policy::scheduler`), tested with every
//! engine.

mod cases;
mod control;
mod core;
mod redundant;
mod rig;
mod script;
mod sketches;
mod tcp;

use std::sync::Arc;

use anabranch_policy::PolicySpec;
use anabranch_policy::scheduler::{self, Scheduler};

use crate::rig::{ENGINES, Make, Rig};
use crate::script::{Script, Shared};

/// An engine whose scheduler is a case's script, and the notes of that script.
fn start(make: Make, case: &cases::Case) -> (Box<dyn Rig>, Shared) {
    let shared = Shared::default();
    let (notes, answer) = (shared.clone(), case.answer);
    let script =
        move || -> Box<dyn Scheduler> { Box::new(Script { shared: notes.clone(), answer }) };
    let recovery = case.recovery.parse().expect("a specification");
    (make(case.setting, Arc::new(script), &recovery), shared)
}

/// Checks that, whatever a case did, all written data arrives when the scheduler sends everything
/// that is left.
fn finish(name: &str, rig: &mut dyn Rig, shared: &Shared, written: u64) {
    shared.notes().finishing = true;
    for path in 0..2 {
        rig.darken(path, false);
    }
    rig.write(1);
    rig.run(20_000);
    assert_eq!(rig.delivered(), written + 1, "{name}: not everything arrives");
}

#[test]
fn every_engine_keeps_the_contract() {
    for (engine, make) in ENGINES {
        for case in cases::CASES {
            let name = format!("{engine}: {}", case.name);
            println!("{name}");
            let (mut rig, shared) = start(make, case);
            (case.play)(rig.as_mut(), &shared);
            if case.setting.reads {
                finish(&name, rig.as_mut(), &shared, case.writes);
            }
        }
    }
}

/// An engine to which 90 symbols were written while a path died and came back. The scheduler has
/// had time to send them.
fn past_a_dark_spell(make: Make, scheduler: &str, recovery: &str) -> Box<dyn rig::Rig> {
    let spec = PolicySpec::new(scheduler);
    let scheduler = move || scheduler::build(&spec).expect("it has defaults");
    let recovery = PolicySpec::new(recovery);
    let mut rig = make(rig::Setting::new(&[5, 30], 8), Arc::new(scheduler), &recovery);
    rig.write(50);
    rig.run(7);
    rig.darken(0, true);
    rig.run(3000);
    rig.darken(0, false);
    rig.write(40);
    rig.run(3000);
    rig
}

/// Every scheduler of the registry delivers all data on every engine, even if a path dies and comes
/// back.
#[test]
fn every_scheduler_moves_everything_on_every_engine() {
    for (entry, _) in scheduler::TABLE {
        for (engine, make) in ENGINES {
            let rig = past_a_dark_spell(make, entry.name, "resend");
            assert_eq!(rig.delivered(), 90, "{engine}, {}", entry.name);
            assert!(!rig.on(0).is_empty() && !rig.on(1).is_empty(), "{engine}, {}", entry.name);
        }
    }
}

/// Milliseconds until eight symbols are delivered if the quicker path is silent.
fn time_to_finish(make: Make, recovery: &str) -> u64 {
    let min_rtt = PolicySpec::new("min-rtt");
    let scheduler = move || scheduler::build(&min_rtt).expect("it has defaults");
    let recovery = recovery.parse().expect("a specification");
    let mut rig = make(rig::Setting::new(&[5, 30], 8), Arc::new(scheduler), &recovery);
    let start = rig.now();
    rig.darken(0, true);
    rig.write(8);
    (1..5_000).find(|_| {
        rig.step();
        rig.delivered() >= 8
    });
    rig.now().since(start).as_millis() as u64
}

/// If one path stalls, XLINK's copies arrive before a timeout would have detected the stall.
#[test]
fn copies_bridge_a_stall_on_every_engine() {
    for (engine, make) in ENGINES {
        let (waited, copied) = (time_to_finish(make, "resend"), time_to_finish(make, "xlink"));
        println!("{engine}: {waited} ms, with copies {copied} ms");
        assert!(copied + 20 < waited, "{engine}: {copied} ms with copies, {waited} ms without");
    }
}

/// Copies do no harm: everything arrives with every scheduler, even if a path dies and comes back.
#[test]
fn copies_harm_nothing_on_any_engine() {
    for (entry, _) in scheduler::TABLE {
        for (engine, make) in ENGINES {
            let rig = past_a_dark_spell(make, entry.name, "xlink");
            assert_eq!(rig.delivered(), 90, "{engine}, {}", entry.name);
        }
    }
}
