//! `bench`: the throughput of a connection, over a network or within this machine, as iperf3 measures it for TCP; and
//! the cost of the erasure codes.

pub mod args;
mod client;
mod codes;
mod cpu;
mod datagrams;
mod inbox;
mod intervals;
mod latency;
mod loopback;
mod protocol;
mod report;
mod server;
mod table;
mod traffic;

use std::path::Path;

use anabranch::{Config, Permitted, Profile, SecretKey, TransportConfig};
use tokio::runtime::{Builder, Runtime};

use crate::catalog::profile;
use crate::confine::{Needs, confine};
use crate::failure::Failure;
use crate::insight::Insight;
use crate::keys;
use args::{BenchArgs, Side};

/// Runs the server, the client or the measurement of the erasure codes, as `args` say.
///
/// # Errors
/// When sockets, keys, the connection or the other side fail, or the profile does not exist.
pub fn run(args: &BenchArgs) -> Result<(), Failure> {
    match &args.side {
        Side::Codes(args) => {
            confine(&Needs::default())?;
            codes::run(args)
        }
        Side::Server(args) => {
            let insight = Insight::open(&args.insight, "bench-server")?;
            let secrets = [args.key.as_deref(), args.preshared_key.as_deref()];
            confine(&Needs::files(secrets, insight.directory()))?;
            runtime()?.block_on(server::run(args, &insight))
        }
        Side::Client(args) if args.loopback => {
            confine(&Needs::default())?;
            loopback::run(args)
        }
        Side::Client(args) => {
            let insight = Insight::open(&args.insight, "bench-client")?;
            let secrets = [args.key.as_deref(), args.preshared_key.as_deref()];
            confine(&Needs::files(secrets, insight.directory()))?;
            runtime()?.block_on(client::run(args, &insight))
        }
    }
}

/// A single-threaded runtime for one side, so that the CPU time of the thread shows what the side used.
fn runtime() -> Result<Runtime, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::failed(format!("cannot start the runtime: {error}")))
}

/// The key in `file`, or a new one.
fn key(file: Option<&Path>) -> Result<SecretKey, Failure> {
    match file {
        Some(file) => keys::load(file),
        None => SecretKey::generate().map_err(Failure::failed),
    }
}

/// An endpoint's configuration. Packets keep the size that was asked for, so that results can be compared.
fn config(secret: SecretKey, profile: Profile, payload: u16, permitted: Permitted) -> Config {
    let transport =
        TransportConfig { max_datagram: payload, mtu_limit: None, ..TransportConfig::default() };
    Config { profile, transport, permitted, ..Config::new(secret) }
}
