//! A limit on the rate at which bytes are sent.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anabranch_transfer::frame::MAX_DATA;
use anabranch_types::Bitrate;
use tokio::time::{Instant, sleep_until};

/// Lowest rate that can be given.
pub const LOWEST: Bitrate = Bitrate::from_bps(8_000);
/// How long one piece takes to send, about.
const PIECE: Duration = Duration::from_millis(50);
/// Most unused time that may be made up for at once.
const BURST: Duration = Duration::from_millis(100);

/// A rate; its clones share it.
#[derive(Clone, Debug)]
pub struct Limit {
    rate: Bitrate,
    /// When everything that was admitted so far will have been sent at this rate.
    busy_until: Arc<Mutex<Instant>>,
}

impl Limit {
    /// A limit that begins now.
    pub fn new(rate: Bitrate) -> Self {
        let busy_until = Arc::new(Mutex::new(Instant::now()));
        Limit { rate: rate.max(LOWEST), busy_until }
    }

    /// How many bytes to send at a time.
    pub fn piece(&self) -> usize {
        let bytes = self.rate.as_bps() as f64 / 8.0 * PIECE.as_secs_f64();
        (bytes as usize).clamp(1, MAX_DATA)
    }

    /// Waits until this many bytes may be sent.
    pub async fn wait(&self, bytes: usize) {
        let cost = Duration::from_secs_f64(bytes as f64 * 8.0 / self.rate.as_bps() as f64);
        let begin = {
            let mut busy_until = self.busy_until.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            let begin = (*busy_until).max(now.checked_sub(BURST).unwrap_or(now));
            *busy_until = begin + cost;
            begin
        };
        sleep_until(begin).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_rate_holds_over_all_who_share_it() {
        let limit = Limit::new(Bitrate::from_mbps(8.0));
        let begun = Instant::now();
        let send = |limit: Limit, pieces| async move {
            for _ in 0..pieces {
                limit.wait(10_000).await;
            }
        };
        tokio::join!(send(limit.clone(), 50), send(limit.clone(), 50));
        // At 1 MB/s this takes 1 s, less the 10 ms in which the last piece is being sent.
        assert_eq!(begun.elapsed(), Duration::from_millis(990));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_not_sent_for_long_is_not_sent_at_once() {
        let limit = Limit::new(Bitrate::from_mbps(8.0));
        tokio::time::sleep(Duration::from_secs(60)).await;
        let begun = Instant::now();
        for _ in 0..30 {
            limit.wait(10_000).await;
        }
        assert_eq!(begun.elapsed(), Duration::from_millis(190));
    }

    #[test]
    fn pieces_are_short() {
        let piece = |mbps| Limit::new(Bitrate::from_mbps(mbps)).piece();
        assert_eq!((piece(0.0), piece(8.0), piece(8000.0)), (50, 50_000, MAX_DATA));
    }
}
