//! Operations on the halves of streams other than reading and writing.

use super::*;

#[tokio::test]
async fn a_unidirectional_stream_carries_one_way() {
    let pair = Pair::new();
    let (client, server) = soon(pair.connect()).await;
    let mut send = client.open_uni(TrafficClass::Bulk).await.unwrap();
    assert_eq!(send.id().direction(), Direction::Unidirectional);
    // Streams of both directions are accepted apart.
    let (mut both, _back) = client.open_bi(TrafficClass::Bulk).await.unwrap();
    soon(both.write_all(b"both")).await.unwrap();
    soon(send.write_all(b"one way")).await.unwrap();
    send.finish().unwrap();
    let mut receive = soon(server.accept_uni()).await.unwrap();
    assert_eq!(receive.id(), send.id());
    assert_eq!(soon(receive.read_to_end(7)).await.unwrap(), b"one way");
    let (_send, mut receive) = soon(server.accept_bi()).await.unwrap();
    soon(receive.read_exact(&mut [0; 4])).await.unwrap();
    soon(send.acked()).await.unwrap();
    // The server opens one too, and what either side has dropped is forgotten.
    let mut answer = server.open_uni(TrafficClass::Interactive).await.unwrap();
    assert_eq!(answer.class(), Some(TrafficClass::Interactive));
    soon(answer.write_all(b"!")).await.unwrap();
    drop(answer);
    let mut answer = soon(client.accept_uni()).await.unwrap();
    assert_eq!(soon(answer.read_to_end(9)).await.unwrap(), b"!");
    drop((send, answer));
    assert_eq!(client.shared().lock().streams.len(), 1);
}

#[tokio::test]
async fn streams_of_both_directions_wait_for_one_limit() {
    let few = |config| {
        let transport = TransportConfig::default();
        let streams = StreamLimits { max_streams: 2, ..transport.streams };
        Config { transport: TransportConfig { streams, ..transport }, ..config }
    };
    let server = few(Config { permitted: Permitted::Anyone, ..config(2) });
    let pair = Pair::with(few(config(1)), server);
    let (client, server) = soon(pair.connect()).await;
    let _both = soon(client.open_bi(TrafficClass::Bulk)).await.unwrap();
    let mut first = soon(client.open_uni(TrafficClass::Bulk)).await.unwrap();
    first.finish().unwrap();
    let third = async { client.open_uni(TrafficClass::Bulk).await.unwrap() };
    let serve = async {
        let mut receive = server.accept_uni().await.unwrap();
        assert_eq!(receive.read_to_end(0).await.unwrap(), b"");
        drop(receive);
    };
    let (third, ()) = soon(async { tokio::join!(third, serve) }).await;
    assert_eq!(third.id().ordinal(), 1);
    assert_eq!(client.stream_waits().total, 1);
}

#[tokio::test]
async fn a_writer_hears_that_nobody_reads_on() {
    let pair = Pair::new();
    let (client, server) = soon(pair.connect()).await;
    let mut send = client.open_uni(TrafficClass::Bulk).await.unwrap();
    soon(send.write_all(b"x")).await.unwrap();
    let mut receive = soon(server.accept_uni()).await.unwrap();
    receive.stop(79);
    assert_eq!(soon(send.stopped()).await, Ok(Some(79)));
    // The code is reported again, although the core has forgotten the stream.
    assert_eq!(soon(send.acked()).await, Err(WriteError::Stopped(79)));
    assert_eq!(soon(send.write(b"y")).await, Err(WriteError::Stopped(79)));
    assert_eq!(soon(receive.read(&mut [0])).await, Ok(None), "the reader has chosen the end");

    let mut send = client.open_uni(TrafficClass::Bulk).await.unwrap();
    send.finish().unwrap();
    let (stopped, receive) =
        soon(async { tokio::join!(send.stopped(), server.accept_uni()) }).await;
    assert_eq!(stopped, Ok(None), "all of it has arrived");
    drop(receive);
    assert_eq!(soon(send.write(b"y")).await, Err(WriteError::Closed));
    client.close(0, "");
    assert_eq!(soon(send.stopped()).await, Ok(None), "and stays there");
}

#[tokio::test]
async fn a_connection_is_over_as_soon_as_it_is_closed() {
    let pair = Pair::new();
    let (client, _server) = soon(pair.connect()).await;
    let mut send = client.open_uni(TrafficClass::Bulk).await.unwrap();
    client.close(400, "done");
    let Some(ConnectionError::Closed(reason)) = client.close_reason() else { panic!("open") };
    assert_eq!((reason.code, reason.by_peer), (CloseCode(400), false));
    assert!(client.open_uni(TrafficClass::Bulk).await.is_err());
    assert!(matches!(send.write(b"x").await, Err(WriteError::Connection(_))));
    assert!(matches!(send.stopped().await, Err(ConnectionError::Closed(_))));
}

/// An endpoint and its connections refer to each other, and printing one must not recurse for ever.
#[tokio::test]
async fn handles_can_be_printed() {
    let pair = Pair::new();
    let (client, _server) = soon(pair.connect()).await;
    let (send, receive) = client.open_bi(TrafficClass::Bulk).await.unwrap();
    let all = format!("{:?} {client:?} {send:?} {receive:?}", pair.client);
    assert!(all.len() < 300 && all.contains("127.0.0.1") && all.contains("PublicKey"), "{all}");
}

#[tokio::test]
async fn what_is_read_whole_has_a_limit() {
    let pair = Pair::new();
    let (client, server) = soon(pair.connect()).await;
    for (length, limit, fits) in [(0, 0, true), (1, 0, false), (300_000, 300_000, true)] {
        let mut send = client.open_uni(TrafficClass::Bulk).await.unwrap();
        let (_, read) = soon(async {
            let writing = async {
                send.write_all(&pattern(length)).await.unwrap();
                send.finish()
            };
            let reading = async { server.accept_uni().await.unwrap().read_to_end(limit).await };
            tokio::join!(writing, reading)
        })
        .await;
        match fits {
            true => assert!(read.unwrap() == pattern(length)),
            false => assert_eq!(read, Err(ReadToEndError::TooLong(limit))),
        }
    }
}

#[tokio::test]
async fn chunks_are_as_long_as_what_has_arrived() {
    let pair = Pair::new();
    let (client, server) = soon(pair.connect()).await;
    let mut send = client.open_uni(TrafficClass::Bulk).await.unwrap();
    soon(send.write_all(&pattern(100_000))).await.unwrap();
    send.finish().unwrap();
    let mut receive = soon(server.accept_uni()).await.unwrap();
    let mut all = Vec::new();
    while let Some(chunk) = soon(receive.read_chunk(30_000)).await.unwrap() {
        assert!((1..=30_000).contains(&chunk.len()));
        all.extend_from_slice(&chunk);
    }
    assert!(all == pattern(100_000));
    assert_eq!(soon(receive.read_chunk(1)).await, Ok(None), "the end stays");
    let early = soon(receive.read_exact(&mut [0; 3])).await;
    assert_eq!(early, Err(ReadExactError::FinishedEarly(0)));
}

#[tokio::test]
async fn priorities_and_datagram_sizes_can_be_asked_for() {
    let pair = Pair::new();
    let (client, server) = soon(pair.connect()).await;
    let mut send = client.open_uni(TrafficClass::Bulk).await.unwrap();
    assert_eq!((send.priority(), send.class()), (Some(0), Some(TrafficClass::Bulk)));
    send.set_priority(-3).unwrap();
    assert_eq!(send.priority(), Some(-3));
    let longest = client.max_datagram_size().unwrap();
    assert!(longest >= 1024, "{longest}");
    client.try_send_datagram(&vec![5; longest], TrafficClass::Live).unwrap();
    assert_eq!(soon(server.recv_datagram()).await.unwrap().len(), longest);
    let long = client.try_send_datagram(&vec![5; 10 * longest], TrafficClass::Live);
    assert_eq!(long, Err(DatagramError::TooLong));
}

/// The task that keeps managed paths in line holds neither the connection nor the endpoint.
#[tokio::test]
async fn a_managed_connection_ends_with_its_last_handle() {
    let server = Config { permitted: Permitted::Anyone, ..config(2) };
    let server = Endpoint::bind(server, [local(1)]).unwrap();
    let client = Endpoint::client(config(1)).unwrap();
    let connecting = client.connect(server.public_key(), server.local_addrs()[0]);
    let (connection, accepted) = soon(async { tokio::join!(connecting, accepted(&server)) }).await;
    let connection = connection.unwrap();
    assert_eq!(connection.close_reason(), None);
    drop(connection);
    assert!(ended(&accepted).await.by_peer);
    soon(client.wait_idle()).await;
}

/// Writes more than the send buffer holds, in chunks and pieces of all lengths.
#[tokio::test]
async fn chunks_are_written_from_where_they_are() {
    let pair = Pair::new();
    let (client, server) = soon(pair.connect()).await;
    let memory = bytes::Bytes::from(pattern(3_000_000));
    let mut send = client.open_uni(TrafficClass::Bulk).await.unwrap();
    let writing = async {
        let mut rest = memory.clone();
        for length in [5, 400_000, 255, 256, 1, 1_000_000, 17, 3, 70_000].into_iter().cycle() {
            let piece = rest.split_to(rest.len().min(length));
            match length % 2 {
                0 => send.write_chunk(piece).await.unwrap(),
                _ => send.write_all(&piece).await.unwrap(),
            }
            if rest.is_empty() {
                break;
            }
        }
        send.write_chunk(bytes::Bytes::new()).await.unwrap();
        send.finish().unwrap();
        send.acked().await.unwrap();
    };
    let reading = async { server.accept_uni().await.unwrap().read_to_end(3_000_000).await };
    let ((), read) = soon(async { tokio::join!(writing, reading) }).await;
    assert!(read.unwrap() == memory);
    assert!(memory.is_unique(), "nothing is held of what was sent");
    assert!(matches!(send.write_chunk(memory).await, Err(WriteError::Closed)));
}
