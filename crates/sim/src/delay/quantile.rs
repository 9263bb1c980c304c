//! Quantiles of the gamma distribution, and standard normal numbers.

use core::f64::consts::{FRAC_1_SQRT_2, PI};

/// The chance that a standard normal number is at most `z`.
pub(super) fn normal_cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z * FRAC_1_SQRT_2)
}

/// The table covers the normal numbers from `-REACH` to `REACH`; two in 10⁹ lie outside.
const REACH: f64 = 6.0;
/// Entries of the table per unit of the normal number.
const PER_UNIT: usize = 32;
/// Above this shape, that is, below a coefficient of variation of 5 %, the Wilson-Hilferty
/// approximation, the cube of a normal number, is off by at most about a thousandth of a standard
/// deviation.
const NEARLY_NORMAL: f64 = 400.0;

/// A gamma distribution of mean 1.
#[derive(Clone, Debug)]
pub(super) enum Gamma {
    /// Quantiles at the normal numbers from `-REACH` in steps of 1 / `PER_UNIT`.
    Table(Box<[f64]>),
    /// Parameter of the Wilson-Hilferty approximation: 1/(9k) for shape k.
    Cube(f64),
}

impl Gamma {
    /// The distribution of `shape`, which is above zero.
    pub(super) fn new(shape: f64) -> Self {
        if shape > NEARLY_NORMAL {
            return Gamma::Cube(1.0 / (9.0 * shape));
        }
        let entries = 2 * REACH as usize * PER_UNIT + 1;
        let mut least = 0.0;
        let table = (0..entries).map(|entry| {
            let z = entry as f64 / PER_UNIT as f64 - REACH;
            least = solve(shape, z, least);
            least / shape
        });
        Gamma::Table(table.collect())
    }

    /// The quantile at the probability that a standard normal number is at most `z`.
    pub(super) fn quantile(&self, z: f64) -> f64 {
        match self {
            Gamma::Cube(ninth) => {
                let root = 1.0 - ninth + z * libm::sqrt(*ninth);
                (root * root * root).max(0.0)
            }
            Gamma::Table(table) => {
                let place = (z.clamp(-REACH, REACH) + REACH) * PER_UNIT as f64;
                let below = place as usize;
                let at = |entry: usize| table.get(entry).or(table.last()).copied().unwrap_or(1.0);
                at(below) + (at(below + 1) - at(below)) * (place - below as f64)
            }
        }
    }
}

/// The quantile of the gamma distribution of `shape` and scale 1 that belongs to the normal number `z`; at
/// least `least`.
fn solve(shape: f64, z: f64, least: f64) -> f64 {
    // Compare the smaller of the two tails, because rounding costs it fewer significant digits.
    let below = |x: f64| {
        let (lower, upper) = tails(shape, x);
        if z < 0.0 { lower < normal_cdf(z) } else { upper > normal_cdf(-z) }
    };
    let (mut low, mut high) = (least, least.max(shape));
    while below(high) {
        (low, high) = (high, high * 2.0);
    }
    // Fifty bisections come close to the precision of a double.
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if below(middle) { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// The chances that a gamma number of `shape` and scale 1 is at most `x`, and above it (Abramowitz and
/// Stegun, 6.5.29 and 6.5.31).
fn tails(shape: f64, x: f64) -> (f64, f64) {
    if x <= 0.0 {
        return (0.0, 1.0);
    }
    let front = libm::exp(shape * libm::log(x) - x - libm::lgamma(shape));
    if x < shape + 1.0 {
        let lower = front * series(shape, x);
        (lower, 1.0 - lower)
    } else {
        let upper = front * fraction(shape, x);
        (1.0 - upper, upper)
    }
}

/// Σ xⁿ / (k·(k + 1)⋯(k + n)).
fn series(shape: f64, x: f64) -> f64 {
    let (mut term, mut sum, mut divisor) = (1.0 / shape, 1.0 / shape, shape);
    while term > sum * 1e-16 {
        divisor += 1.0;
        term *= x / divisor;
        sum += term;
    }
    sum
}

/// 1/(x + 1 − k − 1·(1 − k)/(x + 3 − k − 2·(2 − k)/(x + 5 − k − …)), by Lentz's recurrence.
fn fraction(shape: f64, x: f64) -> f64 {
    let mut b = x + 1.0 - shape;
    let (mut c, mut d) = (1.0 / f64::MIN_POSITIVE, 1.0 / b);
    let mut value = d;
    for i in 1..1_000 {
        let i = f64::from(i);
        let a = i * (shape - i);
        b += 2.0;
        d = 1.0 / (a * d + b);
        c = b + a / c;
        value *= c * d;
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

/// A standard normal number from two uniform ones in `[0, 1)` (Box and Muller 1958).
pub(super) fn normal(first: f64, second: f64) -> f64 {
    libm::sqrt(-2.0 * libm::log(1.0 - first)) * libm::cos(2.0 * PI * second)
}
