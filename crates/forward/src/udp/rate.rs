use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

/// Flows that a peer may begin at once.
const BURST: f64 = 512.0;
/// Flows that it may begin a second: as many as a busy resolver, which asks from another port each time.
const PER_SECOND: f64 = 1000.0;

/// Bounds how fast a peer begins flows: each costs a socket and a task.
#[derive(Debug)]
pub(super) struct Rate(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Flows that may begin now.
    left: f64,
    at: Instant,
}

impl Default for Rate {
    fn default() -> Self {
        Rate(Mutex::new(State { left: BURST, at: Instant::now() }))
    }
}

impl Rate {
    /// Whether another flow may begin; if so, it counts.
    pub(super) fn take(&self) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let since = now.saturating_duration_since(state.at).as_secs_f64();
        *state = State { left: (state.left + since * PER_SECOND).min(BURST), at: now };
        let may = state.left >= 1.0;
        if may {
            state.left -= 1.0;
        }
        may
    }
}
