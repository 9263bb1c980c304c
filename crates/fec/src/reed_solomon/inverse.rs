use core::ops::Range;

use crate::gf256::{EXP, LOG, ORDER};
use crate::kernel::Matrix;

/// The most sources that can be missing: each needs a repair, and a block has at most 255 symbols.
pub(super) const MAX_ERASURES: usize = 127;

/// The inverse of a square Cauchy matrix, element by element in closed form.
///
/// For the matrix `1 / (x_i + y_j)` the inverse's element in row j and column i is `r_j · c_i /
/// (x_i + y_j)` with `r_j = Π_k (x_k + y_j) / Π_{k≠j} (y_k + y_j)` and `c_i = Π_k (x_i + y_k) /
/// Π_{k≠i} (x_i + x_k)` (Schechter, "On the inversion of certain matrices", 1959; signs vanish in
/// characteristic 2). Computing the 2e factors for e missing sources takes O(e²) steps, and fewer
/// if the [`Points`] are runs of numbers; elimination would take O(e³). The factors are kept as
/// logarithms.
///
/// There is room for `MAX` rows.
pub(super) struct CauchyInverse<'a, const MAX: usize> {
    repairs: &'a [u8],
    missing: &'a [u8],
    row_logs: [i32; MAX],
    column_logs: [i32; MAX],
}

impl<'a, const MAX: usize> CauchyInverse<'a, MAX> {
    /// The inverse for the given repairs and missing sources, which must all differ. Both lists
    /// have the same length, at most `MAX`; surplus entries are left out. `known` are the other
    /// sources of the block.
    pub(super) fn new(repairs: &'a [u8], missing: &'a [u8], known: &[u8]) -> Self {
        let count = repairs.len().min(missing.len()).min(MAX);
        let (repairs, missing) = (&repairs[..count], &missing[..count]);
        let (x, y) = (Points::of(repairs), Points::but(missing, known));
        let (mut row_logs, mut column_logs) = ([0; MAX], [0; MAX]);
        for (repair, log) in repairs.iter().zip(&mut column_logs) {
            *log = (y.product(!repair) - x.product(*repair)).rem_euclid(ORDER as i32);
        }
        for (source, log) in missing.iter().zip(&mut row_logs) {
            *log = (x.product(!source) - y.product(*source)).rem_euclid(ORDER as i32);
        }
        CauchyInverse { repairs, missing, row_logs, column_logs }
    }
}

/// Points of the matrix by index: y_j = j for source j, or x_i = 255 − i for repair i.
#[derive(Clone, Copy)]
enum Points<'a> {
    /// The points listed.
    List(&'a [u8]),
    /// All points from the first number up to but not including the second.
    Run(u8, u8),
    /// All points below the number except those listed.
    Below(u8, &'a [u8]),
}

impl<'a> Points<'a> {
    /// The points of `list`.
    fn of(list: &'a [u8]) -> Self {
        run(list).map_or(Points::List(list), |run| Points::Run(run.start, run.end))
    }

    /// The points of `list`, which together with `others` are all numbers below some bound.
    fn but(list: &'a [u8], others: &'a [u8]) -> Self {
        match others.len() < list.len() {
            true => Points::Below((list.len() + others.len()) as u8, others),
            false => Points::List(list),
        }
    }

    /// The logarithm of the product of the points' sums with `a`, not reduced. A point equal to `a`
    /// adds nothing, since the table's entry for zero is 0.
    fn product(self, a: u8) -> i32 {
        let of = |list: &[u8]| -> i32 { list.iter().map(|point| log(point ^ a)).sum() };
        match self {
            Points::List(list) => of(list),
            Points::Run(start, end) => below(end, a) - below(start, a),
            Points::Below(end, others) => below(end, a) - of(others),
        }
    }
}

/// The numbers of `list` as a range, if they are consecutive and none is 255.
pub(super) fn run(list: &[u8]) -> Option<Range<u8>> {
    let first = *list.first()?;
    let end = u8::try_from(usize::from(first) + list.len()).ok()?;
    list.iter().copied().eq(first..end).then_some(first..end)
}

/// The sum of the logarithms of `a ^ b` for all b below `end`. The numbers below `end` split into
/// one run for each set bit of `end`; the length of each is a power of 2, and its first number a
/// multiple of the length. If b takes all values of one such run, `a ^ b` takes all values of
/// another.
fn below(end: u8, a: u8) -> i32 {
    let mut sum = 0;
    let mut rest = end;
    while rest > 0 {
        let length = rest & rest.wrapping_neg();
        rest -= length;
        let first = usize::from((a ^ rest) & length.wrapping_neg());
        sum += LOG_SUMS[first + usize::from(length)] - LOG_SUMS[first];
    }
    sum
}

/// For each number, the sum of the logarithms of all lower bytes.
static LOG_SUMS: [i32; 257] = {
    let mut sums = [0; 257];
    let mut byte = 0;
    while byte < 256 {
        sums[byte + 1] = sums[byte] + LOG[byte] as i32;
        byte += 1;
    }
    sums
};

impl<const MAX: usize> Matrix for CauchyInverse<'_, MAX> {
    /// A row is a missing source, a column a repair.
    #[inline(always)]
    fn write_column(&self, input: usize, rows: Range<usize>, column: &mut [u8]) {
        let x = !self.repairs[input];
        let column_log = self.column_logs[input] + ORDER as i32;
        let rows = self.missing[rows.clone()].iter().zip(&self.row_logs[rows]);
        for ((y, row_log), entry) in rows.zip(column) {
            // Between 1 and 254 + 254 + 255, inside the table; the remainder avoids a bounds check.
            let log = row_log + column_log - log(x ^ y);
            *entry = EXP[log as usize % EXP.len()];
        }
    }
}

fn log(a: u8) -> i32 {
    i32::from(LOG[usize::from(a)])
}

#[cfg(test)]
mod tests;
