//! wVegas: Vegas on every path, with the packets that each may keep in its queue weighted by its rate.

use core::time::Duration;

use crate::congestion::coupling::total_rate;
use crate::congestion::cwnd::{AdditiveCwnd, CwndRule};
use crate::congestion::delay::{Round, Rounds};
use crate::congestion::{AckEvent, CongestionController};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::view::PathView;

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "wvegas",
    summary: "coupled: keeps total packets in queues over all paths, shared by rate",
    source: "Cao, Xu and Fu 2012, §III",
    options: &[
        option("initial", "initial window, packets", "10"),
        option("total", "packets in queues over all paths", "10"),
        option("gamma", "more packets in the path's queues end slow start", "1"),
    ],
};

/// Least number of packets that a path keeps in queues; also the number before its share is known.
const LEAST_ALPHA: f64 = 2.0;

/// Weighted Vegas. A round's delay is the mean of its samples, as in the paper; our Vegas takes the
/// least sample.
#[derive(Clone, Debug)]
pub struct WeightedVegas {
    cwnd: AdditiveCwnd,
    rounds: Rounds,
    total: f64,
    gamma: f64,
    alpha: f64,
    /// The least queueing delay above zero since the last back-off.
    least_queue: Option<Duration>,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn CongestionController>, PolicyError> {
    let initial = options.integer("initial", 1..=1000)?;
    Ok(Box::new(WeightedVegas {
        cwnd: AdditiveCwnd::new(initial, options.packet_size()),
        rounds: Rounds::default(),
        total: options.real("total", 1.0..=10_000.0)?,
        gamma: options.real("gamma", 0.0..=1000.0)?,
        alpha: LEAST_ALPHA,
        least_queue: None,
    }))
}

impl WeightedVegas {
    fn avoid(&mut self, round: Round, siblings: &[PathView]) {
        let (bytes, packet) = (self.cwnd.bytes(), self.cwnd.packet());
        let backlog = round.backlog(bytes, packet);
        if backlog >= self.alpha {
            let own = bytes as f64 / round.rtt.as_secs_f64().max(1e-6);
            let weight = own / total_rate(siblings).max(own);
            self.alpha = (weight * self.total).max(LEAST_ALPHA);
        }
        if backlog > self.alpha {
            self.cwnd.steer(bytes.saturating_sub(packet));
        } else if backlog < self.alpha {
            self.cwnd.steer(bytes + packet);
        }
        self.drain(round);
    }

    /// Backs off once the queueing delay has doubled, so that the least round-trip time can be seen again.
    fn drain(&mut self, round: Round) {
        let queue = round.rtt.saturating_sub(round.base);
        if queue.is_zero() {
            return;
        }
        let least = self.least_queue.map_or(queue, |least| least.min(queue));
        self.least_queue = Some(least);
        if queue >= least.saturating_mul(2) {
            let drained = self.cwnd.bytes() as f64 * round.thinning() / 2.0;
            self.cwnd.steer(drained as u64);
            self.least_queue = None;
        }
    }
}

impl CwndRule for WeightedVegas {
    fn additive(&self) -> &AdditiveCwnd {
        &self.cwnd
    }

    fn additive_mut(&mut self) -> &mut AdditiveCwnd {
        &mut self.cwnd
    }

    fn is_coupled(&self) -> bool {
        true
    }

    fn acked(&mut self, event: &AckEvent, siblings: &[PathView]) {
        let round = self.rounds.take(event).map(Round::by_mean);
        let cwnd = &mut self.cwnd;
        if cwnd.congested(event) {
            cwnd.cut(event.now, cwnd.bytes() / 2, 2);
            return;
        }
        if !cwnd.may_grow(event) {
            return;
        }
        match round {
            Some(round) if round.samples > 2 => {
                let (bytes, packet) = (cwnd.bytes(), cwnd.packet());
                if !cwnd.in_slow_start() {
                    self.avoid(round, siblings);
                } else if round.backlog(bytes, packet) > self.gamma {
                    let emptied = (bytes as f64 * round.thinning()) as u64 + packet;
                    cwnd.steer(bytes.min(emptied));
                } else {
                    cwnd.grow(event.acked_bytes);
                }
            }
            Some(_) => cwnd.grow(event.acked_bytes),
            None if cwnd.in_slow_start() => cwnd.grow(event.acked_bytes),
            None => {}
        }
    }
}
