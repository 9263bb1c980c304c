//! Connects repeatedly with a key of its own, each time from an address that is new to the receiver.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anabranch::{Config, Endpoint, PathSpec, Profile, PublicKey, SecretKey};

use crate::Failure;
use crate::sender::now;

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(500);
/// An attempt that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// A thread that connects repeatedly until this is dropped.
pub struct Newcomer {
    over: Arc<AtomicBool>,
    longest: Arc<Mutex<Duration>>,
}

impl Newcomer {
    /// Starts the thread.
    pub fn start(
        secret: SecretKey,
        receiver: PublicKey,
        remote: SocketAddr,
    ) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let newcomer = Newcomer { over: Arc::default(), longest: Arc::default() };
        let (over, longest) = (Arc::clone(&newcomer.over), Arc::clone(&newcomer.longest));
        let run = move || {
            let mut host = 0;
            while !over.load(Ordering::Relaxed) {
                host = host % 250 + 1;
                // An address that the receiver has not seen recently.
                let local = SocketAddr::from((Ipv4Addr::new(127, 12, 0, host), 0));
                let begun = now();
                let attempt = connect(secret.clone(), receiver, local, remote);
                let outcome =
                    runtime.block_on(async { tokio::time::timeout(PATIENCE, attempt).await });
                if let Ok(Err(error)) = outcome {
                    eprintln!("abuse: a newcomer failed: {error}");
                }
                let mut longest = longest.lock().unwrap_or_else(PoisonError::into_inner);
                *longest = begun.elapsed().max(*longest);
                drop(longest);
                std::thread::sleep(PAUSE);
            }
        };
        std::thread::Builder::new().name("newcomer".into()).spawn(run)?;
        Ok(newcomer)
    }

    /// The longest time of an attempt since the last call.
    pub fn longest(&self) -> Duration {
        core::mem::take(&mut *self.longest.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

async fn connect(
    secret: SecretKey,
    receiver: PublicKey,
    local: SocketAddr,
    remote: SocketAddr,
) -> Result<(), Failure> {
    let profile = Profile::named("anabranch").ok_or("the default profile is missing")?;
    let endpoint = Endpoint::bind(Config { profile, ..Config::new(secret) }, [local])?;
    let local = *endpoint.local_addrs().first().ok_or("no socket")?;
    let connection = endpoint.connect(receiver, [PathSpec { local, remote }]).await?;
    connection.close(0, "");
    endpoint.wait_idle().await;
    Ok(())
}
