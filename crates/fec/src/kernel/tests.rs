use anabranch_types::Rng;

use super::*;
use crate::gf256;

/// The step between similar sizes and factors: 1, but `step` under Miri, which takes about a
/// thousand times as long.
const fn every(step: usize) -> usize {
    if cfg!(miri) { step } else { 1 }
}

/// The longest rows that are tried, bytes.
const LONGEST: usize = if cfg!(miri) { 12 } else { 1400 };

fn random_bytes(rng: &mut Rng, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    rng.fill(&mut bytes);
    bytes
}

/// A random product. The expected result comes from the field's own multiplication.
struct Case {
    inputs: Vec<Vec<u8>>,
    before: Vec<Vec<u8>>,
    addends: Vec<Vec<u8>>,
    coefficients: Vec<Vec<u8>>,
}

impl Case {
    fn random(rng: &mut Rng, rows: usize, input_lengths: &[usize], length: usize) -> Self {
        Case {
            inputs: input_lengths.iter().map(|length| random_bytes(rng, *length)).collect(),
            before: (0..rows).map(|_| random_bytes(rng, length)).collect(),
            addends: (0..rows).map(|_| random_bytes(rng, length)).collect(),
            coefficients: (0..rows).map(|_| random_bytes(rng, input_lengths.len())).collect(),
        }
    }

    fn expected(&self, start: Start<'_>) -> Vec<Vec<u8>> {
        let mut outputs = match start {
            Start::Zero => self.before.iter().map(|row| vec![0; row.len()]).collect(),
            Start::Outputs => self.before.clone(),
            Start::Addends(_) => self.addends.clone(),
        };
        for (output, factors) in outputs.iter_mut().zip(&self.coefficients) {
            for (input, factor) in self.inputs.iter().zip(factors) {
                for (out, byte) in output.iter_mut().zip(input) {
                    *out ^= gf256::mul(*factor, *byte);
                }
            }
        }
        outputs
    }

    /// Runs `kernel` with every slice displaced by `shift` bytes and guard bytes on both sides.
    fn check(&self, kernel: Kernel, shift: usize) {
        let inputs: Vec<Vec<u8>> =
            self.inputs.iter().map(|input| [&vec![0xEE; shift], &input[..]].concat()).collect();
        let inputs: Vec<&[u8]> = inputs.iter().map(|input| &input[shift..]).collect();
        let addends: Vec<&[u8]> = self.addends.iter().map(Vec::as_slice).collect();
        for start in [Start::Zero, Start::Outputs, Start::Addends(&addends)] {
            let mut buffers: Vec<Vec<u8>> = self
                .before
                .iter()
                .map(|row| [&[0xDD; 70], &row[..], &[0xDD; 70]].concat())
                .collect();
            let mut outputs: Vec<&mut [u8]> = buffers
                .iter_mut()
                .map(|buffer| {
                    let end = buffer.len() - 70;
                    &mut buffer[70..end]
                })
                .collect();
            kernel.product(
                start,
                &inputs,
                &mut outputs,
                Each(|row: usize, input: usize| self.coefficients[row][input]),
            );
            for (buffer, expected) in buffers.iter().zip(self.expected(start)) {
                let end = buffer.len() - 70;
                assert!(buffer[..70].iter().chain(&buffer[end..]).all(|byte| *byte == 0xDD));
                assert_eq!(&buffer[70..end], &expected[..], "{kernel:?}, shift {shift}");
            }
        }
    }
}

#[test]
fn the_portable_kernel_is_always_there() {
    let names: Vec<_> = Kernel::available().map(Kernel::name).collect();
    assert_eq!(names.last(), Some(&"portable"));
    assert_eq!(names.first(), Some(&Kernel::best().name()));
    assert_eq!(Kernel::named("portable"), Some(Kernel::portable()));
    assert_eq!(Kernel::named("abacus"), None);
    for implementation in IMPLEMENTATIONS {
        assert!((1..=MAX_TILE_ROWS).contains(&implementation.max_rows), "{}", implementation.name);
    }
}

#[test]
fn kernels_agree_at_every_length() {
    let mut rng = Rng::substream(1, "kernel.lengths");
    let long = (201..1100).step_by(61);
    let lengths = (0..=200).chain(long).chain([255, 256, 257, 511, 1199, 1200, 1201, 1400]);
    for length in lengths.filter(|length| *length <= LONGEST).step_by(every(6)) {
        for rows in [1, 3, 5].into_iter().step_by(every(2)) {
            let case = Case::random(&mut rng, rows, &[length; 3], length);
            Kernel::available().for_each(|kernel| case.check(kernel, length % 5));
        }
    }
}

#[test]
fn kernels_agree_at_every_height() {
    let mut rng = Rng::substream(1, "kernel.heights");
    for rows in (1..=26).chain([127]).step_by(every(16)) {
        for length in [1, 33, 300].into_iter().filter(|length| *length <= LONGEST) {
            let case = Case::random(&mut rng, rows, &[length; 5], length);
            Kernel::available().for_each(|kernel| case.check(kernel, rows % 7));
        }
    }
}

#[test]
fn kernels_agree_on_unequal_inputs() {
    let mut rng = Rng::substream(1, "kernel.unequal");
    for round in (0..200).step_by(every(100)) {
        let length = LONGEST.min(1 + rng.below(700) as usize);
        let inputs = rng.below(20) as usize;
        let lengths: Vec<usize> =
            (0..inputs).map(|_| rng.below(length as u64 + 1) as usize).collect();
        let case = Case::random(&mut rng, 1 + round % 16, &lengths, length);
        Kernel::available().for_each(|kernel| case.check(kernel, round % 9));
    }
}

#[test]
fn kernels_agree_on_every_factor_and_byte() {
    let every_byte: Vec<u8> = (0..=255).collect();
    for kernel in Kernel::available() {
        for factor in (0..=255).step_by(every(85)) {
            let mut output = vec![0; 256];
            kernel.multiply(&[&every_byte], &mut [&mut output], |_, _| factor);
            for byte in 0..=255 {
                assert_eq!(output[usize::from(byte)], gf256::mul(factor, byte), "{kernel:?}");
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes Miri half an hour")]
fn the_most_inputs_are_taken() {
    let mut rng = Rng::substream(1, "kernel.most");
    for rows in [1, 2, 12] {
        let case = Case::random(&mut rng, rows, &[64; MAX_INPUTS], 64);
        Kernel::available().for_each(|kernel| case.check(kernel, 1));
    }
}

#[test]
fn no_outputs_is_no_work() {
    for kernel in Kernel::available() {
        kernel.multiply(&[&[1, 2, 3]], &mut [], |_, _| 1);
    }
}

#[test]
#[should_panic(expected = "an input exceeds the outputs")]
fn an_input_longer_than_the_outputs_is_refused() {
    Kernel::best().multiply(&[&[1, 2, 3]], &mut [&mut [0; 2]], |_, _| 1);
}

#[test]
#[should_panic(expected = "outputs differ in length")]
fn unequal_outputs_are_refused() {
    Kernel::best().multiply(&[], &mut [&mut [0; 2], &mut [0; 3]], |_, _| 1);
}

#[test]
#[should_panic(expected = "addends differ in length")]
fn an_addend_of_another_length_is_refused() {
    Kernel::best().multiply_and_add(&[&[0; 3]], Each(|_, _| 1), &[], &mut [&mut [0; 2]]);
}

#[test]
#[should_panic(expected = "addends and outputs differ in number")]
fn a_missing_addend_is_refused() {
    let outputs: &mut [&mut [u8]] = &mut [&mut [0; 2], &mut [0; 2]];
    Kernel::best().multiply_and_add(&[&[0; 2]], Each(|_, _| 1), &[], outputs);
}
