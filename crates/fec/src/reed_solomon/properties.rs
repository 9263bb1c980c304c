use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::subsequence;

use super::*;

/// A block, the range of repairs that are made, and the symbols that arrive.
#[derive(Clone, Debug)]
struct Scenario {
    sources: Vec<Vec<u8>>,
    length: usize,
    first_repair: u8,
    repair_count: usize,
    /// Places in the list of all sources, then all repairs: exactly as many as there are sources.
    arrived: Vec<usize>,
}

fn scenarios() -> impl Strategy<Value = Scenario> {
    (1_usize..=255, 0_usize..300)
        .prop_flat_map(|(count, length)| {
            let source = vec(any::<u8>(), 0..=length);
            (vec(source, count), Just(length), 0..=(255 - count))
        })
        .prop_flat_map(|(sources, length, repair_count)| {
            let count = sources.len();
            let symbols: Vec<usize> = (0..count + repair_count).collect();
            let first_repair = 0..=(255 - count - repair_count) as u8;
            let arrived = subsequence(symbols, count).prop_shuffle();
            (Just(sources), Just(length), first_repair, Just(repair_count), arrived)
        })
        .prop_map(|(sources, length, first_repair, repair_count, arrived)| Scenario {
            sources,
            length,
            first_repair,
            repair_count,
            arrived,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_f_symbols_decode(scenario in scenarios()) {
        let Scenario { sources, length, first_repair, repair_count, arrived } = scenario;
        let mut repairs = vec![vec![0; length]; repair_count];
        let slices: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
        let mut buffers: Vec<&mut [u8]> = repairs.iter_mut().map(Vec::as_mut_slice).collect();
        encode(first_repair, &slices, &mut buffers).unwrap();

        let count = sources.len();
        let known = arrived.iter().filter(|place| **place < count);
        let known = known.map(|place| (*place as u8, slices[*place]));
        let extra = arrived.iter().filter(|place| **place >= count).map(|place| place - count);
        let extra = extra.map(|repair| (first_repair + repair as u8, repairs[repair].as_slice()));
        let mut decoder = Decoder::new();
        let recovered: Vec<_> = decoder.decode(count, length, known, extra).unwrap().collect();

        let missing = (0..count).filter(|place| !arrived.contains(place));
        let expected: Vec<(u8, Vec<u8>)> = missing
            .map(|place| {
                let mut bytes = sources[place].clone();
                bytes.resize(length, 0);
                (place as u8, bytes)
            })
            .collect();
        let recovered: Vec<_> =
            recovered.into_iter().map(|(index, bytes)| (index, bytes.to_vec())).collect();
        prop_assert_eq!(recovered, expected);
    }

    /// Whatever a peer sends, decoding returns symbols or an error. Indices and lengths are mostly
    /// valid, so that both results occur.
    #[test]
    fn no_input_panics(
        (sources, length) in prop_oneof![4 => 1_usize..12, 1 => 0_usize..300]
            .prop_flat_map(|sources| (Just(sources), 0_usize..40)),
        known in vec((any::<u8>(), any::<bool>(), vec(any::<u8>(), 44)), 0..12),
        repairs in vec((any::<u8>(), any::<bool>(), vec(any::<u8>(), 44)), 0..12),
        wild in prop_oneof![3 => Just(false), 1 => Just(true)],
    ) {
        let modulus = if wild { 256 } else { sources.max(1) };
        let known = known.iter().map(|(index, short, bytes)| {
            let length = if *short { length / 2 } else { length };
            ((usize::from(*index) % modulus) as u8, &bytes[..length])
        });
        let repairs = repairs.iter().map(|(index, wrong, bytes)| {
            let length = if *wrong && wild { length + 1 } else { length };
            (*index / if wild { 1 } else { 2 }, &bytes[..length])
        });
        let known: Vec<_> = known.collect();
        let distinct: std::collections::BTreeSet<u8> =
            known.iter().map(|(index, _)| *index).collect();
        if let Ok(recovered) = Decoder::new().decode(sources, length, known.clone(), repairs) {
            prop_assert_eq!(recovered.len() + known.len(), sources);
            prop_assert_eq!(distinct.len(), known.len());
            for (index, bytes) in recovered {
                prop_assert!(usize::from(index) < sources && !distinct.contains(&index));
                prop_assert_eq!(bytes.len(), length);
            }
        }
    }
}
