use std::sync::Arc;

use anabranch_types::{Probability, Time, parse_duration};

use super::LossModel;
use crate::rate::TraceError;

/// A fixed sequence of losses, without randomness.
#[derive(Clone, Debug, PartialEq)]
pub enum LossTrace {
    /// One outcome for each packet, in order.
    Outcomes {
        /// The outcomes, at least one; `true` means lost.
        lost: Arc<[bool]>,
        /// Whether the outcomes start over at the end. If not, no packet is lost after the end.
        repeat: bool,
    },
    /// The numbers of the lost packets in strictly rising order. Packets are counted from 0 in the
    /// order in which they leave the transmitter.
    Indices(Arc<[u64]>),
    /// Times of loss in ascending order. For each time, the first packet that leaves the
    /// transmitter at that time or later is lost, unless it is lost for an earlier time already;
    /// then the next packet is lost.
    Times(Arc<[Time]>),
}

/// The format of the text of a loss trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossTraceForm {
    /// `0` for a packet that arrives, `1` for a packet that is lost. White space is ignored.
    Outcomes {
        /// Whether the outcomes start over at the end, as in [`LossTrace::Outcomes`].
        repeat: bool,
    },
    /// A packet number on each line.
    Indices,
    /// A time such as `1.25s` on each line.
    Times,
}

/// Maximum number of entries of a trace, which limits its memory. Longer traces are refused.
const MAX_ENTRIES: usize = 50_000_000;

impl LossTrace {
    /// Reads `text` as `form`. Blank lines and everything after `#` are ignored.
    ///
    /// # Errors
    /// When a line does not have this form, or there is no entry. The error names the first such
    /// line and what is allowed there.
    pub fn parse(text: &str, form: LossTraceForm) -> Result<Self, TraceError> {
        match form {
            LossTraceForm::Outcomes { repeat } => {
                let lost: Arc<[bool]> = outcomes(text)?.into();
                Ok(LossTrace::Outcomes { lost, repeat })
            }
            LossTraceForm::Indices => {
                let allowed = "a packet number above the one before it, such as 17";
                let entry = |line: &str| line.parse::<u64>().ok();
                let indices = entries(text, allowed, entry, |before, next| before < next)?;
                Ok(LossTrace::Indices(indices.into()))
            }
            LossTraceForm::Times => {
                let allowed = "a time not before the one above it, such as 1.25s";
                let entry = |line: &str| Some(Time::ZERO + parse_duration(line).ok()?);
                let times = entries(text, allowed, entry, |before, next| before <= next)?;
                Ok(LossTrace::Times(times.into()))
            }
        }
    }

    /// The share of packets lost in the long run. It is zero for a trace that ends.
    pub fn mean_loss(&self) -> Probability {
        match self {
            LossTrace::Outcomes { lost, repeat: true } => {
                let count = lost.iter().filter(|lost| **lost).count();
                Probability::clamped(count as f64 / lost.len().max(1) as f64)
            }
            _ => Probability::ZERO,
        }
    }
}

/// The lines of `text` that are neither blank nor comments, with their numbers from 1.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(i, line)| (i + 1, line.split('#').next().unwrap_or_default().trim()))
        .filter(|(_, line)| !line.is_empty())
}

fn outcomes(text: &str) -> Result<Vec<bool>, TraceError> {
    let allowed = "0 for a packet that arrives and 1 for one that is lost";
    let mut lost = Vec::new();
    for (number, line) in lines(text) {
        for symbol in line.chars().filter(|symbol| !symbol.is_whitespace()) {
            match symbol {
                '0' | '1' if lost.len() < MAX_ENTRIES => lost.push(symbol == '1'),
                _ => return Err(TraceError::new(number, symbol, allowed)),
            }
        }
    }
    if lost.is_empty() { Err(TraceError::empty(allowed)) } else { Ok(lost) }
}

fn entries<V: Copy>(
    text: &str,
    allowed: &'static str,
    read: impl Fn(&str) -> Option<V>,
    ordered: impl Fn(V, V) -> bool,
) -> Result<Vec<V>, TraceError> {
    let mut values: Vec<V> = Vec::new();
    for (number, line) in lines(text) {
        let value = read(line)
            .filter(|value| values.last().is_none_or(|last| ordered(*last, *value)))
            .filter(|_| values.len() < MAX_ENTRIES);
        values.push(value.ok_or_else(|| TraceError::new(number, line, allowed))?);
    }
    if values.is_empty() { Err(TraceError::empty(allowed)) } else { Ok(values) }
}

/// Replays a [`LossTrace`].
#[derive(Clone, Debug)]
pub struct Replay {
    trace: LossTrace,
    mean: Probability,
    /// Packets seen so far.
    packets: u64,
    /// Number of entries used so far; for outcomes, the index of the next outcome.
    used: usize,
}

impl Replay {
    /// Replays `trace` from its start.
    pub fn new(trace: &LossTrace) -> Self {
        Replay { trace: trace.clone(), mean: trace.mean_loss(), packets: 0, used: 0 }
    }
}

impl LossModel for Replay {
    fn is_lost(&mut self, now: Time) -> bool {
        let number = self.packets;
        self.packets += 1;
        let (lost, used) = match &self.trace {
            LossTrace::Outcomes { lost, repeat } => {
                let outcome = lost.get(self.used).copied().unwrap_or(false);
                let next = self.used.saturating_add(1);
                (outcome, if *repeat && next >= lost.len() { 0 } else { next })
            }
            LossTrace::Indices(indices) => {
                let lost = indices.get(self.used) == Some(&number);
                (lost, self.used + usize::from(lost))
            }
            LossTrace::Times(times) => {
                let lost = times.get(self.used).is_some_and(|time| *time <= now);
                (lost, self.used + usize::from(lost))
            }
        };
        self.used = used;
        lost
    }

    /// Returns the mean loss, because the outcome of the next packet alone would not describe the
    /// link.
    fn probability(&mut self, _now: Time) -> Probability {
        self.mean
    }

    fn next_change(&self) -> Time {
        Time::MAX
    }
}
