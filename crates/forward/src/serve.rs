use core::future::pending;
use core::pin::pin;
use core::time::Duration;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use anabranch::PublicKey;
use anabranch::TrafficClass;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::acceptor::Carried;
use super::carriers::Carriers;
use super::permit::{Grant, Permits};
use super::place::{Address, Place};
use super::ports::{Held, Ports};
use super::served::Served;
use super::splice::BROKEN;
use super::udp::{self, DatagramCounters};
use super::wire::{Answer, HEAD_LEN, Head, Reason, Request};
use anabranch::Connection;
use anabranch::ConnectionError;
use anabranch::{ReadError, RecvStream, SendStream, WriteError};

/// Time for a peer to send the request on a stream that it opened, and to answer a request of this side.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time after which a stream that is still not open is reported as waiting.
const SOON: Duration = Duration::from_millis(500);
/// Pause after the system refused to accept a connection, as when files run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Most accepted connections of one request to listen that wait until the peer allows another stream. Further ones wait
/// to be accepted.
const MAX_WAITING: usize = 64;

/// The reason given when something ends because it is no longer permitted.
pub(super) const REVOKED: &str = "it is no longer permitted";

/// Something happened to a forward.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForwardEvent {
    /// A connection is being carried to this target.
    Opened(Place),
    /// A connection has ended: bytes sent to the peer and received from it.
    Closed(Place, u64, u64),
    /// A connection or a request failed, at its beginning or later.
    Failed(Place, String),
    /// A connection to this target, or one accepted there, waits: the peer allows no further stream yet.
    Waiting(Place),
    /// The peer has this side listen on its behalf.
    Listening(Place),
}

/// Targets of the connections that the peer accepts for this side, by the listener's number.
#[derive(Clone, Debug, Default)]
pub(super) struct Listeners(Arc<Mutex<BTreeMap<u16, Place>>>);

impl Listeners {
    pub(super) fn set(&self, listener: u16, target: Place) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(listener, target);
    }

    fn find(&self, listener: u16) -> Option<Place> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&listener).cloned()
    }
}

/// State shared by the connections that an endpoint serves: the ports that it listens on for its peers, limits and
/// counters of each peer, and each peer's connections, so that those left behind by a crash end soon after the peer
/// is back.
#[derive(Clone, Debug)]
pub struct Service {
    ports: Ports,
    served: Served,
    pub(super) peers: udp::Peers,
    carriers: Carriers,
}

impl Default for Service {
    /// A service without a limit of its own on carried connections; the endpoint's limit of streams remains.
    fn default() -> Self {
        Service::carrying(usize::MAX)
    }
}

impl Service {
    /// A service that carries `most` connections of TCP and of Unix sockets for each peer at a time, over all of the
    /// peer's connections with the endpoint.
    pub fn carrying(most: usize) -> Self {
        let (ports, served, peers) = (Ports::default(), Served::default(), udp::Peers::default());
        Service { ports, served, peers, carriers: Carriers::new(most) }
    }

    /// A service that forgets silent flows after `idle`.
    #[cfg(test)]
    pub(super) fn forgetting_after(idle: Duration) -> Self {
        Service { peers: udp::Peers::forgetting_after(idle), ..Service::default() }
    }

    /// Counters of the UDP datagrams of a peer, over all of its connections.
    pub fn datagrams_of(&self, peer: PublicKey) -> DatagramCounters {
        self.peers.of(peer)
    }
}

/// State that every task of one connection needs.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) connection: Connection,
    pub(super) grant: Grant,
    pub(super) service: Service,
    pub(super) listeners: Listeners,
    pub(super) routes: udp::Routes,
    pub(super) tell: Arc<dyn Fn(ForwardEvent) + Send + Sync>,
}

/// Serves the forwards that the peer asks for, as far as `grant` permits them, until the connection ends; returns why
/// it ended. [`Grant::set`] ends what is no longer permitted. `service` is common to all connections of the endpoint.
/// Events are reported to `tell`.
pub async fn serve(
    connection: Connection,
    grant: impl Into<Grant>,
    service: Service,
    tell: Arc<dyn Fn(ForwardEvent) + Send + Sync>,
) -> ConnectionError {
    let _entry = service.served.enter(&connection);
    let (listeners, routes) = (Listeners::default(), udp::Routes::default());
    let grant = grant.into();
    take_streams(Context { connection, grant, service, listeners, routes, tell }).await
}

pub(super) async fn take_streams(context: Context) -> ConnectionError {
    let mut tasks = tokio::task::JoinSet::new();
    let datagrams = context.routes.clone().run(context.connection.clone());
    tasks.spawn(async { drop(datagrams.await) });
    let mut listeners = 0_u16;
    loop {
        let (send, receive) = match context.connection.accept_bi().await {
            Ok(halves) => halves,
            Err(error) => return error,
        };
        listeners = listeners.checked_add(1).unwrap_or(1);
        tasks.spawn(take_stream(context.clone(), send, receive, listeners));
        // Ended tasks are removed.
        while tasks.try_join_next().is_some() {}
    }
}

async fn take_stream(context: Context, mut send: SendStream, mut receive: RecvStream, number: u16) {
    let request = async {
        let (head, text) = read_message(&mut receive).await?;
        Request::decode(head, &text).map_err(io::Error::other)
    };
    match tokio::time::timeout(PATIENCE, request).await {
        Ok(Ok(Request::Connect(target))) => connect(&context, target, send, receive).await,
        Ok(Ok(Request::Datagrams(target, class))) => {
            udp::carry(&context, (target, class), send, receive).await;
        }
        Ok(Ok(Request::Listen(bind))) => listen(&context, bind, number, send, receive).await,
        Ok(Ok(Request::Accepted(listener))) => match context.listeners.find(listener) {
            Some(target) => accepted(&context, target, send, receive).await,
            None => send.reset(BROKEN),
        },
        Ok(Err(error)) => refuse(&mut send, &error, error.to_string()).await,
        Err(_) => send.reset(BROKEN),
    }
}

/// Opens a stream for a connection to `target`, and reports if that has to wait.
pub(super) async fn open(
    context: &Context,
    target: &Place,
) -> Result<(SendStream, RecvStream), ConnectionError> {
    let mut opening = pin!(context.connection.open_bi(TrafficClass::Bulk));
    match tokio::time::timeout(SOON, &mut opening).await {
        Ok(opened) => opened,
        Err(_) => {
            (context.tell)(ForwardEvent::Waiting(target.clone()));
            opening.await
        }
    }
}

/// Reads the fixed part of a message and its text.
pub(super) async fn read_message(receive: &mut RecvStream) -> io::Result<(Head, Vec<u8>)> {
    let mut head = [0; HEAD_LEN];
    receive.read_exact(&mut head).await?;
    let head = Head::decode(head).map_err(io::Error::other)?;
    let mut text = vec![0; usize::from(head.text)];
    receive.read_exact(&mut text).await?;
    Ok((head, text))
}

/// Sends a request and waits for the answer. Returns the number of the listener that was asked for, 0 for other
/// requests.
///
/// # Errors
/// If the peer refuses the request, with the error kind of the peer's reason, or does not answer.
pub(super) async fn ask(
    request: &Request,
    send: &mut SendStream,
    receive: &mut RecvStream,
) -> io::Result<u16> {
    let answer = async {
        send.write_all(&request.encode()).await?;
        let (head, text) = read_message(receive).await?;
        Answer::decode(head, &text).map_err(io::Error::other)
    };
    match tokio::time::timeout(PATIENCE, answer).await {
        Ok(answer) => match answer? {
            Answer::Done { listener, .. } => Ok(listener),
            Answer::Refused(reason, why) => Err(io::Error::new(reason.kind(), why.to_string())),
        },
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the peer did not answer")),
    }
}

/// Tells the peer that its request failed with `error`, and why in words.
pub(super) async fn refuse(send: &mut SendStream, error: &io::Error, why: String) {
    let answer = Answer::Refused(Reason::of(error), why.into());
    // If the answer cannot be sent, the peer will see the stream end.
    let _ = send.write_all(&answer.encode()).await;
    let _ = send.finish();
}

async fn connect(context: &Context, target: Place, mut send: SendStream, receive: RecvStream) {
    match reach(context, &target).await {
        Ok((address, carried, _place)) => {
            let done = Answer::Done { port: 0, listener: 0 }.encode();
            if send.write_all(&done).await.is_ok() {
                let over = revoked(context, |permits| permits.may_connect(&target, &address));
                carry_until(context, &target, carried, (send, receive), over).await;
            }
        }
        Err(error) => {
            refuse(&mut send, &error, error.to_string()).await;
            (context.tell)(ForwardEvent::Failed(target, error.to_string()));
        }
    }
}

/// Waits until `is_permitted` no longer holds; the error says so.
async fn revoked(context: &Context, is_permitted: impl Fn(&Permits) -> bool) -> io::Error {
    context.grant.revoked(is_permitted).await;
    io::Error::new(io::ErrorKind::PermissionDenied, REVOKED)
}

/// Connects to a target that the peer named, if that is permitted. The connection counts against
/// the peer's limit until the permit is dropped.
async fn reach(
    context: &Context,
    target: &Place,
) -> io::Result<(Address, Carried, OwnedSemaphorePermit)> {
    let place = context.service.carriers.admit(context.connection.peer())?;
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in context.grant.permits().to_connect(target).await? {
        match Carried::dial(&address).await {
            Ok(carried) => return Ok((address, carried, place)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Carries a connection that the peer accepted for this side to this side's own target, which needs no permission.
async fn accepted(context: &Context, target: Place, mut send: SendStream, receive: RecvStream) {
    match Carried::dial_to(&target).await {
        Ok(carried) => carry(context, target, carried, (send, receive)).await,
        Err(error) => {
            send.reset(BROKEN);
            (context.tell)(ForwardEvent::Failed(target, error.to_string()));
        }
    }
}

/// Carries a connection over a stream to its end; reports its beginning and its end.
pub(super) async fn carry(
    context: &Context,
    target: Place,
    carried: Carried,
    stream: (SendStream, RecvStream),
) {
    carry_until(context, &target, carried, stream, pending()).await;
}

/// Variant of [`carry`] that ends the connection when `over` is ready.
async fn carry_until(
    context: &Context,
    target: &Place,
    carried: Carried,
    stream: (SendStream, RecvStream),
    over: impl Future<Output = io::Error>,
) {
    (context.tell)(ForwardEvent::Opened(target.clone()));
    let event = match carried.splice(stream, over).await {
        Ok((up, down)) => ForwardEvent::Closed(target.clone(), up, down),
        Err(error) => ForwardEvent::Failed(target.clone(), broken(&error)),
    };
    (context.tell)(event);
}

/// Why a connection that was carried broke.
fn broken(error: &io::Error) -> String {
    let inner = error.get_ref();
    let reset = inner.and_then(|inner| inner.downcast_ref::<ReadError>());
    let stopped = inner.and_then(|inner| inner.downcast_ref::<WriteError>());
    match (reset, stopped, error.kind()) {
        (Some(ReadError::Reset(_)), _, _) | (_, Some(WriteError::Stopped(_)), _) => {
            "aborted at the peer's side".to_owned()
        }
        (None, None, io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => {
            "aborted at this side".to_owned()
        }
        _ => error.to_string(),
    }
}

/// Listens on behalf of the peer for as long as its request's stream is open.
async fn listen(
    context: &Context,
    bind: Place,
    number: u16,
    mut send: SendStream,
    mut receive: RecvStream,
) {
    let held = match bind_for(context, &bind).await {
        Ok(held) => held,
        Err(error) => {
            refuse(&mut send, &error, format!("{bind}: {error}")).await;
            (context.tell)(ForwardEvent::Failed(bind, error.to_string()));
            return;
        }
    };
    let done = Answer::Done { port: held.local.port(), listener: number }.encode();
    if send.write_all(&done).await.is_err() {
        return;
    }
    (context.tell)(ForwardEvent::Listening(held.local.place()));
    let mut tasks = tokio::task::JoinSet::new();
    let waiting = Arc::new(Semaphore::new(MAX_WAITING));
    let mut end = [0];
    let mut over = pin!(revoked(context, |permits| permits.may_listen(&bind, &held.local)));
    // Accepted connections go on after the request has ended, as long as the peer is connected and may listen here.
    loop {
        tokio::select! {
            // Nothing more comes on the request's stream but its end.
            _ = receive.read(&mut end) => return tasks.detach_all(),
            why = &mut over => {
                send.reset(BROKEN);
                (context.tell)(ForwardEvent::Failed(bind.clone(), why.to_string()));
                return tasks.detach_all();
            }
            // Accepted connections are kept, since the peer may yet answer on this connection.
            () = held.is_to_let_go() => return tasks.detach_all(),
            accepted = accept(&held, &waiting) => match accepted {
                Ok(accepted) => {
                    let from = (bind.clone(), held.local.clone(), number);
                    tasks.spawn(bring(context.clone(), from, accepted));
                    while tasks.try_join_next().is_some() {}
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    }
}

/// Accepts the next connection, as soon as fewer than [`MAX_WAITING`] wait.
async fn accept(
    held: &Held,
    waiting: &Arc<Semaphore>,
) -> io::Result<(Carried, OwnedSemaphorePermit)> {
    let waits = Arc::clone(waiting).acquire_owned().await.map_err(io::Error::other)?;
    Ok((held.accept().await?, waits))
}

/// Carries an accepted connection to the peer, as long as the peer may listen there.
async fn bring(
    context: Context,
    (bind, local, number): (Place, Address, u16),
    (carried, waits): (Carried, OwnedSemaphorePermit),
) {
    let Ok(_place) = context.service.carriers.admit(context.connection.peer()) else {
        return carried.refuse();
    };
    let mut over = pin!(revoked(&context, |permits| permits.may_listen(&bind, &local)));
    let opening = async {
        let (mut send, receive) = open(&context, &bind).await.ok()?;
        send.write_all(&Request::Accepted(number).encode()).await.ok()?;
        Some((send, receive))
    };
    let stream = tokio::select! {
        stream = opening => stream,
        _ = &mut over => None,
    };
    drop(waits);
    match stream {
        Some(stream) => carry_until(&context, &bind, carried, stream, over).await,
        None => carried.refuse(),
    }
}

/// Binds where the peer wants this side to listen, if that is permitted.
async fn bind_for(context: &Context, bind: &Place) -> io::Result<Held> {
    let address = context.grant.permits().to_listen(bind).await?;
    context.service.ports.bind(&address, &context.connection).await
}
