//! Several connections of one endpoint, and which tasks an event wakes.

use super::*;
use std::pin::pin;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc;
use std::task::{Context, Wake, Waker};

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Sends `len` bytes and reads them back.
pub(super) async fn echo(client: &Connection, server: &Connection, len: usize) {
    let data = pattern(len);
    let there = async {
        let (mut send, mut receive) = client.open_bi(TrafficClass::Bulk).await.unwrap();
        let write = async {
            send.write_all(&data).await.unwrap();
            send.finish().unwrap();
        };
        let ((), back) = tokio::join!(write, receive.read_to_end(len));
        assert!(back.unwrap() == data);
    };
    let back = async {
        let (mut send, mut receive) = server.accept_bi().await.unwrap();
        tokio::io::copy(&mut receive, &mut send).await.unwrap();
        send.finish().unwrap();
        send.acked().await.unwrap();
    };
    tokio::join!(there, back);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_connections_share_the_sockets_and_keep_their_bytes_apart() {
    let pair = Pair::new();
    let mut echoes = tokio::task::JoinSet::new();
    for number in 0..40 {
        let (client, server) = soon(pair.connect()).await;
        echoes.spawn(async move { echo(&client, &server, 100_000 + 1000 * number).await });
    }
    while let Some(done) = soon(echoes.join_next()).await {
        done.unwrap();
    }
    soon(pair.client.wait_idle()).await;
    soon(pair.server.wait_idle()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_connection_that_is_held_up_holds_up_no_other() {
    let pair = Pair::new();
    let (held, _held_server) = soon(pair.connect()).await;
    let (client, server) = soon(pair.connect()).await;
    let ((has_begun, begun), (go_on, until)) = (mpsc::channel(), mpsc::channel::<()>());
    let holder = std::thread::spawn(move || {
        let state = held.shared().lock();
        has_begun.send(()).unwrap();
        let _ = until.recv();
        drop(state);
    });
    begun.recv().unwrap();
    soon(echo(&client, &server, 1_000_000)).await;
    let (third, third_server) = soon(pair.connect()).await;
    soon(echo(&third, &third_server, 100_000)).await;
    go_on.send(()).unwrap();
    holder.join().unwrap();
}

#[tokio::test]
async fn tasks_are_woken_for_what_they_wait_for_alone() {
    let pair = Pair::new();
    let (client, server) = soon(pair.connect()).await;
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let cx = &mut Context::from_waker(&waker);
    let (mut accept, mut event) = (pin!(server.accept_bi()), pin!(server.recv_datagram()));
    assert!(accept.as_mut().poll(cx).is_pending());
    client.send_datagram(b"news", TrafficClass::Interactive).await.unwrap();
    // The datagram has arrived and this task reads it. The task that waits for streams was not
    // woken.
    assert_eq!(soon(&mut event).await.unwrap(), b"news");
    soon(client.drained()).await.unwrap();
    assert_eq!(count.0.load(Ordering::Relaxed), 0);
    let (mut send, _receive) = client.open_bi(TrafficClass::Bulk).await.unwrap();
    send.write_all(b"stream").await.unwrap();
    soon(&mut accept).await.unwrap();
}

/// More clients than a server serves at once from one address: who has to wait learns that the server is there, and
/// all of them get through.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_is_told_that_the_server_is_busy() {
    let server =
        Endpoint::bind(Config { permitted: Permitted::Anyone, ..config(2) }, [local(1)]).unwrap();
    let (remote, key) = (server.local_addrs()[0], server.public_key());
    let accepting = tokio::spawn(async move {
        let mut all = tokio::task::JoinSet::new();
        while let Some(incoming) = server.accept().await {
            all.spawn(incoming.accept());
        }
    });
    let mut crowd = tokio::task::JoinSet::new();
    for number in 0..300_u16 {
        crowd.spawn(async move {
            let mut secret = [7; 32];
            secret[..2].copy_from_slice(&number.to_be_bytes());
            let config = Config::new(SecretKey::from_bytes(secret));
            let client = Endpoint::bind(config, [local(1)]).unwrap();
            let path = PathSpec { local: client.local_addrs()[0], remote };
            let connected = client.connect(key, [path]).await;
            (connected.is_ok(), client.times_busy())
        });
    }
    let mut busy = 0;
    while let Some(outcome) = soon(crowd.join_next()).await {
        let (connected, times_busy) = outcome.unwrap();
        assert!(connected, "one was told {times_busy} times that the server is busy");
        busy += usize::from(times_busy > 0);
    }
    assert!(busy > 10, "{busy} of 300 were told");
    accepting.abort();
}
