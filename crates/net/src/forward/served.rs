use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::connection::Connection;

/// How long a connection may give no sign of life, while a later one of the same key lives, before it counts as one
/// of a peer that has crashed and come back.
const CRASHED: Duration = Duration::from_secs(10);
/// Pause between two questions.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// The connections that an endpoint serves. A peer that has crashed and comes back has left one behind, whose TCP
/// connections nobody will ever end: they end with it, long before it would count as idle.
#[derive(Clone, Debug, Default)]
pub(super) struct Served(Arc<Mutex<Vec<Connection>>>);

/// A connection among those served, until this is dropped.
pub(super) struct Entry {
    served: Served,
    connection: Connection,
    /// What asks the earlier ones of the same peer for signs of life: for as long as the later one lives.
    _questions: JoinSet<()>,
}

impl Served {
    fn lock(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection. Earlier ones of the same peer end, unless they give a sign of life within ten seconds.
    pub(super) fn enter(&self, connection: &Connection) -> Entry {
        let mut served = self.lock();
        let mut questions = JoinSet::new();
        for earlier in served.iter().filter(|earlier| earlier.peer() == connection.peer()) {
            questions.spawn(end_if_crashed(earlier.clone()));
        }
        served.push(connection.clone());
        Entry { served: self.clone(), connection: connection.clone(), _questions: questions }
    }
}

/// Ends a connection that gives no sign of life for so long.
async fn end_if_crashed(earlier: Connection) {
    let asked = Instant::now();
    while !earlier.is_alive().await && !earlier.is_over() {
        if asked.elapsed() >= CRASHED {
            earlier.close(0, "the peer is connected anew, and has long been silent here");
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
