//! The receive side of a packet-number space: replay window, ranges to acknowledge, ECN counts.

use core::ops::RangeInclusive;

pub use anabranch_types::Ecn;
use anabranch_types::Time;

use crate::wire::reports::MAX_ACK_RANGES;

/// Length of the replay window, in packet numbers up to the largest received one.
pub const REPLAY_WINDOW: u64 = 8192;
const WORDS: usize = (REPLAY_WINDOW / 64) as usize;
/// Most ranges kept for acknowledgement. At 300 Mb/s, reordering by up to 20 ms creates several
/// hundred.
const MAX_RANGES: usize = 1024;
/// Most ranges in a report.
const REPORTED: usize = MAX_ACK_RANGES;
/// Every report holds the `NEWEST` newest ranges, and at most `FILLED` older ranges that have just
/// changed.
const NEWEST: usize = REPORTED / 2;
const FILLED: usize = REPORTED - NEWEST;

/// Record of the packets that have arrived on one path.
#[derive(Debug)]
pub struct Received {
    seen: Box<[u64; WORDS]>,
    /// Largest packet number received, if any.
    pub largest: Option<u64>,
    /// When the packet with the largest number arrived.
    pub largest_at: Time,
    /// Ranges of received numbers as (low, high), newest first.
    ranges: Vec<(u64, u64)>,
    /// Ring of the last packet numbers that did not fall into one of the newest ranges.
    filled: [u64; FILLED],
    filled_next: usize,
    /// The sender wants no reports about numbers below this one.
    floor: u64,
    /// Packets received with ECT(0).
    pub ect0: u64,
    /// Packets received with ECT(1).
    pub ect1: u64,
    /// Packets received with CE.
    pub ce: u64,
    /// Ack-eliciting packets since the last acknowledgement left.
    pub pending: u32,
}

impl Default for Received {
    fn default() -> Self {
        Received {
            seen: Box::new([0; WORDS]),
            largest: None,
            largest_at: Time::ZERO,
            ranges: Vec::with_capacity(2 * REPORTED),
            filled: [u64::MAX; FILLED],
            filled_next: 0,
            floor: 0,
            ect0: 0,
            ect1: 0,
            ce: 0,
            pending: 0,
        }
    }
}

impl Received {
    /// The packet number expected next. The header's truncated number is expanded relative to it.
    pub fn expected(&self) -> u64 {
        self.largest.map_or(0, |largest| largest + 1)
    }

    fn slot(number: u64) -> (usize, u64) {
        (((number % REPLAY_WINDOW) / 64) as usize, 1 << (number % 64))
    }

    /// Whether the number was received before or is below the replay window.
    pub fn is_replay(&self, number: u64) -> bool {
        let Some(largest) = self.largest else { return false };
        if number > largest {
            return false;
        }
        if largest - number >= REPLAY_WINDOW {
            return true;
        }
        let (word, bit) = Self::slot(number);
        self.seen[word] & bit != 0
    }

    /// Records an authenticated packet. Returns true if it created or filled a gap.
    pub fn on_packet(&mut self, now: Time, number: u64, ecn: Ecn) -> bool {
        match ecn {
            Ecn::NotEct => {}
            Ecn::Ect0 => self.ect0 += 1,
            Ecn::Ect1 => self.ect1 += 1,
            Ecn::Ce => self.ce += 1,
        }
        let in_order = number == self.expected();
        if in_order && self.continue_newest(now, number) {
            return false;
        }
        self.mark_seen(now, number);
        self.insert_range(number);
        !in_order
    }

    /// Fast path for a packet whose number directly follows the newest range.
    #[inline]
    fn continue_newest(&mut self, now: Time, number: u64) -> bool {
        let Some((_, newest)) = self.ranges.first_mut() else { return false };
        if *newest + 1 != number {
            return false;
        }
        *newest = number;
        let (word, bit) = Self::slot(number);
        self.seen[word] |= bit;
        self.largest = Some(number);
        self.largest_at = now;
        true
    }

    fn mark_seen(&mut self, now: Time, number: u64) {
        let expected = self.expected();
        if number >= expected {
            // Clear the entries that the window slides over.
            if number - expected >= REPLAY_WINDOW {
                self.seen.fill(0);
            } else {
                for skipped in expected..=number {
                    let (word, bit) = Self::slot(skipped);
                    self.seen[word] &= !bit;
                }
            }
            self.largest = Some(number);
            self.largest_at = now;
        }
        let (word, bit) = Self::slot(number);
        self.seen[word] |= bit;
    }

    fn insert_range(&mut self, number: u64) {
        if number < self.floor {
            return;
        }
        // Newest first: almost always the first range grows, or a new first range appears.
        let at = self.ranges.partition_point(|&(low, _)| low > number);
        if at >= NEWEST {
            self.filled[self.filled_next] = number;
            self.filled_next = (self.filled_next + 1) % FILLED;
        }
        let joins_newer = at > 0 && self.ranges[at - 1].0 == number + 1;
        let joins_older = at < self.ranges.len() && self.ranges[at].1 + 1 >= number;
        match (joins_newer, joins_older) {
            (true, true) => {
                self.ranges[at - 1].0 = self.ranges[at].0;
                self.ranges.remove(at);
            }
            (true, false) => self.ranges[at - 1].0 = number,
            (false, true) => self.ranges[at].1 = self.ranges[at].1.max(number),
            (false, false) => {
                self.ranges.insert(at, (number, number));
                self.ranges.truncate(MAX_RANGES);
            }
        }
    }

    /// Whether there is anything to report.
    pub fn is_any(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// Drops the ranges below `floor`, about which the sender wants no reports.
    pub fn raise_floor(&mut self, floor: u64) {
        self.floor = self.floor.max(floor);
        while self.ranges.last().is_some_and(|&(_, high)| high < self.floor) {
            self.ranges.pop();
        }
    }

    /// Ranges to report, newest first. If one report cannot hold all of them, it holds the newest
    /// and the older ranges that the last late packets have joined. These older ranges are repeated
    /// in many reports, since reports can be lost too.
    pub fn ranges(&self) -> impl Iterator<Item = RangeInclusive<u64>> + '_ {
        let mut joined = [usize::MAX; FILLED];
        let mut count = 0;
        if self.ranges.len() > REPORTED {
            for number in self.filled {
                let at = self.ranges.partition_point(|&(low, _)| low > number);
                let known = number == u64::MAX || at < NEWEST || joined[..count].contains(&at);
                if !known && at < self.ranges.len() {
                    joined[count] = at;
                    count += 1;
                }
            }
            joined[..count].sort_unstable();
        }
        let newest = self.ranges.len().min(REPORTED - count);
        let older = joined.into_iter().take(count).filter(move |at| *at >= newest);
        (0..newest).chain(older).map(|at| self.ranges[at].0..=self.ranges[at].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn replays_and_ancients_are_known() {
        let mut received = Received::default();
        assert!(!received.is_replay(0));
        received.on_packet(Time::ZERO, 20_000, Ecn::NotEct);
        assert!(received.is_replay(20_000));
        assert!(!received.is_replay(19_999));
        assert!(received.is_replay(20_000 - REPLAY_WINDOW));
        assert!(!received.is_replay(20_000 - REPLAY_WINDOW + 1));
    }

    #[test]
    fn late_packets_are_reported_however_many_ranges_there_are() {
        let mut received = Received::default();
        // Every other packet of 1000: five hundred ranges.
        (0..1000).step_by(2).for_each(|number| {
            received.on_packet(Time::ZERO, number, Ecn::NotEct);
        });
        let holds = |received: &Received, number| {
            let ranges = received.ranges();
            ranges.into_iter().any(|range| range.contains(&number))
        };
        for late in (101..901).step_by(2) {
            received.on_packet(Time::ZERO, late, Ecn::NotEct);
            assert!(holds(&received, late) && holds(&received, 998), "{late}");
            assert!(received.ranges().count() <= MAX_ACK_RANGES);
        }
        // The reports about the following packets hold the range too.
        assert!(holds(&received, 899) && !holds(&received, 50));
    }

    proptest! {
        #[test]
        fn ranges_and_replay_agree_with_a_set(numbers in prop::collection::vec(0_u64..400, 1..250)) {
            let mut received = Received::default();
            let mut set = BTreeSet::new();
            for number in numbers {
                prop_assert_eq!(received.is_replay(number), set.contains(&number));
                if set.insert(number) {
                    received.on_packet(Time::ZERO, number, Ecn::Ect0);
                }
            }
            let reported: BTreeSet<u64> = received.ranges().flatten().collect();
            if received.ranges.len() <= REPORTED {
                prop_assert_eq!(&reported, &set);
            }
            prop_assert!(reported.is_subset(&set));
            let highs: Vec<u64> = received.ranges().map(|r| *r.end()).collect();
            prop_assert!(highs.windows(2).all(|w| w[0] > w[1] + 1));
        }
    }
}
