//! Reed–Solomon encoding and decoding of 1200-byte symbols, and, for comparison, copying packets of
//! the same size.
//!
//! Speeds on shared machines drift from minute to minute; for figures that can be compared, see
//! the interleaved ratios of `examples/ratios.rs`.

use std::hint::black_box;
use std::time::Duration;

use anabranch_fec::kernel::Kernel;
use anabranch_fec::reed_solomon::{Decoder, encode, encode_with};
use anabranch_types::Rng;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const SYMBOL: usize = 1200;
const SHAPES: [(usize, usize); 5] = [(20, 5), (50, 13), (100, 25), (200, 55), (128, 127)];

fn random_symbols(count: usize) -> Vec<Vec<u8>> {
    let mut rng = Rng::substream(1, "bench.sources");
    (0..count)
        .map(|_| {
            let mut symbol = vec![0; SYMBOL];
            rng.fill(&mut symbol);
            symbol
        })
        .collect()
}

fn slices(symbols: &[Vec<u8>]) -> Vec<&[u8]> {
    symbols.iter().map(Vec::as_slice).collect()
}

fn slices_mut(symbols: &mut [Vec<u8>]) -> Vec<&mut [u8]> {
    symbols.iter_mut().map(Vec::as_mut_slice).collect()
}

/// Copies 100 packets, which fit in the second-level cache with their copies.
fn copying(c: &mut Criterion) {
    let from = random_symbols(100);
    let mut to = vec![vec![0; SYMBOL]; 100];
    let mut group = c.benchmark_group("memcpy");
    group.throughput(Throughput::Bytes(100 * SYMBOL as u64));
    group.bench_function("100 packets", |b| {
        b.iter(|| {
            for (to, from) in to.iter_mut().zip(&from) {
                to.copy_from_slice(black_box(from));
            }
            black_box(&mut to);
        });
    });
    group.finish();
}

fn encoding(c: &mut Criterion) {
    let mut group = c.benchmark_group("encode");
    for (sources, repairs) in SHAPES {
        let symbols = random_symbols(sources);
        let symbols = slices(&symbols);
        let mut buffers = vec![vec![0; SYMBOL]; repairs];
        let mut buffers = slices_mut(&mut buffers);
        group.throughput(Throughput::Bytes((sources * SYMBOL) as u64));
        group.bench_function(BenchmarkId::from_parameter(format!("{sources}+{repairs}")), |b| {
            b.iter(|| encode(0, black_box(&symbols), &mut buffers).is_ok());
        });
    }
    group.finish();

    let mut group = c.benchmark_group("encode 50+13 by kernel");
    let symbols = random_symbols(50);
    let symbols = slices(&symbols);
    let mut buffers = vec![vec![0; SYMBOL]; 13];
    let mut buffers = slices_mut(&mut buffers);
    group.throughput(Throughput::Bytes((50 * SYMBOL) as u64));
    for kernel in Kernel::available() {
        group.bench_function(kernel.name(), |b| {
            b.iter(|| encode_with(kernel, 0, black_box(&symbols), &mut buffers).is_ok());
        });
    }
    group.finish();
}

/// Decodes blocks that lost `erased` consecutive sources, at another place each time.
fn decoding(c: &mut Criterion) {
    for (name, erased) in [
        ("decode, as many lost as repairs", (|_, repairs| repairs) as fn(usize, usize) -> usize),
        ("decode, 10 % lost", |sources, _| sources / 10),
    ] {
        let mut group = c.benchmark_group(name);
        for (sources, repairs) in SHAPES {
            let erased = erased(sources, repairs);
            let symbols = random_symbols(sources);
            let mut buffers = vec![vec![0; SYMBOL]; repairs];
            encode(0, &slices(&symbols), &mut slices_mut(&mut buffers))
                .expect("the block is valid");
            let mut decoder = Decoder::new();
            let mut first = 0;
            group.throughput(Throughput::Bytes((sources * SYMBOL) as u64));
            group.bench_function(
                BenchmarkId::from_parameter(format!("{sources}+{repairs}")),
                |b| {
                    b.iter(|| {
                        first = (first + 7) % sources;
                        let known = (erased..sources)
                            .map(|offset| (first + offset) % sources)
                            .map(|index| (index as u8, symbols[index].as_slice()));
                        let repairs = buffers.iter().take(erased).enumerate();
                        let repairs = repairs.map(|(index, bytes)| (index as u8, bytes.as_slice()));
                        decoder.decode(sources, SYMBOL, known, repairs).is_ok()
                    });
                },
            );
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800))
        .sample_size(20);
    targets = copying, encoding, decoding
}
criterion_main!(benches);
