use super::*;

/// Degrees of freedom and the published quantiles for one-sided 90 %, two-sided 95 % and two-sided
/// 99 % (NIST/SEMATECH handbook, 1.3.6.7.2).
const TABLE: [(usize, f64, f64, f64); 12] = [
    (1, 3.078, 12.706, 63.657),
    (2, 1.886, 4.303, 9.925),
    (3, 1.638, 3.182, 5.841),
    (4, 1.533, 2.776, 4.604),
    (5, 1.476, 2.571, 4.032),
    (9, 1.383, 2.262, 3.250),
    (10, 1.372, 2.228, 3.169),
    (19, 1.328, 2.093, 2.861),
    (29, 1.311, 2.045, 2.756),
    (30, 1.310, 2.042, 2.750),
    (60, 1.296, 2.000, 2.660),
    (100, 1.290, 1.984, 2.626),
];

#[test]
fn quantiles_are_those_of_the_tables() {
    for (freedom, ninety, two_sided, one_percent) in TABLE {
        assert!((student_quantile(0.9, freedom) - ninety).abs() < 6e-4, "{freedom}");
        assert!((student_quantile(0.975, freedom) - two_sided).abs() < 6e-4, "{freedom}");
        assert!((student_quantile(0.995, freedom) - one_percent).abs() < 6e-4, "{freedom}");
    }
    assert!((student_quantile(0.975, 1_000_000) - 1.959_966).abs() < 2e-6, "normal");
    assert_eq!(student_quantile(0.5, 7), student_quantile(0.5, 8));
    assert_eq!(student_quantile(0.025, 4), -student_quantile(0.975, 4));
    assert!(student_quantile(f64::NAN, 4).is_nan());
}

#[test]
fn distribution_and_quantile_are_inverse() {
    for freedom in [1, 2, 3, 4, 7, 50, 501] {
        for p in [0.01, 0.2, 0.5, 0.77, 0.9995] {
            let back = student_cdf(student_quantile(p, freedom), freedom);
            assert!((back - p).abs() < 1e-12, "{freedom} {p} {back}");
        }
    }
}

#[test]
fn an_interval_is_that_of_a_worked_example() {
    // Ten values have the mean 5.5 and the standard deviation s = √(82.5 / 9). The half width is
    // 2.262157 · s / √10.
    let values: Vec<f64> = (1..=10).map(f64::from).collect();
    let estimate = Estimate::of(&values).unwrap();
    assert_eq!((estimate.n, estimate.mean), (10, 5.5));
    assert!((estimate.std - 3.027_650_354).abs() < 1e-9);
    assert!((estimate.half_width() - 2.165_850).abs() < 1e-6, "{estimate:?}");
    assert!((estimate.lo() + estimate.hi() - 11.0).abs() < 1e-12);
}

#[test]
fn little_and_no_data_give_no_interval() {
    assert_eq!(Estimate::of(&[]), None);
    assert_eq!(Estimate::of(&[f64::NAN, f64::INFINITY]), None);
    let alone = Estimate::of(&[f64::NAN, 3.0]).unwrap();
    assert_eq!((alone.n, alone.interval, alone.lo(), alone.hi()), (1, None, 3.0, 3.0));
    let same = Estimate::of(&[2.0, 2.0, 2.0]).unwrap();
    assert_eq!((same.lo(), same.hi()), (2.0, 2.0));
    let same = Estimate::of(&[0.1; 3]).unwrap();
    assert_eq!((same.mean, same.std), (0.1, 0.0));
}

#[test]
fn pairs_remove_what_they_share() {
    let (a, b) = ([11.0, 22.0, 33.0], [10.0, 20.0, 30.0]);
    let ratio = paired_ratio(&a, &b).unwrap();
    assert!((ratio.mean - 1.1).abs() < 1e-12 && ratio.half_width() < 1e-12);
    assert_eq!(paired_ratio(&a, &b[..2]), None);
    assert_eq!(paired_ratio(&[1.0, 1.0], &[0.0, 2.0]).map(|e| (e.n, e.mean)), Some((1, 0.5)));
}

#[test]
fn quantiles_interpolate() {
    let values = [4.0, 1.0, 3.0, 2.0, f64::NAN];
    assert_eq!(quantile(&values, 0.0), Some(1.0));
    assert_eq!(quantile(&values, 0.5), Some(2.5));
    assert_eq!(quantile(&values, 1.0), Some(4.0));
    assert_eq!(quantile(&[], 0.5), None);
}
