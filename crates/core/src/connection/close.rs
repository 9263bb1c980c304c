//! Closing a connection.

use anabranch_types::{PeerText, Time};
use core::time::Duration;

use super::paths::PathIndex;
use super::{Connection, Event};
use crate::wire::CloseCode;

/// How long a closed connection answers packets that still arrive.
const LINGER: Duration = Duration::from_millis(500);
/// How many datagrams per path announce the close, besides answers: one at once, and one
/// repetition.
const ANNOUNCEMENTS: u8 = 2;

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloseReason {
    /// A close code of the wire format; 256 and above are the application's.
    pub code: CloseCode,
    /// Human-readable explanation.
    pub reason: PeerText,
    /// Whether the peer closed the connection.
    pub by_peer: bool,
}

impl CloseReason {
    pub(super) fn local(code: CloseCode, reason: &str) -> Self {
        CloseReason { code, reason: reason.into(), by_peer: false }
    }
}

/// The state of closing.
#[derive(Debug, Default)]
pub(super) struct Closing {
    reason: Option<CloseReason>,
    until: Option<Time>,
    /// How many CLOSE frames are still to be sent, by path slot.
    announce: Vec<u8>,
}

impl Closing {
    pub(super) fn reason(&self) -> Option<&CloseReason> {
        self.reason.as_ref()
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.until
    }

    /// Takes one announcement due on a path.
    pub(super) fn take_announcement(&mut self, slot: PathIndex) -> bool {
        match self.announce.get_mut(usize::from(slot)) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        }
    }
}

impl Connection {
    /// Whether the connection is closed, for any reason.
    pub fn is_closed(&self) -> bool {
        self.closing.reason.is_some()
    }

    /// Whether the connection can be forgotten.
    pub fn is_gone(&self, now: Time) -> bool {
        self.closing.until.is_some_and(|until| now >= until)
    }

    pub(super) fn start_close(&mut self, now: Time, reason: CloseReason) {
        if self.is_closed() {
            return;
        }
        self.closing.until = Some(now + LINGER);
        self.closing.announce = self.paths.indices().map(|_| ANNOUNCEMENTS).collect();
        self.emit(Event::Closed(reason.clone()));
        self.closing.reason = Some(reason);
    }

    pub(super) fn on_peer_close(&mut self, now: Time, code: CloseCode, reason: &str) {
        if self.is_closed() {
            return;
        }
        let reason = CloseReason { code, reason: reason.into(), by_peer: true };
        self.closing.until = Some(now + LINGER);
        self.emit(Event::Closed(reason.clone()));
        self.closing.reason = Some(reason);
    }

    /// Closes without telling the peer, which could not receive it.
    pub(super) fn vanish(&mut self, now: Time, code: CloseCode, reason: &str) {
        self.start_close(now, CloseReason::local(code, reason));
        self.closing.announce.clear();
        self.closing.until = Some(now);
    }

    /// Announces the close again when a packet arrives after it, since the peer may have missed it.
    pub(super) fn remind(&mut self, slot: PathIndex) {
        if self.closing.reason.as_ref().is_some_and(|reason| !reason.by_peer)
            && let Some(left) = self.closing.announce.get_mut(usize::from(slot))
        {
            *left = (*left).max(1);
        }
    }
}
