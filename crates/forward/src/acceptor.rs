//! Listeners and connections, of TCP or of Unix sockets.

use core::time::Duration;
use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpStream, UnixStream};

use super::place::{Address, Place};
use super::socket::{SocketListener, dial};
use super::splice::splice_until;
use anabranch::{RecvStream, SendStream};

/// Time for a target to accept a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// Where connections are accepted.
#[derive(Debug)]
pub(super) enum Acceptor {
    Port(TcpListener),
    Socket(SocketListener),
}

impl Acceptor {
    pub(super) async fn bind(address: &Address) -> io::Result<Self> {
        match address {
            Address::Port(address) => TcpListener::bind(address).await.map(Acceptor::Port),
            Address::Socket(path) => SocketListener::bind(path).await.map(Acceptor::Socket),
        }
    }

    /// Listens at a place of this side's own choice.
    pub(super) async fn bind_at(place: &Place) -> io::Result<Self> {
        match place {
            Place::Port(bind) => {
                let listener = TcpListener::bind((bind.host.as_str(), bind.port)).await?;
                Ok(Acceptor::Port(listener))
            }
            Place::Socket(path) => Acceptor::bind(&Address::Socket(path.absolute())).await,
        }
    }

    pub(super) fn local(&self) -> io::Result<Address> {
        Ok(match self {
            Acceptor::Port(listener) => Address::Port(listener.local_addr()?),
            Acceptor::Socket(listener) => Address::Socket(listener.path().to_owned()),
        })
    }

    pub(super) async fn accept(&self) -> io::Result<Carried> {
        match self {
            Acceptor::Port(listener) => listener.accept().await.map(|(tcp, _)| Carried::Tcp(tcp)),
            Acceptor::Socket(listener) => listener.accept().await.map(Carried::Unix),
        }
    }
}

/// A connection that is carried.
#[derive(Debug)]
pub(super) enum Carried {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Carried {
    /// Connects to an address that was found and permitted.
    pub(super) async fn dial(address: &Address) -> io::Result<Self> {
        within(address, async {
            match address {
                Address::Port(address) => TcpStream::connect(address).await.map(Carried::Tcp),
                Address::Socket(path) => dial(path).await.map(Carried::Unix),
            }
        })
        .await
    }

    /// Connects to a place of this side's own choice.
    pub(super) async fn dial_to(place: &Place) -> io::Result<Self> {
        match place {
            Place::Port(target) => {
                let to = (target.host.as_str(), target.port);
                within(place, async { TcpStream::connect(to).await.map(Carried::Tcp) }).await
            }
            Place::Socket(path) => Carried::dial(&Address::Socket(path.absolute())).await,
        }
    }

    /// Carries the connection over a stream until both directions have ended or `over` is ready. After an error, a TCP
    /// connection is reset; a Unix socket can only be closed.
    pub(super) async fn splice(
        self,
        stream: (SendStream, RecvStream),
        over: impl Future<Output = io::Error>,
    ) -> io::Result<(u64, u64)> {
        match self {
            Carried::Tcp(mut tcp) => {
                // Small messages must not wait for one another. Without the option the connection still works.
                let _ = tcp.set_nodelay(true);
                let outcome = splice_until(tcp.split(), stream, over).await;
                if outcome.is_err() {
                    Carried::Tcp(tcp).refuse();
                }
                outcome
            }
            Carried::Unix(mut unix) => splice_until(unix.split(), stream, over).await,
        }
    }

    /// Ends the connection: with a reset for TCP, as if nobody listened. A Unix socket can only be
    /// closed.
    pub(super) fn refuse(self) {
        if let Carried::Tcp(tcp) = self {
            // Closing with no time to linger sends a reset.
            let _ = socket2::SockRef::from(&tcp).set_linger(Some(Duration::ZERO));
        }
    }
}

async fn within(
    place: impl core::fmt::Display,
    dialling: impl Future<Output = io::Result<Carried>>,
) -> io::Result<Carried> {
    match tokio::time::timeout(CONNECT, dialling).await {
        Ok(dialled) => dialled,
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, format!("{place} did not answer"))),
    }
}

impl From<SocketAddr> for Place {
    fn from(address: SocketAddr) -> Self {
        Place::Port(address.into())
    }
}
