//! `connect`: the side that connects, and reconnects when the connection is lost.

use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anabranch::{Config, Connection, Endpoint};
use anabranch_forward::{Link, Place, splice};
use tokio::sync::watch;
use tokio::time::Instant;

use super::args::ConnectArgs;
use super::changes::{Changes, Preshared};
use super::config::{self, Connect};
use super::events::{Reporter, TunnelEvent};
use super::hangup::{Hangup, Hangups};
use super::manager::Manager;
use super::metrics::{Metrics, Side};
use super::remotes::Remotes;
use super::ways::{Way, Ways};
use super::{FAREWELL, file, preshared, tell_news};
use crate::failure::Failure;
use crate::insight::Insight;
use crate::interrupt::{self, asked_to_end};
use crate::paths::{self, Route};
use crate::status::Telling;

/// Pause after a connection could not be made.
const RETRY: Duration = Duration::from_secs(1);
/// A connection that ended sooner is made anew only after a pause.
const SHORT: Duration = Duration::from_millis(500);
/// Silence after which the peer is asked for a sign of life, if this side has asked it for ports.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// Time until the first report that the server does not answer, and the longest interval of these
/// reports.
const FIRST_WORD: Duration = Duration::from_secs(2);
const LONGEST_WAIT: Duration = Duration::from_secs(60);

pub(super) async fn run(
    args: &ConnectArgs,
    (settings, config): (Connect, Config),
    insight: &Insight,
    reporter: Reporter,
    telling: Option<&Telling>,
) -> Result<(), Failure> {
    let secrets = config.preshared.clone();
    // SIGHUP is handled before anything shows that the process runs: without a handler, it would end the process.
    let config_file = args.common.config.as_deref().filter(|_| args.stdio.is_none());
    let hangups = Hangups::listen(config_file);
    if args.stdio.is_none() {
        interrupt::flag();
    }
    let endpoint = Endpoint::client(config)
        .map_err(|error| Failure::failed(format!("cannot start: {error}")))?;
    let metrics =
        Metrics::of([(settings.peer, settings.common.names.get(&settings.peer).cloned())]);
    metrics.listen(settings.common.metrics).await?;
    let counted = metrics.clone();
    let link = Link::new(Arc::new(move |event| {
        counted.count(&event);
        reporter.forward(event);
    }));
    let mut ways = Ways::new(link.clone(), reporter, metrics.clone());
    ways.set(&Way::all(&settings)).await?;
    let settings = watch::Sender::new(Arc::new(settings));
    // Why there is no connection, while there is none.
    let lack = watch::Sender::new(String::new());
    let connected =
        stay_connected(&endpoint, &settings, &link, (&metrics, insight), reporter, &lack);
    let client =
        Client { args, endpoint: &endpoint, settings: &settings, link: &link, secrets, hangups };
    let outcome = match &args.stdio {
        None => tokio::select! {
            outcome = client.run(ways, (&metrics, reporter), telling) => outcome,
            failure = connected => Err(failure),
        },
        Some(target) => tokio::select! {
            failure = connected => Err(failure),
            outcome = pipe(&link, target, &lack) => outcome,
        },
    };
    endpoint.close(0, "");
    // A peer that does not learn of this closes the connection after its idle timeout.
    let _ = tokio::time::timeout(FAREWELL, endpoint.wait_idle()).await;
    outcome
}

/// Tasks of `connect` beside the connection.
struct Client<'a> {
    args: &'a ConnectArgs,
    endpoint: &'a Endpoint,
    settings: &'a watch::Sender<Arc<Connect>>,
    link: &'a Link,
    secrets: Preshared,
    hangups: Hangups,
}

impl Client<'_> {
    /// Answers `status`, and reads the settings again when asked to, until the process is asked to end.
    async fn run(
        mut self,
        mut ways: Ways,
        (metrics, reporter): (&Metrics, Reporter),
        telling: Option<&Telling>,
    ) -> Result<(), Failure> {
        let public_key = self.endpoint.public_key();
        let side = Side { command: "connect", public_key, listening: Vec::new() };
        let mut told = std::pin::pin!(metrics.tell(telling, &side));
        let mut manager = Manager::of_environment();
        manager.ready();
        loop {
            tokio::select! {
                // A request to end comes before everything else.
                biased;
                () = asked_to_end() => break,
                hangup = self.hangups.next() => match hangup {
                    Hangup::Reload => {
                        let reload = self.reload(&mut ways, metrics);
                        reporter.reload(&manager, reload).await;
                    }
                    Hangup::End => break,
                },
                () = manager.asks() => {
                    // Answers the watchdog only after taking the locks, so not in a deadlock.
                    drop(metrics.state(&side));
                    manager.works();
                }
                () = &mut told => break,
            }
        }
        manager.stopping();
        Ok(())
    }

    /// Reads the settings again and applies them. What cannot be changed stays.
    ///
    /// # Errors
    /// If the settings have a mistake, or a forward cannot be opened: nothing has changed.
    async fn reload(&mut self, ways: &mut Ways, metrics: &Metrics) -> Result<Changes, Failure> {
        let config = self.args.common.config.as_deref();
        let new = config::connect(self.args, file::read(config)?)?;
        let secrets = preshared(&new.common)?;
        // A name that cannot be resolved now may resolve when it is needed.
        if let Err(wrong @ Failure::Usage(_)) = route(&new).await {
            return Err(wrong);
        }
        let old = self.settings.borrow().clone();
        ways.set(&Way::all(&new)).await?;
        let mut changes = Changes::of_connect((&old, &self.secrets), (&new, &secrets));
        changes.keep_key(self.endpoint.public_key(), &new.common);
        let new = old.changed(new);
        self.endpoint.set_preshared(secrets.clone());
        self.secrets = secrets;
        metrics.set_peers([(new.peer, new.common.names.get(&new.peer).cloned())]);
        if let Some(connection) = self.link.current() {
            connection.set_heartbeat(heartbeat(&new));
        }
        self.settings.send_replace(Arc::new(new));
        Ok(changes)
    }
}

/// How long the peer may be silent before a keepalive is sent. Only this shows that the server has restarted and has to
/// be asked for its ports again.
fn heartbeat(settings: &Connect) -> Option<Duration> {
    (!settings.remote.is_empty()).then_some(HEARTBEAT)
}

/// The paths to the address in the settings. They are determined anew every time, since names may
/// resolve differently by now and interfaces may have changed.
async fn route(settings: &Connect) -> Result<Route, Failure> {
    paths::to_host(&settings.endpoint.to_string(), &settings.paths).await
}

/// Connects, and connects again whenever the connection is lost. Returns only on an error that
/// retrying cannot remove.
#[expect(clippy::too_many_arguments, reason = "everything that outlives a connection")]
async fn stay_connected(
    endpoint: &Endpoint,
    settings: &watch::Sender<Arc<Connect>>,
    link: &Link,
    (metrics, insight): (&Metrics, &Insight),
    reporter: Reporter,
    lack: &watch::Sender<String>,
) -> Failure {
    let peer = settings.borrow().peer.to_string();
    let mut waiting = Waiting::new(&peer, reporter);
    let mut remotes = Remotes::default();
    loop {
        let begun = Instant::now();
        let attempted = settings.borrow().clone();
        let pause = match attempt(endpoint, &attempted, remotes.next(), &mut waiting).await {
            Ok(connection) => {
                // The settings may have been read again meanwhile.
                let settings = settings.borrow().clone();
                insight.follow(&connection, "client");
                connection.set_heartbeat(heartbeat(&settings));
                reporter.say(&TunnelEvent::Connected { peer: &peer });
                let watched = metrics.watch(&connection);
                let news =
                    tokio::spawn(tell_news(connection.clone(), move |event| reporter.say(event)));
                let reason = link.carry(connection.clone()).await.to_string();
                news.abort();
                let short = begun.elapsed() < SHORT;
                remotes.connected(connection.peer_addresses(), short);
                metrics.forget(watched);
                lack.send_replace(String::new());
                waiting = Waiting::new(&peer, reporter);
                reporter.say(&TunnelEvent::Disconnected { peer: &peer, reason });
                if short { RETRY } else { Duration::ZERO }
            }
            Err(Attempt::Hopeless(failure)) => return failure,
            Err(Attempt::Again(reason)) => {
                // A repeated reason is reported once.
                if reason != *lack.borrow() {
                    lack.send_replace(reason.clone());
                    reporter.say(&TunnelEvent::Retrying { peer: &peer, reason });
                }
                RETRY
            }
            // `Waiting` has reported how long it has been.
            Err(Attempt::Unanswered(reason)) => {
                lack.send_replace(reason);
                Duration::ZERO
            }
            // The address in the settings comes next, or another.
            Err(Attempt::NoWay) => Duration::ZERO,
        };
        tokio::time::sleep(pause).await;
    }
}

/// Reports that the server is being waited for, in ever longer intervals.
struct Waiting<'a> {
    peer: &'a str,
    reporter: Reporter,
    since: Instant,
    next: Duration,
    /// Addresses that this side has tried to connect to.
    tried: Vec<SocketAddr>,
}

impl<'a> Waiting<'a> {
    fn new(peer: &'a str, reporter: Reporter) -> Self {
        Waiting { peer, reporter, since: Instant::now(), next: FIRST_WORD, tried: Vec::new() }
    }

    /// Reports, only once, which of the requested interfaces and addresses are missing.
    fn missing(&mut self, route: &Route) {
        if self.tried.is_empty() && !self.reporter.quiet {
            paths::tell_missing(route);
        }
    }

    /// Reports where this side connects to, if that is new, and then for how long it has waited; never returns.
    async fn tell(&mut self, remote: SocketAddr) -> Infallible {
        let Waiting { peer, reporter, since, .. } = *self;
        if !self.tried.contains(&remote) {
            self.tried.push(remote);
            reporter.say(&TunnelEvent::Connecting { peer, remote: remote.to_string() });
        }
        loop {
            tokio::time::sleep_until(since + self.next).await;
            let seconds = since.elapsed().as_secs();
            reporter.say(&TunnelEvent::Waiting { peer, remote: remote.to_string(), seconds });
            self.next += self.next.min(LONGEST_WAIT);
        }
    }
}

/// Why there is no connection.
enum Attempt {
    /// A reason that may go away by itself.
    Again(String),
    /// Nobody answers.
    Unanswered(String),
    /// No path leads to an announced address.
    NoWay,
    /// A reason that retrying cannot remove.
    Hopeless(Failure),
}

async fn attempt(
    endpoint: &Endpoint,
    settings: &Connect,
    (announced, patience): (Option<SocketAddr>, Duration),
    waiting: &mut Waiting<'_>,
) -> Result<Connection, Attempt> {
    let found = tokio::time::timeout(patience, async {
        match announced {
            None => route(settings).await,
            Some(remote) => paths::to_addresses(&[remote], &settings.paths).await,
        }
    });
    let Route { remote, requests } = match found.await {
        Ok(Ok(route)) => route,
        // For example, an address of another IP version than all paths.
        Ok(Err(_)) if announced.is_some() => return Err(Attempt::NoWay),
        Ok(Err(failure @ Failure::Usage(_))) => return Err(Attempt::Hopeless(failure)),
        Ok(Err(failure)) => return Err(Attempt::Again(failure.to_string())),
        Err(_) => return Err(Attempt::Again(format!("cannot find {} in time", settings.endpoint))),
    };
    waiting.missing(&Route { remote, requests: requests.clone() });
    let dialling = endpoint.connect(settings.peer, (remote, requests));
    let outcome = tokio::select! {
        outcome = tokio::time::timeout(patience, dialling) => outcome,
        never = waiting.tell(remote) => match never {},
    };
    match outcome {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(error @ anabranch::ConnectError::Refused(_))) => {
            Err(Attempt::Hopeless(Failure::failed(error)))
        }
        Ok(Err(error)) => Err(Attempt::Again(error.to_string())),
        Err(_) => Err(Attempt::Unanswered(format!(
            "{remote} does not answer; check that it runs, permits this key and is reachable by UDP"
        ))),
    }
}

/// Carries standard input and output.
async fn pipe(link: &Link, target: &Place, lack: &watch::Sender<String>) -> Result<(), Failure> {
    let (send, receive) = link.open(target).await.map_err(|error| match error.kind() {
        ErrorKind::NotConnected if !lack.borrow().is_empty() => Failure::unreached(&*lack.borrow()),
        _ => Failure::unreached(format!("cannot reach {target}: {error}")),
    })?;
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    match splice(input, output, send, receive).await {
        Ok(_) => Ok(()),
        // The reader of our output has closed it.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::unreached(format!("the connection to {target} broke: {error}"))),
    }
}
