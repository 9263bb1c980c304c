//! The connection ids that an observer of the packets between two endpoints sees.

use super::*;
use anabranch_core::wire::ConnectionId;
use anabranch_core::wire::header::connection_of;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// The ids seen in each direction of each path.
type Seen = Arc<Mutex<BTreeMap<(usize, bool), BTreeSet<ConnectionId>>>>;

/// Passes on what comes and goes on one path, and notes its ids; returns where the path leads to.
async fn relay(path: usize, server: SocketAddr, seen: &Seen) -> SocketAddr {
    let (near, far) =
        (UdpSocket::bind(local(1)).await.unwrap(), UdpSocket::bind(local(1)).await.unwrap());
    far.connect(server).await.unwrap();
    let (address, seen) = (near.local_addr().unwrap(), Arc::clone(seen));
    tokio::spawn(async move {
        let (mut out, mut back, mut client) = ([0; 2048], [0; 2048], None);
        loop {
            let (bytes, outward) = tokio::select! {
                Ok((count, from)) = near.recv_from(&mut out) => {
                    client = Some(from);
                    let _ = far.send(&out[..count]).await;
                    (&out[..count], true)
                }
                Ok(count) = far.recv(&mut back) => {
                    if let Some(client) = client {
                        let _ = near.send_to(&back[..count], client).await;
                    }
                    (&back[..count], false)
                }
                else => return,
            };
            if let Some(id) = connection_of(bytes) {
                seen.lock().unwrap().entry((path, outward)).or_default().insert(id);
            }
        }
    });
    address
}

async fn exchange(streams: &mut (SendStream, RecvStream, SendStream, RecvStream)) {
    let (there, take, back, reply) = streams;
    let data = pattern(20_000);
    let mut room = vec![0; data.len()];
    soon(there.write_all(&data)).await.unwrap();
    soon(reply.read_exact(&mut room)).await.unwrap();
    assert_eq!(room, data);
    soon(back.write_all(&data)).await.unwrap();
    soon(take.read_exact(&mut room)).await.unwrap();
    assert_eq!(room, data);
}

/// More paths come and go than the handshake has ids for.
#[tokio::test(flavor = "multi_thread")]
async fn no_connection_id_is_seen_on_two_paths() {
    const PATHS: usize = 24;
    let pair = Pair::new();
    let (server, seen) = (pair.server.local_addrs()[0], Seen::default());
    let local = pair.client.local_addrs()[0];
    let mut specs = Vec::new();
    for path in 0..2 {
        specs.push(PathSpec { local, remote: relay(path, server, &seen).await });
    }
    let key = pair.server.public_key();
    let (client, server_side) =
        soon(async { tokio::join!(pair.client.connect(key, &specs[..]), accepted(&pair.server)) })
            .await;
    let client = client.unwrap();
    let (mut there, take) = client.open_bi(TrafficClass::Bulk).await.unwrap();
    soon(there.write_all(b"!")).await.unwrap();
    let (back, mut reply) = soon(server_side.accept_bi()).await.unwrap();
    soon(reply.read_exact(&mut [0; 1])).await.unwrap();
    let mut streams = (there, take, back, reply);
    for path in 2..PATHS {
        let spec = PathSpec { local, remote: relay(path, server, &seen).await };
        let id = soon(async {
            loop {
                match client.add_path(spec) {
                    Ok(id) => return id,
                    Err(PathError::Refused(_)) => {
                        tokio::time::sleep(Duration::from_millis(5)).await
                    }
                    Err(other) => panic!("{other}"),
                }
            }
        })
        .await;
        assert_eq!(id.0 as usize, path);
        // Both ends take the path into use before an older one goes.
        for end in [&client, &server_side] {
            soon(async {
                while !end.stats().unwrap().paths.iter().any(|known| {
                    known.id == id && known.state == anabranch_policy::view::PathState::Active
                }) {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            })
            .await;
        }
        client.remove_path(anabranch_types::PathId(id.0 - 2));
        exchange(&mut streams).await;
    }
    let seen = seen.lock().unwrap();
    let mut all = BTreeMap::new();
    for (place, ids) in seen.iter() {
        assert_eq!(ids.len(), 1, "each path has one id in each direction: {place:?}");
        for id in ids {
            assert_eq!(all.insert(*id, *place), None, "{id:?} on {place:?} and another");
        }
    }
    assert_eq!(all.len(), 2 * PATHS);
}
