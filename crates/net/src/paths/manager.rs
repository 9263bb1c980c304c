use core::time::Duration;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};

use anabranch_core::connection::PathStats;
use anabranch_core::crypto::PublicKey;
use anabranch_core::profiles::Profile;
use anabranch_policy::view::PathState;
use anabranch_types::PathId;
use tracing::{debug, warn};

use super::destinations::chosen;
use super::named::Naming;
use super::request::{LocalRequest, PathRequest, PathUsage};
use crate::connection::{Connection, PathSpec, WeakConnection};
use crate::endpoint::Endpoint;
use crate::error::ConnectError;
use crate::interfaces::{self, Interface, Watch};
use crate::socket::SocketSpec;

/// Interval at which what failed is tried again, and the use of metered paths is reconsidered.
const TICK: Duration = Duration::from_millis(250);
/// Ticks for which a path that is not metered must have worked again before a metered one is closed.
const METERED_REST: u32 = 40;

/// Paths to connect over at first, at most: every connection allows this many.
const MOST_FIRST: usize = 8;

/// One path on one interface: the number of its request, the interface's name, and the number of the destination.
type Key = (usize, String, usize);

/// The current local end of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LocalEndpoint {
    address: IpAddr,
    index: u32,
    device: Option<String>,
    remote: SocketAddr,
    usage: PathUsage,
}

/// A path that has been opened at least once.
#[derive(Debug)]
struct ManagedPath {
    from: LocalEndpoint,
    /// Address that the path's socket is bound to.
    local: SocketAddr,
    path: Option<PathId>,
}

/// Keeps a connection's paths in line with the machine's interfaces for as long as it lives.
#[derive(Debug)]
pub(crate) struct Manager {
    endpoint: Endpoint,
    remote: SocketAddr,
    requests: Vec<PathRequest>,
    managed: BTreeMap<Key, ManagedPath>,
    /// Ticks for which a path that is not metered has worked.
    steady: u32,
}

impl Manager {
    pub(crate) fn new(endpoint: Endpoint, remote: SocketAddr, requests: Vec<PathRequest>) -> Self {
        Manager { endpoint, remote, requests, managed: BTreeMap::new(), steady: 0 }
    }

    /// Connects as [`ConnectPaths::Managed`](super::ConnectPaths::Managed) says.
    ///
    /// # Errors
    /// As connecting over fixed paths, except for [`ConnectError::NoAnswer`], after which it tries again.
    pub(crate) async fn connect(
        mut self,
        peer: PublicKey,
        profile: Profile,
    ) -> Result<Connection, ConnectError> {
        let mut watch = Watch::new();
        loop {
            let specs = self.prepare();
            if specs.is_empty() {
                let _ = tokio::time::timeout(TICK, watch.changed()).await;
                continue;
            }
            let attempt = self.endpoint.connect_fixed(peer, &specs, profile.clone());
            let outcome = tokio::select! {
                outcome = attempt => outcome,
                () = self.news(&mut watch) => continue,
            };
            match outcome {
                Ok(connection) => {
                    self.connected(&connection);
                    tokio::spawn(self.keep(connection.downgrade(), watch));
                    return Ok(connection);
                }
                Err(ConnectError::NoAnswer) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Where the requested paths can begin now. With `metered`, metered ones too.
    fn local_endpoints(&self, list: &[Interface], metered: bool) -> BTreeMap<Key, LocalEndpoint> {
        let mut endpoints = BTreeMap::new();
        for (number, request) in self.requests.iter().enumerate() {
            if request.usage == PathUsage::Metered && !metered {
                continue;
            }
            for interface in list {
                for (nth, from) in self.beginnings(request, interface) {
                    endpoints.insert((number, interface.name.clone(), nth), from);
                }
            }
        }
        endpoints
    }

    /// Where a request's paths can begin on an interface, by the number of their destination.
    fn beginnings(
        &self,
        request: &PathRequest,
        interface: &Interface,
    ) -> Vec<(usize, LocalEndpoint)> {
        let usual = [request.remote.unwrap_or(self.remote)];
        let remotes = if request.choice.is_empty() { &usual[..] } else { &request.choice };
        let begin = |(nth, remote): (usize, &SocketAddr)| {
            let address = request.source(interface, remote.ip())?;
            let by_address = matches!(request.local, LocalRequest::Address(_));
            let device = (!by_address && !interface.loopback).then(|| interface.name.clone());
            let (index, usage, remote) = (interface.index, request.usage, *remote);
            let from = LocalEndpoint { address, index, device, remote, usage };
            let leads = request.local != LocalRequest::Any || leads_to(&from, remote);
            leads.then_some((nth, from))
        };
        let mut found: Vec<_> = remotes.iter().enumerate().filter_map(begin).collect();
        if !request.choice.is_empty() {
            let routed: Vec<_> =
                found.iter().map(|(_, from)| (from.address, from.remote)).collect();
            let chosen = chosen(&routed);
            let mut place = 0..;
            found.retain(|_| place.next().is_some_and(|place| chosen.contains(&place)));
        }
        found
    }

    /// Where paths to connect over begin, up to [`MOST_FIRST`] of them: metered ones only if no other is available.
    fn first_endpoints(&self) -> BTreeMap<Key, LocalEndpoint> {
        let list = interfaces::list().unwrap_or_default();
        let endpoints = self.local_endpoints(&list, false);
        let first =
            if endpoints.is_empty() { self.local_endpoints(&list, true) } else { endpoints };
        // Others are added later, as far as the connection allows.
        first.into_iter().take(MOST_FIRST).collect()
    }

    /// Binds sockets for the paths to connect over.
    fn prepare(&mut self) -> Vec<PathSpec> {
        let endpoints = self.first_endpoints();
        self.managed.retain(|key, _| endpoints.contains_key(key));
        for (key, from) in endpoints {
            self.open(key, from);
        }
        let specs = self.managed.values().map(ManagedPath::spec);
        specs.collect()
    }

    /// Waits until the local endpoints to connect from differ from those being tried.
    async fn news(&self, watch: &mut Watch) {
        loop {
            watch.changed().await;
            let endpoints = self.first_endpoints();
            let same = endpoints.len() == self.managed.len()
                && endpoints.iter().all(|(key, from)| {
                    self.managed.get(key).is_some_and(|managed| managed.from == *from)
                });
            if !same {
                return;
            }
        }
    }

    /// The connection numbers its first paths in the order in which they were given.
    fn connected(&mut self, connection: &Connection) {
        for (number, (key, managed)) in self.managed.iter_mut().enumerate() {
            let path = PathId(number as u32);
            managed.path = Some(path);
            connection.name_path(path, naming(&self.requests, key, &managed.from));
            control(connection, path, &self.requests, key);
            if managed.from.usage == PathUsage::Backup {
                connection.set_backup(path, true);
            }
        }
    }

    /// Gives a path a socket at its local endpoint; false if that cannot be bound at present.
    fn open(&mut self, key: Key, from: LocalEndpoint) -> bool {
        let bound = match self.managed.get(&key) {
            Some(managed) if managed.from == from && managed.path.is_some() => return true,
            Some(managed) => bind(&from, |spec| self.endpoint.replace_socket(managed.local, spec)),
            None => bind(&from, |spec| self.endpoint.add_socket(spec)),
        };
        let local = match bound {
            Ok(local) => local,
            Err(error) => {
                debug!(interface = key.1, address = %from.address, %error, "no socket for a path");
                return false;
            }
        };
        let path = self.managed.get(&key).and_then(|managed| managed.path);
        self.managed.insert(key, ManagedPath { from, local, path });
        true
    }

    /// Keeps the paths in line with the interfaces until the connection is over.
    async fn keep(mut self, connection: WeakConnection, mut watch: Watch) {
        let mut seen = 0;
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let mut ticked = false;
            tokio::select! {
                () = watch.changed() => {}
                changes = connection.path_changes(seen) => match changes {
                    Some(changes) => seen = changes,
                    None => return,
                },
                _ = tick.tick() => ticked = true,
            }
            let Some(connection) = connection.upgrade() else { return };
            if ticked {
                self.steady = if self.works(&connection) { self.steady + 1 } else { 0 };
            }
            self.reconcile(&connection);
        }
    }

    /// Whether a path that is not metered is in use.
    fn works(&self, connection: &Connection) -> bool {
        let stats = connection.stats();
        let paths = stats.iter().flat_map(|stats| &stats.paths);
        let in_use = |state| matches!(state, PathState::Active | PathState::Probation);
        let carries = |path: &&PathStats| in_use(path.state) && !path.silent;
        let mut usable = paths.filter(carries).map(|path| path.id);
        usable.any(|id| {
            let managed = self.managed.values().find(|managed| managed.path == Some(id));
            managed.is_some_and(|managed| managed.from.usage != PathUsage::Metered)
        })
    }

    fn reconcile(&mut self, connection: &Connection) {
        let carrying = self
            .managed
            .values()
            .any(|managed| managed.from.usage == PathUsage::Metered && managed.path.is_some());
        let rested = self.steady >= METERED_REST;
        let metered = !self.works(connection) || (carrying && !rested);
        // If the interfaces cannot be listed, nothing is changed.
        let Ok(list) = interfaces::list() else { return };
        let endpoints = self.local_endpoints(&list, metered);
        for (key, managed) in &mut self.managed {
            if !endpoints.contains_key(key)
                && let Some(path) = managed.path.take()
            {
                connection.remove_path(path);
            }
        }
        for (key, from) in endpoints {
            self.follow(connection, key, from);
        }
    }

    /// Opens one path at its local endpoint, or moves it there.
    fn follow(&mut self, connection: &Connection, key: Key, from: LocalEndpoint) {
        let backup = from.usage == PathUsage::Backup;
        let moved = self.managed.get(&key).is_some_and(|managed| managed.from != from);
        if !self.open(key.clone(), from) {
            return;
        }
        let Some(managed) = self.managed.get_mut(&key) else { return };
        match managed.path {
            Some(path) if moved => {
                let _ = connection.move_path(path, managed.spec());
            }
            Some(_) => {}
            // This fails while the peer still remembers too many paths, or has no connection id for
            // another yet. The next tick tries again.
            None => {
                managed.path = connection.add_path(managed.spec()).ok();
                if let Some(path) = managed.path {
                    connection.name_path(path, naming(&self.requests, &key, &managed.from));
                    control(connection, path, &self.requests, &key);
                }
            }
        }
        if let (Some(path), true) = (managed.path, backup) {
            connection.set_backup(path, true);
        }
    }
}

/// Gives a path the congestion control that was asked for with it.
fn control(connection: &Connection, path: PathId, requests: &[PathRequest], key: &Key) {
    if let Some(policy) = requests.get(key.0).and_then(|request| request.congestion.as_ref())
        && let Err(error) = connection.set_congestion(path, policy)
    {
        warn!(%path, %error, "the path keeps the profile's congestion control");
    }
}

/// Name of a path: the requested one, or else that of its interface.
fn naming(requests: &[PathRequest], key: &Key, from: &LocalEndpoint) -> Naming {
    let (request, interface, nth) = key;
    let own = requests.get(*request).and_then(|request| request.name.clone());
    Naming {
        key: format!("{request}/{interface}/{nth}"),
        name: own.unwrap_or_else(|| interface.clone()),
        detail: from.remote.ip().to_string(),
        usage: from.usage,
    }
}

impl ManagedPath {
    fn spec(&self) -> PathSpec {
        PathSpec { local: self.local, remote: self.from.remote }
    }
}

/// Binds a socket for a local endpoint. It is bound to the interface if the system supports and
/// permits that, so that packets leave there even if the routing table prefers another interface.
fn bind(
    from: &LocalEndpoint,
    mut with: impl FnMut(SocketSpec) -> io::Result<SocketAddr>,
) -> io::Result<SocketAddr> {
    let local = SocketAddr::new(from.address, 0);
    if from.device.is_some() {
        match with(SocketSpec { local, device: from.device.clone() }) {
            Err(error) if is_refusal(error.kind()) => {}
            other => return other,
        }
    }
    with(local.into())
}

/// Whether the system refuses to bind any socket to an interface. Then binding to the address has
/// to suffice.
fn is_refusal(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported)
}

/// Whether the routing table knows a way from the local endpoint to `remote`: a connected UDP socket tells
/// without sending anything.
fn leads_to(from: &LocalEndpoint, remote: SocketAddr) -> bool {
    let connect = || -> io::Result<()> {
        let domain = socket2::Domain::for_address(remote);
        let socket = socket2::Socket::new(domain, socket2::Type::DGRAM, None)?;
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(device) = &from.device
            && let Err(error) = socket.bind_device(Some(device.as_bytes()))
            && !is_refusal(error.kind())
        {
            return Err(error);
        }
        socket.bind(&SocketAddr::new(from.address, 0).into())?;
        socket.connect(&remote.into())
    };
    connect().is_ok()
}

#[cfg(test)]
mod tests;
