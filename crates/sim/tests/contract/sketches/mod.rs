//! What is peculiar to some protocols as schedulers, on every engine.

mod blest;
mod late;
mod mtcp;

use anabranch_policy::recovery;
use anabranch_policy::scheduler::Scheduler;

use crate::rig::{ENGINES, Rig, Setting};

/// Plays `play` on every engine, with a scheduler of its own for each.
fn on_each<S: Scheduler + 'static>(
    setting: Setting,
    scheduler: impl Fn() -> S,
    play: impl Fn(&str, &mut dyn Rig),
) {
    for (engine, make) in ENGINES {
        let recovery = recovery::build(&"resend".parse().expect("a name")).expect("built in");
        let mut rig = make(setting, Box::new(scheduler()), recovery);
        play(engine, rig.as_mut());
    }
}
