use super::far::{Far, Peers};
use super::frame::{Head, MAX_PIECES, Piece};
use super::outlet::Outlet;
use super::routes::Route;
use super::*;
use crate::tests::{connected, quiet, soon};
use crate::{ForwardEvent, Grant, Link, Permits, Service, serve};
use anabranch::TrafficClass;
use anabranch::{Connection, Endpoint};
use core::time::Duration;
use proptest::prelude::*;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::UdpSocket;

proptest! {
    #[test]
    fn heads_are_read_as_they_were_written(
        stream in (0..1_u64 << 60).prop_map(|n| n << 2 | n & 1),
        flow in 0..1_u64 << 62,
        piece in proptest::option::of((0..1_u64 << 62, 0..MAX_PIECES, any::<bool>())),
        payload: Vec<u8>,
        at in 0..40_usize,
        garbage: Vec<u8>,
    ) {
        let piece = piece.map(|(datagram, place, last)| Piece { datagram, place, last });
        let head = Head { stream, flow, piece };
        let mut buffer = frame::buffer();
        frame::payload_of(&mut buffer)[at..at + payload.len()].copy_from_slice(&payload);
        let framed = head.before(&mut buffer, at, payload.len()).unwrap();
        prop_assert_eq!(Head::read(framed), Some((head, head.len())));
        prop_assert_eq!(&framed[head.len()..], &payload);
        if let Some((_, len)) = Head::read(&garbage) {
            prop_assert!(2 <= len && len <= garbage.len());
        }
    }
}

/// A UDP socket that sends back what it receives, and its address.
async fn echo() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut buffer = vec![0; MAX_DATAGRAM];
        while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
            let _ = socket.send_to(&buffer[..len], from).await;
        }
    });
    address
}

/// Whether something comes within this many milliseconds.
async fn gets(socket: &UdpSocket, millis: u64) -> bool {
    let mut buffer = [0; 9];
    let got = socket.recv(&mut buffer);
    tokio::time::timeout(Duration::from_millis(millis), got).await.is_ok()
}

fn may_send(to: &[&str]) -> Permits {
    Permits { udp: to.iter().map(|to| to.parse().unwrap()).collect(), ..Permits::default() }
}

/// Both ends of a forward, and what keeps them alive.
struct Forwarded {
    /// Where the near end listens.
    near: SocketAddr,
    counters: DatagramCounters,
    service: Service,
    grant: Grant,
    events: tokio::sync::mpsc::UnboundedReceiver<ForwardEvent>,
    connection: Connection,
    /// The key of the near end.
    key: anabranch::PublicKey,
    _endpoints: (Endpoint, Endpoint),
}

/// A forward to `target` whose flows are forgotten after `idle`.
async fn forwarded(target: SocketAddr, permits: Permits, idle: Duration) -> Forwarded {
    let (client, server, near, far) = connected().await;
    let (service, grant) = (Service::forgetting_after(idle), Grant::from(Arc::new(permits)));
    tokio::spawn(serve(far, grant.clone(), service.clone(), quiet()));
    let (told, events) = tokio::sync::mpsc::unbounded_channel();
    let link = Link::new(Arc::new(move |event| drop(told.send(event))));
    let mut listener = listen_for_datagrams(&format!("0:{target}").parse().unwrap()).await.unwrap();
    listener.idle = idle;
    let (address, counters) = (listener.local_addr().unwrap(), listener.counters());
    tokio::spawn(listener.run_until(link.clone(), core::future::pending()));
    let connection = near.clone();
    tokio::spawn(async move { link.carry(near).await });
    let (key, _endpoints) = (client.public_key(), (client, server));
    Forwarded { near: address, counters, service, grant, events, connection, key, _endpoints }
}

impl Forwarded {
    async fn client(&self) -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket.connect(self.near).await.unwrap();
        socket
    }

    fn far(&self) -> DatagramCounts {
        self.service.datagrams_of(self.key).counts()
    }
}

/// Sends until an answer comes: what is sent before the peers agree is lost.
async fn asked(socket: &UdpSocket, bytes: &[u8]) -> Vec<u8> {
    let mut buffer = vec![0; MAX_DATAGRAM];
    let asking = async {
        loop {
            socket.send(bytes).await.unwrap();
            let answer = socket.recv(&mut buffer);
            if let Ok(len) = tokio::time::timeout(Duration::from_millis(200), answer).await {
                return len.unwrap();
            }
        }
    };
    let len = soon(asking).await;
    buffer.truncate(len);
    buffer
}

#[tokio::test]
async fn everybody_gets_his_own_answers() {
    let all = forwarded(echo().await, may_send(&["loopback"]), IDLE).await;
    let first = all.client().await;
    asked(&first, b"first").await;
    let others = (0..20_u8).map(|n| {
        let all = &all;
        async move {
            let socket = all.client().await;
            for turn in 0..10 {
                assert_eq!(asked(&socket, &[n, turn]).await, [n, turn]);
            }
            socket
        }
    });
    // Sockets stay open, since a closed one would leave its port to a later one.
    let mut open = Vec::new();
    for other in others {
        open.push(other.await);
    }
    assert_eq!(asked(&first, b"").await, b"", "empty ones are carried too");
    let (near, far) = (all.counters.counts(), all.far());
    assert_eq!((near.flows, far.flows), (21, 21));
    assert!(near.sent >= 202 && near.received >= 202, "{near:?}");
    assert_eq!((near.sent, near.sent_bytes), (far.received, far.received_bytes), "{far:?}");
}

#[tokio::test]
async fn datagrams_of_any_length_are_carried() {
    let all = forwarded(echo().await, may_send(&["any"]), IDLE).await;
    let socket = all.client().await;
    asked(&socket, b"x").await;
    let fits = all.connection.max_datagram_size().unwrap() - 2;
    // Two pieces of the greatest length have heads of four bytes each.
    for len in [fits, fits + 1, 1200, 1472, 2 * fits - 4, 2 * fits - 3, 9000, 65_507] {
        let bytes: Vec<u8> = (0..len).map(|n| (n * 7 / 3) as u8).collect();
        assert!(asked(&socket, &bytes).await == bytes, "{len} bytes");
    }
    let (near, far) = (all.counters.counts(), all.far());
    assert_eq!((near.failed, far.failed), (0, 0), "{near:?} {far:?}");
    assert_eq!(near.sent_bytes, far.received_bytes, "{near:?} {far:?}");
}

/// Nothing leaves the queue meanwhile: there is no other task on this thread.
#[tokio::test]
async fn datagrams_wait_among_those_of_their_class() {
    let (_client, _server, near, _far) = connected().await;
    let space = |class| near.datagram_send_buffer_space(class).unwrap();
    let before = TrafficClass::ALL.map(space);
    let live = TrafficClass::Live;
    let outlet = Outlet::new(near.clone(), 0, live, DatagramCounters::default());
    outlet.send(0, &mut frame::buffer(), 1000);
    let after = TrafficClass::ALL.map(space);
    let taken = before.iter().zip(&after).map(|(before, after)| before - after);
    let taken: Vec<usize> = taken.collect();
    assert!(taken[0] == 0 && taken[1] >= 1000 && taken[2] == 0, "{taken:?}");
}

/// A long datagram whose pieces do not all fit into the send queue is not sent in part.
#[tokio::test]
async fn without_room_for_all_pieces_none_is_sent() {
    let (_client, _server, near, far) = connected().await;
    let counters = DatagramCounters::default();
    let outlet = Outlet::new(near.clone(), 0, TrafficClass::Bulk, counters.clone());
    let mut buffer = frame::buffer();
    // Nothing leaves the queue meanwhile: there is no other task on this thread.
    for _ in 0..9 {
        outlet.send(0, &mut buffer, 60_000);
    }
    outlet.send(0, &mut buffer, 9);
    let pieces = 60_000_usize.div_ceil(near.max_datagram_size().unwrap() - 4);
    let mut arrived = Vec::new();
    while arrived.last() != Some(&(2 + 9)) {
        arrived.push(soon(far.recv_datagram()).await.unwrap().len());
    }
    let sent = (arrived.len() - 1) / pieces;
    assert!((1..=8).contains(&sent), "{sent} of 9 datagrams");
    assert_eq!(arrived.len(), sent * pieces + 1);
    let counts = counters.counts();
    assert_eq!((counts.sent, counts.no_room), (sent as u64 + 1, 9 - sent as u64), "{counts:?}");
}

#[tokio::test]
async fn flows_are_forgotten_and_made_anew() {
    let all = forwarded(echo().await, may_send(&["loopback"]), Duration::from_millis(600)).await;
    let socket = all.client().await;
    asked(&socket, b"one").await;
    // A flow in use is kept.
    for _ in 0..8 {
        tokio::time::sleep(Duration::from_millis(200)).await;
        asked(&socket, b"again").await;
    }
    assert_eq!((all.counters.counts().flows, all.far().flows), (1, 1));
    let gone = async {
        while all.counters.counts().flows + all.far().flows > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    soon(gone).await;
    assert_eq!(asked(&socket, b"two").await, b"two");
}

#[tokio::test]
async fn of_more_senders_than_may_be_the_most_silent_makes_room() {
    let all = forwarded(echo().await, may_send(&["loopback"]), IDLE).await;
    let first = all.client().await;
    asked(&first, b"first").await;
    let mut sockets = Vec::new();
    for _ in 0..MAX_FLOWS + 20 {
        let socket = all.client().await;
        asked(&socket, b"x").await;
        sockets.push(socket);
    }
    let most = MAX_FLOWS as u64;
    assert_eq!((all.counters.counts().flows, all.far().flows), (most, most));
    assert_eq!(asked(&first, b"first again").await, b"first again");
    assert_eq!(asked(&sockets[40], b"another").await, b"another");
}

#[tokio::test]
async fn who_may_not_is_told_why_and_nothing_arrives() {
    let target = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = target.local_addr().unwrap();
    // Permission for TCP does not cover UDP.
    let connect = vec!["any".parse().unwrap()];
    let mut all = forwarded(address, Permits { connect, ..Permits::default() }, IDLE).await;
    let event = soon(all.events.recv()).await.unwrap();
    let ForwardEvent::Failed(_, why) = event else { panic!("{event:?}") };
    assert!(why.contains("--permit-udp"), "{why}");
    let socket = all.client().await;
    socket.send(b"x").await.unwrap();
    // Datagrams of a peer that ignores the refusal do not arrive either.
    for stream in 0..20 {
        let frame = [stream, 0, b'x'];
        all.connection.try_send_datagram(&frame, TrafficClass::Bulk).unwrap();
    }
    assert!(!gets(&target, 500).await);
    assert_eq!(all.counters.counts().not_connected, 1);
    // Datagrams arrive once permitted, and no more once the permission is gone.
    all.grant.set(may_send(&[&address.to_string()]));
    soon(async {
        loop {
            socket.send(b"now").await.unwrap();
            if gets(&target, 200).await {
                return;
            }
        }
    })
    .await;
    all.grant.set(Permits::default());
    let over = async {
        while all.far().flows > 0 {
            tokio::task::yield_now().await
        }
    };
    soon(over).await;
    while target.try_recv(&mut [0; 9]).is_ok() {}
    socket.send(b"x").await.unwrap();
    assert!(!gets(&target, 500).await);
}

/// Anyone who finds out the port of a flow gets nothing to the peer.
#[tokio::test]
async fn only_the_target_answers() {
    let target = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = target.local_addr().unwrap();
    let all = forwarded(address, may_send(&["loopback"]), IDLE).await;
    let socket = all.client().await;
    let (mut buffer, mut from) = ([0; 9], None);
    while from.is_none() {
        socket.send(b"x").await.unwrap();
        let got = target.recv_from(&mut buffer);
        from = tokio::time::timeout(Duration::from_millis(200), got)
            .await
            .ok()
            .map(|it| it.unwrap().1);
    }
    let other = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    other.send_to(b"forged", from.unwrap()).await.unwrap();
    target.send_to(b"true", from.unwrap()).await.unwrap();
    let len = soon(socket.recv(&mut buffer)).await.unwrap();
    assert_eq!(&buffer[..len], b"true");
    assert_eq!(all.far().sent, 1);
}

/// A peer that makes up numbers of flows gets this many sockets and no more, over all of its requests.
#[tokio::test]
async fn a_hostile_peer_has_few_sockets() {
    let (_client, _server, near, far) = connected().await;
    let peers = Peers::default();
    let requests: Vec<_> = (0..3)
        .map(|n| {
            Arc::new(Far::new(
                (far.clone(), n, TrafficClass::Bulk),
                vec![([127, 0, 0, 1], 9).into()],
                &peers,
            ))
        })
        .collect();
    for number in 0..1000 {
        for request in &requests {
            request.clone().take(number << 40, b"x");
        }
    }
    let counts = peers.of(far.peer()).counts();
    assert_eq!(counts.flows, MAX_FLOWS as u64);
    // Closing the requests frees their flows.
    requests.iter().for_each(|request| request.close());
    assert_eq!(peers.of(far.peer()).counts().flows, 0);
    drop(near);
}

/// Each flow that a peer invents costs a socket, so flows may begin no faster than those of a resolver that asks from
/// another port each time.
#[tokio::test]
async fn flows_are_begun_at_a_rate() {
    let (_client, _server, _near, far) = connected().await;
    let peers = Peers::default();
    let request = Arc::new(Far::new(
        (far.clone(), 0, TrafficClass::Bulk),
        vec![([127, 0, 0, 1], 9).into()],
        &peers,
    ));
    let begun = tokio::time::Instant::now();
    for number in 0..20_000 {
        request.clone().take(number, b"x");
    }
    let took = begun.elapsed();
    let counts = peers.of(far.peer()).counts();
    let most = 512 + (took.as_secs_f64() * 1000.0) as u64;
    println!("20,000 datagrams of as many flows took {took:?}: {counts:?}");
    assert!(counts.received + counts.failed <= most + 1, "{counts:?} in {took:?}");
    assert!(counts.no_flow >= 10_000, "{counts:?}");
}

/// Where a name has several addresses, as `localhost` often has, the first datagram gets to the one that answers.
#[tokio::test]
async fn the_address_that_answers_is_found() {
    let (_client, _server, near, far) = connected().await;
    let closed = UdpSocket::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let target = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let addresses = vec![closed, target.local_addr().unwrap()];
    let request = Arc::new(Far::new((far, 4, TrafficClass::Bulk), addresses, &Peers::default()));
    request.clone().take(0, b"only once");
    let mut buffer = [0; 9];
    let (len, from) = soon(target.recv_from(&mut buffer)).await.unwrap();
    assert_eq!(&buffer[..len], b"only once");
    target.send_to(b"yes", from).await.unwrap();
    assert_eq!(soon(near.recv_datagram()).await.unwrap(), b"\x04\0yes");
    // The next flow begins there.
    request.take(1, b"next");
    assert_eq!(soon(target.recv(&mut buffer)).await.unwrap(), 4);
}
