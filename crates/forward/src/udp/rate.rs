use std::sync::{Mutex, PoisonError};

use anabranch::types::Time;
use anabranch_core::handshake::TokenBucket;
use tokio::time::Instant;

/// Flows that a peer may begin at once.
const BURST: u64 = 512;
/// Flows that it may begin a second: as many as a busy resolver, which asks from another port each time.
const PER_SECOND: u64 = 1000;

/// Bounds how fast a peer begins flows: each costs a socket and a task.
#[derive(Debug)]
pub(super) struct Rate {
    bucket: Mutex<TokenBucket>,
    since: Instant,
}

impl Default for Rate {
    fn default() -> Self {
        let bucket = TokenBucket::new(PER_SECOND, BURST, Time::ZERO);
        Rate { bucket: Mutex::new(bucket), since: Instant::now() }
    }
}

impl Rate {
    /// Whether another flow may begin; if so, it counts.
    pub(super) fn take(&self) -> bool {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        bucket.take(Time::ZERO + self.since.elapsed())
    }
}
