//! A delay-based window that yields to flows which fill the queue.
//!
//! A flow that keeps a few packets in the queue takes some bandwidth from a flow that fills it. A
//! yielding flow therefore watches its round-trip times: if they rise from round to round although
//! its window has not grown, another flow is filling the queue. The flow then keeps only one packet
//! in flight until half of the added delay is gone (pTCP §6, TCP friendliness: "the congestion
//! window is reset to one upon detection of consistent increase").

use core::time::Duration;

use crate::congestion::delay::Round;

/// Rises must add up to at least this fraction (1/16) of the least round-trip time, since a few
/// packets may cause smaller rises.
const LEAST_RISE: u32 = 16;

/// Detects a consistent increase of the round-trip time from round to round.
#[derive(Clone, Debug)]
pub(super) struct Yielding {
    /// Rises in a row that count as a consistent increase.
    limit: u32,
    rises: u32,
    /// The round-trip time of the last round, and that before the first rise.
    last: Duration,
    began: Duration,
    /// Delay above the base at which the flow gave way; `None` while it does not give way.
    given_at: Option<Duration>,
}

impl Yielding {
    /// A detector that gives way after `limit` rises in a row.
    pub(super) fn after(limit: u32) -> Self {
        let zero = Duration::ZERO;
        Yielding { limit, rises: 0, last: zero, began: zero, given_at: None }
    }

    /// Processes a round; `grew` says whether this flow's window had grown before it. Returns
    /// whether only one packet may be in flight.
    pub(super) fn take(&mut self, round: &Round, grew: bool) -> bool {
        let delay = round.rtt.saturating_sub(round.base);
        if let Some(given_at) = self.given_at {
            if delay * 2 >= given_at {
                return true;
            }
            self.given_at = None;
            self.last = Duration::ZERO;
        }
        if self.last.is_zero() || round.rtt <= self.last {
            (self.rises, self.began) = (0, round.rtt);
        } else if grew {
            // The queued packets may be the flow's own.
            self.began += round.rtt - self.last;
        } else {
            self.rises += 1;
        }
        self.last = round.rtt;
        let risen = round.rtt.saturating_sub(self.began);
        if self.rises >= self.limit && risen * LEAST_RISE >= round.base {
            self.given_at = Some(delay);
            self.rises = 0;
        }
        self.given_at.is_some()
    }
}
