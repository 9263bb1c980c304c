use super::*;
use anabranch_types::Rng;
use proptest::prelude::*;

fn block(rng: &mut Rng, count: usize, length: usize) -> Vec<Vec<u8>> {
    (0..count).map(|_| (0..length).map(|_| rng.next_u64() as u8).collect()).collect()
}

fn repair(soliton: &Soliton, key: u32, sources: &[Vec<u8>], length: usize) -> Vec<u8> {
    let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
    let mut made = vec![0xaa; length];
    encode(soliton, key, &sources, &mut [&mut made]).unwrap();
    made
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Sources and repairs arrive in any order until the deficit is 0: the block is rebuilt, and the deficit never
    /// exceeds the symbols that were still to come.
    #[test]
    fn symbols_rebuild_a_block(
        count in 1_usize..MAX_SOURCES + 1,
        length in 1_usize..40,
        lost in 0.0_f64..1.0,
        late in 0.0_f64..0.3,
        seed in any::<u64>(),
    ) {
        let mut rng = Rng::new(seed);
        let mut sources = block(&mut rng, count, length);
        for source in &mut sources {
            source.truncate(1 + rng.below(length as u64) as usize);
        }
        let soliton = Soliton::of(count).unwrap();
        let mut peeling = Peeling::default();
        peeling.begin(count).unwrap();
        let mut waiting: Vec<usize> = (0..count).filter(|_| rng.chance(lost)).collect();
        let mut known: Vec<(u16, &[u8])> = Vec::new();
        for index in (0..count).filter(|index| !waiting.contains(index)) {
            peeling.source(index);
            known.push((index as u16, &sources[index]));
        }
        let mut kept: Vec<(u32, Vec<u8>)> = Vec::new();
        let mut key = rng.next_u32() >> 3;
        let (mut deficits, mut late_ones) = (Vec::new(), 0);
        while peeling.deficit() > 0 {
            // A source that arrives late.
            if rng.chance(late) && let Some(index) = waiting.pop() {
                peeling.source(index);
                known.push((index as u16, &sources[index]));
                late_ones += 1;
            }
            deficits.push(peeling.deficit());
            if peeling.repair(key) {
                kept.push((key, repair(&soliton, key, &sources, length)));
            }
            key += 1;
        }
        prop_assert!(kept.len() <= 3 * count + 32);
        let symbols = deficits.len() + late_ones;
        for (arrived, deficit) in deficits.iter().enumerate() {
            prop_assert!(arrived + deficit <= symbols, "{deficit} were not missing");
        }
        known.sort();
        let repairs: Vec<(u32, &[u8])> = kept.iter().map(|(key, bytes)| (*key, &bytes[..])).collect();
        let mut rebuilt = Vec::new();
        let outcome = peeling.rebuild(&Held { length, known: &known, repairs: &repairs }, &mut Vec::new(), |place, bytes| {
            rebuilt.push((usize::from(place), bytes.to_vec()));
        });
        prop_assert_eq!(outcome, Ok(()));
        prop_assert_eq!(rebuilt.len(), count - known.len());
        for (place, bytes) in rebuilt {
            let mut whole = sources[place].clone();
            whole.resize(length, 0);
            prop_assert_eq!(bytes, whole);
        }
    }
}

/// Repairs have the degrees of the distribution, whose mean is at least ln F, and combine every source equally often.
#[test]
fn degrees_are_distributed_as_stated() {
    for count in [10, 64, 256, 512] {
        let soliton = Soliton::of(count).unwrap();
        let draws = 40_000_u32;
        let mut degrees = vec![0.0; count + 1];
        let mut occurs = vec![0.0; count];
        let mut sum = 0;
        for key in 0..draws {
            let degree = soliton.degree(key);
            degrees[degree] += 1.0;
            sum += degree;
            soliton.members(key).for_each(|source| occurs[source] += 1.0);
        }
        let mean = sum as f64 / f64::from(draws);
        assert!(mean >= math::ln(count as f64), "F = {count}: mean degree {mean}");
        let mut before = 0;
        for (degree, below) in (1..).zip(&soliton.below) {
            let expected = f64::from(draws) * (below - before) as f64 / 4_294_967_296.0;
            let distance: f64 = degrees[degree] - expected;
            // Of a thousand degrees, one lies five deviations away with a chance of 6 · 10⁻⁴.
            assert!(distance.abs() <= 5.0 * expected.sqrt() + 3.0, "F = {count}, degree {degree}");
            before = *below;
        }
        let each = sum as f64 / count as f64;
        assert!(occurs.iter().all(|times| (times - each).abs() < 6.0 * each.sqrt()), "F = {count}");
    }
}

/// How many repairs rebuild a block of which all sources are lost, for each of `blocks` blocks in
/// ascending order.
fn needed(count: usize, blocks: u32) -> Vec<u32> {
    let mut peeling = Peeling::default();
    let mut needed: Vec<u32> = (0..blocks)
        .map(|block| {
            peeling.begin(count).unwrap();
            let mut keys = block * 100_000..;
            keys.find(|key| {
                peeling.repair(*key);
                peeling.deficit() == 0
            })
            .map_or(0, |last| last - block * 100_000 + 1)
        })
        .collect();
    needed.sort_unstable();
    needed
}

/// β F repairs suffice with a probability of at least 1 − δ (Luby's Theorem 17), and the means are
/// those stated at [`Peeling`].
#[test]
fn as_many_repairs_are_needed_as_stated() {
    for (count, mean) in [(24, 1.49), (64, 1.37), (128, 1.31), (256, 1.25), (512, 1.21)] {
        let needed = needed(count, 2000);
        let f = count as f64;
        let sum: u32 = needed.iter().sum();
        let measured = f64::from(sum) / needed.len() as f64 / f;
        assert!((measured - mean).abs() < 0.015, "F = {count}: {measured} repairs for each source");
        let r = C * math::ln(f / DELTA) * math::sqrt(f);
        let spike = (f / r) as usize;
        let tau: f64 = (1..spike).map(|d| r / (d as f64 * f)).sum();
        let beta = 1.0 + tau + r * math::ln(r / DELTA) / f;
        let enough = needed.iter().filter(|repairs| f64::from(**repairs) <= beta * f).count();
        let share = enough as f64 / needed.len() as f64;
        println!(
            "F = {count}: mean {measured:.3}, beta {beta:.3} suffices for {share:.3}; \
            1 of 10 needs more than {:.3}",
            f64::from(needed[1800]) / f
        );
        // The theorem holds for large blocks.
        assert!(count < 128 || share >= 1.0 - DELTA, "F = {count}: {share} with {beta} F repairs");
    }
}

/// Peeling a block adds up as many symbols as the repairs that are used have, at most 2 F ln F.
#[test]
fn peeling_adds_up_few_symbols() {
    for count in [24, 64, 256, 512] {
        let soliton = Soliton::of(count).unwrap();
        let mut peeling = Peeling::default();
        let (mut additions, blocks) = (0, 200);
        for block in 0..blocks {
            peeling.begin(count).unwrap();
            let mut kept = Vec::new();
            for key in block * 100_000.. {
                if peeling.repair(key) {
                    kept.push(key);
                }
                if peeling.deficit() == 0 {
                    break;
                }
            }
            let used = peeling.steps.iter().map(|step| kept[usize::from(step.repair)]);
            additions += used.map(|key| soliton.degree(key)).sum::<usize>();
        }
        let each = additions as f64 / f64::from(blocks) / (count as f64 * math::ln(count as f64));
        println!("F = {count}: {each:.2} F ln F additions");
        assert!((0.5..2.0).contains(&each), "F = {count}: {each} F ln F");
    }
}

#[test]
fn what_a_block_does_not_have_is_refused() {
    assert_eq!(Soliton::of(0).err(), Some(Error::Sources(0)));
    assert_eq!(Soliton::of(513).err(), Some(Error::Sources(513)));
    let soliton = Soliton::of(2).unwrap();
    let mut out = [0; 3];
    assert_eq!(encode(&soliton, 0, &[b"abc"], &mut [&mut out]), Err(Error::Sources(1)));
    assert_eq!(encode(&soliton, 0, &[b"abcd", b"a"], &mut [&mut out]), Err(Error::Length));
    let mut peeling = Peeling::default();
    peeling.begin(2).unwrap();
    peeling.source(0);
    peeling.source(7);
    let rebuild = |peeling: &Peeling, known: &[(u16, &[u8])], repairs: &[(u32, &[u8])]| {
        peeling.rebuild(&Held { length: 3, known, repairs }, &mut Vec::new(), |_, _| {
            panic!("nothing is rebuilt")
        })
    };
    assert_eq!(rebuild(&peeling, &[(0, b"abc")], &[]), Err(Error::NotEnough));
    peeling.source(1);
    assert_eq!(rebuild(&peeling, &[(0, b"abc")], &[]), Err(Error::NotEnough));
    assert_eq!(rebuild(&peeling, &[(0, b"abcd"), (1, b"a")], &[]), Err(Error::Length));
    assert_eq!(rebuild(&peeling, &[(0, b"abc"), (9, b"a")], &[]), Err(Error::NotEnough));
    assert_eq!(rebuild(&peeling, &[(0, b"abc"), (1, b"a")], &[]), Ok(()));
}
