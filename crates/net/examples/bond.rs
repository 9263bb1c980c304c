//! Connects over the interfaces that are asked for, keeps the paths as interfaces come and go, and
//! says every second what each carries.
//!
//! `cargo run -p anabranch --example bond -- HOST:PORT PUBKEY KEYFILE wlan0 wwan0,metered`, where an
//! `anabranch serve` with that key listens. Ends with the connection.

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use anabranch::{Config, Endpoint, PathRequest, SecretKey, TransportConfig};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [remote, peer, key, paths @ ..] = args.as_slice() else {
        println!("usage: bond HOST:PORT PUBKEY KEYFILE [PATH]...");
        return Ok(());
    };
    let mut config = Config::new(SecretKey::load(key.as_ref())?);
    config.transport = TransportConfig {
        keepalive: Some(Duration::from_secs(15)),
        idle_timeout: Some(Duration::from_secs(300)),
        ..config.transport
    };
    let endpoint = Endpoint::client(config)?;
    let mut requests = Vec::new();
    for path in paths {
        requests.push(path.parse::<PathRequest>()?);
    }
    if requests.is_empty() {
        requests.push(PathRequest::ANY);
    }
    let remote: SocketAddr = remote.parse()?;
    let connection = endpoint.connect(peer.parse()?, (remote, requests)).await?;
    println!("connected");
    loop {
        tokio::select! {
            event = connection.path_event() => match event {
                Some(event) => println!("{event:?}"),
                None => return Ok(()),
            },
            () = tokio::time::sleep(Duration::from_secs(1)) => {
                for path in connection.stats().iter().flat_map(|stats| &stats.paths) {
                    let (sent, rtt) = (path.counters.sent_bytes, path.rtt.smoothed);
                    println!("path {} {:?}: {sent} B sent, {rtt:?}", path.id.0, path.state);
                }
            }
        }
    }
}
