//! The near end: receives datagrams from local programs and sends them the answers.

use core::time::Duration;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use anabranch::TrafficClass;
use tokio::net::UdpSocket;
use tokio::time::{sleep, timeout};

use super::counts::DatagramCounters;
use super::opener::{Opener, Senders};
use super::{IDLE, PAUSE, SWEEPS, frame};
use crate::listen::{Link, RETRY, is_over};
use crate::serve::ForwardEvent;
use crate::target::{Target, UdpForward};

/// A local UDP socket whose datagrams lead beyond the peer.
#[derive(Debug)]
pub struct DatagramListener {
    socket: Arc<UdpSocket>,
    target: Target,
    class: TrafficClass,
    counters: DatagramCounters,
    /// Time after which a silent flow is forgotten.
    pub(super) idle: Duration,
}

/// Binds the local end of a forward for UDP.
///
/// # Errors
/// If its address cannot be resolved or bound.
pub async fn listen_for_datagrams(forward: &UdpForward) -> io::Result<DatagramListener> {
    let UdpForward { bind, target, class } = forward.clone();
    let socket = Arc::new(UdpSocket::bind((bind.host.as_str(), bind.port)).await?);
    let counters = DatagramCounters::default();
    Ok(DatagramListener { socket, target, class, counters, idle: IDLE })
}

impl DatagramListener {
    /// Where the listener receives datagrams.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Counters of the listener's datagrams.
    pub fn counters(&self) -> DatagramCounters {
        self.counters.clone()
    }

    /// Leads further datagrams to the target of `forward`.
    pub fn leading(self, forward: &UdpForward) -> Self {
        DatagramListener { target: forward.target.clone(), class: forward.class, ..self }
    }

    /// Carries datagrams over the link until `over` is ready, and returns the idle listener.
    pub async fn run_until(self, link: Link, over: impl Future<Output = ()>) -> Self {
        let senders = Addresses(Arc::clone(&self.socket));
        let opener = Arc::new(Opener::new(senders, self.counters.clone(), self.idle));
        tokio::select! {
            () = self.take_all(&opener) => {}
            () = stay_asked(&opener, &link, (&self.target, self.class)) => {}
            () = over => {}
        }
        self
    }

    /// Sends received datagrams to the peer; never returns.
    async fn take_all(&self, opener: &Opener<Addresses>) {
        let mut buffer = frame::buffer();
        loop {
            let received = self.socket.recv_from(frame::payload_of(&mut buffer));
            match timeout(self.idle / SWEEPS, received).await {
                Ok(Ok((len, from))) => opener.send(from, &mut buffer, len),
                Ok(Err(_)) => sleep(PAUSE).await,
                Err(_) => drop(opener.forget_idle()),
            }
        }
    }
}

/// Local programs that send to the socket, by their addresses.
struct Addresses(Arc<UdpSocket>);

impl Senders for Addresses {
    type Sender = SocketAddr;

    fn answer(&self, to: SocketAddr, payload: &[u8]) -> io::Result<()> {
        socket2::SockRef::from(&*self.0).send_to(payload, &to.into()).map(drop)
    }
}

/// Asks the peer of every connection of the link to carry datagrams, for ever. A repeated refusal is reported once.
async fn stay_asked(
    opener: &Arc<Opener<Addresses>>,
    link: &Link,
    (target, class): (&Target, TrafficClass),
) {
    let mut told = String::new();
    loop {
        let Some(current) = link.connected().await else { return };
        match opener.ask(&current, target, class).await {
            Ok((_send, mut receive, _routed)) => {
                told.clear();
                // Nothing more comes on this stream but its end, when the connection ends or the peer gives up.
                let _ = receive.read(&mut [0]).await;
                opener.end();
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
