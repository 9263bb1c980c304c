use crate::clock::{Clock, wall_clock};
use crate::connection::{Connection, PathSpec};
use crate::crypto::{KeyLog, NoiseCrypto, PresharedKey, PresharedKeys, SecretKey};
use crate::driver::Driver;
use crate::error::ConnectError;
use crate::incoming::Incoming;
use crate::log;
use crate::paths::{ConnectPaths, Manager};
use crate::shared::{ConnectionState, Phase, Shared};
use crate::socket::{Socket, SocketSpec};
use anabranch_core::config::TransportConfig;
use anabranch_core::crypto::PublicKey;
use anabranch_core::endpoint::{AcceptConfig, ConnectConfig, EndpointConfig, Router};
use anabranch_core::handshake::{Permitted, ResponderConfig, Schedule};
use anabranch_core::path::PathAddress;
use anabranch_core::profiles::Profile;
use core::fmt;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// Configuration of an endpoint.
#[derive(Clone, Debug)]
pub struct Config {
    /// Identity of the endpoint.
    pub secret: SecretKey,
    /// Secrets shared with some peers beside the static keys: handshakes with these peers fail unless both sides have
    /// the same secret.
    pub preshared: BTreeMap<PublicKey, PresharedKey>,
    /// Peers that may connect: nobody, unless changed.
    pub permitted: Permitted,
    /// Profile of the endpoint's connections, accepted and opened ones.
    pub profile: Profile,
    /// Limits of the endpoint's connections.
    pub transport: TransportConfig,
    /// When handshake messages are repeated, and when connecting is given up.
    pub schedule: Schedule,
    /// Most connections at a time.
    pub max_connections: usize,
    /// Most accepted connections with the holder of a single key; never more than half of `max_connections`.
    pub max_per_peer: usize,
    /// Bytes of memory that all connections share. The connections with one peer may together hold as much as is
    /// left; if they hold more, the largest of them is closed. Data that the application has read, or has not written
    /// yet, is not counted.
    pub memory: u64,
    /// Where the keys of its connections are written, so that packet captures can be decrypted; by default nowhere.
    pub key_log: Option<KeyLog>,
}

impl Config {
    /// The defaults: nobody may connect.
    pub fn new(secret: SecretKey) -> Self {
        let defaults = EndpointConfig::new(Profile::default());
        Config {
            secret,
            preshared: BTreeMap::new(),
            permitted: Permitted::Nobody,
            profile: defaults.profile,
            transport: defaults.transport,
            schedule: defaults.schedule,
            max_connections: defaults.max_connections,
            max_per_peer: defaults.max_per_peer,
            memory: defaults.memory,
            key_log: None,
        }
    }

    fn core(self) -> EndpointConfig {
        EndpointConfig {
            transport: TransportConfig { notice_silence: true, ..self.transport },
            responder: ResponderConfig { permitted: self.permitted, ..ResponderConfig::default() },
            schedule: self.schedule,
            max_connections: self.max_connections,
            max_per_peer: self.max_per_peer,
            memory: self.memory,
            wall_clock: wall_clock(),
            ..EndpointConfig::new(self.profile)
        }
    }
}

/// One identity with its sockets: connects, and accepts connections.
///
/// A task of the runtime moves its datagrams. It ends when the endpoint and all its connections have
/// been dropped; until then, dropping the endpoint alone does not end connections.
#[derive(Clone)]
pub struct Endpoint(Arc<EndpointRef>);

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let local = self.local_addrs();
        f.debug_struct("Endpoint").field("local_addrs", &local).finish_non_exhaustive()
    }
}

struct EndpointRef {
    shared: Arc<Shared>,
    preshared: PresharedKeys,
}

impl Endpoint {
    /// Binds the sockets and starts the endpoint's task.
    ///
    /// # Errors
    /// If a socket cannot be bound or the system gives no random numbers.
    ///
    /// # Panics
    /// Outside a tokio runtime, or in one without its I/O and time drivers.
    pub fn bind(
        config: Config,
        sockets: impl IntoIterator<Item = impl Into<SocketSpec>>,
    ) -> io::Result<Self> {
        let no_random = |_| io::Error::other("the system gives no random numbers");
        let clock = Clock::start();
        let crypto = NoiseCrypto::new(config.secret.clone()).map_err(|_| no_random(()))?;
        let mut crypto = crypto.with_preshared(config.preshared.clone());
        if let Some(log) = config.key_log.clone() {
            crypto = crypto.with_key_log(log);
        }
        let preshared = crypto.preshared();
        let config = config.core();
        let (profile, transport) = (config.profile.clone(), config.transport.clone());
        let largest = usize::from(config.transport.largest_datagram());
        let router = Router::new(config, Box::new(crypto), clock.now());
        let accept_config = AcceptConfig { profile, transport };
        let shared = Arc::new(Shared::new(router, clock, accept_config));
        let endpoint = Endpoint(Arc::new(EndpointRef { shared: Arc::clone(&shared), preshared }));
        for spec in sockets {
            endpoint.add_socket(spec)?;
        }
        tokio::spawn(Driver::new(shared, largest));
        Ok(endpoint)
    }

    /// Starts an endpoint that only connects. Its sockets are bound as the paths to the peer need them.
    ///
    /// # Errors
    /// If the system gives no random numbers.
    ///
    /// # Panics
    /// As [`bind`](Self::bind).
    pub fn client(config: Config) -> io::Result<Self> {
        Endpoint::bind(config, core::iter::empty::<SocketSpec>())
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    /// Binds a further socket, as when an interface has come up; returns its address.
    pub fn add_socket(&self, spec: impl Into<SocketSpec>) -> io::Result<SocketAddr> {
        let shared = &self.0.shared;
        let socket = Arc::new(Socket::bind(&spec.into())?);
        let local = socket.local_addr();
        let index = shared.sockets.add(Arc::clone(&socket));
        shared.lock().new_sockets.push((index, socket));
        shared.mailbox.ring();
        Ok(local)
    }

    /// Binds another socket in the place of the one bound to `old`, as when an interface has come back under another
    /// address; returns its address. Paths of the old socket use the new one from then on; tell the connections with
    /// [`Connection::move_path`].
    ///
    /// # Errors
    /// If no socket is bound to exactly `old`, or the new one cannot be bound.
    pub fn replace_socket(
        &self,
        old: SocketAddr,
        spec: impl Into<SocketSpec>,
    ) -> io::Result<SocketAddr> {
        let shared = &self.0.shared;
        let socket = Arc::new(Socket::bind(&spec.into())?);
        let local = socket.local_addr();
        let index = shared.sockets.replace(old, Arc::clone(&socket));
        let index = index.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        shared.lock().new_sockets.push((index, socket));
        shared.mailbox.ring();
        Ok(local)
    }

    /// Addresses that the sockets are bound to, in the order they were given.
    pub fn local_addrs(&self) -> Vec<SocketAddr> {
        self.0.shared.sockets.local_addrs()
    }

    /// The endpoint's public key, by which peers name it.
    pub fn public_key(&self) -> PublicKey {
        self.0.shared.lock().router.public_key()
    }

    /// How often a peer that is being connected to has answered that it is busy, so that waiting longer is
    /// worthwhile. Anyone who knows the peer's public key can send that answer.
    pub fn times_busy(&self) -> u64 {
        self.0.shared.lock().router.cookies_taken()
    }

    /// Replaces the list of who may connect. Existing connections go on.
    pub fn set_permitted(&self, permitted: Permitted) {
        self.0.shared.lock().router.set_permitted(permitted);
    }

    /// Replaces the secrets that are shared with peers. Existing connections go on with those that they began with.
    pub fn set_preshared(&self, preshared: BTreeMap<PublicKey, PresharedKey>) {
        self.0.preshared.replace(preshared);
    }

    /// Connects to the holder of `peer`; returns when it answers on one of the paths. Dropping the future
    /// gives up the attempt.
    ///
    /// With nothing but the peer's address, the connection goes over every interface that leads there, and
    /// follows them as they come, change their address and go; [`ConnectPaths`] says what else can be asked for.
    pub async fn connect(
        &self,
        peer: PublicKey,
        over: impl Into<ConnectPaths>,
    ) -> Result<Connection, ConnectError> {
        self.connect_with(peer, over, self.0.shared.accept_config.profile.clone()).await
    }

    /// Connects as [`connect`](Self::connect) does, with another profile than the endpoint's.
    pub async fn connect_with(
        &self,
        peer: PublicKey,
        over: impl Into<ConnectPaths>,
        profile: Profile,
    ) -> Result<Connection, ConnectError> {
        match over.into() {
            ConnectPaths::Fixed(paths) => self.connect_fixed(peer, &paths, profile).await,
            ConnectPaths::Managed { remote, requests } => {
                let manager = Manager::new(self.clone(), remote, requests);
                manager.connect(peer, profile).await
            }
        }
    }

    /// Connects over all `paths` at once.
    pub(crate) async fn connect_fixed(
        &self,
        peer: PublicKey,
        paths: &[PathSpec],
        profile: Profile,
    ) -> Result<Connection, ConnectError> {
        let connection = self.start(peer, paths, profile)?;
        let shared = connection.shared();
        let answer =
            shared.until(&shared.wait.phase, |state| match (&state.phase, state.error()) {
                (Phase::Failed, _) => Some(Err(ConnectError::NoAnswer)),
                (_, Some(error)) => Some(Err(error.into())),
                (Phase::Connecting, None) => None,
                _ => Some(Ok(())),
            });
        answer.await.map(|()| connection.clone())
    }

    fn start(
        &self,
        peer: PublicKey,
        paths: &[PathSpec],
        profile: Profile,
    ) -> Result<Connection, ConnectError> {
        let shared = &self.0.shared;
        let mut addresses = Vec::with_capacity(paths.len());
        for path in paths {
            let socket = shared.sockets.of_path(path.local, path.remote);
            let socket = socket.ok_or(ConnectError::NoSocket(path.local))?;
            addresses.push(PathAddress { socket, remote: path.remote });
        }
        let now = shared.clock.now();
        let mut endpoint = shared.lock();
        endpoint.router.set_wall_clock(now, wall_clock());
        let handle =
            endpoint.router.connect(now, ConnectConfig { peer, paths: addresses, profile })?;
        let voice = shared.voice(handle, &peer, "client");
        log::connecting(&voice, paths);
        let mut state = ConnectionState::new(Phase::Connecting);
        (state.referenced, state.voice) = (true, Some(voice));
        let connection = shared.insert(&mut endpoint, handle, state);
        let stopped = endpoint.stopped;
        drop(endpoint);
        if stopped {
            connection.stop();
        }
        shared.mailbox.ring();
        Ok(Connection::new(connection, peer))
    }

    /// Waits for the next permitted peer that asks for a connection; `None` once the endpoint is closed.
    /// Awaiting the result accepts the peer: see [`Incoming`].
    pub async fn accept(&self) -> Option<Incoming> {
        let shared = &self.0.shared;
        loop {
            let notified = shared.incoming.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            if let Some(asked) = shared.next_incoming() {
                return Some(Incoming::new(self.clone(), asked));
            }
            {
                let endpoint = shared.lock();
                if endpoint.refuses || endpoint.stopped {
                    return None;
                }
            }
            notified.await;
        }
    }

    /// Accepts no more connections and closes all existing ones.
    pub fn close(&self, code: u64, reason: &str) {
        let shared = &self.0.shared;
        shared.lock().refuses = true;
        let now = shared.clock.now();
        for connection in shared.connections() {
            connection.close(now, code, reason);
        }
        while let Some(asked) = shared.next_incoming() {
            shared.refuse(&asked);
        }
        shared.incoming.notify_waiters();
    }

    /// Waits until no connection is left. By then the peers have been told of the ends, as far as
    /// possible.
    pub async fn wait_idle(&self) {
        let shared = &self.0.shared;
        loop {
            let notified = shared.idle.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            {
                let endpoint = shared.lock();
                if endpoint.live == 0 || endpoint.stopped {
                    return;
                }
            }
            notified.await;
        }
    }
}

impl Drop for EndpointRef {
    fn drop(&mut self) {
        let shared = &self.shared;
        {
            let mut endpoint = shared.lock();
            endpoint.refuses = true;
            endpoint.released = true;
        }
        // Nobody can accept the waiting peers any more.
        while let Some(asked) = shared.next_incoming() {
            shared.refuse(&asked);
        }
        shared.mailbox.ring();
    }
}
