//! Reads the answers of schedulers written in Python.

use anabranch_policy::scheduler::{self, Pull, SchedulerAction};
use anabranch_policy::view::BlockId;
use anabranch_types::{PathId, Time};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::blocks::BlockView;
use super::values::{shown, time, word};

/// Something that can be sent: `Work.FRESH`, `Work.AHEAD`, or a symbol of a block.
#[pyclass(frozen, eq, module = "anabranch")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Work(pub(super) scheduler::Work);

/// A block, or its identifier.
#[derive(FromPyObject)]
enum Block<'py> {
    View(PyRef<'py, BlockView>),
    Id(u64),
}

impl Block<'_> {
    fn id(&self) -> BlockId {
        match self {
            Block::View(view) => view.0.id,
            Block::Id(id) => BlockId(*id),
        }
    }
}

#[pymethods]
impl Work {
    /// The next new source symbol.
    #[classattr]
    const FRESH: Work = Work(scheduler::Work::Fresh);
    /// New source symbols that are cut without being sent; they are due from then on.
    #[classattr]
    const AHEAD: Work = Work(scheduler::Work::Ahead);

    /// The next symbol that this block is due: a repair, or a lost symbol again.
    #[staticmethod]
    fn block(block: Block<'_>) -> Work {
        Work(scheduler::Work::Block(block.id()))
    }

    /// A copy of this block's oldest symbol in flight that the path neither carries nor has queued.
    #[staticmethod]
    fn copy(block: Block<'_>) -> Work {
        Work(scheduler::Work::Copy(block.id()))
    }

    /// The next symbol that this closed block is due, else a repair that nothing else has asked for.
    #[staticmethod]
    fn repair(block: Block<'_>) -> Work {
        Work(scheduler::Work::Repair(block.id()))
    }

    fn __repr__(&self) -> String {
        match self.0 {
            scheduler::Work::Fresh => "Work.FRESH".to_owned(),
            scheduler::Work::Ahead => "Work.AHEAD".to_owned(),
            scheduler::Work::Block(block) => format!("Work.block({})", block.0),
            scheduler::Work::Copy(block) => format!("Work.copy({})", block.0),
            scheduler::Work::Repair(block) => format!("Work.repair({})", block.0),
        }
    }
}

/// Some work for a path: `count` symbols of it, on `path` (None: the path that asks), not before the time
/// `not_before`. What is not for the asking path at once waits in the path's queue.
#[pyclass(frozen, module = "anabranch")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pick {
    work: scheduler::Work,
    count: u16,
    path: Option<u32>,
    not_before: Time,
}

#[pymethods]
impl Pick {
    #[new]
    #[pyo3(signature = (work, count=1, path=None, not_before=0.0))]
    fn new(
        work: PyRef<'_, Work>,
        count: i64,
        path: Option<u32>,
        not_before: f64,
    ) -> PyResult<Pick> {
        let count = u16::try_from(count).ok().filter(|count| *count > 0).ok_or_else(|| {
            PyValueError::new_err(format!("count={count} is not a whole number from 1 to 65535"))
        })?;
        Ok(Pick { work: work.0, count, path, not_before: time(not_before)? })
    }

    fn __repr__(&self) -> String {
        let path = self.path.map_or_else(|| "None".to_owned(), |path| path.to_string());
        let (work, at) = (Work(self.work).__repr__(), self.not_before.as_secs_f64());
        format!("Pick({work}, count={}, path={path}, not_before={at:?})", self.count)
    }
}

impl Pick {
    fn on(&self, asking: Option<PathId>) -> Option<scheduler::Pick> {
        let path = self.path.map(PathId).or(asking)?;
        let Pick { work, count, not_before, .. } = *self;
        Some(scheduler::Pick { work, count, path, not_before })
    }
}

/// An answer to a path that asks: send these picks; records show the reason.
#[pyclass(frozen, module = "anabranch")]
#[derive(Debug)]
pub(crate) struct Send {
    picks: Py<PyAny>,
    reason: &'static str,
}

#[pymethods]
impl Send {
    #[new]
    #[pyo3(signature = (picks, reason="chosen"))]
    fn new(picks: Py<PyAny>, reason: &str) -> Send {
        Send { picks, reason: word(reason) }
    }
}

/// An answer to a path that asks: do not ask for it again before the time `until`, whatever happens.
#[pyclass(frozen, module = "anabranch")]
#[derive(Debug)]
pub(crate) struct Hold {
    until: Time,
    reason: &'static str,
}

#[pymethods]
impl Hold {
    #[new]
    #[pyo3(signature = (until, reason="held"))]
    fn new(until: f64, reason: &str) -> PyResult<Hold> {
        Ok(Hold { until: time(until)?, reason: word(reason) })
    }
}

/// An answer to a path that asks: nothing for it until something changes.
#[pyclass(frozen, module = "anabranch")]
#[derive(Debug)]
pub(crate) struct Idle(&'static str);

#[pymethods]
impl Idle {
    #[new]
    #[pyo3(signature = (reason="nothing chosen"))]
    fn new(reason: &str) -> Idle {
        Idle(word(reason))
    }
}

/// An action beside pulls: assign a pick to its path ahead of the path's window.
#[pyclass(frozen, module = "anabranch")]
#[derive(Debug)]
pub(crate) struct Assign(scheduler::Pick);

#[pymethods]
impl Assign {
    #[new]
    fn new(pick: PyRef<'_, Pick>) -> PyResult<Assign> {
        let no_path = || PyValueError::new_err("an Assign needs a Pick with a path: path=0, say");
        pick.on(None).map(Assign).ok_or_else(no_path)
    }
}

/// An action beside pulls: take back what waits in the queue of `path` beyond its first `keep` symbols.
#[pyclass(frozen, module = "anabranch")]
#[derive(Debug)]
pub(crate) struct TakeBack(PathId, u32);

#[pymethods]
impl TakeBack {
    #[new]
    #[pyo3(signature = (path, keep=0))]
    fn new(path: u32, keep: u32) -> TakeBack {
        TakeBack(PathId(path), keep)
    }
}

/// An action beside pulls: hold `path` back through its congestion controller.
#[pyclass(frozen, module = "anabranch")]
#[derive(Debug)]
pub(crate) struct Penalise(PathId);

#[pymethods]
impl Penalise {
    #[new]
    fn new(path: u32) -> Penalise {
        Penalise(PathId(path))
    }
}

/// The name of the class that answered, for messages.
type Class<'a> = &'a dyn Fn() -> String;

/// Converts what `pull` returned for `path`; its picks are pushed onto `picks`.
pub(super) fn pulled(
    value: &Bound<'_, PyAny>,
    path: PathId,
    picks: &mut Vec<scheduler::Pick>,
    class: Class<'_>,
) -> PyResult<Pull> {
    if value.is_none() {
        return Ok(Pull::Idle("nothing chosen"));
    }
    if let Ok(send) = value.cast::<Send>() {
        let send = send.get();
        push(send.picks.bind(value.py()), path, picks, class)?;
        return Ok(if picks.is_empty() {
            Pull::Idle(send.reason)
        } else {
            Pull::Send(send.reason)
        });
    }
    if let Ok(idle) = value.cast::<Idle>() {
        return Ok(Pull::Idle(idle.get().0));
    }
    if let Ok(hold) = value.cast::<Hold>() {
        return Ok(Pull::Hold(hold.get().until, hold.get().reason));
    }
    push(value, path, picks, class)?;
    Ok(if picks.is_empty() { Pull::Idle("nothing chosen") } else { Pull::Send("chosen") })
}

fn push(
    value: &Bound<'_, PyAny>,
    path: PathId,
    picks: &mut Vec<scheduler::Pick>,
    class: Class<'_>,
) -> PyResult<()> {
    if let Ok(work) = value.cast::<Work>() {
        let (work, not_before) = (work.get().0, Time::ZERO);
        picks.push(scheduler::Pick { work, count: 1, path, not_before });
    } else if let Ok(pick) = value.cast::<Pick>() {
        picks.extend(pick.get().on(Some(path)));
    } else if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        for item in value.try_iter()? {
            let item = item?;
            if item.is_instance_of::<PyList>() || item.is_instance_of::<PyTuple>() {
                return Err(wrong(&item, class));
            }
            push(&item, path, picks, class)?;
        }
    } else {
        return Err(wrong(value, class));
    }
    Ok(())
}

fn wrong(value: &Bound<'_, PyAny>, class: Class<'_>) -> PyErr {
    PyTypeError::new_err(format!(
        "{}.pull returned {}; it may return a Work, a Pick, a list of these, Send, Hold, Idle or None",
        class(),
        shown(value)
    ))
}

/// Converts what `on_event` returned into actions.
pub(super) fn acted(
    value: &Bound<'_, PyAny>,
    actions: &mut Vec<SchedulerAction>,
    class: Class<'_>,
) -> PyResult<()> {
    if value.is_none() {
        return Ok(());
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        for item in value.try_iter()? {
            actions.push(action(&item?, class)?);
        }
        return Ok(());
    }
    actions.push(action(value, class)?);
    Ok(())
}

fn action(value: &Bound<'_, PyAny>, class: Class<'_>) -> PyResult<SchedulerAction> {
    if let Ok(assign) = value.cast::<Assign>() {
        return Ok(SchedulerAction::Assign(assign.get().0));
    }
    if let Ok(back) = value.cast::<TakeBack>() {
        let TakeBack(path, keep) = *back.get();
        return Ok(SchedulerAction::TakeBack { path, keep });
    }
    if let Ok(penalise) = value.cast::<Penalise>() {
        return Ok(SchedulerAction::Penalise(penalise.get().0));
    }
    Err(PyTypeError::new_err(format!(
        "{}.on_event returned {}; it may return None, an Assign, TakeBack or Penalise, or a list of these",
        class(),
        shown(value)
    )))
}
