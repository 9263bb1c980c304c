//! The side that asks the peer to carry datagrams: its request, and a flow for each sender.

use core::time::Duration;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch::TrafficClass;
use tokio::time::Instant;

use super::MAX_FLOWS;
use super::counts::{Counted, DatagramCounters, Dropped};
use super::outlet::Outlet;
use super::routes::{Route, Routed};
use crate::listen::Current;
use crate::serve::ask;
use crate::target::Target;
use crate::wire::Request;
use anabranch::{RecvStream, SendStream};

/// The senders of datagrams, to whom the answers go.
pub(crate) trait Senders: Send + Sync + 'static {
    /// Identifies a sender.
    type Sender: Ord + Copy + Send;

    /// Passes an answer on. Never blocks.
    fn answer(&self, to: Self::Sender, payload: &[u8]) -> io::Result<()>;
}

/// A request to carry datagrams to one target.
pub(crate) struct Opener<S: Senders> {
    senders: S,
    counters: DatagramCounters,
    idle: Duration,
    state: Mutex<State<S::Sender>>,
}

struct State<T> {
    /// Set while the peer carries datagrams.
    outlet: Option<Arc<Outlet>>,
    flows: BTreeMap<T, Flow>,
    senders: BTreeMap<u64, T>,
    /// The number of the next flow.
    next: u64,
}

/// The flow of one sender.
struct Flow {
    number: u64,
    /// Time of the flow's last datagram in either direction.
    last: Instant,
    _counted: Counted,
}

impl<T: Ord + Copy> State<T> {
    /// The number of a sender's flow, which is made if it is new; `None` if there are too many.
    fn number(&mut self, from: T, counters: &DatagramCounters) -> Option<u64> {
        let now = Instant::now();
        if let Some(flow) = self.flows.get_mut(&from) {
            flow.last = now;
            return Some(flow.number);
        }
        let counted = counters.flow(MAX_FLOWS).or_else(|| {
            // The flow that has been silent longest makes room.
            let oldest = *self.flows.iter().min_by_key(|(_, flow)| flow.last)?.0;
            self.forget(oldest);
            counters.flow(MAX_FLOWS)
        })?;
        let number = self.next;
        self.next += 1;
        self.senders.insert(number, from);
        self.flows.insert(from, Flow { number, last: now, _counted: counted });
        Some(number)
    }

    fn forget(&mut self, sender: T) {
        if let Some(flow) = self.flows.remove(&sender) {
            self.senders.remove(&flow.number);
        }
    }
}

impl<S: Senders> Opener<S> {
    /// A request that has not been made yet. It forgets silent flows after `idle`.
    pub(crate) fn new(senders: S, counters: DatagramCounters, idle: Duration) -> Self {
        let (flows, senders_of) = (BTreeMap::new(), BTreeMap::new());
        let state = State { outlet: None, flows, senders: senders_of, next: 0 };
        Opener { senders, counters, idle, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State<S::Sender>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the first `len` bytes of payload in a [`buffer`](super::frame::buffer) to the peer, if it carries datagrams.
    pub(crate) fn send(&self, from: S::Sender, buffer: &mut [u8], len: usize) {
        let mut state = self.lock();
        let Some(outlet) = state.outlet.clone() else {
            return self.counters.dropped(Dropped::NotConnected);
        };
        let number = state.number(from, &self.counters);
        drop(state);
        match number {
            Some(flow) => outlet.send(flow, buffer, len),
            None => self.counters.dropped(Dropped::NoFlow),
        }
    }

    /// Forgets a sender.
    pub(crate) fn forget(&self, sender: S::Sender) {
        self.lock().forget(sender);
    }

    /// Forgets senders that have been silent for `idle`. Returns whether others are left.
    pub(crate) fn forget_idle(&self) -> bool {
        let mut state = self.lock();
        let idle = state.flows.iter().filter(|(_, flow)| flow.last.elapsed() >= self.idle);
        for sender in idle.map(|(sender, _)| *sender).collect::<Vec<_>>() {
            state.forget(sender);
        }
        !state.flows.is_empty()
    }

    /// Asks the peer to carry datagrams of a class to `target`, until the streams are dropped.
    ///
    /// # Errors
    /// If the peer refuses.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        current: &Current,
        target: &Target,
        class: TrafficClass,
    ) -> io::Result<(SendStream, RecvStream, Routed)> {
        let (mut send, mut receive) = current.connection.open_bi(TrafficClass::Bulk).await?;
        let stream = send.id().0;
        let routed = current.routes.add(stream, Arc::clone(self) as Arc<dyn Route>);
        ask(&Request::Datagrams(target.clone(), class), &mut send, &mut receive).await?;
        let outlet = Outlet::new(current.connection.clone(), stream, class, self.counters.clone());
        self.lock().outlet = Some(Arc::new(outlet));
        Ok((send, receive, routed))
    }

    /// Notes that the peer no longer carries datagrams.
    pub(crate) fn end(&self) {
        self.lock().outlet = None;
    }
}

impl<S: Senders> Route for Opener<S> {
    fn take(self: Arc<Self>, number: u64, payload: &[u8]) {
        let sender = {
            let mut state = self.lock();
            let sender = state.senders.get(&number).copied();
            if let Some(flow) = sender.and_then(|sender| state.flows.get_mut(&sender)) {
                flow.last = Instant::now();
            }
            sender
        };
        let Some(sender) = sender else { return self.counters.dropped(Dropped::NoFlow) };
        match self.senders.answer(sender, payload) {
            Ok(()) => self.counters.received(payload.len()),
            Err(_) => self.counters.dropped(Dropped::Failed),
        }
    }
}
