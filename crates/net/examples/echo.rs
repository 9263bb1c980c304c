//! The smallest program: an echo server, and a client that uses it over two paths.
//!
//! Both are in this process, on loopback: `cargo run -p anabranch --example echo`.

use std::error::Error;
use std::net::SocketAddr;

use anabranch::{Config, Endpoint, PathSpec, Permitted, SecretKey, TrafficClass};

/// Serves one connection: each stream is copied back to where it came from.
async fn serve(server: Endpoint) {
    let Some(incoming) = server.accept().await else { return };
    let Ok(connection) = incoming.await else { return };
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        tokio::spawn(async move { tokio::io::copy(&mut receive, &mut send).await });
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let any: SocketAddr = "127.0.0.1:0".parse()?;

    let client_key = SecretKey::generate()?;
    let mut config = Config::new(SecretKey::generate()?);
    config.permitted = Permitted::Only([client_key.public_key()].into());
    let server = Endpoint::bind(config, [any])?;
    let (public_key, remote) = (server.public_key(), server.local_addrs()[0]);
    tokio::spawn(serve(server));

    // Each socket is one path here; on real links, bind one for each interface.
    let client = Endpoint::bind(Config::new(client_key), [any, any])?;
    let paths: Vec<PathSpec> =
        client.local_addrs().into_iter().map(|local| PathSpec { local, remote }).collect();
    let connection = client.connect(public_key, paths).await?;

    let (mut send, mut receive) = connection.open_bi(TrafficClass::Interactive).await?;
    send.write_all(b"over both paths").await?;
    send.finish()?;
    let answer = String::from_utf8(receive.read_to_end(100).await?)?;
    println!("{answer}");
    assert_eq!(answer, "over both paths");
    Ok(())
}
