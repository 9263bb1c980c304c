use anabranch_types::{Rng, Time};
use core::time::Duration;

/// A random time that a host waits before it sends, drawn uniformly each time. Without this jitter,
/// flows of equal round-trip times synchronise (Floyd and Jacobson 1991).
#[derive(Clone, Debug)]
pub struct SendJitter {
    most: u64,
    random: Rng,
    until: Option<Time>,
}

impl SendJitter {
    /// Waits of up to `most`; `None` if `most` is zero. The draws are the substream of `seed`
    /// called `agent.<name>`.
    pub fn new(most: Duration, seed: u64, name: &str) -> Option<Self> {
        let random = Rng::substream(seed, &format!("agent.{name}"));
        let most = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX - 1);
        (most > 0).then_some(SendJitter { most, random, until: None })
    }

    /// Whether the wait has ended by `now`. Starts a wait if there is none.
    pub fn is_over(&mut self, now: Time) -> bool {
        match self.until {
            Some(until) if until <= now => {
                self.until = None;
                true
            }
            Some(_) => false,
            None => {
                let wait = self.random.below(self.most.saturating_add(1));
                self.until = Some(now + Duration::from_nanos(wait));
                false
            }
        }
    }

    /// When the current wait ends; `None` if there is none.
    pub fn until(&self) -> Option<Time> {
        self.until
    }
}
