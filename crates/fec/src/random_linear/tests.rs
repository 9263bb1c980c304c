use super::*;
use anabranch_types::Rng;
use proptest::prelude::*;

fn block(rng: &mut Rng, sources: usize, length: usize) -> Vec<Vec<u8>> {
    (0..sources)
        .map(|_| {
            let own = 1 + rng.below(length as u64) as usize;
            (0..own).map(|_| rng.below(256) as u8).collect()
        })
        .collect()
}

fn repair(key: u32, sources: &[Vec<u8>], length: usize) -> Vec<u8> {
    let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
    let mut repair = vec![0xaa; length];
    encode(key, &sources, &mut [&mut repair]).unwrap();
    repair
}

/// Equations and symbols that the receiver of a block holds.
#[derive(Default)]
struct Receiver {
    equations: Equations,
    known: Vec<(u16, Vec<u8>)>,
    repairs: Vec<Vec<u8>>,
}

impl Receiver {
    fn rebuilt(&mut self, length: usize) -> Result<Vec<(u16, Vec<u8>)>, Error> {
        self.known.sort();
        let known: Vec<(u16, &[u8])> = self.known.iter().map(|(i, b)| (*i, &b[..])).collect();
        let repairs: Vec<&[u8]> = self.repairs.iter().map(Vec::as_slice).collect();
        let mut out = Vec::new();
        let mut buffer = Vec::new();
        let held = Held { length, known: &known, repairs: &repairs };
        self.equations.rebuild(&held, &mut buffer, |index, bytes| {
            out.push((index, bytes.to_vec()));
        })?;
        Ok(out)
    }
}

/// The rank by plain elimination. The incremental rank must equal it.
fn rank(rows: &[Bits]) -> usize {
    let mut rows = rows.to_vec();
    let mut rank = 0;
    for column in 0..MAX_SOURCES {
        let Some(at) = (rank..rows.len()).find(|at| bit(&rows[*at], column)) else { continue };
        rows.swap(rank, at);
        let pivot = rows[rank];
        for (other, row) in rows.iter_mut().enumerate() {
            if other != rank && bit(row, column) {
                row.iter_mut().zip(pivot).for_each(|(word, other)| *word ^= other);
            }
        }
        rank += 1;
    }
    rank
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Symbols arrive in any order: the deficit is exact after each one, and once it is 0 the block
    /// is rebuilt.
    #[test]
    fn the_deficit_is_exact_and_nothing_is_rebuilt_wrongly(
        seed in any::<u64>(),
        sources in prop_oneof![1..40_usize, 250..300_usize],
        loss in 0.0..1.0,
    ) {
        let length = 24;
        let mut rng = Rng::new(seed);
        let block = block(&mut rng, sources, length);
        let mut receiver = Receiver::default();
        receiver.equations.begin(sources).unwrap();
        let mut rows: Vec<Bits> = Vec::new();
        let mut next = 0;
        let mut key = rng.below(1 << 30) as u32;
        while receiver.equations.deficit() > 0 {
            let before = receiver.equations.deficit();
            if next < sources && rng.chance(0.5) {
                if !rng.chance(loss) {
                    receiver.equations.source(next);
                    receiver.known.push((next as u16, block[next].clone()));
                    let mut row = [0; WORDS];
                    row[next / 64] = 1 << (next % 64);
                    rows.push(row);
                }
                next += 1;
            } else {
                let kept = receiver.equations.repair(key);
                prop_assert_eq!(kept, receiver.equations.deficit() < before);
                if kept {
                    receiver.repairs.push(repair(key, &block, length));
                }
                rows.push(coefficients(key, sources));
                key += 1;
            }
            if sources < 40 {
                prop_assert_eq!(receiver.equations.deficit(), sources - rank(&rows));
            }
            if receiver.equations.deficit() > 0 {
                prop_assert_eq!(receiver.rebuilt(length), Err(Error::NotEnough));
            }
        }
        let rebuilt = receiver.rebuilt(length).unwrap();
        prop_assert_eq!(rebuilt.len() + receiver.known.len(), sources);
        for (index, bytes) in rebuilt {
            let source = &block[usize::from(index)];
            prop_assert_eq!(&bytes[..source.len()], &source[..]);
            prop_assert!(bytes[source.len()..].iter().all(|byte| *byte == 0));
        }
    }
}

/// The symbols needed beyond F where no source arrives: Σ 1 / (2^i − 1) = 1.607 in the mean.
#[test]
fn blocks_need_1_6_symbols_more_than_they_have_sources() {
    let (blocks, sources) = (4000, 50);
    let mut equations = Equations::default();
    let mut extra = 0;
    for number in 0..blocks {
        equations.begin(sources).unwrap();
        let mut sent = 0;
        while equations.deficit() > 0 {
            equations.repair(number << 12 | sent);
            sent += 1;
        }
        extra += sent - sources as u32;
    }
    let mean = f64::from(extra) / f64::from(blocks);
    // The deviation of one block is 1.66, of the mean 0.026.
    assert!((mean - 1.607).abs() < 0.1, "{mean}");
}

#[test]
fn the_largest_block_is_rebuilt() {
    let mut rng = Rng::new(3);
    let block = block(&mut rng, MAX_SOURCES, 8);
    let mut receiver = Receiver::default();
    receiver.equations.begin(MAX_SOURCES).unwrap();
    for (index, source) in block.iter().enumerate().filter(|(index, _)| index % 3 == 0) {
        receiver.equations.source(index);
        receiver.known.push((index as u16, source.clone()));
    }
    for key in 0.. {
        if receiver.equations.deficit() == 0 {
            break;
        }
        if receiver.equations.repair(key) {
            receiver.repairs.push(repair(key, &block, 8));
        }
    }
    for (index, bytes) in receiver.rebuilt(8).unwrap() {
        assert!(bytes.starts_with(&block[usize::from(index)]), "source {index}");
    }
}

/// Pins the coefficients of the wire format.
#[test]
fn coefficients_are_those_of_the_specification() {
    assert_eq!(coefficients(0, 64)[0], 0xe220_a839_7b1d_cdaf);
    assert_eq!(coefficients(1, 64)[0], 0x910a_2dec_8902_5cc1);
    assert_eq!(coefficients(0, 128)[1], 0x6e78_9e6a_a1b9_65f4);
    assert_eq!(coefficients(0, 4)[0], 0xf);
}

#[test]
fn what_does_not_fit_is_refused() {
    let source: &[u8] = &[1; 9];
    assert_eq!(encode(0, &[], &mut [&mut [0; 9]]), Err(Error::Sources(0)));
    assert_eq!(encode(0, &[source; 1025], &mut [&mut [0; 9]]), Err(Error::Sources(1025)));
    assert_eq!(encode(0, &[source], &mut [&mut [0; 8]]), Err(Error::Length));
    assert_eq!(encode(0, &[source], &mut [&mut [0; 9], &mut [0; 10]]), Err(Error::Length));
    assert_eq!(Equations::default().begin(0), Err(Error::Sources(0)));
    assert_eq!(Equations::default().begin(1025), Err(Error::Sources(1025)));
}
