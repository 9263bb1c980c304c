//! Copies a file over every link: `copy FILE 0.0.0.0:4433` receives it, `copy FILE ADDRESS KEY` sends it.
use anabranch::{Config, Endpoint, Permitted, SecretKey, TrafficClass};
use std::{error::Error, net::SocketAddr};
use tokio::fs::File;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut config = Config::new(SecretKey::generate()?);
    if let [to_file, listen] = &words[..] {
        config.permitted = Permitted::Anyone; // they must know the key printed here
        let endpoint = Endpoint::bind(config, [listen.parse::<SocketAddr>()?])?;
        let port = endpoint.local_addrs()[0].port();
        println!("copy FILE this-machine:{port} {}", endpoint.public_key());
        let connection = endpoint.accept().await.ok_or("the endpoint ended")?.await?;
        let mut stream = connection.accept_uni().await?;
        tokio::io::copy(&mut stream, &mut File::create(to_file).await?).await?;
        connection.closed().await;
    } else if let [file, address, key] = &words[..] {
        let endpoint = Endpoint::client(config)?;
        let connection = endpoint.connect(key.parse()?, address.parse::<SocketAddr>()?).await?;
        let mut stream = connection.open_uni(TrafficClass::Bulk).await?;
        tokio::io::copy(&mut File::open(file).await?, &mut stream).await?;
        stream.finish()?;
        stream.acked().await?; // the other side has every byte
        connection.close(0, "done");
        endpoint.wait_idle().await;
    }
    Ok(())
}
