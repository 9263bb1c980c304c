//! `bench`: the throughput of a connection, over a network or within this machine, as iperf3 measures
//! that of TCP.

pub mod args;
mod client;
mod cpu;
mod loopback;
mod protocol;
mod report;
mod server;
mod table;
mod traffic;

use std::path::Path;

use anabranch::{Config, Permitted, Profile, SecretKey, TransportConfig};
use tokio::runtime::{Builder, Runtime};

use crate::failure::Failure;
use args::{BenchArgs, Side};

/// Runs the side that `args` name.
///
/// # Errors
/// When sockets, keys, the connection or the other side fail, or the profile does not exist.
pub fn run(args: &BenchArgs) -> Result<(), Failure> {
    match &args.side {
        Side::Server(args) => runtime()?.block_on(server::run(args)),
        Side::Client(args) if args.loopback => loopback::run(args),
        Side::Client(args) => runtime()?.block_on(client::run(args)),
    }
}

/// A side's runtime: one thread, which is also how its CPU time is told.
fn runtime() -> Result<Runtime, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::failed(format!("cannot start the runtime: {error}")))
}

/// The profile called `name` with `settings`.
fn profile(name: &str, settings: &[(String, String)]) -> Result<Profile, Failure> {
    let mut profile = Profile::named(name).ok_or_else(|| {
        let known: Vec<String> = Profile::all().into_iter().map(|profile| profile.name).collect();
        Failure::usage(format!("there is no profile '{name}'; known: {}", known.join(", ")))
    })?;
    for (axis, policy) in settings {
        profile
            .set(axis, policy)
            .map_err(|error| Failure::usage(format!("--set {axis}={policy}: {error}")))?;
    }
    Ok(profile)
}

/// The key in `file`, or a new one.
fn key(file: Option<&Path>) -> Result<SecretKey, Failure> {
    match file {
        Some(file) => SecretKey::load(file)
            .map_err(|error| Failure::failed(format!("{}: {error}", file.display()))),
        None => SecretKey::generate().map_err(Failure::failed),
    }
}

/// An endpoint's configuration.
fn config(secret: SecretKey, profile: Profile, payload: u16, permitted: Permitted) -> Config {
    let transport = TransportConfig { max_datagram: payload, ..TransportConfig::default() };
    Config { transport, permitted, ..Config::new(secret, profile) }
}
