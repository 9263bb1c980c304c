use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;
use tokio::time::Instant;

use anabranch::Connection;

/// When a peer connects anew and its earlier connection stays silent for this long, the peer counts as one that has
/// crashed and come back.
const CRASHED: Duration = Duration::from_secs(10);
/// Pause before each probe of a connection.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// The connections that an endpoint serves. A peer that crashes leaves its connection behind, and with it TCP
/// connections that nobody ends. When the peer is back, the old connection is closed and its TCP connections end with
/// it, earlier than at the idle timeout.
#[derive(Clone, Debug, Default)]
pub(super) struct Served(Arc<Mutex<Vec<One>>>);

#[derive(Debug)]
struct One {
    connection: Connection,
    /// The task that probes it. There is one at most, however often the peer connects.
    probe: Option<AbortHandle>,
}

/// Keeps a connection among those served until this is dropped.
pub(super) struct Entry {
    served: Served,
    connection: Connection,
}

impl Served {
    fn lock(&self) -> MutexGuard<'_, Vec<One>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection. Earlier ones of the same peer end, unless they give a sign of life within ten seconds.
    pub(super) fn enter(&self, connection: &Connection) -> Entry {
        let mut served = self.lock();
        for earlier in served.iter_mut() {
            let is_probed = earlier.probe.as_ref().is_some_and(|probe| !probe.is_finished());
            if earlier.connection.peer() == connection.peer() && !is_probed {
                let probe = tokio::spawn(end_if_crashed(earlier.connection.clone()));
                earlier.probe = Some(probe.abort_handle());
            }
        }
        served.push(One { connection: connection.clone(), probe: None });
        Entry { served: self.clone(), connection: connection.clone() }
    }
}

impl Drop for One {
    fn drop(&mut self) {
        if let Some(probe) = &self.probe {
            probe.abort();
        }
    }
}

/// Closes a connection that gives no sign of life for [`CRASHED`].
async fn end_if_crashed(earlier: Connection) {
    let asked = Instant::now();
    loop {
        tokio::time::sleep(ASK_AGAIN).await;
        if earlier.is_alive().await || earlier.close_reason().is_some() {
            return;
        }
        if asked.elapsed() >= CRASHED {
            earlier.close(0, "the peer has connected again and was silent here");
            return;
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.served.lock().retain(|other| !other.connection.is_same(&self.connection));
    }
}
