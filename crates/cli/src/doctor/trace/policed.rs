//! Recognises a policer: it drops what exceeds its rate, and has no queue that would show as delay.

use std::time::Duration;

use super::outer_deciles;
use super::record::{Record, STEP};

/// Steps over which a rate is taken: a policer lets bursts pass, and then nothing for a while.
const WINDOW: usize = 10;
/// Least share of the steps with a full link in which the queue was empty at some moment.
const EMPTY: f64 = 0.9;
/// Least loss of a full link beyond twice the loss of single packets, as a share.
const LOST: f64 = 0.03;
/// Largest ratio of the 90th to the 10th percentile of the windows' rates at which a policer is assumed.
const STEADY: f64 = 1.3;

/// The delivered rate over time, if a policer limits the link: start of each window, seconds, and Mb/s. `loss` is the
/// share lost while the link was kept full, `usual` that of single packets.
pub(super) fn rates(
    record: &Record,
    time: Duration,
    (loss, usual): (f64, f64),
) -> Option<Vec<(f64, f64)>> {
    let steps = usize::try_from(time.as_nanos() / STEP.as_nanos()).ok()?;
    let whole = record.whole();
    let whole = whole.get(..steps).unwrap_or(whole);
    let full = whole.iter().filter(|step| !step.blind);
    let empty = full.clone().filter(|step| step.hungry).count();
    if loss < LOST + 2.0 * usual || (empty as f64) < EMPTY * full.count() as f64 {
        return None;
    }
    let mut rates: Vec<(f64, f64)> = Vec::new();
    for (number, window) in whole.chunks(WINDOW).enumerate() {
        let full: Vec<u64> =
            window.iter().filter(|step| !step.blind).map(|step| step.bytes).collect();
        // In few steps, a burst would weigh too much.
        if 2 * full.len() < WINDOW {
            continue;
        }
        let seconds = full.len() as f64 * STEP.as_secs_f64();
        let mbps = full.iter().sum::<u64>() as f64 * 8e-6 / seconds;
        let at = if rates.is_empty() { 0.0 } else { (number * WINDOW) as f64 * STEP.as_secs_f64() };
        rates.push((at, mbps));
    }
    let [low, high] = outer_deciles(&rates)?;
    (high <= STEADY * low).then_some(rates)
}

#[cfg(test)]
mod tests {
    use anabranch::policy::congestion::AckEvent;
    use anabranch_types::Time;

    use super::super::record::Recorder;
    use super::*;

    /// 20 s, 1 Mb/s on average, in a burst of half a second and a silence; every queue is empty if it is `policed`.
    fn recorder(policed: bool, growth: u64) -> Recorder {
        let recorder = Recorder::default();
        let at = |millis| Time::from_millis(1_000 + millis);
        recorder.lock().empty(at(0), Duration::from_millis(40));
        for tenth in 0_u64..201 {
            let bursts = if tenth % 10 < 5 { 25_000 } else { 0 };
            let now = at(100 * tenth);
            let acked_bytes = bursts + growth * tenth;
            recorder.lock().acked(&AckEvent { now, acked_bytes, ..AckEvent::default() }, false);
            if policed {
                recorder.lock().hungry(now);
            }
        }
        recorder
    }

    #[test]
    fn a_policer_is_told_by_losses_at_a_constant_rate_without_a_queue() {
        let time = Duration::from_secs(20);
        let seen = |policed, growth, losses| rates(&recorder(policed, growth).lock(), time, losses);
        let limit = seen(true, 0, (0.2, 0.01)).expect("a policer");
        assert_eq!(limit.len(), 20);
        assert!(limit.iter().all(|(_, mbps)| (mbps - 1.0).abs() < 1e-9), "{limit:?}");
        assert_eq!(seen(false, 0, (0.2, 0.01)), None, "there is a queue");
        assert_eq!(seen(true, 0, (0.2, 0.1)), None, "the link loses as much anyway");
        assert_eq!(seen(true, 500, (0.2, 0.01)), None, "the rate grows");
    }
}
