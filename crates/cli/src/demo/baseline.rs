//! What the best single path would have done: the same core in virtual time, each path alone.

use std::thread;
use std::time::Duration;

use anabranch_emulate::PathConfig;
use anabranch_sim::harness::{Failure, Goal, Spec, run};

use super::plan::{self, Plan};

/// Longest virtual transfer; a longer one would say the same.
const MAX_TIME: Duration = Duration::from_secs(60);
/// Shortest virtual transfer, so that the handshake does not decide.
const MIN_TIME: Duration = Duration::from_millis(100);
/// What its end may take beyond its time.
const GRACE: Duration = Duration::from_secs(60);

/// The fastest path of a demo, had it been the only one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BestPath {
    pub(super) name: String,
    pub(super) mbps: f64,
}

/// Runs every path alone for as long as the demo sent, with the demo's seed. `None` if none of them
/// gets anything through.
pub(super) fn best_single_path(plan: &Plan, elapsed: Duration) -> Option<BestPath> {
    let time = match plan.goal {
        plan::Goal::Time(time) => time,
        plan::Goal::Size(_) | plan::Goal::File(_) => elapsed,
    };
    let time = time.clamp(MIN_TIME, MAX_TIME);
    let alone = |path| BestPath { name: name(path), mbps: goodput(plan, path, time) };
    let results: Vec<BestPath> = thread::scope(|scope| {
        let runs: Vec<_> = plan.paths.iter().map(|path| scope.spawn(move || alone(path))).collect();
        runs.into_iter().filter_map(|run| run.join().ok()).collect()
    });
    let results = results.into_iter().filter(|path| path.mbps > 0.0);
    results.max_by(|a, b| a.mbps.total_cmp(&b.mbps))
}

fn name(path: &PathConfig) -> String {
    path.forward.name.clone()
}

/// Application rate of `path` alone, Mb/s; 0 if it carries nothing.
fn goodput(plan: &Plan, path: &PathConfig, time: Duration) -> f64 {
    // The emulated links draw their losses from streams of these names: the same packets are lost.
    let mut forward = path.forward.clone();
    forward.name = format!("{}.forward", name(path));
    let goal = Goal::Time(time);
    let mut spec = Spec::new(vec![forward], plan.profile.clone(), goal, plan.seed);
    spec.reverse = vec![path.reverse.clone()];
    spec.transport = plan.transport.clone();
    spec.give_up = time + GRACE;
    match run(&spec, &mut |_| None) {
        Ok(report) => report.goodput_mbps(),
        Err(Failure::Timeout { read, at }) => {
            super::watch::mbps(read.iter().sum(), at.since(anabranch_types::Time::ZERO))
        }
        Err(_) => 0.0,
    }
}
