//! Packet numbers that are skipped at random, so that a peer that acknowledges packets without
//! receiving them is detected (RFC 9000 §21.4).

use core::ops::RangeInclusive;
use std::collections::VecDeque;

/// Number of skipped numbers that are remembered. An honest peer acknowledges none of them.
const REMEMBERED: usize = 16;
/// One of the first 256 numbers is skipped, one of the next 512, and so on: each span is twice as
/// long as the previous one, up to the longest.
const FIRST_SPAN: u64 = 256;
const LONGEST_SPAN: u64 = 8192;

/// The skipped numbers of a path.
#[derive(Debug)]
pub struct Skips {
    next: u64,
    span: u64,
    /// In ascending order.
    skipped: VecDeque<u64>,
}

impl Default for Skips {
    /// No number is skipped.
    fn default() -> Self {
        Skips { next: u64::MAX, span: FIRST_SPAN, skipped: VecDeque::new() }
    }
}

impl Skips {
    /// Starts skipping. `draw` returns an unpredictable number below its argument.
    pub fn new(draw: impl FnOnce(u64) -> u64) -> Self {
        let next = 1 + draw(FIRST_SPAN);
        Skips { next, span: FIRST_SPAN, skipped: VecDeque::with_capacity(REMEMBERED) }
    }

    /// Number of packets, starting with this number, until the next skipped number.
    pub fn left(&self, number: u64) -> u64 {
        self.next.saturating_sub(number)
    }

    /// Skips this number and chooses the next number to skip.
    pub fn skip(&mut self, number: u64, draw: impl FnOnce(u64) -> u64) {
        if self.skipped.len() == REMEMBERED {
            self.skipped.pop_front();
        }
        self.skipped.push_back(number);
        self.span = (self.span * 2).min(LONGEST_SPAN);
        self.next = number + 2 + draw(self.span);
    }

    /// Whether a range of numbers contains a skipped number.
    pub fn cover(&self, run: &RangeInclusive<u64>) -> bool {
        self.skipped.iter().any(|number| run.contains(number))
    }

    /// Count of skipped numbers in `low..high`.
    pub fn between(&self, low: u64, high: u64) -> u64 {
        if self.skipped.back().is_none_or(|newest| *newest < low) {
            return 0;
        }
        self.skipped.iter().filter(|number| (low..high).contains(number)).count() as u64
    }
}

/// Estimate of how many of the first `numbers` packet numbers a peer has skipped: the mean plus one
/// as a reserve.
pub fn likely(numbers: u64) -> u64 {
    let (mut span, mut rest, mut skips) = (FIRST_SPAN, numbers, 1);
    // On average the next skipped number is in the middle of its span.
    while span < LONGEST_SPAN && rest >= span / 2 {
        (rest, span, skips) = (rest - span / 2, span * 2, skips + 1);
    }
    skips + rest / (span / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_known_and_counted() {
        let mut skips = Skips::new(|span| span - 1);
        assert_eq!((skips.left(0), skips.left(256), skips.left(300)), (256, 0, 0));
        skips.skip(256, |_| 0);
        assert_eq!(skips.left(257), 1);
        skips.skip(258, |span| span - 1);
        assert_eq!(skips.left(259), 1024);
        assert!(skips.cover(&(0..=256)) && skips.cover(&(258..=258)));
        assert!(!skips.cover(&(257..=257)) && !skips.cover(&(259..=10_000)));
        assert_eq!(
            (skips.between(250, 260), skips.between(257, 260), skips.between(259, 300)),
            (2, 1, 0)
        );
    }

    #[test]
    fn few_are_remembered_and_many_left_out() {
        let mut skips = Skips::new(|_| 0);
        let mut number = 0;
        for _ in 0..100 {
            number += skips.left(number);
            skips.skip(number, |span| span / 2);
        }
        assert_eq!(skips.skipped.len(), REMEMBERED);
        assert!(number < 100 * LONGEST_SPAN, "{number}");
    }

    #[test]
    fn about_as_many_are_likely_as_are_left_out() {
        let mut rng = anabranch_types::Rng::new(7);
        let mut left_out = Vec::new();
        for _ in 0..400 {
            let mut skips = Skips::new(|span| rng.below(span));
            let mut number = 0;
            while number < 200_000 {
                number += skips.left(number);
                left_out.push(number);
                skips.skip(number, |span| rng.below(span));
                number += 1;
            }
        }
        for numbers in [0, 100, 300, 1000, 5000, 20_000, 200_000] {
            let by_then = left_out.iter().filter(|number| **number < numbers).count();
            let more = likely(numbers) as f64 - by_then as f64 / 400.0;
            assert!((0.2..1.8).contains(&more), "{more} more than on average by {numbers}");
        }
    }
}
