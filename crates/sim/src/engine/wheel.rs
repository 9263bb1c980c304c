use anabranch_types::Time;

/// No entry: the end of a list.
const NONE: u32 = u32::MAX;
/// Bits of a time that one level looks at.
const BITS: u32 = 6;
/// Slots of a level.
const SLOTS: usize = 1 << BITS;
/// Levels, so that together they look at all 64 bits of a time.
const LEVELS: usize = 64_usize.div_ceil(BITS as usize);
/// The slot of a source that has no entry.
const UNARMED: u16 = u16::MAX;

/// What is due when: at most one entry per source, taken out in the order of (time, order of arming).
///
/// A hierarchy of wheels at a resolution of one nanosecond (Varghese and Lauck 1987, scheme 7), each
/// slot a doubly linked list through a table indexed by source. An entry lies at the level of the
/// highest digit, to base 64, in which its time differs from the present, so all entries of one
/// instant lie in one list, in the order in which they were armed. Arming, moving and taking out
/// an entry cost a time that does not grow with their number.
#[derive(Clone, Debug)]
pub(super) struct Wheel {
    /// The time of the entry taken out last. No later than any entry.
    now: u64,
    entries: Vec<Entry>,
    lists: Vec<List>,
    /// Which slots of each level are in use.
    occupied: [u64; LEVELS],
    /// Which levels are in use.
    levels: u16,
}

/// The entry of a source.
#[derive(Clone, Copy, Debug)]
struct Entry {
    time: u64,
    next: u32,
    previous: u32,
    slot: u16,
}

#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
}

impl Wheel {
    /// An empty wheel at the epoch, for sources from 0 on.
    pub(super) fn new() -> Self {
        Wheel {
            now: 0,
            entries: Vec::new(),
            lists: vec![List { first: NONE, last: NONE }; LEVELS * SLOTS],
            occupied: [0; LEVELS],
            levels: 0,
        }
    }

    /// Makes room for one more source and returns it.
    pub(super) fn add_source(&mut self) -> u32 {
        let source = self.entries.len() as u32;
        self.entries.push(Entry { time: 0, next: NONE, previous: NONE, slot: UNARMED });
        source
    }

    /// When `source` is due, if it is armed.
    #[cfg(test)]
    pub(super) fn due(&self, source: u32) -> Option<Time> {
        let entry = &self.entries[source as usize];
        (entry.slot != UNARMED).then(|| Time::from_nanos(entry.time))
    }

    /// Has `source` come up at `time`, or when it is due already if that is not later. A time in the
    /// past means now.
    #[inline]
    pub(super) fn arm(&mut self, source: u32, time: Time) {
        let time = time.as_nanos().max(self.now);
        let entry = &self.entries[source as usize];
        if entry.slot != UNARMED {
            if entry.time <= time {
                return;
            }
            self.unlink(source);
        }
        self.entries[source as usize].time = time;
        self.link(source);
    }

    /// When the first entry is due.
    pub(super) fn next(&self) -> Option<Time> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros() as usize;
        let slot = level * SLOTS + self.occupied[level].trailing_zeros() as usize;
        Some(Time::from_nanos(self.earliest(slot)))
    }

    /// Takes out the first entry that is due by `limit`: which source, and when.
    #[inline]
    pub(super) fn pop(&mut self, limit: Time) -> Option<(Time, u32)> {
        let limit = limit.as_nanos();
        loop {
            if self.levels == 0 {
                return None;
            }
            let level = self.levels.trailing_zeros() as usize;
            let slot = level * SLOTS + self.occupied[level].trailing_zeros() as usize;
            let first = self.lists[slot].first;
            let Entry { time, next, .. } = self.entries[first as usize];
            if level == 0 || next == NONE {
                if time > limit {
                    return None;
                }
                self.now = time;
                self.unlink(first);
                return Some((Time::from_nanos(time), first));
            }
            if !self.spread(slot, limit) {
                return None;
            }
        }
    }

    /// Moves the present to the earliest entry of `slot` and its entries to the levels where they
    /// then belong, unless that is after `limit`.
    fn spread(&mut self, slot: usize, limit: u64) -> bool {
        let earliest = self.earliest(slot);
        if earliest > limit {
            return false;
        }
        self.now = earliest;
        let mut source = self.lists[slot].first;
        self.empty(slot);
        while source != NONE {
            let next = self.entries[source as usize].next;
            self.link(source);
            source = next;
        }
        true
    }

    /// The least time in a slot.
    fn earliest(&self, slot: usize) -> u64 {
        let mut earliest = u64::MAX;
        let mut source = self.lists[slot].first;
        while source != NONE {
            let entry = &self.entries[source as usize];
            earliest = earliest.min(entry.time);
            source = entry.next;
        }
        earliest
    }

    /// Puts the entry of `source` at the end of the list where its time belongs.
    #[inline]
    fn link(&mut self, source: u32) {
        let time = self.entries[source as usize].time;
        let differing = 63 - ((time ^ self.now) | 1).leading_zeros();
        let level = (differing / BITS) as usize;
        let digit = (time >> (level as u32 * BITS)) as usize % SLOTS;
        let slot = level * SLOTS + digit;
        let list = &mut self.lists[slot];
        let previous = core::mem::replace(&mut list.last, source);
        if previous == NONE {
            list.first = source;
            self.occupied[level] |= 1 << digit;
            self.levels |= 1 << level;
        } else {
            self.entries[previous as usize].next = source;
        }
        let entry = &mut self.entries[source as usize];
        entry.next = NONE;
        entry.previous = previous;
        entry.slot = slot as u16;
    }

    #[inline]
    fn unlink(&mut self, source: u32) {
        let Entry { next, previous, slot, .. } = self.entries[source as usize];
        self.entries[source as usize].slot = UNARMED;
        let slot = usize::from(slot);
        if previous == NONE && next == NONE {
            return self.empty(slot);
        }
        match previous {
            NONE => self.lists[slot].first = next,
            previous => self.entries[previous as usize].next = next,
        }
        match next {
            NONE => self.lists[slot].last = previous,
            next => self.entries[next as usize].previous = previous,
        }
    }

    fn empty(&mut self, slot: usize) {
        self.lists[slot] = List { first: NONE, last: NONE };
        let level = slot / SLOTS;
        self.occupied[level] &= !(1 << (slot % SLOTS));
        if self.occupied[level] == 0 {
            self.levels &= !(1 << level);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_types::Rng;
    use std::collections::BTreeMap;

    fn armed(times: &[u64]) -> Wheel {
        let mut wheel = Wheel::new();
        for time in times {
            let source = wheel.add_source();
            wheel.arm(source, Time::from_nanos(*time));
        }
        wheel
    }

    fn drain(wheel: &mut Wheel, limit: u64) -> Vec<(u64, u32)> {
        core::iter::from_fn(|| wheel.pop(Time::from_nanos(limit)))
            .map(|(time, source)| (time.as_nanos(), source))
            .collect()
    }

    #[test]
    fn entries_come_in_the_order_of_time_then_of_arming() {
        let mut wheel = armed(&[70, 5, 1 << 40, 5, 70, 0, u64::MAX - 1]);
        assert_eq!(drain(&mut wheel, 69), [(0, 5), (5, 1), (5, 3)]);
        assert_eq!(drain(&mut wheel, 1 << 41), [(70, 0), (70, 4), (1 << 40, 2)]);
        assert_eq!(drain(&mut wheel, u64::MAX), [(u64::MAX - 1, 6)]);
    }

    #[test]
    fn arming_again_moves_an_entry_forwards_only() {
        let mut wheel = armed(&[100, 200]);
        wheel.arm(1, Time::from_nanos(300));
        assert_eq!(wheel.due(1), Some(Time::from_nanos(200)));
        wheel.arm(1, Time::from_nanos(50));
        assert_eq!(drain(&mut wheel, 1000), [(50, 1), (100, 0)]);
        assert_eq!(wheel.due(1), None);
    }

    #[test]
    fn the_past_is_now() {
        let mut wheel = armed(&[1000, 0]);
        assert_eq!(drain(&mut wheel, 1000), [(0, 1), (1000, 0)]);
        wheel.arm(1, Time::from_nanos(3));
        assert_eq!(drain(&mut wheel, 1000), [(1000, 1)]);
    }

    #[test]
    fn any_sequence_agrees_with_an_ordered_map() {
        for seed in 0..20 {
            let mut rng = Rng::new(seed);
            let mut wheel = armed(&[]);
            let sources = 1 + rng.below(40) as u32;
            (0..sources).for_each(|_| assert!(wheel.add_source() < sources));
            let mut model: BTreeMap<(u64, u64), u32> = BTreeMap::new();
            let mut now = 0;
            for sequence in 0..4000 {
                let reach = 1_u64 << rng.below(45);
                if rng.chance(0.55) {
                    let source = rng.below(sources.into()) as u32;
                    let time = now + rng.below(reach);
                    wheel.arm(source, Time::from_nanos(time));
                    let old = model.iter().find(|(_, other)| **other == source);
                    let old = old.map(|(key, _)| *key);
                    if old.is_none_or(|(due, _)| due > time) {
                        old.map(|key| model.remove(&key));
                        model.insert((time, sequence), source);
                    }
                } else {
                    let limit = now + rng.below(reach);
                    let expected = model.first_key_value().filter(|((time, _), _)| *time <= limit);
                    let expected = expected.map(|((time, _), source)| (*time, *source));
                    let popped = wheel.pop(Time::from_nanos(limit));
                    assert_eq!(popped.map(|(time, source)| (time.as_nanos(), source)), expected);
                    if let Some((time, _)) = expected {
                        model.pop_first();
                        now = time;
                    }
                }
            }
        }
    }
}
