//! The path rates that a striping application is told.

use core::time::Duration;

use anabranch_types::{Bitrate, Time};

use super::RunError;
use crate::endpoint::ToldRates;
use crate::link::{Link, LinkConfig};
use crate::rate::RateProcess;
use crate::scenario::plan::{FlowPlan, LinkPlan, Plan};

/// The rate of each path of `flow`, which is that of its slowest link, at every multiple of
/// `interval` up to the end of the run. The random rates of the links are computed again from the
/// seed.
///
/// # Errors
/// When a link's configuration is invalid or the interval is zero.
pub(super) fn sampled(
    plan: &Plan,
    flow: &FlowPlan,
    told: ToldRates,
    interval: Duration,
    seed: u64,
) -> Result<Vec<Vec<Bitrate>>, RunError> {
    if interval.is_zero() {
        return Err(RunError::Build(format!(
            "flow '{}' is told rates at no interval",
            flow.subject
        )));
    }
    let mut paths = Vec::new();
    for path in &flow.paths {
        let links = path.forward.iter().filter_map(|link| plan.links.get(*link));
        let course = |link: &LinkPlan| {
            let blackouts = match told {
                ToldRates::BlackoutsSeen => link.config.blackouts.clone(),
                ToldRates::BlackoutsUnseen => Vec::new(),
            };
            let config = LinkConfig { blackouts, ..link.config.clone() };
            Link::<()>::rate_course(&config, seed, &link.name)
        };
        let courses: Result<Vec<_>, _> = links.map(course).collect();
        paths.push(courses.map_err(|error| RunError::Build(error.to_string()))?);
    }
    let mut samples = Vec::new();
    let mut now = Time::ZERO;
    while now <= Time::ZERO + plan.duration {
        let rate = |courses: &mut Vec<RateProcess>| {
            courses.iter_mut().for_each(|course| course.advance(now));
            courses.iter().map(|course| course.current()).min().unwrap_or_default()
        };
        samples.push(paths.iter_mut().map(rate).collect());
        now += interval;
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    const TEXT: &str = r#"
        name = "rates"
        duration = "40s"
        [[link]]
        name = "access"
        from = "a"
        to = "b"
        rate = "4mbit/8mbit@20s"
        delay = "1ms"
        blackout = "25s-35s"
        [[link]]
        name = "core"
        from = "b"
        to = "c"
        rate = "6mbit"
        delay = "1ms"
        [[path]]
        name = "through"
        via = ["access", "core"]
        [[path]]
        name = "random"
        from = "a"
        to = "c"
        rate = "5mbit"
        fluctuation = "10s/20%-100%/10%"
        delay = "1ms"
        [[flow]]
        name = "flow"
        profile = "tcp:smart"
    "#;

    /// The rates of both paths at each multiple of 10 s, Mb/s.
    fn rates(told: ToldRates, seed: u64) -> [Vec<f64>; 2] {
        let scenario = Scenario::parse(TEXT, "t.toml").expect("well formed");
        let plan = scenario.plan(&scenario.points()[0]).expect("a plan");
        let interval = Duration::from_secs(10);
        let samples = sampled(&plan, &plan.flows[0], told, interval, seed).expect("rates");
        [0, 1].map(|path| samples.iter().map(|sample| sample[path].as_mbps()).collect())
    }

    #[test]
    fn a_path_is_as_fast_as_its_slowest_link() {
        let [unseen, _] = rates(ToldRates::BlackoutsUnseen, 1);
        assert_eq!(unseen, [4.0, 4.0, 6.0, 6.0, 6.0]);
        let [seen, _] = rates(ToldRates::BlackoutsSeen, 1);
        assert_eq!(seen, [4.0, 4.0, 6.0, 0.0, 6.0]);
    }

    #[test]
    fn random_rates_are_those_of_the_link() {
        let scenario = Scenario::parse(TEXT, "t.toml").expect("well formed");
        let plan = scenario.plan(&scenario.points()[0]).expect("a plan");
        let link = plan.links.iter().find(|link| link.name == "random").expect("it exists");
        let mut live = Link::<()>::new(&link.config, 7, &link.name).expect("a link");
        let [_, told] = rates(ToldRates::BlackoutsUnseen, 7);
        for (step, mbps) in told.iter().enumerate() {
            live.advance(Time::from_secs(10 * step as u64), |_| {});
            assert_eq!(live.rate().as_mbps(), *mbps);
        }
        assert!(told.iter().any(|mbps| *mbps != told[0]), "{told:?}");
        assert_ne!(rates(ToldRates::BlackoutsUnseen, 8)[1], told);
    }
}
