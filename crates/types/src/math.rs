//! Mathematical functions that give the same result on every platform.
//!
//! `f64::ln`, `exp`, `powf` and `cbrt` call the platform's mathematics library and differ in the
//! last bit by target and optimisation. The functions here call a pinned version of `libm`, so that
//! simulations give the same bits everywhere.

/// Natural logarithm.
pub fn ln(x: f64) -> f64 {
    libm::log(x)
}

/// e to the power `x`.
pub fn exp(x: f64) -> f64 {
    libm::exp(x)
}

/// `x` to the power `y`.
pub fn pow(x: f64, y: f64) -> f64 {
    libm::pow(x, y)
}

/// Cube root.
pub fn cbrt(x: f64) -> f64 {
    libm::cbrt(x)
}

/// Square root. IEEE 754 defines its result exactly; the function is here for completeness.
pub fn sqrt(x: f64) -> f64 {
    libm::sqrt(x)
}

/// Natural logarithm of the gamma function.
pub fn ln_gamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// Natural logarithm of the binomial coefficient `n` over `k`.
pub fn ln_choose(n: u64, k: u64) -> f64 {
    if k > n {
        return f64::NEG_INFINITY;
    }
    ln_gamma(n as f64 + 1.0) - ln_gamma(k as f64 + 1.0) - ln_gamma((n - k) as f64 + 1.0)
}

/// P(X < k) for X ~ Binomial(n, p).
pub fn binomial_below(n: u64, p: f64, k: u64) -> f64 {
    (0..k.min(n + 1)).map(|i| binomial(n, p, i)).sum::<f64>().min(1.0)
}

/// P(X = k) for X ~ Binomial(n, p).
pub fn binomial(n: u64, p: f64, k: u64) -> f64 {
    if k > n {
        return 0.0;
    }
    if p <= 0.0 {
        return if k == 0 { 1.0 } else { 0.0 };
    }
    if p >= 1.0 {
        return if k == n { 1.0 } else { 0.0 };
    }
    exp(ln_choose(n, k) + k as f64 * ln(p) + (n - k) as f64 * libm::log1p(-p))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binomial_sums_to_one() {
        let total: f64 = (0..=255).map(|k| binomial(255, 0.3, k)).sum();
        assert!((total - 1.0).abs() < 1e-9, "{total}");
    }

    #[test]
    fn binomial_small_case_is_exact() {
        assert!((binomial(4, 0.5, 2) - 0.375).abs() < 1e-12);
        assert!((binomial_below(4, 0.5, 2) - 0.3125).abs() < 1e-12);
    }
}
