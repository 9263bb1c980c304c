//! How many repairs a block needs, what they cost in goodput, and how long a block may be.
//!
//! `f` is the number of source symbols F, `k` the number of proactive repairs, and `p` the loss of
//! the aggregate, clamped to `[0, MAX_LOSS]`. The rules that the policies apply too are re-exported
//! from [`equations`](crate::redundancy::equations).

pub use crate::redundancy::equations::{
    MAX_LOSS, TABLE_II, alpha, beta, block_bound, goodput_share, k_fitted, k_mean_sigma, k_min,
    mean_repairs, recovery_probability, redundancy, with_reserve,
};

/// One column of MPLOT's Table II with the value that the exact distribution gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AlphaColumn {
    /// The accepted chance ε that a block is not recovered in its first round.
    pub epsilon: f64,
    /// α as the paper prints it.
    pub printed: f64,
    /// k_min/F divided by p/(1 − p), with k_min from eq. 5.
    pub exact: f64,
}

/// α(ε) exactly: the least redundancy that recovers a block of `f` with chance 1 − `epsilon`, as a
/// multiple of p/(1 − p) (eqs 5 and 6). NaN for `f` = 0 or `p` = 0.
pub fn exact_alpha(f: u16, p: f64, epsilon: f64) -> f64 {
    f64::from(k_min(f, p, epsilon, u16::MAX)) / f64::from(f) / redundancy(p)
}

/// MPLOT's Table II beside the exact values for blocks of `f` at loss `p`.
pub fn table_ii(f: u16, p: f64) -> [AlphaColumn; 5] {
    TABLE_II.map(|(epsilon, printed)| AlphaColumn {
        epsilon,
        printed,
        exact: exact_alpha(f, p, epsilon),
    })
}

/// GP(x) for every k from 0 to `k_max`: pairs of x = k/F and the goodput in the unit of `bandwidth`
/// (eq. 8). Empty for `f` = 0.
pub fn goodput_curve(bandwidth: f64, f: u16, p: f64, k_max: u16) -> Vec<(f64, f64)> {
    if f == 0 {
        return Vec::new();
    }
    let point = |k: u16| (f64::from(k) / f64::from(f), bandwidth * goodput_share(f, p, k));
    (0..=k_max).map(point).collect()
}

/// The point from which GP(x) falls: the least x = k/F at which one more repair is wasted in at
/// least half of the blocks, and so costs at least half of what it costs for large k (Λ(k + 1) −
/// Λ(k) ≥ 1/2, eq. 7). `None` if there is no such point up to x = 255.
pub fn goodput_knee(f: u16, p: f64) -> Option<f64> {
    let last = u32::from(f).saturating_mul(255).min(u32::from(u16::MAX) - 1) as u16;
    // The chance that one more repair is wasted rises with k, so bisection finds the point.
    let wasted = |k: u16| mean_repairs(f, p, k + 1) - mean_repairs(f, p, k);
    let (mut low, mut high) = (0, last);
    if f == 0 || wasted(high) < 0.5 {
        return None;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if wasted(middle) >= 0.5 { high = middle } else { low = middle + 1 }
    }
    Some(f64::from(low) / f64::from(f))
}
