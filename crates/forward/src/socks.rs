//! SOCKS5 (RFC 1928) without authentication: each client says where its connection (CONNECT, ssh's `-D`) or each of its
//! datagrams (UDP ASSOCIATE) leads. Names are left to the peer to resolve, as it does for other forwards.

mod associate;
#[cfg(any(test, feature = "testing"))]
pub mod fuzzing;
pub mod message;
#[cfg(test)]
mod tests;

use core::time::Duration;
use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::acceptor::Carried;
use super::listen::Link;
use super::place::Place;
use super::serve::ForwardEvent;
use super::udp::Relay;
use message::{Asked, MAX_MESSAGE, Reply, SocksError, Step, WELCOME, greeting, request};

/// Time for a client to say where it wants to be connected to.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Time for a refused client to read why, and to close.
const FAREWELL: Duration = Duration::from_secs(1);

/// Why a handshake gave no request.
#[derive(Debug, thiserror::Error)]
enum HandshakeError {
    #[error(transparent)]
    Client(#[from] SocksError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads the request of a client that was accepted at `bind`, and carries its connection or its
/// datagrams.
pub(super) async fn take(link: Link, relay: Arc<Relay>, bind: Place, mut tcp: TcpStream) {
    let target = match tokio::time::timeout(HANDSHAKE, handshake(&mut tcp)).await {
        Ok(Ok(Asked::Connect(target))) => Place::Port(target),
        Ok(Ok(Asked::Associate(said))) => {
            return associate::take((relay, &link), bind, tcp, said).await;
        }
        Ok(Err(HandshakeError::Client(error))) => {
            link.tell(ForwardEvent::Failed(bind, error.to_string()));
            return refuse(tcp, &error.answer()).await;
        }
        // The client has gone, so there is nobody to answer.
        Ok(Err(HandshakeError::Io(_))) => return,
        Err(_) => {
            let seconds = HANDSHAKE.as_secs();
            let why = format!("a client did not say within {seconds} s where it wants to connect");
            return link.tell(ForwardEvent::Failed(bind, why));
        }
    };
    match link.open(&target).await {
        Ok(stream) => match tcp.write_all(&Reply::Succeeded.encode()).await {
            Ok(()) => link.carry_over(target, Carried::Tcp(tcp), stream).await,
            Err(error) => link.tell(ForwardEvent::Failed(target, error.to_string())),
        },
        Err(error) => {
            link.tell(ForwardEvent::Failed(target, error.to_string()));
            refuse(tcp, &Reply::to_failed(&error).encode()).await;
        }
    }
}

/// Reads the client's greeting, answers it, and reads its request; not a byte more.
async fn handshake(tcp: &mut TcpStream) -> Result<Asked, HandshakeError> {
    read(tcp, greeting).await?;
    tcp.write_all(&WELCOME).await?;
    read(tcp, request).await
}

/// Reads one message.
async fn read<T>(
    tcp: &mut TcpStream,
    parse: impl Fn(&[u8]) -> Result<Step<T>, SocksError>,
) -> Result<T, HandshakeError> {
    let mut buffer = [0; MAX_MESSAGE];
    let mut len = 0;
    loop {
        match parse(buffer.get(..len).unwrap_or_default())? {
            Step::Done(message) => return Ok(message),
            Step::More(count) => {
                // The buffer holds the longest message: `crates/forward/src/socks/tests.rs`.
                tcp.read_exact(buffer.get_mut(len..len + count).unwrap_or_default()).await?;
                len += count;
            }
        }
    }
}

/// Sends `answer`, and closes once the client has closed: closing on bytes that were not read would reset the
/// connection, and the client might not see the answer.
async fn refuse(mut tcp: TcpStream, answer: &[u8]) {
    let ending = async {
        tcp.write_all(answer).await?;
        tcp.shutdown().await?;
        while tcp.read(&mut [0; 512]).await? > 0 {}
        io::Result::Ok(())
    };
    // The connection ends here, whether the client has read the answer or not.
    let _ = tokio::time::timeout(FAREWELL, ending).await;
}
