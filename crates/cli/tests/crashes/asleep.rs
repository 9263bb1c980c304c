//! A client that is suspended for longer than its server remembers it, like a laptop with its lid closed.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anabranch::{Config, Endpoint, Permitted, SecretKey};
use anabranch_forward::{Permits, Service, serve};
use nix::sys::signal::Signal;
use tokio::runtime::Runtime;

use super::echo::echo;
use super::process::{Home, PATIENCE, Running, recovered, wait_until};
use super::tunnel::{carries, free_port};

/// Idle timeout of the connections.
const IDLE: Duration = Duration::from_secs(3);

/// Connections of the server.
#[derive(Debug, Default)]
struct Count {
    begun: AtomicUsize,
    over: AtomicUsize,
}

/// Serves the client on loopback until the runtime ends, and counts connections; returns its address and its key.
fn server(runtime: &Runtime, client: &str, count: &Arc<Count>) -> (SocketAddr, String) {
    let _inside = runtime.enter();
    let mut config = Config::new(SecretKey::generate().unwrap());
    config.permitted = Permitted::Only(BTreeSet::from([client.parse().unwrap()]));
    config.transport.idle_timeout = Some(IDLE);
    let endpoint = Endpoint::bind(config, [SocketAddr::from(([127, 0, 0, 1], 0))]).unwrap();
    let (address, key) = (endpoint.local_addrs()[0], endpoint.public_key().to_string());
    let (service, count) = (Service::default(), Arc::clone(count));
    let connect = vec!["loopback".parse().unwrap()];
    let permits = Arc::new(Permits { connect, ..Permits::default() });
    runtime.spawn(async move {
        while let Some(incoming) = endpoint.accept().await {
            let (permits, service) = (Arc::clone(&permits), service.clone());
            let count = Arc::clone(&count);
            tokio::spawn(async move {
                let Ok(connection) = incoming.await else { return };
                count.begun.fetch_add(1, Ordering::Relaxed);
                serve(connection, permits, service, Arc::new(|_| {})).await;
                count.over.fetch_add(1, Ordering::Relaxed);
            });
        }
    });
    (address, key)
}

#[test]
fn a_client_that_slept_for_longer_than_connections_last_is_back_at_once() {
    let (home, runtime) = (Home::new(), Runtime::new().unwrap());
    let count = Arc::<Count>::default();
    let (address, key) = server(&runtime, &home.client.1, &count);
    let near = free_port();
    let (address, forward) =
        (address.to_string(), format!("{}:127.0.0.1:{}", near.port(), echo().port()));
    let words = ["connect", &address, "--peer", &key, "--key", &home.client.0, "-L", &forward];
    let options = ["--persistent-keepalive", "1", "--json"];
    let client = Running::start(home.path(), &[&words[..], &options].concat());
    wait_until(|| carries(near, recovered()), || "nothing is carried".to_owned());
    client.signal(Signal::SIGSTOP);
    wait_until(
        || count.over.load(Ordering::Relaxed) > 0,
        || format!("the server does not forget it: {count:?}; the client: {}", client.said()),
    );
    std::thread::sleep(IDLE);
    client.signal(Signal::SIGCONT);
    let begun = Instant::now();
    let carried = carries(near, PATIENCE);
    assert!(carried && begun.elapsed() <= recovered(), "{carried} after {:?}", begun.elapsed());
}
