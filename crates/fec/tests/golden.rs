//! Golden tests of the code's bytes on the wire, which must never change. An independent
//! implementation, written from the definitions of the field, the matrix and the zero extension,
//! made the repairs.

use anabranch_fec::kernel::Kernel;
use anabranch_fec::reed_solomon::{Decoder, encode_with};

const VECTORS: &str = include_str!("vectors/reed_solomon.txt");

/// One block of the file.
#[derive(Default)]
struct Block {
    sources: Vec<Vec<u8>>,
    repairs: Vec<(u8, Vec<u8>)>,
}

fn bytes(hex: &str) -> Vec<u8> {
    assert_eq!(hex.len() % 2, 0, "odd number of digits");
    (0..hex.len() / 2)
        .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hexadecimal digits"))
        .collect()
}

/// Lines are `block`, `source HEX` or `repair INDEX HEX`; `#` starts a comment.
fn blocks() -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for line in VECTORS.lines() {
        let mut words = line.split_whitespace();
        match (words.next(), words.next(), words.next()) {
            (None, ..) => {}
            (Some(word), ..) if word.starts_with('#') => {}
            (Some("block"), ..) => blocks.push(Block::default()),
            (Some("source"), hex, None) => {
                let block = blocks.last_mut().expect("a block is open");
                block.sources.push(bytes(hex.unwrap_or("")));
            }
            (Some("repair"), Some(index), Some(hex)) => {
                let block = blocks.last_mut().expect("a block is open");
                block.repairs.push((index.parse().expect("an index"), bytes(hex)));
            }
            _ => panic!("cannot read '{line}'"),
        }
    }
    blocks
}

#[test]
fn repairs_have_the_recorded_bytes() {
    let blocks = blocks();
    assert_eq!(blocks.len(), 5);
    for block in &blocks {
        let sources: Vec<&[u8]> = block.sources.iter().map(Vec::as_slice).collect();
        assert!(!block.repairs.is_empty());
        for (index, expected) in &block.repairs {
            for kernel in Kernel::available() {
                let mut made = vec![0; expected.len()];
                encode_with(kernel, *index, &sources, &mut [&mut made]).expect("a valid block");
                assert_eq!(&made, expected, "{kernel:?}, repair {index}");
            }
        }
    }
}

#[test]
fn recorded_repairs_give_back_the_sources() {
    for block in blocks() {
        let (count, length) = (block.sources.len(), block.repairs[0].1.len());
        let lost = count.min(block.repairs.len());
        let known = block.sources.iter().enumerate().skip(lost);
        let known = known.map(|(index, bytes)| (index as u8, bytes.as_slice()));
        let repairs = block.repairs.iter().map(|(index, bytes)| (*index, bytes.as_slice()));
        let mut decoder = Decoder::new();
        let recovered = decoder.decode(count, length, known, repairs).expect("enough symbols");
        assert_eq!(recovered.len(), lost);
        for (index, bytes) in recovered {
            let mut expected = block.sources[usize::from(index)].clone();
            expected.resize(length, 0);
            assert_eq!(bytes, expected);
        }
    }
}
