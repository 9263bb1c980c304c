use super::*;
use anabranch_types::{Rng, math};
use proptest::prelude::*;

fn random_block(rng: &mut Rng, count: usize, length: usize) -> Vec<Vec<u8>> {
    (0..count).map(|_| (0..length).map(|_| rng.next_u64() as u8).collect()).collect()
}

fn slices(symbols: &[Vec<u8>]) -> Vec<&[u8]> {
    symbols.iter().map(Vec::as_slice).collect()
}

/// The repairs from `first` on.
fn repairs(sources: &[Vec<u8>], first: u32, count: usize, length: usize) -> Vec<Vec<u8>> {
    let mut made = vec![vec![0; length]; count];
    let mut rows: Vec<&mut [u8]> = made.iter_mut().map(Vec::as_mut_slice).collect();
    Encoder::default().encode(first, &slices(sources), &mut rows).unwrap();
    made
}

/// Decodes from some sources, by place, and some repairs, by number. Returns what was rebuilt.
fn rebuild(
    count: usize,
    length: usize,
    sources: &[(usize, &[u8])],
    repairs: &[(u32, &[u8])],
) -> Result<Vec<(usize, Vec<u8>)>, Error> {
    let held =
        Held { count, length, sources: sources.iter().copied(), repairs: repairs.iter().copied() };
    let mut rebuilt = Vec::new();
    decode(held, |index, bytes| rebuilt.push((index, bytes.to_vec())))?;
    Ok(rebuilt)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any F + 2 symbols rebuild a block, in any order and whatever the lengths of the sources.
    #[test]
    fn symbols_rebuild_a_block(
        count in 1_usize..120,
        length in 1_usize..60,
        first in prop_oneof![0_u32..50, (SYMBOLS - 10_000)..(SYMBOLS - 1000)],
        lost in 0.0_f64..1.0,
        seed in any::<u64>(),
    ) {
        let mut rng = Rng::new(seed);
        let mut sources = random_block(&mut rng, count, length);
        for source in &mut sources {
            source.truncate(1 + rng.below(length as u64) as usize);
        }
        let mut kept: Vec<(usize, &[u8])> = Vec::new();
        for (index, source) in sources.iter().enumerate() {
            if !rng.chance(lost) {
                kept.insert(rng.below(kept.len() as u64 + 1) as usize, (index, source));
            }
        }
        let missing = count - kept.len();
        let made = repairs(&sources, first, missing + 2, length);
        let mut arrived: Vec<(u32, &[u8])> =
            (first..).zip(made.iter().map(Vec::as_slice)).collect();
        arrived.reverse();
        let rebuilt = rebuild(count, length, &kept, &arrived).unwrap();
        prop_assert_eq!(rebuilt.len(), missing);
        for (index, bytes) in rebuilt {
            let mut whole = sources[index].clone();
            whole.resize(length, 0);
            prop_assert_eq!(bytes, whole);
        }
    }
}

/// The number of failures, in this many trials of probability `chance`, that at most one run in a million exceeds
/// (Poisson distribution).
fn most_failures(trials: u32, chance: f64) -> u32 {
    let mean = f64::from(trials) * chance;
    let (mut term, mut below) = (math::exp(-mean), 0.0);
    for failures in 0..trials {
        below += term;
        if below > 1.0 - 1e-6 {
            return failures;
        }
        term *= mean / f64::from(failures + 1);
    }
    trials
}

/// How many of this many blocks with random losses could not be rebuilt with 0, 1 and 2 symbols more than sources.
fn failures(count: usize, trials: u32, rng: &mut Rng) -> [u32; 3] {
    let sources = random_block(rng, count, 4);
    let made = repairs(&sources, 0, 3 * count, 4);
    let mut failures = [0; 3];
    for _ in 0..trials {
        let mut numbers: Vec<usize> = (0..4 * count).collect();
        for place in 1..numbers.len() {
            numbers.swap(place, rng.below(place as u64 + 1) as usize);
        }
        // A block that is rebuilt would also be rebuilt with more symbols, so its trial ends.
        for (extra, failed) in failures.iter_mut().enumerate() {
            let arrived = numbers[..count + extra].iter().copied();
            let (kept, repaired): (Vec<_>, Vec<_>) = arrived.partition(|number| *number < count);
            let kept: Vec<_> = kept.iter().map(|at| (*at, sources[*at].as_slice())).collect();
            let repaired = repaired.iter().map(|number| number - count);
            let repaired: Vec<_> =
                repaired.map(|number| (number as u32, made[number].as_slice())).collect();
            match rebuild(count, 4, &kept, &repaired) {
                Ok(rebuilt) => {
                    assert!(rebuilt.iter().all(|(at, bytes)| *bytes == sources[*at]));
                    break;
                }
                Err(error) => assert_eq!(error, Error::NotEnough),
            }
            *failed += 1;
        }
    }
    failures
}

/// RFC 6330 states no rates. The code's authors give failure rates of at most 10⁻², 10⁻⁴ and 10⁻⁶
/// for overheads of 0, 1 and 2 symbols (Shokrollahi and Luby, "Raptor Codes", 2011). Rows of random
/// bytes would fail once in 256, in 256² and in 256³.
#[test]
fn blocks_fail_as_rarely_as_stated() {
    let mut rng = Rng::new(6330);
    // 10 and 26 are sizes of the RFC's table, 24 and 50 are padded.
    for (count, trials) in [(10, 12_000), (24, 6000), (26, 6000), (50, 3000)] {
        let failed = failures(count, trials, &mut rng);
        let most = [1e-2, 1e-4, 1e-6].map(|chance| most_failures(trials, chance));
        assert!(failed.iter().zip(most).all(|(failed, most)| *failed <= most), "{failed:?}");
        // A decoder that did not check the rank would never fail.
        assert!(failed[0] > 0, "{count}: {failed:?} of {trials}");
    }
}

#[test]
fn large_blocks_are_rebuilt() {
    let mut rng = Rng::new(3);
    let (count, length) = (5000, 8);
    let sources = random_block(&mut rng, count, length);
    let made = repairs(&sources, 0, 1002, length);
    let kept: Vec<(usize, &[u8])> =
        sources.iter().map(Vec::as_slice).enumerate().filter(|(at, _)| at % 5 != 0).collect();
    let arrived: Vec<(u32, &[u8])> = (0..).zip(made.iter().map(Vec::as_slice)).collect();
    let rebuilt = rebuild(count, length, &kept, &arrived).unwrap();
    assert_eq!(rebuilt.len(), 1000);
    assert!(rebuilt.iter().all(|(at, bytes)| *bytes == sources[*at]));
}

#[test]
fn repairs_are_the_same_one_by_one_and_together() {
    let sources = random_block(&mut Rng::new(2), 30, 9);
    let together = repairs(&sources, 5, 8, 9);
    let mut encoder = Encoder::default();
    for (number, expected) in (5..).zip(&together) {
        let mut made = [0; 9];
        encoder.encode(number, &slices(&sources), &mut [&mut made]).unwrap();
        assert_eq!(made.as_slice(), expected);
    }
    // Another block in the same encoder.
    let other = random_block(&mut Rng::new(4), 30, 9);
    encoder.reset();
    let mut made = [0; 9];
    encoder.encode(5, &slices(&other), &mut [&mut made]).unwrap();
    assert_eq!(made.as_slice(), repairs(&other, 5, 1, 9)[0]);
}

#[test]
fn what_a_block_does_not_have_is_refused() {
    let sources = random_block(&mut Rng::new(1), 4, 5);
    let mut encoder = Encoder::default();
    let mut encode = |first, sources: &[&[u8]], lengths: &[usize]| {
        let mut made: Vec<Vec<u8>> = lengths.iter().map(|length| vec![0; *length]).collect();
        let mut rows: Vec<&mut [u8]> = made.iter_mut().map(Vec::as_mut_slice).collect();
        encoder.encode(first, sources, &mut rows)
    };
    let all = slices(&sources);
    assert_eq!(encode(0, &[], &[5]), Err(Error::Sources(0)));
    assert_eq!(encode(0, &vec![&[1][..]; MAX_SOURCES + 1], &[1]), Err(Error::Sources(56_404)));
    assert_eq!(encode(0, &all, &[5, 4]), Err(Error::Length));
    assert_eq!(encode(0, &all, &[4]), Err(Error::Length));
    assert_eq!(encode(0, &[&[]], &[0]), Err(Error::Length));
    assert_eq!(encode(0, &all, &[1 << 16]), Err(Error::Length));
    assert_eq!(encode(SYMBOLS - 4, &all, &[5]), Err(Error::Number));
    assert_eq!(encode(u32::MAX, &all, &[5]), Err(Error::Number));
    assert_eq!(encode(SYMBOLS - 5, &all, &[5]), Ok(()));
    assert_eq!(encode(0, &all, &[]), Ok(()));

    let good: Vec<(usize, &[u8])> = all.iter().copied().enumerate().skip(1).collect();
    let repair = repairs(&sources, 0, 1, 5);
    let made: [(u32, &[u8]); 1] = [(0, &repair[0])];
    assert_eq!(rebuild(4, 5, &good, &made).unwrap().len(), 1);
    assert_eq!(rebuild(4, 5, &good, &[]), Err(Error::NotEnough));
    assert_eq!(rebuild(0, 5, &[], &made), Err(Error::Sources(0)));
    assert_eq!(rebuild(4, 0, &[], &[]), Err(Error::Length));
    assert_eq!(rebuild(4, 4, &good, &made), Err(Error::Length));
    assert_eq!(rebuild(4, 6, &good, &made), Err(Error::Length));
    assert_eq!(rebuild(3, 5, &good, &made), Err(Error::Number));
    assert_eq!(rebuild(4, 5, &[good[0], good[0]], &made), Err(Error::Number));
    assert_eq!(rebuild(4, 5, &good, &[(SYMBOLS - 4, &repair[0])]), Err(Error::Number));
    assert_eq!(rebuild(4, 5, &good, &[(u32::MAX, &repair[0])]), Err(Error::Number));
}
