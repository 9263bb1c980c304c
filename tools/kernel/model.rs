//! The simulator's models of the kernel's transports, in virtual time, over the same links and seeds.

use anabranch_sim::scenario::Plan;

use crate::figures::Outcome;
use crate::files;
use crate::options::Options;
use crate::roads::Road;
use crate::systems::{System, letter};

/// One model on one road.
#[derive(Debug)]
pub struct Model {
    plan: Plan,
}

impl Model {
    /// The model that `system` names; `None` if `system` is no model.
    pub fn of(options: &Options, road: &Road, system: System) -> Option<Result<Self, String>> {
        let (of, path) = match system {
            System::TcpModel { profile, congestion, path, .. } => {
                ((profile, congestion), Some(path))
            }
            System::MptcpModel { congestion } => (("tcp:mptcp-linux", congestion), None),
            _ => return None,
        };
        Some(Model::new(options, road, of, path))
    }

    /// A model of a profile with a congestion control, over one path, counted from 0, or over all.
    ///
    /// # Errors
    /// When the scenario does not accept the settings of the model.
    fn new(
        options: &Options,
        road: &Road,
        (profile, congestion): (&str, &str),
        path: Option<usize>,
    ) -> Result<Self, String> {
        let Options { warm_up, seconds, .. } = options;
        // The kernel's CUBIC is not the one of RFC 9438.
        let control = if congestion == "cubic" { "cubic:like=linux" } else { congestion };
        let mut assignments = vec![
            format!("variants={}", road.variant),
            format!("warm-up={warm_up}s"),
            format!("duration={}s", warm_up + seconds),
            "vars.tcp=1".to_owned(),
            format!("flow.tcp.profile={profile}"),
            format!("flow.tcp.tcp.congestion={control}"),
        ];
        if let Some(path) = path {
            assignments.push(format!("flow.tcp.paths={}", letter(path)));
        }
        let scenario = files::load(road.file, &assignments)?;
        let point = scenario.points().first().ok_or("a road without a point")?;
        let plan = scenario.plan(point).map_err(|errors| files::first(&errors))?;
        Ok(Model { plan })
    }

    /// The goodput with this seed.
    ///
    /// # Errors
    /// When the run cannot be made.
    pub fn run(&self, seed: u64) -> Result<Outcome, String> {
        let report = self.plan.run(seed).map_err(|error| error.to_string())?;
        let flow = self.plan.flows.first().ok_or("the scenario has no flow")?;
        let goodput = report.scalar(&flow.subject, "goodput_mbps");
        let goodput_mbps = goodput.ok_or("the simulator tells no goodput")?;
        Ok(Outcome { goodput_mbps, ..Outcome::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reno at 1 % loss over 40 ms has the goodput of the formula by Mathis and others, within a
    /// third.
    #[test]
    fn models_run_over_a_road() {
        let words = ["program", "--time", "20", "--warm-up", "2"].map(str::to_owned);
        let options = Options::read(&words).expect("valid").expect("no help");
        let road = Road { file: "papers", variant: "loss-1".to_owned(), paths: 2, kind: "" };
        let goodput = |profile, path| {
            let model = Model::new(&options, &road, (profile, "reno"), path).expect("valid");
            model.run(1).expect("runs").goodput_mbps
        };
        let expected = 1.22 * 1448.0 * 8e-6 / (0.04 * 0.1);
        let alone = goodput("tcp:linux", Some(0));
        assert!((0.66..1.33).contains(&(alone / expected)), "{alone} of {expected}");
        let both = goodput("tcp:mptcp-linux", None);
        assert!((1.4..2.6).contains(&(both / alone)), "{both} of {alone}");
    }
}
