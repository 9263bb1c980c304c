//! The transfer itself: a sender and a receiver on loopback with the emulated links between them.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch::{
    Config, Connection, ConnectionStats, Endpoint, PathSpec, Permitted, SecretKey, SendStream,
    TrafficClass, WriteError,
};
use anabranch_emulate::{Relay, RelayStats};
use anabranch_types::Time;
use ring::digest::Digest;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout_at};

use super::live::Screen;
use super::plan::{Goal, Plan};
use super::source::{Source, Sum};
use super::watch::Watch;
use crate::failure::Failure;
use crate::format;
use crate::interrupt::asked_to_end;
use crate::record::Recorder;

/// Bytes read at a time.
const READ: usize = 1 << 16;
/// Longest time without a new byte.
const STALL: Duration = Duration::from_secs(60);

/// Results of a transfer.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Bytes that arrived, and the SHA-256 at either end.
    pub(super) bytes: u64,
    pub(super) sent: Digest,
    pub(super) received: Digest,
    /// From the first handshake datagram to the last byte delivered, on the relay's clock.
    pub(super) first: Time,
    pub(super) last: Time,
    /// Erasure capacity of the links from `first` to `last`, bits.
    pub(super) capacity_bits: f64,
    /// The sender's and the links' figures at the end, and the paths' addresses at the relay.
    pub(super) stats: ConnectionStats,
    pub(super) relay: RelayStats,
    pub(super) addresses: Vec<SocketAddr>,
    /// The user ended the sending before its time.
    pub(super) interrupted: bool,
}

impl Outcome {
    /// How long the transfer took.
    pub(super) fn elapsed(&self) -> Duration {
        self.last.since(self.first)
    }
}

/// Sender, receiver and the links between them.
struct Setup {
    relay: Arc<Relay>,
    sender: Endpoint,
    receiver: Endpoint,
    paths: Vec<PathSpec>,
}

impl Setup {
    fn new(plan: &Plan) -> Result<Self, Failure> {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let sockets = |error: io::Error| Failure::failed(format!("cannot open sockets: {error}"));
        let config = |permitted| -> Result<Config, Failure> {
            let secret = SecretKey::generate().map_err(Failure::failed)?;
            let (profile, transport) = (plan.profile.clone(), plan.transport.clone());
            Ok(Config { profile, transport, permitted, ..Config::new(secret) })
        };
        let receiver = Endpoint::bind(config(Permitted::Anyone)?, [any]).map_err(sockets)?;
        let target = receiver.local_addrs().first().copied().unwrap_or(any);
        let relay = Relay::start(&plan.paths, target, plan.seed).map_err(Failure::failed)?;
        let sender = config(Permitted::Nobody)?;
        let sender = Endpoint::bind(sender, vec![any; plan.paths.len()]).map_err(sockets)?;
        let locals = sender.local_addrs();
        let paths = locals.iter().zip(relay.addresses());
        let paths = paths.map(|(local, remote)| PathSpec { local: *local, remote: *remote });
        Ok(Setup { paths: paths.collect(), relay: Arc::new(relay), sender, receiver })
    }
}

/// Data that the receiver read.
struct Received {
    bytes: u64,
    digest: Digest,
    /// When the last byte was read, or when the stream ended if there was none.
    last: Time,
}

/// Runs the transfer, showing it on `screen`.
///
/// # Errors
/// When the transfer does not reach its end; a wrong SHA-256 is not an error here.
pub(super) async fn run(
    plan: &Plan,
    source: Source,
    recorder: Option<&Recorder>,
    screen: &mut Screen,
) -> Result<Outcome, Failure> {
    let setup = Setup::new(plan)?;
    let arrived = Arc::new(AtomicU64::new(0));
    let size = source.size();
    let receiving = tokio::spawn(receive(
        setup.receiver.clone(),
        Arc::clone(&setup.relay),
        Arc::clone(&arrived),
    ));
    let key = setup.receiver.public_key();
    let connecting = setup.sender.connect(key, &setup.paths[..]);
    let connection = tokio::select! {
        result = connecting => result.map_err(|error| Failure::failed(format!(
            "cannot connect: {error}: the handshake timed out on all paths; lower their loss"
        )))?,
        () = limit(plan.limit) => return Err(too_late(plan, 0)),
        () = asked_to_end() => return Err(interrupted()),
    };
    if let Some(recorder) = recorder {
        connection.set_observer(Some(recorder.observer()));
    }
    let watch = Watch::new(&setup.relay, &setup.paths, &connection, &arrived, size);
    let stop = Arc::new(Notify::new());
    let sender = Sender {
        connection: connection.clone(),
        goal: plan.goal.clone(),
        arrived: Arc::clone(&arrived),
        stop: Arc::clone(&stop),
    };
    let sending = tokio::spawn(sender.send(source));
    let mut supervision =
        Supervision { plan, recorder, watch, receiving, sending, stop, interrupted: false };
    let (sent, received) = supervision.run(screen).await?;
    let relay = setup.relay.stats();
    let first = relay.first_datagram.unwrap_or(received.last);
    let stats = connection.stats();
    connection.close(0, "");
    Ok(Outcome {
        bytes: received.bytes,
        sent,
        received: received.digest,
        first,
        last: received.last,
        capacity_bits: setup.relay.forward_capacity_bits(first, received.last),
        stats: stats.ok_or_else(|| Failure::failed("the connection was never established"))?,
        relay,
        addresses: setup.paths.iter().map(|path| path.remote).collect(),
        interrupted: supervision.interrupted,
    })
}

/// The demo while bytes flow.
struct Supervision<'a> {
    plan: &'a Plan,
    recorder: Option<&'a Recorder>,
    watch: Watch,
    receiving: JoinHandle<Result<Received, Failure>>,
    sending: JoinHandle<Result<Digest, Failure>>,
    /// Ends the sending.
    stop: Arc<Notify>,
    interrupted: bool,
}

impl Supervision<'_> {
    async fn run(&mut self, screen: &mut Screen) -> Result<(Digest, Received), Failure> {
        let limit = limit(self.plan.limit);
        tokio::pin!(limit);
        let mut ticks = interval(screen.interval());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut sent = None;
        let mut progress = (0, Instant::now());
        loop {
            tokio::select! {
                result = &mut self.receiving => {
                    let received = joined(result)?;
                    let sent = match sent {
                        Some(sent) => sent,
                        None => joined((&mut self.sending).await)?,
                    };
                    screen.show(&self.watch.reading());
                    return Ok((sent, received));
                }
                result = &mut self.sending, if sent.is_none() => sent = Some(joined(result)?),
                _ = ticks.tick() => {
                    let reading = self.watch.reading();
                    screen.show(&reading);
                    if reading.arrived > progress.0 {
                        progress = (reading.arrived, Instant::now());
                    }
                    self.check(reading.arrived, progress.1)?;
                }
                () = &mut limit => return Err(too_late(self.plan, self.watch.reading().arrived)),
                // The loop goes on: data in flight may still arrive, and the report shows the
                // figures so far.
                () = asked_to_end(), if !self.interrupted => {
                    self.interrupted = true;
                    self.stop.notify_one();
                }
            }
        }
    }

    fn check(&self, arrived: u64, since: Instant) -> Result<(), Failure> {
        if self.recorder.is_some_and(Recorder::has_failed) {
            // `Recorder::finish` reports the reason.
            return Err(Failure::failed("the recording cannot be written"));
        }
        if !self.watch.links_are_up() {
            return Err(Failure::failed("the emulated links stopped: a socket failed"));
        }
        if since.elapsed() > STALL {
            return Err(stopped(arrived, "nothing more arrived for a minute"));
        }
        Ok(())
    }
}

/// A task's result. Tasks are never cancelled here, so a join error means that the task panicked.
fn joined<T>(result: Result<Result<T, Failure>, tokio::task::JoinError>) -> Result<T, Failure> {
    result.map_err(|_| Failure::failed("an internal task failed"))?
}

async fn limit(limit: Option<Duration>) {
    match limit {
        Some(limit) => sleep(limit).await,
        None => std::future::pending().await,
    }
}

fn interrupted() -> Failure {
    Failure::interrupted("interrupted before the transfer was complete")
}

fn too_late(plan: &Plan, arrived: u64) -> Failure {
    let limit = plan.limit.unwrap_or_default();
    stopped(arrived, format!("not complete after {:.0} s", limit.as_secs_f64()))
}

fn stopped(arrived: u64, why: impl core::fmt::Display) -> Failure {
    Failure::failed(format!(
        "the transfer stopped after {}: {why}; make sure that some path carries packets in both directions",
        format::bytes(arrived)
    ))
}

/// The connection ended before the stream did.
fn lost(arrived: &AtomicU64, error: &io::Error) -> Failure {
    let why = match error.kind() {
        io::ErrorKind::TimedOut => "no path carried a packet within the idle timeout".to_owned(),
        _ => error.to_string(),
    };
    stopped(arrived.load(Ordering::Relaxed), why)
}

/// State of the sending side beside the data.
struct Sender {
    connection: Connection,
    goal: Goal,
    arrived: Arc<AtomicU64>,
    stop: Arc<Notify>,
}

impl Sender {
    async fn send(self, mut source: Source) -> Result<Digest, Failure> {
        let Sender { connection, goal, arrived, stop } = self;
        let mut sum = Sum::new();
        let lost = |error| lost(&arrived, &error);
        let mut stream =
            connection.open_uni(TrafficClass::Bulk).await.map_err(|error| lost(error.into()))?;
        let end = match goal {
            Goal::Time(time) => Some(Instant::now() + time),
            Goal::Size(_) | Goal::File(_) => None,
        };
        loop {
            let bytes = source.fill()?;
            if bytes.is_empty() {
                break;
            }
            let written = tokio::select! {
                biased;
                () = stop.notified() => break,
                written = write(&mut stream, bytes, end) => written,
            };
            let Some(count) = written.map_err(|error| lost(error.into()))? else { break };
            sum.add(bytes.get(..count).unwrap_or_default());
            source.consume(count);
        }
        stream.finish().map_err(|error| lost(error.into()))?;
        Ok(sum.finish().1)
    }
}

/// Writes some of `bytes`; `None` once the time is up.
async fn write(
    stream: &mut SendStream,
    bytes: &[u8],
    end: Option<Instant>,
) -> Result<Option<usize>, WriteError> {
    match end {
        None => stream.write(bytes).await.map(Some),
        Some(end) if Instant::now() >= end => Ok(None),
        Some(end) => match timeout_at(end, stream.write(bytes)).await {
            Ok(result) => result.map(Some),
            Err(_) => Ok(None),
        },
    }
}

async fn receive(
    endpoint: Endpoint,
    relay: Arc<Relay>,
    arrived: Arc<AtomicU64>,
) -> Result<Received, Failure> {
    let never = || Failure::failed("nobody connected");
    let incoming = endpoint.accept().await.ok_or_else(never)?;
    let connection = incoming.await.map_err(Failure::failed)?;
    let lost = |error| lost(&arrived, &error);
    let mut stream = connection.accept_uni().await.map_err(|error| lost(error.into()))?;
    let mut sum = Sum::new();
    let mut buffer = vec![0; READ];
    let mut last = None;
    while let Some(count) = stream.read(&mut buffer).await.map_err(|error| lost(error.into()))? {
        last = Some(relay.now());
        sum.add(buffer.get(..count).unwrap_or_default());
        arrived.fetch_add(count as u64, Ordering::Relaxed);
    }
    let last = last.unwrap_or_else(|| relay.now());
    let (bytes, digest) = sum.finish();
    // The connection stays open until the sender, which waits for the last acknowledgement, closes it.
    tokio::spawn(async move { connection.closed().await });
    Ok(Received { bytes, digest, last })
}
