//! Datagrams of SOCKS5 clients (RFC 1928 §7). Each names its target. One request to the peer for each target serves all
//! clients, so that a client which opens an association for every lookup does not wait for a round trip each time.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch::TrafficClass;
use tokio::net::UdpSocket;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};

use super::counts::{DatagramCounters, Dropped};
use super::opener::{Opener, Senders};
use super::{IDLE, SWEEPS, frame};
use crate::listen::{Link, RETRY, WAIT, is_over};
use crate::serve::ForwardEvent;
use crate::socks::message::datagram_head;
use crate::target::Target;

/// Largest number of associations that one SOCKS5 listener has open at a time.
pub const MAX_ASSOCIATIONS: usize = 64;
/// Largest number of targets of all associations together: each needs one of the streams that the peer allows.
const MAX_TARGETS: usize = 64;
/// Most bytes for one target that wait until the peer has accepted the request.
const MAX_WAITING: usize = 16 * 1024;

/// The datagrams of one SOCKS5 listener.
pub(crate) struct Relay {
    link: Link,
    counters: DatagramCounters,
    free: Arc<Semaphore>,
    associations: Associations,
    next: AtomicU64,
    targets: Mutex<Targets>,
}

#[derive(Default)]
struct Targets {
    reached: BTreeMap<Target, Reached>,
    /// Targets whose refusal has been reported.
    refused: BTreeSet<Target>,
}

/// A target that is sent to.
struct Reached {
    opener: Arc<Opener<Answers>>,
    stage: Stage,
    /// When something was last sent there.
    last: Instant,
    asking: AbortHandle,
}

/// How far the request for a target has come.
enum Stage {
    /// The peer has not answered yet. Datagrams that wait for it, each with the number of its association.
    Asked(Vec<(u64, Vec<u8>)>),
    Carried,
    /// The peer has refused, and is asked again after a pause.
    Refused,
}

impl Drop for Reached {
    fn drop(&mut self) {
        self.asking.abort();
    }
}

/// The open associations by number.
#[derive(Clone, Default)]
struct Associations(Arc<Mutex<BTreeMap<u64, Association>>>);

#[derive(Clone)]
struct Association {
    socket: Arc<UdpSocket>,
    /// Address that the association's client sends from.
    client: SocketAddr,
}

impl Associations {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Association>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers of one target.
struct Answers {
    /// The header of each answer (RFC 1928 §7).
    head: Vec<u8>,
    associations: Associations,
}

impl Senders for Answers {
    type Sender = u64;

    fn answer(&self, to: u64, payload: &[u8]) -> io::Result<()> {
        let association = self.associations.lock().get(&to).cloned();
        let Some(Association { socket, client }) = association else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let datagram = [&self.head, payload].concat();
        socket2::SockRef::from(&*socket).send_to(&datagram, &client.into()).map(drop)
    }
}

/// A client's association, until this is dropped.
pub(crate) struct Associated {
    relay: Arc<Relay>,
    number: u64,
    _counted: OwnedSemaphorePermit,
}

impl Relay {
    pub(crate) fn new(link: Link, counters: DatagramCounters) -> Arc<Self> {
        Arc::new(Relay {
            link,
            counters,
            free: Arc::new(Semaphore::new(MAX_ASSOCIATIONS)),
            associations: Associations::default(),
            next: AtomicU64::new(0),
            targets: Mutex::default(),
        })
    }

    /// Opens an association; `None` if there are too many.
    pub(crate) fn associate(self: &Arc<Self>) -> Option<Associated> {
        let counted = Arc::clone(&self.free).try_acquire_owned().ok()?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        Some(Associated { relay: Arc::clone(self), number, _counted: counted })
    }

    fn lock(&self) -> MutexGuard<'_, Targets> {
        self.targets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a datagram of an association's client to `target`: the first `len` bytes of payload in
    /// a [`frame::buffer`].
    fn send(self: &Arc<Self>, association: u64, target: Target, (buffer, len): (&mut [u8], usize)) {
        let mut targets = self.lock();
        if !targets.reached.contains_key(&target) {
            let forgotten = targets.make_room();
            if let Some(Reached { stage: Stage::Asked(waiting), .. }) = &forgotten {
                self.drop_all(waiting);
            }
            let reached = self.begin(&target);
            targets.reached.insert(target.clone(), reached);
        }
        let Some(reached) = targets.reached.get_mut(&target) else { return };
        reached.last = Instant::now();
        match &mut reached.stage {
            Stage::Asked(waiting) => {
                let bytes: usize = waiting.iter().map(|(_, waits)| waits.len()).sum();
                if bytes + len > MAX_WAITING {
                    return self.counters.dropped(Dropped::NoRoom);
                }
                waiting.push((association, frame::kept(buffer, len)));
            }
            Stage::Carried => {
                let opener = Arc::clone(&reached.opener);
                drop(targets);
                opener.send(association, buffer, len);
            }
            Stage::Refused => self.counters.dropped(Dropped::NotConnected),
        }
    }

    fn begin(self: &Arc<Self>, target: &Target) -> Reached {
        let answers =
            Answers { head: datagram_head(target), associations: self.associations.clone() };
        let opener = Arc::new(Opener::new(answers, self.counters.clone(), IDLE));
        let asking = Arc::clone(self).reach(target.clone(), Arc::clone(&opener));
        let asking = tokio::spawn(asking).abort_handle();
        Reached { opener, stage: Stage::Asked(Vec::new()), last: Instant::now(), asking }
    }

    /// Asks the peer to carry datagrams to a target, and keeps the request until nobody has used it for long.
    async fn reach(self: Arc<Self>, target: Target, opener: Arc<Opener<Answers>>) {
        loop {
            let Ok(Some(current)) = timeout(WAIT, self.link.connected()).await else { break };
            match opener.ask(&current, &target, TrafficClass::Bulk).await {
                Ok((_send, mut receive, _routed)) => {
                    self.carried(&target, &opener);
                    // Nothing more comes on this stream but its end, when the connection ends or the peer gives up.
                    let mut end = [0];
                    tokio::select! {
                        _ = receive.read(&mut end) => {}
                        () = in_use(&opener) => {}
                    }
                    opener.end();
                    break;
                }
                Err(error) if is_over(&error) => self.link.replaced(&current.connection).await,
                Err(error) => {
                    self.refuse(&target, &error);
                    sleep(RETRY).await;
                    break;
                }
            }
        }
        let mut targets = self.lock();
        let same = |reached: &Reached| Arc::ptr_eq(&reached.opener, &opener);
        if targets.reached.get(&target).is_some_and(same)
            && let Some(reached) = targets.reached.remove(&target)
            && let Stage::Asked(waiting) = &reached.stage
        {
            self.drop_all(waiting);
        }
    }

    /// Counts datagrams that waited for the peer and are now dropped.
    fn drop_all(&self, waiting: &[(u64, Vec<u8>)]) {
        waiting.iter().for_each(|_| self.counters.dropped(Dropped::NotConnected));
    }

    /// The peer has accepted the request: sends the datagrams that waited.
    fn carried(&self, target: &Target, opener: &Arc<Opener<Answers>>) {
        let mut targets = self.lock();
        targets.refused.remove(target);
        let Some(reached) = targets.reached.get_mut(target) else { return };
        if let Stage::Asked(waiting) = core::mem::replace(&mut reached.stage, Stage::Carried) {
            for (association, mut kept) in waiting {
                let len = frame::payload_of(&mut kept).len();
                opener.send(association, &mut kept, len);
            }
        }
    }

    /// The peer has refused the request: reports this once for each target, until the peer accepts.
    fn refuse(&self, target: &Target, error: &io::Error) {
        let mut targets = self.lock();
        if let Some(reached) = targets.reached.get_mut(target)
            && let Stage::Asked(waiting) = core::mem::replace(&mut reached.stage, Stage::Refused)
        {
            self.drop_all(&waiting);
        }
        if targets.refused.len() >= MAX_TARGETS {
            targets.refused.clear();
        }
        if targets.refused.insert(target.clone()) {
            drop(targets);
            self.link.tell(ForwardEvent::Failed(target.clone().into(), error.to_string()));
        }
    }
}

impl Targets {
    /// Makes room for another target: if there is none, forgets and returns the target that was sent to longest ago.
    fn make_room(&mut self) -> Option<Reached> {
        if self.reached.len() < MAX_TARGETS {
            return None;
        }
        let oldest = self.reached.iter().min_by_key(|(_, reached)| reached.last);
        let oldest = oldest.map(|(target, _)| target.clone())?;
        self.reached.remove(&oldest)
    }
}

/// Returns when all flows of a request have been silent for [`IDLE`].
async fn in_use(opener: &Opener<Answers>) {
    loop {
        sleep(IDLE / SWEEPS).await;
        if !opener.forget_idle() {
            return;
        }
    }
}

impl Associated {
    /// From now on answers go to `client`.
    pub(crate) fn belongs_to(&self, client: SocketAddr, socket: &Arc<UdpSocket>) {
        let association = Association { socket: Arc::clone(socket), client };
        self.relay.associations.lock().insert(self.number, association);
    }

    /// Sends a datagram of the client to `target`, as [`Relay::send`] does.
    pub(crate) fn send(&self, target: Target, payload: (&mut [u8], usize)) {
        self.relay.send(self.number, target, payload);
    }

    /// Counts a datagram that is malformed or from a stranger.
    pub(crate) fn invalid(&self) {
        self.relay.counters.dropped(Dropped::Invalid);
    }
}

impl Drop for Associated {
    fn drop(&mut self) {
        self.relay.associations.lock().remove(&self.number);
        for reached in self.relay.lock().reached.values() {
            reached.opener.forget(self.number);
        }
    }
}
