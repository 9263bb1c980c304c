//! The near end: receives datagrams from local programs and sends them the answers.

use core::time::Duration;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch::TrafficClass;
use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep, timeout};

use super::counts::{Counted, DatagramCounters, Dropped};
use super::routes::{Route, Routed};
use super::{IDLE, MAX_FLOWS, PAUSE, frame};
use crate::listen::{Current, Link, RETRY, is_over};
use crate::serve::{ForwardEvent, ask};
use crate::target::{Target, UdpForward};
use crate::wire::Request;
use anabranch::Connection;
use anabranch::{RecvStream, SendStream};

/// How often idle flows are looked for within the time after which one is forgotten, while nothing comes.
const SWEEPS: u32 = 12;

/// A local UDP socket whose datagrams lead beyond the peer.
#[derive(Debug)]
pub struct DatagramListener {
    socket: Arc<UdpSocket>,
    target: Target,
    counters: DatagramCounters,
    /// When a silent flow is forgotten.
    pub(super) idle: Duration,
}

/// Binds the local end of a forward for UDP.
///
/// # Errors
/// If its address cannot be resolved or bound.
pub async fn listen_for_datagrams(forward: &UdpForward) -> io::Result<DatagramListener> {
    let UdpForward { bind, target } = forward.clone();
    let socket = Arc::new(UdpSocket::bind((bind.host.as_str(), bind.port)).await?);
    Ok(DatagramListener { socket, target, counters: DatagramCounters::default(), idle: IDLE })
}

impl DatagramListener {
    /// Where it listens.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The fate of its datagrams.
    pub fn counters(&self) -> DatagramCounters {
        self.counters.clone()
    }

    /// The same, with its datagrams leading where `forward` says from now on.
    pub fn leading(self, forward: &UdpForward) -> Self {
        DatagramListener { target: forward.target.clone(), ..self }
    }

    /// Carries datagrams over the link until `over` is ready, and returns the idle listener.
    pub async fn run_until(self, link: Link, over: impl Future<Output = ()>) -> Self {
        let (socket, counters) = (Arc::clone(&self.socket), self.counters.clone());
        let near = Arc::new(Near { socket, counters, idle: self.idle, state: Mutex::default() });
        tokio::select! {
            () = near.take_all() => {}
            () = near.stay_asked(&link, &self.target) => {}
            () = over => {}
        }
        self
    }
}

/// A listener that carries datagrams.
struct Near {
    socket: Arc<UdpSocket>,
    counters: DatagramCounters,
    idle: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The connection and the request's stream, while the peer carries datagrams.
    way: Option<(Connection, u64)>,
    flows: BTreeMap<SocketAddr, Flow>,
    addresses: BTreeMap<u64, SocketAddr>,
    /// The number of the next flow.
    next: u64,
}

/// Who has sent something.
struct Flow {
    number: u64,
    /// When it last sent or got something.
    last: Instant,
    _counted: Counted,
}

impl State {
    /// The number of the flow of an address, made where there is none; `None` if there are too many.
    fn number(&mut self, from: SocketAddr, counters: &DatagramCounters) -> Option<u64> {
        let now = Instant::now();
        if let Some(flow) = self.flows.get_mut(&from) {
            flow.last = now;
            return Some(flow.number);
        }
        if self.flows.len() >= MAX_FLOWS {
            // The one that has been silent longest makes room.
            let oldest = *self.flows.iter().min_by_key(|(_, flow)| flow.last)?.0;
            self.forget(&oldest);
        }
        let (number, counted) = (self.next, counters.flow(MAX_FLOWS)?);
        self.next += 1;
        self.addresses.insert(number, from);
        self.flows.insert(from, Flow { number, last: now, _counted: counted });
        Some(number)
    }

    fn forget(&mut self, address: &SocketAddr) {
        if let Some(flow) = self.flows.remove(address) {
            self.addresses.remove(&flow.number);
        }
    }

    fn forget_idle(&mut self, after: Duration) {
        let idle = self.flows.iter().filter(|(_, flow)| flow.last.elapsed() >= after);
        for address in idle.map(|(address, _)| *address).collect::<Vec<_>>() {
            self.forget(&address);
        }
    }
}

impl Near {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what comes to the peer, for ever.
    async fn take_all(&self) {
        let mut buffer = frame::buffer();
        loop {
            let received = self.socket.recv_from(frame::payload_of(&mut buffer));
            let (len, from) = match timeout(self.idle / SWEEPS, received).await {
                Ok(Ok(received)) => received,
                Ok(Err(_)) => {
                    sleep(PAUSE).await;
                    continue;
                }
                Err(_) => {
                    self.lock().forget_idle(self.idle);
                    continue;
                }
            };
            let mut state = self.lock();
            let Some((connection, stream)) = state.way.clone() else {
                self.counters.dropped(Dropped::NotConnected);
                continue;
            };
            let number = state.number(from, &self.counters);
            drop(state);
            match number {
                Some(flow) => {
                    let datagram = (buffer.as_mut_slice(), len);
                    frame::send(&connection, (stream, flow), datagram, &self.counters);
                }
                None => self.counters.dropped(Dropped::NoFlow),
            }
        }
    }

    /// Asks the peer of every connection of the link to carry datagrams, for ever. A refusal is told, once.
    async fn stay_asked(self: &Arc<Self>, link: &Link, target: &Target) {
        let mut told = String::new();
        loop {
            let Some(current) = link.connected().await else { return };
            match self.ask(&current, target).await {
                Ok((_send, mut receive, _routed)) => {
                    told.clear();
                    // Nothing more comes on this stream but its end, when the connection ends or the peer gives up.
                    let _ = receive.read(&mut [0]).await;
                    self.lock().way = None;
                }
                Err(error) if is_over(&error) || error.to_string() == told => {}
                Err(error) => {
                    told = error.to_string();
                    link.tell(ForwardEvent::Failed(target.clone().into(), told.clone()));
                }
            }
            // The next connection is asked at once, the same one again after a pause.
            let _ = timeout(RETRY, link.replaced(&current.connection)).await;
        }
    }

    async fn ask(
        self: &Arc<Self>,
        current: &Current,
        target: &Target,
    ) -> io::Result<(SendStream, RecvStream, Routed)> {
        let (mut send, mut receive) = current.connection.open_bi(TrafficClass::Bulk).await?;
        let stream = send.id().0;
        let routed = current.routes.add(stream, Arc::clone(self) as Arc<dyn Route>);
        ask(&Request::Datagrams(target.clone()), &mut send, &mut receive).await?;
        self.lock().way = Some((current.connection.clone(), stream));
        Ok((send, receive, routed))
    }
}

impl Route for Near {
    fn take(self: Arc<Self>, number: u64, payload: &[u8]) {
        let address = {
            let mut state = self.lock();
            let address = state.addresses.get(&number).copied();
            if let Some(flow) = address.and_then(|address| state.flows.get_mut(&address)) {
                flow.last = Instant::now();
            }
            address
        };
        let Some(address) = address else { return self.counters.dropped(Dropped::NoFlow) };
        let socket = socket2::SockRef::from(&*self.socket);
        match socket.send_to(payload, &address.into()) {
            Ok(_) => self.counters.received(payload.len()),
            Err(_) => self.counters.dropped(Dropped::Failed),
        }
    }
}
