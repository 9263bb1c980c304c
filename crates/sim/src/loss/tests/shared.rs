use anabranch_types::math::ln;

use super::*;

const SLOT: Duration = Duration::from_millis(1);

/// For each slot, whether each link loses its packet. Every link has its own process.
fn outcomes(configs: &[LossConfig], slots: u64) -> Vec<Vec<bool>> {
    let make = |(i, config)| LossProcess::new(config, 9, &format!("link.{i}.loss"));
    let mut links: Vec<LossProcess> =
        configs.iter().enumerate().map(make).collect::<Result<_, _>>().expect("valid");
    let mut slot = |n: u64| {
        let now = Time::from_micros(n * 1_000 + 500);
        links.iter_mut().map(|link| link.is_lost(now)).collect()
    };
    (0..slots).map(&mut slot).collect()
}

/// The share of packets that each link loses, and the correlation of each pair of links.
fn moments(outcomes: &[Vec<bool>]) -> (Vec<f64>, Vec<Vec<f64>>) {
    let n = outcomes.len() as f64;
    let links = outcomes[0].len();
    let share = |both: &dyn Fn(&Vec<bool>) -> bool| {
        outcomes.iter().filter(|slot| both(slot)).count() as f64 / n
    };
    let means: Vec<f64> = (0..links).map(|i| share(&|slot| slot[i])).collect();
    let correlation = |i: usize, j: usize| {
        let joint = share(&|slot| slot[i] && slot[j]);
        let spread = |i: usize| (means[i] * (1.0 - means[i])).sqrt();
        (joint - means[i] * means[j]) / (spread(i) * spread(j))
    };
    let matrix = (0..links).map(|i| (0..links).map(|j| correlation(i, j)).collect()).collect();
    (means, matrix)
}

fn chained(position: u32, theta: f64, base: LossConfig) -> LossConfig {
    LossConfig::Correlated(CorrelatedConfig {
        group: "air".to_owned(),
        position,
        theta: p(theta),
        slot: SLOT,
        states: None,
        base: Box::new(base),
    })
}

#[test]
fn a_chain_of_equal_links_has_powers_of_theta() {
    for theta in [0.0, 0.05, 0.5, 0.99] {
        let links: Vec<LossConfig> =
            (1..=4).map(|place| chained(place, theta, LossConfig::Bernoulli(p(0.3)))).collect();
        let (means, matrix) = moments(&outcomes(&links, 200_000));
        for i in 0..4 {
            // The tolerance is five standard deviations: 5·√(0.21/200000) = 0.0051.
            assert!((means[i] - 0.3).abs() < 0.0052, "{means:?}");
            for j in 0..4 {
                let expected = theta.powi(i.abs_diff(j) as i32);
                assert!((matrix[i][j] - expected).abs() < 0.012, "{theta} {i} {j}: {matrix:?}");
            }
        }
    }
}

#[test]
fn a_chain_exists_where_its_links_differ_and_keeps_their_losses() {
    let links = [
        chained(1, 0.99, LossConfig::Bernoulli(p(0.25))),
        chained(2, 0.99, LossConfig::Bernoulli(p(0.75))),
    ];
    let outcomes = outcomes(&links, 200_000);
    let (means, _) = moments(&outcomes);
    assert!((means[0] - 0.25).abs() < 0.005 && (means[1] - 0.75).abs() < 0.005, "{means:?}");
    // Both links lose a packet with probability θ·min(p₁, p₂) + (1 − θ)·p₁p₂ = 0.2475 + 0.001875.
    let both = outcomes.iter().filter(|slot| slot[0] && slot[1]).count() as f64 / 200_000.0;
    assert!((both - 0.249_375).abs() < 0.005, "{both}");
}

#[test]
fn a_shared_loss_keeps_the_course_of_its_base_and_one_draw_a_slot() {
    let base = LossConfig::Markov(three_states());
    let (mut alone, mut shared) = (process(&base, 4), process(&chained(3, 0.5, base.clone()), 4));
    for millis in 0..2_000 {
        let now = Time::from_millis(millis);
        assert_eq!(alone.probability(now), shared.probability(now));
        assert_eq!(alone.next_change(), shared.next_change());
        let first = shared.is_lost(now);
        assert!((0..5).all(|_| shared.is_lost(now) == first), "{now}");
    }
}

#[test]
fn states_follow_along_the_chain() {
    let state = |loss| MarkovState { loss: p(loss), mean_dwell: Duration::from_millis(20) };
    let base = MarkovConfig { states: vec![state(0.0), state(1.0)], jumps: None };
    for theta in [0.0, 0.5, 0.95] {
        let mut links: Vec<LossProcess> = (1..=3)
            .map(|position| CorrelatedConfig {
                group: "air".to_owned(),
                position,
                theta: p(theta),
                slot: SLOT,
                states: Some(Duration::from_secs(1)),
                base: Box::new(LossConfig::Markov(base.clone())),
            })
            .map(|config| process(&LossConfig::Correlated(config), 3))
            .collect();
        let outcomes: Vec<Vec<bool>> = (0..400_000)
            .map(|n| links.iter_mut().map(|link| link.is_lost(Time::from_millis(5 * n))).collect())
            .collect();
        let (means, matrix) = moments(&outcomes);
        for i in 0..3 {
            assert!((means[i] - 0.5).abs() < 0.01, "{means:?}");
            for j in 0..3 {
                // The course to follow is drawn 2000 times, so five standard deviations are 0.056.
                let expected = theta.powi(i.abs_diff(j) as i32);
                assert!((matrix[i][j] - expected).abs() < 0.06, "{theta} {i} {j}: {matrix:?}");
            }
        }
    }
}

/// A loss that alternates between 25 % and 75 %, as in figure 8 of MPLOT §IV-E, for one of five
/// paths of 2 Mb/s.
fn fifth_of_figure_8(position: u32, theta: f64) -> LossConfig {
    let state = |loss| MarkovState { loss: p(loss), mean_dwell: Duration::from_millis(250) };
    let base = MarkovConfig { states: vec![state(0.25), state(0.75)], jumps: None };
    LossConfig::Correlated(CorrelatedConfig {
        group: "p".to_owned(),
        position,
        theta: p(theta),
        slot: Duration::from_millis(3),
        states: Some(Duration::from_millis(2_500)),
        base: Box::new(LossConfig::Markov(base)),
    })
}

#[test]
fn shares_lost_in_a_round_trip_have_powers_of_theta() {
    /// Number of packets in a round trip of 48 ms if one packet is sent every 3 ms, as on a path of
    /// 2 Mb/s.
    const ROUND: u64 = 16;
    for theta in [0.05, 0.5, 0.99] {
        let mut links: Vec<LossProcess> =
            (1..=5).map(|place| process(&fifth_of_figure_8(place, theta), 5)).collect();
        let share = |link: &mut LossProcess, round: u64| {
            let packets = round * ROUND..(round + 1) * ROUND;
            let lost = packets.filter(|n| link.is_lost(Time::from_millis(3 * n + 1))).count();
            lost as f64 / ROUND as f64
        };
        let rounds: Vec<Vec<f64>> = (0..60_000)
            .map(|round| links.iter_mut().map(|link| share(link, round)).collect())
            .collect();
        let mean = |of: &dyn Fn(&[f64]) -> f64| {
            rounds.iter().map(|round| of(round)).sum::<f64>() / rounds.len() as f64
        };
        let covariance = |i: usize, j: usize| {
            mean(&|round| round[i] * round[j]) - mean(&|round| round[i]) * mean(&|round| round[j])
        };
        for i in 0..5 {
            let row: Vec<f64> = (0..5)
                .map(|j| covariance(i, j) / (covariance(i, i) * covariance(j, j)).sqrt())
                .collect();
            println!("theta {theta}, path {}: {row:.3?}", i + 1);
            for (j, correlation) in row.iter().enumerate() {
                // The course to follow is drawn 1152 times, so five standard deviations are 0.074.
                // While two paths have different states, the correlation of their losses is below
                // theta, which lowers the result by at most 0.01.
                let expected = theta.powi(i.abs_diff(j) as i32);
                assert!((correlation - expected).abs() < 0.084, "{theta} {i} {j}: {row:?}");
            }
        }
    }
}

#[test]
fn groups_and_seeds_are_independent() {
    let config = |group: &str| CorrelatedConfig {
        group: group.to_owned(),
        position: 1,
        theta: p(0.5),
        slot: SLOT,
        states: None,
        base: Box::new(LossConfig::Bernoulli(p(0.5))),
    };
    let course = |group: &str, seed| -> Vec<bool> {
        let mut process = process(&LossConfig::Correlated(config(group)), seed);
        (0..2_000).map(|millis| process.is_lost(Time::from_millis(millis))).collect()
    };
    let same = |a: &[bool], b: &[bool]| a.iter().zip(b).filter(|(a, b)| a == b).count();
    let reference = course("air", 1);
    assert_eq!(course("air", 1), reference);
    // Two independent courses with a loss of 50 % agree in half of the slots: 1000 ± 5·22.
    for other in [course("water", 1), course("air", 2)] {
        assert!(same(&reference, &other).abs_diff(1_000) < 112);
    }
}

fn joint(losses: &[f64], correlation: Vec<Vec<f64>>) -> JointConfig {
    let losses = losses.iter().map(|loss| p(*loss)).collect();
    JointConfig { group: "air".to_owned(), position: 1, losses, correlation, slot: SLOT }
}

#[test]
fn components_of_a_hand_computed_pair() {
    // a₁₁ = ln 4 and a₁₂ = ln(1 + 0.5·3).
    let components =
        joint(&[0.25, 0.25], vec![vec![1.0, 0.5], vec![0.5, 1.0]]).components().expect("exists");
    let own = ln(4.0) - ln(2.5);
    let expected = [(own, vec![0]), (own, vec![1])];
    assert_eq!(components.len(), 3);
    for (mean, members) in expected {
        let found = components.iter().find(|c| c.members == members).expect("a lone component");
        assert!((found.mean - mean).abs() < 1e-12, "{components:?}");
    }
    let shared = components.iter().find(|c| c.members.len() == 2).expect("a shared component");
    assert!((shared.mean - ln(2.5)).abs() < 1e-12, "{components:?}");
}

#[test]
fn components_add_up_to_what_the_links_share() {
    let losses = [0.1, 0.3, 0.2, 0.25];
    let config = joint(&losses, JointConfig::powers(p(0.4), 4));
    let components = config.components().expect("exists");
    for i in 0..4 {
        for j in 0..4 {
            let sum: f64 = components
                .iter()
                .filter(|c| c.members.contains(&i) && c.members.contains(&j))
                .map(|c| c.mean)
                .sum();
            let odds = (1.0 - losses[i]) * (1.0 - losses[j]) / (losses[i] * losses[j]);
            let rho = 0.4_f64.powi(i.abs_diff(j) as i32);
            let expected = if i == j { -ln(losses[i]) } else { ln(1.0 + rho * odds.sqrt()) };
            assert!((sum - expected).abs() < 1e-9, "{i} {j}: {sum} {expected}");
        }
    }
}

#[test]
fn joint_losses_have_their_means_and_correlations() {
    let losses = [0.1, 0.3, 0.2];
    let links: Vec<LossConfig> = (1..=3)
        .map(|position| {
            let config = joint(&losses, JointConfig::powers(p(0.4), 3));
            LossConfig::Joint(JointConfig { position, ..config })
        })
        .collect();
    let (means, matrix) = moments(&outcomes(&links, 300_000));
    for i in 0..3 {
        assert!((means[i] - losses[i]).abs() < 0.0045, "{means:?}");
        for j in 0..3 {
            let expected = 0.4_f64.powi(i.abs_diff(j) as i32);
            assert!((matrix[i][j] - expected).abs() < 0.015, "{i} {j}: {matrix:?}");
        }
    }
}

#[test]
fn correlations_that_cannot_exist_are_refused() {
    assert!((largest_correlation(p(0.25), p(0.75)) - 1.0 / 3.0).abs() < 1e-12);
    let pair = |rho| joint(&[0.25, 0.75], vec![vec![1.0, rho], vec![rho, 1.0]]).components();
    assert!(pair(0.33).is_ok());
    let refused = LossConfigError::PairCorrelation { links: (1, 2), largest_permille: 333 };
    assert_eq!(pair(0.34), Err(refused));
    // Links 2 and 3 are strongly correlated with link 1, but not with each other.
    let star = vec![vec![1.0, 0.85, 0.85], vec![0.85, 1.0, 0.0], vec![0.85, 0.0, 1.0]];
    assert_eq!(joint(&[0.368; 3], star).components(), Err(LossConfigError::NoJointLoss));
}

#[test]
fn malformed_groups_are_refused() {
    let matrix = || vec![vec![1.0, 0.2], vec![0.2, 1.0]];
    let check = |edit: &dyn Fn(&mut JointConfig)| {
        let mut config = joint(&[0.2, 0.2], matrix());
        edit(&mut config);
        LossConfig::Joint(config).validate()
    };
    assert_eq!(check(&|_| ()), Ok(()));
    assert_eq!(check(&|c| c.position = 3), Err(LossConfigError::Position(3)));
    assert_eq!(check(&|c| c.position = 0), Err(LossConfigError::Position(0)));
    assert_eq!(check(&|c| c.losses[1] = p(1.0)), Err(LossConfigError::JointLoss));
    assert_eq!(check(&|c| c.losses[0] = p(0.0)), Err(LossConfigError::JointLoss));
    let bad: [fn(&mut JointConfig); 5] = [
        |c| c.correlation[0][1] = 0.3,
        |c| c.correlation[0][0] = 0.9,
        |c| c.correlation = vec![vec![1.0, -0.1], vec![-0.1, 1.0]],
        |c| c.correlation = vec![vec![1.0, f64::NAN], vec![f64::NAN, 1.0]],
        |c| c.correlation.truncate(1),
    ];
    for edit in bad {
        assert_eq!(check(&edit), Err(LossConfigError::CorrelationMatrix));
    }
    let slot = Duration::from_nanos(1);
    assert_eq!(check(&|c| c.slot = slot), Err(LossConfigError::Slot(slot)));
    let chain = |position, base| chained(position, 0.5, base).validate();
    assert_eq!(chain(0, LossConfig::None), Err(LossConfigError::Position(0)));
    assert_eq!(chain(65, LossConfig::None), Err(LossConfigError::Position(65)));
    let ge = LossConfig::GilbertElliott(GilbertElliottConfig::simple(p(0.1), p(0.1)));
    assert_eq!(chain(1, ge), Err(LossConfigError::CorrelatedBase));
    let twice = chained(1, 0.5, LossConfig::None);
    assert_eq!(chain(2, twice), Err(LossConfigError::CorrelatedBase));
}
