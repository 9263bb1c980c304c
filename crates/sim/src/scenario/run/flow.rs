//! A running flow and its measurements.

use core::time::Duration;

use anabranch_types::Time;

use super::DecisionObservers;
use super::delays::Delays;
use crate::endpoint::{Counters, Flow, FlowFailure, Instant, MessageLog, PathChange, Watch};
use crate::engine::Engine;
use crate::report::FlowReport;

/// A flow, its counters at the end of the warm-up, and its delays.
#[derive(Debug)]
pub(super) struct LiveFlow {
    flow: Box<dyn Flow>,
    pub start: Time,
    /// Number of transfers of the flow; 0 for a flow without end.
    transfers: u64,
    remembered: Counters,
    pub delays: Option<Delays>,
}

/// Messages of a flow.
#[derive(Clone, Debug, Default)]
pub(super) struct Messages {
    pub sent: u64,
    pub arrived: u64,
    pub delays: Vec<f64>,
}

impl LiveFlow {
    pub(super) fn new(flow: Box<dyn Flow>, start: Time, transfers: u64) -> Self {
        LiveFlow { flow, start, transfers, remembered: Counters::default(), delays: None }
    }

    /// Observes the sender's decisions, if the transport's sender reports them.
    pub(super) fn observe(
        &self,
        engine: &mut Engine,
        subject: &str,
        decisions: &mut DecisionObservers<'_>,
    ) {
        self.flow.observe(engine, &mut || decisions(subject));
    }

    /// Measures the delays of packets and blocks from now on.
    pub(super) fn watch_delays(&mut self, engine: &mut Engine, watch: Watch, measured_from: Time) {
        let watched = self.flow.log(engine, watch);
        self.delays = Some(Delays::new(watched, watch.slice, measured_from));
    }

    /// Computes delays from the progress since the last call.
    pub(super) fn take_logs(&mut self, engine: &mut Engine) {
        if let Some(delays) = &mut self.delays
            && let Some((sent, received)) = self.flow.take_logs(engine)
        {
            delays.take(sent, received);
        }
    }

    pub(super) fn remember(&mut self, engine: &mut Engine) {
        self.remembered = self.read(engine);
    }

    /// Counters since the end of the warm-up.
    pub(super) fn measured(&self, engine: &mut Engine) -> Counters {
        self.read(engine).since(&self.remembered)
    }

    /// Counters since the start.
    pub(super) fn read(&self, engine: &mut Engine) -> Counters {
        self.flow.counters(engine)
    }

    /// State of one path, or of all paths together.
    pub(super) fn instant(&self, engine: &mut Engine, path: Option<usize>) -> Instant {
        self.flow.instant(engine, path)
    }

    /// Times from the opening of each completed transfer to its last byte's delivery, s.
    pub(super) fn completions(&self, engine: &Engine, measured_from: Time) -> Vec<f64> {
        let completions = self.flow.completions(engine).into_iter();
        completions
            .filter(|transfer| transfer.opened >= measured_from)
            .map(|transfer| transfer.ended.since(transfer.opened).as_secs_f64())
            .collect()
    }

    /// Whether the flow has an end.
    pub(super) fn is_finite(&self) -> bool {
        self.transfers > 0
    }

    /// Whether all data of a finite flow has been delivered.
    pub(super) fn is_done(&self, engine: &Engine) -> bool {
        self.is_finite() && self.flow.completed(engine) >= self.transfers
    }

    /// Why the flow failed, if it did.
    pub(super) fn failure(&self, engine: &Engine) -> Option<FlowFailure> {
        self.flow.failure(engine)
    }

    /// Messages of the flow, and the delays, in seconds, of those that were sent after the
    /// measurement had begun.
    pub(super) fn messages(&self, engine: &Engine, measured_from: Time) -> Option<Messages> {
        let MessageLog { sent, arrived } = self.flow.messages(engine)?;
        let measured = arrived.iter().filter(|(sent, _)| *sent >= measured_from);
        let delays = measured.map(|(_, delay)| delay.as_secs_f64()).collect();
        Some(Messages { sent, arrived: arrived.len() as u64, delays })
    }

    /// Applies a change to the sender's interface on a path.
    pub(super) fn change_path(&self, engine: &mut Engine, path: usize, change: PathChange) {
        self.flow.change_path(engine, path, change);
    }

    /// The result of the flow over the whole run.
    pub(super) fn report(&self, engine: &mut Engine, subject: &str) -> FlowReport {
        let [sender, receiver] = self.flow.connections(engine);
        let messages = self.flow.messages(engine).unwrap_or_default();
        let gauge = self.flow.gauge(engine).cloned().unwrap_or_default();
        FlowReport {
            subject: subject.to_owned(),
            start: self.start,
            bytes: gauge.delivered,
            last: gauge.last_delivery,
            longest_gap: gauge.longest_gap(),
            done: self.is_done(engine),
            failure: self.failure(engine),
            messages,
            sender,
            receiver,
        }
    }

    /// Start and end of the time over which the flow's rates are measured.
    pub(super) fn span(&self, engine: &Engine, measured_from: Time) -> (Time, Time) {
        let from = self.start.max(measured_from);
        let end = match self.flow.gauge(engine) {
            Some(gauge) if self.is_done(engine) => gauge.last_delivery,
            _ => engine.now(),
        };
        (from, end.max(from))
    }

    /// The longest time without a delivery. Unless all data is delivered, the time since the last
    /// delivery counts, too.
    pub(super) fn longest_gap(&self, engine: &Engine) -> Duration {
        let Some(gauge) = self.flow.gauge(engine) else { return Duration::ZERO };
        if self.is_done(engine) {
            return gauge.longest_gap();
        }
        let since = gauge.last_delivery.max(gauge.gap_from).max(self.start);
        gauge.longest_gap().max(engine.now().since(since))
    }
}
