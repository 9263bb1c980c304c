//! MPLOT's provisioning and sizing equations as pure functions.
//!
//! `f` is the number of source symbols of a block, `p` the loss probability of the aggregate, `k` a
//! number of proactive repairs. Probabilities are clamped to `[0, MAX_LOSS]`.

use anabranch_types::math;

/// Larger loss is treated as this: provisioning divides by 1 − q, which is thus at least 0.05.
pub const MAX_LOSS: f64 = 0.95;

/// α of MPLOT's Table II by ε.
pub const TABLE_II: [(f64, f64); 5] =
    [(0.01, 1.28), (0.10, 1.20), (0.20, 1.12), (0.30, 1.08), (0.50, 1.00)];

fn loss(p: f64) -> f64 {
    if p.is_nan() { 0.0 } else { p.clamp(0.0, MAX_LOSS) }
}

/// The chances h(0), h(1), … that exactly 0, 1, … repairs are needed (eq. 5), each computed from
/// the previous one: h(i) = h(i − 1) · p · (f + i − 1)/i.
fn needed(f: u16, p: f64) -> impl Iterator<Item = f64> {
    let (f, p) = (f64::from(f), loss(p));
    // The computation uses logarithms, because (1 − p)^f underflows for large blocks at heavy loss.
    let mut log = f * math::ln(1.0 - p);
    let mut i = 0.0;
    core::iter::from_fn(move || {
        let term = if p > 0.0 || i == 0.0 { math::exp(log) } else { 0.0 };
        i += 1.0;
        if p > 0.0 {
            log += math::ln(p * (f + i - 1.0) / i);
        }
        Some(term)
    })
}

/// H(k): the chance that a block with `k` repairs is recovered in its first round (below eq. 5).
pub fn recovery_probability(f: u16, p: f64, k: u16) -> f64 {
    needed(f, p).take(usize::from(k) + 1).sum::<f64>().min(1.0)
}

/// k_min: the fewest repairs for which H(k) ≥ 1 − `epsilon`; `limit` if even that many are too few.
pub fn k_min(f: u16, p: f64, epsilon: f64, limit: u16) -> u16 {
    let mut sum = 0.0;
    for (k, term) in (0..limit).zip(needed(f, p)) {
        sum += term;
        // The tolerance keeps summation errors from asking for one repair too many.
        if sum >= 1.0 - epsilon - 1e-12 {
            return k;
        }
    }
    limit
}

/// α(ε): Table II, interpolated linearly between its columns and constant beyond them.
pub fn alpha(epsilon: f64) -> f64 {
    let mut below = TABLE_II[0];
    for (e, a) in TABLE_II {
        if epsilon <= e {
            let span = e - below.0;
            let share = if span > 0.0 { ((epsilon - below.0) / span).max(0.0) } else { 0.0 };
            return below.1 + share * (a - below.1);
        }
        below = (e, a);
    }
    below.1
}

/// β(p, ε) = α(ε) · p/(1 − p): repairs per source by the fitted rule (eq. 6).
pub fn beta(p: f64, epsilon: f64) -> f64 {
    alpha(epsilon) * redundancy(p)
}

/// ⌈f · β⌉ + 1: repairs of a block by the fitted rule (below eq. 6).
pub fn k_fitted(f: u16, p: f64, epsilon: f64) -> u16 {
    to_count(f64::from(f) * beta(p, epsilon)).saturating_add(1)
}

/// Λ(k): the mean number of repairs spent on a block that starts with `k` (eq. 7).
pub fn mean_repairs(f: u16, p: f64, k: u16) -> f64 {
    let p = loss(p);
    // Σ i·h(i) over all i is f·p/(1 − p), so the tail is this sum minus the head.
    let mut head = 0.0;
    let mut recovered = 0.0;
    for (i, term) in (0..=k).zip(needed(f, p)) {
        head += f64::from(i) * term;
        recovered += term;
    }
    let tail = (f64::from(f) * redundancy(p) - head).max(0.0);
    f64::from(k) * recovered + tail
}

/// GP/BW: the share of bandwidth that carries sources when blocks start with `k` repairs (eq. 8).
pub fn goodput_share(f: u16, p: f64, k: u16) -> f64 {
    1.0 / (1.0 + mean_repairs(f, p, k) / f64::from(f.max(1)))
}

/// x = q/(1 − q): repairs per source, or extra repairs per missing symbol (eqs 9 and 10).
pub fn redundancy(q: f64) -> f64 {
    let q = loss(q);
    q / (1.0 - q)
}

/// Loss below this counts as none, since a smoothed estimate halves with every loss-free block but
/// never reaches 0.
const NO_LOSS: f64 = 1e-6;

/// k = ⌈x·f⌉, which is at least 1 if any loss is expected (eq. 9).
pub fn k_mean_sigma(f: u16, q: f64) -> u16 {
    if loss(q) < NO_LOSS { 0 } else { to_count(f64::from(f) * redundancy(q)).max(1) }
}

/// ⌈(1 + y)·r⌉: reactive repairs sent for `missing` symbols (eq. 10).
pub fn with_reserve(missing: u16, q: f64) -> u16 {
    to_count(f64::from(missing) * (1.0 + redundancy(q)))
}

/// Largest p-block by delay: Σ w·Δ/RTT · (1 + (α − 1)·p) (eq. 11). With α = 1 and Δ the median
/// round-trip time this is the rule in use (eq. 12). `paths` are windows (packets) and round-trip
/// times (seconds), `delta` is Δ (seconds).
pub fn block_bound(paths: impl Iterator<Item = (f64, f64)>, delta: f64, alpha: f64, p: f64) -> f64 {
    let rate: f64 = paths.map(|(window, rtt)| window / rtt.max(1e-6)).sum();
    rate * delta * (1.0 + (alpha - 1.0) * loss(p))
}

/// The most sources that a codeword of `codeword` symbols may hold if the chance that the whole
/// codeword fails to deliver them is to be at most `residual`: P(Bin(codeword, 1 − q) < f) ≤
/// residual. At least 1.
pub fn f_max(q: f64, codeword: u16, residual: f64) -> u16 {
    let q = loss(q);
    if q == 0.0 {
        return codeword.max(1);
    }
    // The terms above the mode are summed from the mode outwards; the tail beyond m losses is what
    // remains of the sum.
    let n = u64::from(codeword);
    let mode = (f64::from(codeword) * q) as u64;
    let ratio = |m: u64| (n - m) as f64 / (m + 1) as f64 * q / (1.0 - q);
    let terms = || {
        let mut term = math::binomial(n, q, mode);
        (mode..=n).map(move |m| {
            let this = term;
            term *= ratio(m);
            (m, this)
        })
    };
    let mut tail: f64 = terms().map(|(_, term)| term).sum();
    for (m, term) in terms() {
        tail -= term;
        // The tail is now the chance of more than m losses. With at most m losses, at least n − m
        // symbols arrive.
        if tail <= residual {
            return (n - m).max(1) as u16;
        }
    }
    1
}

/// The next whole number, saturating. Rounding errors of an exact product do not add one.
fn to_count(value: f64) -> u16 {
    let up = (value - 1e-9).ceil();
    if up >= f64::from(u16::MAX) { u16::MAX } else { up.max(0.0) as u16 }
}

#[cfg(test)]
mod tests;
