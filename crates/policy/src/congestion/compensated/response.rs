//! Detects whether loss depends on our sending rate. Random loss does not.
//!
//! At any sending rate, the same share of packets is lost at random. A policer, a queue too short
//! to be measured and a queue that never empties drop what exceeds their rate, so the share that
//! they drop grows with the sending rate. The losses of packets sent above the rate are therefore
//! compared with the losses of packets sent below it, within each cycle, since loss also changes
//! over time.

use anabranch_types::{Time, math};

use super::random::Tally;
use crate::congestion::AckEvent;

/// Fewest packets of a span from which a conclusion is drawn.
const LEAST_PACKETS: f64 = 8.0;
/// Least difference of the sending rates for a cycle to count, as the logarithm of their ratio.
const LEAST_CHANGE: f64 = 0.15;
/// Fewest cycles from which a conclusion is drawn, and how many are remembered.
const FEWEST_CYCLES: usize = 3;
const CYCLES: usize = 8;
/// Least mean answer that shows that loss is not random. Probing sometimes overfills a short queue,
/// which gives smaller answers.
const ANSWERS: f64 = 0.3;
/// Mean answer above which we send too much even while we send less.
const SATURATED: f64 = 0.75;
/// How many standard deviations due to chance the mean answer must be above zero.
const BEYOND_CHANCE: f64 = 3.5;

/// The packets that left in a span of time. `until` is `None` while the span lasts.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    since: Time,
    until: Option<Time>,
    packets: Tally,
}

impl Span {
    fn begin(now: Time) -> Self {
        Span { since: now, ..Span::default() }
    }

    fn holds(&self, sent: Time) -> bool {
        self.since <= sent && self.until.is_none_or(|until| sent < until)
    }

    fn on_ack(&mut self, event: &AckEvent) {
        if event.acked_packets > 0 && self.holds(event.largest_acked_sent) {
            self.packets.acked += f64::from(event.acked_packets);
        }
        if event.lost_packets > 0 && self.holds(event.largest_lost_sent) {
            self.packets.lost += f64::from(event.lost_packets);
        }
    }

    /// Packets sent per second.
    fn rate(&self) -> f64 {
        let length = self.until.map_or(0.0, |until| until.since(self.since).as_secs_f64());
        self.packets.total() / length.max(1e-6)
    }
}

/// Measurement of one cycle.
#[derive(Clone, Copy, Debug, Default)]
struct Cycle {
    /// Share of the additional packets that was lost: 0 if loss is random, 1 if no more packets arrived. Computed as
    /// the logarithm of the ratio of the shares that arrived, divided by that of the ratio of the sending rates.
    answer: f64,
    /// The variance of the answer that chance alone causes.
    chance: f64,
}

impl Cycle {
    fn of(more: &Span, less: &Span) -> Option<Self> {
        let change = math::ln(more.rate() / less.rate());
        let fewest = more.packets.total().min(less.packets.total());
        if fewest < LEAST_PACKETS || change < LEAST_CHANGE {
            return None;
        }
        let arrived = |packets: &Tally| (packets.acked + 0.5) / (packets.total() + 1.0);
        let answer = math::ln(arrived(&less.packets) / arrived(&more.packets)) / change;
        let all = arrived(&(more.packets + less.packets));
        let inverses = 1.0 / more.packets.total() + 1.0 / less.packets.total();
        let chance = (1.0 - all) / all * inverses / (change * change);
        Some(Cycle { answer, chance })
    }
}

/// Probing cycles, and how loss responded to the sending rate in them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Response {
    more: Option<Span>,
    less: Option<Span>,
    /// Whether `more` is a span of probing.
    is_probe: bool,
    /// The last cycles, the newest first, and how many of them there are.
    cycles: [Cycle; CYCLES],
    known: usize,
}

impl Response {
    pub(super) fn on_ack(&mut self, event: &AckEvent) {
        for span in [&mut self.more, &mut self.less].into_iter().flatten() {
            span.on_ack(event);
        }
    }

    /// Notes that we send more than the rate from `now` on.
    pub(super) fn send_more(&mut self, now: Time) {
        (self.more, self.less, self.is_probe) = (Some(Span::begin(now)), None, true);
    }

    /// Notes that we send less than the rate from `now` on.
    pub(super) fn send_less(&mut self, now: Time) {
        self.less = Some(Span::begin(now));
    }

    /// Notes that we send at the rate from `now` on. This counts as sending more if so far we have
    /// only sent less.
    pub(super) fn send_at_rate(&mut self, now: Time) {
        if self.less.is_some() && self.more.is_none() {
            (self.more, self.is_probe) = (Some(Span::begin(now)), false);
        }
    }

    /// Whether a packet that left at `sent` left while we probed.
    pub(super) fn probed(&self, sent: Time) -> bool {
        self.is_probe && self.more.is_some_and(|span| span.holds(sent))
    }

    /// Ends the current spans at `now`: packets that leave later do not belong to them.
    pub(super) fn end(&mut self, now: Time) {
        for span in [&mut self.more, &mut self.less].into_iter().flatten() {
            span.until.get_or_insert(now);
        }
    }

    /// Evaluates the cycle that has ended. If loss responds to our sending rate, returns the
    /// largest share of packets that can be lost at random.
    pub(super) fn conclude(&mut self) -> Option<f64> {
        let (more, less) = (self.more.take()?, self.less.take()?);
        let cycle = Cycle::of(&more, &less)?;
        self.cycles.rotate_right(1);
        self.cycles[0] = cycle;
        self.known = (self.known + 1).min(CYCLES);
        // The fewest newest cycles that show a response are used, since the network may have been
        // different before.
        let mut runs = (FEWEST_CYCLES..=self.known).map(|count| &self.cycles[..count]);
        let answer = runs.find_map(answer)?;
        self.known = 0;
        let share = less.packets.lost / less.packets.total();
        Some(if answer > SATURATED { 0.0 } else { share })
    }
}

/// The mean answer of these cycles, if it is larger than their variation and chance explain.
fn answer(cycles: &[Cycle]) -> Option<f64> {
    let count = cycles.len() as f64;
    let mean = cycles.iter().map(|cycle| cycle.answer).sum::<f64>() / count;
    let square = |cycle: &Cycle| (cycle.answer - mean) * (cycle.answer - mean);
    let seen = (cycles.iter().map(square).sum::<f64>() / (count - 1.0) / count).sqrt();
    let chance = cycles.iter().map(|cycle| cycle.chance).sum::<f64>().sqrt() / count;
    // About the 99th percentile of Student's t distribution with `count` − 1 degrees of freedom.
    let beyond_seen = 2.5 + 8.0 / (count - 1.0);
    let is_beyond = mean > (beyond_seen * seen).max(BEYOND_CHANCE * chance);
    (mean > ANSWERS && is_beyond).then_some(mean)
}

#[cfg(test)]
mod tests;
