//! The names of a connection's paths.

use super::{ConnectionShared, ConnectionState};
use crate::interfaces;
use crate::paths::{Naming, PathUsage};
use anabranch_core::connection::{Connection, PathStats};
use anabranch_core::wire::Role;
use std::net::SocketAddr;

impl ConnectionShared {
    /// Records the state of paths, before those that are over are forgotten.
    pub(crate) fn note_paths(&self, state: &mut ConnectionState) {
        let Some(stats) = state.stats() else { return };
        let role = state.connection.as_ref().map(Connection::role);
        let local_of = |path: &PathStats| self.endpoint.sockets.local_of(path.address.socket);
        state.names.update(&stats.paths, local_of, |path, local| unnamed(role, path, local));
    }
}

/// Name of a path that nobody has named: that of its interface if this side opened it, else the
/// peer's address.
fn unnamed(role: Option<Role>, path: &PathStats, local: Option<SocketAddr>) -> Naming {
    let remote = path.address.remote.ip();
    let local = local.map(|local| local.ip()).filter(|ip| !ip.is_unspecified());
    let detail = local.map_or_else(|| path.id.to_string(), |ip| ip.to_string());
    let interface = local.filter(|_| role == Some(Role::Initiator)).and_then(|ip| {
        let list = interfaces::list().ok()?;
        list.into_iter().find(|interface| interface.addresses.contains(&ip))
    });
    let name = interface.map_or_else(|| remote.to_string(), |interface| interface.name);
    let key = format!("{remote}@{detail}");
    Naming { key, name, detail, usage: PathUsage::Normal }
}
