use anabranch_types::Rng;

use super::*;
use crate::gf256;

/// A block of `count` random sources of `length` bytes.
fn random_block(seed: u64, count: usize, length: usize) -> Vec<Vec<u8>> {
    let mut rng = Rng::substream(seed, "reed_solomon.block");
    (0..count)
        .map(|_| {
            let mut source = vec![0; length];
            rng.fill(&mut source);
            source
        })
        .collect()
}

fn slices(symbols: &[Vec<u8>]) -> Vec<&[u8]> {
    symbols.iter().map(Vec::as_slice).collect()
}

/// Repairs `first..first + count`.
fn repairs(sources: &[Vec<u8>], first: u8, count: usize, length: usize) -> Vec<Vec<u8>> {
    let mut repairs = vec![vec![0xAA; length]; count];
    let mut buffers: Vec<&mut [u8]> = repairs.iter_mut().map(Vec::as_mut_slice).collect();
    encode(first, &slices(sources), &mut buffers).unwrap();
    repairs
}

fn indexed(symbols: &[Vec<u8>]) -> impl Iterator<Item = (u8, &[u8])> {
    symbols.iter().enumerate().map(|(index, symbol)| (index as u8, symbol.as_slice()))
}

/// Decodes with the sources in `lost` left out, and checks what comes back.
fn check_recovery(
    decoder: &mut Decoder,
    sources: &[Vec<u8>],
    lost: impl Fn(u8) -> bool,
    repairs: &[(u8, &[u8])],
    length: usize,
) {
    let known = indexed(sources).filter(|(index, _)| !lost(*index));
    let recovered = decoder.decode(sources.len(), length, known, repairs.iter().copied()).unwrap();
    let wanted: Vec<u8> = (0..sources.len() as u8).filter(|index| lost(*index)).collect();
    assert_eq!(recovered.len(), wanted.len());
    assert_eq!(recovered.clone().map(|(index, _)| index).collect::<Vec<_>>(), wanted);
    for (index, bytes) in recovered {
        let mut expected = sources[usize::from(index)].clone();
        expected.resize(length, 0);
        assert_eq!(bytes, expected, "source {index}");
    }
}

#[test]
fn coefficients_are_those_of_the_specification() {
    for repair in 0..=254_u8 {
        for source in 0..255 - repair {
            let sum = (255 - repair) ^ source;
            assert_eq!(Some(coefficient(repair, source)), gf256::inverse(sum), "{repair} {source}");
        }
    }
}

#[test]
fn repairs_do_not_depend_on_how_many_are_made() {
    let sources = random_block(1, 20, 100);
    let together = repairs(&sources, 0, 235, 100);
    for first in [0, 1, 5, 100, 234] {
        assert_eq!(repairs(&sources, first, 1, 100)[0], together[usize::from(first)]);
    }
    assert_eq!(repairs(&sources, 7, 20, 100), together[7..27]);
}

#[test]
fn a_later_empty_source_changes_nothing() {
    let mut sources = random_block(2, 9, 50);
    let before = repairs(&sources, 3, 4, 50);
    sources.push(Vec::new());
    assert_eq!(repairs(&sources, 3, 4, 50), before);
}

#[test]
fn short_sources_count_as_extended_with_zeros() {
    let mut sources = random_block(3, 12, 130);
    for (index, source) in sources.iter_mut().enumerate() {
        source.truncate(130 - index * 11);
    }
    let mut padded = sources.clone();
    padded.iter_mut().for_each(|source| source.resize(130, 0));
    let made = repairs(&sources, 0, 6, 130);
    assert_eq!(made, repairs(&padded, 0, 6, 130));
    let given: Vec<_> = indexed(&made).collect();
    check_recovery(&mut Decoder::new(), &sources, |index| index % 2 == 1, &given, 130);
    check_recovery(&mut Decoder::new(), &sources, |index| index > 7, &given, 130);
}

#[test]
fn every_pattern_of_a_small_block_decodes() {
    let sources = random_block(4, 5, 33);
    let made = repairs(&sources, 0, 4, 33);
    let mut decoder = Decoder::new();
    for arrived in 0_u32..1 << 9 {
        let given: Vec<_> =
            indexed(&made).filter(|(index, _)| arrived >> (5 + index) & 1 == 1).collect();
        let lost = |index: u8| arrived >> index & 1 == 0;
        if arrived.count_ones() >= 5 {
            check_recovery(&mut decoder, &sources, lost, &given, 33);
        } else {
            let known = indexed(&sources).filter(|(index, _)| !lost(*index));
            let error = decoder.decode(5, 33, known, given.iter().copied()).unwrap_err();
            assert!(matches!(error, Error::NotEnoughSymbols { .. }), "{error}");
        }
    }
}

#[test]
fn the_largest_blocks_decode_with_every_kernel() {
    for (count, extra, length) in
        [(128, 127, 90), (127, 128, 64), (1, 254, 7), (254, 1, 40), (255, 0, 8)]
    {
        let sources = random_block(5, count, length);
        let made = repairs(&sources, 0, extra, length);
        let erased = count.min(extra);
        let given: Vec<_> = indexed(&made).skip(extra - erased).collect();
        for kernel in Kernel::available() {
            let mut decoder = Decoder::with_kernel(kernel);
            check_recovery(&mut decoder, &sources, |i| usize::from(i) < erased, &given, length);
            let kept = count - erased;
            check_recovery(&mut decoder, &sources, |i| usize::from(i) >= kept, &given, length);
        }
    }
}

#[test]
fn kernels_encode_alike() {
    let sources = random_block(6, 50, 1200);
    let mut reference = vec![vec![0; 1200]; 13];
    let mut buffers: Vec<&mut [u8]> = reference.iter_mut().map(Vec::as_mut_slice).collect();
    encode_with(Kernel::portable(), 0, &slices(&sources), &mut buffers).unwrap();
    assert_eq!(repairs(&sources, 0, 13, 1200), reference);
}

#[test]
fn symbols_without_bytes_are_still_counted() {
    let made = repairs(&[vec![], vec![], vec![]], 0, 2, 0);
    let given: Vec<_> = indexed(&made).collect();
    let sources = vec![vec![]; 3];
    check_recovery(&mut Decoder::new(), &sources, |index| index != 1, &given, 0);
}

#[test]
fn a_decoder_is_reusable_after_errors_and_other_sizes() {
    let mut decoder = Decoder::new();
    for (count, extra, length) in [(100, 25, 1200), (3, 2, 5), (20, 5, 1300), (40, 40, 64)] {
        let sources = random_block(7, count, length);
        let made = repairs(&sources, 0, extra, length);
        let given: Vec<_> = indexed(&made).collect();
        let erased = extra.min(count);
        check_recovery(&mut decoder, &sources, |i| usize::from(i) < erased, &given, length);
        assert!(decoder.decode(count, length, [], []).is_err());
    }
}

#[test]
fn surplus_repairs_are_checked_and_left_aside() {
    let mut decoder = Decoder::new();
    for count in [1, 31, 32, 33, 64, 128] {
        let sources = random_block(8, count, 70);
        let made = repairs(&sources, 0, 255 - count, 70);
        let mut given: Vec<_> = indexed(&made).collect();
        for erased in [0, 1, 2, 9] {
            check_recovery(&mut decoder, &sources, |i| i < erased, &given, 70);
        }
        given.push(given[0]);
        let known = indexed(&sources).skip(1);
        let result = decoder.decode(count, 70, known, given).map(|recovered| recovered.len());
        assert_eq!(result, Err(Error::Duplicate { role: Role::Repair, index: 0 }));
    }
}

#[test]
fn encoding_errors_are_typed() {
    let source: &[u8] = &[1, 2, 3];
    let mut long = [0; 3];
    let mut other = [0; 3];
    assert_eq!(encode(0, &[], &mut [&mut long]), Err(Error::NoSources));
    assert_eq!(
        encode(0, &[source; 255], &mut [&mut long]),
        Err(Error::TooManySymbols { sources: 255, repairs: 1 })
    );
    assert_eq!(
        encode(254, &[source], &mut [&mut long]),
        Err(Error::TooManySymbols { sources: 1, repairs: 255 })
    );
    assert_eq!(
        encode(0, &[&[], source], &mut [&mut long[..2]]),
        Err(Error::SourceTooLong { index: 1, length: 3, limit: 2 })
    );
    assert_eq!(
        encode(0, &[source], &mut [&mut long, &mut other[..2]]),
        Err(Error::RepairLength { length: 2, expected: 3 })
    );
    assert_eq!((long, other), ([0; 3], [0; 3]));
    assert_eq!(encode(254, &[source], &mut []), Ok(()));
    assert_eq!(encode(253, &[source], &mut [&mut long]), Ok(()));
}

#[test]
fn decoding_errors_are_typed() {
    let decode = |sources, known: &[(u8, &'static [u8])], repairs: &[(u8, &'static [u8])]| {
        Decoder::new()
            .decode(sources, 2, known.iter().copied(), repairs.iter().copied())
            .map(|recovered| recovered.len())
    };
    let bytes: &[u8] = &[1, 2];
    let (source, repair) = (Role::Source, Role::Repair);
    assert_eq!(decode(0, &[], &[]), Err(Error::NoSources));
    assert_eq!(decode(256, &[], &[]), Err(Error::TooManySymbols { sources: 256, repairs: 0 }));
    let out_of_range = |role, index| Err(Error::IndexOutOfRange { role, index, sources: 2 });
    assert_eq!(decode(2, &[(2, bytes)], &[]), out_of_range(source, 2));
    assert_eq!(decode(2, &[(0, bytes)], &[(253, bytes)]), out_of_range(repair, 253));
    assert_eq!(decode(2, &[(0, bytes)], &[(252, bytes)]), Ok(1));
    let duplicate = |role, index| Err(Error::Duplicate { role, index });
    assert_eq!(decode(2, &[(1, bytes), (1, bytes)], &[]), duplicate(source, 1));
    assert_eq!(decode(2, &[], &[(9, bytes), (9, bytes)]), duplicate(repair, 9));
    assert_eq!(
        decode(2, &[(0, &[1, 2, 3])], &[]),
        Err(Error::SourceTooLong { index: 0, length: 3, limit: 2 })
    );
    for (wrong, length) in [(&[1][..], 1), (&[1, 2, 3][..], 3)] {
        let expected = Err(Error::RepairLength { length, expected: 2 });
        assert_eq!(decode(2, &[(0, bytes)], &[(0, wrong)]), expected);
    }
    assert_eq!(
        decode(3, &[(0, bytes)], &[(0, bytes)]),
        Err(Error::NotEnoughSymbols { missing: 2, repairs: 1 })
    );
    assert_eq!(decode(1, &[(0, bytes)], &[(0, bytes)]), Ok(0));
    assert_eq!(
        decode(255, &[], &[(0, bytes)]),
        Err(Error::IndexOutOfRange { role: repair, index: 0, sources: 255 })
    );
}
