mod shared;
mod traces;

use core::time::Duration;

use anabranch_types::{Probability, Time};

use super::*;
use crate::rate::Schedule;

fn p(value: f64) -> Probability {
    Probability::new(value).expect("a probability")
}

fn process(config: &LossConfig, seed: u64) -> LossProcess {
    LossProcess::new(config, seed, "link.test.loss").expect("valid configuration")
}

/// Number of losses among `packets` packets that are sent every `step`.
fn losses(process: &mut LossProcess, packets: u64, step: Duration) -> u64 {
    let mut now = Time::ZERO;
    let mut lost = 0;
    for _ in 0..packets {
        lost += u64::from(process.is_lost(now));
        now += step;
    }
    lost
}

fn three_states() -> MarkovConfig {
    MarkovConfig {
        states: vec![
            MarkovState { loss: p(0.01), mean_dwell: Duration::from_millis(100) },
            MarkovState { loss: p(0.2), mean_dwell: Duration::from_millis(200) },
            MarkovState { loss: p(0.9), mean_dwell: Duration::from_millis(50) },
        ],
        jumps: Some(vec![vec![0.0, 0.5, 0.5], vec![1.0, 0.0, 0.0], vec![0.5, 0.5, 0.0]]),
    }
}

#[test]
fn bernoulli_loses_its_share_and_the_ends_are_exact() {
    let n = 200_000;
    let share = losses(&mut process(&LossConfig::Bernoulli(p(0.05)), 1), n, Duration::ZERO);
    // The tolerance is five standard deviations: 5·sqrt(n·0.05·0.95) = 487.
    assert!(share.abs_diff(10_000) < 487, "{share}");
    assert_eq!(losses(&mut process(&LossConfig::Bernoulli(p(0.0)), 1), n, Duration::ZERO), 0);
    assert_eq!(losses(&mut process(&LossConfig::Bernoulli(p(1.0)), 1), n, Duration::ZERO), n);
    assert_eq!(losses(&mut process(&LossConfig::None, 1), n, Duration::ZERO), 0);
}

#[test]
fn gilbert_elliott_has_its_mean_loss_and_burst_length() {
    let config = GilbertElliottConfig::simple(p(0.01), p(0.2));
    assert!((config.mean_loss().get() - 0.01 / 0.21).abs() < 1e-12);
    let mut ge = process(&LossConfig::GilbertElliott(config), 3);
    let (mut lost, mut bursts, mut before) = (0_u32, 0_u32, false);
    let n = 1_000_000;
    for _ in 0..n {
        let now_lost = ge.is_lost(Time::ZERO);
        lost += u32::from(now_lost);
        bursts += u32::from(now_lost && !before);
        before = now_lost;
    }
    let share = f64::from(lost) / f64::from(n);
    let burst = f64::from(lost) / f64::from(bursts);
    assert!((share - 0.047_62).abs() < 0.003, "{share}");
    assert!((burst - 5.0).abs() < 0.25, "{burst}");
}

#[test]
fn gilbert_elliott_with_four_parameters_mixes_both_losses() {
    let config = GilbertElliottConfig {
        good_to_bad: p(0.1),
        bad_to_good: p(0.3),
        loss_in_good: p(0.02),
        loss_in_bad: p(0.5),
    };
    // The mean is (0.3·0.02 + 0.1·0.5) / 0.4 = 0.14.
    assert!((config.mean_loss().get() - 0.14).abs() < 1e-12);
    let n = 400_000;
    let lost = losses(&mut process(&LossConfig::GilbertElliott(config), 4), n, Duration::ZERO);
    assert!((lost as f64 / n as f64 - 0.14).abs() < 0.004, "{lost}");
}

#[test]
fn markov_time_shares_match_a_hand_computed_chain() {
    // The jump chain has nu0 = nu1 + nu2/2, nu1 = nu0/2 + nu2/2 and nu2 = nu0/2, so the shares are
    // 4 : 3 : 2. Weighted by 100, 200 and 50 ms, they are 400 : 600 : 100.
    let shares = three_states().time_shares().expect("valid");
    for (share, expected) in shares.iter().zip([4.0 / 11.0, 6.0 / 11.0, 1.0 / 11.0]) {
        assert!((share - expected).abs() < 1e-12, "{shares:?}");
    }
    let mean = three_states().mean_loss().expect("valid").get();
    assert!((mean - (0.04 + 1.2 + 0.9) / 11.0).abs() < 1e-12, "{mean}");
}

#[test]
fn markov_dwells_and_occupancy_have_their_means() {
    let LossProcess::Markov(mut markov) = process(&LossConfig::Markov(three_states()), 11) else {
        panic!("a Markov process was asked for");
    };
    let mut nanos = [0_u64; 3];
    let mut visits = [0_u64; 3];
    let mut now = Time::ZERO;
    for _ in 0..120_000 {
        let state = markov.state(now);
        let end = markov.next_change();
        nanos[state] += end.as_nanos() - now.as_nanos();
        visits[state] += 1;
        now = end;
    }
    let total: u64 = nanos.iter().sum();
    let expected = [(100e6, 4.0 / 11.0), (200e6, 6.0 / 11.0), (50e6, 1.0 / 11.0)];
    for (state, (dwell, share)) in expected.into_iter().enumerate() {
        let measured = nanos[state] as f64 / visits[state] as f64;
        assert!((measured / dwell - 1.0).abs() < 0.03, "dwell of {state}: {measured}");
        let measured = nanos[state] as f64 / total as f64;
        assert!((measured / share - 1.0).abs() < 0.03, "share of {state}: {measured}");
    }
}

#[test]
fn markov_starts_stationary() {
    let config = LossConfig::Markov(three_states());
    let mut starts = [0_u32; 3];
    for seed in 0..20_000 {
        let LossProcess::Markov(mut markov) = process(&config, seed) else {
            panic!("a Markov process was asked for");
        };
        starts[markov.state(Time::ZERO)] += 1;
    }
    for (count, share) in starts.iter().zip([4.0 / 11.0, 6.0 / 11.0, 1.0 / 11.0]) {
        let measured = f64::from(*count) / 20_000.0;
        assert!((measured - share).abs() < 0.018, "{starts:?}");
    }
}

#[test]
fn markov_course_does_not_depend_on_traffic() {
    let config = LossConfig::Markov(three_states());
    let (mut busy, mut idle) = (process(&config, 5), process(&config, 5));
    for millis in 0..5_000 {
        let now = Time::from_millis(millis);
        for _ in 0..millis % 7 {
            busy.is_lost(now);
        }
        if millis % 250 == 0 {
            assert_eq!(busy.probability(now), idle.probability(now), "{now}");
        }
    }
}

#[test]
fn one_state_is_constant() {
    let state = MarkovState { loss: p(0.3), mean_dwell: Duration::from_millis(1) };
    let mut markov =
        process(&LossConfig::Markov(MarkovConfig { states: vec![state], jumps: None }), 1);
    assert_eq!(markov.probability(Time::from_secs(1_000_000)), p(0.3));
    assert_eq!(markov.next_change(), Time::MAX);
}

#[test]
fn scheduled_loss_changes_when_told() {
    let schedule = Schedule::new(p(0.0), [(Time::from_secs(1), p(1.0))]).expect("times rise");
    let mut scheduled = process(&LossConfig::Scheduled(schedule), 1);
    assert_eq!(scheduled.next_change(), Time::from_secs(1));
    assert_eq!(losses(&mut scheduled, 1_000, Duration::from_micros(999)), 0);
    assert!(scheduled.is_lost(Time::from_secs(1)));
    assert_eq!(scheduled.next_change(), Time::MAX);
}

#[test]
fn malformed_parameters_are_refused() {
    let never = GilbertElliottConfig::simple(p(0.0), p(0.0));
    assert_eq!(LossConfig::GilbertElliott(never).validate(), Err(LossConfigError::StatesNeverLeft));
    let check = |edit: &dyn Fn(&mut MarkovConfig)| {
        let mut config = three_states();
        edit(&mut config);
        LossConfig::Markov(config).validate()
    };
    assert_eq!(check(&|_| ()), Ok(()));
    assert_eq!(check(&|c| c.states.clear()), Err(LossConfigError::StateCount(0)));
    assert_eq!(
        check(&|c| c.states[1].mean_dwell = Duration::ZERO),
        Err(LossConfigError::Dwell(Duration::ZERO))
    );
    assert_eq!(check(&|c| c.jumps = Some(vec![vec![1.0]; 3])), Err(LossConfigError::JumpMatrix));
    assert_eq!(
        check(&|c| c.jumps = Some(vec![vec![0.5, 0.5, 0.5]; 3])),
        Err(LossConfigError::JumpMatrix)
    );
    assert_eq!(
        check(&|c| c.jumps = Some(vec![vec![f64::NAN, 0.5, 0.5]; 3])),
        Err(LossConfigError::JumpMatrix)
    );
    let absorbing = vec![vec![0.0, 0.5, 0.5], vec![0.0, 1.0, 0.0], vec![0.0, 0.0, 1.0]];
    assert_eq!(
        check(&|c| c.jumps = Some(absorbing.clone())),
        Err(LossConfigError::StatesNotConnected)
    );
}

#[test]
fn disruptions_take_their_share_of_time() {
    let ms = Duration::from_millis;
    let config = MarkovConfig::trimodal(p(0.25), p(0.75), ms(250), p(0.05), ms(1_000));
    // The jump chain has the shares 1 : 1 : 0.1. Weighted by 0.25, 0.25 and 1 s, they are 5/12,
    // 5/12 and 1/6.
    let shares = config.time_shares().expect("valid");
    for (share, expected) in shares.iter().zip([5.0 / 12.0, 5.0 / 12.0, 1.0 / 6.0]) {
        assert!((share - expected).abs() < 1e-12, "{shares:?}");
    }
    let mean = config.mean_loss().expect("valid").get();
    assert!((mean - (0.5 * 5.0 / 6.0 + 1.0 / 6.0)).abs() < 1e-12, "{mean}");
    let without = MarkovConfig::trimodal(p(0.25), p(0.75), ms(250), p(0.0), ms(1_000));
    assert_eq!(without.states.len(), 2);
    assert_eq!(without.mean_loss(), Ok(p(0.5)));
}

#[test]
fn aggregate_loss_is_as_volatile_as_theory_says() {
    let state = |loss| MarkovState { loss: p(loss), mean_dwell: Duration::from_millis(250) };
    let bimodal =
        LossConfig::Markov(MarkovConfig { states: vec![state(0.25), state(0.75)], jumps: None });
    let deviation = |paths| {
        let window = Duration::from_millis(750);
        let means = aggregate_windows(&bimodal, paths, window, 20_000, 5).expect("valid");
        let n = means.len() as f64;
        let mean = means.iter().sum::<f64>() / n;
        assert!((mean - 0.5).abs() < 0.005, "{mean}");
        (means.iter().map(|m| (m - mean) * (m - mean)).sum::<f64>() / (n - 1.0)).sqrt()
    };
    for paths in [1, 4, 9] {
        let theory = anabranch_policy::analysis::diversity::aggregate_deviation(
            0.25, 0.75, 0.25, 0.75, paths,
        );
        let measured = deviation(paths);
        assert!((measured / theory - 1.0).abs() < 0.02, "{paths}: {measured} {theory}");
    }
}
