use anabranch_types::Time;

/// The number that stands for no entry, at the end of a list.
const NONE: u32 = u32::MAX;
/// Number of bits of a time that one level uses.
const BITS: u32 = 6;
/// Number of slots of a level.
const SLOTS: usize = 1 << BITS;
/// Number of levels; together they cover all 64 bits of a time.
const LEVELS: usize = 64_usize.div_ceil(BITS as usize);

/// A timer wheel. It holds at most one entry per source; entries are taken out in the order of
/// their time and, at equal times, of arming.
///
/// This is a hierarchy of wheels with a resolution of one nanosecond (Varghese and Lauck 1987,
/// scheme 7). Each slot is a doubly linked list of entries, which are stored with their sources.
/// The level of an entry is the highest digit, to base 64, in which its time differs from the
/// current time, so all entries of one instant are in one list, in the order in which they were
/// armed. The time to arm, move or take out an entry does not grow with the number of entries.
#[derive(Clone, Debug)]
pub(crate) struct Wheel {
    /// The current time: that of the last entry taken out. No entry is earlier.
    now: u64,
    lists: Vec<List>,
    /// Bit mask of the slots in use, for each level.
    occupied: [u64; LEVELS],
    /// Bit mask of the levels in use.
    levels: u16,
}

/// The storage of the entries of a [`Wheel`].
pub(crate) trait Entries {
    /// The entry of a source, which exists.
    fn entry(&mut self, source: u32) -> &mut Entry;
}

/// The entry of a source. Its place in the wheel follows from its time and the current time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// When the source is due; `u64::MAX` if it is not armed.
    time: u64,
    next: u32,
    previous: u32,
}

impl Entry {
    /// The entry of a source that is not armed.
    pub(crate) const UNARMED: Entry = Entry { time: u64::MAX, next: NONE, previous: NONE };
}

#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
}

impl Wheel {
    /// An empty wheel at time zero.
    pub(crate) fn new() -> Self {
        Wheel {
            now: 0,
            lists: vec![List { first: NONE, last: NONE }; LEVELS * SLOTS],
            occupied: [0; LEVELS],
            levels: 0,
        }
    }

    /// Makes `source` due at `time`, unless it is already due at that time or earlier. A time in
    /// the past counts as the current time.
    #[inline]
    pub(crate) fn arm(&mut self, entries: &mut impl Entries, source: u32, time: Time) {
        // `u64::MAX` means not armed, so it is not a valid time.
        let time = time.as_nanos().max(self.now).min(u64::MAX - 1);
        let entry = entries.entry(source);
        if entry.time <= time {
            return;
        }
        if entry.time != u64::MAX {
            self.unlink(entries, source);
        }
        self.link(entries, source, time);
    }

    /// Version of [`arm`](Self::arm) for a source that is not armed.
    #[inline]
    pub(crate) fn start(&mut self, entries: &mut impl Entries, source: u32, time: Time) {
        self.link(entries, source, time.as_nanos().max(self.now).min(u64::MAX - 1));
    }

    /// When the first entry is due; `None` if the wheel is empty.
    pub(crate) fn next(&self, entries: &mut impl Entries) -> Option<Time> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros() as usize;
        let slot = level * SLOTS + self.occupied[level].trailing_zeros() as usize;
        Some(Time::from_nanos(self.earliest(entries, slot).0))
    }

    /// Takes out the first entry that is due by `limit`. Returns its time and its source.
    #[inline]
    pub(crate) fn pop(&mut self, entries: &mut impl Entries, limit: Time) -> Option<(Time, u32)> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros() as usize;
        let slot = level * SLOTS + self.occupied[level].trailing_zeros() as usize;
        let first = self.lists[slot].first;
        let Entry { time, next, .. } = *entries.entry(first);
        if level > 0 && next != NONE {
            return self.spread(entries, slot, limit);
        }
        if time > limit.as_nanos() {
            return None;
        }
        // No other entry lies between the current time and this one, so all others stay in place.
        self.now = time;
        entries.entry(first).time = u64::MAX;
        if next == NONE {
            self.empty(slot);
        } else {
            self.lists[slot].first = next;
            entries.entry(next).previous = NONE;
        }
        Some((Time::from_nanos(time), first))
    }

    /// Takes out the first entry of `slot`, unless it is due after `limit`. Its time becomes the
    /// current time, and the other entries move to the levels where they now belong.
    fn spread(
        &mut self,
        entries: &mut impl Entries,
        slot: usize,
        limit: Time,
    ) -> Option<(Time, u32)> {
        let (earliest, first) = self.earliest(entries, slot);
        if earliest > limit.as_nanos() {
            return None;
        }
        self.now = earliest;
        let mut source = self.lists[slot].first;
        self.empty(slot);
        while source != NONE {
            let Entry { time, next, .. } = *entries.entry(source);
            if source == first {
                entries.entry(source).time = u64::MAX;
            } else {
                self.link(entries, source, time);
            }
            source = next;
        }
        Some((Time::from_nanos(earliest), first))
    }

    /// The least time in a slot, and the first source that is due then.
    fn earliest(&self, entries: &mut impl Entries, slot: usize) -> (u64, u32) {
        let mut earliest = (u64::MAX, NONE);
        let mut source = self.lists[slot].first;
        while source != NONE {
            let entry = entries.entry(source);
            if entry.time < earliest.0 {
                earliest = (entry.time, source);
            }
            source = entry.next;
        }
        earliest
    }

    /// The slot of an entry that is due at `time`.
    #[inline]
    fn slot_of(&self, time: u64) -> usize {
        let differing = 63 - ((time ^ self.now) | 1).leading_zeros();
        let level = differing / BITS;
        level as usize * SLOTS + (time >> (level * BITS)) as usize % SLOTS
    }

    /// Puts the entry of `source` at the end of the list where `time` belongs.
    #[inline]
    fn link(&mut self, entries: &mut impl Entries, source: u32, time: u64) {
        let slot = self.slot_of(time);
        let list = &mut self.lists[slot];
        let previous = core::mem::replace(&mut list.last, source);
        *entries.entry(source) = Entry { time, next: NONE, previous };
        if previous == NONE {
            list.first = source;
            self.occupied[slot / SLOTS] |= 1 << (slot % SLOTS);
            self.levels |= 1 << (slot / SLOTS);
        } else {
            entries.entry(previous).next = source;
        }
    }

    fn unlink(&mut self, entries: &mut impl Entries, source: u32) {
        let Entry { time, next, previous } = *entries.entry(source);
        let slot = self.slot_of(time);
        if previous == NONE && next == NONE {
            return self.empty(slot);
        }
        match previous {
            NONE => self.lists[slot].first = next,
            previous => entries.entry(previous).next = next,
        }
        match next {
            NONE => self.lists[slot].last = previous,
            next => entries.entry(next).previous = previous,
        }
    }

    #[inline]
    fn empty(&mut self, slot: usize) {
        self.lists[slot] = List { first: NONE, last: NONE };
        let level = slot / SLOTS;
        self.occupied[level] &= !(1 << (slot % SLOTS));
        if self.occupied[level] == 0 {
            self.levels &= !(1 << level);
        }
    }
}

impl Entries for Vec<Entry> {
    #[inline]
    fn entry(&mut self, source: u32) -> &mut Entry {
        &mut self[source as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_types::Rng;
    use std::collections::BTreeMap;

    /// A wheel and the entries of its sources.
    #[derive(Default)]
    struct Sources(Vec<Entry>, Option<Wheel>);

    impl Sources {
        fn wheel(&mut self) -> (&mut Vec<Entry>, &mut Wheel) {
            (&mut self.0, self.1.get_or_insert_with(Wheel::new))
        }

        fn arm(&mut self, source: u32, nanos: u64) {
            let (entries, wheel) = self.wheel();
            wheel.arm(entries, source, Time::from_nanos(nanos));
        }

        fn pop(&mut self, limit: u64) -> Option<(u64, u32)> {
            let (entries, wheel) = self.wheel();
            let next = wheel.next(entries).map(Time::as_nanos);
            let popped = wheel.pop(entries, Time::from_nanos(limit));
            let popped = popped.map(|(time, source)| (time.as_nanos(), source));
            assert_eq!(popped.map(|(time, _)| time), next.filter(|next| *next <= limit));
            popped
        }

        fn drain(&mut self, limit: u64) -> Vec<(u64, u32)> {
            core::iter::from_fn(|| self.pop(limit)).collect()
        }
    }

    fn armed(times: &[u64]) -> Sources {
        let mut sources = Sources::default();
        for (source, time) in times.iter().enumerate() {
            sources.0.push(Entry::UNARMED);
            sources.arm(source as u32, *time);
        }
        sources
    }

    #[test]
    fn entries_come_in_the_order_of_time_then_of_arming() {
        let mut sources = armed(&[70, 5, 1 << 40, 5, 70, 0, u64::MAX - 1]);
        assert_eq!(sources.drain(69), [(0, 5), (5, 1), (5, 3)]);
        assert_eq!(sources.drain(1 << 41), [(70, 0), (70, 4), (1 << 40, 2)]);
        assert_eq!(sources.drain(u64::MAX), [(u64::MAX - 1, 6)]);
    }

    #[test]
    fn arming_again_moves_an_entry_forwards_only() {
        let mut sources = armed(&[100, 200]);
        sources.arm(1, 300);
        assert_eq!(sources.0[1].time, 200);
        sources.arm(1, 50);
        assert_eq!(sources.drain(1000), [(50, 1), (100, 0)]);
        assert_eq!(sources.0[1].time, u64::MAX);
    }

    #[test]
    fn the_past_is_now() {
        let mut sources = armed(&[1000, 0]);
        assert_eq!(sources.drain(1000), [(0, 1), (1000, 0)]);
        sources.arm(1, 3);
        assert_eq!(sources.drain(1000), [(1000, 1)]);
    }

    #[test]
    fn any_sequence_agrees_with_an_ordered_map() {
        for seed in 0..20 {
            let mut rng = Rng::new(seed);
            let mut wheel = armed(&[]);
            let sources = 1 + rng.below(40) as u32;
            wheel.0.resize(sources as usize, Entry::UNARMED);
            let mut model: BTreeMap<(u64, u64), u32> = BTreeMap::new();
            let mut now = 0;
            for sequence in 0..4000 {
                let reach = 1_u64 << rng.below(45);
                if rng.chance(0.55) {
                    let source = rng.below(sources.into()) as u32;
                    let time = now + rng.below(reach);
                    wheel.arm(source, time);
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
                    assert_eq!(wheel.pop(limit), expected);
                    if let Some((time, _)) = expected {
                        model.pop_first();
                        now = time;
                    }
                }
            }
        }
    }
}
