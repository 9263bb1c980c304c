//! Names of paths: the interface's name or a given one, kept over all paths that come and go there.

use std::net::SocketAddr;

use anabranch_core::connection::PathStats;
use anabranch_core::path::PathCounters;
use anabranch_policy::view::PathState;
use anabranch_types::PathId;

use super::request::PathUsage;

/// Most names of a connection. Beyond that, one name is forgotten with its counters: the oldest
/// whose path is closed, or else the oldest of all.
const MOST_NAMES: usize = 32;

/// State of a path, including its usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathStatus {
    /// In use.
    Up,
    /// Being tried: its address is not validated yet, or it answers again after a silence.
    Probing,
    /// Nothing is heard of it, or it is closed.
    Down,
    /// In order, and used only when others cannot carry the load.
    Backup,
    /// In order or ready to be opened, and used only when no other works, as it costs money.
    Metered,
}

impl PathStatus {
    /// Every status.
    pub const ALL: [PathStatus; 5] = [
        PathStatus::Up,
        PathStatus::Probing,
        PathStatus::Down,
        PathStatus::Backup,
        PathStatus::Metered,
    ];

    /// The status as a word, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            PathStatus::Up => "up",
            PathStatus::Probing => "probing",
            PathStatus::Down => "down",
            PathStatus::Backup => "backup",
            PathStatus::Metered => "metered",
        }
    }

    fn of(path: &PathStats, usage: PathUsage) -> Self {
        match (path.state, usage) {
            (PathState::Closed, PathUsage::Metered) => PathStatus::Metered,
            (PathState::Closed | PathState::Suspect, _) => PathStatus::Down,
            _ if path.silent => PathStatus::Down,
            (PathState::Validating | PathState::Probation, _) => PathStatus::Probing,
            (PathState::Active, PathUsage::Metered) => PathStatus::Metered,
            (PathState::Active, _) if path.backup => PathStatus::Backup,
            (PathState::Active, _) => PathStatus::Up,
        }
    }
}

/// A path under its name.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedPath {
    /// The name that was given to it, or its interface; where the peer opened it, the peer's address.
    pub name: String,
    /// State of the path.
    pub status: PathStatus,
    /// Local address of the path, as long as its socket is open.
    pub local: Option<SocketAddr>,
    /// Present figures of the path, or the last ones if it is over. The counters, and what the peer has sent, are
    /// those of all paths that have had the name.
    pub stats: PathStats,
}

/// How a path is to be called.
#[derive(Clone, Debug)]
pub(crate) struct Naming {
    /// Successive paths with the same key have the same name.
    pub(crate) key: String,
    pub(crate) name: String,
    /// Distinguishes the path from another one of the same name.
    pub(crate) detail: String,
    pub(crate) usage: PathUsage,
}

/// The names of a connection's paths.
#[derive(Debug, Default)]
pub(crate) struct PathNames(Vec<Named>);

#[derive(Debug)]
struct Named {
    key: String,
    name: String,
    usage: PathUsage,
    path: PathId,
    local: Option<SocketAddr>,
    /// Counters of the earlier paths of this name, and packets that the peer sent on them.
    before: PathCounters,
    peer_sent_before: u64,
    /// Latest figures of the present path; none until they are first read.
    last: Option<PathStats>,
}

impl Named {
    fn is_over(&self) -> bool {
        self.last.as_ref().is_some_and(|last| last.state == PathState::Closed)
    }

    /// Gives the name to another path, and adds the counters of the present one to `before`.
    fn succeed(&mut self, path: PathId) {
        if let Some(last) = self.last.take().filter(|_| path != self.path) {
            self.before = sum(self.before, last.counters);
            self.peer_sent_before += last.peer_sent_packets;
        }
        self.path = path;
    }
}

impl PathNames {
    /// Calls `path` as `naming` says.
    pub(crate) fn assign(&mut self, path: PathId, naming: Naming) {
        // Drops the name that the path was given by default.
        self.0.retain(|named| named.path != path || named.key == naming.key);
        if let Some(named) = self.0.iter_mut().find(|named| named.key == naming.key) {
            named.succeed(path);
            named.usage = naming.usage;
            return;
        }
        self.make_room();
        let Naming { key, name, detail, usage } = naming;
        let name = self.distinct(name, &detail);
        let before = PathCounters::default();
        let (local, last, peer_sent_before) = (None, None, 0);
        self.0.push(Named { key, name, usage, path, local, before, peer_sent_before, last });
    }

    /// `name`, extended if another path has it already.
    fn distinct(&self, name: String, detail: &str) -> String {
        let is_free = |name: &String| self.0.iter().all(|named| named.name != *name);
        if is_free(&name) {
            return name;
        }
        let detailed = format!("{name}@{detail}");
        let numbered = (2..).map(|number| format!("{name}#{number}"));
        let mut candidates = std::iter::once(detailed).chain(numbered);
        candidates.find(is_free).unwrap_or(name)
    }

    fn make_room(&mut self) {
        if self.0.len() >= MOST_NAMES {
            let over = self.0.iter().position(Named::is_over).unwrap_or(0);
            self.0.remove(over);
        }
    }

    /// Records the state of paths, and names those without a name as `naming` says. A new path takes the name of a
    /// closed one of the same key.
    pub(crate) fn update(
        &mut self,
        paths: &[PathStats],
        local_of: impl Fn(&PathStats) -> Option<SocketAddr>,
        naming: impl Fn(&PathStats, Option<SocketAddr>) -> Naming,
    ) {
        for named in &mut self.0 {
            // A path that is not listed any more is closed: its slot may have been given to another path.
            let Some(last) = &mut named.last else { continue };
            if paths.iter().all(|path| path.id != named.path) {
                last.state = PathState::Closed;
            }
        }
        for path in paths {
            let local = local_of(path);
            if self.0.iter().all(|named| named.path != path.id) {
                if path.state == PathState::Closed {
                    continue;
                }
                let mut own = naming(path, local);
                while self.0.iter().any(|named| named.key == own.key && !named.is_over()) {
                    own.key.push('+');
                }
                self.assign(path.id, own);
            }
            if let Some(named) = self.0.iter_mut().find(|named| named.path == path.id) {
                named.last = Some(*path);
                named.local = local.or(named.local);
            }
        }
    }

    /// Name of a path, if it has one.
    pub(crate) fn name(&self, path: PathId) -> Option<&str> {
        let named = self.0.iter().find(|named| named.path == path);
        named.map(|named| named.name.as_str())
    }

    /// Every path under its name.
    pub(crate) fn list(&self) -> Vec<NamedPath> {
        let list = self.0.iter().filter_map(|named| {
            let last = named.last?;
            let counters = sum(named.before, last.counters);
            let peer_sent_packets = named.peer_sent_before + last.peer_sent_packets;
            Some(NamedPath {
                name: named.name.clone(),
                status: PathStatus::of(&last, named.usage),
                local: named.local,
                stats: PathStats { counters, peer_sent_packets, ..last },
            })
        });
        list.collect()
    }
}

fn sum(a: PathCounters, b: PathCounters) -> PathCounters {
    PathCounters {
        sent_packets: a.sent_packets + b.sent_packets,
        sent_bytes: a.sent_bytes + b.sent_bytes,
        acked_packets: a.acked_packets + b.acked_packets,
        lost_packets: a.lost_packets + b.lost_packets,
        spurious_losses: a.spurious_losses + b.spurious_losses,
        ce_marks: a.ce_marks + b.ce_marks,
        received_packets: a.received_packets + b.received_packets,
        received_bytes: a.received_bytes + b.received_bytes,
        timeouts: a.timeouts + b.timeouts,
    }
}
