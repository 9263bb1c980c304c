use std::io;
use std::net::SocketAddr;

use anabranch_sim::link::LinkConfigError;
use anabranch_types::Time;
use thiserror::Error;

use crate::network::{BadLink, Network};
use crate::path::PathConfig;
use crate::socket::Socket;
use crate::stats::{PathStats, RelayStats};
use crate::udp::UdpWires;
use crate::worker::Worker;

/// A running relay. Dropping it stops the relay and joins its thread.
///
/// One thread carries every path. The relay's memory is bounded by the links' buffers plus their
/// rates times their delays.
#[derive(Debug)]
pub struct Relay {
    worker: Worker,
    names: Vec<String>,
    addresses: Vec<SocketAddr>,
}

/// Why a relay could not start.
#[derive(Debug, Error)]
pub enum RelayError {
    /// No path was given.
    #[error("at least one path is needed")]
    NoPath,
    /// Two paths have the same name, so both would draw the same losses.
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
        /// Mistake in the link's description.
        why: LinkConfigError,
    },
    /// A socket or the thread could not be made.
    #[error("the relay's sockets: {0}")]
    Io(#[from] io::Error),
}

impl Relay {
    /// Starts relaying towards `receiver`, with random draws from `seed`.
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
        let mut names: Vec<String> = Vec::with_capacity(paths.len());
        let mut links = Vec::with_capacity(2 * paths.len());
        for (index, config) in paths.iter().enumerate() {
            let name = match config.forward.name.as_str() {
                "" => format!("path{index}"),
                name => name.to_owned(),
            };
            if names.contains(&name) {
                return Err(RelayError::DuplicateName(name));
            }
            links.push((format!("{name}.forward"), &config.forward));
            links.push((format!("{name}.reverse"), &config.reverse));
            names.push(name);
        }
        let routes = (0..links.len()).map(|link| vec![link]);
        let network = Network::new(links, routes, seed).map_err(|BadLink { name, why }| {
            let path = name.rsplit_once('.').map_or(name.as_str(), |(path, _)| path).to_owned();
            RelayError::Link { path, why }
        })?;
        let sockets: io::Result<Vec<Socket>> =
            (0..2 * paths.len()).map(|_| Socket::bind()).collect();
        let sockets = sockets?;
        let addresses = sockets.iter().step_by(2).map(|socket| socket.address).collect();
        let worker = Worker::start(network, UdpWires::new(receiver, paths.len()), sockets)?;
        Ok(Relay { worker, names, addresses })
    }

    /// The address that the sender must send to for each path, in the order the paths were given.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The time since the relay started, which is the time of its links.
    pub fn now(&self) -> Time {
        self.worker.now()
    }

    /// Whether the relay still runs. It stops early only when a socket cannot be read.
    pub fn is_running(&self) -> bool {
        self.worker.is_running()
    }

    /// Counters of both directions of every path, with the capacity since the first datagram.
    pub fn stats(&self) -> RelayStats {
        let mut network = self.worker.network();
        let now = self.worker.now();
        let mut links = network.link_stats(now).into_iter();
        let mut routes = network.route_stats().into_iter();
        let mut path = |name: &String| {
            Some(PathStats {
                name: name.clone(),
                forward: links.next()?,
                reverse: links.next()?,
                routes: [routes.next()?, routes.next()?],
            })
        };
        let paths = self.names.iter().filter_map(&mut path).collect();
        RelayStats { now, first_datagram: network.first_arrival(), paths }
    }

    /// Bits that all forward links together could have delivered in `[from, to)`,
    /// Σ ∫ rate·(1 − loss) dt.
    pub fn forward_capacity_bits(&self, from: Time, to: Time) -> f64 {
        let network = self.worker.network();
        (0..self.names.len()).map(|path| network.capacity_bits(2 * path, from, to)).sum()
    }
}
