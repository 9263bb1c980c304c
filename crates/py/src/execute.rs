//! Long work that Ctrl-C can end and that lets Python's other threads run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::policies;

/// How often signals are checked.
pub(crate) const LOOK: Duration = Duration::from_millis(20);
/// How long cancelled work is waited for.
pub(crate) const GRACE: Duration = Duration::from_millis(50);

/// Runs `work` in a thread of its own while this one checks for signals; Python's other threads run meanwhile. The flag
/// that `work` is given is set when its result is no longer wanted.
///
/// # Errors
/// The exception that Python raises for a signal, such as `KeyboardInterrupt`.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Arc<AtomicBool>) -> T + Send + 'static,
) -> PyResult<T> {
    let cancel = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = sync_channel(1);
    let flag = Arc::clone(&cancel);
    let run = move || {
        // The receiver may be gone after an interruption.
        let _ = sender.send(work(&flag));
    };
    thread::Builder::new().name("anabranch".to_owned()).spawn(run)?;
    let receiver = Mutex::new(receiver);
    loop {
        match py.detach(|| wait(&receiver, LOOK)) {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Disconnected) => return Err(failed()),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(interrupt) = py.check_signals() {
            cancel.store(true, Ordering::Relaxed);
            policies::stop(py, Some(&cancel));
            // A long run may check the flag only after this time; it then ends on its own.
            let _ = py.detach(|| wait(&receiver, GRACE));
            return Err(interrupt);
        }
    }
}

/// The error that a thread of the simulator ended without a result.
pub(crate) fn failed() -> PyErr {
    let text = "the simulator failed: what it printed tells where; please report it";
    PyRuntimeError::new_err(text)
}

/// The next result, within this much time.
pub(crate) fn wait<T>(
    receiver: &Mutex<Receiver<T>>,
    most: Duration,
) -> Result<T, RecvTimeoutError> {
    receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(most)
}
