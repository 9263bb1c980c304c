use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::frame::Head;
use super::joiner::Joiner;
use crate::target::Target;
use anabranch::Connection;
use anabranch::ConnectionError;

/// The receiver of the datagrams of a request.
pub(crate) trait Route: Send + Sync {
    /// Takes a datagram of `flow`; never waits.
    fn take(self: Arc<Self>, flow: u64, payload: &[u8]);
}

/// Most refused targets that are remembered.
const MAX_REFUSED: usize = 64;

/// The requests of one connection, by the ids of their streams.
#[derive(Clone, Default)]
pub(crate) struct Routes(Arc<Mutex<Requests>>);

#[derive(Default)]
struct Requests {
    routes: BTreeMap<u64, Arc<dyn Route>>,
    /// Targets whose refusal was reported. The peer keeps asking, so that it learns when it is permitted.
    refused: BTreeSet<Target>,
}

/// A request whose datagrams are taken, until this is dropped.
pub(crate) struct Routed {
    routes: Routes,
    stream: u64,
}

impl Routes {
    fn lock(&self) -> MutexGuard<'_, Requests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether to report the refusal of a target: once for each, and for [`MAX_REFUSED`] targets at most.
    pub(super) fn is_news(&self, refused: &Target) -> bool {
        let mut requests = self.lock();
        requests.refused.len() < MAX_REFUSED && requests.refused.insert(refused.clone())
    }

    /// From now on `route` takes the datagrams of the request on `stream`.
    pub(super) fn add(&self, stream: u64, route: Arc<dyn Route>) -> Routed {
        self.lock().routes.insert(stream, route);
        Routed { routes: self.clone(), stream }
    }

    /// Passes on what arrives, until the connection is over. What belongs to no request is dropped.
    pub(crate) async fn run(self, connection: Connection) -> ConnectionError {
        let mut joiner = Joiner::default();
        loop {
            let mut datagram = match connection.recv_datagram().await {
                Ok(datagram) => datagram,
                Err(error) => return error,
            };
            let Some((head, len)) = Head::read(&datagram) else { continue };
            let Some(route) = self.lock().routes.get(&head.stream).cloned() else { continue };
            match head.piece {
                None => route.take(head.flow, &datagram[len..]),
                Some(piece) => {
                    datagram.drain(..len);
                    if let Some(joined) = joiner.take(head, piece, datagram) {
                        route.take(head.flow, &joined);
                    }
                }
            }
        }
    }
}

impl Drop for Routed {
    fn drop(&mut self) {
        self.routes.lock().routes.remove(&self.stream);
    }
}
