use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::JoinSet;
use tokio::time::Instant;

use anabranch::Connection;

/// When a peer connects anew and its earlier connection gives no sign of life for so long, the peer counts as one that
/// has crashed and come back.
const CRASHED: Duration = Duration::from_secs(10);
/// Pause between two probes of a connection.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// The connections that an endpoint serves. A peer that crashes leaves one behind, and nobody ends the TCP connections
/// that it carries. When the peer is back, the one left behind is closed, and these end with it; without that they would
/// last until it counts as idle.
#[derive(Clone, Debug, Default)]
pub(super) struct Served(Arc<Mutex<Vec<Connection>>>);

/// A connection among those served, until this is dropped.
pub(super) struct Entry {
    served: Served,
    connection: Connection,
    /// Tasks that probe the earlier connections of the same peer. They end when this connection does.
    _probes: JoinSet<()>,
}

impl Served {
    fn lock(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection. Earlier ones of the same peer end, unless they give a sign of life within ten seconds.
    pub(super) fn enter(&self, connection: &Connection) -> Entry {
        let mut served = self.lock();
        let mut probes = JoinSet::new();
        for earlier in served.iter().filter(|earlier| earlier.peer() == connection.peer()) {
            probes.spawn(end_if_crashed(earlier.clone()));
        }
        served.push(connection.clone());
        Entry { served: self.clone(), connection: connection.clone(), _probes: probes }
    }
}

/// Closes a connection that gives no sign of life for [`CRASHED`].
async fn end_if_crashed(earlier: Connection) {
    let asked = Instant::now();
    while !earlier.is_alive().await && earlier.close_reason().is_none() {
        if asked.elapsed() >= CRASHED {
            earlier.close(0, "the peer has connected again and was silent here");
            return;
        }
        tokio::time::sleep(ASK_AGAIN).await;
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.served.lock().retain(|other| !other.is_same(&self.connection));
    }
}
