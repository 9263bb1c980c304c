//! The contract between schedulers, recovery policies and engines (`anabranch_policy::scheduler`), put to
//! every engine that carries it out.

mod cases;
mod control;
mod core;
mod rig;
mod script;
mod sketches;
mod tcp;

use anabranch_policy::recovery;
use anabranch_policy::scheduler::Scheduler;

use crate::rig::{ENGINES, Make, Rig};
use crate::script::{Script, Shared};

/// An engine whose scheduler is a case's script, and what that hears.
fn start(make: Make, case: &cases::Case) -> (Box<dyn Rig>, Shared) {
    let shared = Shared::default();
    let script = Script { shared: shared.clone(), answer: case.answer };
    let recovery = recovery::build(&case.recovery.parse().expect("a specification"));
    (make(case.setting, Box::new(script), recovery.expect("it exists")), shared)
}

/// Whatever a case did, everything that was written arrives once a scheduler sends it.
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

/// The registry's schedulers move everything on every engine, though a path dies and comes back.
#[test]
fn every_scheduler_moves_everything_on_every_engine() {
    for (entry, _) in anabranch_policy::scheduler::TABLE {
        for (engine, make) in ENGINES {
            let spec = entry.name.parse().expect("a name");
            let scheduler: Box<dyn Scheduler> =
                anabranch_policy::scheduler::build(&spec).expect("it has defaults");
            let resend = recovery::build(&"resend".parse().expect("a name")).expect("built in");
            let mut rig = make(rig::Setting::new(&[5, 30], 8), scheduler, resend);
            rig.write(50);
            rig.run(7);
            rig.darken(0, true);
            rig.run(3000);
            rig.darken(0, false);
            rig.write(40);
            rig.run(3000);
            assert_eq!(rig.delivered(), 90, "{engine}, {}", entry.name);
            assert!(!rig.on(0).is_empty() && !rig.on(1).is_empty(), "{engine}, {}", entry.name);
        }
    }
}
