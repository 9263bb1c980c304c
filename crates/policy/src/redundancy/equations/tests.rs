use super::*;

/// MPLOT's Table II was fitted at p = 1/2, F = 90; the exact values differ, most at ε = .01.
#[test]
fn exact_alpha_at_one_half() {
    let exact: Vec<i64> = TABLE_II
        .iter()
        .map(|(epsilon, _)| {
            let k = k_min(90, 0.5, *epsilon, 255);
            (f64::from(k) / 90.0 / redundancy(0.5) * 100.0).round() as i64
        })
        .collect();
    assert_eq!(exact, [137, 119, 112, 108, 99]);
    for ((epsilon, table), exact) in TABLE_II.iter().zip(exact) {
        let tolerance = if *epsilon == 0.01 { 0.1 } else { 0.03 };
        assert!((table - exact as f64 / 100.0).abs() <= tolerance, "{epsilon}");
    }
}

#[test]
fn one_alpha_does_not_fit_light_loss() {
    let exact: Vec<i64> = TABLE_II
        .iter()
        .map(|(epsilon, _)| {
            let k = k_min(90, 0.1, *epsilon, 255);
            (f64::from(k) / 90.0 / redundancy(0.1) * 10.0).round() as i64
        })
        .collect();
    assert_eq!(exact, [19, 14, 13, 12, 10]);
}

#[test]
fn alpha_is_the_table_and_linear_between() {
    for (epsilon, value) in TABLE_II {
        assert_eq!(alpha(epsilon), value);
    }
    assert!((alpha(0.15) - 1.16).abs() < 1e-12);
    assert_eq!((alpha(0.0), alpha(0.9)), (1.28, 1.0));
}

#[test]
fn largest_source_counts_of_a_codeword() {
    let counts = [0.05, 0.1, 0.25, 0.3, 0.5, 0.6, 0.75].map(|q| f_max(q, 255, 1e-3));
    assert_eq!(counts, [230, 214, 169, 155, 103, 78, 43]);
    assert_eq!(f_max(0.0, 255, 1e-3), 255);
    assert!(f_max(1.0, 255, 1e-3) >= 1);
}

#[test]
fn largest_source_count_keeps_its_promise_and_no_more() {
    for codeword in [20, 64, 255, 1000] {
        for q in [0.01, 0.2, 0.5, 0.9] {
            let f = f_max(q, codeword, 1e-3);
            let fails = |f: u16| math::binomial_below(u64::from(codeword), 1.0 - q, u64::from(f));
            assert!(fails(f) <= 1e-3 || f == 1, "{codeword} {q}: {f}");
            assert!(fails(f + 1) > 1e-3 || f == codeword, "{codeword} {q}: {f}");
        }
    }
}

#[test]
fn recovery_probability_is_the_binomial_tail() {
    // At least F of F + k packets arrive: P(lost ≤ k).
    for (f, p, k) in [(1, 0.5, 0), (10, 0.1, 2), (90, 0.5, 90), (103, 0.5, 152), (230, 0.95, 25)] {
        let direct = math::binomial_below(u64::from(f + k), p, u64::from(k) + 1);
        let ours = recovery_probability(f, p, k);
        assert!((direct - ours).abs() < 1e-9, "{f} {p} {k}: {direct} {ours}");
    }
    assert_eq!(recovery_probability(50, 0.0, 0), 1.0);
    assert_eq!(k_min(50, 0.0, 0.01, 255), 0);
    assert_eq!(k_min(50, 0.95, 0.01, 100), 100);
}

#[test]
fn mean_repairs_grow_from_the_expectation_to_the_plan() {
    // The mean is F·p/(1 − p) without planned repairs, and the plan itself if the plan is
    // excessive.
    assert!((mean_repairs(90, 0.3, 0) - 90.0 * 0.3 / 0.7).abs() < 1e-9);
    assert!((mean_repairs(90, 0.3, 120) - 120.0).abs() < 1e-6);
}

#[test]
fn goodput_is_flat_then_falls_beyond_the_expectation() {
    for p in [0.1, 0.3, 0.5] {
        let knee = (90.0 * redundancy(p)) as u16;
        let shares: Vec<f64> = (0..=3 * knee).map(|k| goodput_share(90, p, k)).collect();
        assert!(shares.windows(2).all(|pair| pair[1] <= pair[0] + 1e-12), "{p}");
        let (start, half, end) =
            (shares[0], shares[usize::from(knee) / 2], shares[2 * usize::from(knee)]);
        assert!((start - (1.0 - p)).abs() < 1e-9);
        assert!(start - half < 0.01 * start, "{p}: flat");
        assert!(start - end > 0.08 * start, "{p}: {start} {end}");
    }
}

#[test]
fn rules_in_use() {
    assert_eq!(k_mean_sigma(90, 0.1), 10);
    assert_eq!(k_mean_sigma(90, 0.5), 90);
    assert_eq!((k_mean_sigma(5, 0.0), k_mean_sigma(5, 1e-6)), (0, 1));
    assert_eq!(k_mean_sigma(10, 2.0), 190);
    assert_eq!(k_fitted(90, 0.5, 0.1), 109);
    assert_eq!((with_reserve(4, 0.0), with_reserve(4, 0.5), with_reserve(3, 0.3)), (4, 8, 5));
    assert_eq!(with_reserve(0, 0.5), 0);
    assert_eq!(with_reserve(u16::MAX, 0.95), u16::MAX);
}

#[test]
fn block_bound_weighs_windows_by_round_trips() {
    let paths = [(10.0, 0.04), (10.0, 0.4), (20.0, 0.04)];
    let block = block_bound(paths.iter().copied(), 0.04, 1.0, 0.5);
    assert!((block - 31.0).abs() < 1e-9, "{block}");
    let longer = block_bound(paths.iter().copied(), 0.04, 1.2, 0.5);
    assert!((longer - 34.1).abs() < 1e-9, "{longer}");
}
