use core::time::Duration;

use anabranch_types::{Time, math};

/// Parameters of CoDel (RFC 8289 §4.2, §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelConfig {
    /// The standing delay that is acceptable: 1 µs to 1 minute.
    pub target: Duration,
    /// How long the delay may exceed `target` before the first drop, about the longest usual round-trip time; at
    /// least `target`, at most 1 minute.
    pub interval: Duration,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
}

impl Default for CodelConfig {
    /// A target of 5 ms, an interval of 100 ms, and marking: the values for the Internet in general
    /// (RFC 8289 §4.2, §4.3).
    fn default() -> Self {
        CodelConfig {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            ecn: true,
        }
    }
}

impl CodelConfig {
    /// Whether every parameter is in its range.
    pub fn is_valid(&self) -> bool {
        let least = Duration::from_micros(1);
        let most = Duration::from_secs(60);
        (least..=most).contains(&self.target) && (self.target..=most).contains(&self.interval)
    }
}

/// CoDel, controlled delay (RFC 8289 §5). It marks or drops packets when they leave the queue,
/// depending on how long they have waited.
#[derive(Clone, Debug)]
pub struct Codel {
    config: CodelConfig,
    /// When the delay will have been above the target for one interval; `None` while it is not
    /// above the target.
    due: Option<Time>,
    dropping: bool,
    drop_next: Time,
    /// Drops since the dropping state was entered.
    count: u32,
    last_count: u32,
    /// Whether the last packet was dropped at its scheduled time. The next drop is then scheduled
    /// if the packet behind it has a standing delay, too.
    dropped_last: bool,
    /// Largest packet seen, bytes. A backlog that is not larger does not count as a standing queue.
    largest: u32,
}

/// Decision about a packet that has come to the head of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodelVerdict {
    /// The packet leaves unchanged.
    Pass,
    /// The packet leaves and must be marked.
    Mark,
    /// The packet is dropped, and the packet behind it is examined next.
    Drop,
}

impl Codel {
    /// CoDel with these parameters and an empty queue.
    pub fn new(config: CodelConfig) -> Self {
        Codel {
            config,
            due: None,
            dropping: false,
            drop_next: Time::ZERO,
            count: 0,
            last_count: 0,
            dropped_last: false,
            largest: 0,
        }
    }

    /// Records the size of a packet that joins the queue.
    pub fn on_arrival(&mut self, size: u32) {
        self.largest = self.largest.max(size);
    }

    /// Decides about the packet at the head, which leaves or is dropped at `now` after it has
    /// waited for `sojourn`. `bytes_left` bytes wait behind it, and `capable` says whether it is
    /// ECN-capable.
    pub fn on_departure(
        &mut self,
        now: Time,
        sojourn: Duration,
        bytes_left: u64,
        capable: bool,
    ) -> CodelVerdict {
        let standing = self.is_standing(now, sojourn, bytes_left);
        if core::mem::take(&mut self.dropped_last) && standing {
            self.drop_next = self.control_law(self.drop_next);
        }
        if !standing {
            self.dropping = false;
            return CodelVerdict::Pass;
        }
        let mark = self.config.ecn && capable;
        if !self.dropping {
            self.enter(now);
        } else if now < self.drop_next {
            return CodelVerdict::Pass;
        } else {
            self.count = self.count.saturating_add(1);
            if mark {
                self.drop_next = self.control_law(self.drop_next);
            } else {
                self.dropped_last = true;
            }
        }
        if mark { CodelVerdict::Mark } else { CodelVerdict::Drop }
    }

    /// Whether CoDel is in the dropping (or marking) state.
    pub fn is_dropping(&self) -> bool {
        self.dropping
    }

    /// Records that the transmitter asked for a packet while the queue was empty.
    pub fn on_empty(&mut self) {
        self.due = None;
        self.dropping = false;
        self.dropped_last = false;
    }

    /// Whether the delay has been above the target for an interval.
    fn is_standing(&mut self, now: Time, sojourn: Duration, bytes_left: u64) -> bool {
        if sojourn < self.config.target || bytes_left <= u64::from(self.largest) {
            self.due = None;
            return false;
        }
        match self.due {
            None => {
                self.due = Some(now + self.config.interval);
                false
            }
            Some(due) => now >= due,
        }
    }

    /// Enters the dropping state. If the previous dropping state ended recently, the new one starts
    /// near the drop rate that the previous one had reached.
    fn enter(&mut self, now: Time) {
        self.dropping = true;
        let lately = now.since(self.drop_next) < self.config.interval * 16;
        let reached = self.count.saturating_sub(self.last_count);
        self.count = if reached > 1 && lately { reached } else { 1 };
        self.last_count = self.count;
        self.drop_next = self.control_law(now);
    }

    /// The time of the next drop: `interval` / √`count` after `from`.
    fn control_law(&self, from: Time) -> Time {
        let nanos = self.config.interval.as_nanos() as f64 / math::sqrt(f64::from(self.count));
        from + Duration::from_nanos(nanos as u64)
    }
}
