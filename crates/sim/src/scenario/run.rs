//! Runs one point of a scenario with one seed.

mod assemble;
mod blocks;
mod build;
mod delays;
mod flow;
mod mesh;
mod rates;
mod report;
mod series;
mod stations;
mod target;

use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use anabranch_types::Time;

use super::Scenario;
use super::error::ScenarioError;
use super::plan::{EventPlan, Plan};
use super::sweep::Point;
use crate::endpoint::FlowFailure;
use crate::engine::{Engine, Observer};
use crate::report::RunReport;
use build::Live;
use flow::LiveFlow;
use series::Recorder;

/// Options of a run.
#[derive(Default)]
pub struct RunOptions<'a> {
    /// Called from time to time with the share of the virtual time that has passed, 0 to 1.
    pub progress: Option<&'a mut dyn FnMut(f64)>,
    /// Checked from time to time. Once it is true, the run ends with [`RunError::Cancelled`].
    pub cancel: Option<&'a AtomicBool>,
    /// Observes every packet on every link. Links are numbered as in [`Plan::links`].
    pub observer: Option<&'a mut dyn Observer>,
    /// Called once for every flow between core endpoints, with the flow's subject. It may return an
    /// observer of the sender's decisions.
    pub decisions: Option<&'a mut DecisionObservers<'a>>,
}

/// A function that takes a flow's subject and may return an observer of the decisions of the flow's
/// sender.
pub type DecisionObservers<'a> =
    dyn FnMut(&str) -> Option<Box<dyn anabranch_core::observe::Observer>> + 'a;

impl fmt::Debug for RunOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunOptions").field("cancel", &self.cancel).finish_non_exhaustive()
    }
}

/// Why a run gave no report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// The point does not belong to the scenario.
    Scenario(Vec<ScenarioError>),
    /// The network or an endpoint cannot be built. The text explains why, in one line.
    Build(String),
    /// A receiver's application got data that differs from what the sender's application wrote, or
    /// got a message twice.
    Corrupt {
        /// Name of the flow in reports.
        flow: String,
        /// Description of the fault in the data.
        what: String,
    },
    /// The caller set the flag [`RunOptions::cancel`].
    Cancelled,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Scenario(errors) => match errors.first() {
                Some(error) => error.fmt(f),
                None => f.write_str("the point does not belong to the scenario"),
            },
            RunError::Build(why) => f.write_str(why),
            RunError::Corrupt { flow, what } => {
                write!(f, "flow '{flow}': the receiver read something wrong: {what}")
            }
            RunError::Cancelled => f.write_str("the run was cancelled"),
        }
    }
}

impl core::error::Error for RunError {}

/// Smallest number of progress reports in a run of full length. The caller's cancel flag is checked
/// at least as often.
const TICKS: u32 = 100;
/// Time between two samples of queues whose mean length is measured.
const LOOK: Duration = Duration::from_millis(10);

impl Scenario {
    /// Runs `point` with `seed`. The same point and seed give the same report on every machine.
    ///
    /// # Errors
    /// When the point is not one of this scenario's or cannot be built, or when a receiver read
    /// data that differs from what was written.
    pub fn run(&self, point: &Point, seed: u64) -> Result<RunReport, RunError> {
        self.run_with(point, seed, &mut RunOptions::default())
    }

    /// Like [`run`](Self::run), with progress, cancellation and observers.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run), and [`RunError::Cancelled`] when the caller's flag is set.
    pub fn run_with(
        &self,
        point: &Point,
        seed: u64,
        options: &mut RunOptions<'_>,
    ) -> Result<RunReport, RunError> {
        let plan = self.plan(point).map_err(RunError::Scenario)?;
        let mut report = run(&plan, &self.wanted, seed, options)?;
        report.point.clone_from(&point.labels);
        Ok(report)
    }
}

impl Plan {
    /// Runs the plan with `seed`. The same plan and seed give the same report on every machine.
    ///
    /// # Errors
    /// When the plan cannot be built, or a receiver read data that differs from what was written.
    pub fn run(&self, seed: u64) -> Result<RunReport, RunError> {
        self.run_with(seed, &mut RunOptions::default())
    }

    /// Like [`run`](Self::run), with progress, cancellation and observers.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run), and [`RunError::Cancelled`] when the caller's flag is set.
    pub fn run_with(&self, seed: u64, options: &mut RunOptions<'_>) -> Result<RunReport, RunError> {
        run(self, &[], seed, options)
    }
}

fn run(
    plan: &Plan,
    wanted: &[(String, &str)],
    seed: u64,
    options: &mut RunOptions<'_>,
) -> Result<RunReport, RunError> {
    let mut run = Run::new(plan, wanted, seed)?;
    if let Some(decisions) = &mut options.decisions {
        run.observe(&mut **decisions);
    }
    run.finish(options)?;
    match run.corruption() {
        Some(error) => Err(error),
        None => Ok(RunReport { seed, ..run.report(seed) }),
    }
}

/// A run in progress.
struct Run<'a> {
    plan: &'a Plan,
    live: Live,
    recorder: Recorder,
    /// Index of the next event.
    next_event: usize,
    warm: bool,
    look_at: Option<Time>,
}

impl<'a> Run<'a> {
    fn new(plan: &'a Plan, wanted: &[(String, &str)], seed: u64) -> Result<Self, RunError> {
        let mut live = build::build(plan, seed)?;
        let recorder = Recorder::new(plan, wanted, &mut live);
        let look_at = recorder.watches_queues().then_some(Time::ZERO + LOOK);
        Ok(Run { plan, live, recorder, next_event: 0, warm: false, look_at })
    }

    fn observe(&mut self, decisions: &mut DecisionObservers<'_>) {
        for (flow, plan) in self.live.flows.iter().zip(&self.plan.flows) {
            flow.observe(&mut self.live.engine, &plan.subject, decisions);
        }
    }

    fn finish(&mut self, options: &mut RunOptions<'_>) -> Result<(), RunError> {
        let end = Time::ZERO + self.plan.duration;
        let tick = (self.plan.duration / TICKS).max(Duration::from_nanos(1));
        let mut tick_at = Time::ZERO + tick;
        loop {
            self.turn_warm();
            let now = self.live.engine.now();
            if options.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
                return Err(RunError::Cancelled);
            }
            self.change_paths(now);
            if now >= end || (self.plan.stop_when_done.is_some() && self.is_done()) {
                break;
            }
            let mut next = end.min(tick_at);
            let check = self.plan.stop_when_done.map(|every| now + every.min(self.plan.duration));
            let event = self.plan.events.get(self.next_event).map(|event| Time::ZERO + event.at);
            for due in [self.recorder.next_due(), self.look_at, self.warm_up_end(), check, event] {
                next = due.map_or(next, |due| next.min(due));
            }
            advance(&mut self.live.engine, next, options);
            self.step(next);
            if next >= tick_at {
                tick_at = next + tick;
                if let Some(progress) = &mut options.progress {
                    progress(next.as_secs_f64() / end.as_secs_f64());
                }
            }
        }
        if let Some(progress) = &mut options.progress {
            progress(1.0);
        }
        Ok(())
    }

    /// Applies the events that are due.
    fn change_paths(&mut self, now: Time) {
        let Live { engine, flows, .. } = &mut self.live;
        let due = |event: &&EventPlan| Time::ZERO + event.at <= now;
        while let Some(event) = self.plan.events.get(self.next_event).filter(due) {
            self.next_event += 1;
            for (flow, plan) in flows.iter().zip(&self.plan.flows) {
                if let Some(path) = plan.paths.iter().position(|path| path.name == event.path) {
                    flow.change_path(engine, path, event.change);
                }
            }
        }
    }

    /// The error of a receiver that read wrong data, if there is one. Such a run gives no valid
    /// figures.
    fn corruption(&self) -> Option<RunError> {
        self.live.flows.iter().zip(&self.plan.flows).find_map(|(flow, plan)| {
            match flow.failure(&self.live.engine)? {
                FlowFailure::Corrupt(what) => {
                    Some(RunError::Corrupt { flow: plan.subject.clone(), what })
                }
                _ => None,
            }
        })
    }

    /// Records what has been measured until `now`.
    fn step(&mut self, now: Time) {
        let measured_from = Time::ZERO + self.plan.warm_up;
        let Live { engine, flows, .. } = &mut self.live;
        for flow in flows.iter_mut() {
            flow.take_logs(engine);
        }
        if self.look_at.is_some_and(|look_at| now >= look_at) {
            self.look_at = Some(now + LOOK);
            if now >= measured_from {
                self.recorder.look_at_queues(&self.live);
            }
        }
        self.recorder.record(now, &mut self.live);
    }

    fn warm_up_end(&self) -> Option<Time> {
        (!self.warm).then_some(Time::ZERO + self.plan.warm_up)
    }

    /// Remembers the values of all counters when the warm-up is over.
    fn turn_warm(&mut self) {
        if !self.warm && self.live.engine.now() >= Time::ZERO + self.plan.warm_up {
            self.warm = true;
            self.live.remember();
        }
    }

    fn is_done(&self) -> bool {
        let finite = |flow: &&LiveFlow| flow.is_finite();
        self.live.flows.iter().any(|flow| flow.is_finite())
            && self.live.flows.iter().filter(finite).all(|flow| flow.is_done(&self.live.engine))
    }

    fn report(self, seed: u64) -> RunReport {
        let Run { plan, mut live, recorder, .. } = self;
        let mut report = report::report(plan, &mut live, recorder);
        let Live { engine, flows, .. } = &mut live;
        let reports = flows.iter().zip(&plan.flows);
        report.flows = reports.map(|(flow, plan)| flow.report(engine, &plan.subject)).collect();
        report.links = report::links(plan, &live.engine, &report.flows, seed);
        report
    }
}

fn advance(engine: &mut Engine, until: Time, options: &mut RunOptions<'_>) {
    match &mut options.observer {
        Some(observer) => engine.run_until_with(until, &mut **observer),
        None => engine.run_until(until),
    }
}
