//! A scheduler written in Python.

use anabranch_policy::Scheduler;
use anabranch_policy::scheduler::{Pick, Pull, SchedulerAction, SchedulerEvent as Told};
use anabranch_policy::view;
use anabranch_types::{PathId, Time};
use pyo3::intern;
use pyo3::prelude::*;

use super::answers;
use super::blocks::SchedulerView;
use super::events::SchedulerEvent;
use super::script::Script;
use super::values::{kind, time, wrong};

/// A scheduler that asks its Python object at every call; methods that its class does not have are not called.
#[derive(Debug)]
pub(super) struct Scripted {
    script: Script,
    hears: bool,
    wakes: bool,
    wakeup: Option<Time>,
}

impl Scripted {
    /// `hears`: the class has `on_event`; `wakes`: it has `wakeup`.
    pub(super) fn new(object: Py<PyAny>, hears: bool, wakes: bool) -> Self {
        Scripted { script: Script::new(object), hears, wakes, wakeup: None }
    }

    /// When the object wants to be woken, asked after each of its calls.
    fn woken(wakes: bool, object: &Bound<'_, PyAny>) -> PyResult<Option<Time>> {
        if !wakes {
            return Ok(None);
        }
        let wanted = object.call_method0(intern!(object.py(), "wakeup"))?;
        let seconds: Option<f64> =
            wanted.extract().map_err(|_| wrong(object, &wanted, "wakeup(), seconds or None,"))?;
        seconds.map(time).transpose()
    }
}

impl Scheduler for Scripted {
    fn on_event(
        &mut self,
        event: Told,
        view: &view::SchedulerView<'_>,
        actions: &mut Vec<SchedulerAction>,
    ) {
        if !self.hears {
            return;
        }
        let wakes = self.wakes;
        let woken = self.script.call(|object| {
            let told = (SchedulerEvent(event), SchedulerView::of(view));
            let answer = object.call_method1(intern!(object.py(), "on_event"), told)?;
            answers::acted(&answer, actions, &|| kind(object))?;
            Scripted::woken(wakes, object)
        });
        self.wakeup = woken.flatten();
    }

    fn pull(
        &mut self,
        path: PathId,
        view: &view::SchedulerView<'_>,
        picks: &mut Vec<Pick>,
    ) -> Pull {
        let wakes = self.wakes;
        let answer = self.script.call(|object| {
            let asked = (path.0, SchedulerView::of(view));
            let answer = object.call_method1(intern!(object.py(), "pull"), asked)?;
            let pull = answers::pulled(&answer, path, picks, &|| kind(object))?;
            Ok((pull, Scripted::woken(wakes, object)?))
        });
        let Some((pull, wakeup)) = answer else {
            picks.clear();
            return Pull::Idle("the policy has failed");
        };
        self.wakeup = wakeup;
        pull
    }

    fn wakeup(&self) -> Option<Time> {
        self.wakeup
    }
}
