//! The demo's report: figures, table and verdict.

use std::fmt::Write;
use std::io::IsTerminal;
use std::time::Duration;

use anabranch_emulate::Lateness;
use anabranch_sim::loss::LossConfig;
use anabranch_types::Probability;
use serde::{Serialize, Serializer};

use super::plan::Plan;
use super::simulated::{BestPath, Simulated};
use super::table::{headings, line};
use super::transfer::Outcome;
use super::watch::rows;
use crate::format;
use crate::rows::name_width;

/// The report, as `--json` prints it. Rates are in Mb/s, shares and losses between 0 and 1.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    pub(super) profile: String,
    pub(super) version: &'static str,
    pub(super) seed: u64,
    /// Bytes that arrived, and how long they took, from the first handshake datagram to the last byte.
    pub(super) bytes: u64,
    #[serde(serialize_with = "rounded")]
    pub(super) seconds: f64,
    /// Whether what arrived is what was sent.
    pub(super) sha256_ok: bool,
    #[serde(serialize_with = "rounded")]
    pub(super) goodput_mbps: f64,
    /// Erasure capacity of the links: the time average of Σ rate·(1 − loss).
    #[serde(serialize_with = "rounded")]
    pub(super) erasure_capacity_mbps: f64,
    /// Application bits over what the links could have delivered.
    #[serde(serialize_with = "rounded")]
    pub(super) efficiency: f64,
    /// Goodput of the fastest path if it were the only one; 0 if no single path carries anything.
    #[serde(serialize_with = "rounded")]
    pub(super) best_single_path_mbps: f64,
    /// Goodput of the demo in virtual time; 0 if nothing got through.
    #[serde(serialize_with = "rounded")]
    pub(super) simulated_mbps: f64,
    /// Lateness of the worst emulated link, 99th percentile and maximum: what a busy machine adds to its
    /// delay.
    #[serde(serialize_with = "rounded")]
    pub(super) links_late_p99_ms: f64,
    #[serde(serialize_with = "rounded")]
    pub(super) links_late_max_ms: f64,
    /// Coding blocks, repairs sent, and repairs that were not needed.
    pub(super) blocks: u64,
    pub(super) repairs_sent: u64,
    pub(super) repairs_unneeded: u64,
    pub(super) paths: Vec<PathReport>,
    #[serde(skip)]
    best_single_path: Option<BestPath>,
}

/// One path of a [`Report`].
#[derive(Clone, Debug, Serialize)]
pub(super) struct PathReport {
    pub(super) name: String,
    /// The link's first rate and one-way delay.
    #[serde(serialize_with = "rounded")]
    pub(super) rate_mbps: f64,
    #[serde(serialize_with = "rounded")]
    pub(super) delay_ms: f64,
    /// Random loss: the configured long-run mean, and the share that was actually lost.
    #[serde(serialize_with = "rounded")]
    pub(super) loss_configured: f64,
    #[serde(serialize_with = "rounded")]
    pub(super) loss_realised: f64,
    /// Packets offered to the link, and those that came out of it.
    pub(super) sent_packets: u64,
    pub(super) delivered_packets: u64,
    /// This path's share of all bytes that came out of the links.
    #[serde(serialize_with = "rounded")]
    pub(super) share: f64,
    /// Smoothed round-trip time at the end; null if it was never measured.
    pub(super) srtt_ms: Option<f64>,
    pub(super) ecn_marks: u64,
    /// Packets that found the link's queue full.
    pub(super) queue_drops: u64,
    /// Rate at the link's output, headers included.
    #[serde(serialize_with = "rounded")]
    pub(super) mbps: f64,
}

/// Rounds to six decimals, which are enough for every figure here.
fn rounded<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(round(*value))
}

fn round(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

impl Report {
    pub(super) fn new(plan: &Plan, outcome: &Outcome, simulated: Simulated) -> Self {
        let seconds = outcome.elapsed().as_secs_f64();
        let bits = outcome.bytes as f64 * 8.0;
        let per_second = |bits: f64| if seconds > 0.0 { bits / seconds / 1e6 } else { 0.0 };
        let capacity = outcome.capacity_bits;
        let totals = outcome.stats.sent;
        let latest = |late: fn(&Lateness) -> Duration| {
            let routes = outcome.relay.paths.iter().flat_map(|path| &path.routes);
            let late = routes.map(|route| late(&route.lateness)).max();
            late.unwrap_or_default().as_secs_f64() * 1e3
        };
        Report {
            profile: plan.profile_name.clone(),
            version: env!("CARGO_PKG_VERSION"),
            seed: plan.seed,
            bytes: outcome.bytes,
            seconds,
            sha256_ok: outcome.sent.as_ref() == outcome.received.as_ref(),
            goodput_mbps: per_second(bits),
            erasure_capacity_mbps: per_second(capacity),
            efficiency: if capacity > 0.0 { bits / capacity } else { 0.0 },
            best_single_path_mbps: simulated.best_path.as_ref().map_or(0.0, |best| best.mbps),
            simulated_mbps: simulated.mbps,
            links_late_p99_ms: latest(|late| late.quantile(0.99)),
            links_late_max_ms: latest(Lateness::max),
            blocks: totals.blocks,
            repairs_sent: totals.repairs,
            repairs_unneeded: totals.repairs_unneeded,
            paths: path_reports(plan, outcome),
            best_single_path: simulated.best_path,
        }
    }

    /// The report as text: a table, the totals and the verdict.
    pub(super) fn text(&self, plan: &Plan, outcome: &Outcome) -> String {
        let stats = Some(&outcome.stats);
        let rows = rows(&outcome.relay, stats, &outcome.addresses, outcome.elapsed());
        let width = name_width("path", rows.iter().map(|row| row.name.as_str()));
        let mut text = format!("{}\n", headings(width));
        for row in &rows {
            let _ = writeln!(text, "{}", line(row, width));
        }
        let _ = writeln!(
            text,
            "\n{}, {} sent, {} of them not needed.",
            format::counted(self.blocks, "block"),
            format::counted(self.repairs_sent, "repair"),
            format::count(self.repairs_unneeded)
        );
        let same = if self.sha256_ok { "is what" } else { "is NOT what" };
        let sum = format::hex(outcome.received.as_ref());
        let _ = writeln!(text, "What arrived {same} was sent; its SHA-256 is\n{sum}\n");
        let _ =
            writeln!(text, "{}", format::wrapped(&self.verdict(plan.is_lossy()), width_limit()));
        text
    }

    /// The outcome in a sentence.
    fn verdict(&self, lossy: bool) -> String {
        if !self.sha256_ok {
            return "What arrived is not what was sent.".to_owned();
        }
        if self.bytes == 0 {
            return "There was nothing to send, and nothing arrived.".to_owned();
        }
        let lossy = if lossy { "lossy " } else { "" };
        let links = match self.paths.len() {
            1 => format!("the {lossy}link"),
            n => format!("the {} {lossy}links", format::number_word(n)),
        };
        let mut text = format!(
            "All {} arrived intact at {} Mb/s: {} of what {links} could carry",
            format::bytes(self.bytes),
            format::mbps(self.goodput_mbps),
            format::percent(self.efficiency)
        );
        if self.paths.len() > 1 {
            match &self.best_single_path {
                Some(best) => {
                    let times = self.goodput_mbps / best.mbps;
                    let BestPath { name, mbps } = best;
                    let mbps = format::mbps(*mbps);
                    let _ = write!(
                        text,
                        ", {times:.1} times the best single link ({name} alone: {mbps} Mb/s)"
                    );
                }
                None => text += ", which no single link could have carried",
            }
        }
        text + "."
    }
}

/// Longest line of text: a terminal would break longer ones within words.
fn width_limit() -> usize {
    if std::io::stdout().is_terminal() { 80 } else { usize::MAX }
}

fn path_reports(plan: &Plan, outcome: &Outcome) -> Vec<PathReport> {
    let rows = rows(&outcome.relay, Some(&outcome.stats), &outcome.addresses, outcome.elapsed());
    let paths = plan.paths.iter().zip(&outcome.relay.paths).zip(rows);
    let report =
        |((config, path), row): ((&anabranch_emulate::PathConfig, _), super::table::Row)| {
            let path: &anabranch_emulate::PathStats = path;
            let rate = config.forward.rate.steps().first().map_or(0.0, |(_, rate)| rate.as_mbps());
            PathReport {
                name: row.name,
                rate_mbps: rate,
                delay_ms: config.forward.delay.as_secs_f64() * 1e3,
                loss_configured: mean_loss(&config.forward.loss, outcome.elapsed()),
                loss_realised: row.loss,
                sent_packets: path.forward.link.packets_in,
                delivered_packets: path.forward.link.packets_delivered,
                share: row.share,
                srtt_ms: row.rtt.map(|rtt| round(rtt.as_secs_f64() * 1e3)),
                ecn_marks: row.marks,
                queue_drops: row.drops,
                mbps: row.mbps,
            }
        };
    paths.map(report).collect()
}

/// The mean loss that a link's description implies, over the first `time` where it changes on schedule.
fn mean_loss(loss: &LossConfig, time: Duration) -> f64 {
    match loss {
        LossConfig::None => 0.0,
        LossConfig::Bernoulli(p) => p.get(),
        LossConfig::GilbertElliott(config) => config.mean_loss().get(),
        LossConfig::Markov(config) => config.mean_loss().map_or(0.0, Probability::get),
        LossConfig::Scheduled(schedule) => {
            let end = time.as_secs_f64();
            let starts = schedule.steps().iter().map(|(start, _)| start.as_secs_f64().min(end));
            let ends = starts.clone().skip(1).chain([end]);
            let parts = schedule.steps().iter().zip(starts.zip(ends));
            let sum: f64 = parts.map(|((_, p), (from, to))| p.get() * (to - from)).sum();
            if end > 0.0 { sum / end } else { 0.0 }
        }
        LossConfig::Correlated(config) => mean_loss(&config.base, time),
        LossConfig::Joint(config) => {
            let own = config.losses.get((config.position as usize).saturating_sub(1));
            own.map_or(0.0, |p| p.get())
        }
        LossConfig::Trace(trace) => trace.mean_loss().get(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_sim::link::LinkConfig;

    fn report(paths: usize, best: Option<f64>) -> Report {
        let path = PathReport {
            name: "lte".to_owned(),
            rate_mbps: 12.0,
            delay_ms: 40.0,
            loss_configured: 0.05,
            loss_realised: 0.0512345678,
            sent_packets: 100,
            delivered_packets: 95,
            share: 1.0,
            srtt_ms: None,
            ecn_marks: 0,
            queue_drops: 0,
            mbps: 1.0,
        };
        Report {
            profile: "anabranch".to_owned(),
            version: "0",
            seed: 1,
            bytes: 118_200_000,
            seconds: 20.0,
            sha256_ok: true,
            goodput_mbps: 47.28,
            erasure_capacity_mbps: 55.0,
            efficiency: 0.8596,
            best_single_path_mbps: best.unwrap_or(0.0),
            simulated_mbps: 48.1,
            links_late_p99_ms: 0.2,
            links_late_max_ms: 1.5,
            blocks: 1,
            repairs_sent: 2,
            repairs_unneeded: 1,
            paths: vec![path; paths],
            best_single_path: best.map(|mbps| BestPath { name: "wifi".to_owned(), mbps }),
        }
    }

    #[test]
    fn verdicts_are_sentences() {
        assert_eq!(
            report(3, Some(22.51)).verdict(true),
            "All 118.2 MB arrived intact at 47.3 Mb/s: 86 % of what the three lossy links could \
             carry, 2.1 times the best single link (wifi alone: 22.5 Mb/s)."
        );
        assert_eq!(
            report(1, Some(47.0)).verdict(false),
            "All 118.2 MB arrived intact at 47.3 Mb/s: 86 % of what the link could carry."
        );
        assert!(report(2, None).verdict(true).ends_with("no single link could have carried."));
        let damaged = Report { sha256_ok: false, ..report(1, None) };
        assert_eq!(damaged.verdict(true), "What arrived is not what was sent.");
    }

    #[test]
    fn json_has_rounded_figures() {
        let json = serde_json::to_value(report(1, None)).unwrap();
        assert_eq!(json["paths"][0]["loss_realised"], 0.051235);
        assert!(json["paths"][0]["srtt_ms"].is_null());
        assert!(json.get("best_single_path").is_none());
    }

    #[test]
    fn every_loss_has_a_mean() {
        let mean = |loss: &str| {
            let link: LinkConfig = format!("rate=1mbit,delay=1ms,loss={loss}").parse().unwrap();
            round(mean_loss(&link.loss, Duration::from_secs(20)))
        };
        assert_eq!(mean("0%"), 0.0);
        assert_eq!(mean("5%"), 0.05);
        assert_eq!(mean("5%/15%@10s"), 0.1);
        assert_eq!(mean("5%/15%@30s"), 0.05);
        assert_eq!(mean("markov:5%/35%@250ms"), 0.2);
        assert_eq!(mean("ge:1%/3%"), 0.25);
    }
}
