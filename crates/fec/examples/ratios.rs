//! Prints the code's speed as ratios, which do not change when the machine's clock frequency does.
//!
//! All measurements take short turns in one process, and the medians of the ratios of each round
//! are printed:
//!
//! - *encode / M*: bytes multiplied and added per second (F · K · 1200 / t), divided by M, the
//!   bytes per second of copying 1200-byte packets among 100 that stay in the second-level cache;
//! - *one by one*: the time to make the repairs by one call each, divided by the time to make all
//!   by one call;
//! - *decode / encode*: the time to encode e repairs of F sources, divided by the time to decode e
//!   lost sources, for e = K and for a tenth of F. Both multiply e · F symbols.
//!
//! Symbols start on cache lines, like those of a connection.
//!
//! Run with `cargo run --release -p anabranch-fec --example ratios [KERNEL]`.

use std::hint::black_box;
use std::time::Instant;

use anabranch_fec::kernel::Kernel;
use anabranch_fec::reed_solomon::{Decoder, encode_with};
use anabranch_types::Rng;

const SYMBOL: usize = 1200;
const ROUNDS: usize = 41;
const SHAPES: [(usize, usize); 5] = [(20, 5), (50, 13), (100, 25), (200, 55), (128, 127)];

fn main() {
    let name = std::env::args().nth(1);
    let kernel = match &name {
        None => Kernel::best(),
        Some(name) => match Kernel::named(name) {
            Some(kernel) => kernel,
            None => {
                let names: Vec<_> = Kernel::available().map(Kernel::name).collect();
                eprintln!("no kernel '{name}' here; there are: {}", names.join(", "));
                std::process::exit(2);
            }
        },
    };
    println!("kernel {}, {SYMBOL}-byte symbols, medians of {ROUNDS} rounds", kernel.name());
    println!("   F   K   M GB/s  encode GB/s  encode/M    one by one  decode/encode  at 10% lost");
    for (sources, repairs) in SHAPES {
        Block::new(kernel, sources, repairs).report();
    }
}

/// Seconds per call of `work`, averaged over about 200 µs of calls.
#[expect(clippy::disallowed_methods, reason = "real time is what is measured")]
fn seconds_per_call(mut work: impl FnMut()) -> f64 {
    work();
    let mut calls = 1_u32;
    loop {
        let start = Instant::now();
        for _ in 0..calls {
            work();
        }
        let seconds = start.elapsed().as_secs_f64();
        if seconds >= 200e-6 {
            return seconds / f64::from(calls);
        }
        calls *= 2;
    }
}

/// A symbol that starts on a cache line.
struct Symbol {
    room: Vec<u8>,
    start: usize,
}

impl Symbol {
    fn random(rng: &mut Rng) -> Self {
        let mut room = vec![0; SYMBOL + 63];
        rng.fill(&mut room);
        let start = room.as_ptr().align_offset(64);
        Symbol { room, start }
    }

    fn bytes(&self) -> &[u8] {
        &self.room[self.start..][..SYMBOL]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.room[self.start..][..SYMBOL]
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// One block shape and its buffers.
struct Block {
    kernel: Kernel,
    sources: Vec<Symbol>,
    repairs: Vec<Symbol>,
    decoder: Decoder,
    copied_from: Vec<Symbol>,
    copied_to: Vec<Symbol>,
    pattern: usize,
}

impl Block {
    fn new(kernel: Kernel, sources: usize, repairs: usize) -> Self {
        let mut rng = Rng::substream(1, "ratios.sources");
        let mut symbols = |count: usize| -> Vec<Symbol> {
            (0..count).map(|_| Symbol::random(&mut rng)).collect()
        };
        let mut block = Block {
            kernel,
            sources: symbols(sources),
            repairs: symbols(repairs),
            decoder: Decoder::with_kernel(kernel),
            copied_from: symbols(100),
            copied_to: symbols(100),
            pattern: 0,
        };
        block.encode(repairs);
        block
    }

    fn report(mut self) {
        let (count, repairs, tenth) =
            (self.sources.len(), self.repairs.len(), self.sources.len() / 10);
        let (all, few) = (Patterns::new(count, repairs.min(count)), Patterns::new(count, tenth));
        let work = |rows: usize| (count * rows * SYMBOL) as f64;
        let (mut copy_rate, mut rate, mut encode, mut single, mut full, mut light) =
            (vec![], vec![], vec![], vec![], vec![], vec![]);
        for _ in 0..ROUNDS {
            let copy = (100 * SYMBOL) as f64 / seconds_per_call(|| self.copy());
            let together = seconds_per_call(|| self.encode(repairs));
            let one_by_one = seconds_per_call(|| self.encode_one_by_one());
            let decode = seconds_per_call(|| self.decode(&all));
            let encode_tenth = seconds_per_call(|| self.encode(tenth));
            let decode_tenth = seconds_per_call(|| self.decode(&few));
            copy_rate.push(copy);
            rate.push(work(repairs) / together);
            encode.push(work(repairs) / together / copy);
            single.push(one_by_one / together);
            full.push(together / decode);
            light.push(encode_tenth / decode_tenth);
        }
        println!(
            "{count:4} {repairs:3} {:8.1} {:12.1} {:9.2} {:13.2} {:14.2} {:12.2}",
            median(copy_rate) / 1e9,
            median(rate) / 1e9,
            median(encode),
            median(single),
            median(full),
            median(light),
        );
    }

    fn copy(&mut self) {
        for (to, from) in self.copied_to.iter_mut().zip(&self.copied_from) {
            to.bytes_mut().copy_from_slice(black_box(from.bytes()));
        }
        black_box(&mut self.copied_to);
    }

    fn encode(&mut self, rows: usize) {
        let sources: Vec<&[u8]> = self.sources.iter().map(Symbol::bytes).collect();
        let mut repairs: Vec<&mut [u8]> =
            self.repairs.iter_mut().take(rows).map(Symbol::bytes_mut).collect();
        encode_with(self.kernel, 0, black_box(&sources), &mut repairs).expect("a valid block");
        black_box(repairs);
    }

    fn encode_one_by_one(&mut self) {
        let sources: Vec<&[u8]> = self.sources.iter().map(Symbol::bytes).collect();
        for (index, repair) in self.repairs.iter_mut().enumerate() {
            encode_with(self.kernel, index as u8, black_box(&sources), &mut [repair.bytes_mut()])
                .expect("a valid block");
        }
    }

    /// Decodes with `erased` sources lost, in one of several patterns prepared before.
    fn decode(&mut self, patterns: &Patterns) {
        self.pattern = (self.pattern + 1) % patterns.known.len();
        let (count, erased) = (self.sources.len(), patterns.erased);
        let known = patterns.known[self.pattern].iter();
        let known = known.map(|index| (*index, self.sources[usize::from(*index)].bytes()));
        let repairs = self.repairs.iter().take(erased).enumerate();
        let repairs = repairs.map(|(index, bytes)| (index as u8, bytes.bytes()));
        let recovered =
            self.decoder.decode(count, SYMBOL, known, repairs).expect("enough symbols arrived");
        black_box(recovered);
    }
}

/// Random sets of sources that arrive: all but `erased` of them.
struct Patterns {
    erased: usize,
    known: Vec<Vec<u8>>,
}

impl Patterns {
    fn new(sources: usize, erased: usize) -> Self {
        let mut rng = Rng::substream(1, "ratios.patterns");
        let pattern = |_| {
            let mut known: Vec<u8> = (0..sources as u8).collect();
            for _ in 0..erased {
                known.remove(rng.below(known.len() as u64) as usize);
            }
            known
        };
        Patterns { erased, known: (0..64).map(pattern).collect() }
    }
}
