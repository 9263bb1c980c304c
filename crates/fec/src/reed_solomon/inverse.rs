use core::ops::Range;

use crate::gf256::{EXP, LOG, ORDER};
use crate::kernel::Matrix;

/// The most sources that can be missing: each needs a repair, and both count among 255 symbols.
pub(super) const MAX_ERASURES: usize = 127;

/// The inverse of a square Cauchy matrix, element by element in closed form.
///
/// For the matrix `1 / (x_i + y_j)` the inverse's element in row j and column i is `r_j · c_i /
/// (x_i + y_j)` with `r_j = Π_k (x_k + y_j) / Π_{k≠j} (y_k + y_j)` and
/// `c_i = Π_k (x_i + y_k) / Π_{k≠i} (x_i + x_k)` (Schechter, "On the inversion of certain matrices",
/// 1959; signs vanish in characteristic 2). The e + e factors take O(e²) steps, where elimination
/// would take O(e³). They are kept as logarithms.
///
/// `MAX` is the most rows there is room for.
pub(super) struct CauchyInverse<'a, const MAX: usize> {
    x: &'a [u8],
    y: &'a [u8],
    row_logs: [i32; MAX],
    column_logs: [i32; MAX],
}

impl<'a, const MAX: usize> CauchyInverse<'a, MAX> {
    /// The inverse for the points `x` and `y`: equally many, at most `MAX`, all
    /// different. Points beyond that are left out.
    pub(super) fn new(x: &'a [u8], y: &'a [u8]) -> Self {
        let count = x.len().min(y.len()).min(MAX);
        let (x, y) = (&x[..count], &y[..count]);
        let (mut row_logs, mut column_logs) = ([0; MAX], [0; MAX]);
        let (rows, columns) = (&mut row_logs[..count], &mut column_logs[..count]);
        for (x, column) in x.iter().zip(columns.iter_mut()) {
            for (y, row) in y.iter().zip(rows.iter_mut()) {
                let log = log(x ^ y);
                *column += log;
                *row += log;
            }
        }
        subtract_differences(x, columns);
        subtract_differences(y, rows);
        CauchyInverse { x, y, row_logs, column_logs }
    }
}

impl<const MAX: usize> Matrix for CauchyInverse<'_, MAX> {
    /// A row is a missing source, a column a repair.
    #[inline(always)]
    fn write_column(&self, input: usize, rows: Range<usize>, column: &mut [u8]) {
        let x = self.x[input];
        let column_log = self.column_logs[input] + ORDER as i32;
        let rows = self.y[rows.clone()].iter().zip(&self.row_logs[rows]);
        for ((y, row_log), entry) in rows.zip(column) {
            // Between 1 and 254 + 254 + 255, inside the table; the remainder spares a check.
            let log = row_log + column_log - log(x ^ y);
            *entry = EXP[log as usize % EXP.len()];
        }
    }
}

fn log(a: u8) -> i32 {
    i32::from(LOG[usize::from(a)])
}

/// Takes from each point's sum the logarithms of its differences from the other points, and moves
/// the sums into `0..255`. A point's difference from itself is zero, whose entry in the table is 0.
fn subtract_differences(points: &[u8], sums: &mut [i32]) {
    for (point, sum) in points.iter().zip(sums) {
        let differences: i32 = points.iter().map(|other| log(point ^ other)).sum();
        *sum = (*sum - differences).rem_euclid(ORDER as i32);
    }
}
