use super::*;
use anabranch_types::Rng;
use proptest::prelude::*;
use std::collections::BTreeMap;

const LENGTH: usize = 20;

fn source(number: u64) -> Vec<u8> {
    let mut rng = Rng::new(number ^ 0x5eed);
    (0..1 + rng.below(LENGTH as u64)).map(|_| rng.below(256) as u8).collect()
}

fn made(repair: Repair) -> Vec<u8> {
    let sources: Vec<Vec<u8>> =
        (repair.first..repair.first + repair.count as u64).map(source).collect();
    let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
    let mut out = vec![0xaa; LENGTH];
    encode(repair, &sources, &mut out).unwrap();
    out
}

/// A decoder and all that has been given to it.
struct Receiver {
    decoder: Decoder,
    known: BTreeMap<u64, Vec<u8>>,
    /// All repairs that arrived, for elimination from scratch.
    repairs: Vec<Repair>,
    end: u64,
}

impl Receiver {
    fn repair(&mut self, repair: Repair) -> bool {
        let known = &self.known;
        let bytes = made(repair);
        let helped =
            self.decoder.repair(repair, &bytes, |number| known.get(&number).map(Vec::as_slice));
        self.repairs.push(repair);
        self.settle();
        helped
    }

    fn source(&mut self, number: u64) {
        let bytes = source(number);
        self.decoder.source(number, &bytes);
        self.known.insert(number, bytes);
        self.settle();
    }

    fn settle(&mut self) {
        let mut out = [0xbb; LENGTH];
        while let Some((number, length)) = self.decoder.take_recovered(&mut out) {
            let truth = source(number);
            assert_eq!(out[..truth.len()], truth[..], "source {number}");
            assert!(out[truth.len()..].iter().all(|byte| *byte == 0));
            assert!(self.known.insert(number, out[..length].to_vec()).is_none());
        }
        let first = (0..).find(|number| !self.known.contains_key(number)).unwrap();
        self.decoder.advance(first);
    }

    /// How many sources elimination over all repairs at once determines.
    fn determined(&self) -> usize {
        let unknown: Vec<u64> =
            (0..self.end).filter(|number| !self.known.contains_key(number)).collect();
        let mut rows: Vec<Vec<u8>> = Vec::new();
        for repair in &self.repairs {
            let coefficients = repair.coefficients();
            rows.push(
                unknown
                    .iter()
                    .map(|number| match number.checked_sub(repair.first) {
                        Some(at) if (at as usize) < repair.count => coefficients[at as usize],
                        _ => 0,
                    })
                    .collect(),
            );
        }
        let mut rank = 0;
        for column in 0..unknown.len() {
            let Some(at) = (rank..rows.len()).find(|at| rows[*at][column] != 0) else { continue };
            rows.swap(rank, at);
            let inverse = crate::gf256::inverse(rows[rank][column]).unwrap();
            let pivot: Vec<u8> =
                rows[rank].iter().map(|x| crate::gf256::mul(*x, inverse)).collect();
            for (other, row) in rows.iter_mut().enumerate() {
                let factor = row[column];
                if other != rank && factor != 0 {
                    for (entry, value) in row.iter_mut().zip(&pivot) {
                        *entry ^= crate::gf256::mul(*value, factor);
                    }
                }
            }
            rows[rank] = pivot;
            rank += 1;
        }
        rows[..rank].iter().filter(|row| row.iter().filter(|x| **x != 0).count() == 1).count()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, ..ProptestConfig::default() })]

    /// Whichever symbols arrive, in any order, each source is rebuilt correctly as soon as it is
    /// determined.
    #[test]
    fn sources_are_rebuilt_as_soon_as_they_are_determined(
        seed in any::<u64>(),
        loss in 0.0..0.6,
        every in 1..12_u64,
        reach in 1..60_u64,
    ) {
        let mut rng = Rng::new(seed);
        let end = 150;
        let decoder = Decoder::new(LENGTH);
        let (known, repairs) = (BTreeMap::new(), Vec::new());
        let mut receiver = Receiver { decoder, known, repairs, end };
        let mut late = Vec::new();
        for number in 0..end {
            if rng.chance(loss) {
                if rng.chance(0.3) {
                    late.push(number);
                }
            } else {
                receiver.source(number);
            }
            if number % every == 0 {
                let first = (number + 1).saturating_sub(1 + rng.below(reach));
                let count = (number + 1 - first) as usize;
                receiver.repair(Repair { first, count, key: rng.below(1 << 30) as u32 });
            }
            if rng.chance(0.1) && let Some(number) = late.pop()
                && !receiver.known.contains_key(&number)
            {
                receiver.source(number);
            }
            if number % 16 == 0 {
                prop_assert_eq!(receiver.determined(), 0, "something could be rebuilt");
            }
        }
        prop_assert_eq!(receiver.determined(), 0);
        // One repair for each source, and a few more because some do not help, complete the rest.
        let mut needed = 0;
        for key in 0..end as u32 + 8 {
            if receiver.known.len() as u64 == end {
                break;
            }
            receiver.repair(Repair { first: 0, count: end as usize, key });
            needed = key;
        }
        prop_assert_eq!(receiver.known.len() as u64, end, "after {} more", needed);
        prop_assert_eq!(receiver.decoder.deficit(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, ..ProptestConfig::default() })]

    /// Only repairs that would take too much work are lost: no source is rebuilt wrongly, and repairs are used again
    /// once more bytes have arrived.
    #[test]
    fn short_of_work_a_decoder_forgets_and_makes_no_mistake(seed in any::<u64>(), work in 0..400_000_u64) {
        let mut rng = Rng::new(seed);
        let decoder = Decoder::new(LENGTH).with_work(work);
        let (known, repairs) = (BTreeMap::new(), Vec::new());
        let mut receiver = Receiver { decoder, known, repairs, end: 300 };
        let mut refused = 0;
        for key in 0..600 {
            let number = rng.below(300);
            match rng.below(20) {
                0 if !receiver.known.contains_key(&number) => receiver.source(number),
                1 => receiver.decoder.give_up(number),
                _ => {
                    let first = number.min(150);
                    refused += u32::from(!receiver.repair(Repair { first, count: 150, key }));
                }
            }
        }
        prop_assert!(refused > 100, "only {} were refused", refused);
        for _ in 0..2000 {
            receiver.decoder.source(1 << 40, &[0; LENGTH]);
        }
        let first = (0..300).find(|number| !receiver.known.contains_key(number));
        if let Some(first) = first {
            let count = 300_u64.min(first + 100) - first;
            for key in 1000..1000 + count as u32 + 8 {
                receiver.repair(Repair { first, count: count as usize, key });
            }
            prop_assert!((first..first + count).all(|number| receiver.known.contains_key(&number)));
        }
    }
}

#[test]
fn what_is_given_up_is_not_waited_for_and_spoils_nothing() {
    let (known, repairs) = (BTreeMap::new(), Vec::new());
    let mut receiver = Receiver { decoder: Decoder::new(LENGTH), known, repairs, end: 4 };
    for (first, count, key) in [(0, 3, 1), (1, 3, 2), (0, 2, 3)] {
        assert!(receiver.repair(Repair { first, count, key }));
    }
    assert_eq!(receiver.decoder.deficit(), 1);
    receiver.decoder.give_up(3);
    assert_eq!(receiver.decoder.deficit(), 1);
    receiver.source(1);
    assert_eq!(receiver.known.keys().copied().collect::<Vec<_>>(), [0, 1, 2]);
}

/// Short symbols earn less than it takes to use their repairs: the decoder has to save up for each repair.
#[test]
fn work_is_earned_again_after_all_of_it_is_spent() {
    let known = (0..500).filter(|number| number % 2 == 0).map(|number| (number, source(number)));
    let (known, repairs) = (known.collect(), Vec::new());
    let decoder = Decoder::new(LENGTH).with_work(0);
    let mut receiver = Receiver { decoder, known, repairs, end: 500 };
    let mut sent = 0;
    loop {
        let first = (0..).find(|number| !receiver.known.contains_key(number)).unwrap();
        if first >= 500 {
            break;
        }
        sent += 1;
        assert!(sent < 20_000, "stalled at {first}");
        let count = (500 - first).min(255) as usize;
        receiver.repair(Repair { first, count, key: sent });
    }
}

/// Repairs of one byte earn hardly any work: once the budget is spent, the decoder examines few of
/// them.
#[test]
fn of_a_flood_of_short_repairs_few_are_looked_at() {
    let mut decoder = Decoder::new(1400).with_work(0);
    let looked_up = std::cell::Cell::new(0);
    for key in 0..100_000 {
        let first = u64::from(key) % 6 * 50;
        decoder.repair(Repair { first, count: 250, key }, &[1], |_| {
            looked_up.set(looked_up.get() + 1);
            None
        });
    }
    let looked_at = looked_up.get() / 250;
    assert!((10..5000).contains(&looked_at), "{looked_at} of 100000");
}

#[test]
fn a_repair_from_far_ahead_is_kept_once() {
    let mut decoder = Decoder::new(LENGTH);
    let far = Repair { first: 1 << 40, count: 113, key: 0 };
    assert!(decoder.repair(far, &made(far), |_| None));
    assert!(!decoder.repair(far, &made(far), |_| None), "it comes twice");
    assert_eq!(decoder.deficit(), 112);
}

/// A source counts while an equation contains it: a source that becomes known, is given up, or whose equation is
/// dropped makes room.
#[test]
fn equations_contain_512_sources_at_most() {
    let (known, repairs) = (BTreeMap::new(), Vec::new());
    let mut receiver = Receiver { decoder: Decoder::new(LENGTH), known, repairs, end: 0 };
    let run = |first, count| Repair { first, count, key: 0 };
    for first in [0, 10_000, 20_000, 30_000] {
        assert!(receiver.repair(run(first, 128)));
    }
    assert_eq!(receiver.decoder.deficit(), 508);
    let more = run(40_000, 64);
    assert!(!receiver.repair(more), "there would be 576");
    assert_eq!(receiver.decoder.deficit(), 508);
    for number in 10_000..10_032 {
        receiver.source(number);
    }
    assert!(!receiver.repair(more), "there would be 544");
    for number in 20_000..20_032 {
        receiver.decoder.give_up(number);
    }
    // The first source given up costs the only equation that contains it, and so frees the other 96 columns as well.
    assert!(receiver.repair(more));
    assert_eq!(receiver.decoder.deficit(), 127 + 95 + 127 + 63);
    assert!(receiver.repair(run(50_000, 96)));
    assert!(!receiver.repair(run(60_000, 1)), "all are taken");
}

/// Pins the coefficients of the wire format.
#[test]
fn coefficients_are_those_of_the_specification() {
    let first = Repair { first: 0, count: 1, key: 0 }.coefficients();
    // The first output of SplitMix64 from 2^30.
    assert_eq!(
        first[0],
        (crate::random_linear::mix(0x9e37_79b9_7f4a_7c15 + (1 << 30)) % 256 % 255) as u8 + 1
    );
    let repairs = [(0, 3, 5), (1, 3, 5), (0, 4, 5), (0, 3, 6)];
    let all: Vec<_> = repairs
        .map(|(first, count, key)| Repair { first, count, key }.coefficients()[..3].to_vec())
        .to_vec();
    assert!((1..4).all(|other| all[0] != all[other]));
}
