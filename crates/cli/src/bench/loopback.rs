//! Runs client and server in this process, each with a thread and a runtime of its own.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc;
use std::thread;

use anabranch::{Endpoint, PathSpec, Permitted, Profile, PublicKey, SecretKey};

use super::args::ClientArgs;
use super::{client, config, profile, runtime, server};
use crate::failure::Failure;

/// Measures one connection over the loopback interface.
///
/// # Errors
/// When a side fails.
pub(super) fn run(args: &ClientArgs) -> Result<(), Failure> {
    let profile = profile(&args.profile, &args.settings)?;
    let payload = args.payload;
    let (tell, told) = mpsc::channel();
    let theirs = profile.clone();
    let server = thread::Builder::new()
        .name("server".to_owned())
        .spawn(move || runtime()?.block_on(serve(theirs, payload, &tell)))
        .map_err(Failure::failed)?;
    // The server's key and address; an error if it failed before it could send them.
    let result = match told.recv() {
        Ok((key, remote)) => runtime()?.block_on(measure(args, profile, key, remote)),
        Err(_) => Ok(()),
    };
    let served = server.join().map_err(|_| Failure::failed("the server's thread panicked"))?;
    result.and(served)
}

fn endpoint(profile: Profile, payload: u16, permitted: Permitted) -> Result<Endpoint, Failure> {
    let secret = SecretKey::generate().map_err(Failure::failed)?;
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Endpoint::bind(config(secret, profile, payload, permitted), [local]).map_err(Failure::failed)
}

async fn serve(
    profile: Profile,
    payload: u16,
    tell: &mpsc::Sender<(PublicKey, SocketAddr)>,
) -> Result<(), Failure> {
    let endpoint = endpoint(profile, payload, Permitted::Anyone)?;
    let address = endpoint.local_addrs().first().copied();
    let address = address.ok_or_else(|| Failure::failed("there is no socket"))?;
    tell.send((endpoint.public_key(), address)).map_err(Failure::failed)?;
    let Some(incoming) = endpoint.accept().await else { return Ok(()) };
    let connection = incoming.await.map_err(Failure::failed)?;
    server::serve(&connection).await.map(drop).map_err(Failure::failed)
}

async fn measure(
    args: &ClientArgs,
    profile: Profile,
    key: PublicKey,
    remote: SocketAddr,
) -> Result<(), Failure> {
    let endpoint = endpoint(profile, args.payload, Permitted::Nobody)?;
    let local = endpoint.local_addrs().first().copied();
    let local = local.ok_or_else(|| Failure::failed("there is no socket"))?;
    let path = PathSpec { local, remote };
    let connection = endpoint.connect(key, [path]).await.map_err(Failure::failed)?;
    let result = client::measure(args, &connection).await;
    connection.close(0, "done");
    endpoint.wait_idle().await;
    result
}
