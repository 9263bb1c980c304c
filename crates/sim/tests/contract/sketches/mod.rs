//! What is peculiar to some protocols as policies: those that need no coding on every engine, the others on
//! the connection of `anabranch-core`. What each promises is seen to fail without its mechanism.

mod blest;
mod coded;
mod fmtcp;
mod late;
mod mplot;
mod mtcp;
mod sliding;

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
