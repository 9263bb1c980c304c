//! Writes packet and decision traces beside the results.

use std::cell::RefCell;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anabranch_results::RunId;
use anabranch_results::trace::{Capture, Qlog};
use anabranch_sim::scenario::{DecisionObservers, Plan, Point, Protocol, RunOptions, Scenario};

use super::run::failure;
use crate::failure::Failure;

/// Traces to write, and where.
#[derive(Debug)]
pub(super) struct Traces {
    directory: PathBuf,
    pcapng: bool,
    qlog: bool,
}

/// Traces one run.
pub(super) struct Tracer {
    capture: Option<Capture>,
    qlogs: Option<Qlogs>,
}

/// Begins a qlog for every flow that it is asked for.
struct Qlogs {
    /// The qlogs begun so far.
    begun: Rc<RefCell<Vec<Qlog>>>,
    begin: Box<DecisionObservers<'static>>,
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer").field("capture", &self.capture).finish_non_exhaustive()
    }
}

impl Traces {
    /// Traces in the directory `traces` of the results.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub(super) fn new(results: &Path, pcapng: bool, qlog: bool) -> Result<Self, Failure> {
        let directory = results.join("traces");
        if pcapng || qlog {
            fs::create_dir_all(&directory).map_err(|error| {
                Failure::failed(format!("{}: cannot be made: {error}", directory.display()))
            })?;
        }
        Ok(Traces { directory, pcapng, qlog })
    }

    /// Whether the traces wanted of a run are there.
    pub(super) fn has(&self, scenario: &Scenario, id: RunId) -> bool {
        (!self.pcapng || self.capture(id).exists()) && (!self.qlog || self.has_qlogs(scenario, id))
    }

    fn has_qlogs(&self, scenario: &Scenario, id: RunId) -> bool {
        let plan = scenario.points().get(id.point).and_then(|point| scenario.plan(point).ok());
        let flows = plan.into_iter().flat_map(|plan| plan.flows);
        // A connection begins the file of its first path with its first packet.
        flows.filter(|flow| matches!(flow.protocol, Protocol::Core(_))).all(|flow| {
            self.directory.join(format!("{}-path0.sqlog", stem(id, &flow.subject))).exists()
        })
    }

    /// Begins the traces of a run; none if none are wanted.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub(super) fn begin(
        &self,
        scenario: &Scenario,
        point: &Point,
        id: RunId,
    ) -> Result<Option<Tracer>, Failure> {
        if !self.pcapng && !self.qlog {
            return Ok(None);
        }
        let plan: Plan = scenario.plan(point).map_err(|mistakes| super::load::refuse(&mistakes))?;
        let title = format!("{}, point {}, seed {}", scenario.name(), id.point, id.seed);
        let links = plan.links.iter().map(|link| link.name.as_str());
        let capture = || Capture::begin(&self.capture(id), &title, links).map_err(failure);
        Ok(Some(Tracer {
            capture: self.pcapng.then(capture).transpose()?,
            qlogs: self.qlog.then(|| Qlogs::new(&self.directory, id, &title)),
        }))
    }

    fn capture(&self, id: RunId) -> PathBuf {
        self.directory.join(format!("point{}-seed{}.pcapng", id.point, id.seed))
    }
}

impl Qlogs {
    fn new(directory: &Path, id: RunId, title: &str) -> Self {
        let begun = Rc::new(RefCell::new(Vec::new()));
        let (all, directory, title) = (Rc::clone(&begun), directory.to_owned(), title.to_owned());
        let begin = move |subject: &str| {
            let title = format!("{title}, flow {subject}");
            let qlog = Qlog::new(&directory, &stem(id, subject), &title);
            let observer = qlog.observer();
            all.borrow_mut().push(qlog);
            Some(observer)
        };
        Qlogs { begun, begin: Box::new(begin) }
    }
}

/// Prefix of the names of a flow's files.
fn stem(id: RunId, subject: &str) -> String {
    format!("point{}-seed{}-{subject}", id.point, id.seed)
}

impl Tracer {
    /// Attaches the traces to a run.
    pub(super) fn attach<'a>(&'a mut self, options: &mut RunOptions<'a>) {
        if let Some(capture) = &mut self.capture {
            options.observer = Some(capture);
        }
        if let Some(qlogs) = &mut self.qlogs {
            options.decisions = Some(&mut *qlogs.begin);
        }
    }

    /// Completes the traces.
    ///
    /// # Errors
    /// When a trace could not be written.
    pub(super) fn finish(self) -> Result<(), Failure> {
        for qlog in self.qlogs.iter().flat_map(|qlogs| qlogs.begun.take()) {
            qlog.finish().map_err(failure)?;
        }
        self.capture.map_or(Ok(()), |capture| capture.finish().map_err(failure))
    }
}
