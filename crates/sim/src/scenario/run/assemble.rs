//! Computes the figures of a flow and of several flows together.

use anabranch_types::Time;

use super::blocks::Block;
use super::delays::mean_step;
use super::flow::{LiveFlow, Messages};
use crate::endpoint::{CodingCounters, Counters, ShutWindow};
use crate::engine::Engine;
use crate::probe::{jain, mean, quantile, standard_deviation};

/// The results of one flow.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    reading: Counters,
    from: Time,
    to: Time,
    longest_gap: f64,
    completions: Vec<f64>,
    packet_delays: Option<Vec<f64>>,
    blocks: Option<Vec<Block>>,
    failed: bool,
    messages: Option<Messages>,
}

impl Outcome {
    pub(super) fn of(flow: &LiveFlow, engine: &mut Engine, measured_from: Time) -> Self {
        let (from, to) = flow.span(engine, measured_from);
        Outcome {
            reading: flow.measured(engine),
            from,
            to,
            longest_gap: flow.longest_gap(engine).as_secs_f64(),
            completions: flow.completions(engine, measured_from),
            packet_delays: flow.delays.as_ref().map(|delays| delays.packet_delays.clone()),
            blocks: flow.delays.as_ref().map(|delays| delays.measured_blocks()),
            failed: flow.failure(engine).is_some(),
            messages: flow.messages(engine, measured_from),
        }
    }

    fn rate(&self, bytes: u64) -> f64 {
        let time = self.to.since(self.from).as_secs_f64();
        if time > 0.0 { bytes as f64 * 8e-6 / time } else { 0.0 }
    }

    fn goodput(&self) -> f64 {
        self.rate(self.reading.delivered)
    }

    /// Totals of the time in which the receive window of one of the flow's paths was closed.
    pub(super) fn path_shut(&self, path: usize) -> Option<ShutWindow> {
        self.reading.shut.as_ref()?.get(path).copied()
    }

    /// Wire rate of one of the flow's paths, Mb/s.
    pub(super) fn path_throughput(&self, path: usize) -> Option<f64> {
        self.reading.arrived.get(path).map(|bytes| self.rate(*bytes))
    }
}

/// The delays of blocks, s.
fn delays_of(blocks: &[Block]) -> Vec<f64> {
    blocks.iter().map(|block| block.delay).collect()
}

/// `part` divided by `whole`; 0 if `whole` is 0.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// The figures of closed receive windows, summed over `all`.
pub(super) fn shut_windows(all: impl Iterator<Item = ShutWindow>) -> [(&'static str, f64); 2] {
    let mut sum = ShutWindow::default();
    all.for_each(|one| sum += one);
    [("shut_window_s", sum.time.as_secs_f64()), ("window_probes", sum.probes as f64)]
}

/// Figures of a set of flows.
#[derive(Debug)]
pub(super) struct Figures<'a>(&'a [&'a Outcome]);

impl<'a> Figures<'a> {
    pub(super) fn new(flows: &'a [&'a Outcome]) -> Self {
        Figures(flows)
    }

    /// All figures that were measured, in the order of the documentation.
    pub(super) fn all(&self) -> Vec<(&'static str, f64)> {
        let goodputs: Vec<f64> = self.0.iter().map(|flow| flow.goodput()).collect();
        let throughputs = self.0.iter().map(|flow| flow.rate(flow.reading.arrived.iter().sum()));
        let packets = self.total(|reading| reading.data_packets);
        let timeouts = self.total(|reading| reading.timeouts);
        let mut figures = vec![
            ("goodput_mbps", goodputs.iter().sum()),
            ("throughput_mbps", throughputs.sum()),
            ("delivered_bytes", self.total(|reading| reading.delivered)),
            ("elapsed_s", self.elapsed()),
            ("jain", jain(&goodputs)),
            ("ofo_count", self.total(|reading| reading.out_of_order)),
            ("timeouts", timeouts),
            ("rto_rate", ratio(timeouts, packets)),
            ("data_packets", packets),
            ("retransmissions", self.total(|reading| reading.retransmissions)),
            ("duplicate_bytes", self.total(|reading| reading.duplicate_bytes)),
        ];
        self.add_marks_and_coding(&mut figures);
        self.add_delays(&mut figures);
        self.add_completions(&mut figures);
        let gap = self.0.iter().map(|flow| flow.longest_gap).fold(0.0, f64::max);
        figures.push(("longest_gap_s", gap));
        figures.push(("failed", self.0.iter().filter(|flow| flow.failed).count() as f64));
        figures
    }

    /// Adds the ECN responses, recoveries and closed windows of TCP flows, or the coding figures of
    /// core flows.
    fn add_marks_and_coding(&self, figures: &mut Vec<(&'static str, f64)>) {
        if self.0.iter().all(|flow| flow.reading.ecn_responses.is_some()) {
            let responses = self.total(|reading| reading.ecn_responses.unwrap_or(0));
            figures.push(("ecn_responses", responses));
            figures.push(("recoveries", self.total(|reading| reading.recoveries.unwrap_or(0))));
            let shut = self.0.iter().map(|flow| flow.reading.shut.as_deref());
            if let Some(shut) = shut.collect::<Option<Vec<_>>>() {
                figures.extend(shut_windows(shut.into_iter().flatten().copied()));
            }
        } else if self.0.iter().all(|flow| flow.reading.coding.is_some()) {
            let total = |of: fn(&CodingCounters) -> u64| {
                self.total(|reading| reading.coding.as_ref().map_or(0, of))
            };
            let blocks = total(|coding| coding.blocks);
            figures.extend([
                ("redundancy", ratio(total(|c| c.repairs), total(|c| c.sources))),
                ("blocks", blocks),
                ("wraps", total(|coding| coding.wraps)),
                ("repair_rounds", total(|coding| coding.repair_rounds)),
                ("loss_before_repair", ratio(total(|c| c.lost_early), total(|c| c.settled))),
                ("live_blocks_mean", ratio(total(|coding| coding.live_blocks), blocks)),
            ]);
        }
    }

    /// Adds the delays of packets, blocks and messages.
    fn add_delays(&self, figures: &mut Vec<(&'static str, f64)>) {
        if let Some(delays) = self.samples("packet_delay_s") {
            figures.push(("packet_delay_mean_s", mean(&delays)));
            figures.push(("packet_delay_std_s", standard_deviation(&delays)));
            figures.push(("packet_delay_p50_s", quantile(&delays, 0.5)));
            figures.push(("packet_delay_p99_s", quantile(&delays, 0.99)));
        }
        self.add_blocks(figures);
        if let Some(delays) = self.samples("message_delay_s") {
            let messages = || self.0.iter().filter_map(|flow| flow.messages.as_ref());
            let sent: u64 = messages().map(|messages| messages.sent).sum();
            let arrived: u64 = messages().map(|messages| messages.arrived).sum();
            figures.push(("messages", sent as f64));
            figures.push(("messages_missing", sent.saturating_sub(arrived) as f64));
            figures.push(("message_delay_mean_s", mean(&delays)));
            figures.push(("message_delay_std_s", standard_deviation(&delays)));
            figures.push(("message_delay_p50_s", quantile(&delays, 0.5)));
            figures.push(("message_delay_p95_s", quantile(&delays, 0.95)));
            figures.push(("message_delay_p99_s", quantile(&delays, 0.99)));
        }
    }

    /// Adds the delays and losses of blocks.
    fn add_blocks(&self, figures: &mut Vec<(&'static str, f64)>) {
        let (Some(delays), Some(in_order)) =
            (self.samples("block_delay_s"), self.samples("block_order_s"))
        else {
            return;
        };
        // Differences are taken only between successive blocks of the same flow.
        let of_flow = |flow: &&Outcome| Some(delays_of(flow.blocks.as_ref()?));
        let steps = self.0.iter().filter_map(of_flow).map(|delays| mean_step(&delays));
        let steps: Vec<f64> = steps.collect();
        let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        figures.extend([
            ("block_delay_mean_s", mean(&delays)),
            ("block_delay_std_s", standard_deviation(&delays)),
            ("block_delay_step_s", mean(&steps)),
            ("block_delay_p99_s", quantile(&delays, 0.99)),
            ("block_delay_max_s", most(&delays)),
            ("block_order_mean_s", mean(&in_order)),
            ("block_order_std_s", standard_deviation(&in_order)),
            ("block_order_max_s", most(&in_order)),
        ]);
        let Some(losses) = self.samples("block_losses") else { return };
        let at_most = |lost: f64| {
            let blocks = losses.iter().filter(|value| **value <= lost).count();
            ratio(blocks as f64, losses.len() as f64)
        };
        figures.extend([
            ("block_losses_mean", mean(&losses)),
            ("block_losses_0", at_most(0.0)),
            ("block_losses_1", at_most(1.0)),
            ("block_losses_2", at_most(2.0)),
            ("block_losses_3", at_most(3.0)),
        ]);
    }

    /// Adds the transfers and their completion times.
    fn add_completions(&self, figures: &mut Vec<(&'static str, f64)>) {
        let completions = self.samples("fct_s").unwrap_or_default();
        figures.push(("transfers", completions.len() as f64));
        if !completions.is_empty() {
            figures.push(("fct_mean_s", mean(&completions)));
            figures.push(("fct_std_s", standard_deviation(&completions)));
        }
    }

    /// All values of `metric`, flow by flow; `None` if it was not measured.
    pub(super) fn samples(&self, metric: &str) -> Option<Vec<f64>> {
        let all = |values: &dyn Fn(&Outcome) -> Option<Vec<f64>>| {
            let values: Vec<Vec<f64>> = self.0.iter().filter_map(|flow| values(flow)).collect();
            (!values.is_empty()).then(|| values.concat())
        };
        match metric {
            "packet_delay_s" => all(&|flow| flow.packet_delays.clone()),
            "block_delay_s" => all(&|flow| Some(delays_of(flow.blocks.as_ref()?))),
            "block_order_s" => all(&|flow| {
                Some(flow.blocks.as_ref()?.iter().filter_map(|block| block.in_order).collect())
            }),
            "block_losses" => all(&|flow| {
                flow.blocks.as_ref()?.iter().map(|block| block.lost.map(f64::from)).collect()
            }),
            "message_delay_s" => all(&|flow| Some(flow.messages.as_ref()?.delays.clone())),
            "fct_s" => all(&|flow| Some(flow.completions.clone())),
            _ => None,
        }
    }

    fn total(&self, of: impl Fn(&Counters) -> u64) -> f64 {
        self.0.iter().map(|flow| of(&flow.reading) as f64).sum()
    }

    /// Time from the first start to the last end, s.
    fn elapsed(&self) -> f64 {
        let from = self.0.iter().map(|flow| flow.from).min().unwrap_or_default();
        let to = self.0.iter().map(|flow| flow.to).max().unwrap_or_default();
        to.since(from).as_secs_f64()
    }
}
