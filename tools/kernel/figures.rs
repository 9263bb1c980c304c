//! The results of a run, read from its programs' output.

use serde::Serialize;
use serde_json::Value;

use crate::workload::{FLOWS, Workload};

/// The figures of one run. Those of links cover the forward direction and the whole time, the warm-up included.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Application bytes that arrived after the warm-up by the receiver's clock, Mb/s.
    pub goodput_mbps: f64,
    pub links: Vec<LinkFigures>,
    /// Processor time of both sides, the kernel's part in their system calls included, for each gigabyte that arrived.
    pub cpu_seconds_per_gb: Option<f64>,
    /// Completion times of short flows, in order, ms; the last flow may have been cut off.
    pub flows_ms: Vec<f64>,
    /// The longest time without a delivery, ms, while one of the paths went dark.
    pub gap_ms: Option<f64>,
    /// How long each message took one way, ms.
    pub messages_ms: Vec<f64>,
    /// How late the emulator forwarded packets, 99th percentile, µs.
    pub late_p99_us: f64,
    /// Why the links did not behave as configured; `None` if they did.
    pub unusable: Option<String>,
    /// Remarks on the run.
    pub notes: Vec<String>,
    /// Measurements that failed, and why.
    pub failures: Vec<String>,
}

/// A link in the forward direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LinkFigures {
    pub name: String,
    /// Packets that arrived at the link, and how many of them the queue or the policer dropped.
    pub packets: f64,
    pub dropped: f64,
    /// The link's share of the bytes that all links delivered.
    pub share: f64,
    /// Queueing delay of packets: mean and 95th percentile.
    pub queue_mean_ms: f64,
    pub queue_p95_ms: f64,
}

/// A path with a smaller share of the bytes counts as unused.
const LEAST_SHARE: f64 = 0.01;

impl Outcome {
    /// The figures of the kernel's transport over `subflows` subflows, from the reports of the emulator and both sides.
    ///
    /// # Errors
    /// When a figure is missing, or a subflow has another congestion control than it should.
    pub fn of_kernel(
        links: &Value,
        received: &Value,
        sent: &Value,
        subflows: usize,
    ) -> Result<Self, String> {
        let mut outcome = Outcome::of_sides(links, received, sent)?;
        let asked = sent.get("congestion").and_then(Value::as_str).unwrap_or_default();
        let Some(seen) = sent.get("subflows").and_then(Value::as_array) else {
            outcome.notes.push("`ss` is missing, so that subflows were not looked at".to_owned());
            return Ok(outcome);
        };
        let seen: Vec<&str> = seen.iter().filter_map(Value::as_str).collect();
        if let Some(other) = seen.iter().find(|name| **name != asked) {
            return Err(format!("a subflow has {other} and not {asked}"));
        }
        match seen.len() {
            0 => outcome.notes.push("no connection".to_owned()),
            some if some == subflows => {}
            some => outcome.notes.push(format!("{some} of {subflows} subflows")),
        }
        if subflows > 1 {
            outcome.note_idle();
        }
        Ok(outcome)
    }

    /// The figures of a transfer over QUIC.
    ///
    /// # Errors
    /// When a figure is missing.
    pub fn of_quic(links: &Value, received: &Value, sent: &Value) -> Result<Self, String> {
        let mut outcome = Outcome::of_sides(links, received, sent)?;
        outcome.note_idle();
        Ok(outcome)
    }

    /// The goodput and the processor time from the reports of both sides.
    fn of_sides(links: &Value, received: &Value, sent: &Value) -> Result<Self, String> {
        let mut outcome = Outcome::of_links(links)?;
        outcome.goodput_mbps = number(received, "goodput_mbps")?;
        let bytes = number(received, "all_bytes")?;
        let cpu = [received, sent].map(|side| number(side, "cpu_seconds"));
        if let ([Ok(one), Ok(other)], true) = (cpu, bytes > 0.0) {
            outcome.cpu_seconds_per_gb = Some((one + other) / (bytes * 1e-9));
        }
        Ok(outcome)
    }

    /// The figures of our transport; the goodput is that of the intervals that begin within `window`, seconds.
    ///
    /// # Errors
    /// When a figure is missing.
    pub fn of_bench(links: &Value, received: &Value, window: (f64, f64)) -> Result<Self, String> {
        let mut outcome = Outcome::of_links(links)?;
        let intervals = received.get("intervals").and_then(Value::as_array);
        // Intervals begin a moment late; the last one may be a short remainder.
        let window = window.0 - 0.05..window.1 - 0.05;
        let (mut bytes, mut seconds) = (0.0, 0.0);
        for interval in intervals.ok_or("bench prints no intervals")? {
            let span = interval.get("sum_received").ok_or("an interval has no sum_received")?;
            if window.contains(&number(span, "start")?) {
                bytes += number(span, "bytes")?;
                seconds += number(span, "seconds")?;
            }
        }
        if seconds <= 0.0 {
            return Err("bench ended within the warm-up".to_owned());
        }
        outcome.goodput_mbps = bytes * 8e-6 / seconds;
        let cpu = received.pointer("/end/cpu_seconds_per_gb");
        outcome.cpu_seconds_per_gb =
            cpu.and_then(|cpu| Some(number(cpu, "local").ok()? + number(cpu, "remote").ok()?));
        outcome.note_idle();
        Ok(outcome)
    }

    /// Adds what a workload measured, from the reports of the emulator and of the side that measures.
    ///
    /// # Errors
    /// When a figure is missing.
    pub fn add(&mut self, workload: Workload, links: &Value, told: &Value) -> Result<(), String> {
        let name = workload.name();
        let unusable = links.get("unusable_because").and_then(Value::as_str);
        self.notes.extend(unusable.map(|why| format!("{name}: unusable: {why}")));
        let numbers = |key: &str| {
            let all = told.get(key).and_then(Value::as_array);
            let all = all.ok_or_else(|| format!("a report has no list `{key}`"))?;
            Ok::<Vec<f64>, String>(all.iter().filter_map(Value::as_f64).collect())
        };
        match workload {
            Workload::Flows => {
                self.flows_ms = numbers("flows_ms")?;
                if told.get("finished") != Some(&Value::Bool(true)) {
                    let count = self.flows_ms.len();
                    let time = workload.time().as_secs();
                    self.notes.push(format!("flow {count} of {FLOWS} was not done after {time} s"));
                }
            }
            Workload::Gap => {
                self.gap_ms = told.get("gap_ms").and_then(Value::as_f64);
                if self.gap_ms.is_none() {
                    self.notes.push("gap: no connection".to_owned());
                } else if told.get("resumed") != Some(&Value::Bool(true)) {
                    self.notes.push("gap: nothing came any more until the end".to_owned());
                }
            }
            Workload::Messages => {
                self.messages_ms = numbers("delays_ms")?;
                let missing = number(told, "missing")?;
                if missing > 0.0 {
                    self.notes.push(format!("{missing} messages had not arrived at the end"));
                }
            }
        }
        Ok(())
    }

    fn of_links(report: &Value) -> Result<Self, String> {
        let all = report.get("links").and_then(Value::as_array);
        let all = all.ok_or("emulate reports no links")?.iter();
        let there = all.filter(|link| !name(link).ends_with(".reverse"));
        let mut links = Vec::new();
        for link in there {
            let causes = ["dropped_full", "dropped_early", "dropped_policed"];
            let dropped = causes.iter().map(|cause| number(link, cause)).sum::<Result<f64, _>>()?;
            links.push(LinkFigures {
                name: name(link).to_owned(),
                packets: number(link, "packets_in")?,
                dropped,
                share: number(link, "bytes_delivered")?,
                queue_mean_ms: number(link, "queue_mean_ms")?,
                queue_p95_ms: number(link, "queue_p95_ms")?,
            });
        }
        let delivered: f64 = links.iter().map(|link| link.share).sum();
        links.iter_mut().for_each(|link| link.share /= delivered.max(1.0));
        let lateness = report.get("lateness").ok_or("emulate reports no lateness")?;
        let unusable = report.get("unusable_because").and_then(Value::as_str);
        Ok(Outcome {
            links,
            late_p99_us: number(lateness, "p99_us")?,
            unusable: unusable.map(str::to_owned),
            ..Outcome::default()
        })
    }

    /// Names the paths that carried almost nothing.
    fn note_idle(&mut self) {
        let idle = self.links.iter().filter(|link| link.share < LEAST_SHARE);
        let notes = idle.map(|link| format!("path {} carried under 1 %", link.name));
        self.notes.extend(notes.collect::<Vec<_>>());
    }

    /// The share of all packets that queues and policers dropped.
    pub fn drop_share(&self) -> f64 {
        let sum = |of: fn(&LinkFigures) -> f64| self.links.iter().map(of).sum::<f64>();
        sum(|link| link.dropped) / sum(|link| link.packets).max(1.0)
    }
}

fn name(link: &Value) -> &str {
    link.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn number(value: &Value, key: &str) -> Result<f64, String> {
    let number = value.get(key).and_then(Value::as_f64);
    number.ok_or_else(|| format!("a report has no number `{key}`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn links(shares: [u64; 2]) -> Value {
        let link = |name: &str, bytes: u64| {
            json!({ "name": name, "packets_in": 1000, "bytes_delivered": bytes, "dropped_full": 20,
                "dropped_early": 5, "dropped_policed": 0, "queue_mean_ms": 3.5, "queue_p95_ms": 9 })
        };
        json!({ "lateness": { "p99_us": 70 }, "unusable_because": null, "links": [
            link("a", shares[0]), link("a.reverse", 77), link("b", shares[1]), link("b.reverse", 77),
        ]})
    }

    #[test]
    fn the_kernels_figures_are_the_receivers_and_the_links() {
        let received = json!({ "goodput_mbps": 12.5, "all_bytes": 2e9, "cpu_seconds": 0.5 });
        let sent =
            json!({ "congestion": "reno", "subflows": ["reno", "reno"], "cpu_seconds": 1.5 });
        let outcome =
            Outcome::of_kernel(&links([300, 100]), &received, &sent, 2).expect("complete");
        assert_eq!((outcome.goodput_mbps, outcome.late_p99_us), (12.5, 70.0));
        assert_eq!(outcome.cpu_seconds_per_gb, Some(1.0));
        assert_eq!((outcome.links.len(), outcome.links[0].share), (2, 0.75));
        assert_eq!((outcome.drop_share(), outcome.links[1].queue_p95_ms), (0.025, 9.0));
        assert!(outcome.notes.is_empty() && outcome.unusable.is_none());

        let idle = Outcome::of_kernel(&links([999, 1]), &received, &sent, 3).expect("complete");
        assert_eq!(idle.notes, ["2 of 3 subflows", "path b carried under 1 %"]);
        let other = json!({ "congestion": "reno", "subflows": ["reno", "bbr"], "cpu_seconds": 1 });
        let message = Outcome::of_kernel(&links([1, 1]), &received, &other, 2).expect_err("bbr");
        assert_eq!(message, "a subflow has bbr and not reno");
        assert!(Outcome::of_kernel(&json!({}), &received, &sent, 2).is_err());
        assert!(Outcome::of_kernel(&links([1, 1]), &json!({}), &sent, 2).is_err());
    }

    #[test]
    fn workloads_add_their_figures_and_what_was_odd() {
        let mut outcome = Outcome::default();
        let (calm, busy) = (json!({}), json!({ "unusable_because": "too busy" }));
        let flows = json!({ "flows_ms": [90.0, 120.0], "finished": false });
        outcome.add(Workload::Flows, &busy, &flows).expect("complete");
        let gap = json!({ "gap_ms": 250.0, "resumed": true });
        outcome.add(Workload::Gap, &calm, &gap).expect("complete");
        let messages = json!({ "delays_ms": [20.0, 25.0], "missing": 1 });
        outcome.add(Workload::Messages, &calm, &messages).expect("complete");
        assert_eq!((outcome.flows_ms.len(), outcome.gap_ms), (2, Some(250.0)));
        assert_eq!(outcome.messages_ms, [20.0, 25.0]);
        assert_eq!(
            outcome.notes,
            [
                "flows: unusable: too busy",
                "flow 2 of 20 was not done after 20 s",
                "1 messages had not arrived at the end"
            ]
        );
        let silent = json!({ "gap_ms": null, "resumed": false });
        outcome.add(Workload::Gap, &calm, &silent).expect("complete");
        assert_eq!(outcome.gap_ms, None);
        assert!(outcome.add(Workload::Messages, &calm, &json!({})).is_err());
    }

    #[test]
    fn only_the_intervals_after_the_warm_up_count() {
        let interval = |start: f64, seconds: f64, bytes: u64| {
            json!({ "sum_received": { "start": start, "end": start + seconds, "seconds": seconds,
                "bytes": bytes } })
        };
        let received = json!({ "intervals": [
            interval(0.0, 3.001, 9), interval(3.001, 1.0, 1_000_000), interval(4.001, 1.0, 500_000),
            interval(5.001, 1.0, 7),
        ], "end": { "cpu_seconds_per_gb": { "local": 1.5, "remote": 2.0 } } });
        let outcome = Outcome::of_bench(&links([1, 1]), &received, (3.0, 5.0)).expect("complete");
        assert_eq!((outcome.goodput_mbps, outcome.cpu_seconds_per_gb), (6.0, Some(3.5)));
        assert!(Outcome::of_bench(&links([1, 1]), &received, (30.0, 50.0)).is_err());
        assert!(Outcome::of_bench(&links([1, 1]), &json!({}), (3.0, 5.0)).is_err());
    }
}
