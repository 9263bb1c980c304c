use crate::clock::{Clock, wall_clock};
use crate::connection::{Connection, PathSpec};
use crate::crypto::{NoiseCrypto, SecretKey};
use crate::driver::Driver;
use crate::error::ConnectError;
use crate::shared::{ConnectionState, Phase, Shared};
use crate::socket::{Socket, SocketSpec};
use crate::sockets::Ports;
use crate::telling;
use anabranch_core::config::TransportConfig;
use anabranch_core::crypto::PublicKey;
use anabranch_core::endpoint::{ConnectConfig, EndpointConfig};
use anabranch_core::handshake::{Permitted, ResponderConfig, Schedule};
use anabranch_core::path::PathAddress;
use anabranch_core::profiles::Profile;
use anabranch_types::Rng;
use ring::rand::{SecureRandom, SystemRandom};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// What an endpoint is made from.
#[derive(Clone, Debug)]
pub struct Config {
    /// Its identity.
    pub secret: SecretKey,
    /// Who may connect: nobody, unless changed.
    pub permitted: Permitted,
    /// Profile of the connections it accepts.
    pub profile: Profile,
    /// Limits of its connections.
    pub transport: TransportConfig,
    /// When handshake messages are repeated, and when connecting is given up.
    pub schedule: Schedule,
    /// Most connections at a time.
    pub max_connections: usize,
}

impl Config {
    /// The defaults, with `profile` for accepted connections.
    pub fn new(secret: SecretKey, profile: Profile) -> Self {
        let defaults = EndpointConfig::new(profile);
        Config {
            secret,
            permitted: Permitted::Nobody,
            profile: defaults.profile,
            transport: defaults.transport,
            schedule: defaults.schedule,
            max_connections: defaults.max_connections,
        }
    }

    fn core(self) -> (SecretKey, EndpointConfig) {
        let config = EndpointConfig {
            transport: self.transport,
            responder: ResponderConfig { permitted: self.permitted, ..ResponderConfig::default() },
            schedule: self.schedule,
            max_connections: self.max_connections,
            wall_clock: wall_clock(),
            ..EndpointConfig::new(self.profile)
        };
        (self.secret, config)
    }
}

/// One identity with its sockets: connects, and accepts connections.
///
/// A task of the runtime moves its datagrams. It ends when the endpoint and all its connections have
/// been dropped; until then, dropping the endpoint alone does not end connections.
#[derive(Clone, Debug)]
pub struct Endpoint(Arc<EndpointRef>);

#[derive(Debug)]
struct EndpointRef {
    shared: Arc<Shared>,
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
        let mut seed = [0; 8];
        SystemRandom::new().fill(&mut seed).map_err(|_| no_random(()))?;
        let rng = Rng::new(u64::from_ne_bytes(seed));
        let clock = Clock::start();
        let (secret, config) = config.core();
        let largest = usize::from(config.transport.largest_datagram());
        let crypto = NoiseCrypto::new(secret).map_err(|_| no_random(()))?;
        let core =
            anabranch_core::endpoint::Endpoint::new(config, Box::new(crypto), rng, clock.now());
        let shared = Arc::new(Shared::new(core, Ports::default(), clock));
        let endpoint = Endpoint(Arc::new(EndpointRef { shared: Arc::clone(&shared) }));
        for spec in sockets {
            endpoint.add_socket(spec)?;
        }
        tokio::spawn(Driver::new(shared, largest));
        Ok(endpoint)
    }

    #[cfg(test)]
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    /// Binds a further socket, as when an interface has come up; returns its address.
    pub fn add_socket(&self, spec: impl Into<SocketSpec>) -> io::Result<SocketAddr> {
        let socket = Socket::bind(&spec.into())?;
        let local = socket.local_addr();
        let mut core = self.0.shared.lock();
        let index = core.ports.add(&socket);
        core.new_sockets.push((index, socket));
        core.wake_driver();
        Ok(local)
    }

    /// Binds another socket in the place of the one bound to `old`, as when an interface has come back
    /// under another address; returns its address. Paths of the old socket use the new one; tell them
    /// with [`Connection::move_path`].
    ///
    /// # Errors
    /// If no socket is bound to exactly `old`, or the new one cannot be bound.
    pub fn replace_socket(
        &self,
        old: SocketAddr,
        spec: impl Into<SocketSpec>,
    ) -> io::Result<SocketAddr> {
        let socket = Socket::bind(&spec.into())?;
        let local = socket.local_addr();
        let mut core = self.0.shared.lock();
        let index = core.ports.replace(old, local);
        let index = index.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        core.new_sockets.push((index, socket));
        core.wake_driver();
        Ok(local)
    }

    /// Addresses that the sockets are bound to, in the order they were given.
    pub fn local_addrs(&self) -> Vec<SocketAddr> {
        self.0.shared.lock().ports.local_addrs()
    }

    /// The endpoint's public key, by which peers name it.
    pub fn public_key(&self) -> PublicKey {
        self.0.shared.lock().endpoint.public_key()
    }

    /// Replaces the list of who may connect. Existing connections go on.
    pub fn set_permitted(&self, permitted: Permitted) {
        self.0.shared.lock().endpoint.set_permitted(permitted);
    }

    /// Connects to the holder of `peer` over all `paths` at once; ready when one of them is answered.
    /// Dropping the future gives the attempt up.
    pub async fn connect(
        &self,
        peer: PublicKey,
        paths: &[PathSpec],
        profile: Profile,
    ) -> Result<Connection, ConnectError> {
        let (connection, news) = self.start(peer, paths, profile)?;
        let shared = &self.0.shared;
        let handle = connection.handle();
        loop {
            let notified = news.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            {
                let core = shared.lock();
                match core.connections.get(&handle).map(|state| &state.phase) {
                    Some(Phase::Connecting) if !core.stopped => {}
                    Some(Phase::Open) => break,
                    Some(Phase::Failed) => return Err(ConnectError::NoAnswer),
                    _ => {
                        let error = core.error(handle);
                        drop(core);
                        return error.map_or(Ok(connection), |error| Err(error.into()));
                    }
                }
            }
            notified.await;
        }
        Ok(connection)
    }

    fn start(
        &self,
        peer: PublicKey,
        paths: &[PathSpec],
        profile: Profile,
    ) -> Result<(Connection, Arc<tokio::sync::Notify>), ConnectError> {
        let shared = &self.0.shared;
        let mut core = shared.lock();
        let mut addresses = Vec::with_capacity(paths.len());
        for path in paths {
            let socket = core.ports.of_path(path.local, path.remote);
            let socket = socket.ok_or(ConnectError::NoSocket(path.local))?;
            addresses.push(PathAddress { socket, remote: path.remote });
        }
        let now = shared.clock.now();
        let handle =
            core.endpoint.connect(now, ConnectConfig { peer, paths: addresses, profile })?;
        let span = telling::connection(handle, &peer, "client");
        telling::connecting(&span, paths);
        let state =
            ConnectionState { referenced: true, span, ..ConnectionState::new(Phase::Connecting) };
        let news = Arc::clone(&state.news);
        core.connections.insert(handle, state);
        core.wake_driver();
        drop(core);
        Ok((Connection::new(Arc::clone(shared), handle, peer), news))
    }

    /// The next connection of a permitted peer; `None` once the endpoint is closed.
    pub async fn accept(&self) -> Option<Connection> {
        let shared = &self.0.shared;
        loop {
            let notified = shared.incoming.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            {
                let mut core = shared.lock();
                while let Some(handle) = core.incoming.pop_front() {
                    let peer = core.endpoint.connection(handle).map(|connection| connection.peer());
                    if let Some(peer) = peer {
                        drop(core);
                        return Some(Connection::new(Arc::clone(shared), handle, peer));
                    }
                    // Over before anyone looked.
                    core.state(handle).referenced = false;
                    shared.forget(&mut core, handle);
                }
                if core.refuses || core.stopped {
                    return None;
                }
            }
            notified.await;
        }
    }

    /// Accepts no more connections and closes all there are.
    pub fn close(&self, code: u64, reason: &str) {
        let shared = &self.0.shared;
        let mut core = shared.lock();
        core.refuses = true;
        let now = shared.clock.now();
        let handles: Vec<_> = core.endpoint.handles().collect();
        for handle in handles {
            core.close(handle, now, code, reason);
        }
        shared.incoming.notify_waiters();
    }

    /// Ready when no connection is left, all peers having been told of their end as well as can be.
    pub async fn wait_idle(&self) {
        let shared = &self.0.shared;
        loop {
            let notified = shared.idle.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            {
                let core = shared.lock();
                if core.connections.values().all(|state| state.gone) || core.stopped {
                    return;
                }
            }
            notified.await;
        }
    }
}

impl Drop for EndpointRef {
    fn drop(&mut self) {
        let mut core = self.shared.lock();
        core.refuses = true;
        core.released = true;
        let now = self.shared.clock.now();
        // Connections that nobody took can be taken no more.
        while let Some(handle) = core.incoming.pop_front() {
            core.close(handle, now, 0, "");
            core.state(handle).referenced = false;
            self.shared.forget(&mut core, handle);
        }
        core.wake_driver();
    }
}
