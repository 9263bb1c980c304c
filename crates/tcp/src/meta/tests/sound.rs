//! Invariants of a sender.

use std::collections::BTreeSet;

use super::*;

impl MetaSender {
    /// Fails unless every byte of the send buffer is accounted for: not cut yet, due, bound to a
    /// subflow, waiting in a queue, or arrived. Also fails if more has been cut than the receiver's
    /// window admits.
    pub(in crate::meta) fn check(&self) {
        let streams: Vec<BTreeSet<u64>> = self
            .subflows
            .iter()
            .map(|own| own.bindings.chunks().map(|chunk| chunk.id).collect())
            .collect();
        let queues: Vec<BTreeSet<u64>> =
            self.subflows.iter().map(|own| own.queue.ids().collect()).collect();
        let has = |sets: &[BTreeSet<u64>], id, slot: u8| {
            sets.get(usize::from(slot)).is_some_and(|set| set.contains(&id))
        };
        let shared = &self.shared;
        self.chunks.check((shared.una, shared.next), |id, slot| {
            (has(&streams, id, slot), has(&queues, id, slot))
        });
        assert!(shared.una <= shared.next && shared.next <= shared.written);
        assert!(shared.next <= shared.limit, "{} beyond {}", shared.next, shared.limit);
        assert!(shared.written - shared.una <= shared.send_buffer);
        assert_eq!(self.statistics.bound_bytes, shared.next, "each byte is cut once");
        for own in self.subflows.iter().filter(|own| !own.is_joined()) {
            assert_eq!(
                (own.bindings.chunks().count(), own.queue.len()),
                (0, 0),
                "it takes no part"
            );
        }
    }
}
