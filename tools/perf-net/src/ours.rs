//! One stream through this project's library.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc;
use std::time::Instant;

use anabranch::{
    Config, Endpoint, PathSpec, Permitted, Profile, PublicKey, RecvStream, SecretKey, SendStream,
    TrafficClass, TransportConfig,
};

use crate::Failure;
use crate::run::{PIECE, Running, Sample, Side, Task, join, on_thread};

/// Moves the bytes once; `settings` change policies of the default profile.
pub fn transfer(task: Task, settings: &[(String, String)]) -> Result<Sample, Failure> {
    let mut profile = Profile::named("anabranch").ok_or("the default profile is missing")?;
    for (axis, policy) in settings {
        profile.set(axis.parse()?, policy)?;
    }
    let (tell, told) = mpsc::channel();
    let config = endpoint_config(task.payload, profile.clone())?;
    let receiver = on_thread("receiver", move || receive(config, task, tell))?;
    let (key, remote) = told.recv()?;
    let config = endpoint_config(task.payload, profile)?;
    let sender = on_thread("sender", move || send(config, task, key, remote))?;
    let (receiver, sender) = (join(receiver)?, join(sender)?);
    Ok(Sample::new(task, sender, receiver))
}

/// An endpoint whose datagrams have up to `payload` bytes; anybody may connect.
pub fn endpoint_config(payload: u16, profile: Profile) -> Result<Config, Failure> {
    let transport = TransportConfig {
        max_datagram: payload,
        // No search for a larger MTU, so that all rows have the same packets.
        mtu_limit: None,
        ..TransportConfig::default()
    };
    let secret = SecretKey::generate()?;
    Ok(Config { permitted: Permitted::Anyone, transport, profile, ..Config::new(secret) })
}

/// Any port of the loopback interface.
pub fn loopback() -> [SocketAddr; 1] {
    [SocketAddr::from((Ipv4Addr::LOCALHOST, 0))]
}

async fn receive(
    config: Config,
    task: Task,
    tell: mpsc::Sender<(PublicKey, SocketAddr)>,
) -> Result<Side, Failure> {
    let endpoint = Endpoint::bind(config, loopback())?;
    let address = *endpoint.local_addrs().first().ok_or("no socket")?;
    tell.send((endpoint.public_key(), address))?;
    let connection = endpoint.accept().await.ok_or("the endpoint ended")?.await?;
    let (mut back, mut stream) = connection.accept_bi().await?;
    let clock = Running::start()?;
    let total = read_all(&mut stream).await?;
    let side = clock.stop()?;
    if total != task.bytes {
        return Err(format!("{total} of {} bytes arrived", task.bytes).into());
    }
    back.finish()?;
    connection.closed().await;
    Ok(side)
}

async fn send(
    config: Config,
    task: Task,
    key: PublicKey,
    remote: SocketAddr,
) -> Result<Side, Failure> {
    let endpoint = Endpoint::bind(config, loopback())?;
    let local = *endpoint.local_addrs().first().ok_or("no socket")?;
    let connection = endpoint.connect(key, [PathSpec { local, remote }]).await?;
    let (mut stream, mut back) = connection.open_bi(TrafficClass::Bulk).await?;
    let clock = Running::start()?;
    write_all(task, &mut stream, &mut back).await?;
    let side = clock.stop()?;
    if std::env::var_os("PERF_NET_STATS").is_some() {
        eprintln!("{:#?}", connection.stats());
    }
    connection.close(0, "");
    endpoint.wait_idle().await;
    Ok(side)
}

/// Writes the bytes of the task and waits until the other side has finished its half of the stream, which it does when
/// it has read everything.
pub async fn write_all(
    task: Task,
    stream: &mut SendStream,
    back: &mut RecvStream,
) -> Result<(), Failure> {
    let (piece, start) = (vec![7; task.piece], Instant::now());
    let mut left = task.bytes;
    while left > 0 {
        task.wait(start, task.bytes - left).await;
        let part = piece.get(..left.min(task.piece as u64) as usize).unwrap_or(&piece);
        stream.write_all(part).await?;
        left -= part.len() as u64;
    }
    stream.finish()?;
    while back.read(&mut [0; 16]).await?.is_some() {}
    Ok(())
}

/// Reads to the end; returns how many bytes there were.
pub async fn read_all(stream: &mut RecvStream) -> Result<u64, Failure> {
    let mut piece = vec![0; PIECE];
    let mut total = 0;
    while let Some(count) = stream.read(&mut piece).await? {
        total += count as u64;
    }
    Ok(total)
}
