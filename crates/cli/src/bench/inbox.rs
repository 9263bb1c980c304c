//! Receiver statistics of datagrams: missing, late, jitter.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Bytes at the beginning of each datagram: its number, and when it was sent by the sender's clock, ns.
pub(super) const HEAD: usize = 16;

/// The first bytes of datagram `number`, which is sent at `sent` by the sender's clock.
pub(super) fn head(number: u64, sent: Duration) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    let (first, second) = head.split_at_mut(HEAD / 2);
    first.copy_from_slice(&number.to_le_bytes());
    second.copy_from_slice(&u64::try_from(sent.as_nanos()).unwrap_or(u64::MAX).to_le_bytes());
    head
}

/// Counters of the datagrams received.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Inbox {
    /// Highest datagram number received, plus one.
    next: u64,
    received: u64,
    out_of_order: u64,
    /// Interarrival jitter (RFC 3550, section 6.4.1), seconds.
    jitter: f64,
    /// Arrival time less sending time of the last one, ns; it contains the offset between the clocks.
    transit: Option<i64>,
    /// Datagrams with lower numbers are not counted.
    from: u64,
    /// Datagrams that the sender has sent, once it says so.
    sent: Option<u64>,
}

/// Figures of a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Datagrams that came.
    pub received: u64,
    /// Datagrams that did not come.
    pub lost: u64,
    /// Datagrams that came after later ones.
    pub out_of_order: u64,
    /// Jitter (RFC 3550, section 6.4.1), seconds.
    pub jitter: f64,
}

impl Inbox {
    /// Takes in a datagram that arrives at `now` by this side's clock. One that is too short for its head is ignored.
    pub(super) fn take(&mut self, datagram: &[u8], now: Duration) {
        let Some((number, rest)) = datagram.split_first_chunk() else { return };
        let Some((sent, _)) = rest.split_first_chunk() else { return };
        let (number, sent) = (u64::from_le_bytes(*number), u64::from_le_bytes(*sent));
        // The sender may put any number into `sent`. The difference may wrap around without harm.
        let transit = (now.as_nanos() as i64).wrapping_sub(sent as i64);
        if let Some(before) = self.transit.replace(transit) {
            let changed = transit.wrapping_sub(before).unsigned_abs() as f64 * 1e-9;
            self.jitter += (changed - self.jitter) / 16.0;
        }
        if number < self.from {
            return;
        }
        self.received += 1;
        if number < self.next {
            self.out_of_order += 1;
        }
        self.next = self.next.max(number.saturating_add(1));
    }

    /// The sender has ended after this many datagrams.
    pub(super) fn expect(&mut self, sent: u64) {
        self.sent = Some(sent);
    }

    /// Whether all datagrams sent have arrived.
    pub(super) fn is_complete(&self) -> bool {
        self.sent.is_some_and(|sent| self.received >= sent.saturating_sub(self.from))
    }

    /// Restarts the counters. Datagrams sent before this call are not counted, even if they arrive
    /// later.
    pub(super) fn omit(&mut self) {
        (self.from, self.received, self.out_of_order) = (self.next, 0, 0);
    }

    /// Figures since the beginning or [`Inbox::omit`].
    pub(super) fn seen(&self) -> Seen {
        let sent = self.sent.unwrap_or(self.next).max(self.next);
        let lost = sent.saturating_sub(self.from).saturating_sub(self.received);
        let Inbox { received, out_of_order, jitter, .. } = *self;
        Seen { received, lost, out_of_order, jitter }
    }
}

impl Seen {
    /// Figures since `before`; a datagram that was counted as lost and came late reduces the losses.
    pub(super) fn since(&self, before: &Seen) -> Seen {
        Seen {
            received: self.received.saturating_sub(before.received),
            lost: self.lost.saturating_sub(before.lost),
            out_of_order: self.out_of_order.saturating_sub(before.out_of_order),
            jitter: self.jitter,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes in datagram `number`, which arrives `delay` ms after it was sent. One is sent every 10
    /// ms.
    fn take(inbox: &mut Inbox, number: u64, delay: u64) {
        let sent = Duration::from_millis(10 * number);
        inbox.take(&head(number, sent), sent + Duration::from_millis(delay));
    }

    #[test]
    fn what_is_missing_or_late_is_counted() {
        let mut inbox = Inbox::default();
        for number in [0, 1, 3, 2, 6, 5] {
            take(&mut inbox, number, 40);
        }
        let seen = Seen { received: 6, lost: 1, out_of_order: 2, jitter: 0.0 };
        assert_eq!(inbox.seen(), seen);
        inbox.expect(10);
        assert_eq!(inbox.seen(), Seen { lost: 4, ..seen });
        assert!(!inbox.is_complete());
        [4, 7, 8, 9].iter().for_each(|number| take(&mut inbox, *number, 40));
        assert!(inbox.is_complete());
        assert_eq!(inbox.seen(), Seen { received: 10, lost: 0, out_of_order: 3, jitter: 0.0 });
        inbox.take(b"too short", Duration::ZERO);
        assert_eq!(inbox.seen().received, 10);
    }

    #[test]
    fn what_was_sent_before_does_not_count() {
        let mut inbox = Inbox::default();
        [0, 1, 4].iter().for_each(|number| take(&mut inbox, *number, 5));
        let before = inbox.seen();
        inbox.omit();
        [3, 5, 7].iter().for_each(|number| take(&mut inbox, *number, 5));
        assert_eq!(inbox.seen(), Seen { received: 2, lost: 1, out_of_order: 0, jitter: 0.0 });
        inbox.expect(9);
        assert_eq!(inbox.seen().lost, 2);
        assert_eq!((before.received, before.lost), (3, 2));
        let later = Seen { received: 5, lost: 2, ..before };
        assert_eq!(later.since(&before), Seen { received: 2, ..Seen::default() });
    }

    #[test]
    fn jitter_is_smoothed_by_sixteenths() {
        let mut inbox = Inbox::default();
        take(&mut inbox, 0, 40);
        take(&mut inbox, 1, 56);
        assert!((inbox.seen().jitter - 0.001).abs() < 1e-12);
        take(&mut inbox, 2, 24);
        // A constant offset between the clocks does not matter.
        assert!((inbox.seen().jitter - (0.001 + (0.032 - 0.001) / 16.0)).abs() < 1e-12);
        for number in 3..3000 {
            take(&mut inbox, number, 20 + number % 2 * 10);
        }
        assert!((inbox.seen().jitter - 0.010).abs() < 1e-6);
    }
}
