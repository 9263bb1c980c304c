use crate::*;
use anabranch_types::Rng;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::time::timeout;

mod ids;
mod incoming;
mod many;
mod memory;
mod streams;

fn config(key: u8) -> Config {
    Config::new(SecretKey::from_bytes([key; 32]))
}

fn local(last: u8) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, last], 0))
}

/// A server on one address, a client on two.
pub(crate) struct Pair {
    pub(crate) server: Endpoint,
    pub(crate) client: Endpoint,
}

impl Pair {
    fn new() -> Self {
        Pair::with(config(1), Config { permitted: Permitted::Anyone, ..config(2) })
    }

    pub(crate) fn with(client: Config, server: Config) -> Self {
        let server = Endpoint::bind(server, [local(1)]).unwrap();
        let client = Endpoint::bind(client, [local(1), local(2)]).unwrap();
        Pair { server, client }
    }

    fn paths(&self) -> Vec<PathSpec> {
        let remote = self.server.local_addrs()[0];
        self.client.local_addrs().iter().map(|local| PathSpec { local: *local, remote }).collect()
    }

    pub(crate) async fn connect(&self) -> (Connection, Connection) {
        let (paths, key) = (self.paths(), self.server.public_key());
        let (client, server) =
            tokio::join!(self.client.connect(key, &paths[..]), accepted(&self.server));
        (client.unwrap(), server)
    }
}

/// Accepts the next connection.
pub(crate) async fn accepted(server: &Endpoint) -> Connection {
    server.accept().await.unwrap().await.unwrap()
}

/// Fails a test that hangs, long after any machine would have finished it.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(60), future).await.expect("the test hangs")
}

/// Waits for the end of a connection that either side has closed; returns the reason.
async fn ended(connection: &Connection) -> CloseReason {
    match soon(connection.closed()).await {
        ConnectionError::Closed(reason) => reason,
        stopped => panic!("{stopped}"),
    }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect()
}

#[tokio::test]
async fn bytes_cross_both_ways() {
    let pair = Pair::new();
    let (client, server) = soon(pair.connect()).await;
    assert_eq!(client.peer(), pair.server.public_key());
    assert_eq!(server.peer(), pair.client.public_key());
    let (mut to_server, mut from_server) = client.open_bi(TrafficClass::Bulk).await.unwrap();
    let data = pattern(3_000_000);
    let echo = tokio::spawn(async move {
        let (mut send, mut receive) = server.accept_bi().await.unwrap();
        let count = tokio::io::copy(&mut receive, &mut send).await.unwrap();
        send.finish().unwrap();
        send.acked().await.unwrap();
        // The connection lives on, so that the client hears its own bytes acknowledged.
        (count, server)
    });
    let (written, read) = soon(async {
        tokio::join!(
            async {
                to_server.write_all(&data).await?;
                to_server.finish()?;
                to_server.acked().await
            },
            from_server.read_to_end(data.len())
        )
    })
    .await;
    written.unwrap();
    assert!(read.unwrap() == data);
    assert_eq!(soon(echo).await.unwrap().0, data.len() as u64);
    let stats = client.stats().unwrap();
    assert_eq!(stats.paths.len(), 2);
}

#[tokio::test]
async fn an_accepted_stream_can_be_given_a_class() {
    let pair = Pair::new();
    let (client, server) = soon(pair.connect()).await;
    let (mut send, mut receive) = client.open_bi(TrafficClass::Bulk).await.unwrap();
    send.finish().unwrap();
    let (mut answer, mut rest) = soon(server.accept_bi()).await.unwrap();
    answer.set_class(TrafficClass::Interactive).unwrap();
    answer.write_all(b"now").await.unwrap();
    answer.set_class(TrafficClass::Live).unwrap();
    answer.finish().unwrap();
    assert_eq!(soon(receive.read_to_end(3)).await.unwrap(), b"now");
    soon(rest.read_to_end(0)).await.unwrap();
    soon(answer.acked()).await.unwrap();
    assert!(answer.set_class(TrafficClass::Bulk).is_err(), "both halves have ended");
}

#[tokio::test]
async fn both_paths_carry_packets() {
    let pair = Pair::new();
    let (client, server) = soon(pair.connect()).await;
    let (mut send, _receive) = client.open_bi(TrafficClass::Bulk).await.unwrap();
    let reader = tokio::spawn(async move {
        let (_send, mut receive) = server.accept_bi().await.unwrap();
        (receive.read_to_end(2_000_000).await.unwrap().len(), server)
    });
    soon(send.write_all(&pattern(2_000_000))).await.unwrap();
    send.finish().unwrap();
    let (count, _server) = soon(reader).await.unwrap();
    assert_eq!(count, 2_000_000);
    for path in client.stats().unwrap().paths {
        assert!(path.counters.sent_packets > 0, "{path:?}");
    }
}

/// Forwards between the last sender and `server`. Loses datagrams at random, and all of them once
/// `dead` is set.
async fn lossy_relay(server: SocketAddr, loss: f64, dead: Arc<AtomicBool>) -> SocketAddr {
    let (near, far) = (UdpSocket::bind(local(1)).await, UdpSocket::bind(local(1)).await);
    let (near, far) = (near.unwrap(), far.unwrap());
    let address = near.local_addr().unwrap();
    let mut rng = Rng::substream(3, &address.port().to_string());
    tokio::spawn(async move {
        let (mut there, mut back) = ([0; 2000], [0; 2000]);
        let mut client = None;
        loop {
            let (from, bytes) = tokio::select! {
                Ok((len, from)) = near.recv_from(&mut there) => (Some(from), &there[..len]),
                Ok((len, _)) = far.recv_from(&mut back) => (None, &back[..len]),
            };
            client = from.or(client);
            if dead.load(Ordering::Relaxed) || rng.chance(loss) {
                continue;
            }
            match (from, client) {
                (Some(_), _) => far.send_to(bytes, server).await.unwrap(),
                (None, Some(client)) => near.send_to(bytes, client).await.unwrap(),
                (None, None) => continue,
            };
        }
    });
    address
}

#[tokio::test]
async fn a_transfer_survives_losses_and_the_death_of_a_path() {
    for name in ["anabranch", "mplot", "mtcp", "ptcp", "uncoded"] {
        let profile = Profile::named(name).unwrap();
        let pair = Pair::new();
        let [dead, alive] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let server = pair.server.local_addrs()[0];
        let mut paths = pair.paths();
        paths[0].remote = lossy_relay(server, 0.05, Arc::clone(&dead)).await;
        paths[1].remote = lossy_relay(server, 0.1, alive).await;
        let key = pair.server.public_key();
        let (client, server) = soon(async {
            tokio::join!(pair.client.connect_with(key, &paths[..], profile), accepted(&pair.server))
        })
        .await;
        let client = client.unwrap();
        let (mut send, _receive) = client.open_bi(TrafficClass::Bulk).await.unwrap();
        let data = pattern(600_000);
        let expected = data.clone();
        let reader = tokio::spawn(async move {
            let (_send, mut receive) = server.accept_bi().await.unwrap();
            (receive.read_to_end(600_000).await.unwrap() == expected, server)
        });
        soon(send.write_all(&data[..300_000])).await.unwrap();
        dead.store(true, Ordering::Relaxed);
        soon(send.write_all(&data[300_000..])).await.unwrap();
        send.finish().unwrap();
        soon(send.acked()).await.unwrap();
        assert!(soon(reader).await.unwrap().0, "{name}");
    }
}

#[tokio::test]
async fn packets_grow_to_what_the_paths_carry() {
    let pair = Pair::new();
    let (client, server) = soon(pair.connect()).await;
    assert!(client.stats().unwrap().paths.iter().all(|path| path.mtu == 1260));
    let (mut to_server, _from_server) = client.open_bi(TrafficClass::Bulk).await.unwrap();
    let reader = tokio::spawn(async move {
        let (_to_client, mut receive) = server.accept_bi().await.unwrap();
        tokio::io::copy(&mut receive, &mut tokio::io::sink()).await
    });
    let data = pattern(100_000);
    // Loopback carries 65 536 bytes, so that the configured limit decides.
    soon(async {
        while client.stats().unwrap().paths.iter().any(|path| path.mtu != 1500) {
            to_server.write_all(&data).await.unwrap();
        }
    })
    .await;
    to_server.finish().unwrap();
    soon(reader).await.unwrap().unwrap();
}

#[tokio::test]
async fn datagrams_cross() {
    let pair = Pair::new();
    let (client, server) = soon(pair.connect()).await;
    for class in [TrafficClass::Live, TrafficClass::Interactive] {
        soon(client.send_datagram(b"ping", class)).await.unwrap();
        assert_eq!(soon(server.recv_datagram()).await.unwrap(), b"ping");
        server.try_send_datagram(b"pong", class).unwrap();
        assert_eq!(soon(client.recv_datagram()).await.unwrap(), b"pong");
    }
    let long = client.try_send_datagram(&[0; 2000], TrafficClass::Live);
    assert_eq!(long, Err(DatagramError::TooLong));
}

#[tokio::test]
async fn closing_tells_the_peer_why() {
    let pair = Pair::new();
    let (client, server) = soon(pair.connect()).await;
    let (mut send, _receive) = client.open_bi(TrafficClass::Bulk).await.unwrap();
    soon(send.write_all(b"x")).await.unwrap();
    let (_send, mut receive) = soon(server.accept_bi()).await.unwrap();
    client.close(300, "enough");
    let reason = ended(&server).await;
    assert_eq!((reason.code, reason.by_peer), (CloseCode(300), true));
    assert_eq!(reason.reason, "enough");
    let own = ended(&client).await;
    assert_eq!((own.code, own.by_peer), (CloseCode(300), false));
    let mut byte = [0; 8];
    assert_eq!(soon(receive.read(&mut byte)).await.unwrap(), Some(1), "what arrived can be read");
    let error = soon(receive.read(&mut byte)).await.unwrap_err();
    assert!(error.to_string().contains("enough"), "{error}");
    assert_eq!(std::io::Error::from(error).kind(), std::io::ErrorKind::ConnectionReset);
    assert!(soon(send.write_all(b"x")).await.is_err());
    assert!(soon(client.open_bi(TrafficClass::Bulk)).await.is_err());
    assert!(client.stats().is_some());
    soon(pair.server.wait_idle()).await;
    soon(pair.client.wait_idle()).await;
}

#[tokio::test]
async fn what_arrived_before_the_close_can_be_read_long_after() {
    let pair = Pair::new();
    let (client, server) = soon(pair.connect()).await;
    let (mut send, _receive) = client.open_bi(TrafficClass::Bulk).await.unwrap();
    soon(send.write_all(&pattern(100_000))).await.unwrap();
    send.finish().unwrap();
    soon(send.acked()).await.unwrap();
    drop((send, _receive));
    drop(client);
    assert!(ended(&server).await.by_peer);
    soon(pair.server.wait_idle()).await;
    let (_send, mut receive) = soon(server.accept_bi()).await.unwrap();
    assert!(soon(receive.read_to_end(100_000)).await.unwrap() == pattern(100_000));
}

#[tokio::test]
async fn strangers_are_not_answered() {
    let schedule = Schedule { give_up: Duration::from_millis(600), ..Schedule::default() };
    let client = Config { schedule, ..config(1) };
    let only = Permitted::Only([SecretKey::from_bytes([7; 32]).public_key()].into());
    let pair = Pair::with(client, Config { permitted: only, ..config(2) });
    let key = pair.server.public_key();
    let refused = soon(pair.client.connect(key, pair.paths())).await;
    assert_eq!(refused.unwrap_err(), ConnectError::NoAnswer);
    pair.server.set_permitted(Permitted::Anyone);
    soon(pair.connect()).await;
}

#[tokio::test]
async fn wrong_paths_are_refused_at_once() {
    let pair = Pair::new();
    let key = pair.server.public_key();
    let elsewhere = PathSpec { local: local(99), remote: pair.server.local_addrs()[0] };
    let refused = soon(pair.client.connect(key, [elsewhere])).await;
    assert_eq!(refused.unwrap_err(), ConnectError::NoSocket(local(99)));
    let refused = soon(pair.client.connect(key, [])).await;
    assert!(matches!(refused, Err(ConnectError::Refused(_))));
}

#[tokio::test]
async fn paths_join_a_connection_on_sockets_bound_later() {
    let pair = Pair::new();
    let key = pair.server.public_key();
    let first = [pair.paths()[0]];
    let (client, server) =
        soon(async { tokio::join!(pair.client.connect(key, &first[..]), accepted(&pair.server)) })
            .await;
    let client = client.unwrap();
    let later = pair.client.add_socket(local(3)).unwrap();
    let path = PathSpec { local: later, remote: first[0].remote };
    let id = client.add_path(path).unwrap();
    assert!(server.add_path(path).is_err(), "only the initiator adds paths");
    client.set_congestion(id, &"reno".parse().unwrap()).unwrap();
    let unknown = client.set_congestion(id, &"warp".parse().unwrap()).unwrap_err();
    assert!(unknown.to_string().contains("cubic"), "{unknown}");
    let (mut send, _receive) = client.open_bi(TrafficClass::Bulk).await.unwrap();
    soon(send.write_all(b"hello")).await.unwrap();
    let (_send, mut receive) = soon(server.accept_bi()).await.unwrap();
    soon(receive.read_exact(&mut [0; 5])).await.unwrap();
    let paths = client.stats().unwrap().paths;
    let reno = paths.iter().filter(|path| path.phase == "slow-start").map(|path| path.id);
    assert_eq!(reno.collect::<Vec<_>>(), [id], "of this path alone");
    let added = paths.into_iter().find(|path| path.id == id).unwrap();
    assert_eq!(client.local_addr(added.address.socket), Some(later));
}

#[tokio::test]
async fn a_wildcard_server_answers_from_the_address_that_was_asked() {
    let any = SocketAddr::from(([0, 0, 0, 0], 0));
    let server = Config { permitted: Permitted::Anyone, ..config(2) };
    let server = Endpoint::bind(server, [any]).unwrap();
    let client = Endpoint::bind(config(1), [any]).unwrap();
    let port = server.local_addrs()[0].port();
    let paths: Vec<_> = [5, 6]
        .map(|last| PathSpec { local: any, remote: SocketAddr::from(([127, 0, 0, last], port)) })
        .into();
    let key = server.public_key();
    let (connection, accepted) =
        soon(async { tokio::join!(client.connect(key, &paths[..]), accepted(&server)) }).await;
    let connection = connection.unwrap();
    soon(connection.send_datagram(b"hello", TrafficClass::Interactive)).await.unwrap();
    assert_eq!(soon(accepted.recv_datagram()).await.unwrap(), b"hello");
}

#[tokio::test]
async fn many_streams_end_independently() {
    let pair = Pair::new();
    let (client, server) = soon(pair.connect()).await;
    let serving = tokio::spawn(async move {
        while let Ok((mut send, mut receive)) = server.accept_bi().await {
            tokio::spawn(async move {
                tokio::io::copy(&mut receive, &mut send).await.unwrap();
                send.finish().unwrap();
                send.acked().await
            });
        }
    });
    let mut tasks = tokio::task::JoinSet::new();
    // This is more than the peer allows at a time.
    for number in 0..250_usize {
        let client = client.clone();
        tasks.spawn(async move {
            let (mut send, mut receive) = client.open_bi(TrafficClass::Bulk).await.unwrap();
            let data = pattern(number * 37);
            send.write_all(&data).await.unwrap();
            send.finish().unwrap();
            assert!(receive.read_to_end(data.len()).await.unwrap() == data);
        });
    }
    while let Some(result) = soon(tasks.join_next()).await {
        result.unwrap();
    }
    client.close(0, "");
    soon(serving).await.unwrap();
}

#[tokio::test]
async fn resets_and_stops_reach_the_other_half() {
    let pair = Pair::new();
    let (client, server) = soon(pair.connect()).await;
    let (mut send, mut receive) = client.open_bi(TrafficClass::Bulk).await.unwrap();
    soon(send.write_all(b"x")).await.unwrap();
    let (mut server_send, mut server_receive) = soon(server.accept_bi()).await.unwrap();
    soon(server_receive.read_exact(&mut [0])).await.unwrap();
    server_send.reset(77);
    assert_eq!(soon(receive.read(&mut [0])).await, Err(ReadError::Reset(77)));
    server_receive.stop(78);
    let error = soon(async {
        loop {
            if let Err(error) = send.write_all(&[0; 10_000]).await {
                return error;
            }
        }
    })
    .await;
    assert_eq!(error, WriteError::Stopped(78));
    assert_eq!(std::io::Error::from(error).kind(), std::io::ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn dropping_everything_ends_the_driver() {
    let pair = Pair::new();
    let (client, server) = soon(pair.connect()).await;
    let port = pair.server.local_addrs()[0];
    drop((client, server, pair));
    soon(async {
        // The socket is closed when the task has ended.
        while tokio::net::UdpSocket::bind(port).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn closing_the_endpoint_ends_accepting_and_all_connections() {
    let pair = Pair::new();
    let (client, server) = soon(pair.connect()).await;
    pair.server.close(256, "maintenance");
    assert!(soon(pair.server.accept()).await.is_none());
    assert_eq!(ended(&client).await.reason, "maintenance");
    assert!(!ended(&server).await.by_peer);
    soon(pair.server.wait_idle()).await;
}
