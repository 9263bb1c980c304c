use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use anabranch_sim::link::LinkConfigError;
use anabranch_types::Time;
use thiserror::Error;

use crate::clock::Clock;
use crate::direction::Direction;
use crate::path::PathConfig;
use crate::socket::Socket;
use crate::stats::{PathStats, RelayStats};
use crate::worker::{PathSockets, Worker};

/// A running relay. It stops, and its thread is joined, when this is dropped.
///
/// One thread carries every path. What the relay holds is bounded by the links' buffers and by what
/// their rates put on the wire during their delays.
#[derive(Debug)]
pub struct Relay {
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    /// Closing this end wakes and ends the thread.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

/// Why a relay could not start.
#[derive(Debug, Error)]
pub enum RelayError {
    /// No path was given.
    #[error("at least one path is needed")]
    NoPath,
    /// Two paths have the same name; they would lose the same packets.
    #[error("two paths are called '{0}'")]
    DuplicateName(String),
    /// The receiver is not at an IPv4 loopback address.
    #[error("the receiver must be on 127.0.0.0/8, not at {0}")]
    ReceiverNotLoopback(SocketAddr),
    /// A link's description is out of range.
    #[error("path '{path}': {why}")]
    Link {
        /// The path's name.
        path: String,
        /// What is wrong.
        why: LinkConfigError,
    },
    /// A socket or the thread could not be made.
    #[error("the relay's sockets: {0}")]
    Io(#[from] io::Error),
}

/// What the thread and the handle share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    paths: Mutex<Paths>,
}

#[derive(Debug)]
pub(crate) struct Paths {
    pub(crate) first_datagram: Option<Time>,
    pub(crate) paths: Vec<Path>,
}

#[derive(Debug)]
pub(crate) struct Path {
    name: String,
    pub(crate) forward: Direction,
    pub(crate) reverse: Direction,
    /// Where replies go: the sender's latest address.
    pub(crate) client: Option<SocketAddr>,
}

impl Shared {
    /// Nothing under the lock can panic half-way through an update that matters, so a poisoned lock
    /// is used all the same.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Paths> {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Relay {
    /// Starts relaying towards `receiver`, with random draws under `seed`.
    ///
    /// Path `NAME` draws from the substreams `link.NAME.forward.…` and `link.NAME.reverse.…`.
    ///
    /// # Errors
    /// See [`RelayError`].
    pub fn start(
        paths: &[PathConfig],
        receiver: SocketAddr,
        seed: u64,
    ) -> Result<Self, RelayError> {
        if paths.is_empty() {
            return Err(RelayError::NoPath);
        }
        if !(receiver.is_ipv4() && receiver.ip().is_loopback()) {
            return Err(RelayError::ReceiverNotLoopback(receiver));
        }
        let mut made: Vec<Path> = Vec::with_capacity(paths.len());
        let mut sockets = Vec::with_capacity(paths.len());
        for (index, config) in paths.iter().enumerate() {
            let path = Path::new(config, index, seed)?;
            if made.iter().any(|other| other.name == path.name) {
                return Err(RelayError::DuplicateName(path.name));
            }
            made.push(path);
            sockets.push(PathSockets { client: Socket::bind()?, receiver: Socket::bind()? });
        }
        let addresses = sockets.iter().map(|path| path.client.address).collect();
        let (stop, stopped) = UnixStream::pair()?;
        let shared = Arc::new(Shared {
            clock: Clock::start(),
            paths: Mutex::new(Paths { first_datagram: None, paths: made }),
        });
        let worker = Worker::new(Arc::clone(&shared), receiver);
        let thread = thread::Builder::new()
            .name("anabranch-relay".to_owned())
            .spawn(move || worker.run(&sockets, &stopped))?;
        Ok(Relay { shared, addresses, stop: Some(stop), thread: Some(thread) })
    }

    /// Where the sender must send for each path, in the order the paths were given.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The time since the relay started, on which its links live.
    pub fn now(&self) -> Time {
        self.shared.clock.now()
    }

    /// Whether the relay still works. It stops early only when the system refuses to read a socket.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Counters of both directions of every path, with the capacity since the first datagram.
    pub fn stats(&self) -> RelayStats {
        let mut paths = self.shared.lock();
        let now = self.shared.clock.now();
        RelayStats {
            now,
            first_datagram: paths.first_datagram,
            paths: paths.paths.iter_mut().map(|path| path.stats(now)).collect(),
        }
    }

    /// Bits that all forward links together could have delivered in `[from, to)`,
    /// Σ ∫ rate·(1 − loss) dt.
    pub fn forward_capacity_bits(&self, from: Time, to: Time) -> f64 {
        self.shared.lock().paths.iter().map(|path| path.forward.capacity_bits(from, to)).sum()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported when it happened.
            thread.join().ok();
        }
    }
}

impl Path {
    fn new(config: &PathConfig, index: usize, seed: u64) -> Result<Self, RelayError> {
        let name = match config.forward.name.as_str() {
            "" => format!("path{index}"),
            name => name.to_owned(),
        };
        let direction = |link, way| {
            Direction::new(link, seed, &format!("{name}.{way}"))
                .map_err(|why| RelayError::Link { path: name.clone(), why })
        };
        let forward = direction(&config.forward, "forward")?;
        let reverse = direction(&config.reverse, "reverse")?;
        Ok(Path { forward, reverse, client: None, name })
    }

    fn stats(&mut self, now: Time) -> PathStats {
        PathStats {
            name: self.name.clone(),
            forward: self.forward.stats(now),
            reverse: self.reverse.stats(now),
        }
    }
}
