//! `serve` and `connect`: a standing connection that carries TCP connections, those of Unix sockets, and UDP datagrams,
//! as ssh forwards them.

pub mod args;
mod changes;
mod config;
mod connect;
mod events;
mod file;
#[cfg(any(test, feature = "testing"))]
pub mod fuzzing;
mod hangup;
mod manager;
mod metrics;
mod privileges;
mod remotes;
mod serve;
mod voice;
mod ways;

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use anabranch::{Config, Connection, PathEvent, PublicKey, Schedule, TransportConfig};
use anabranch_forward::Permit;
use anabranch_types::DataSize;

use crate::confine::{Needs, confine};
use crate::failure::Failure;
use crate::insight::Insight;
use crate::keys;
use crate::open_files;
use crate::status::Telling;
use args::{CommonArgs, ConnectArgs, ServeArgs};
use changes::Preshared;
use config::Common;
use events::{Reporter, TunnelEvent};

/// A standing connection outlives long outages: trains in tunnels, routers that start again.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);
/// Times between handshake messages, short enough that a server that comes back is found within a second.
const SCHEDULE: Schedule = Schedule {
    first: Duration::from_millis(200),
    longest: Duration::from_millis(600),
    give_up: Duration::from_secs(30),
};
/// Most connections with one peer. A peer needs one, but after a crash its old ones stay for a
/// while.
const MAX_PER_PEER: usize = 32;
/// Silence of a peer after which it is reported.
const SILENCE: Duration = Duration::from_secs(1);
/// Time to tell peers that this side ends.
const FAREWELL: Duration = Duration::from_secs(1);

/// Runs `serve` until it is interrupted.
///
/// # Errors
/// When settings are wrong or sockets cannot be bound.
pub fn serve(args: &ServeArgs) -> Result<(), Failure> {
    let settings = config::serve(args, file::read(args.common.config.as_deref())?)?;
    let reporter = Reporter { json: args.common.json, quiet: args.common.quiet };
    let insight = Insight::open(&args.common.insight, "serve")?;
    let config = endpoint_config(&settings.common, &insight)?;
    let other_user = args.user.is_some();
    open_files::allow_many();
    let telling = Telling::open("serve");
    let listen = settings.peers.iter().flat_map(|(_, permits)| &permits.listen);
    let sockets = listen.filter_map(Permit::socket_directory).collect();
    confine(&Needs { other_user, sockets, ..needs(&args.common, &insight, telling.as_ref()) })?;
    let result = run(serve::run(args, (settings, config), &insight, reporter, telling.as_ref()));
    insight.finish();
    result
}

/// Runs `connect` until it is interrupted, or standard input or output ends.
///
/// # Errors
/// When settings are wrong, addresses cannot be bound, or, with `--stdio`, the peer refuses.
pub fn connect(args: &ConnectArgs) -> Result<(), Failure> {
    let settings = config::connect(args, file::read(args.common.config.as_deref())?)?;
    // With --stdio, standard output is the connection's.
    let json = args.common.json && args.stdio.is_none();
    let quiet = args.common.quiet || args.stdio.is_some();
    let insight = Insight::open(&args.common.insight, "connect")?;
    let config = endpoint_config(&settings.common, &insight)?;
    open_files::allow_many();
    let telling = args.stdio.is_none().then(|| Telling::open("connect")).flatten();
    let sockets = ways::directories(settings.local.iter().map(|forward| &forward.bind));
    confine(&Needs { sockets, ..needs(&args.common, &insight, telling.as_ref()) })?;
    let reporter = Reporter { json, quiet };
    let result = run(connect::run(args, (settings, config), &insight, reporter, telling.as_ref()));
    insight.finish();
    result
}

/// Rights that both commands need while they run.
fn needs(args: &CommonArgs, insight: &Insight, telling: Option<&Telling>) -> Needs {
    let mut needs = Needs { tcp: true, ..Needs::files([], insight.directory()) };
    needs.read.extend(file::to_read_again(args.config.as_deref()));
    needs.write.extend(telling.and_then(Telling::directory));
    needs
}

/// Runs a task to its end, on a runtime of its own.
fn run(task: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start threads: {error}")))?;
    let result = runtime.block_on(task);
    runtime.shutdown_timeout(FAREWELL);
    result
}

/// The endpoint's configuration for a standing connection.
fn endpoint_config(common: &Common, insight: &Insight) -> Result<Config, Failure> {
    let mut config = Config::new(keys::load(&common.key)?);
    config.profile = common.profile.clone();
    config.transport = TransportConfig {
        idle_timeout: Some(IDLE_TIMEOUT),
        keepalive: common.keepalive,
        ..config.transport
    };
    config.transport.streams.max_streams = common.max_forwarded.into();
    config.max_per_peer = MAX_PER_PEER;
    config.memory = common.max_memory.map_or(config.memory, DataSize::as_bytes);
    config.schedule = SCHEDULE;
    config.preshared = preshared(common)?;
    config.key_log = insight.key_log.clone();
    Ok(config)
}

/// The secrets that are shared with peers.
fn preshared(common: &Common) -> Result<Preshared, Failure> {
    let load = |(peer, file): (&PublicKey, &PathBuf)| Ok((*peer, keys::load_preshared(file)?));
    common.preshared.iter().map(load).collect()
}

/// Reports what happens to a connection's paths, and when its peer falls silent, for as long as it lives.
async fn tell_news(connection: Connection, say: impl Fn(&TunnelEvent<'_>)) {
    tokio::join!(tell_paths(&connection, &say), tell_silence(&connection, &say));
}

/// Reports when the peer falls silent, and when it answers again.
async fn tell_silence(connection: &Connection, say: impl Fn(&TunnelEvent<'_>)) {
    let peer = connection.peer().to_string();
    loop {
        connection.silence_changed(false).await;
        if connection.close_reason().is_some() {
            return;
        }
        let Some(silence) = connection.silence() else { continue };
        if let Some(rest) = SILENCE.checked_sub(silence) {
            // Usually a packet arrives before that, or the connection has ended.
            let _ = tokio::time::timeout(rest, connection.silence_changed(true)).await;
        }
        if let Some(silence) = connection.silence() {
            let seconds = silence.as_secs_f64();
            say(&TunnelEvent::Silent { peer: &peer, seconds });
            connection.silence_changed(true).await;
            if connection.close_reason().is_none() {
                say(&TunnelEvent::Heard { peer: &peer });
            }
        }
    }
}

/// Reports what happens to a connection's paths.
async fn tell_paths(connection: &Connection, say: impl Fn(&TunnelEvent<'_>)) {
    let peer = connection.peer().to_string();
    while let Some(event) = connection.path_event().await {
        let (path, state) = match event {
            PathEvent::Up(path) => (path, "up"),
            PathEvent::Down(path) => (path, "down"),
            PathEvent::Moved(path) => (path, "moved"),
            PathEvent::Closed(path) => (path, "closed"),
        };
        // A closed path keeps its name until another takes its place.
        let name = connection.path_name(path).unwrap_or_else(|| path.to_string());
        say(&TunnelEvent::Path { peer: &peer, path: &name, state });
    }
}
