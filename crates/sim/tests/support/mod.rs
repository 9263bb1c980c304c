//! Helpers for tests of whole transfers.

#![allow(dead_code, reason = "every test program uses a part of it")]

use core::ops::Range;
use core::time::Duration;

use anabranch_core::profiles::Profile;
use anabranch_sim::link::LinkConfig;
use anabranch_sim::report::RunReport;
use anabranch_sim::scenario::{FlowPlan, Plan};
use anabranch_types::{Rng, math};

/// The profiles that must pass every test.
pub const PROFILES: [&str; 3] = ["anabranch", "mplot", "uncoded"];
/// Width of the bins of [`bins`] and [`sent`].
const BIN: Duration = Duration::from_millis(100);

/// Random numbers for the settings of tests.
pub struct Dice(pub Rng);

impl Dice {
    pub fn within(&mut self, range: Range<f64>) -> f64 {
        range.start + self.0.uniform() * (range.end - range.start)
    }

    /// A value whose logarithm is uniform, so that small and large values are equally likely.
    pub fn spread(&mut self, range: Range<f64>) -> f64 {
        math::exp(self.within(math::ln(range.start)..math::ln(range.end)))
    }
}

/// The median of the results of `measure` over an odd number of seeds.
pub fn median<const N: usize>(seeds: [u64; N], measure: impl FnMut(u64) -> f64) -> f64 {
    let mut values = seeds.map(measure);
    values.sort_by(f64::total_cmp);
    values[N / 2]
}

pub fn link(text: &str) -> LinkConfig {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub fn links(texts: &[&str]) -> Vec<LinkConfig> {
    texts.iter().map(|text| link(text)).collect()
}

pub fn profile(name: &str) -> Profile {
    Profile::named(name).unwrap_or_else(|| panic!("there is no profile {name}"))
}

/// A flow with `profile` that writes for this many seconds.
pub fn bulk(profile: &str, seconds: u64) -> FlowPlan {
    FlowPlan::core(self::profile(profile)).until(Duration::from_secs(seconds))
}

/// A flow with `profile` that sends this many bytes.
pub fn bytes(profile: &str, bytes: u64) -> FlowPlan {
    FlowPlan::core(self::profile(profile)).of(bytes)
}

/// The plan's only flow, to change it.
pub fn flow(plan: &mut Plan) -> &mut FlowPlan {
    plan.flows.first_mut().expect("the plan has a flow")
}

/// Runs the plan and checks that every flow has delivered everything without a failure.
pub fn go(plan: &Plan, seed: u64) -> RunReport {
    let report = plan.run(seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    for flow in &report.flows {
        assert_eq!(flow.failure, None, "seed {seed}: {}", flow.subject);
        assert!(flow.done, "seed {seed}: {} is at {} bytes", flow.subject, flow.bytes);
    }
    println!(
        "seed {seed}: {} bytes in {:?}, {:.2} Mb/s, efficiency {:.3}, longest gap {:?}",
        report.bytes(),
        report.elapsed(),
        report.goodput_mbps(),
        report.efficiency(),
        report.flows[0].longest_gap,
    );
    report
}

/// Makes the plan record the rate sent on every link and the flows' goodput, in bins of 100 ms.
pub fn in_tenths(mut plan: Plan) -> Plan {
    for link in plan.links.clone() {
        plan = plan.record(&format!("link.{}", link.name), "sent_mbps", BIN);
    }
    plan.record("all", "goodput_mbps", BIN)
}

/// Bytes in each bin of 100 ms, from the rate recorded as `metric` of `subject`.
pub fn bins(report: &RunReport, subject: &str, metric: &str) -> Vec<u64> {
    let series = report.series(subject, metric).expect("it was recorded");
    let bytes = |mbps: &f64| (mbps * 1e6 / 8.0 * BIN.as_secs_f64()).round() as u64;
    series.values.iter().map(bytes).collect()
}

/// Bytes sent over a link between two times, in tenths of a second.
pub fn sent(report: &RunReport, link: usize, tenths: Range<usize>) -> u64 {
    let bins = bins(report, &format!("link.{link}"), "sent_mbps");
    tenths.map(|bin| bins.get(bin).copied().unwrap_or(0)).sum()
}
