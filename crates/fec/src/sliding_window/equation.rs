//! Equations of a decoder: a repair minus its known sources is a sum of multiples of the missing ones.

use crate::gf256;
use crate::kernel::{Kernel, MAX_INPUTS};

/// Coefficients of an equation, one for each column.
const SPAN: usize = super::columns::MOST;
/// The number of equations from which an unknown is eliminated at a time. It is the most rows of a
/// kernel's tile.
const AT_ONCE: usize = 12;

/// Sources of fewer bytes are multiplied byte by byte, since calling a kernel costs more.
const SHORT: usize = 8;

/// A sum of multiples of missing sources, the unknowns, and its value.
#[derive(Debug)]
pub(super) struct Equation {
    /// The coefficients of the unknowns, by column, followed by the bytes of the sum.
    row: Box<[u8]>,
    /// Length of the part of the row that may be non-zero, bytes; at least [`SPAN`]. All bytes
    /// beyond it are zero.
    used: usize,
    /// The column of an unknown whose coefficient is 1 and which no other equation contains.
    pub(super) pivot: u16,
    /// How many coefficients are not zero.
    unknowns: usize,
}

impl Equation {
    /// The equation 0 = 0, from a row of zeros.
    pub(super) fn new(row: Box<[u8]>) -> Self {
        Equation { row, used: SPAN, pivot: 0, unknowns: 0 }
    }

    /// The row, which is cleared.
    pub(super) fn into_row(mut self) -> Box<[u8]> {
        self.row[..self.used].fill(0);
        self.row
    }

    /// Bytes of a row for symbols of this length.
    pub(super) fn row_length(symbol_length: usize) -> usize {
        SPAN + symbol_length
    }

    /// The coefficient of the unknown in a column.
    pub(super) fn factor(&self, column: u16) -> u8 {
        self.row[usize::from(column) % SPAN]
    }

    /// All coefficients, by column.
    pub(super) fn factors(&self) -> &[u8] {
        &self.row[..SPAN]
    }

    /// The bytes of the sum, without the zeros beyond `used`.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.row[SPAN..self.used]
    }

    /// How many bytes are added when this equation is added to another.
    pub(super) fn size(&self) -> usize {
        self.used
    }

    /// Whether the equation contains only one unknown, its pivot.
    pub(super) fn is_solved(&self) -> bool {
        self.unknowns == 1
    }

    /// Adds an unknown that the equation does not contain.
    pub(super) fn add_unknown(&mut self, column: u16, factor: u8) {
        self.row[usize::from(column) % SPAN] = factor;
        self.unknowns += usize::from(factor != 0);
    }

    /// Adds multiples of known sources, each with its factor.
    pub(super) fn add_known(&mut self, factors: &[u8], sources: &[&[u8]]) {
        let longest = sources.iter().map(|source| source.len()).max().unwrap_or(0);
        self.used = self.used.max(SPAN + longest);
        let bytes = &mut self.row[SPAN..SPAN + longest];
        Kernel::best().multiply_add(sources, &mut [bytes], |_, source| factors[source]);
    }

    /// Moves an unknown that has become known to the other side.
    pub(super) fn take_out(&mut self, column: u16, source: &[u8]) {
        let factor = core::mem::take(&mut self.row[usize::from(column) % SPAN]);
        self.unknowns -= usize::from(factor != 0);
        if source.len() >= SHORT {
            return self.add_known(&[factor], &[source]);
        }
        self.used = self.used.max(SPAN + source.len());
        for (byte, known) in self.row[SPAN..].iter_mut().zip(source) {
            *byte ^= gf256::mul(factor, *known);
        }
    }

    /// Eliminates the pivots of the `others`; this equation contains at most [`MAX_INPUTS`] of them. Since no
    /// equation in `others` contains the pivot of another, all factors are known beforehand, and one product
    /// suffices.
    pub(super) fn eliminate_pivots(&mut self, others: &[Equation]) {
        let (mut factors, mut rows) = ([0; MAX_INPUTS], [&[][..]; MAX_INPUTS]);
        let pivots = others.iter().filter(|other| self.factor(other.pivot) != 0);
        let mut count = 0;
        for ((factor, row), other) in factors.iter_mut().zip(&mut rows).zip(pivots) {
            (*factor, *row) = (self.factor(other.pivot), &other.row[..other.used]);
            count += 1;
        }
        let (rows, used) = (&rows[..count], rows.iter().map(|row| row.len()).max());
        self.used = self.used.max(used.unwrap_or(0));
        let row = &mut self.row[..self.used];
        Kernel::best().multiply_add(rows, &mut [row], |_, other| factors[other]);
        self.count();
    }

    /// The equation multiplied by `inverse`, written to `row`, which is all zeros. The coefficient
    /// in `column` becomes 1, and that unknown the pivot.
    pub(super) fn with_pivot(&self, column: u16, inverse: u8, mut row: Box<[u8]>) -> Self {
        let (from, to) = (&self.row[..self.used], &mut row[..self.used]);
        Kernel::best().multiply(&[from], &mut [to], |_, _| inverse);
        Equation { row, pivot: column, ..*self }
    }

    fn count(&mut self) {
        // In chunks whose counts fit into a byte: vector instructions then compare and count bytes.
        let chunks = self.factors().chunks(usize::from(u8::MAX));
        let counts =
            chunks.map(|chunk| chunk.iter().map(|factor| u8::from(*factor != 0)).sum::<u8>());
        self.unknowns = counts.map(usize::from).sum();
    }
}

/// Eliminates the pivot of an equation from others.
pub(super) fn eliminate(equation: &Equation, others: &mut [Equation]) {
    let from = &equation.row[..equation.used];
    for others in others.chunks_mut(AT_ONCE) {
        let mut rows: [&mut [u8]; AT_ONCE] = Default::default();
        let (mut factors, mut count) = ([0; AT_ONCE], 0);
        for other in &mut *others {
            let factor = other.factor(equation.pivot);
            if factor != 0 {
                other.used = other.used.max(equation.used);
                other.unknowns = 0;
                (factors[count], rows[count]) = (factor, &mut other.row[..equation.used]);
                count += 1;
            }
        }
        Kernel::best().multiply_add(&[from], &mut rows[..count], |row, _| factors[row]);
        // An unknown count of 0 marks the equations changed above, since no equation without unknowns is kept.
        others.iter_mut().filter(|other| other.unknowns == 0).for_each(Equation::count);
    }
}
