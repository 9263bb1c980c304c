//! Lines that `serve` prints about each of its peers: 60 a minute at most, whatever the peer does.

use anabranch::PublicKey;
use anabranch_forward::ForwardEvent;

use super::events::{Reporter, TunnelEvent};
use crate::limited::Limited;

/// Reports what happens to one peer, over all of its connections.
#[derive(Clone, Debug)]
pub(super) struct Voice {
    reporter: Reporter,
    lines: Limited,
}

impl Voice {
    pub(super) fn new(reporter: Reporter, peer: PublicKey) -> Self {
        Voice { reporter, lines: Limited::new(peer.to_string(), "; --json has all") }
    }

    /// Reports an event, unless the peer has used up its lines for this minute. JSON is complete,
    /// since programs count events.
    pub(super) fn say(&self, event: &TunnelEvent<'_>) {
        if self.reporter.json || self.reporter.quiet || event.text().is_none() {
            return self.reporter.say(event);
        }
        self.lines.line(|| self.reporter.say(event));
    }

    /// Reports an event that the library reports about a forward.
    pub(super) fn forward(&self, event: ForwardEvent) {
        if let Some(event) = TunnelEvent::of_forward(event) {
            self.say(&event);
        }
    }
}
