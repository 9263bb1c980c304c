//! The queue of a subflow: chunks assigned to it that are not yet in its stream.

use anabranch_types::Time;
use std::collections::{BTreeMap, VecDeque};

use super::binding::Chunk;

/// Chunks in the order in which they were assigned, each with the earliest time at which it may
/// leave.
///
/// Taking the first chunk that may leave, or the last one, takes time logarithmic in the number of
/// chunks that must wait. A chunk that has waited is put into its place among those that may leave.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    /// Chunks that may leave, by number.
    ready: VecDeque<(u64, Chunk)>,
    /// Chunks that must wait, by time and number, and their times by number.
    later: BTreeMap<(Time, u64), Chunk>,
    times: BTreeMap<u64, Time>,
    /// Number of the next chunk.
    next: u64,
    bytes: u64,
}

impl Queue {
    /// Number of chunks in the queue.
    pub(super) fn len(&self) -> usize {
        self.ready.len() + self.later.len()
    }

    /// Bytes in the queue.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends a chunk that may leave at `not_before` at the earliest.
    pub(super) fn push(&mut self, chunk: Chunk, not_before: Time) {
        let number = self.next;
        self.next += 1;
        self.bytes += chunk.len;
        if not_before == Time::ZERO {
            self.ready.push_back((number, chunk));
        } else {
            self.later.insert((not_before, number), chunk);
            self.times.insert(number, not_before);
        }
    }

    /// Whether a chunk may leave now.
    pub(super) fn has_ripe(&self, now: Time) -> bool {
        let ripens = || self.later.first_key_value().is_some_and(|((at, _), _)| *at <= now);
        !self.ready.is_empty() || ripens()
    }

    /// When the next chunk may leave, if none may now.
    pub(super) fn ripens(&self, now: Time) -> Option<Time> {
        let next = self.later.first_key_value().map(|((at, _), _)| *at);
        next.filter(|_| !self.has_ripe(now))
    }

    /// Takes the first chunk that may leave now.
    pub(super) fn pop(&mut self, now: Time) -> Option<Chunk> {
        while let Some(first) = self.later.first_entry().filter(|first| first.key().0 <= now) {
            let ((_, number), chunk) = first.remove_entry();
            self.times.remove(&number);
            let place = self.ready.partition_point(|(before, _)| *before < number);
            self.ready.insert(place, (number, chunk));
        }
        let (_, chunk) = self.ready.pop_front()?;
        self.bytes -= chunk.len;
        Some(chunk)
    }

    /// Takes the last chunk.
    pub(super) fn pop_last(&mut self) -> Option<Chunk> {
        let ready = self.ready.back().map(|(number, _)| *number);
        let chunk = match self.times.last_key_value() {
            Some((number, at)) if ready.is_none_or(|ready| ready < *number) => {
                let key = (*at, *number);
                self.times.remove(&key.1);
                self.later.remove(&key)
            }
            _ => self.ready.pop_back().map(|(_, chunk)| chunk),
        }?;
        self.bytes -= chunk.len;
        Some(chunk)
    }

    /// The end of the last chunk, if the chunks are consecutive from `data` on and none has to
    /// wait.
    pub(super) fn continues(&self, data: u64) -> Option<u64> {
        let mut chunks = self.ready.iter().map(|(_, chunk)| chunk);
        let end = chunks.try_fold(data, |at, chunk| (chunk.data == at).then(|| chunk.end()));
        end.filter(|_| self.later.is_empty())
    }

    /// The ordinals of the queued chunks.
    #[cfg(test)]
    pub(super) fn ids(&self) -> impl Iterator<Item = u64> + '_ {
        self.ready
            .iter()
            .map(|(_, chunk)| chunk.id)
            .chain(self.later.values().map(|chunk| chunk.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn chunks_leave_in_their_order_as_soon_as_they_may() {
        let mut queue = Queue::default();
        for (id, at) in [(0, 30), (1, 0), (2, 20), (3, 0), (4, 50), (5, 10)] {
            queue.push(Chunk { id, data: 10 * id, len: 10 }, ms(at));
        }
        assert_eq!((queue.len(), queue.bytes()), (6, 60));
        let mut pop = |at| queue.pop(ms(at)).map(|chunk| chunk.id);
        assert_eq!(
            [pop(5), pop(25), pop(25), pop(25), pop(25)],
            [Some(1), Some(2), Some(3), Some(5), None]
        );
        assert_eq!((queue.has_ripe(ms(25)), queue.ripens(ms(25))), (false, Some(ms(30))));
        assert_eq!((queue.has_ripe(ms(30)), queue.ripens(ms(30))), (true, None));
        assert_eq!(queue.pop_last().map(|chunk| chunk.id), Some(4));
        assert_eq!(queue.pop(ms(30)).map(|chunk| chunk.id), Some(0));
        assert_eq!((queue.len(), queue.bytes(), queue.pop_last()), (0, 0, None));
    }

    #[test]
    fn chunks_continue_the_data_if_each_begins_where_the_last_ends_and_none_waits() {
        let chunk = |id| Chunk { id, data: 10 * id, len: 10 };
        let mut queue = Queue::default();
        assert_eq!(queue.continues(70), Some(70));
        queue.push(chunk(3), Time::ZERO);
        queue.push(chunk(4), Time::ZERO);
        assert_eq!((queue.continues(30), queue.continues(20)), (Some(50), None));
        queue.push(chunk(6), Time::ZERO);
        assert_eq!(queue.continues(30), None, "one is missing");
        queue.pop_last();
        queue.push(chunk(5), ms(1));
        assert_eq!(queue.continues(30), None, "one waits");
    }

    #[test]
    fn the_last_is_taken_wherever_it_is() {
        let mut queue = Queue::default();
        for (id, at) in [(0, 0), (1, 40), (2, 0), (3, 20)] {
            queue.push(Chunk { id, data: 10 * id, len: 10 }, ms(at));
        }
        let taken: Vec<_> =
            core::iter::from_fn(|| queue.pop_last().map(|chunk| chunk.id)).collect();
        assert_eq!(taken, [3, 2, 1, 0]);
        assert_eq!(queue.bytes(), 0);
    }
}
