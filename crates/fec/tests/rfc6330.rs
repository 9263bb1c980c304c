//! RaptorQ's repairs are those of RFC 6330: they equal an independent implementation's, and they rebuild the block.

use anabranch_fec::raptorq::{Encoder, Held, decode};

const VECTORS: &str = include_str!("vectors/raptorq.txt");

/// One block of the file; its symbols are repairs by number.
struct Block {
    sources: Vec<Vec<u8>>,
    repairs: Vec<(u32, Vec<u8>)>,
}

fn sources(count: usize, length: usize) -> Vec<Vec<u8>> {
    let byte = |i: usize, j: usize| ((i * i + 37 * i + i / 7 * j * j + 11 * j + 5) % 251) as u8;
    (0..count).map(|i| (0..length).map(|j| byte(i, j)).collect()).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = (0..hex.len() / 2).map(|at| &hex[2 * at..2 * at + 2]);
    digits.map(|pair| u8::from_str_radix(pair, 16).expect("hexadecimal digits")).collect()
}

fn blocks() -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let lines = VECTORS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["block", count, length] => {
                let sources = sources(count.parse().unwrap(), length.parse().unwrap());
                blocks.push(Block { sources, repairs: Vec::new() });
            }
            ["symbol", esi, hex] => {
                let block = blocks.last_mut().expect("a block is open");
                let esi: u32 = esi.parse().unwrap();
                block.repairs.push((esi - block.sources.len() as u32, bytes(hex)));
            }
            _ => panic!("cannot read '{line}'"),
        }
    }
    blocks
}

#[test]
fn repairs_have_the_recorded_bytes() {
    let blocks = blocks();
    assert_eq!(blocks.len(), 13);
    for block in &blocks {
        let sources: Vec<&[u8]> = block.sources.iter().map(Vec::as_slice).collect();
        let mut encoder = Encoder::default();
        assert_eq!(block.repairs.len(), 11);
        for (number, expected) in &block.repairs {
            let mut made = vec![0; expected.len()];
            encoder.encode(*number, &sources, &mut [&mut made]).expect("a valid block");
            assert_eq!(&made, expected, "repair {number} of {} sources", sources.len());
        }
    }
}

/// The recorded repairs replace the last sources, or all sources if there are no more of them than repairs.
#[test]
fn recorded_repairs_rebuild_the_block() {
    for Block { sources, repairs } in blocks() {
        let kept = sources.len().saturating_sub(repairs.len() - 2);
        let held = Held {
            count: sources.len(),
            length: sources[0].len(),
            sources: sources.iter().map(Vec::as_slice).enumerate().take(kept),
            repairs: repairs.iter().rev().map(|(number, bytes)| (*number, bytes.as_slice())),
        };
        let mut next = kept;
        let rebuilt = decode(held, |index, bytes| {
            assert_eq!((index, bytes), (next, sources[index].as_slice()));
            next += 1;
        });
        assert_eq!((rebuilt, next), (Ok(()), sources.len()));
    }
}
