//! Links between two network namespaces.

mod addresses;
mod events;
mod interfaces;
mod packet;
mod space;
mod wires;

#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::process::{Child, Command};
use std::sync::Arc;

use anabranch_sim::link::LinkConfigError;
use anabranch_sim::scenario::NetworkPlan;
use anabranch_types::Time;
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};
use thiserror::Error;
use tun_rs::SyncDevice;

use crate::network::{BadLink, Network};
use crate::stats::{LinkStats, RouteStats};
use crate::tap::Tap;
use crate::worker::Worker;
pub use addresses::Addresses;
use events::Events;
use interfaces::Interface;
pub use packet::set_ecn;
use space::{Inside, Space};
use wires::TunWires;

/// Two network namespaces, the client's and the server's, and emulated links between them.
///
/// On path number n, counted from 1, the client has the addresses 10.77.n.1 and fd77:0:0:n::1 and
/// the server has 10.77.n.2 and fd77:0:0:n::2 ([`Addresses`]), each pair on an interface named
/// after the path. A packet from one of the client's addresses takes the path of that address,
/// whichever server address it is sent to. An answer takes the path of its destination address. A
/// packet that is sent to the server's address on path n without a chosen source address takes path
/// n. The namespaces have no names and no route to other networks. They end with this value or with
/// this process, and so do their interfaces and all processes in them.
#[derive(Debug)]
pub struct Emulator {
    // Dropped first, so that no event changes an interface that is being removed.
    events: Option<Events>,
    worker: Worker,
    client: Arc<Space>,
    server: Arc<Space>,
    paths: Vec<PathEnds>,
}

/// One end of the emulated network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The end where paths begin.
    Client,
    /// The end where paths end.
    Server,
}

/// A path as programs see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathEnds {
    /// The path's name, which is that of its interfaces.
    pub name: String,
    /// The client's addresses on the path at the start; events may change them.
    pub client: Addresses,
    /// The server's addresses on the path.
    pub server: Addresses,
}

/// Why links could not be emulated.
#[derive(Debug, Error)]
pub enum EmulatorError {
    /// No path was given.
    #[error("at least one path is needed")]
    NoPath,
    /// More paths than there are addresses for.
    #[error("{0} paths; at most {MAX_PATHS} can be emulated")]
    TooMany(usize),
    /// The path's name cannot be that of an interface.
    #[error(
        "path '{0}' cannot be the name of an interface: that has at most {MAX_NAME} characters and is not 'lo'"
    )]
    Name(String),
    /// A path has no links from the server to the client.
    #[error("path '{0}' has no way back")]
    NoWayBack(String),
    /// A link has faults, which only the simulator can apply.
    #[error("link '{0}' has faults, which only the simulator has")]
    Faults(String),
    /// A link's description is out of range.
    #[error("link '{link}': {why}")]
    Link {
        /// The link's name.
        link: String,
        /// Mistake in the link's description.
        why: LinkConfigError,
    },
    /// The system refuses to make network namespaces.
    #[error(
        "network namespaces cannot be made: {0}; run it as root, or allow unprivileged user namespaces"
    )]
    Namespace(io::Error),
    /// The system refuses to make a TUN device.
    #[error(
        "TUN device '{name}' cannot be made: {why}; it needs the kernel's module tun, and the right to open \
         /dev/net/tun"
    )]
    Device {
        /// The interface's name.
        name: String,
        /// The system's error.
        why: io::Error,
    },
    /// Addresses, routes or threads could not be made.
    #[error("the emulator's namespaces: {0}")]
    Io(#[from] io::Error),
}

/// Most paths that can be emulated: a path's number is the third byte of its IPv4 addresses.
const MAX_PATHS: usize = 250;
/// Longest name of an interface, bytes.
const MAX_NAME: usize = 15;

impl Emulator {
    /// Checks a plan before anything is made, except for the figures of its links, which only
    /// [`start`](Self::start) checks.
    ///
    /// # Errors
    /// See [`EmulatorError`].
    pub fn check(plan: &NetworkPlan) -> Result<(), EmulatorError> {
        if plan.paths.is_empty() {
            return Err(EmulatorError::NoPath);
        }
        if plan.paths.len() > MAX_PATHS {
            return Err(EmulatorError::TooMany(plan.paths.len()));
        }
        for path in &plan.paths {
            if path.name.len() > MAX_NAME || path.name == "lo" {
                return Err(EmulatorError::Name(path.name.clone()));
            }
            if path.back.is_empty() {
                return Err(EmulatorError::NoWayBack(path.name.clone()));
            }
        }
        match plan.links.iter().find(|link| !link.config.faults.is_none()) {
            Some(link) => Err(EmulatorError::Faults(link.name.clone())),
            None => Ok(()),
        }
    }

    /// Gains the right to make namespaces. If this process may not make them, it enters a new user
    /// namespace in which its user is root. Must be called before the process starts threads.
    ///
    /// # Errors
    /// [`EmulatorError::Namespace`] when the system allows neither.
    pub fn prepare() -> Result<(), EmulatorError> {
        let (user, group) = (geteuid(), getegid());
        match unshare(CloneFlags::CLONE_NEWNET) {
            Ok(()) => return Ok(()),
            Err(Errno::EPERM) => {}
            Err(error) => return Err(EmulatorError::Namespace(error.into())),
        }
        let enter = || -> io::Result<()> {
            unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET)?;
            // An unprivileged process may map its group only after it has given up setgroups.
            fs::write("/proc/self/setgroups", "deny")?;
            fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
            fs::write("/proc/self/gid_map", format!("0 {group} 1"))
        };
        enter().map_err(EmulatorError::Namespace)
    }

    /// Makes the namespaces and starts the links, with random draws from `seed`. Schedules,
    /// blackouts and events count their time from this call. Links draw from the same random
    /// streams as in the simulator. Each entry of `taps` is a link number and the tap that observes
    /// this link.
    ///
    /// # Errors
    /// See [`EmulatorError`].
    pub fn start(
        plan: &NetworkPlan,
        seed: u64,
        taps: Vec<(usize, Box<dyn Tap>)>,
    ) -> Result<Self, EmulatorError> {
        Emulator::check(plan)?;
        let links = plan.links.iter().map(|link| (link.name.clone(), &link.config));
        let routes = plan.paths.iter().flat_map(|path| [path.forward.clone(), path.back.clone()]);
        let mut network = Network::new(links, routes, seed)
            .map_err(|BadLink { name, why }| EmulatorError::Link { link: name, why })?;
        for (link, tap) in taps {
            network.tap(link, tap);
        }
        let names: Vec<String> = plan.paths.iter().map(|path| path.name.clone()).collect();
        let (client, server) = (End::open(Side::Client, &names)?, End::open(Side::Server, &names)?);
        let ports = client.devices.into_iter().zip(server.devices);
        let ports = ports.flat_map(|(client, server)| [client, server]).collect();
        let worker = Worker::start(network, TunWires::new(), ports)?;
        let events = Events::start(&plan.events, &client.interfaces, &client.space)?;
        let ends = |(client, server): (Interface, Interface)| PathEnds {
            name: client.name,
            client: client.addresses,
            server: server.addresses,
        };
        let paths = client.interfaces.into_iter().zip(server.interfaces).map(ends).collect();
        Ok(Emulator { events, worker, client: client.space, server: server.space, paths })
    }

    /// The paths, in the order of the plan.
    pub fn paths(&self) -> &[PathEnds] {
        &self.paths
    }

    /// Starts the one program of `side` in its namespaces. It is the first process of its process namespace, so
    /// all others there end with it.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn spawn(&self, side: Side, mut command: Command) -> io::Result<Child> {
        self.space(side).run(move |_| command.spawn())?
    }

    /// The time since the links were started.
    pub fn now(&self) -> Time {
        self.worker.now()
    }

    /// Whether packets are still carried. The emulator stops early only when a device cannot be
    /// read.
    pub fn is_running(&self) -> bool {
        self.worker.is_running()
    }

    /// Every link now, in the order of the plan.
    pub fn links(&self) -> Vec<LinkStats> {
        let mut network = self.worker.network();
        let now = self.worker.now();
        network.link_stats(now)
    }

    /// The ends of every path, in the order of the plan: first its server's end, then its client's.
    pub fn routes(&self) -> Vec<RouteStats> {
        self.worker.network().route_stats()
    }

    /// Packets that the kernel dropped before they reached a link, because they were not read in
    /// time.
    ///
    /// # Errors
    /// When the kernel's counters cannot be read.
    pub fn unread(&self) -> io::Result<u64> {
        let client = self.client.run(|_| interfaces::dropped())??;
        Ok(client + self.server.run(|_| interfaces::dropped())??)
    }

    /// Why an event of the plan failed; `None` if none has.
    pub fn failed_event(&self) -> Option<String> {
        self.events.as_ref().and_then(Events::failure)
    }

    fn space(&self, side: Side) -> &Space {
        match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }
}

impl Side {
    /// The last byte of this side's addresses at the start.
    fn last_byte(self) -> u8 {
        match self {
            Side::Client => 1,
            Side::Server => 2,
        }
    }
}

/// One end of all paths.
struct End {
    space: Arc<Space>,
    devices: Vec<SyncDevice>,
    interfaces: Vec<Interface>,
}

impl End {
    /// Makes the namespace of `side` with an interface for each path.
    fn open(side: Side, names: &[String]) -> Result<Self, EmulatorError> {
        let name = match side {
            Side::Client => "client",
            Side::Server => "server",
        };
        let space = Space::open(name).map_err(EmulatorError::Namespace)?;
        let names = names.to_vec();
        let (devices, interfaces) = space.run(move |inside| -> Result<_, EmulatorError> {
            interfaces::prepare(inside)?;
            let ipv6 = interfaces::has_ipv6();
            let addresses = |number| Addresses::new(number, side.last_byte(), ipv6);
            let ends = (1..).zip(&names);
            ends.map(|(number, name)| interface(inside, (number, name), addresses(number), side))
                .collect()
        })??;
        Ok(End { space: Arc::new(space), devices, interfaces })
    }
}

fn interface(
    inside: &Inside,
    (number, name): (u8, &str),
    addresses: Addresses,
    side: Side,
) -> Result<(SyncDevice, Interface), EmulatorError> {
    let (device, interface) = Interface::make(inside, name, number, addresses)
        .map_err(|why| EmulatorError::Device { name: name.to_owned(), why })?;
    if side == Side::Client {
        inside.wait_for(async {
            interface.add_routes(&inside.netlink).await?;
            interface.add_rules(&inside.netlink).await
        })?;
    }
    Ok((device, interface))
}
