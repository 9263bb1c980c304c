//! The kernel's transports, for the workloads other than bulk.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

use socket2::SockRef;
use tokio::net::{TcpSocket, TcpStream};

use crate::traffic::{PORT, Traffic};
use crate::workload::Transport;

/// One side of the kernel's transport.
#[derive(Debug)]
pub struct Sockets {
    traffic: Traffic,
    /// The receiver's listening socket.
    listener: Option<tokio::net::TcpListener>,
}

impl Sockets {
    /// Prepares this side's namespace.
    ///
    /// # Errors
    /// When the namespace cannot be prepared, or listening fails.
    pub fn new(traffic: Traffic, sends: bool) -> Result<Self, String> {
        traffic.prepare()?;
        if sends {
            traffic.add_endpoints()?;
            return Ok(Sockets { traffic, listener: None });
        }
        let failed = |error: std::io::Error| format!("cannot listen: {error}");
        let socket = traffic.socket()?;
        socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT)).into()).map_err(failed)?;
        socket.listen(16).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let listener = tokio::net::TcpListener::from_std(TcpListener::from(socket));
        Ok(Sockets { traffic, listener: Some(listener.map_err(failed)?) })
    }
}

impl Transport for Sockets {
    type Stream = TcpStream;
    type Guard = ();

    async fn open(&self) -> Result<(TcpStream, ()), String> {
        let receiver = SocketAddr::from((Ipv4Addr::new(10, 77, self.traffic.path, 2), PORT));
        let failed = |error: std::io::Error| format!("{receiver}: {error}");
        let socket = self.traffic.socket()?;
        socket.set_nonblocking(true).map_err(failed)?;
        let connecting = TcpSocket::from_std_stream(socket.into()).connect(receiver);
        let stream = connecting.await.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        Ok((stream, ()))
    }

    async fn accept(&self) -> Result<(TcpStream, ()), String> {
        let listener = self.listener.as_ref().ok_or("the sender does not listen")?;
        let failed = |error: std::io::Error| format!("accept: {error}");
        let (stream, _) = listener.accept().await.map_err(failed)?;
        // Dropping the stream then resets it. Otherwise MPTCP would accept data for a while, and
        // nothing would tell the sender.
        SockRef::from(&stream).set_linger(Some(Duration::ZERO)).map_err(failed)?;
        Ok((stream, ()))
    }
}
