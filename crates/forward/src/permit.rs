use core::fmt;
use core::str::FromStr;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::watch;

use super::place::{Address, Place, SocketPath, is_socket};
use super::target::Target;

/// Lowest port that needs no privileges; those below are for services of the system.
const FIRST_UNPRIVILEGED: u16 = 1024;

/// Permissions that this side gives a peer; none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permits {
    /// Targets that the peer's forwards may lead to.
    pub connect: Vec<Permit>,
    /// Places where the peer may have this side listen.
    pub listen: Vec<Permit>,
    /// Targets that the peer's datagrams may be sent to.
    pub udp: Vec<Permit>,
}

/// Permissions that this side gives a peer. They can be changed while connections are served; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Grant(Arc<watch::Sender<Arc<Permits>>>);

impl From<Arc<Permits>> for Grant {
    fn from(permits: Arc<Permits>) -> Self {
        Grant(Arc::new(watch::Sender::new(permits)))
    }
}

impl Grant {
    /// Permits this from now on. Everything that is open and no longer permitted is ended.
    pub fn set(&self, permits: Permits) {
        self.0.send_replace(Arc::new(permits));
    }

    /// The permissions now in force.
    pub fn permits(&self) -> Arc<Permits> {
        Arc::clone(&self.0.borrow())
    }

    /// Waits until `is_permitted` no longer holds.
    pub(super) async fn revoked(&self, is_permitted: impl Fn(&Permits) -> bool) {
        let mut permits = self.0.subscribe();
        // Never fails: the sender lives as long as `self`.
        let _ = permits.wait_for(|permits| !is_permitted(permits)).await;
    }
}

/// Where a peer's forwards may lead, or where it may listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permit {
    /// This machine's loopback addresses, by address or as `localhost`. For listening, not on ports below 1024.
    Loopback,
    /// Any host and port. Unix sockets are named one by one.
    Any,
    /// This host, as the peer writes it, at this port, or at any port.
    Only(String, Option<u16>),
    /// This Unix socket.
    Socket(SocketPath),
    /// Any Unix socket in this directory, but not in one below it.
    SocketsIn(SocketPath),
    /// Nothing; for lists that must not be empty.
    Nothing,
}

impl Permits {
    /// The addresses of `target` that the peer may be connected to, at least one. A name that the peer may
    /// not use is not resolved.
    ///
    /// # Errors
    /// If the peer may not be connected to any address of `target`, or none is found.
    pub(super) async fn to_connect(&self, target: &Place) -> io::Result<Vec<Address>> {
        let why = format!("{target} is not permitted; the other side's --permit decides");
        match target {
            Place::Port(target) => {
                let found = addresses(target, &self.connect, |_| true, why).await?;
                Ok(found.into_iter().map(Address::Port).collect())
            }
            Place::Socket(path) => {
                let leads =
                    |permit: &Permit| permit.covers_socket(path) && !permit.is_left_by(path);
                Ok(vec![socket(path, &self.connect, leads, why)?])
            }
        }
    }

    /// The addresses of `target` that the peer's datagrams may be sent to, at least one. A name that the peer may
    /// not use is not resolved.
    ///
    /// # Errors
    /// If the peer's datagrams may not be sent to any address of `target`, or none is found.
    pub(super) async fn to_send(&self, target: &Target) -> io::Result<Vec<SocketAddr>> {
        let why =
            format!("UDP to {target} is not permitted; the other side's --permit-udp decides");
        addresses(target, &self.udp, |_| true, why).await
    }

    /// An address to listen on as the peer wants it.
    ///
    /// # Errors
    /// If the peer may not listen there.
    pub(super) async fn to_listen(&self, bind: &Place) -> io::Result<Address> {
        let why = "listening there is not permitted; the other side's --permit-listen decides";
        let why = why.to_owned();
        match bind {
            Place::Port(bind) => {
                let good = |permit: &Permit| permit.may_listen(bind.port);
                let found = addresses(bind, &self.listen, good, why).await?.into_iter().next();
                found.map(Address::Port).ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
            }
            Place::Socket(path) => {
                socket(path, &self.listen, |permit| permit.covers_socket(path), why)
            }
        }
    }

    /// Whether the peer may be connected to `target`, which led to `address`.
    pub(super) fn may_connect(&self, target: &Place, address: &Address) -> bool {
        self.connect.iter().any(|permit| permit.is_for(target, address))
    }

    /// Whether the peer's datagrams to `target`, which led to `address`, may be sent.
    pub(super) fn may_send(&self, target: &Target, address: SocketAddr) -> bool {
        self.udp.iter().any(|permit| permit.covers(target, address))
    }

    /// Whether the peer may have this side listen at `bind`, which led to `address`.
    pub(super) fn may_listen(&self, bind: &Place, address: &Address) -> bool {
        let good = |permit: &Permit| match bind {
            Place::Port(bind) => permit.may_listen(bind.port),
            Place::Socket(_) => true,
        };
        self.listen.iter().any(|permit| good(permit) && permit.is_for(bind, address))
    }
}

/// The file of a Unix socket, if one of `permits` is `good`.
fn socket(
    path: &SocketPath,
    permits: &[Permit],
    good: impl Fn(&Permit) -> bool,
    why: String,
) -> io::Result<Address> {
    if permits.iter().any(good) {
        return Ok(Address::Socket(path.absolute()));
    }
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// The addresses of `target` that are covered by those of `permits` that are `good`.
async fn addresses(
    target: &Target,
    permits: &[Permit],
    good: impl Fn(&Permit) -> bool,
    why: String,
) -> io::Result<Vec<SocketAddr>> {
    let permits: Vec<&Permit> =
        permits.iter().filter(|permit| good(permit) && permit.may_name(target)).collect();
    let refused = || io::Error::new(io::ErrorKind::PermissionDenied, why);
    if permits.is_empty() {
        return Err(refused());
    }
    let found = tokio::net::lookup_host((target.host.as_str(), target.port)).await;
    let found = found.map_err(|error| io::Error::new(io::ErrorKind::NotFound, error))?;
    let covered =
        |address: &SocketAddr| permits.iter().any(|permit| permit.covers(target, *address));
    let found: Vec<SocketAddr> = found.filter(covered).collect();
    if found.is_empty() { Err(refused()) } else { Ok(found) }
}

impl Permit {
    /// Whether the permission can cover listening on this port.
    fn may_listen(&self, port: u16) -> bool {
        *self != Permit::Loopback || port == 0 || port >= FIRST_UNPRIVILEGED
    }

    /// Whether a target of this name can be covered at all, whatever address it resolves to.
    fn may_name(&self, target: &Target) -> bool {
        match self {
            Permit::Any => true,
            Permit::Nothing | Permit::Socket(_) | Permit::SocketsIn(_) => false,
            Permit::Loopback => match target.host.parse::<IpAddr>() {
                Ok(address) => is_loopback(address),
                Err(_) => is_localhost(&target.host),
            },
            Permit::Only(host, port) => {
                is_same_host(host, &target.host) && port.is_none_or(|port| port == target.port)
            }
        }
    }

    /// Whether a forward to `target`, which was resolved to `address`, is covered.
    pub fn covers(&self, target: &Target, address: SocketAddr) -> bool {
        // The address decides: a name can be made to resolve to any address.
        self.may_name(target) && (*self != Permit::Loopback || is_loopback(address.ip()))
    }

    /// Whether forwards to this Unix socket of this machine are covered.
    pub fn covers_socket(&self, path: &SocketPath) -> bool {
        match self {
            Permit::Socket(permitted) => permitted.absolute() == path.absolute(),
            Permit::SocketsIn(directory) => {
                path.absolute().parent() == Some(directory.absolute().as_path())
            }
            _ => false,
        }
    }

    /// Whether the file of this socket is a link out of the permitted directory. A permitted directory covers what is
    /// in it, not what is linked to there; a socket that is permitted by name may be a link.
    fn is_left_by(&self, path: &SocketPath) -> bool {
        let Permit::SocketsIn(directory) = self else { return false };
        let (path, directory) = (path.absolute(), directory.absolute());
        match path.canonicalize() {
            Ok(real) => real.parent() != directory.canonicalize().ok().as_deref(),
            Err(_) => path.is_symlink(),
        }
    }

    /// Whether a place that led to `address` is covered.
    fn is_for(&self, place: &Place, address: &Address) -> bool {
        match (place, address) {
            (Place::Port(target), Address::Port(address)) => self.covers(target, *address),
            (Place::Socket(path), Address::Socket(_)) => self.covers_socket(path),
            _ => false,
        }
    }

    /// The directory of the Unix sockets that it covers, if it covers any.
    pub fn socket_directory(&self) -> Option<PathBuf> {
        match self {
            Permit::Socket(path) => path.absolute().parent().map(PathBuf::from),
            Permit::SocketsIn(directory) => Some(directory.absolute()),
            _ => None,
        }
    }

    /// The permission, with relative paths of sockets taken from `directory`.
    pub fn below(self, directory: &Path) -> Self {
        match self {
            Permit::Socket(path) => Permit::Socket(path.below(directory)),
            Permit::SocketsIn(path) => Permit::SocketsIn(path.below(directory)),
            other => other,
        }
    }
}

impl fmt::Display for Permit {
    /// Text of the permission that [`FromStr`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Permit::Loopback => f.write_str("loopback"),
            Permit::Any => f.write_str("any"),
            Permit::Nothing => f.write_str("none"),
            Permit::Socket(path) => path.fmt(f),
            Permit::SocketsIn(path) => write!(f, "{path}/*"),
            Permit::Only(host, port) => {
                // An IPv6 address stands in brackets.
                let host = if host.contains(':') { &format!("[{host}]") } else { host };
                match port {
                    Some(port) => write!(f, "{host}:{port}"),
                    None => write!(f, "{host}:*"),
                }
            }
        }
    }
}

/// Whether both are the same name, or the same address however it is written.
fn is_same_host(one: &str, other: &str) -> bool {
    let address = |host: &str| host.parse::<IpAddr>().ok();
    one.eq_ignore_ascii_case(other)
        || address(one).is_some_and(|address_of_one| address(other) == Some(address_of_one))
}

/// `localhost` and names below it (RFC 6761 §6.3).
fn is_localhost(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    host.rsplit('.').next().is_some_and(|last| last.eq_ignore_ascii_case("localhost"))
}

/// Whether `address` is a loopback address, also an IPv4 one in IPv6 form.
fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// A permission does not parse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsePermitError(String);

impl fmt::Display for ParsePermitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is not accepted; allowed: loopback, any, none, HOST:PORT, HOST:*, or for Unix sockets a path such as \
             /run/app.sock or /run/app/*",
            self.0
        )
    }
}

impl std::error::Error for ParsePermitError {}

impl FromStr for Permit {
    type Err = ParsePermitError;

    fn from_str(text: &str) -> Result<Self, ParsePermitError> {
        let error = || ParsePermitError(text.to_owned());
        match text {
            "loopback" => Ok(Permit::Loopback),
            "any" => Ok(Permit::Any),
            "none" => Ok(Permit::Nothing),
            _ if is_socket(text) => match text.strip_suffix("/*") {
                Some(directory) => SocketPath::of_directory(directory).map(Permit::SocketsIn),
                None => SocketPath::new(text).map(Permit::Socket),
            }
            .ok_or_else(error),
            _ => match text.strip_suffix(":*") {
                Some(host) => {
                    let target = Target::new(host, 1).ok_or_else(error)?;
                    Ok(Permit::Only(target.host, None))
                }
                None => {
                    let target: Target = text.parse().map_err(|_| error())?;
                    Ok(Permit::Only(target.host, Some(target.port)))
                }
            },
        }
    }
}
