//! Student's t distribution with whole degrees of freedom.

/// The probability of a value of at most `t`, with `freedom` ≥ 1 degrees of freedom.
///
/// It is computed with the finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4, in powers of
/// the cosine of `atan(t / √freedom)`.
pub fn student_cdf(t: f64, freedom: usize) -> f64 {
    0.5 + 0.5 * within(t, freedom.max(1))
}

/// The quantile at probability `p` in `(0, 1)`, for `freedom` ≥ 1 degrees of freedom.
pub fn student_quantile(p: f64, freedom: usize) -> f64 {
    if !(0.0..1.0).contains(&p) || p == 0.0 {
        return if p == 0.0 {
            f64::NEG_INFINITY
        } else if p == 1.0 {
            f64::INFINITY
        } else {
            f64::NAN
        };
    }
    if p < 0.5 {
        return -student_quantile(1.0 - p, freedom);
    }
    let (mut low, mut high) = (0.0, 1.0);
    while student_cdf(high, freedom) < p && high < 1e18 {
        (low, high) = (high, high * 2.0);
    }
    // Sixty bisections are exact to the last bit of a double.
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if student_cdf(middle, freedom) < p { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// The probability of a value within `±t`; for negative `t`, the negative probability.
fn within(t: f64, freedom: usize) -> f64 {
    let nu = freedom as f64;
    let radius = libm::sqrt(nu + t * t);
    let (sine, cosine) = (t / radius, libm::sqrt(nu) / radius);
    let square = cosine * cosine;
    if freedom == 1 {
        return libm::atan(t) * core::f64::consts::FRAC_2_PI;
    }
    // For odd degrees of freedom: cos + 2/3 cos³ + (2·4)/(3·5) cos⁵ …; for even ones: 1 + 1/2 cos²
    // + (1·3)/(2·4) cos⁴ …
    let odd = freedom % 2 == 1;
    let (mut term, mut divisor) = if odd { (cosine, 3.0) } else { (1.0, 2.0) };
    let mut sum = 0.0;
    for _ in 0..freedom / 2 {
        sum += term;
        term *= square * (divisor - 1.0) / divisor;
        divisor += 2.0;
        if term < 1e-18 {
            break;
        }
    }
    if odd {
        (libm::atan2(t, libm::sqrt(nu)) + sine * sum) * core::f64::consts::FRAC_2_PI
    } else {
        sine * sum
    }
}
