use core::time::Duration;

use anabranch_types::Time;

use super::{LossConfig, LossConfigError, LossModel, LossProcess};

/// The mean loss probability of `paths` independent paths over each of `windows` consecutive windows.
///
/// Every path has its own realisation of `config`. The loss probability is integrated over time
/// exactly, without packets. The standard deviation of the means is what MPLOT §IV-A calls the
/// volatility of aggregate loss.
///
/// # Errors
/// When `config` is not well formed.
pub fn aggregate_windows(
    config: &LossConfig,
    paths: u32,
    window: Duration,
    windows: usize,
    seed: u64,
) -> Result<Vec<f64>, LossConfigError> {
    let mut means = vec![0.0; windows];
    let window = window.max(Duration::from_nanos(1));
    for path in 0..paths {
        let mut process = LossProcess::new(config, seed, &format!("aggregate.{path}.loss"))?;
        let mut now = Time::ZERO;
        for mean in &mut means {
            let end = now + window;
            *mean += integral(&mut process, now, end) / window.as_secs_f64() / f64::from(paths);
            now = end;
        }
    }
    Ok(means)
}

/// ∫ loss dt over `[from, to)`, in seconds.
fn integral(process: &mut LossProcess, from: Time, to: Time) -> f64 {
    let (mut now, mut sum) = (from, 0.0);
    while now < to {
        let loss = process.capacity_loss(now).get();
        // A process whose state changes only with packets has no next change.
        let next = process.next_change().min(to);
        sum += loss * next.since(now).as_secs_f64();
        now = next;
    }
    sum
}
