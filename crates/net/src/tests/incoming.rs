//! Peers that ask for a connection, and how an application can answer them.

use super::*;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// A client that gives up soon.
fn hasty() -> Config {
    let mut config = config(1);
    config.schedule.give_up = Duration::from_secs(2);
    config
}

fn open_to_all() -> Config {
    Config { permitted: Permitted::Anyone, ..config(2) }
}

/// The client's attempt to connect, in a task.
fn connecting(pair: &Pair) -> tokio::task::JoinHandle<Result<Connection, ConnectError>> {
    let (client, paths, key) = (pair.client.clone(), pair.paths(), pair.server.public_key());
    tokio::spawn(async move { client.connect(key, paths).await })
}

async fn asked(pair: &Pair) -> Incoming {
    soon(pair.server.accept()).await.unwrap()
}

#[tokio::test]
async fn who_asks_is_known_before_it_is_answered() {
    let pair = Pair::new();
    let client = connecting(&pair);
    let incoming = asked(&pair).await;
    assert_eq!(incoming.peer(), pair.client.public_key());
    assert!(pair.client.local_addrs().contains(&incoming.remote_addr()));
    assert_eq!(incoming.local_addr(), Some(pair.server.local_addrs()[0]));
    assert!(!incoming.remote_addr_validated());
    // Copies over the other path, and later ones, do not make the peer ask twice.
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert!(!client.is_finished());
    let server = soon(incoming.accept()).await.unwrap();
    assert_eq!(server.peer(), pair.client.public_key());
    soon(client).await.unwrap().unwrap();
    assert!(pair.server.shared().next_incoming().is_none());
}

#[tokio::test]
async fn one_who_is_refused_is_told() {
    let pair = Pair::new();
    for drops in [false, true] {
        let client = connecting(&pair);
        let incoming = asked(&pair).await;
        if drops {
            drop(incoming);
        } else {
            incoming.refuse();
        }
        let client = soon(client).await.unwrap().unwrap();
        let reason = ended(&client).await;
        assert!(reason.by_peer && reason.reason == "the connection was refused", "{reason:?}");
    }
    soon(pair.server.wait_idle()).await;
}

#[tokio::test]
async fn one_who_is_ignored_hears_nothing() {
    let pair = Pair::with(hasty(), open_to_all());
    let client = connecting(&pair);
    asked(&pair).await.ignore();
    let unanswered = soon(client).await.unwrap();
    assert_eq!(unanswered.unwrap_err(), ConnectError::NoAnswer);
    assert!(pair.server.shared().next_incoming().is_none(), "its copies ask for nothing");
    soon(pair.server.wait_idle()).await;
}

#[tokio::test]
async fn one_who_has_shown_his_address_asks_anew() {
    let pair = Pair::new();
    let client = connecting(&pair);
    asked(&pair).await.retry().unwrap();
    let again = asked(&pair).await;
    assert!(again.remote_addr_validated());
    assert_eq!(pair.client.times_busy(), 1);
    let error = again.retry().unwrap_err();
    assert!(error.to_string().contains("accept or refuse"), "{error}");
    let server = soon(error.into_incoming().accept()).await.unwrap();
    let client = soon(client).await.unwrap().unwrap();
    client.send_datagram(b"here", TrafficClass::Interactive).await.unwrap();
    assert_eq!(soon(server.recv_datagram()).await.unwrap(), b"here");
}

#[tokio::test]
async fn a_connection_is_accepted_with_limits_of_its_own() {
    let pair = Pair::new();
    let client = connecting(&pair);
    let incoming = asked(&pair).await;
    let mut config = incoming.config();
    config.profile = Profile::named("uncoded").unwrap();
    config.transport.streams.max_streams = 1;
    // These packets are longer than the endpoint's buffers.
    config.transport.mtu_limit = Some(9000);
    let server = soon(incoming.accept_with(config)).await.unwrap();
    let client = soon(client).await.unwrap().unwrap();
    let data = pattern(300_000);
    let mut first = client.open_uni(TrafficClass::Bulk).await.unwrap();
    let second = client.open_uni(TrafficClass::Bulk);
    let mut second = pin!(second);
    assert!(second.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let writing = async {
        first.write_all(&data).await.unwrap();
        first.finish().unwrap();
    };
    let reading = async { server.accept_uni().await.unwrap().read_to_end(data.len()).await };
    let ((), read) = soon(async { tokio::join!(writing, reading) }).await;
    assert!(read.unwrap() == data);
    soon(second).await.unwrap();
    let longest = server.stats().unwrap().paths.iter().map(|path| path.mtu).max();
    assert!(longest.unwrap() <= 1500, "{longest:?}");
}

#[tokio::test]
async fn accepting_can_be_given_up() {
    let pair = Pair::new();
    let client = connecting(&pair);
    let incoming = asked(&pair).await;
    {
        let mut accepting = pin!(incoming.accept());
        let cx = &mut Context::from_waker(Waker::noop());
        assert!(matches!(accepting.as_mut().poll(cx), Poll::Pending));
    }
    let client = soon(client).await.unwrap().unwrap();
    assert!(ended(&client).await.by_peer);
    soon(pair.server.wait_idle()).await;
}

#[tokio::test]
async fn those_who_wait_are_told_when_the_endpoint_closes_or_goes() {
    for goes in [false, true] {
        let pair = Pair::new();
        let client = connecting(&pair);
        let shared = Arc::clone(pair.server.shared());
        soon(async {
            while shared.lock().incoming.is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        let Pair { server, client: _dialler } = pair;
        if !goes {
            server.close(0, "");
            assert!(soon(server.accept()).await.is_none());
        }
        drop(server);
        let client = soon(client).await.unwrap().unwrap();
        assert_eq!(ended(&client).await.reason, "the endpoint accepts no more connections");
    }
}

#[tokio::test]
async fn one_who_waits_no_more_cannot_be_accepted() {
    let pair = Pair::new();
    let client = connecting(&pair);
    let incoming = asked(&pair).await;
    // Time passes as if the peer had waited for too long.
    let shared = pair.server.shared();
    shared.lock().router.handle_timeout(shared.clock.now() + Duration::from_secs(40));
    let gone = soon(incoming.accept()).await.unwrap_err();
    assert_eq!(gone, AcceptError::Refused(AcceptRefused::Gone));
    assert!(gone.to_string().contains("ask again"), "{gone}");
    // The peer still tries, and asks again.
    let server = soon(accepted(&pair.server)).await;
    soon(client).await.unwrap().unwrap();
    drop(server);
}

/// Forty programs of one machine ask an application that accepts and refuses nobody. They get the
/// 16 places of one address and no more, and a peer from another address is still heard.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_that_nobody_decides_on_is_bounded() {
    let server = Endpoint::bind(open_to_all(), [local(1)]).unwrap();
    let (remote, key) = (server.local_addrs()[0], server.public_key());
    let mut crowd = tokio::task::JoinSet::new();
    for number in 0..40_u8 {
        crowd.spawn(async move {
            let client = Endpoint::bind(config(100 + number), [local(9)]).unwrap();
            let path = PathSpec { local: client.local_addrs()[0], remote };
            client.connect(key, [path]).await.map(drop)
        });
    }
    // Waits longer than the 2 s for which a waiting peer cannot be replaced.
    for _ in 0..60 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(server.shared().lock().incoming.len() <= 16);
    }
    assert_eq!(server.shared().lock().incoming.len(), 16);
    let client = Endpoint::bind(config(1), [local(2)]).unwrap();
    let path = PathSpec { local: client.local_addrs()[0], remote };
    let near = tokio::spawn(async move {
        let connection = client.connect(key, [path]).await;
        (connection, client)
    });
    let far = soon(async {
        loop {
            let incoming = server.accept().await.unwrap();
            if incoming.remote_addr().ip() == local(2).ip() {
                return incoming.await.unwrap();
            }
            incoming.ignore();
        }
    })
    .await;
    let (near, client) = soon(near).await.unwrap();
    assert_eq!(far.peer(), client.public_key());
    near.unwrap();
    crowd.abort_all();
}
