//! Records a link over time, into files that scenarios read.

mod files;
mod policed;
mod record;
mod saturate;

use std::time::Duration;

use anabranch::policy::CongestionController;
use anabranch::policy::registry::PolicySpec;
use anabranch::{Connection, PathId, Profile};
use serde::Serialize;
use tokio::time::Instant;

use super::load::pour;
use super::probe::only_path;
use crate::failure::Failure;
use record::{Record, STEP};
use saturate::{CYCLE, ENTRY, Saturate};

pub(super) use files::{check, write};
pub(super) use record::Recorder;

/// Summary of a recording. The files hold the rest.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Trace {
    /// Duration, seconds.
    pub(super) seconds: f64,
    /// Mean rate, Mb/s, and the 10th and 90th percentiles over intervals of 100 ms.
    pub(super) mbps: f64,
    pub(super) mbps_p10: f64,
    pub(super) mbps_p90: f64,
    /// Smallest and largest one-way delay, ms: half of the round-trip time while the queue is empty.
    pub(super) delay_ms: [f64; 2],
    /// Share of the packets that was lost.
    pub(super) loss: f64,
    /// A policer limits the link. Its drops are not counted as lost.
    pub(super) policed: bool,
    /// Path of the scenario file, which holds all links.
    pub(super) scenario: String,
}

/// A recording of one link.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Recording {
    /// Duration, seconds.
    seconds: f64,
    /// The rate over time: start of each step, seconds, and Mb/s.
    rates: Vec<(f64, f64)>,
    /// The one-way delay of an empty queue over time: start of each step, seconds, and ms.
    delays: Vec<(f64, f64)>,
    /// The loss over time: start of each step, seconds, and the share lost.
    losses: Vec<(f64, f64)>,
    /// The share lost over the whole recording.
    loss: f64,
    /// A policer limits the link. Its drops are not among the losses.
    policed: bool,
}

/// A recording that takes this much longer than requested is given up: the link is silent.
const PATIENCE: Duration = Duration::from_secs(20);
/// A link whose rate has risen is full again within so many steps.
const SOON: usize = 10;
/// Largest loss that rates are corrected for. A larger one comes from the recording and not from the link.
const MOST_LOSS: f64 = 0.95;

/// Registers a controller with `profile` that records the link once [`record`] selects it.
pub(super) fn recording(mut profile: Profile) -> Result<(Profile, Recorder), Failure> {
    let recorder = Recorder::default();
    let shared = recorder.clone();
    let made = profile.register::<dyn CongestionController>(&ENTRY, move |options| {
        Ok(Box::new(Saturate::new(shared.clone(), options.packet_size())))
    });
    made.map_err(Failure::failed)?;
    Ok((profile, recorder))
}

/// Keeps the link of a connection full for this time, and returns the recording, or the reason why there is none. The
/// connection must use the profile that [`recording`] returned; `usual` is the loss of single packets on the link.
pub(super) async fn record(
    connection: &Connection,
    recorder: &Recorder,
    (time, usual): (Duration, f64),
) -> Result<Recording, String> {
    let saturate: PolicySpec = ENTRY.name.parse().map_err(|_| "no controller".to_owned())?;
    connection.set_congestion(PathId(0), &saturate).map_err(|error| error.to_string())?;
    let begun = Instant::now();
    while recorder.length() < time {
        pour(connection).await.map_err(|error| error.to_string())?;
        let path = only_path(connection).ok_or("the connection has no path any more")?;
        recorder.note_fates(path.counters.spurious_losses);
        if begun.elapsed() > time + PATIENCE {
            return Err("it was silent for too long".to_owned());
        }
    }
    Recording::of(&recorder.lock(), time, usual).ok_or_else(|| "nothing arrived in time".to_owned())
}

impl Recording {
    /// Evaluates `record` up to `time`; `None` if too little arrived. `usual` is the loss of single packets.
    fn of(record: &Record, time: Duration, usual: f64) -> Option<Self> {
        let mut losses = losses(record, time);
        let mut rates = rates(record, &losses, time);
        if rates.len() < 2 || rates.iter().all(|(_, mbps)| *mbps == 0.0) {
            return None;
        }
        let delays = record.trips.iter().filter(|(at, _)| *at < time);
        let delays = delays.map(|(at, trip)| (at.as_secs_f64(), trip.as_secs_f64() * 500.0));
        let fates = record.fates.iter().filter(|(at, ..)| *at <= time);
        let (_, acked, lost) = fates.copied().next_back().unwrap_or_default();
        let (_, acked_before, lost_before) = record.fates.first().copied().unwrap_or_default();
        let mut loss = share((acked - acked_before, lost.saturating_sub(lost_before)));
        let limit = policed::rates(record, time, (loss, usual));
        let policed = limit.is_some();
        if let Some(limit) = limit {
            (rates, losses, loss) = (limit, vec![(0.0, usual)], usual);
        }
        Some(Recording {
            seconds: time.as_secs_f64(),
            rates,
            delays: delays.collect(),
            losses,
            loss,
            policed,
        })
    }

    /// The summary, with the path of the scenario file.
    pub(super) fn summary(&self, scenario: String) -> Trace {
        let [low, high] = outer_deciles(&self.rates).unwrap_or_default();
        let delays = self.delays.iter().map(|(_, delay)| *delay);
        let ends = self.rates.iter().skip(1).map(|(at, _)| *at).chain([self.seconds]);
        let carried =
            self.rates.iter().zip(ends).map(|((at, mbps), end)| mbps * (end - at)).sum::<f64>();
        let least = delays.clone().min_by(f64::total_cmp).unwrap_or(0.0);
        Trace {
            seconds: self.seconds,
            mbps: carried / self.seconds,
            mbps_p10: low,
            mbps_p90: high,
            delay_ms: [least, delays.max_by(f64::total_cmp).unwrap_or(0.0)],
            loss: self.loss,
            policed: self.policed,
            scenario,
        }
    }
}

/// The rate of each step of `record`.
///
/// A queue that empties although the controller fills it shows that the rate of the link has risen.
/// The new rate is measured in the next step in which the queue never empties. It holds from the
/// first step in which the queue was empty. If no such step follows soon, no queue forms at all,
/// and the step's own rate is taken.
fn rates(record: &Record, losses: &[(f64, f64)], time: Duration) -> Vec<(f64, f64)> {
    let whole = record.whole();
    let mut rates: Vec<(f64, f64)> = Vec::new();
    let mut faster_since = None;
    for (index, (step, number)) in whole.iter().zip(0_u32..).enumerate() {
        let at = (number * STEP).as_secs_f64();
        if step.blind || at >= time.as_secs_f64() {
            continue;
        }
        let soon = whole.iter().skip(index).take(SOON);
        if step.hungry && soon.clone().any(|step| !step.hungry && !step.blind) {
            faster_since.get_or_insert(at);
            continue;
        }
        // Packets lost after the bottleneck have passed it, so they count for its rate.
        let passed = 1.0 - at_time(losses, at).min(MOST_LOSS);
        let mbps = step.bytes as f64 * 8e-6 / STEP.as_secs_f64() / passed;
        let from = faster_since.take().unwrap_or(at);
        rates.push((if rates.is_empty() { 0.0 } else { from }, mbps));
    }
    rates
}

/// The loss of each period of [`CYCLE`]; the last one is up to twice as long.
fn losses(record: &Record, time: Duration) -> Vec<(f64, f64)> {
    let mut found = Vec::new();
    let fate = |at: Duration| {
        let after = record.fates.iter().find(|(when, ..)| *when >= at);
        after.or(record.fates.last()).map(|(_, acked, lost)| (*acked, *lost)).unwrap_or_default()
    };
    let mut from = Duration::ZERO;
    while from < time {
        // A rest that is shorter than a period is added to the last one.
        let to = if from + CYCLE * 2 > time { time } else { from + CYCLE };
        let (before, after) = (fate(from), fate(to));
        let lost = (after.0 - before.0, after.1.saturating_sub(before.1));
        found.push((from.as_secs_f64(), share(lost)));
        from = to;
    }
    found
}

/// The 10th and 90th percentiles of rates, Mb/s; `None` if there are no rates.
fn outer_deciles(rates: &[(f64, f64)]) -> Option<[f64; 2]> {
    let mut sorted: Vec<f64> = rates.iter().map(|(_, mbps)| *mbps).collect();
    sorted.sort_by(f64::total_cmp);
    let part = |tenths: usize| sorted.get(sorted.len() * tenths / 10).copied();
    Some([part(1)?, part(9)?])
}

/// The share lost, from the numbers of packets acknowledged and lost.
fn share((acked, lost): (u64, u64)) -> f64 {
    lost as f64 / (acked + lost).max(1) as f64
}

/// The value at a time of a function that changes in steps; 0 before the first.
fn at_time(steps: &[(f64, f64)], at: f64) -> f64 {
    let begun = steps.iter().take_while(|(from, _)| *from <= at);
    begun.last().map_or(0.0, |(_, value)| *value)
}

#[cfg(test)]
mod tests;
