use super::{Implementation, Job, Start};
use crate::gf256::NIBBLE_PRODUCTS;

/// Table look-ups in plain Rust: the kernel for machines without vector instructions, and the reference that the
/// vector kernels are tested against.
pub(super) static PORTABLE: Implementation =
    Implementation { name: "portable", max_rows: 4, is_supported: || true, run };

fn run(job: &mut Job<'_, '_>) {
    let rows = job.outputs.len();
    match job.start {
        Start::Zero => job.outputs.iter_mut().for_each(|output| output.fill(0)),
        Start::Outputs => {}
        Start::Addends(addends) => {
            for (output, addend) in job.outputs.iter_mut().zip(addends) {
                output.copy_from_slice(addend);
            }
        }
    }
    for (input, column) in job.inputs.iter().zip(job.coefficients.chunks_exact(rows)) {
        for (output, factor) in job.outputs.iter_mut().zip(column) {
            multiply_add(*factor, input, output);
        }
    }
}

/// Adds `factor` times `input` to the first bytes of `output`.
fn multiply_add(factor: u8, input: &[u8], output: &mut [u8]) {
    let products = all_products(factor);
    for (out, byte) in output.iter_mut().zip(input) {
        *out ^= products[usize::from(*byte)];
    }
}

/// The products of `factor` with every byte. Building them costs about as much as 20 look-ups and avoids a 64 KiB
/// table, which would push packets out of the first-level cache.
fn all_products(factor: u8) -> [u8; 256] {
    let halves = &NIBBLE_PRODUCTS[usize::from(factor)];
    let mut products = [0; 256];
    for (line, high) in products.chunks_exact_mut(16).zip(halves.high) {
        for (product, low) in line.iter_mut().zip(halves.low) {
            *product = high ^ low;
        }
    }
    products
}
