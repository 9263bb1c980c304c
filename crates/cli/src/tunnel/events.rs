//! The events that `serve` and `connect` print while they run.

use anabranch_forward::{ForwardEvent, Place};
use serde::Serialize;

use super::changes::Changes;
use super::manager::Manager;
use crate::failure::Failure;
use crate::output::{self, warn};
use crate::{clock, format};

/// An event of `serve` or `connect`.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(super) enum TunnelEvent<'a> {
    /// Ready for peers on these addresses.
    Serving { addresses: Vec<String>, public_key: &'a str },
    /// The settings were read again: what is different, and what stays as it was until a restart.
    Reloaded { changes: Vec<String>, kept: Vec<String> },
    /// The settings were read again and have a mistake: the old ones stay.
    ReloadFailed { reason: String },
    /// Listening for TCP connections, on a Unix socket, or for UDP datagrams here.
    Listening { address: String, target: String, protocol: &'static str },
    /// A peer is connected.
    Connected { peer: &'a str },
    /// A peer is no longer connected.
    Disconnected { peer: &'a str, reason: String },
    /// The peer is being connected to.
    Connecting { peer: &'a str, remote: String },
    /// The peer has not answered yet, for this long.
    Waiting { peer: &'a str, remote: String, seconds: u64 },
    /// The peer cannot be connected to at present.
    Retrying { peer: &'a str, reason: String },
    /// A connected peer is silent.
    Silent { peer: &'a str, seconds: f64 },
    /// A silent peer is heard again.
    Heard { peer: &'a str },
    /// A path of a peer came up, went down or was closed.
    Path { peer: &'a str, path: &'a str, state: &'a str },
    /// A TCP connection waits, as the other side carries as many as it allows.
    StreamLimit { target: String },
    /// A TCP connection is carried.
    Opened { target: String },
    /// A TCP connection has ended.
    Closed { target: String, sent: u64, received: u64 },
    /// A TCP connection could not be carried, or broke.
    Failed { target: String, reason: String },
}

impl TunnelEvent<'_> {
    /// The event for what the library reports about a forward.
    pub(super) fn of_forward(event: ForwardEvent) -> Option<TunnelEvent<'static>> {
        Some(match event {
            ForwardEvent::Waiting(target) => {
                TunnelEvent::StreamLimit { target: target.to_string() }
            }
            ForwardEvent::Opened(target) => TunnelEvent::Opened { target: target.to_string() },
            ForwardEvent::Closed(target, sent, received) => {
                TunnelEvent::Closed { target: target.to_string(), sent, received }
            }
            ForwardEvent::Failed(target, reason) => {
                TunnelEvent::Failed { target: target.to_string(), reason }
            }
            ForwardEvent::Listening(place) => TunnelEvent::Listening {
                address: place.to_string(),
                target: "the peer's side".to_owned(),
                protocol: protocol_of(&place),
            },
            _ => return None,
        })
    }

    /// The event as a line of text; `None` for events that are reported as JSON only.
    pub(super) fn text(&self) -> Option<String> {
        Some(match self {
            TunnelEvent::Serving { addresses, public_key } => {
                format!("serving on {} as {public_key}", addresses.join(", "))
            }
            TunnelEvent::Reloaded { changes, kept } => {
                let all: Vec<&str> = changes.iter().chain(kept).map(String::as_str).collect();
                let all = if all.is_empty() { vec!["nothing has changed"] } else { all };
                format!("settings read again: {}", all.join("; "))
            }
            TunnelEvent::ReloadFailed { reason } => {
                format!("settings read again but not applied; the old ones stay in use: {reason}")
            }
            TunnelEvent::Listening { address, target, protocol } => {
                let udp = if *protocol == "udp" { " (UDP)" } else { "" };
                format!("forwarding {address} → {target}{udp}")
            }
            TunnelEvent::Connected { peer } => format!("{peer} connected"),
            TunnelEvent::Disconnected { peer, reason } => format!("{peer} disconnected: {reason}"),
            TunnelEvent::Connecting { remote, .. } => format!("connecting to {remote}"),
            TunnelEvent::Waiting { remote, seconds, .. } => format!(
                "{remote} has not answered for {seconds} s; still trying: check that it runs, \
                 permits this key and is reachable by UDP"
            ),
            TunnelEvent::Retrying { reason, .. } => {
                format!("cannot connect: {reason}; still trying")
            }
            TunnelEvent::Silent { peer, seconds } => {
                format!("{peer} silent: nothing heard for {seconds:.1} s; waiting for it")
            }
            TunnelEvent::Heard { peer } => format!("{peer} heard again"),
            TunnelEvent::Path { peer, path, state } => format!("{peer} path {path} {state}"),
            TunnelEvent::StreamLimit { target } => format!(
                "{target} waits: the other side carries as many connections as its --max-forwarded allows"
            ),
            // The end of the connection is reported, with what it carried.
            TunnelEvent::Opened { .. } => return None,
            TunnelEvent::Closed { target, sent, received } => {
                let (sent, received) = (format::bytes(*sent), format::bytes(*received));
                format!("{target}: done, {sent} sent, {received} received")
            }
            TunnelEvent::Failed { target, reason } => format!("{target}: {reason}"),
        })
    }
}

/// An event and when it happened.
#[derive(Serialize)]
struct Timed<'a> {
    /// Seconds since 1970.
    time: f64,
    #[serde(flatten)]
    event: &'a TunnelEvent<'a>,
}

/// The protocol of a place, as events name it.
pub(super) fn protocol_of(place: &Place) -> &'static str {
    match place {
        Place::Port(_) => "tcp",
        Place::Socket(_) => "unix",
    }
}

/// Where events are reported.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reporter {
    pub(super) json: bool,
    pub(super) quiet: bool,
}

impl Reporter {
    /// Reports an event: as JSON on standard output, or as text on standard error, or not at all.
    pub(super) fn say(self, event: &TunnelEvent<'_>) {
        if self.json {
            // Errors are ignored: if the reader has gone, nobody needs the event.
            if let Ok(line) = serde_json::to_string(&Timed { time: clock::seconds(), event }) {
                let _ = output::print(&format!("{line}\n"));
            }
        } else if let Some(text) = event.text().filter(|_| !self.quiet) {
            warn(&format!("{}{text}", clock::stamp()));
        }
    }

    /// Has the settings read again, and reports the result, also to the service manager.
    pub(super) async fn reload(
        self,
        manager: &Manager,
        reload: impl Future<Output = Result<Changes, Failure>>,
    ) {
        manager.reloading();
        match reload.await {
            Ok(Changes { made: changes, kept }) => {
                self.say(&TunnelEvent::Reloaded { changes, kept });
                manager.reloaded(None);
            }
            Err(failure) => {
                let reason = failure.to_string();
                manager.reloaded(Some(&reason));
                self.say(&TunnelEvent::ReloadFailed { reason });
            }
        }
    }

    /// Reports an event that the library reports about a forward.
    pub(super) fn forward(self, event: ForwardEvent) {
        if let Some(event) = TunnelEvent::of_forward(event) {
            self.say(&event);
        }
    }
}
