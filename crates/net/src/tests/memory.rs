//! Connections that share the memory of an endpoint.

use super::many::echo;
use super::*;

/// Bytes for all connections.
const BUDGET: u64 = 6 << 20;
/// Code of the wire format for a connection that takes too much.
const MEMORY: u64 = 16;

/// Writes data that nobody reads to as many streams as allowed, until the connection ends.
async fn fill(client: Connection) -> CloseReason {
    let mut full = Vec::new();
    let all = async {
        while let Ok((mut send, _)) = client.open_bi(TrafficClass::Bulk).await {
            // A connection takes about 6 MB before the endpoint closes it for lack of room.
            let _ = timeout(Duration::from_millis(300), send.write_all(&vec![1; 2 << 20])).await;
            full.push(send);
        }
    };
    tokio::select! {
        reason = ended(&client) => reason,
        () = all => ended(&client).await,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_takes_too_much_loses_connections_and_its_neighbour_none() {
    let server = Config { permitted: Permitted::Anyone, memory: BUDGET, ..config(2) };
    let hostile = Pair::with(config(1), server);
    let neighbour = Endpoint::bind(config(3), [local(3)]).unwrap();
    let neighbour = Pair { client: neighbour, server: hostile.server.clone() };
    let (client, server) = soon(neighbour.connect()).await;
    let mut filled = tokio::task::JoinSet::new();
    let mut unread = Vec::new();
    for _ in 0..3 {
        let (client, server) = soon(hostile.connect()).await;
        unread.push(server);
        filled.spawn(fill(client));
    }
    for round in 0..5 {
        soon(echo(&client, &server, 400_000 + round)).await;
    }
    let reason = soon(filled.join_next()).await.unwrap().unwrap();
    assert_eq!((reason.code.0, reason.by_peer), (MEMORY, true), "{reason:?}");
    assert!(unread.iter().any(|server| server.close_reason().is_some()));
    soon(echo(&client, &server, 400_000)).await;
}
