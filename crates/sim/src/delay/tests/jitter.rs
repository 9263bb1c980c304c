//! Jitter compared with its laws: distribution functions in closed form, moments, correlation over time.

use core::f64::consts::FRAC_1_SQRT_2;

use super::*;
/// Number of packets in a sample.
const PACKETS: usize = 40_000;

fn jitter(law: JitterLaw, size: u32, correlation: u32) -> Jitter {
    Jitter { size: size * MS, law, correlation: correlation * MS, reorder: false }
}

/// Delays in milliseconds of packets sent every `gap` over a link with a delay of 20 ms.
fn delays(jitter: Jitter, gap: Duration) -> Vec<f64> {
    let mut process = jitter.process(20 * MS, 5, "test").expect("valid");
    let times = (0..PACKETS as u32).map(|i| Time::ZERO + gap * i);
    times.map(|sent| process.delay(sent, 20 * MS).as_secs_f64() * 1e3).collect()
}

/// The largest distance between the distribution of `sample` and `cdf` (Kolmogorov and Smirnov).
fn distance(mut sample: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
    sample.sort_by(f64::total_cmp);
    let n = sample.len() as f64;
    let steps = sample.iter().enumerate().map(|(i, x)| {
        let expected = cdf(*x);
        (expected - i as f64 / n).abs().max((expected - (i + 1) as f64 / n).abs())
    });
    steps.fold(0.0, f64::max)
}

/// The bound that the distance of a sample of the law exceeds with probability 0.001.
fn bound() -> f64 {
    1.95 / (PACKETS as f64).sqrt()
}

/// Mean, standard deviation and skewness.
fn moments(sample: &[f64]) -> [f64; 3] {
    let n = sample.len() as f64;
    let mean = sample.iter().sum::<f64>() / n;
    let central = |power| sample.iter().map(|x| (x - mean).powi(power)).sum::<f64>() / n;
    let sigma = central(2).sqrt();
    [mean, sigma, central(3) / sigma.powi(3)]
}

fn phi(z: f64) -> f64 {
    0.5 * libm::erfc(-z * FRAC_1_SQRT_2)
}

#[test]
fn independent_delays_have_their_law() {
    let check = |law, size, cdf: &dyn Fn(f64) -> f64| {
        let sample = delays(jitter(law, size, 0), MS);
        let distance = distance(sample, cdf);
        assert!(distance < bound(), "{law:?} {size}: {distance}");
    };
    check(JitterLaw::Uniform, 10, &|x| ((x - 20.0) / 10.0).clamp(0.0, 1.0));
    check(JitterLaw::Normal, 4, &|x| phi((x - 20.0) / 4.0));
    // Shapes 1 and 4 have closed forms: the exponential and the Erlang distribution.
    check(JitterLaw::Gamma, 20, &|x| 1.0 - libm::exp(-x / 20.0));
    check(JitterLaw::Gamma, 10, &|x| {
        let y = x / 5.0;
        1.0 - libm::exp(-y) * (1.0 + y + y * y / 2.0 + y * y * y / 6.0)
    });
    let deviation = libm::sqrt(libm::log(1.25));
    check(JitterLaw::LogNormal, 10, &|x| {
        phi((libm::log(x / 20.0) + deviation * deviation / 2.0) / deviation)
    });
}

#[test]
fn a_gamma_law_wider_than_its_mean_is_a_scaled_chi_square() {
    // σ² = 2·μ², so the shape is a half.
    let size = Duration::from_nanos(28_284_271);
    let jitter = Jitter { size, ..jitter(JitterLaw::Gamma, 1, 0) };
    let distance = distance(delays(jitter, MS), |x| libm::erf((x / 40.0).sqrt()));
    assert!(distance < bound(), "{distance}");
}

#[test]
fn the_delay_is_the_mean_and_the_size_the_deviation() {
    for (law, size, skewness) in [
        (JitterLaw::Normal, 5, 0.0),
        (JitterLaw::Gamma, 1, 0.1),
        (JitterLaw::Gamma, 5, 0.5),
        (JitterLaw::Gamma, 20, 2.0),
        (JitterLaw::LogNormal, 5, 0.766),
        (JitterLaw::LogNormal, 8, 1.264),
    ] {
        let [mean, sigma, skew] = moments(&delays(jitter(law, size, 0), MS));
        let size = f64::from(size);
        // The standard error of the mean is σ/√n; those of the other moments are a few per cent.
        assert!((mean - 20.0).abs() < 4.0 * size / 200.0, "{law:?} {size}: mean {mean}");
        assert!((sigma / size - 1.0).abs() < 0.03, "{law:?} {size}: deviation {sigma}");
        assert!((skew - skewness).abs() < 0.05 + 0.08 * skewness, "{law:?} {size}: {skew}");
    }
}

#[test]
fn both_ways_to_gamma_quantiles_agree_where_they_meet() {
    let (table, cube) =
        (super::super::quantile::Gamma::new(399.9), super::super::quantile::Gamma::new(400.1));
    for z in [-5.0, -2.5, -1.0, -0.3, 0.0, 0.7, 1.9, 3.3, 5.0] {
        let (exact, near) = (table.quantile(z), cube.quantile(z));
        // The standard deviation is a twentieth of the mean.
        assert!((exact - near).abs() < 0.05 * 2e-3, "{z}: {exact} {near}");
    }
}

#[test]
fn normal_delays_end_at_zero() {
    let sample = delays(jitter(JitterLaw::Normal, 20, 0), MS);
    let zeros = sample.iter().filter(|delay| **delay == 0.0).count() as f64 / PACKETS as f64;
    assert!((zeros - phi(-1.0)).abs() < 0.01, "{zeros}");
    let [mean, ..] = moments(&sample);
    // The mean is μ + σ·(φ(1) − Φ(−1)) with μ = σ = 20 ms.
    assert!((mean - 21.67).abs() < 0.3, "{mean}");
}

/// The correlation of delays `lag` packets apart.
fn autocorrelation(sample: &[f64], lag: usize) -> f64 {
    let [mean, sigma, _] = moments(sample);
    let products = sample.iter().zip(&sample[lag..]).map(|(a, b)| (a - mean) * (b - mean));
    products.sum::<f64>() / ((sample.len() - lag) as f64 * sigma * sigma)
}

#[test]
fn correlation_falls_with_the_time_between_packets() {
    let sample = |gap| delays(jitter(JitterLaw::Normal, 4, 50), gap);
    // The correlation is e^(−Δt/50 ms), however many packets are sent in the time Δt.
    for (gap, lag, expected) in [
        (MS, 1, 0.980),
        (MS, 50, 0.368),
        (MS, 150, 0.050),
        (10 * MS, 5, 0.368),
        (50 * MS, 1, 0.368),
        (500 * MS, 1, 0.0),
    ] {
        let found = autocorrelation(&sample(gap), lag);
        assert!((found - expected).abs() < 0.06, "{gap:?} × {lag}: {found}");
    }
    let independent = autocorrelation(&delays(jitter(JitterLaw::Normal, 4, 0), MS), 1);
    assert!(independent.abs() < 0.02, "{independent}");
}

#[test]
fn correlation_leaves_the_law_as_it_is() {
    for (law, size) in [
        (JitterLaw::Uniform, 10),
        (JitterLaw::Normal, 5),
        (JitterLaw::Gamma, 10),
        (JitterLaw::LogNormal, 10),
    ] {
        let gap = 5 * MS;
        let [mean, sigma, _] = moments(&delays(jitter(law, size, 20), gap));
        let [mean_alone, sigma_alone, _] = moments(&delays(jitter(law, size, 0), gap));
        // With this correlation, about eight packets carry as much information as one independent
        // sample.
        assert!((mean - mean_alone).abs() < 0.4, "{law:?}: {mean} {mean_alone}");
        assert!((sigma / sigma_alone - 1.0).abs() < 0.05, "{law:?}: {sigma} {sigma_alone}");
    }
}

#[test]
fn deviations_move_along_with_the_delay() {
    let mut process = jitter(JitterLaw::Gamma, 10, 0).process(20 * MS, 5, "test").expect("valid");
    let mut twin = process.clone();
    for i in 0..1_000_u32 {
        let sent = Time::ZERO + MS * i;
        let (near, far) = (process.delay(sent, 20 * MS), twin.delay(sent, 80 * MS));
        let apart = far.as_secs_f64() - near.as_secs_f64();
        assert!((apart - 0.06).abs() < 1e-8, "{near:?} {far:?}");
    }
    assert_eq!((process.least(20 * MS), process.least(80 * MS)), (Duration::ZERO, Duration::ZERO));
}

#[test]
fn sizes_out_of_range_are_refused() {
    let refused = |jitter: Jitter, delay| jitter.validate(delay).err().map(|error| error.key);
    assert_eq!(refused(jitter(JitterLaw::Normal, 60_001, 0), MS), Some("jitter"));
    assert_eq!(refused(jitter(JitterLaw::Normal, 1, 86_400_001), MS), Some("jitter-correlation"));
    assert_eq!(refused(jitter(JitterLaw::Gamma, 5, 0), MS), Some("jitter"));
    assert_eq!(refused(jitter(JitterLaw::LogNormal, 1, 0), Duration::ZERO), Some("jitter"));
    for fine in [
        jitter(JitterLaw::Gamma, 4, 0),
        jitter(JitterLaw::Normal, 60_000, 0),
        jitter(JitterLaw::Gamma, 0, 0),
    ] {
        assert_eq!(refused(fine, MS), None);
    }
}
