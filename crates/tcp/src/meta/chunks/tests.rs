//! The table of chunks.

use super::*;

impl Chunks {
    /// Fails unless three conditions hold. The table describes exactly the data from `una` to
    /// `next`. It agrees with `holds`, which says whether the subflow in a slot has a chunk (in its
    /// stream, in its queue). No chunk is forgotten: each has arrived, is due, or has a subflow
    /// that is responsible for it.
    pub(in crate::meta) fn check(
        &self,
        (una, next): (u64, u64),
        holds: impl Fn(u64, u8) -> (bool, bool),
    ) {
        let mut waiting = [0; MAX_PATHS];
        let mut end = self.entries.get(self.start).map_or(next, |entry| entry.data);
        assert!(end <= una, "the table begins at {end}, {una} is acknowledged");
        let mut due = 0;
        for (ahead, (entry, view)) in
            self.entries[self.start..].iter().zip(&self.views[self.start..]).enumerate()
        {
            let id = self.first + ahead as u64;
            assert_eq!((view.id.0, entry.data), (id, end), "chunk {id} follows the one before");
            end += entry.len;
            assert!(end > una, "chunk {id} has been acknowledged");
            for slot in 0..MAX_PATHS as u8 {
                let (bound, queued) = holds(id, slot);
                let has = |mask: u16| mask & bit(slot) != 0;
                assert_eq!(
                    (has(entry.bound), has(entry.queued)),
                    (bound, queued),
                    "{id} on {slot}"
                );
                assert!(has(entry.bound) || !has(entry.kept), "{id} on {slot}: a copy of nothing");
                let at = usize::from(slot);
                waiting[at] += u64::from(view.queued_on[at] > 0);
                assert!(view.in_flight_on[at] == 0 || bound, "{id} flies unbound on {slot}");
            }
            assert_eq!(view.due > 0, self.due.contains(&id), "{id}");
            assert_eq!(view.in_flight > 0, self.flying.contains(&id), "{id}");
            for (slot, copied) in (0_u8..).zip(&self.copied) {
                let copyable = view.in_flight > 0 && !self.is_on(id, slot);
                assert!(!copyable || *copied <= id, "{id} is passed over on {slot}");
            }
            assert_eq!(view.due > 0, self.due_by_len.contains(&(entry.len, id)), "{id}");
            due += usize::from(view.due > 0);
            let kept_in_mind = view.received > 0 || view.due > 0 || entry.holders() != 0;
            assert!(kept_in_mind, "chunk {id} is forgotten: {entry:?}");
        }
        assert_eq!((end, due, self.due_by_len.len()), (next, self.due.len(), due));
        assert_eq!(waiting, self.waiting);
    }
}

fn three() -> Chunks {
    let mut chunks = Chunks::default();
    for (data, len) in [(0, 10), (10, 10), (20, 4)] {
        chunks.cut(data, len);
    }
    chunks
}

#[test]
fn a_chunk_shows_where_it_is() {
    let mut chunks = three();
    chunks.on_bound(1, 3);
    assert!(chunks.on_sent(1, 3, Time::from_millis(5)));
    assert!(!chunks.on_sent(1, 3, Time::from_millis(6)), "it is in flight there already");
    chunks.on_bound(1, 0);
    chunks.on_sent(1, 0, Time::from_millis(7));
    let view = chunks.show(None)[1];
    assert_eq!((view.in_flight, view.in_flight_on[0], view.in_flight_on[3]), (1, 1, 1));
    assert_eq!((view.opened, view.carried_on), (Time::from_millis(5), 0b1001));
    chunks.on_lost(1, 3);
    let view = chunks.show(None)[1];
    assert_eq!((view.in_flight, view.lost_on), (1, 0b1000));
    assert_eq!((view.queued, view.queued_on[3]), (0, 1), "the subflow will send it again");
    chunks.on_lost(1, 0);
    assert_eq!((chunks.show(None)[1].queued, chunks.show(None)[1].shortfall()), (1, 0));
    chunks.on_delivered(1, 0);
    let view = chunks.show(None)[1];
    assert_eq!((view.in_flight, view.queued, view.deficit()), (0, 0, 0));
    assert!(!chunks.make_due(1, 0), "it has arrived");
}

#[test]
fn due_chunks_are_found_by_length_and_by_name() {
    let mut chunks = three();
    assert!(chunks.make_due(1, 0) && chunks.make_due(0, 0) && chunks.make_due(2, 0));
    assert!(!chunks.make_due(1, 0), "it is due already");
    assert_eq!(chunks.due_of(10, 0), Some(0));
    assert_eq!(chunks.due_of(4, 0), Some(2));
    chunks.on_bound(0, 0);
    assert_eq!(chunks.due_of(10, 0), Some(1), "not the one that the subflow itself has");
    assert_eq!(chunks.take_due(1), Some(Chunk { id: 1, data: 10, len: 10 }));
    assert_eq!(chunks.take_due(1), None);
    assert_eq!(chunks.due_of(10, 0), None);
    assert_eq!(chunks.release(20), 0..2);
    assert_eq!(chunks.due_of(10, 5), None, "released chunks are not due");
    assert_eq!(chunks.due_of(4, 5), Some(2));
}

#[test]
fn what_another_subflow_has_is_not_due() {
    let mut chunks = three();
    chunks.on_bound(0, 0);
    chunks.on_queued(0, 1);
    assert!(!chunks.make_due(0, bit(1)));
    chunks.on_unqueued(0, 1);
    assert!(chunks.make_due(0, bit(1)));
}

#[test]
fn the_oldest_chunk_is_never_forgotten() {
    let mut chunks = three();
    chunks.on_bound(0, 0);
    assert!(!chunks.rescue_oldest(), "a subflow has it");
    chunks.on_delivered(0, 0);
    assert!(chunks.rescue_oldest(), "data would have been acknowledged with it");
    assert!(chunks.take_due(0).is_some());
    chunks.on_unbound(0, 0);
    assert!(chunks.rescue_oldest(), "nobody has it");
}

#[test]
fn released_chunks_make_room() {
    let mut chunks = Chunks::default();
    for i in 0..10_000 {
        chunks.cut(10 * i, 10);
        let released = chunks.release(10 * i.saturating_sub(20));
        assert!(released.end <= i);
    }
    assert_eq!(chunks.show(None).len(), 21);
    assert_eq!(chunks.show(None)[0].id, BlockId(9_979));
    assert!(chunks.views.len() < 200);
    assert_eq!(chunks.get(9_978), None);
}

#[test]
fn of_a_long_table_the_blocks_that_matter_are_shown() {
    let mut chunks = Chunks::default();
    for i in 0..1000 {
        chunks.cut(10 * i, 10);
        chunks.on_bound(i, 0);
        chunks.on_sent(i, 0, Time::ZERO);
        if i < 700 {
            chunks.on_bound(i, 1);
            chunks.on_sent(i, 1, Time::ZERO);
        }
    }
    chunks.make_due(500, 0);
    let shown = |chunks: &mut Chunks, puller| -> Vec<u64> {
        chunks.show(puller).iter().skip(64).map(|view| view.id.0).collect()
    };
    assert_eq!(chunks.show(None)[63].id, BlockId(63));
    assert_eq!(shown(&mut chunks, None), [500]);
    assert_eq!(shown(&mut chunks, Some(2)), [500], "it can copy the very oldest");
    assert_eq!(shown(&mut chunks, Some(1)), [700], "what it has itself is not offered");
    assert_eq!(shown(&mut chunks, Some(0)), [0; 0]);
    chunks.on_queued(700, 1);
    assert_eq!(shown(&mut chunks, Some(1)), [701]);
    chunks.on_lost(600, 1);
    chunks.on_unbound(600, 1);
    assert_eq!(shown(&mut chunks, Some(1)), [600], "it can be copied there again");
    chunks.take_due(500);
    assert_eq!(shown(&mut chunks, Some(2)), [0; 0]);
}
