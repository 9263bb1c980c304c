//! Vegas: keeps only a few packets in the queue.

use crate::congestion::cwnd::{AdditiveCwnd, CwndRule};
use crate::congestion::delay::{Round, Rounds};
use crate::congestion::yielding::Yielding;
use crate::congestion::{AckEvent, CongestionController};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::view::PathView;

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "vegas",
    summary: "moves a packet per round trip to keep alpha to beta packets in queues; halves on loss or mark",
    source: "Brakmo and Peterson 1995, §III-C and §III-D; pTCP §6",
    options: &[
        option("initial", "initial window, packets", "10"),
        option("alpha", "fewer packets in queues let the window grow", "2"),
        option("beta", "more let it shrink", "4"),
        option("gamma", "more end slow start", "1"),
        option(
            "yield",
            "rounds in a row whose times rise although the window has not grown, after which it keeps one packet in flight; 0: never",
            "0",
        ),
    ],
};

/// Vegas' window rule. As in common implementations, slow start doubles the window every round trip
/// until a queue is measured; in the paper, it does so every second round only.
#[derive(Clone, Debug)]
pub struct Vegas {
    cwnd: AdditiveCwnd,
    rounds: Rounds,
    alpha: f64,
    beta: f64,
    gamma: f64,
    /// How the window gives way to other flows, if it does, and whether it has grown for the
    /// current round.
    yielding: Option<Yielding>,
    grew: bool,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn CongestionController>, PolicyError> {
    let initial = options.integer("initial", 1..=1000)?;
    let alpha = options.real("alpha", 0.0..=1000.0)?;
    let yields = options.integer("yield", 0..=100)? as u32;
    let mut cwnd = AdditiveCwnd::new(initial, options.packet_size());
    if yields > 0 {
        cwnd.set_least(1);
    }
    Ok(Box::new(Vegas {
        cwnd,
        yielding: (yields > 0).then(|| Yielding::after(yields)),
        grew: true,
        rounds: Rounds::default(),
        alpha,
        beta: options.real("beta", alpha..=1000.0)?,
        gamma: options.real("gamma", 0.0..=1000.0)?,
    }))
}

impl CwndRule for Vegas {
    fn additive(&self) -> &AdditiveCwnd {
        &self.cwnd
    }

    fn additive_mut(&mut self) -> &mut AdditiveCwnd {
        &mut self.cwnd
    }

    fn acked(&mut self, event: &AckEvent, _siblings: &[PathView]) {
        let round = self.rounds.take(event);
        if let (Some(yielding), Some(round)) = (&mut self.yielding, &round) {
            let grew = core::mem::take(&mut self.grew);
            if yielding.take(round, grew) {
                let packet = self.cwnd.packet();
                self.cwnd.steer(packet);
                return;
            }
        }
        let before = self.cwnd.bytes();
        self.follow(event, round);
        self.grew |= self.cwnd.bytes() > before;
    }
}

impl Vegas {
    /// Adjusts the window to an acknowledgement and the round that it ends, if it ends one.
    fn follow(&mut self, event: &AckEvent, round: Option<Round>) {
        let cwnd = &mut self.cwnd;
        if cwnd.congested(event) {
            cwnd.cut(event.now, cwnd.bytes() / 2, 2);
            return;
        }
        if !cwnd.may_grow(event) {
            return;
        }
        let Some(round) = round else {
            if cwnd.in_slow_start() {
                cwnd.grow(event.acked_bytes);
            }
            return;
        };
        if round.samples <= 2 {
            // The samples are too few to distinguish a queue from a delayed acknowledgement.
            cwnd.grow(event.acked_bytes);
            return;
        }
        let (bytes, packet) = (cwnd.bytes(), cwnd.packet());
        let backlog = round.backlog(bytes, packet);
        if cwnd.in_slow_start() {
            if backlog > self.gamma {
                let emptied = (bytes as f64 * round.thinning()) as u64 + packet;
                cwnd.steer(bytes.min(emptied));
            } else {
                cwnd.grow(event.acked_bytes);
            }
        } else if backlog > self.beta {
            cwnd.steer(bytes.saturating_sub(packet));
        } else if backlog < self.alpha {
            cwnd.steer(bytes + packet);
        }
    }
}
