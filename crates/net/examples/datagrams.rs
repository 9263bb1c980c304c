//! Small, urgent messages beside a bulk transfer on the same connection; they do not wait behind it.
//!
//! Both ends are in this process, on loopback: `cargo run -p anabranch --example datagrams`.

use std::error::Error;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anabranch::{Config, Endpoint, PathSpec, Permitted, SecretKey, TrafficClass};

const MESSAGES: u64 = 20;

/// Reads all streams to their end, and sends every datagram back.
async fn serve(server: Endpoint) {
    let Some(incoming) = server.accept().await else { return };
    let Ok(connection) = incoming.await else { return };
    let streams = connection.clone();
    tokio::spawn(async move {
        while let Ok(mut receive) = streams.accept_uni().await {
            while let Ok(Some(_)) = receive.read_chunk(1 << 16).await {}
        }
    });
    while let Ok(message) = connection.recv_datagram().await {
        let _ = connection.send_datagram(&message, TrafficClass::Interactive).await;
    }
}

#[tokio::main(flavor = "current_thread")]
#[allow(clippy::disallowed_methods, reason = "an application may look at the clock")]
async fn main() -> Result<(), Box<dyn Error>> {
    let any: SocketAddr = "127.0.0.1:0".parse()?;
    let mut config = Config::new(SecretKey::generate()?);
    config.permitted = Permitted::Anyone;
    let server = Endpoint::bind(config, [any])?;
    let (public_key, remote) = (server.public_key(), server.local_addrs()[0]);
    tokio::spawn(serve(server));

    let client = Endpoint::bind(Config::new(SecretKey::generate()?), [any])?;
    let path = PathSpec { local: client.local_addrs()[0], remote };
    let connection = client.connect(public_key, [path]).await?;

    let mut bulk = connection.open_uni(TrafficClass::Bulk).await?;
    tokio::spawn(async move { while bulk.write_all(&[0; 1 << 16]).await.is_ok() {} });

    for number in 0..MESSAGES {
        let sent = Instant::now();
        connection.send_datagram(&number.to_be_bytes(), TrafficClass::Interactive).await?;
        // A datagram may be lost: it is not waited for for ever.
        match tokio::time::timeout(Duration::from_secs(1), connection.recv_datagram()).await {
            Ok(answer) => println!("{:?} came back after {:?}", answer?, sent.elapsed()),
            Err(_) => println!("message {number} was lost"),
        }
    }
    connection.close(0, "done");
    Ok(())
}
