//! Detects that the peer is silent on all paths, and whether it has restarted.
//!
//! Recovery handles a single silent path; this module handles a peer that is silent on every path.
//! As soon as every path has timed out once, the side that opened the connection asks whether the
//! peer still has the connection, by a separate handshake (`docs/spec/wire-0.md`, Checks), which
//! only the holder of the peer's key can answer. If no packet arrives for another timeout, the peer
//! counts as silent, and the application is told.

use anabranch_policy::view::PathState;
use anabranch_types::Time;
use core::time::Duration;

use super::paths::PathIndex;
use super::{Connection, Event};
use crate::path::{Path, PathAddress};
use crate::wire::CloseCode;

/// Time after which a silent peer is asked again, over the paths that exist then.
pub(crate) const CHECK_AGAIN: Duration = Duration::from_secs(4);
/// Least time between two checks if packets of the peer arrive in between.
const LEAST_PAUSE: Duration = Duration::from_millis(500);
/// After this many timeouts in a row, a path is no longer probed because of silence.
const SILENT_TIMEOUTS: u32 = 2;
/// A path counts as silent after another timeout without back-off has passed since its first
/// timeout, or this time if that is shorter.
const LONGEST_PATIENCE: Duration = Duration::from_millis(500);

/// State of the detection of a silent peer.
#[derive(Debug, Default)]
pub(super) struct Silence {
    /// When the last packet arrived; set once every path has been probed without an answer.
    since: Option<Time>,
    /// When the last check began.
    checked: Option<Time>,
    /// If no packet has arrived for this long, this side probes the peer.
    heartbeat: Option<Duration>,
}

impl Silence {
    pub(super) fn new(heartbeat: Option<Duration>) -> Self {
        Silence { heartbeat, ..Silence::default() }
    }
}

impl Connection {
    /// When the last packet of the peer arrived, if every path has been probed without an answer
    /// since.
    pub fn silent_since(&self) -> Option<Time> {
        self.silence.since
    }

    /// When a packet of the peer last arrived.
    pub fn last_heard(&self) -> Time {
        self.last_received
    }

    /// Probes the peer whenever it has been silent for `interval`, so that its end is noticed a few
    /// round trips later. With `None`, only packets sent for other reasons show its end.
    pub fn set_heartbeat(&mut self, interval: Option<Duration>) {
        self.silence.heartbeat = interval;
    }

    /// Probes every path at once; [`has_given_sign`](Self::has_given_sign) says whether the peer
    /// has answered.
    pub fn ask_for_signs(&mut self, now: Time) {
        for path in self.paths.iter_mut().filter(|path| is_open(path)) {
            let next = path.sent.next_number();
            path.liveness.ask_from(now, next);
        }
    }

    /// Repeats the last probe on every path, in case the probe or its answer was lost.
    pub fn ask_again_for_signs(&mut self) {
        for path in self.paths.iter_mut().filter(|path| is_open(path)) {
            path.liveness.add_probes(1);
        }
    }

    /// Whether the peer has answered since [`ask_for_signs`](Self::ask_for_signs). Packets that it
    /// sent before do not count, however late they are read.
    pub fn has_given_sign(&self) -> bool {
        let mut open = self.paths.iter().filter(|path| is_open(path));
        open.any(|path| {
            path.sent.largest_acked().is_some_and(|acked| path.liveness.is_answer(acked))
        })
    }

    /// The addresses of the paths that are open.
    pub(crate) fn open_addresses(&self) -> Vec<PathAddress> {
        let open = self.paths.iter().filter(|path| is_open(path));
        open.map(|path| path.address).collect()
    }

    /// Processes the peer's answer to a check: `known` says whether it still has this connection.
    pub fn on_check(&mut self, now: Time, known: bool) {
        if self.is_closed() || self.silence.checked.is_none_or(|asked| self.last_received > asked) {
            // A packet of the connection arrived after the check was sent, so the peer still has
            // the connection.
            return;
        }
        if known {
            self.ask_for_signs(now);
        } else {
            let reason = "the peer has restarted and does not know the connection";
            self.vanish(now, CloseCode::UNKNOWN_TO_PEER, reason);
        }
    }

    /// Notes that a packet of the peer arrived.
    pub(super) fn on_heard(&mut self, now: Time) {
        self.last_received = now;
        if self.silence.since.take().is_some() {
            self.emit(Event::Heard);
        }
    }

    /// Called after a timeout of the path, and when its challenge was repeated. If no packet of the
    /// peer has arrived in the meantime, the other paths are probed too. If all of them have timed
    /// out, the peer is asked whether it still has the connection. If no path has an answer for
    /// long enough, the peer counts as silent.
    pub(super) fn note_silence(&mut self, now: Time, slot: PathIndex) {
        let base = self.paths[slot].base_timeout().base;
        if !self.config.notice_silence || now.since(self.last_received) < base {
            return;
        }
        // Further timeouts of a path that has long been silent do not matter.
        if self.paths[slot].liveness.timeouts() <= SILENT_TIMEOUTS {
            for path in self.paths.iter_mut().filter(|path| is_open(path) && !is_asked(path)) {
                path.liveness.ask_for_sign(now);
            }
        }
        if let Some(from) = self.silent_from() {
            self.ask_for_check(now);
            if from <= now {
                self.on_silent(now);
            }
        }
    }

    /// When the peer will count as silent if no packet of it arrives until then. `None` while a
    /// path has not timed out, and once the peer counts as silent.
    pub(super) fn silent_at(&self) -> Option<Time> {
        if self.silence.since.is_none() { self.silent_from() } else { None }
    }

    /// When the last of the paths counts as silent; `None` while a path has not timed out.
    fn silent_from(&self) -> Option<Time> {
        if !self.config.notice_silence {
            return None;
        }
        let (mut latest, mut least) = (Time::ZERO, Duration::MAX);
        for path in self.paths.iter().filter(|path| is_open(path)) {
            let (first, base) = (path.liveness.first_timeout()?, path.base_timeout().base);
            let patience = base.min(LONGEST_PATIENCE);
            latest = latest.max(first + patience);
            least = least.min(base + patience);
        }
        // The peer's packets may arrive although no packets of this side do.
        (least < Duration::MAX).then(|| latest.max(self.last_received + least))
    }

    /// Handles the silence of every path.
    pub(super) fn on_silent(&mut self, now: Time) {
        self.ask_for_check(now);
        if self.silence.since.replace(self.last_received).is_none() {
            self.emit(Event::Silent);
        }
    }

    /// Asks the driver for a check because no path has answered, unless a check is in progress or
    /// has just begun.
    fn ask_for_check(&mut self, now: Time) {
        let is_due = |asked| {
            let pause = if asked >= self.last_received { CHECK_AGAIN } else { LEAST_PAUSE };
            now.since(asked) >= pause
        };
        if self.silence.checked.is_none_or(is_due) {
            self.silence.checked = Some(now);
            self.emit(Event::CheckDue);
        }
    }

    /// When to probe the peer because no packet has arrived for the heartbeat interval.
    pub(super) fn heartbeat_at(&self) -> Option<Time> {
        let interval = self.silence.heartbeat.filter(|_| self.established)?;
        let mut alive =
            self.paths.iter().filter(|path| is_open(path) && !has_gone_quiet(path)).peekable();
        alive.peek()?;
        if alive.any(is_asked) { None } else { Some(self.last_received + interval) }
    }

    /// Probes the peer on the path that answers soonest.
    pub(super) fn beat(&mut self, now: Time) {
        let alive = self.paths.indexed().filter(|(_, path)| is_open(path) && !has_gone_quiet(path));
        let best = alive
            .min_by_key(|(_, path)| (!path.is_usable(), path.backup, path.rtt.view().smoothed));
        if let Some((slot, _)) = best {
            self.paths[slot].liveness.ask_for_sign(now);
        }
    }
}

fn is_open(path: &Path) -> bool {
    path.state() != PathState::Closed
}

/// Whether packets are in flight on the path, whose acknowledgement is expected, or a probe is
/// about to be sent.
fn is_asked(path: &Path) -> bool {
    path.sent.packets_in_flight > 0 || path.liveness.probes() > 0
}

/// Whether the path has had no answer for some timeouts. On a path whose address is not proven, one is enough: each
/// repeated challenge postpones the next timeout, so that a second one may never come.
fn has_gone_quiet(path: &Path) -> bool {
    path.liveness.timeouts() >= if path.is_proven() { SILENT_TIMEOUTS } else { 1 }
}
