//! Characteristic mechanisms of some protocols as policies. Those without coding run on every
//! engine, the others on the connection of `anabranch-core`. Most tests also show that without the
//! mechanism the expected effect is absent.

mod blest;
mod coded;
mod fmtcp;
mod late;
mod mplot;
mod sliding;

use std::sync::Arc;

use anabranch_policy::PolicySpec;
use anabranch_policy::scheduler::Scheduler;

use crate::rig::{ENGINES, MakeScheduler, Rig, Setting};

/// Runs `play` on every engine, each with a new scheduler.
fn on_each<S: Scheduler + 'static>(
    setting: Setting,
    scheduler: impl Fn() -> S + Send + Sync + 'static,
    play: impl Fn(&str, &mut dyn Rig),
) {
    let scheduler: MakeScheduler = Arc::new(move || Box::new(scheduler()));
    for (engine, make) in ENGINES {
        let mut rig = make(setting, Arc::clone(&scheduler), &PolicySpec::new("resend"));
        play(engine, rig.as_mut());
    }
}
