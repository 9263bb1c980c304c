//! A host that takes its time.

use anabranch_types::{Rng, Time};
use core::time::Duration;

/// A random time that a host takes before it sends, drawn uniformly each time.
#[derive(Debug)]
pub(crate) struct Pause {
    most: Duration,
    random: Rng,
    until: Option<Time>,
}

impl Pause {
    /// A pause of up to `most`. Its draws are the substream of `seed` called `agent.<name>`.
    pub(crate) fn new(most: Duration, seed: u64, name: &str) -> Self {
        let random = Rng::substream(seed, &format!("agent.{name}"));
        Pause { most, random, until: None }
    }

    /// Whether a pause has just ended; begins one if there is none.
    pub(crate) fn is_over(&mut self, now: Time) -> bool {
        match self.until {
            Some(until) if until <= now => {
                self.until = None;
                true
            }
            Some(_) => false,
            None => {
                let most = u64::try_from(self.most.as_nanos()).unwrap_or(u64::MAX - 1);
                let wait = Duration::from_nanos(self.random.below(most.saturating_add(1)));
                self.until = Some(now + wait);
                false
            }
        }
    }

    /// When the present pause ends.
    pub(crate) fn until(&self) -> Option<Time> {
        self.until
    }
}
