//! What is told of connections through [`tracing`]: nothing unless the application listens, and never
//! a secret. A connection is a span; its events and those of its paths are within.

use crate::connection::{PathEvent, PathSpec};
use crate::crypto::keys::format_public_key;
use crate::shared::ConnectionState;
use anabranch_core::connection::{CloseReason, Connection};
use anabranch_core::crypto::PublicKey;
use anabranch_core::endpoint::Handle;
use anabranch_core::handshake::DropReason;
use anabranch_core::path::SocketId;
use anabranch_types::{PathId, Time};
use std::net::SocketAddr;
use tracing::field::display;
use tracing::{Span, debug, info, info_span};

/// The span of a connection, of which `side` is "client" or "server".
pub(crate) fn connection(handle: Handle, peer: &PublicKey, side: &'static str) -> Span {
    info_span!("connection", id = handle.0, side, peer = %format_public_key(peer))
}

pub(crate) fn connecting(span: &Span, paths: &[PathSpec]) {
    for PathSpec { local, remote } in paths {
        debug!(parent: span, %local, %remote, "connecting");
    }
}

pub(crate) fn opened(span: &Span) {
    info!(parent: span, "opened");
}

pub(crate) fn unanswered(span: &Span) {
    info!(parent: span, "nobody answered");
}

pub(crate) fn closed(span: &Span, reason: &CloseReason) {
    let CloseReason { code, by_peer, reason } = reason;
    info!(parent: span, by_peer, code = code.0, reason, "closed");
}

/// A stream has to wait.
pub(crate) fn stream_waits(span: &Span) {
    info!(parent: span, "a new stream waits: the peer allows no more at a time");
}

/// Nothing is heard of the peer any more.
pub(crate) fn silent(span: &Span, connection: &Connection, now: Time) {
    let seconds = now.since(connection.last_heard()).as_secs_f64();
    info!(parent: span, seconds, "the peer is silent");
}

pub(crate) fn heard(span: &Span) {
    info!(parent: span, "the peer is heard again");
}

/// What happened to a path, with its addresses; `local_of` knows those of sockets.
pub(crate) fn path(
    state: &ConnectionState,
    event: PathEvent,
    local_of: impl FnOnce(SocketId) -> Option<SocketAddr>,
) {
    if state.span.is_disabled() {
        return;
    }
    let (PathId(path), what) = match event {
        PathEvent::Up(path) => (path, "up"),
        PathEvent::Down(path) => (path, "down"),
        PathEvent::Moved(path) => (path, "moved"),
        PathEvent::Closed(path) => (path, "closed"),
    };
    let stats = state.stats();
    let stats = stats.iter().flat_map(|stats| &stats.paths).find(|stats| stats.id.0 == path);
    let address = stats.map(|stats| stats.address);
    let local = address.and_then(|address| local_of(address.socket)).map(display);
    let remote = address.map(|address| display(address.remote));
    info!(parent: &state.span, path, local, remote, "path {what}");
}

/// A handshake got no answer. What anybody can send without knowing this endpoint's key is of less
/// interest than what somebody who knows it did in vain.
pub(crate) fn refused(remote: SocketAddr, why: DropReason) {
    match why {
        DropReason::NotPermitted | DropReason::Replay => {
            info!(%remote, ?why, "handshake refused");
        }
        _ => debug!(%remote, ?why, "handshake refused"),
    }
}
