//! Takes an endpoint's connections one by one as they open.

use anabranch::{AcceptError, Connection, Endpoint};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

/// Accepts every permitted peer. A peer that vanishes during its handshake does not delay the
/// others.
pub(crate) struct Arrivals {
    endpoint: Endpoint,
    /// Handshakes under way; the endpoint bounds their number.
    opening: Mutex<JoinSet<Result<Connection, AcceptError>>>,
}

impl Arrivals {
    pub(crate) fn of(endpoint: &Endpoint) -> Self {
        Arrivals { endpoint: endpoint.clone(), opening: Mutex::default() }
    }

    /// The next open connection; `None` once the endpoint is closed. Dropping the future loses no connection.
    pub(crate) async fn next(&self) -> Option<Connection> {
        let mut opening = self.opening.lock().await;
        loop {
            tokio::select! {
                incoming = self.endpoint.accept() => {
                    opening.spawn(incoming?.accept());
                }
                Some(opened) = opening.join_next() => {
                    // A peer whose connection did not open asks again if it is still there.
                    if let Ok(Ok(connection)) = opened {
                        return Some(connection);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch::{Config, PathSpec, Permitted, SecretKey};
    use std::net::{Ipv4Addr, SocketAddr};
    use std::time::Duration;
    use tokio::net::UdpSocket;
    use tokio::time::timeout;

    fn endpoint(permitted: Permitted) -> Endpoint {
        let mut config = Config::new(SecretKey::generate().unwrap());
        config.permitted = permitted;
        Endpoint::bind(config, [SocketAddr::from((Ipv4Addr::LOCALHOST, 0))]).unwrap()
    }

    /// The first peer never receives the server's answer, because nothing is forwarded to it.
    #[tokio::test]
    async fn a_peer_that_does_not_go_on_holds_up_no_other() {
        let server = endpoint(Permitted::Anyone);
        let (remote, key) = (server.local_addrs()[0], server.public_key());
        let one_way = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let there = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let deaf = endpoint(Permitted::Nobody);
        let path = PathSpec { local: deaf.local_addrs()[0], remote: one_way.local_addr().unwrap() };
        let asking = tokio::spawn(async move { deaf.connect(key, [path]).await.map(drop) });
        let arrivals = Arrivals::of(&server);
        let (mut buffer, mut passed) = (vec![0; 1500], 0);
        while passed == 0 {
            let len = one_way.recv(&mut buffer).await.unwrap();
            passed = there.send_to(&buffer[..len], remote).await.unwrap();
        }
        let client = endpoint(Permitted::Nobody);
        let path = PathSpec { local: client.local_addrs()[0], remote };
        let ends = async { tokio::join!(client.connect(key, [path]), arrivals.next()) };
        let (near, far) = timeout(Duration::from_secs(20), ends).await.expect("it is held up");
        assert_eq!(far.unwrap().peer(), client.public_key());
        near.unwrap();
        assert!(!asking.is_finished(), "the first still waits for its answer");
        asking.abort();
        server.close(0, "");
        assert!(arrivals.next().await.is_none());
    }
}
