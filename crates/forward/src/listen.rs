use core::future::pending;
use core::pin::pin;
use core::time::Duration;
use std::io;
use std::sync::Arc;

use anabranch::TrafficClass;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::acceptor::{Acceptor, Carried};
use super::permit::Grant;
use super::place::{Forward, Place};
use super::serve::{Context, ForwardEvent, Listeners, Service, ask, carry, open, take_streams};
use super::socks;
use super::target::Dynamic;
use super::udp::{DatagramCounters, Relay, Routes};
use super::wire::Request;
use anabranch::Connection;
use anabranch::ConnectionError;
use anabranch::{RecvStream, SendStream};

/// How long an accepted TCP connection waits for a connection to the peer.
pub(super) const WAIT: Duration = Duration::from_secs(30);
/// Pause before a refused or failed request is made again.
pub(super) const RETRY: Duration = Duration::from_secs(2);

/// The current connection to the peer; forwards outlive any single connection.
#[derive(Clone)]
pub struct Link {
    current: Arc<watch::Sender<Option<Current>>>,
    listeners: Listeners,
    tell: Arc<dyn Fn(ForwardEvent) + Send + Sync>,
}

/// The current connection, and the routes of its datagrams.
#[derive(Clone)]
pub(super) struct Current {
    pub(super) connection: Connection,
    pub(super) routes: Routes,
}

impl core::fmt::Debug for Link {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Link").field("connected", &self.current.borrow().is_some()).finish()
    }
}

impl Link {
    /// A link without a connection yet. Events of its forwards are reported to `tell`.
    pub fn new(tell: Arc<dyn Fn(ForwardEvent) + Send + Sync>) -> Self {
        Link { current: Arc::new(watch::Sender::new(None)), listeners: Listeners::default(), tell }
    }

    /// Uses `connection` until it ends, and returns why it ended.
    pub async fn carry(&self, connection: Connection) -> ConnectionError {
        let current = Current { connection, routes: Routes::default() };
        self.current.send_replace(Some(current.clone()));
        // With nothing permitted, the peer may only bring connections that it accepted for this side.
        let over = take_streams(self.context(current)).await;
        self.current.send_replace(None);
        over
    }

    fn context(&self, Current { connection, routes }: Current) -> Context {
        let (listeners, tell) = (self.listeners.clone(), Arc::clone(&self.tell));
        // This side permits the peer nothing.
        let (grant, service) = (Grant::default(), Service::default());
        Context { connection, grant, service, listeners, routes, tell }
    }

    /// The current connection, if there is one.
    pub fn current(&self) -> Option<Connection> {
        self.current.borrow().as_ref().map(|current| current.connection.clone())
    }

    /// Waits for a current connection.
    pub(super) async fn connected(&self) -> Option<Current> {
        let mut current = self.current.subscribe();
        let found = current.wait_for(Option::is_some).await.ok()?;
        found.clone()
    }

    /// Carries a connection over a stream that was opened for it, to its end.
    pub(super) async fn carry_over(
        &self,
        target: Place,
        carried: Carried,
        stream: (SendStream, RecvStream),
    ) {
        let Some(current) = self.current.borrow().clone() else { return };
        let context = self.context(current);
        carry(&context, target, carried, stream).await;
    }

    /// Reports an event of a forward.
    pub(super) fn tell(&self, event: ForwardEvent) {
        (self.tell)(event);
    }

    /// Waits until `connection` is no longer the current one.
    pub(super) async fn replaced(&self, connection: &Connection) {
        let mut current = self.current.subscribe();
        let other = |now: &Option<Current>| {
            !now.as_ref().is_some_and(|now| now.connection.is_same(connection))
        };
        // Never fails: the sender lives as long as `self`.
        let _ = current.wait_for(other).await;
    }

    /// Opens a stream to `target` beyond the peer; over the next connection if the current one ends before the
    /// peer has answered.
    ///
    /// # Errors
    /// If there is no connection for 30 s, or no room on it, or the peer refuses.
    pub async fn open(&self, target: &Place) -> io::Result<(SendStream, RecvStream)> {
        let opening = async {
            loop {
                let context = self.context(self.connected().await?);
                match connect_over(&context, target).await {
                    Err(error) if is_over(&error) => self.replaced(&context.connection).await,
                    outcome => return Some(outcome),
                }
            }
        };
        match tokio::time::timeout(WAIT, opening).await {
            Ok(Some(outcome)) => outcome,
            _ if self.current.borrow().is_some() => {
                let why = "the peer did not answer, or carries as many connections as it allows";
                Err(io::Error::new(io::ErrorKind::TimedOut, why))
            }
            _ => Err(io::Error::new(io::ErrorKind::NotConnected, "the peer is not connected")),
        }
    }
}

/// Asks the peer for a connection to `target`.
async fn connect_over(context: &Context, target: &Place) -> io::Result<(SendStream, RecvStream)> {
    let (mut send, mut receive) = open(context, target).await?;
    ask(&Request::Connect(target.clone()), &mut send, &mut receive).await?;
    Ok((send, receive))
}

/// Whether the error is that the connection is over.
pub(super) fn is_over(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<ConnectionError>())
}

/// A local listener, for TCP or on a Unix socket, whose connections lead beyond the peer.
#[derive(Debug)]
pub struct Listener {
    listener: Acceptor,
    leads: Leads,
    /// Counters of the SOCKS5 clients' datagrams.
    counters: DatagramCounters,
}

/// Where the connections of a listener lead.
#[derive(Clone, Debug)]
enum Leads {
    /// All lead to this place.
    To(Place),
    /// Each leads where its SOCKS5 client asks; the clients connect to this place.
    Asked(Place),
}

/// Binds the local end of a forward (ssh's `-L`).
///
/// # Errors
/// If its address cannot be resolved or bound.
pub async fn listen_here(forward: &Forward) -> io::Result<Listener> {
    listen_at(&forward.bind, Leads::To(forward.target.clone())).await
}

/// Binds a place for SOCKS5 clients, which say where their connections lead (ssh's `-D`).
///
/// # Errors
/// If its address cannot be resolved or bound.
pub async fn listen_for_socks(dynamic: &Dynamic) -> io::Result<Listener> {
    let bind = Place::Port(dynamic.bind.clone());
    listen_at(&bind, Leads::Asked(bind.clone())).await
}

async fn listen_at(bind: &Place, leads: Leads) -> io::Result<Listener> {
    let (listener, counters) = (Acceptor::bind_at(bind).await?, DatagramCounters::default());
    Ok(Listener { listener, leads, counters })
}

impl Listener {
    /// Where the listener accepts connections.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn local(&self) -> io::Result<Place> {
        Ok(self.listener.local()?.place())
    }

    /// Counters of the SOCKS5 clients' datagrams.
    pub fn counters(&self) -> DatagramCounters {
        self.counters.clone()
    }

    /// Accepts connections and carries each over the link, for ever.
    pub async fn run(self, link: Link) {
        self.run_until(link, pending()).await;
    }

    /// Leads further connections to the target of `forward`.
    pub fn leading(self, forward: &Forward) -> Self {
        Listener { leads: Leads::To(forward.target.clone()), ..self }
    }

    /// Takes further connections for those of SOCKS5 clients.
    pub fn for_socks(self, dynamic: &Dynamic) -> Self {
        Listener { leads: Leads::Asked(dynamic.bind.clone().into()), ..self }
    }

    /// Accepts connections and carries each over the link, until `over` is ready; accepted ones go on. Returns
    /// the listener, which still listens but no longer accepts.
    pub async fn run_until(self, link: Link, over: impl Future<Output = ()>) -> Self {
        let mut tasks = JoinSet::new();
        let mut over = pin!(over);
        let relay = Relay::new(link.clone(), self.counters.clone());
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = &mut over => {
                    tasks.detach_all();
                    return self;
                }
            };
            match accepted {
                Ok(carried) => {
                    match (self.leads.clone(), carried) {
                        (Leads::To(target), carried) => {
                            drop(tasks.spawn(take(link.clone(), target, carried)));
                        }
                        (Leads::Asked(bind), Carried::Tcp(tcp)) => {
                            let relay = Arc::clone(&relay);
                            drop(tasks.spawn(socks::take(link.clone(), relay, bind, tcp)));
                        }
                        // SOCKS clients connect by TCP.
                        (Leads::Asked(_), Carried::Unix(_)) => {}
                    }
                    while tasks.try_join_next().is_some() {}
                }
                // The error is a temporary shortage, such as of file descriptors.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }
}

async fn take(link: Link, target: Place, carried: Carried) {
    match link.open(&target).await {
        Ok(stream) => link.carry_over(target, carried, stream).await,
        Err(error) => {
            // A refusal looks to the client like a closed port would.
            carried.refuse();
            link.tell(ForwardEvent::Failed(target, error.to_string()));
        }
    }
}

/// Has the peer listen at the far end of a forward (ssh's `-R`), on every connection of the link, for
/// ever. Failures are reported, such as a refusal, or an address in use at the peer.
pub async fn listen_there(link: Link, forward: Forward) {
    // The failure reported last, which is not reported again.
    let mut told = String::new();
    loop {
        let Some(Current { connection, .. }) = link.connected().await else { return };
        match request(&link, &connection, &forward).await {
            Ok((_send, mut receive)) => {
                told.clear();
                // The peer sends nothing more; the stream ends with the connection, or when the peer gives up.
                let _ = receive.read(&mut [0]).await;
            }
            Err(error) if is_over(&error) || error.to_string() == told => {}
            Err(error) => {
                told = error.to_string();
                link.tell(ForwardEvent::Failed(forward.bind.clone(), told.clone()));
            }
        }
        // The next connection is asked at once, the same one again after a pause.
        let _ = tokio::time::timeout(RETRY, link.replaced(&connection)).await;
    }
}

async fn request(
    link: &Link,
    connection: &Connection,
    forward: &Forward,
) -> io::Result<(SendStream, RecvStream)> {
    let (mut send, mut receive) = connection.open_bi(TrafficClass::Bulk).await?;
    let listener = ask(&Request::Listen(forward.bind.clone()), &mut send, &mut receive).await?;
    link.listeners.set(listener, forward.target.clone());
    Ok((send, receive))
}
