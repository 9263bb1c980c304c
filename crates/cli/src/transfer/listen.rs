//! The side that accepts connections: from the holder of a ticket, or from allowed peers.

use std::collections::BTreeMap;
use std::future::pending;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anabranch::{Config, Connection, Endpoint, Permitted, PublicKey, SecretKey, SocketSpec};
use anabranch_transfer::Ticket;
use anabranch_transfer::ticket::MAX_ADDRESSES;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::args::{CommonArgs, ListenArgs};
use super::error::{IN_USE, TransferError};
use super::kept::{Kept, Place};
use super::progress::Progress;
use super::report::{End, Report};
use super::screen::{Screen, Shown};
use super::session::{self, Side};
use super::sessions::{MAX_PER_PEER, Sessions};
use super::setup::{FLUSH, Secrets, endpoint_config};
use super::shares::Earlier;
use super::waiting::Waiting;
use crate::arrivals::Arrivals;
use crate::catalog::profile;
use crate::failure::Failure;
use crate::insight::Insight;
use crate::interrupt::asked_to_end;
use crate::limited::Limited;
use crate::paths::listening;
use crate::{keys, machine};

/// Time in which the ticket's holder may come back after losing a connection that has brought something, even if the
/// ticket expires meanwhile.
const COME_BACK: Duration = Duration::from_secs(300);
/// Further connections that an allowed peer may have open while it is checked whether they may begin a transfer.
const MORE: usize = 4;

/// Settings of a side that listens, from the command line.
pub(super) struct Listening<'a> {
    pub(super) args: &'a ListenArgs,
    pub(super) common: &'a CommonArgs,
    pub(super) side: &'a Side,
    pub(super) report: Report,
    pub(super) insight: &'a Insight,
    /// Words that identify this command.
    pub(super) words: Vec<String>,
}

impl Listening<'_> {
    /// Waits for permitted peers, and does this side's part with them.
    pub(super) async fn run(&self) -> Result<(), Failure> {
        let (endpoint, mut kept) = self.bind()?;
        let arrivals = Arrivals::of(&endpoint);
        let serving = async {
            match &kept {
                Some(kept) => {
                    let good = kept.ticket.expires.saturating_sub(wall_clock());
                    self.report.ticket(&kept.ticket, Duration::from_secs(good))?;
                }
                None => self.report.listening(&endpoint.local_addrs(), &endpoint.public_key())?,
            }
            if kept.is_some() || self.args.once {
                self.serve_once(&arrivals, &mut kept).await
            } else {
                self.serve(&arrivals).await
            }
        };
        // `biased` polls for Ctrl-C first, so it is caught before the ticket is printed.
        let interrupted = tokio::select! {
            biased;
            () = asked_to_end() => Ok(()),
            result = serving => Err(result),
        };
        endpoint.close(0, "");
        // Peers are told that this side ends. One that does not learn of it has an idle timeout.
        let _ = timeout(FLUSH, endpoint.wait_idle()).await;
        match (interrupted, kept) {
            (Err(result), _) => result,
            (Ok(()), None) if !self.args.once => Ok(()),
            (Ok(()), None) => Err(TransferError::Interrupted(self.side.can_go_on()).into()),
            (Ok(()), Some(kept)) => Err(TransferError::Interrupted(kept.is_kept()).into()),
        }
    }

    /// The endpoint, and the ticket if there is to be one.
    fn bind(&self) -> Result<(Endpoint, Option<Kept>), Failure> {
        let ListenArgs { key, allow, .. } = self.args;
        if !allow.is_empty() {
            let key = key.as_deref().ok_or_else(|| Failure::usage("--allow needs --key FILE"))?;
            let shared = keys::shared_with(allow, self.common.preshared_key.as_deref())?;
            let secrets = Secrets { key: keys::load(key)?, shared };
            let mut config = self.config(secrets)?;
            // Each peer has a limit, so that no peer uses up the connections of others.
            config.max_per_peer = MAX_PER_PEER + MORE;
            let endpoint = bind(config, &self.args.listen)?;
            endpoint.set_permitted(Permitted::Only(allow.iter().copied().collect()));
            return Ok((endpoint, None));
        }
        if key.is_some() {
            return Err(Failure::usage(
                "--key needs --allow PUBKEY, to say who may connect; without --key there is a \
                 ticket instead",
            ));
        }
        if self.common.preshared_key.is_some() {
            return Err(Failure::usage(
                "--preshared-key needs --allow PUBKEY, to say who has it too; a ticket needs none",
            ));
        }
        let (endpoint, kept) = self.ticket()?;
        let holder = kept.ticket.holder().public_key();
        endpoint.set_preshared([(holder, kept.ticket.preshared())].into());
        endpoint.set_permitted(Permitted::Only([holder].into()));
        Ok((endpoint, Some(kept)))
    }

    /// The ticket that the same command made before, if it is still good, or a new one.
    fn ticket(&self) -> Result<(Endpoint, Kept), Failure> {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let mut place = if self.side.can_go_on() { Place::of(&words, wall_clock()) } else { None };
        if !self.args.new_ticket {
            match Kept::take_up(place, wall_clock()) {
                Ok(kept) => match Endpoint::bind(
                    self.config(kept.key.clone().into())?,
                    kept.listen.iter().copied(),
                ) {
                    Ok(endpoint) => {
                        eprintln!(
                            "The ticket that this command made before is still valid; --new-ticket makes another."
                        );
                        return Ok((endpoint, kept));
                    }
                    Err(error) => {
                        let error = Failure::cannot_listen_on(&kept.listen, &error);
                        eprintln!("anabranch: the earlier ticket cannot be used again: {error}");
                        place = kept.into_place();
                    }
                },
                Err(free) => place = free,
            }
        }
        // Only the holder of the ticket ever learns the public key that belongs to this key.
        let key = SecretKey::generate().map_err(Failure::failed)?;
        let endpoint = bind(self.config(key.clone().into())?, &self.args.listen)?;
        let expires = wall_clock().saturating_add(self.args.expires.as_secs());
        let ticket =
            Ticket::new(self.side.role(), endpoint.public_key(), expires, addresses(&endpoint)?);
        let ticket = ticket.map_err(Failure::failed)?;
        let listen = endpoint.local_addrs();
        Ok((endpoint, Kept::new(ticket, key, listen, place)))
    }

    fn config(&self, secrets: Secrets) -> Result<Config, Failure> {
        let profile = profile(&self.common.profile, &[])?;
        Ok(endpoint_config(secrets, profile, self.common.timeout, self.insight))
    }

    async fn accept(&self, arrivals: &Arrivals) -> Result<Connection, Failure> {
        let connection = arrivals.next().await.ok_or_else(stopped)?;
        self.insight.follow(&connection, "server");
        Ok(connection)
    }

    /// One transfer, over as many connections as it takes.
    async fn serve_once(
        &self,
        arrivals: &Arrivals,
        kept: &mut Option<Kept>,
    ) -> Result<(), Failure> {
        let mut deadline = Deadline::of(kept.as_ref());
        let progress = Arc::new(Progress::telling(self.report));
        let (mut started, mut next, earlier) = (None, None, Earlier::default());
        loop {
            let connection = match next.take() {
                Some(connection) => connection,
                None => {
                    let back = "the other side to come back".to_owned();
                    let _waiting = started.map(|_: Instant| Waiting::open(back, self.common.quiet));
                    tokio::select! {
                        connection = self.accept(arrivals) => connection?,
                        () = until(deadline.at) => {
                            kept.iter().for_each(Kept::forget);
                            let why = "nobody used the ticket before it expired";
                            return Err(Failure::unreached(why));
                        }
                    }
                }
            };
            let started = *started.get_or_insert_with(Instant::now);
            let served =
                self.serve_unless_replaced(arrivals, &connection, kept.as_mut(), &progress);
            let result = match served.await {
                Ended(result) => result,
                Replaced(connection) if self.side.can_go_on() => {
                    eprintln!("anabranch: the other side has come back");
                    next = Some(connection?);
                    continue;
                }
                Replaced(_) => Err(TransferError::lost("the other side has restarted")),
            };
            let role = self.side.role();
            match result {
                Ok(()) => {
                    kept.iter().for_each(Kept::forget);
                    let (counts, time) = (progress.counts(), started.elapsed());
                    let (peer, paths) = (connection.peer(), earlier.with(&connection, role));
                    self.report.finished(&End { role, peer, counts, time, paths: &paths });
                    return Ok(());
                }
                Err(error @ TransferError::Lost(_)) if self.side.can_go_on() => {
                    earlier.add(&connection, role);
                    eprintln!("anabranch: {error}; waiting for the other side to come back");
                    self.report.lost(&error);
                    deadline.note_loss(&progress);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// One connection's part of a transfer, unless another connection of the same peer takes its place, because
    /// this one does not answer any more.
    async fn serve_unless_replaced(
        &self,
        arrivals: &Arrivals,
        connection: &Connection,
        ticket: Option<&mut Kept>,
        progress: &Arc<Progress>,
    ) -> Served {
        let mut serving = pin!(self.serve_connection(connection, ticket, progress));
        tokio::select! {
            result = &mut serving => Ended(result),
            next = self.successor(arrivals, connection) => {
                connection.close(0, "");
                // Lets the ended transfer release its files. The reason for its end is known.
                let _ = serving.await;
                Replaced(next)
            }
        }
    }

    /// The next connection, once the one that is being served does not answer any more. Until then, others that
    /// connect are told that the ticket is in use.
    async fn successor(
        &self,
        arrivals: &Arrivals,
        served: &Connection,
    ) -> Result<Connection, Failure> {
        loop {
            let next = self.accept(arrivals).await?;
            if !served.is_alive().await {
                return Ok(next);
            }
            next.close(IN_USE.0, "the ticket is in use by another transfer that is still running");
        }
    }

    async fn serve_connection(
        &self,
        connection: &Connection,
        ticket: Option<&mut Kept>,
        progress: &Arc<Progress>,
    ) -> Result<(), TransferError> {
        progress.begin(0, 0);
        self.report.connected(&connection.peer());
        let _screen = Screen::open(Shown {
            connection: connection.clone(),
            role: self.side.role(),
            progress: Arc::clone(progress),
            quiet: self.common.quiet,
            report: self.report,
        });
        session::run(connection, false, self.side, ticket, progress).await
    }

    /// Transfers with allowed peers, one after another and at the same time, until interrupted.
    async fn serve(&self, arrivals: &Arrivals) -> Result<(), Failure> {
        let (mut tasks, sessions) = (JoinSet::new(), Sessions::default());
        let about = |peer: &PublicKey| (*peer, Limited::new(peer.to_string(), ""));
        let lines: BTreeMap<PublicKey, Limited> = self.args.allow.iter().map(about).collect();
        loop {
            tokio::select! {
                connection = self.accept(arrivals) => {
                    let connection = connection?;
                    let Some(lines) = lines.get(&connection.peer()).cloned() else { continue };
                    let standing = Standing {
                        connection,
                        lines,
                        side: self.side.clone(),
                        report: self.report,
                        quiet: self.common.quiet,
                    };
                    tasks.spawn(standing.run(sessions.clone()));
                }
                Some(_) = tasks.join_next() => {}
            }
        }
    }
}

/// How serving a connection ended.
enum Served {
    Ended(Result<(), TransferError>),
    /// Replaced by this connection.
    Replaced(Result<Connection, Failure>),
}
use Served::{Ended, Replaced};

/// A transfer with an allowed peer, beside others.
struct Standing {
    connection: Connection,
    /// Lines printed about the peer, over all its transfers.
    lines: Limited,
    side: Side,
    report: Report,
    quiet: bool,
}

impl Standing {
    async fn run(self, sessions: Sessions) {
        let Standing { connection, lines, side, report, quiet } = self;
        let Some(_under_way) = sessions.begin(&connection).await else {
            connection.close(IN_USE.0, "you have too many transfers at a time");
            return;
        };
        let peer = connection.peer().to_string();
        let (progress, started) = (Arc::new(Progress::telling(report)), Instant::now());
        let role = side.role();
        progress.begin(0, 0);
        report.connected(&connection.peer());
        let shown = Shown {
            connection: connection.clone(),
            role,
            progress: Arc::clone(&progress),
            quiet,
            report,
        };
        let screen = Screen::open(shown);
        let result = session::run(&connection, false, &side, None, &progress).await;
        drop(screen);
        match result {
            Ok(()) => {
                let paths = Earlier::default().with(&connection, role);
                let (counts, time) = (progress.counts(), started.elapsed());
                let peer = connection.peer();
                let end = End { role, peer, counts, time, paths: &paths };
                // Programs count events, so none is left out.
                match report.json {
                    true => report.finished(&end),
                    false => lines.line(|| report.finished(&end)),
                }
            }
            Err(error) => lines.line(|| eprintln!("anabranch: peer {peer}: {error}")),
        }
    }
}

/// Time until which a connection is waited for.
#[derive(Debug)]
struct Deadline {
    at: Option<Instant>,
    /// Bytes that connections have brought so far.
    moved: u64,
}

impl Deadline {
    /// The time when a ticket expires, if there is one.
    fn of(kept: Option<&Kept>) -> Self {
        let left = kept.map(|kept| kept.ticket.expires.saturating_sub(wall_clock()));
        let at = left.map(|left| Instant::now() + Duration::from_secs(left));
        Deadline { at, moved: 0 }
    }

    /// A connection was lost. If it has brought something, the deadline is at least [`COME_BACK`] away. Connections that
    /// bring nothing do not move it, so that nobody keeps a ticket alive by connecting again and again.
    fn note_loss(&mut self, progress: &Progress) {
        let counts = progress.counts();
        let moved = counts.moved + counts.moved_before;
        if moved > self.moved {
            self.at = self.at.map(|time| time.max(Instant::now() + COME_BACK));
        }
        self.moved = moved;
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}

fn stopped() -> Failure {
    Failure::failed("the sockets were closed")
}

/// Binds the addresses that were given; without any, all addresses, under one port for both families if possible.
fn bind(config: Config, listen: &[String]) -> Result<Endpoint, Failure> {
    if listen.is_empty() {
        let v4 = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let endpoint =
            Endpoint::bind(config, [v4]).map_err(|error| Failure::cannot_listen(v4, &error))?;
        let port = endpoint.local_addrs().first().map_or(0, SocketAddr::port);
        let v6 = |port| SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
        // On a machine without IPv6, only IPv4 is used.
        let _ = endpoint.add_socket(v6(port)).or_else(|_| endpoint.add_socket(v6(0)));
        return Ok(endpoint);
    }
    let mut addresses = Vec::new();
    for text in listen {
        addresses.extend(listening(text)?);
    }
    let endpoint = Endpoint::bind(config, std::iter::empty::<SocketSpec>())
        .map_err(|error| Failure::failed(format!("cannot open sockets: {error}")))?;
    for address in addresses {
        endpoint.add_socket(address).map_err(|error| Failure::cannot_listen(address, &error))?;
    }
    Ok(endpoint)
}

/// Where the endpoint can be reached, best first.
fn addresses(endpoint: &Endpoint) -> Result<Vec<SocketAddr>, Failure> {
    let everywhere = machine::reachable(&machine::interfaces()?);
    let mut found = Vec::new();
    for socket in endpoint.local_addrs() {
        if socket.ip().is_unspecified() {
            let family = everywhere.iter().filter(|ip| ip.is_ipv4() == socket.is_ipv4());
            found.extend(family.map(|ip| SocketAddr::new(*ip, socket.port())));
        } else {
            found.push(socket);
        }
    }
    found.sort_by_key(|address: &SocketAddr| rank(address.ip()));
    found.truncate(MAX_ADDRESSES);
    if found.is_empty() {
        return Err(Failure::failed("this machine has no address that peers can reach"));
    }
    Ok(found)
}

fn rank(ip: IpAddr) -> bool {
    machine::is_private(ip)
}

/// Seconds since 1970, for people and for the validity of tickets when a command starts. While it runs, a monotonic
/// clock decides when its ticket expires.
#[expect(clippy::disallowed_methods, reason = "a ticket names its end in wall-clock time")]
pub(super) fn wall_clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}
