//! Ctrl-C for work that wants to end tidily.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// A flag that the first Ctrl-C raises from now on; the second ends the process at once.
///
/// Where signals cannot be heard, the process ends at the first, as it would without this.
pub fn flag() -> &'static AtomicBool {
    thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async {
            while tokio::signal::ctrl_c().await.is_ok() {
                if INTERRUPTED.swap(true, Ordering::Relaxed) {
                    std::process::exit(130);
                }
            }
        });
    });
    &INTERRUPTED
}
