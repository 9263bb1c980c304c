//! What `serve` prints about each of its peers: 60 lines a minute at most, whatever the peer does.

use std::sync::{Arc, Mutex, PoisonError};

use anabranch::PublicKey;
use anabranch_forward::ForwardEvent;
use anabranch_types::Time;
use anabranch_types::lines::{Lines, Verdict};
use tokio::time::Instant;

use super::events::{Reporter, TunnelEvent, warn};
use crate::clock;

/// Reports what happens to one peer, over all of its connections.
#[derive(Clone, Debug)]
pub(super) struct Voice {
    reporter: Reporter,
    peer: PublicKey,
    lines: Arc<Mutex<Lines>>,
    since: Instant,
}

impl Voice {
    pub(super) fn new(reporter: Reporter, peer: PublicKey) -> Self {
        Voice { reporter, peer, lines: Arc::default(), since: Instant::now() }
    }

    /// Reports an event, unless the peer has had its lines for this minute. JSON is complete, since programs count events.
    pub(super) fn say(&self, event: &TunnelEvent<'_>) {
        if self.reporter.json || self.reporter.quiet || event.text().is_none() {
            return self.reporter.say(event);
        }
        let now = Time::ZERO + self.since.elapsed();
        let verdict = self.lines.lock().unwrap_or_else(PoisonError::into_inner).take(now);
        let Voice { reporter, peer, .. } = self;
        match verdict {
            Verdict::Write { left_out } => {
                if left_out > 0 {
                    warn(&format!("{}{left_out} lines about {peer} were left out", clock::stamp()));
                }
                reporter.say(event);
            }
            Verdict::FirstLeftOut => warn(&format!(
                "{}further lines about {peer} are left out for a while; --json has all",
                clock::stamp()
            )),
            Verdict::LeftOut => {}
        }
    }

    /// What the library tells of forwards.
    pub(super) fn forward(&self, event: ForwardEvent) {
        if let Some(event) = TunnelEvent::of_forward(event) {
            self.say(&event);
        }
    }
}
