//! Prints the measurements as a table.

use crate::Failure;
use crate::forge::Kind;
use crate::receiver::{Receiver, State};
use crate::stretch::Stretch;

/// Messages that an attacker sent, and their answers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flood {
    /// Messages sent.
    pub packets: u64,
    /// Bytes of the messages.
    pub bytes: u64,
    /// Datagrams that came back.
    pub answers: u64,
    /// Bytes of the answers.
    pub answered: u64,
}

/// A flood, and what the receiver did at the same time.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    stretch: Stretch,
    flood: Flood,
}

impl Slot {
    /// Measures while a flood runs.
    pub fn measure(
        receiver: &mut Receiver,
        flood: impl FnOnce() -> Result<Flood, Failure>,
    ) -> Result<Self, Failure> {
        let (stretch, flood) = Stretch::measure(receiver, flood)?;
        Ok(Slot { stretch, flood })
    }

    /// The receiver's processor time for each message of this flood, less the cost of application bytes, microseconds.
    fn cost(&self, decoy: &Slot) -> f64 {
        1e6 * self.stretch.extra(&decoy.stretch) / self.flood.packets as f64
    }
}

/// All rounds of a kind.
#[derive(Debug)]
pub struct Outcome {
    /// The kind.
    pub kind: Kind,
    slots: Vec<(Slot, Slot)>,
}

impl Outcome {
    /// No rounds yet.
    pub fn new(kind: Kind) -> Self {
        Outcome { kind, slots: Vec::new() }
    }

    /// One more round: the flood on the decoy, then on the receiver.
    pub fn add(&mut self, decoy: Slot, attack: Slot) {
        self.slots.push((decoy, attack));
    }

    fn median(&self, of: impl Fn(&(Slot, Slot)) -> f64) -> f64 {
        let mut values: Vec<f64> = self.slots.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    }

    fn sum(&self, of: impl Fn(&Flood) -> u64) -> u64 {
        self.slots.iter().map(|(_, attack)| of(&attack.flood)).sum()
    }
}

/// Prints the table of the floods, and the receiver's state before and after them.
pub fn print(outcomes: &[Outcome], before: State, after: State) {
    println!(
        "{:<28} {:>9} {:>9} {:>6} {:>9} {:>9} {:>9} {:>11}",
        "flood", "decoy", "attacked", "ratio", "each", "messages", "answers", "bytes back"
    );
    for outcome in outcomes {
        println!(
            "{:<28} {:>4.0} MB/s {:>4.0} MB/s {:>6.3} {:>6.1} µs {:>9} {:>9} {:>10.4}%",
            outcome.kind.name(),
            outcome.median(|(decoy, _)| decoy.stretch.goodput()) / 1e6,
            outcome.median(|(_, attack)| attack.stretch.goodput()) / 1e6,
            outcome.median(|(decoy, attack)| attack.stretch.goodput() / decoy.stretch.goodput()),
            outcome.median(|(decoy, attack)| attack.cost(decoy)),
            outcome.sum(|flood| flood.packets),
            outcome.sum(|flood| flood.answers),
            100.0 * outcome.sum(|flood| flood.answered) as f64
                / outcome.sum(|flood| flood.bytes) as f64,
        );
    }
    let total: u64 = outcomes.iter().map(|outcome| outcome.sum(|flood| flood.packets)).sum();
    println!(
        "\n{total} forged messages; receiver: {} kB before, {} kB after; connections accepted: {} \
         before, {} after",
        before.resident, after.resident, before.accepted, after.accepted
    );
    println!(
        "Figures are medians of the rounds. The ratio is goodput while the receiver is flooded over goodput \
         while a socket that nobody reads is (the goal is 0.9); where other programs keep the machine busy \
         the ratio is unreliable. 'each' is the receiver's processor time for a forged message."
    );
}
