//! The least there is: a server that gives back what it reads, and a client that asks it over two paths.
//!
//! Both are in this process, on loopback: `cargo run -p anabranch --example echo`.

use std::error::Error;
use std::net::SocketAddr;

use anabranch::{Config, Endpoint, PathSpec, Permitted, Profile, SecretKey, TrafficClass};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Serves one connection: each stream is copied back to where it came from.
async fn serve(server: Endpoint) {
    let Some(connection) = server.accept().await else { return };
    while let Ok((mut send, mut receive)) = connection.accept_stream().await {
        tokio::spawn(async move { tokio::io::copy(&mut receive, &mut send).await });
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let profile = Profile::named("anabranch").ok_or("no such profile")?;
    let any: SocketAddr = "127.0.0.1:0".parse()?;

    let client_key = SecretKey::generate()?;
    let mut config = Config::new(SecretKey::generate()?, profile.clone());
    config.permitted = Permitted::Only([client_key.public_key()].into());
    let server = Endpoint::bind(config, [any])?;
    let (public_key, remote) = (server.public_key(), server.local_addrs()[0]);
    tokio::spawn(serve(server));

    // Each socket is one path here; on real links, bind one for each interface.
    let client = Endpoint::bind(Config::new(client_key, profile.clone()), [any, any])?;
    let paths: Vec<PathSpec> =
        client.local_addrs().into_iter().map(|local| PathSpec { local, remote }).collect();
    let connection = client.connect(public_key, &paths, profile).await?;

    let (mut send, mut receive) = connection.open_stream(TrafficClass::Interactive).await?;
    send.write_all(b"over both paths").await?;
    send.finish()?;
    let mut answer = String::new();
    receive.read_to_string(&mut answer).await?;
    println!("{answer}");
    assert_eq!(answer, "over both paths");
    Ok(())
}
