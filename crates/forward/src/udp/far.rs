//! The far end: sends datagrams to their target and receives its answers.

use core::time::Duration;
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch::{PublicKey, TrafficClass};
use tokio::net::UdpSocket;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout_at};

use super::counts::{Counted, Counters, DatagramCounters, Dropped};
use super::outlet::Outlet;
use super::routes::Route;
use super::{IDLE, MAX_FLOWS, PAUSE, frame};
use crate::per_peer::PerPeer;
use crate::permit::Permits;
use crate::serve::{Context, ForwardEvent, REVOKED, refuse};
use crate::splice::BROKEN;
use crate::target::Target;
use crate::wire::Answer;
use anabranch::Connection;
use anabranch::{RecvStream, SendStream};

/// State that all connections of a peer share.
#[derive(Clone, Debug)]
pub(crate) struct Peers {
    counters: PerPeer<Counters>,
    /// Time after which a silent flow is forgotten.
    idle: Duration,
}

impl Default for Peers {
    fn default() -> Self {
        Peers { counters: PerPeer::default(), idle: IDLE }
    }
}

impl Peers {
    /// The default, except that flows are forgotten after `idle`.
    #[cfg(test)]
    pub(crate) fn forgetting_after(idle: Duration) -> Self {
        Peers { idle, ..Peers::default() }
    }

    /// The counters of a peer, which also say how many flows it has.
    pub(crate) fn of(&self, peer: PublicKey) -> DatagramCounters {
        DatagramCounters::of(self.counters.of(peer, Counters::default))
    }
}

/// Carries the datagrams of a request for as long as its stream is open, if the peer may send there.
pub(crate) async fn carry(
    context: &Context,
    (target, class): (Target, TrafficClass),
    mut send: SendStream,
    mut receive: RecvStream,
) {
    let addresses = match context.grant.permits().to_send(&target).await {
        Ok(addresses) => addresses,
        Err(error) => {
            refuse(&mut send, &error, error.to_string()).await;
            if context.routes.is_news(&target) {
                (context.tell)(ForwardEvent::Failed(target.into(), error.to_string()));
            }
            return;
        }
    };
    let way = (context.connection.clone(), send.id().0, class);
    let far = Arc::new(Far::new(way, addresses.clone(), &context.service.peers));
    let _closing = Closing(far.clone());
    // Datagrams may overtake the answer, so add the route before the answer is sent.
    let _routed = context.routes.add(far.outlet.stream, far.clone());
    if send.write_all(&Answer::Done { port: 0, listener: 0 }.encode()).await.is_ok() {
        let may =
            |permits: &Permits| addresses.iter().all(|address| permits.may_send(&target, *address));
        let revoked = context.grant.revoked(may);
        let mut end = [0];
        tokio::select! {
            // Nothing more comes on this stream but its end.
            _ = receive.read(&mut end) => {}
            () = revoked => {
                send.reset(BROKEN);
                (context.tell)(ForwardEvent::Failed(target.clone().into(), REVOKED.to_owned()));
            }
        }
    }
}

/// Closes the flows of a request when dropped, also where the connection ends first.
struct Closing(Arc<Far>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// A request that is carried.
pub(super) struct Far {
    outlet: Outlet,
    /// Addresses of the target; one or more.
    addresses: Vec<SocketAddr>,
    counters: DatagramCounters,
    idle: Duration,
    flows: Mutex<Flows>,
}

#[derive(Default)]
struct Flows {
    all: BTreeMap<u64, Entry>,
    /// Index of the address that new flows begin with: the next after one at which nothing listens.
    address: usize,
    /// The request is over; no flows are made any more.
    closed: bool,
}

/// A flow among those of a request; its task ends with it.
struct Entry {
    flow: Arc<Flow>,
    answers: AbortHandle,
    _counted: Counted,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.answers.abort();
    }
}

/// A flow, which has a socket of its own.
struct Flow(Mutex<FlowState>);

struct FlowState {
    socket: Arc<UdpSocket>,
    /// Index of the address that the socket is connected to.
    address: usize,
    /// When the flow last carried something.
    last: Instant,
    /// The last payload, kept until something is answered, to be sent to the next address.
    unanswered: Option<Vec<u8>>,
}

impl Flow {
    fn lock(&self) -> MutexGuard<'_, FlowState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Route for Far {
    fn take(self: Arc<Self>, number: u64, payload: &[u8]) {
        let Some(flow) = self.flow(number) else { return self.counters.dropped(Dropped::NoFlow) };
        let mut state = flow.lock();
        state.last = Instant::now();
        if let Some(unanswered) = &mut state.unanswered {
            *unanswered = payload.to_vec();
        }
        let mut sent = send(&state.socket, payload);
        if sent.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            // The error reports the fate of an earlier datagram.
            sent = send(&state.socket, payload);
        }
        match sent {
            Ok(_) => self.counters.received(payload.len()),
            Err(_) => self.counters.dropped(Dropped::Failed),
        }
    }
}

impl Far {
    pub(super) fn new(
        (connection, stream, class): (Connection, u64, TrafficClass),
        addresses: Vec<SocketAddr>,
        peers: &Peers,
    ) -> Self {
        let (counters, idle) = (peers.of(connection.peer()), peers.idle);
        let outlet = Outlet::new(connection, stream, class, counters.clone());
        Far { outlet, addresses, counters, idle, flows: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Flows> {
        self.flows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The flow with this number, made if it is new; `None` if there are too many, or they begin too fast.
    fn flow(self: &Arc<Self>, number: u64) -> Option<Arc<Flow>> {
        let mut flows = self.lock();
        if let Some(entry) = flows.all.get(&number) {
            return Some(entry.flow.clone());
        }
        if flows.closed || !self.counters.may_begin() {
            return None;
        }
        let counted = self.counters.flow(MAX_FLOWS).or_else(|| {
            // The flow that has been silent longest makes room.
            let oldest = flows.all.iter().min_by_key(|(_, entry)| entry.flow.lock().last);
            let oldest = *oldest?.0;
            flows.all.remove(&oldest);
            self.counters.flow(MAX_FLOWS)
        })?;
        let address = flows.address;
        let socket = Arc::new(connected(*self.addresses.get(address)?).ok()?);
        let unanswered = (address + 1 < self.addresses.len()).then(Vec::new);
        let state = FlowState { socket, address, last: Instant::now(), unanswered };
        let flow = Arc::new(Flow(Mutex::new(state)));
        let answers = tokio::spawn(answers(Arc::clone(self), number, flow.clone())).abort_handle();
        flows.all.insert(number, Entry { flow: flow.clone(), answers, _counted: counted });
        Some(flow)
    }

    /// Called when nothing listens at a flow's address. Sends the flow's last payload to the next
    /// address that has a route, if there is one.
    fn go_on(&self, flow: &Flow) {
        let mut flows = self.lock();
        let mut state = flow.lock();
        let Some(unanswered) = state.unanswered.take() else { return };
        let mut others = self.addresses.iter().enumerate().skip(state.address + 1);
        let next = others.find_map(|(at, other)| Some((at, connected(*other).ok()?)));
        let Some((address, socket)) = next else { return };
        // An older flow may be refused after newer ones have gone further.
        flows.address = flows.address.max(address);
        // If sending fails, the datagram is lost, as any datagram may be.
        let _ = send(&socket, &unanswered);
        let more = address + 1 < self.addresses.len();
        let (socket, unanswered) = (Arc::new(socket), more.then_some(unanswered));
        *state = FlowState { socket, address, last: state.last, unanswered };
    }

    /// Forgets a flow, unless it has carried something meanwhile.
    fn forget_if_idle(&self, number: u64, flow: &Flow) -> bool {
        let mut flows = self.lock();
        let idle = flow.lock().last.elapsed() >= self.idle;
        if idle {
            flows.all.remove(&number);
        }
        idle
    }

    /// Forgets all flows, and makes no more.
    pub(super) fn close(&self) {
        let mut flows = self.lock();
        flows.closed = true;
        flows.all.clear();
    }
}

/// Passes on what the target answers, until the flow is forgotten.
async fn answers(far: Arc<Far>, number: u64, flow: Arc<Flow>) {
    let mut buffer = frame::buffer();
    loop {
        let (socket, last) = {
            let state = flow.lock();
            (Arc::clone(&state.socket), state.last)
        };
        match timeout_at(last + far.idle, socket.recv(frame::payload_of(&mut buffer))).await {
            Ok(Ok(len)) => {
                let mut state = flow.lock();
                (state.last, state.unanswered) = (Instant::now(), None);
                drop(state);
                far.outlet.send(number, &mut buffer, len);
            }
            Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => far.go_on(&flow),
            Ok(Err(_)) => sleep(PAUSE).await,
            Err(_) if far.forget_if_idle(number, &flow) => return,
            Err(_) => {}
        }
    }
}

/// A socket that is connected to `address`, and so receives nothing from elsewhere.
fn connected(address: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = std::net::UdpSocket::bind(any)?;
    socket.connect(address)?;
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket)
}

/// Sends at once or not at all.
fn send(socket: &UdpSocket, payload: &[u8]) -> io::Result<usize> {
    socket2::SockRef::from(socket).send(payload)
}
