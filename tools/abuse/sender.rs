//! The sender: a thread that writes as fast as possible.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch::{Config, Endpoint, PathSpec, Profile, PublicKey, SecretKey, TrafficClass};
use tokio::sync::Notify;

use crate::Failure;

/// Bytes written at a time.
const PIECE: usize = 128 << 10;

/// A sender that runs, until this is dropped.
pub struct Sending(Arc<Notify>);

/// Connects, and sends `rate` bytes a second, or as fast as it may if `None`.
pub fn start(
    secret: SecretKey,
    receiver: PublicKey,
    remote: SocketAddr,
    rate: Option<u64>,
) -> Result<Sending, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let stop = Arc::new(Notify::new());
    let stopped = Arc::clone(&stop);
    let run = move || {
        let sending = async {
            tokio::select! {
                outcome = send(secret, receiver, remote, rate) => outcome,
                () = stopped.notified() => Ok(()),
            }
        };
        if let Err(error) = runtime.block_on(sending) {
            eprintln!("abuse: the sender failed: {error}");
        }
    };
    std::thread::Builder::new().name("sender".into()).spawn(run)?;
    Ok(Sending(stop))
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

async fn send(
    secret: SecretKey,
    receiver: PublicKey,
    remote: SocketAddr,
    rate: Option<u64>,
) -> Result<(), Failure> {
    let profile = Profile::named("anabranch").ok_or("the default profile is missing")?;
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let endpoint = Endpoint::bind(Config { profile, ..Config::new(secret) }, [any])?;
    let local = *endpoint.local_addrs().first().ok_or("no socket")?;
    let connection = endpoint.connect(receiver, [PathSpec { local, remote }]).await?;
    let (mut stream, _back) = connection.open_bi(TrafficClass::Bulk).await?;
    let piece = vec![7; PIECE];
    let (start, mut sent) = (now(), 0);
    loop {
        stream.write_all(&piece).await?;
        sent += PIECE as u64;
        if let Some(rate) = rate {
            let due = Duration::from_secs_f64(sent as f64 / rate as f64);
            tokio::time::sleep(due.saturating_sub(start.elapsed())).await;
        }
    }
}

/// The present instant.
#[allow(clippy::disallowed_methods, reason = "an attack runs in real time")]
pub fn now() -> Instant {
    Instant::now()
}
