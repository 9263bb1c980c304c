//! Prints the results of `bench codes`.

use std::fmt::Write;

use serde::Serialize;

use super::measure::{Sample, Shape};
use crate::format;

/// A code over blocks of one shape.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The code, with its options.
    pub code: String,
    /// Source symbols of a block.
    pub sources: u16,
    /// Bytes of a symbol.
    pub symbol_bytes: usize,
    /// Share of the symbols that is lost.
    pub loss: f64,
    /// Blocks measured.
    pub blocks: usize,
    /// Bytes of a block over the time of making the planned repairs, median.
    pub encode_mb_per_s: f64,
    /// Encoding speed over the speed of copying the block, median.
    pub encode_per_copy: f64,
    /// Bytes of a block over the time that its receiver spends, median.
    pub decode_mb_per_s: f64,
    /// Decoding speed over the speed of copying the block, median.
    pub decode_per_copy: f64,
    /// Mean number of symbols that arrived beyond the number of source symbols.
    pub beyond_mean: f64,
    /// Largest number of symbols that arrived beyond the number of source symbols.
    pub beyond_most: u32,
    /// Microseconds that the receiver spends on the last symbol, median.
    pub last_us: f64,
    /// Bytes of symbols that the receiver keeps, mean.
    pub held_bytes: f64,
}

impl Row {
    /// Summarises the measurements of all blocks.
    pub fn new(code: String, shape: Shape, samples: &[Sample]) -> Self {
        let bytes = (usize::from(shape.sources) * shape.symbol) as f64;
        let middle = |of: &dyn Fn(&Sample) -> f64| median(samples.iter().map(of).collect());
        let mean = |of: &dyn Fn(&Sample) -> f64| {
            samples.iter().map(of).sum::<f64>() / samples.len().max(1) as f64
        };
        Row {
            code,
            sources: shape.sources,
            symbol_bytes: shape.symbol,
            loss: shape.loss,
            blocks: samples.len(),
            encode_mb_per_s: bytes * 1e-6 / middle(&|sample| sample.encode),
            encode_per_copy: middle(&|sample| sample.copy / sample.encode),
            decode_mb_per_s: bytes * 1e-6 / middle(&|sample| sample.decode),
            decode_per_copy: middle(&|sample| sample.copy / sample.decode),
            beyond_mean: mean(&|sample| f64::from(sample.beyond)),
            beyond_most: samples.iter().map(|sample| sample.beyond).max().unwrap_or(0),
            last_us: 1e6 * middle(&|sample| sample.last),
            held_bytes: mean(&|sample| sample.held as f64),
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The figures as a text table.
pub fn table(rows: &[Row], symbol: u16) -> String {
    let mut text = format!(
        "Blocks of F symbols of {symbol} bytes; speeds in megabytes of the block a second\n"
    );
    let mut before = None;
    for row in rows {
        if before.replace((row.sources, row.loss)) != Some((row.sources, row.loss)) {
            let _ = writeln!(
                text,
                "\nF = {}, {} lost, {} blocks\n{:<16} {:>8} {:>7} {:>8} {:>7} {:>15} {:>9} {:>9}",
                row.sources,
                format::percent(row.loss),
                row.blocks,
                "code",
                "encode",
                "x copy",
                "decode",
                "x copy",
                "beyond F (most)",
                "last µs",
                "held kB",
            );
        }
        let beyond = format!("{:.2} ({})", row.beyond_mean, row.beyond_most);
        let _ = writeln!(
            text,
            "{:<16} {:>8.0} {:>7.3} {:>8.0} {:>7.3} {beyond:>15} {:>9.1} {:>9.1}",
            row.code,
            row.encode_mb_per_s,
            row.encode_per_copy,
            row.decode_mb_per_s,
            row.decode_per_copy,
            row.last_us,
            row.held_bytes * 1e-3,
        );
    }
    text
}
