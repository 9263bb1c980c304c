//! A policy's Python object: calling it, and handling its exceptions.

use core::cell::RefCell;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use pyo3::prelude::*;

/// State that the policies of one run share.
#[derive(Debug)]
struct Shared {
    seed: u64,
    /// Number of policies made so far; each draws random numbers of its own.
    made: AtomicU64,
    /// Ends this run, once set.
    failed: Arc<AtomicBool>,
    /// Set when this run, and others with the same flag, are no longer wanted.
    cancel: Arc<AtomicBool>,
    /// The first exception that left a policy.
    raised: Mutex<Option<PyErr>>,
}

impl Shared {
    fn raise(&self, error: PyErr) {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.failed.store(true, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.failed.load(Ordering::Relaxed) || self.cancel.load(Ordering::Relaxed)
    }
}

/// The runs in progress, each with Python's identifier of the thread that makes it.
static RUNNING: Mutex<Vec<(u64, Arc<Shared>)>> = Mutex::new(Vec::new());

/// A run's entry in [`RUNNING`], removed when this is dropped.
struct Running(Arc<Shared>);

impl Drop for Running {
    fn drop(&mut self) {
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|(_, other)| !Arc::ptr_eq(other, &self.0));
    }
}

/// How many times [`stop`] asks, and how long it waits each time.
const ASKS: (u32, Duration) = (50, Duration::from_millis(20));

/// Ends the runs with policies of Python that were given this flag, or all of them, and waits up to a second for their
/// end: a policy that would go on for ever is interrupted where it is.
pub(crate) fn stop(py: Python<'_>, cancel: Option<&Arc<AtomicBool>>) {
    for _ in 0..ASKS.0 {
        let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = |shared: &Shared| cancel.is_none_or(|flag| Arc::ptr_eq(flag, &shared.cancel));
        let chosen = running.iter().filter(|(_, shared)| wanted(shared));
        let threads: Vec<u64> = chosen
            .map(|(thread, shared)| {
                shared.failed.store(true, Ordering::Relaxed);
                *thread
            })
            .collect();
        drop(running);
        if threads.is_empty() {
            return;
        }
        // A policy that cannot be interrupted ends on its own, if at all.
        let _ =
            py.import("anabranch.policy").and_then(|m| m.call_method1("_interrupt", (threads,)));
        py.detach(|| thread::sleep(ASKS.1));
    }
}

thread_local! {
    /// The run that this thread is making.
    static RUN: RefCell<Option<Arc<Shared>>> = const { RefCell::new(None) };
}

/// Makes a run with `seed` on this thread by `work`, which must end soon after the flag that it is given is set.
///
/// Policies of Python are called on this thread; none holds the interpreter between calls. What one of them
/// raises sets that flag, and is returned. Once `cancel` is set, none is called any more.
///
/// # Errors
/// The first exception that left a policy.
pub(crate) fn run<T: Send>(
    seed: u64,
    cancel: &Arc<AtomicBool>,
    work: impl FnOnce(&AtomicBool) -> T + Send,
) -> PyResult<T> {
    let (made, raised) = (AtomicU64::new(0), Mutex::new(None));
    let (failed, cancel) = (Arc::new(AtomicBool::new(false)), Arc::clone(cancel));
    let shared = Arc::new(Shared { seed, made, failed, cancel, raised });
    let inner = Arc::clone(&shared);
    let running = Running(Arc::clone(&shared));
    // Attaching is faster at every call once Python knows the thread.
    let result = Python::attach(|py| {
        let thread = py.import("threading")?.call_method0("get_ident")?.extract()?;
        let place = (thread, Arc::clone(&shared));
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).push(place);
        PyResult::Ok(py.detach(|| {
            let outer = RUN.replace(Some(inner));
            let result = work(&shared.failed);
            RUN.set(outer);
            result
        }))
    });
    drop(running);
    let result = result?;
    let raised = shared.raised.lock().unwrap_or_else(PoisonError::into_inner).take();
    raised.map_or(Ok(result), Err)
}

/// Seed of the random numbers of a policy made now: the run's seed, and the policy's number in the run.
pub(super) fn seed() -> String {
    RUN.with_borrow(|run| match run {
        Some(run) => format!("{} {}", run.seed, run.made.fetch_add(1, Ordering::Relaxed)),
        None => "0 0".to_owned(),
    })
}

/// Ends this thread's run with an exception; returns the exception if the thread makes no run.
pub(super) fn raise(error: PyErr) -> Option<PyErr> {
    RUN.with_borrow(|run| match run {
        Some(run) => {
            run.raise(error);
            None
        }
        None => Some(error),
    })
}

/// A policy's object, and the run that it belongs to.
#[derive(Debug)]
pub(super) struct Script {
    object: Py<PyAny>,
    run: Option<Arc<Shared>>,
}

impl Script {
    /// A policy of this thread's run, or of none while a choice is only checked.
    pub(super) fn new(object: Py<PyAny>) -> Self {
        Script { object, run: RUN.with_borrow(Clone::clone) }
    }

    /// Calls the object as `call` says. An exception ends the run; from then on nothing is called, and there is no
    /// answer.
    pub(super) fn call<R>(&self, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<R>) -> Option<R> {
        let run = self.run.as_ref()?;
        if run.is_over() {
            return None;
        }
        Python::attach(|py| match call(self.object.bind(py)) {
            Ok(answer) => Some(answer),
            Err(error) => {
                run.raise(error);
                None
            }
        })
    }
}
