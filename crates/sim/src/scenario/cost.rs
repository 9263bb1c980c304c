//! Estimates the CPU time of a run from its plan, accurately enough to tell long runs from short
//! ones.
//!
//! The number of packets of a flow is what its share of the slowest link of each path carries until
//! the run ends or until the flow has sent all its data. A flow that is slowed down by losses sends
//! fewer. The CPU time per packet was measured on a machine from 2024. On other machines, all runs
//! take longer or shorter by about the same factor.

use core::time::Duration;

use anabranch_types::{Bitrate, Time};

use super::plan::{FlowPlan, LoadPlan, MeshPlan, PathPlan, Plan};
use super::profiles::Protocol;
use crate::rate::Schedule;
use crate::traffic::Traffic;

/// Bits of a full packet.
const PACKET: f64 = 1500.0 * 8.0;
/// CPU time of a packet at both ends of a flow between core endpoints, s.
const CORE: f64 = 19e-6;
/// CPU time of a packet at both ends of a flow of the TCP model, s.
const TCP: f64 = 0.12e-6;
/// CPU time of a packet or its acknowledgement on a link, s.
const HOP: f64 = 0.04e-6;
/// CPU time of one station of a mesh without loss, with a TCP flow, for one second of virtual time,
/// s. Measured with 14 and 50 stations at 2 and 11 Mb/s: 0.9 to 2.6e-4.
const STATION: f64 = 1.2e-4;
/// How much faster a mesh runs with losses above the MAC, because TCP sends less: 1 + this × loss.
const LOSS: f64 = 100.0;
/// Fixed CPU time of every run, s.
const RUN: f64 = 5e-5;

/// CPU time of a run, s.
pub(super) fn seconds(plan: &Plan) -> f64 {
    let end = plan.duration.as_secs_f64();
    let sharing = sharing(plan);
    let shares = Shares { plan, sharing: &sharing, end };
    let flows: f64 = plan.flows.iter().map(|flow| shares.flow(flow)).sum();
    let loads: f64 = plan.loads.iter().map(|load| shares.load(load)).sum();
    RUN + flows + loads + plan.mesh.as_ref().map_or(0.0, mesh) * end
}

/// CPU time of a mesh for one second of virtual time, s.
fn mesh(plan: &MeshPlan) -> f64 {
    plan.stations() as f64 * STATION / (1.0 + LOSS * plan.config.air.loss.above.get())
}

/// How many flows and loads use each link.
fn sharing(plan: &Plan) -> Vec<f64> {
    let mut sharing = vec![0.0; plan.links.len()];
    let flows = plan.flows.iter().flat_map(|flow| &flow.paths);
    let loads = plan.loads.iter().map(|load| &load.path);
    for link in flows.chain(loads).flat_map(|path| &path.forward) {
        if let Some(count) = sharing.get_mut(*link) {
            *count += 1.0;
        }
    }
    sharing
}

struct Shares<'a> {
    plan: &'a Plan,
    sharing: &'a [f64],
    /// End of the run, s.
    end: f64,
}

impl Shares<'_> {
    fn flow(&self, flow: &FlowPlan) -> f64 {
        let from = flow.start.as_secs_f64().min(self.end);
        let lasts = flow.stop.map_or(self.end, |stop| stop.as_secs_f64().min(self.end)) - from;
        let lasts = lasts.max(0.0);
        let each = match flow.protocol {
            Protocol::Core(_) => CORE,
            Protocol::Tcp(_) => TCP,
        };
        let admitted: Vec<(f64, f64)> =
            flow.paths.iter().map(|path| (self.rate(path) * lasts / PACKET, hops(path))).collect();
        let all: f64 = admitted.iter().map(|(packets, _)| packets).sum();
        let wanted = offered(&flow.traffic, lasts) / PACKET;
        let messages =
            flow.messages.map_or(0.0, |messages| lasts / messages.interval.as_secs_f64().max(1e-6));
        let sent = if all > 0.0 { (wanted / all).min(1.0) } else { 0.0 };
        let links: f64 = admitted.iter().map(|(packets, hops)| packets * hops * HOP).sum();
        sent * (all * each + links) + messages * each
    }

    fn load(&self, load: &LoadPlan) -> f64 {
        let to = load.stop.map_or(self.end, |stop| stop.as_secs_f64().min(self.end));
        let on = load.on_off.map_or(1.0, |(on, off)| share(on, off));
        let bits = load.rate.as_bps() as f64 * on * (to - load.start.as_secs_f64()).max(0.0);
        bits / (f64::from(load.packet) * 8.0).max(1.0) * load.path.forward.len() as f64 * HOP
    }

    /// The flow's share of the slowest link of a path, bit/s: the rate of each link is divided by
    /// the number of flows and loads that use it. Zero for a path without links, as between
    /// stations of a mesh, whose cost is added separately.
    fn rate(&self, path: &PathPlan) -> f64 {
        let share = |link: &usize| {
            let (plan, sharing) = (self.plan.links.get(*link)?, self.sharing.get(*link)?);
            Some(mean(&plan.config.rate, self.end) / sharing.max(1.0))
        };
        path.forward.iter().filter_map(share).reduce(f64::min).unwrap_or_default()
    }
}

/// The number of links that a packet crosses, plus half of those that acknowledgements cross.
fn hops(path: &PathPlan) -> f64 {
    path.forward.len() as f64 + path.back.len() as f64 / 2.0
}

/// Bits that the application offers in `lasts` seconds.
fn offered(traffic: &Traffic, lasts: f64) -> f64 {
    let each = |interval: Duration| lasts / interval.as_secs_f64().max(1e-6);
    match traffic {
        Traffic::Bulk => f64::INFINITY,
        Traffic::Transfers { size, repeat } => *size as f64 * *repeat as f64 * 8.0,
        Traffic::Poisson { size, interval } => *size as f64 * 8.0 * each(*interval),
        Traffic::OnOff { on, off, rate } => {
            rate.map_or(f64::INFINITY, |rate| rate.as_bps() as f64 * lasts) * share(*on, *off)
        }
        // Every message takes at least a packet, however short it is.
        Traffic::Messages(messages) => {
            f64::from(messages.size).max(PACKET / 8.0) * 8.0 * each(messages.interval)
        }
        Traffic::Silent => 0.0,
    }
}

fn share(on: Duration, off: Duration) -> f64 {
    on.as_secs_f64() / (on + off).as_secs_f64().max(1e-9)
}

/// The mean of a rate until `end`, bit/s.
fn mean(rate: &Schedule<Bitrate>, end: f64) -> f64 {
    let steps = rate.steps();
    let until = |index: usize| {
        let next = steps.get(index + 1).map_or(Time::MAX, |(time, _)| *time);
        next.since(Time::ZERO).as_secs_f64().min(end)
    };
    let bits = steps.iter().enumerate().map(|(index, (from, rate))| {
        let lasts = until(index) - from.since(Time::ZERO).as_secs_f64();
        rate.as_bps() as f64 * lasts.max(0.0)
    });
    bits.sum::<f64>() / end.max(1e-9)
}

#[cfg(test)]
mod tests {
    use crate::scenario::Scenario;

    fn cost(settings: &[&str]) -> f64 {
        let text = "name = \"x\"\nduration = \"100s\"\n[[path]]\nname = \"p\"\nrate = \"10mbit\"\n\
            delay = \"5ms\"\n[[flow]]\nname = \"f\"\nprofile = \"tcp:sack\"\npaths = \"p\"\n";
        let mut scenario = Scenario::parse(text, "x.toml").unwrap();
        for setting in settings {
            scenario.set(setting).unwrap();
        }
        scenario.cost(&scenario.points()[0])
    }

    #[test]
    fn longer_and_faster_runs_cost_more() {
        let one = cost(&[]);
        let about = |value: f64, times: f64| (value / one / times - 1.0).abs() < 0.1;
        assert!(about(cost(&["duration=200s"]), 2.0));
        assert!(about(cost(&["path.p.rate=30mbit"]), 3.0));
        // Several flows that share a link send no more packets than one flow.
        assert!(about(cost(&["flow.f.count=4"]), 1.0));
        // A transfer of a tenth of the data that the link carries in the run costs a tenth.
        assert!(about(cost(&["flow.f.traffic=size:12500kB"]), 0.1));
        assert!(cost(&["flow.f.profile=anabranch"]) > 10.0 * one);
    }

    #[test]
    fn losses_make_a_mesh_cheaper() {
        let text = "name = \"x\"\nduration = \"300s\"\n[mesh]\nstations = 50\n\
            [[flow]]\nname = \"f\"\nprofile = \"tcp:sack\"\nfrom = \"0\"\nto = \"1\"\n";
        let cost = |loss: &str| {
            let mut scenario = Scenario::parse(text, "x.toml").unwrap();
            scenario.set(&format!("mesh.loss={loss}")).unwrap();
            scenario.cost(&scenario.points()[0])
        };
        // Runs of scenarios/papers/mtcp/mobile.toml took 1.3 s without loss, 0.2 s at 5 % and
        // 0.04 s at 20 %.
        for (loss, measured) in [("0%", 1.3), ("5%", 0.2), ("20%", 0.04)] {
            let ratio = cost(loss) / measured;
            assert!((0.4..2.5).contains(&ratio), "{loss}: {ratio}");
        }
    }
}
