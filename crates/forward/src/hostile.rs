//! Tests with a peer that speaks the protocol and means harm.

use core::time::Duration;
use std::net::SocketAddr;
use std::sync::Arc;

use anabranch::{Connection, PathSpec, RecvStream, SendStream, StreamLimits, TrafficClass};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::serve::{ask, read_message};
use crate::served::Served;
use crate::tests::{connected, connected_with, permits, soon};
use crate::wire::Request;
use crate::{ForwardEvent, Grant, Permits, Place, Service, serve};

/// Has the far side listen at a loopback port of its choice. Returns the request's stream and the address.
async fn listening(
    near: &Connection,
    events: &mut UnboundedReceiver<ForwardEvent>,
) -> ((SendStream, RecvStream), SocketAddr) {
    let (mut send, mut receive) = near.open_bi(TrafficClass::Bulk).await.unwrap();
    let bind: Place = Place::from(SocketAddr::from(([127, 0, 0, 1], 0)));
    soon(ask(&Request::Listen(bind), &mut send, &mut receive)).await.unwrap();
    ((send, receive), listener(events).await)
}

async fn listener(events: &mut UnboundedReceiver<ForwardEvent>) -> SocketAddr {
    loop {
        if let ForwardEvent::Listening(place) = soon(events.recv()).await.unwrap() {
            return place.to_string().parse().unwrap();
        }
    }
}

/// Serves a connection, and returns its events.
fn served(far: Connection, grant: Grant) -> UnboundedReceiver<ForwardEvent> {
    let (told, events) = unbounded_channel();
    let tell = Arc::new(move |event| drop(told.send(event)));
    tokio::spawn(serve(far, grant, Service::default(), tell));
    events
}

/// Whether the other side of a TCP connection ends it within three seconds.
async fn ends(tcp: &mut TcpStream) -> bool {
    tokio::time::timeout(Duration::from_secs(3), tcp.read(&mut [0; 9])).await.is_ok()
}

/// A peer that ends its request to listen keeps the connections that were accepted, but not for longer than it may
/// listen.
#[tokio::test]
async fn accepted_connections_end_with_the_permission_even_after_their_request() {
    let (_client, _server, near, far) = connected().await;
    let grant = Grant::from(permits(&[], &["loopback"]));
    let mut events = served(far, grant.clone());
    let ((mut send, receive), address) = listening(&near, &mut events).await;
    let mut tcp = TcpStream::connect(address).await.unwrap();
    let (_carried_up, mut carried) = soon(near.accept_bi()).await.unwrap();
    soon(read_message(&mut carried)).await.unwrap();
    send.finish().unwrap();
    drop(receive);
    // The far side no longer listens, but the accepted connection goes on.
    soon(async { while TcpStream::connect(address).await.is_ok() {} }).await;
    tcp.write_all(b"on").await.unwrap();
    let mut back = [0; 2];
    soon(carried.read_exact(&mut back)).await.unwrap();
    grant.set(Permits::default());
    assert!(ends(&mut tcp).await, "it goes on without permission");
}

/// For a peer that allows no streams, this side holds a limited number of accepted connections; the others wait in the
/// system's backlog, which is limited too.
#[tokio::test]
async fn what_the_peer_does_not_take_is_not_accepted_without_end() {
    let streams = StreamLimits { max_streams: 0, ..StreamLimits::default() };
    let (_client, _server, near, far) = connected_with(streams).await;
    let mut events = served(far, permits(&[], &["loopback"]).into());
    let (_request, address) = listening(&near, &mut events).await;
    let mut clients = Vec::new();
    for _ in 0..150 {
        clients.push(TcpStream::connect(address).await.unwrap());
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut waiting = 0;
    while let Ok(event) = events.try_recv() {
        waiting += usize::from(matches!(event, ForwardEvent::Waiting(_)));
    }
    assert!((1..=64).contains(&waiting), "{waiting} are held");
}

/// All connections of a peer share one limit of carried connections; further ones are refused until one ends.
#[tokio::test]
async fn no_more_is_carried_for_a_peer_than_it_may_have() {
    let (client, server, near, far) = connected().await;
    let path = PathSpec { local: client.local_addrs()[0], remote: server.local_addrs()[0] };
    let connecting = client.connect(server.public_key(), [path]);
    let accepting = async { server.accept().await.unwrap().await.unwrap() };
    let (another, another_far) = soon(async { tokio::join!(connecting, accepting) }).await;
    let (service, permits) = (Service::carrying(2), permits(&["loopback"], &["loopback"]));
    for far in [far, another_far] {
        tokio::spawn(serve(far, permits.clone(), service.clone(), Arc::new(|_| {})));
    }
    let target = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let target = Place::from(target.local_addr().unwrap());
    let begin = async |connection: &Connection| {
        let (mut send, mut receive) = connection.open_bi(TrafficClass::Bulk).await.unwrap();
        let begun = soon(ask(&Request::Connect(target.clone()), &mut send, &mut receive)).await;
        begun.map(|_| (send, receive))
    };
    let another = another.unwrap();
    let (mut first, _second) = (begin(&near).await.unwrap(), begin(&another).await.unwrap());
    for connection in [&near, &another] {
        let error = begin(connection).await.unwrap_err().to_string();
        assert!(error.contains("2 connections are carried for this peer already"), "{error}");
    }
    first.0.reset(256);
    soon(async { while begin(&another).await.is_err() {} }).await;
}

/// A peer that connects again and again has its earlier connections probed, each by one task.
#[tokio::test]
async fn who_connects_often_is_not_probed_often() {
    let (_client, _server, _near, far) = connected().await;
    let served = Served::default();
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let entries: Vec<_> = (0..100).map(|_| served.enter(&far)).collect();
    let probes = tasks() - before;
    assert!(probes < entries.len(), "{probes} tasks for {} connections", entries.len());
}
