//! Simulates the same transfer over the same links: over all paths together, and over each alone.

use std::slice;
use std::thread;
use std::time::Duration;

use anabranch::Profile;
use anabranch_emulate::PathConfig;
use anabranch_sim::scenario::{self as simulation, FlowPlan};

use super::plan::{self, Plan};

/// Longest virtual transfer; a longer one would give the same rates.
const MAX_TIME: Duration = Duration::from_secs(60);
/// Shortest virtual transfer, so that the handshake's share of the time stays small.
const MIN_TIME: Duration = Duration::from_millis(100);
/// Time that the last bytes may take beyond the transfer's time.
const GRACE: Duration = Duration::from_secs(60);

/// The results of simulating a demo.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Simulated {
    /// The demo itself, Mb/s; 0 if nothing got through.
    pub(super) mbps: f64,
    /// The fastest path, had it been the only one; none if none of them gets anything through.
    pub(super) best_path: Option<BestPath>,
}

/// The fastest path of a demo.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BestPath {
    pub(super) name: String,
    pub(super) mbps: f64,
}

/// Runs the demo, and every path alone, for as long as the demo sent, with the demo's seed.
pub(super) fn simulate(plan: &Plan, elapsed: Duration) -> Simulated {
    let time = match plan.goal {
        plan::Goal::Time(time) => time,
        plan::Goal::Size(_) | plan::Goal::File(_) => elapsed,
    };
    let time = time.clamp(MIN_TIME, MAX_TIME);
    thread::scope(|scope| {
        let spawn = |profile, paths| scope.spawn(move || goodput(plan, profile, paths, time));
        let together = spawn(plan.profile.clone(), &plan.paths[..]);
        let one = |(n, path)| spawn(plan.profile_alone(n), slice::from_ref(path));
        let alone: Vec<_> = plan.paths.iter().enumerate().map(one).collect();
        let alone = plan.paths.iter().zip(alone).filter_map(|(path, run)| {
            let best = BestPath { name: path.forward.name.clone(), mbps: run.join().ok()? };
            (best.mbps > 0.0).then_some(best)
        });
        Simulated {
            best_path: alone.max_by(|a, b| a.mbps.total_cmp(&b.mbps)),
            mbps: together.join().unwrap_or_default(),
        }
    })
}

/// Application rate over `paths`, Mb/s; 0 if they carry nothing.
fn goodput(plan: &Plan, profile: Profile, paths: &[PathConfig], time: Duration) -> f64 {
    let forward = |path: &PathConfig| {
        // The emulated links use random streams of these names, so the same packets are lost here.
        let mut forward = path.forward.clone();
        forward.name = format!("{}.forward", forward.name);
        forward
    };
    let mut flow = FlowPlan::core(profile).until(time);
    flow.transport = plan.transport.clone();
    let report = simulation::Plan::parallel(paths.iter().map(forward))
        .with_reverse(paths.iter().map(|path| path.reverse.clone()))
        .within(time + GRACE)
        .flow(flow)
        .run(plan.seed);
    match report {
        Ok(report) if report.flows.iter().all(|flow| flow.done) => report.goodput_mbps(),
        // If not everything has arrived by the end, the whole time counts.
        Ok(report) if report.flows.iter().all(|flow| flow.failure.is_none()) => {
            super::watch::mbps(report.bytes(), time + GRACE)
        }
        _ => 0.0,
    }
}
