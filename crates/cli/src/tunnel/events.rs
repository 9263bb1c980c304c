//! What `serve` and `connect` say while they run.

use anabranch::forward::ForwardEvent;
use serde::Serialize;

use crate::output;

/// One thing that happened.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(super) enum Tiding<'a> {
    /// Ready for peers on these addresses.
    Serving { addresses: Vec<String>, public_key: &'a str },
    /// Listening for TCP connections here.
    Listening { address: String, target: String },
    /// A peer is connected.
    Connected { peer: &'a str },
    /// It is not any more.
    Disconnected { peer: &'a str, reason: String },
    /// A path of a peer came up, went down or was closed.
    Path { peer: &'a str, path: u32, state: &'a str },
    /// A TCP connection is carried.
    Opened { target: String },
    /// It has ended.
    Closed { target: String, sent: u64, received: u64 },
    /// It could not be carried, or broke.
    Failed { target: String, reason: String },
}

impl Tiding<'_> {
    fn text(&self) -> String {
        match self {
            Tiding::Serving { addresses, public_key } => {
                format!("serving on {} as {public_key}", addresses.join(", "))
            }
            Tiding::Listening { address, target } => format!("{address} leads to {target}"),
            Tiding::Connected { peer } => format!("{peer} connected"),
            Tiding::Disconnected { peer, reason } => format!("{peer} gone: {reason}"),
            Tiding::Path { peer, path, state } => format!("{peer} path {path} {state}"),
            Tiding::Opened { target } => format!("opened {target}"),
            Tiding::Closed { target, sent, received } => {
                format!("closed {target}: {sent} B sent, {received} B received")
            }
            Tiding::Failed { target, reason } => format!("failed {target}: {reason}"),
        }
    }
}

/// Where tidings go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Teller {
    pub(super) json: bool,
    pub(super) quiet: bool,
}

impl Teller {
    /// Says it: as JSON on standard output, or as text on standard error, or not at all.
    pub(super) fn say(self, tiding: &Tiding<'_>) {
        if self.json {
            // A reader that went away wants no more.
            if let Ok(line) = serde_json::to_string(tiding) {
                let _ = output::print(&format!("{line}\n"));
            }
        } else if !self.quiet {
            eprintln!("anabranch: {}", tiding.text());
        }
    }

    /// What the library tells of forwards.
    pub(super) fn forward(self, event: ForwardEvent) {
        match event {
            ForwardEvent::Opened(target) => {
                self.say(&Tiding::Opened { target: target.to_string() })
            }
            ForwardEvent::Closed(target, sent, received) => {
                self.say(&Tiding::Closed { target: target.to_string(), sent, received });
            }
            ForwardEvent::Failed(target, reason) => {
                self.say(&Tiding::Failed { target: target.to_string(), reason });
            }
            ForwardEvent::Listening(address) => self.say(&Tiding::Listening {
                address: address.to_string(),
                target: "the peer's side".to_owned(),
            }),
            _ => {}
        }
    }
}
