//! Logs connections through [`tracing`]: nothing unless the application listens, and never a secret. A connection is a
//! span; its events and those of its paths are within.

mod lines;

use crate::clock::Clock;
use crate::connection::{PathEvent, PathSpec};
use crate::shared::ConnectionState;
use anabranch_core::connection::{CloseReason, Connection};
use anabranch_core::crypto::PublicKey;
use anabranch_core::endpoint::Handle;
use anabranch_core::handshake::DropReason;
use anabranch_core::path::SocketId;
use anabranch_types::{PathId, Time};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tracing::field::display;
use tracing::{Span, debug, info, info_span};

use anabranch_types::lines::{Lines, Verdict};
pub(crate) use lines::Peers;
use lines::locked;

/// Logs a connection: its span, and the limit of the lines about its peer.
#[derive(Debug)]
pub(crate) struct Voice {
    span: Span,
    lines: Arc<Mutex<Lines>>,
    clock: Clock,
}

impl Voice {
    /// The log of a connection; `side` is this endpoint's role in it, "client" or "server".
    pub(crate) fn new(
        (peers, clock): (&Peers, Clock),
        handle: Handle,
        peer: &PublicKey,
        side: &'static str,
    ) -> Self {
        let span = info_span!("connection", id = handle.0, side, peer = %peer.to_string());
        Voice { span, lines: peers.of(peer, clock.now()), clock }
    }

    /// Calls `write` with the span if a line may be written.
    fn tell(&self, write: impl FnOnce(&Span)) {
        if self.span.is_disabled() {
            return;
        }
        match locked(&self.lines, |lines| lines.take(self.clock.now())) {
            Verdict::Write { left_out } => {
                if left_out > 0 {
                    info!(parent: &self.span, left_out, "lines about this peer were left out");
                }
                write(&self.span);
            }
            Verdict::FirstLeftOut => {
                info!(parent: &self.span, "further lines about this peer are left out for a while");
            }
            Verdict::LeftOut => {}
        }
    }
}

pub(crate) fn connecting(voice: &Voice, paths: &[PathSpec]) {
    for PathSpec { local, remote } in paths {
        debug!(parent: &voice.span, %local, %remote, "connecting");
    }
}

pub(crate) fn opened(voice: &Voice) {
    voice.tell(|span| info!(parent: span, "opened"));
}

pub(crate) fn unanswered(voice: &Voice) {
    voice.tell(|span| info!(parent: span, "nobody answered"));
}

pub(crate) fn closed(voice: &Voice, reason: &CloseReason) {
    let CloseReason { code, by_peer, reason } = reason;
    voice.tell(|span| info!(parent: span, by_peer, code = code.0, %reason, "closed"));
}

/// Logs that a new stream has to wait.
pub(crate) fn stream_waits(voice: &Voice) {
    voice.tell(|span| info!(parent: span, "a new stream waits: the peer allows no more at a time"));
}

/// Logs that the peer has fallen silent.
pub(crate) fn silent(voice: &Voice, connection: &Connection, now: Time) {
    let seconds = now.since(connection.last_heard()).as_secs_f64();
    voice.tell(|span| info!(parent: span, seconds, "the peer is silent"));
}

pub(crate) fn heard(voice: &Voice) {
    voice.tell(|span| info!(parent: span, "the peer is heard again"));
}

/// Logs what happened to a path, with its addresses; `local_of` gives those of sockets.
pub(crate) fn path(
    state: &ConnectionState,
    event: PathEvent,
    local_of: impl FnOnce(SocketId) -> Option<SocketAddr>,
) {
    let Some(voice) = &state.voice else { return };
    let (PathId(path), what) = match event {
        PathEvent::Up(path) => (path, "up"),
        PathEvent::Down(path) => (path, "down"),
        PathEvent::Moved(path) => (path, "moved"),
        PathEvent::Closed(path) => (path, "closed"),
    };
    voice.tell(|span| {
        let stats = state.stats();
        let stats = stats.iter().flat_map(|stats| &stats.paths).find(|stats| stats.id.0 == path);
        let address = stats.map(|stats| stats.address);
        let local = address.and_then(|address| local_of(address.socket)).map(display);
        let remote = address.map(|address| display(address.remote));
        let name = state.names.name(PathId(path));
        info!(parent: span, path, name, local, remote, "path {what}");
    });
}

/// Logs a handshake that got no answer. What anybody can send without knowing this endpoint's key is logged at a
/// lower level than the failed attempts of somebody who knows it.
pub(crate) fn refused(refusals: &Refusals, now: Time, remote: SocketAddr, why: DropReason) {
    match why {
        DropReason::NotPermitted | DropReason::Replay => {
            match locked(&refusals.0, |lines| lines.take(now)) {
                Verdict::Write { left_out } => {
                    if left_out > 0 {
                        info!(left_out, "lines about refused handshakes were left out");
                    }
                    info!(%remote, ?why, "handshake refused");
                }
                Verdict::FirstLeftOut => {
                    info!("further lines about refused handshakes are left out for a while");
                }
                Verdict::LeftOut => {}
            }
        }
        _ => debug!(%remote, ?why, "handshake refused"),
    }
}

/// The limit of the lines about refused handshakes.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<Lines>);

#[cfg(test)]
mod tests;
