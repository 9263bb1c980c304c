//! The figures of one run.

use std::time::Duration;

use anabranch_sim::link::Link;
use anabranch_sim::report::RunReport;
use anabranch_sim::scenario::{FlowPlan, Plan};
use anabranch_types::Time;

/// Figures of one run, from the end of the warm-up on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Application bytes delivered, messages included, Mb/s.
    pub goodput_mbps: f64,
    /// Goodput over the erasure capacity of the links in use, ∫ rate·(1 − loss) dt.
    pub efficiency: f64,
    /// Delays of messages, milliseconds: the median and the 99th percentile, infinite where more than half or 1 % of
    /// the messages are missing. `None` where the system sends no messages.
    pub message_ms: Option<[f64; 2]>,
    /// 95th percentile of the queueing delay of each link, milliseconds.
    pub queue_ms: Vec<f64>,
    /// Share of each link in the bytes that arrived.
    pub shares: Vec<f64>,
    /// Why the flow ended early, if it did; the figures then cover the time before that.
    pub failure: Option<String>,
}

/// Messages sent so shortly before the end are not counted, because they may still be on their way.
const LATE: Duration = Duration::from_secs(1);

impl Measured {
    /// Runs `plan`, which has one flow, with `seed`.
    ///
    /// # Errors
    /// When the run cannot be made.
    pub fn run(plan: &Plan, seed: u64) -> Result<Self, String> {
        let report = plan.run(seed).map_err(|error| error.to_string())?;
        let (Some(flow), Some(outcome)) = (plan.flows.first(), report.flows.first()) else {
            return Err("the scenario has no flow".to_owned());
        };
        let capacity = capacity_mbps(plan, flow, seed)?;
        let stream = report.scalar(&flow.subject, "goodput_mbps").unwrap_or(0.0);
        let goodput_mbps = stream + message_mbps(plan, flow, &report);
        let throughput = |name: &str| {
            report.scalar(&format!("{}/{name}", flow.subject), "throughput_mbps").unwrap_or(0.0)
        };
        let arrived: Vec<f64> = flow.paths.iter().map(|path| throughput(&path.name)).collect();
        let sum: f64 = arrived.iter().sum();
        let share = |name: &str| {
            let index = flow.paths.iter().position(|path| path.name == name);
            let part = index.and_then(|index| arrived.get(index)).copied().unwrap_or(0.0);
            if sum > 0.0 { part / sum } else { 0.0 }
        };
        Ok(Measured {
            goodput_mbps,
            efficiency: goodput_mbps / capacity.max(1e-9),
            message_ms: message_delays(plan, flow, &report),
            queue_ms: plan.paths.iter().map(|path| queue_ms(plan, &path.name, &report)).collect(),
            shares: plan.paths.iter().map(|path| share(&path.name)).collect(),
            failure: outcome.failure.as_ref().map(|failure| format!("{failure:?}")),
        })
    }
}

fn window(plan: &Plan) -> (Time, Time) {
    (Time::ZERO + plan.warm_up, Time::ZERO + plan.duration)
}

/// The erasure capacity of the links of the flow's paths.
fn capacity_mbps(plan: &Plan, flow: &FlowPlan, seed: u64) -> Result<f64, String> {
    let (from, to) = window(plan);
    let links = flow.paths.iter().flat_map(|path| &path.forward);
    let bits = links.filter_map(|index| plan.links.get(*index)).map(|link| {
        let link = Link::<()>::new(&link.config, seed, &link.name);
        link.map(|link| link.capacity_integral(from, to)).map_err(|error| error.to_string())
    });
    let bits = bits.sum::<Result<f64, String>>()?;
    Ok(bits * 1e-6 / to.since(from).as_secs_f64())
}

/// Goodput of the messages that arrived.
fn message_mbps(plan: &Plan, flow: &FlowPlan, report: &RunReport) -> f64 {
    let (from, to) = window(plan);
    let (Some(messages), Some(outcome)) = (flow.messages, report.flows.first()) else { return 0.0 };
    let arrivals = outcome.messages.arrived.iter().map(|(sent, delay)| *sent + *delay);
    let count = arrivals.filter(|time| (from..to).contains(time)).count();
    count as f64 * messages.size as f64 * 8e-6 / to.since(from).as_secs_f64()
}

fn message_delays(plan: &Plan, flow: &FlowPlan, report: &RunReport) -> Option<[f64; 2]> {
    let (from, to) = window(plan);
    let (messages, outcome) = (flow.messages?, report.flows.first()?);
    let window = from..to - LATE;
    let arrived = outcome.messages.arrived.iter().filter(|(sent, _)| window.contains(sent));
    let mut delays: Vec<f64> = arrived.map(|(_, delay)| delay.as_secs_f64() * 1e3).collect();
    // Missing messages count as infinitely late.
    let expected = window.end.since(window.start).as_nanos() / messages.interval.as_nanos().max(1);
    let expected = usize::try_from(expected).unwrap_or(0).max(delays.len());
    delays.resize(expected, f64::INFINITY);
    Some([quantile(&mut delays, 0.5), quantile(&mut delays, 0.99)])
}

fn queue_ms(plan: &Plan, path: &str, report: &RunReport) -> f64 {
    let Some(series) = report.series(&format!("link.{path}"), "queue_delay_s") else { return 0.0 };
    let warm_up = plan.warm_up.as_secs_f64();
    let points = series.times.iter().zip(&series.values);
    let mut values: Vec<f64> =
        points.filter(|(time, _)| **time > warm_up).map(|(_, value)| value * 1e3).collect();
    quantile(&mut values, 0.95)
}

/// The least value that a share `q` of the values does not exceed; 0 without values.
pub fn quantile(values: &mut [f64], q: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = (values.len() as f64 * q).ceil().max(1.0) as usize;
    values.get(rank - 1).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_occur() {
        let mut values = vec![3.0, f64::INFINITY, 1.0, 2.0];
        assert_eq!(quantile(&mut values, 0.5), 2.0);
        assert_eq!(quantile(&mut values, 0.75), 3.0);
        assert_eq!(quantile(&mut values, 0.99), f64::INFINITY);
        assert_eq!(quantile(&mut [], 0.5), 0.0);
    }
}
