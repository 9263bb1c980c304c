//! Policies written in Python: classes that a scenario names like built-in policies.

pub(crate) mod answers;
pub(crate) mod blocks;
mod control;
pub(crate) mod events;
mod scheduler;
mod script;
mod values;
pub(crate) mod view;

use std::sync::{Mutex, PoisonError};

use anabranch_policy::registry::{Entry, OptionEntry, Options};
use anabranch_policy::{CongestionController, PolicyError, Registry, Scheduler};
use anabranch_sim::scenario::OwnPolicies;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyType};

pub(crate) use script::{run, stop};

/// Ends all runs with policies of Python, before Python itself ends.
#[pyfunction]
pub(crate) fn _stop_policies(py: Python<'_>) {
    stop(py, None);
}

/// The classes that a scenario was loaded with.
#[derive(Debug, Default)]
pub(crate) struct Classes(Vec<Py<PyAny>>);

impl Classes {
    /// Whether there are no classes.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The classes as a Python list, as [`bring`] takes it.
    pub(crate) fn list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.0.iter().map(|class| class.bind(py)))
    }

    /// The classes for another scenario.
    pub(crate) fn share(&self, py: Python<'_>) -> Classes {
        Classes(self.0.iter().map(|class| class.clone_ref(py)).collect())
    }
}

/// A policy class as `anabranch.policy` describes it.
#[derive(FromPyObject)]
struct Description {
    axis: String,
    name: String,
    summary: String,
    source: String,
    /// Key, meaning and default of each option.
    options: Vec<(String, String, String)>,
    /// Optional methods that the class has.
    methods: Vec<String>,
    version: String,
}

/// Policies for a scenario from the classes in `policies`: subclasses of `Scheduler` and `CongestionController`.
///
/// # Errors
/// When something in it is no such class, or has no name that can be used.
pub(crate) fn bring(policies: Option<&Bound<'_, PyAny>>) -> PyResult<(OwnPolicies, Classes)> {
    let Some(policies) = policies.filter(|policies| !policies.is_none()) else {
        return Ok(Default::default());
    };
    let py = policies.py();
    let module = py.import("anabranch.policy")?;
    let classes: Vec<Bound<'_, PyAny>> = module.call_method1("_classes", (policies,))?.extract()?;
    let mut registry = Registry::new();
    let mut versions = Vec::new();
    for class in &classes {
        let about: Description = module.call_method1("_describe", (class,))?.extract()?;
        let make: Py<PyAny> = module.getattr("_make")?.unbind();
        register(&mut registry, &about, class.cast::<PyType>()?.clone().unbind(), make)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        versions.push(format!("{} {} {}", about.axis, about.name, about.version));
    }
    versions.sort();
    let classes = Classes(classes.into_iter().map(Bound::unbind).collect());
    Ok((OwnPolicies::new(registry, &versions.join("\n")), classes))
}

fn register(
    registry: &mut Registry,
    about: &Description,
    class: Py<PyType>,
    make: Py<PyAny>,
) -> Result<(), PolicyError> {
    let entry = entry(about);
    let has = |method: &str| about.methods.iter().any(|known| known == method);
    if about.axis == "scheduler" {
        let (hears, wakes) = (has("on_event"), has("wakeup"));
        return registry.register::<dyn Scheduler>(entry, move |options| {
            Python::attach(|py| {
                let object = object(py, &class, &make, options);
                let made =
                    object.map(|object| scheduler::Scripted::new(object.unbind(), hears, wakes));
                made.map(|made| Box::new(made) as _).map_err(|error| failed(py, entry, error))
            })
        });
    }
    let traits = control::Traits {
        on_sent: has("on_sent"),
        governs_recovery: has("governs_recovery"),
        reads_siblings: has("reads_siblings"),
        couples: has("couples"),
    };
    registry.register::<dyn CongestionController>(entry, move |options| {
        Python::attach(|py| {
            let object = object(py, &class, &make, options);
            let made = object.and_then(|object| control::Scripted::new(&object, traits));
            made.map(|made| Box::new(made) as _).map_err(|error| failed(py, entry, error))
        })
    })
}

/// Makes the object of a policy.
fn object<'py>(
    py: Python<'py>,
    class: &Py<PyType>,
    make: &Py<PyAny>,
    options: &Options<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    let given = options.given().clone();
    make.bind(py).call1((class, given, options.packet_size(), script::seed()))
}

/// Why a policy could not be made. Within a run the exception ends it; while a choice is checked it becomes a
/// mistake of the scenario.
fn failed(py: Python<'_>, entry: &'static Entry, error: PyErr) -> PolicyError {
    let policy = entry.name.to_owned();
    let part = |name: &str| error.value(py).getattr(name).and_then(|part| part.extract::<String>());
    if let (Ok(option), Ok(given), Ok(allowed)) =
        (part("_option"), part("_given"), part("_allowed"))
    {
        return PolicyError::Value { policy, option, given, allowed };
    }
    let why = error.to_string();
    script::raise(error);
    PolicyError::Failed { policy, why }
}

/// The entry of a policy. Entries live until the program ends, so equal ones are shared.
fn entry(about: &Description) -> &'static Entry {
    static ENTRIES: Mutex<Vec<&'static Entry>> = Mutex::new(Vec::new());
    let mut entries = ENTRIES.lock().unwrap_or_else(PoisonError::into_inner);
    let same = |entry: &&&'static Entry| {
        let options = entry.options.iter().map(|option| (option.key, option.what, option.default));
        let wanted = about.options.iter();
        (entry.name, entry.summary, entry.source) == (&*about.name, &*about.summary, &*about.source)
            && options.eq(wanted.map(|(key, what, default)| (&**key, &**what, &**default)))
    };
    if let Some(known) = entries.iter().find(same) {
        return known;
    }
    let kept = |text: &String| -> &'static str { Box::leak(text.clone().into_boxed_str()) };
    let options = about.options.iter().map(|(key, what, default)| OptionEntry {
        key: kept(key),
        what: kept(what),
        default: kept(default),
    });
    let entry: &'static Entry = Box::leak(Box::new(Entry {
        name: kept(&about.name),
        summary: kept(&about.summary),
        source: kept(&about.source),
        options: Box::leak(options.collect::<Vec<_>>().into_boxed_slice()),
    }));
    entries.push(entry);
    entry
}
