//! The side that is connected to: by the holder of a ticket, or by peers it allows.

use std::future::pending;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anabranch::transfer::ticket::MAX_ADDRESSES;
use anabranch::transfer::{Role, Ticket};
use anabranch::{
    Config, Connection, Endpoint, Permitted, SecretKey, SocketSpec, format_public_key,
};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::args::{CommonArgs, ListenArgs};
use super::error::TransferError;
use super::progress::Progress;
use super::report::Report;
use super::screen::Screen;
use super::session::{self, Side};
use super::setup::{FLUSH, transport};
use crate::catalog::profile;
use crate::failure::Failure;
use crate::interrupt::asked_to_end;
use crate::paths::listening;
use crate::qlog::Qlogs;
use crate::{keys, machine};

/// How long the holder of a ticket may take to come back after a connection was lost.
const COME_BACK: Duration = Duration::from_secs(300);
/// Transfers at a time with allowed peers.
const MAX_SESSIONS: usize = 64;

/// An endpoint that waits to be connected to.
struct Listener {
    endpoint: Endpoint,
    /// Who may connect.
    permitted: Permitted,
    ticket: Option<Ticket>,
}

/// Waits for whoever may connect, and does its part with them.
pub(super) async fn run(
    args: &ListenArgs,
    side: &Side,
    common: &CommonArgs,
    report: Report,
    qlogs: &Qlogs,
) -> Result<(), Failure> {
    let listener = Listener::bind(args, side.role(), common)?;
    match &listener.ticket {
        Some(ticket) => report.ticket(ticket, args.expires)?,
        None => {
            let addresses = listener.endpoint.local_addrs();
            report.listening(&addresses, &listener.endpoint.public_key())?;
        }
    }
    let serving = async {
        if listener.ticket.is_some() || args.once {
            listener.serve_once(args, side, common, report, qlogs).await
        } else {
            listener.serve(side, common, report, qlogs).await
        }
    };
    let standing = listener.ticket.is_none() && !args.once;
    let result = tokio::select! {
        result = serving => result,
        () = asked_to_end() => {
            if standing { Ok(()) } else { Err(TransferError::Interrupted.into()) }
        }
    };
    listener.endpoint.close(0, "");
    // Peers should hear of the end; if they cannot, they will notice.
    let _ = timeout(FLUSH, listener.endpoint.wait_idle()).await;
    result
}

impl Listener {
    fn bind(args: &ListenArgs, role: Role, common: &CommonArgs) -> Result<Self, Failure> {
        let key = match &args.key {
            Some(_) if args.allow.is_empty() => {
                return Err(Failure::usage(
                    "--key needs --allow PUBKEY, to say who may connect; without --key there is a \
                     ticket instead",
                ));
            }
            Some(path) => keys::load(path)?,
            // Nobody but the holder of the ticket ever learns the public key of this one.
            None => SecretKey::generate().map_err(Failure::failed)?,
        };
        let config = Config {
            transport: transport(common.timeout),
            ..Config::new(key, profile(&common.profile, &[])?)
        };
        let endpoint = bind(config, &args.listen)?;
        let (ticket, permitted) = if args.allow.is_empty() {
            let expires = wall_clock().saturating_add(args.expires.as_secs());
            let addresses = addresses(&endpoint)?;
            let ticket = Ticket::new(role, endpoint.public_key(), expires, addresses);
            let ticket = ticket.map_err(Failure::failed)?;
            let holder = ticket.holder().public_key();
            (Some(ticket), Permitted::Only([holder].into()))
        } else {
            (None, Permitted::Only(args.allow.iter().copied().collect()))
        };
        endpoint.set_permitted(permitted.clone());
        Ok(Listener { endpoint, permitted, ticket })
    }

    async fn accept(&self, qlogs: &Qlogs) -> Result<Connection, Failure> {
        let connection = self.endpoint.accept().await.ok_or_else(stopped)?;
        qlogs.follow(&connection, "server");
        Ok(connection)
    }

    /// One transfer, over as many connections as it takes.
    #[expect(clippy::too_many_arguments, reason = "what the command line chose, part by part")]
    async fn serve_once(
        &self,
        args: &ListenArgs,
        side: &Side,
        common: &CommonArgs,
        report: Report,
        qlogs: &Qlogs,
    ) -> Result<(), Failure> {
        let mut deadline = self.ticket.as_ref().map(|_| Instant::now() + args.expires);
        let (mut bound, mut started, progress) = (None, None, Arc::default());
        loop {
            let connection = tokio::select! {
                connection = self.accept(qlogs) => connection?,
                () = until(deadline) => {
                    return Err(Failure::unreached("nobody used the ticket before it expired"));
                }
            };
            // One at a time; whoever else comes hears nothing.
            self.endpoint.set_permitted(Permitted::Nobody);
            let started = *started.get_or_insert_with(Instant::now);
            let result = serve_connection(&connection, side, &mut bound, &progress, common).await;
            match result {
                Ok(()) => {
                    report.finished(side.role(), &connection, progress.counts(), started.elapsed());
                    return Ok(());
                }
                Err(error @ TransferError::Lost(_)) if side.can_go_on() => {
                    eprintln!("anabranch: {error}; waiting for the other side to come back");
                    deadline = deadline.map(|time| time.max(Instant::now() + COME_BACK));
                    self.endpoint.set_permitted(self.permitted.clone());
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Transfers with allowed peers, one after another and at the same time, until interrupted.
    async fn serve(
        &self,
        side: &Side,
        common: &CommonArgs,
        report: Report,
        qlogs: &Qlogs,
    ) -> Result<(), Failure> {
        let mut sessions = JoinSet::new();
        loop {
            tokio::select! {
                connection = self.accept(qlogs), if sessions.len() < MAX_SESSIONS => {
                    let connection = connection?;
                    let (side, common) = (side.clone(), common.clone());
                    sessions.spawn(async move {
                        let peer = format_public_key(&connection.peer());
                        let (progress, started) = (Arc::default(), Instant::now());
                        let (role, mut bound) = (side.role(), None);
                        let result =
                            serve_connection(&connection, &side, &mut bound, &progress, &common);
                        match result.await {
                            Ok(()) => report.finished(
                                role,
                                &connection,
                                progress.counts(),
                                started.elapsed(),
                            ),
                            Err(error) => eprintln!("anabranch: peer {peer}: {error}"),
                        }
                    });
                }
                Some(_) = sessions.join_next() => {}
            }
        }
    }
}

async fn serve_connection(
    connection: &Connection,
    side: &Side,
    bound: &mut Option<[u8; 32]>,
    progress: &Arc<Progress>,
    common: &CommonArgs,
) -> Result<(), TransferError> {
    progress.begin(0, 0);
    let _screen = Screen::open(connection, side.role(), progress, common.quiet);
    session::run(connection, false, side, bound, progress).await
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

/// Binds what was asked for; without a wish, every address, under one port for both families.
fn bind(config: Config, listen: &[String]) -> Result<Endpoint, Failure> {
    if listen.is_empty() {
        let v4 = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let endpoint =
            Endpoint::bind(config, [v4]).map_err(|error| Failure::cannot_listen(v4, &error))?;
        let port = endpoint.local_addrs().first().map_or(0, SocketAddr::port);
        let v6 = |port| SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
        // A machine without IPv6 does without.
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
        return Err(Failure::failed("this machine has no address to be reached at"));
    }
    Ok(found)
}

fn rank(ip: IpAddr) -> bool {
    machine::is_private(ip)
}

/// Seconds since 1970, for people and for the ticket; whether it has expired is not decided by it.
#[expect(clippy::disallowed_methods, reason = "a ticket names its end in wall-clock time")]
fn wall_clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}
