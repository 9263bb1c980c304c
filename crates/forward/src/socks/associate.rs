//! UDP ASSOCIATE (RFC 1928 §4 and §7): a UDP socket for one client, for as long as its TCP connection lasts.

use core::time::Duration;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::sleep;

use super::message::{Reply, datagram};
use super::refuse;
use crate::place::Place;
use crate::serve::ForwardEvent;
use crate::udp::{Associated, MAX_ASSOCIATIONS, PAUSE, Relay, buffer, payload_of};

/// Silence after which keepalive probes ask whether the client is still there.
const SILENCE: Duration = Duration::from_secs(60);
/// Pause between two probes.
const AGAIN: Duration = Duration::from_secs(15);

/// Carries the datagrams of a client that was accepted at `bind`, until its TCP connection ends. `said` is where it says
/// that it sends from.
pub(super) async fn take(
    (relay, link): (Arc<Relay>, &super::Link),
    bind: Place,
    mut tcp: TcpStream,
    said: Option<SocketAddr>,
) {
    let Some(associated) = relay.associate() else {
        let why = format!(
            "a client asks for a UDP association, and there are {MAX_ASSOCIATIONS} already: have it end some"
        );
        link.tell(ForwardEvent::Failed(bind, why));
        return refuse(tcp, &Reply::Failure.encode()).await;
    };
    let (socket, peer) = match opened(&tcp).await {
        Ok(opened) => opened,
        Err(error) => {
            link.tell(ForwardEvent::Failed(bind, format!("no UDP socket for a client: {error}")));
            return refuse(tcp, &Reply::to_failed(&error).encode()).await;
        }
    };
    let Ok(local) = socket.local_addr() else { return };
    // If the reply cannot be sent, the client has gone.
    if tcp.write_all(&Reply::Succeeded.encode_with(local)).await.is_ok() {
        let client = Client { associated, socket, peer, from: port(said, peer) };
        tokio::select! {
            () = client.carry() => {}
            () = ended(&mut tcp) => {}
        }
    }
}

/// A socket at the address that the client has connected to, and the client's address.
async fn opened(tcp: &TcpStream) -> io::Result<(Arc<UdpSocket>, IpAddr)> {
    let mut local = tcp.local_addr()?;
    local.set_port(0);
    if local.ip().to_canonical().is_ipv4() {
        local = SocketAddr::new(local.ip().to_canonical(), 0);
    }
    // Keepalive ends the association of a client that has vanished. Without it, everything else still works.
    let keepalive = TcpKeepalive::new().with_time(SILENCE).with_interval(AGAIN);
    let _ = SockRef::from(tcp).set_tcp_keepalive(&keepalive);
    Ok((Arc::new(UdpSocket::bind(local).await?), tcp.peer_addr()?.ip().to_canonical()))
}

/// The port that a client announced, if the address with it is unspecified or the client's own. A client behind a NAT
/// announces another address, and its port need not be the one that arrives here either.
fn port(said: Option<SocketAddr>, peer: IpAddr) -> Option<u16> {
    let said = said.filter(|said| {
        let ip = said.ip().to_canonical();
        ip.is_unspecified() || ip == peer
    });
    said.map(|said| said.port()).filter(|port| *port != 0)
}

/// Waits until the client ends its TCP connection. What it sends there is ignored.
async fn ended(tcp: &mut TcpStream) {
    while tcp.read(&mut [0; 512]).await.is_ok_and(|count| count > 0) {}
}

/// A client with its association.
struct Client {
    associated: Associated,
    socket: Arc<UdpSocket>,
    /// The only address that may use the association.
    peer: IpAddr,
    /// The port that it sends from: as it says, else that of its first datagram.
    from: Option<u16>,
}

impl Client {
    /// Passes on what the client sends; never returns.
    async fn carry(mut self) {
        let mut buffer = buffer();
        loop {
            match self.socket.recv_from(payload_of(&mut buffer)).await {
                Ok((len, from)) if self.is_own(from) => self.pass_on(from, &mut buffer, len),
                Ok(_) => self.associated.invalid(),
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    fn is_own(&self, from: SocketAddr) -> bool {
        from.ip().to_canonical() == self.peer && self.from.is_none_or(|port| port == from.port())
    }

    fn pass_on(&mut self, from: SocketAddr, buffer: &mut [u8], len: usize) {
        let received = payload_of(buffer).get(..len).unwrap_or_default();
        let Ok((target, payload)) = datagram(received) else { return self.associated.invalid() };
        let (head, len) = (len - payload.len(), payload.len());
        self.from = Some(from.port());
        self.associated.belongs_to(from, &self.socket);
        // Cutting off the client's header leaves the payload at the offset that a [`buffer`] reserves.
        self.associated.send(target, (buffer.get_mut(head..).unwrap_or_default(), len));
    }
}
