//! Ctrl-C: what was measured so far is kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Tells whether Ctrl-C was pressed.
#[derive(Clone, Debug, Default)]
pub struct Interrupted(Arc<AtomicBool>);

impl Interrupted {
    /// Listens for Ctrl-C from now on. A second Ctrl-C ends the process.
    ///
    /// # Errors
    /// When signals cannot be heard.
    pub fn listen() -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("cannot hear Ctrl-C: {error}");
        let interrupted = Interrupted::default();
        let flag = interrupted.clone();
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_io().build().map_err(failed)?;
        let hear = move || {
            while runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
                if flag.0.swap(true, Ordering::Relaxed) {
                    std::process::exit(130);
                }
            }
        };
        thread::Builder::new().name("signals".to_owned()).spawn(hear).map_err(failed)?;
        Ok(interrupted)
    }

    /// Whether Ctrl-C was pressed. After a failure this waits a moment, since the programs of a run hear Ctrl-C too and
    /// may have failed before this one heard it.
    pub fn is_so(&self, after_failure: bool) -> bool {
        if after_failure {
            thread::sleep(Duration::from_millis(100));
        }
        self.0.load(Ordering::Relaxed)
    }
}
