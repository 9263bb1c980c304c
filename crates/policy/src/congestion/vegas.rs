//! Vegas: keeps a few packets in the queue and no more.

use crate::congestion::delay::Rounds;
use crate::congestion::window::{AdditiveWindow, WindowRule};
use crate::congestion::{AckEvent, CongestionController};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::view::PathView;

/// What the registry says about it.
pub const ENTRY: Entry = Entry {
    axis: "congestion",
    name: "vegas",
    summary: "moves a packet per round trip to keep alpha to beta packets in queues; halves on loss or mark",
    source: "Brakmo and Peterson 1995, §III-C and §III-D",
    options: &[
        option("initial", "initial window, packets", "10"),
        option("alpha", "fewer packets in queues let the window grow", "2"),
        option("beta", "more let it shrink", "4"),
        option("gamma", "more end slow start", "1"),
    ],
};

/// Vegas' window rule. Slow start doubles every round trip until the queue shows, as the common
/// implementations do; the paper's pauses every second round.
#[derive(Clone, Debug)]
pub struct Vegas {
    window: AdditiveWindow,
    rounds: Rounds,
    alpha: f64,
    beta: f64,
    gamma: f64,
}

/// Makes it from its options.
pub fn build(
    options: &Options<'_>,
    packet_size: u64,
) -> Result<Box<dyn CongestionController>, PolicyError> {
    let initial = options.integer("initial", 1..=1000)?;
    let alpha = options.real("alpha", 0.0..=1000.0)?;
    Ok(Box::new(Vegas {
        window: AdditiveWindow::new(initial, packet_size),
        rounds: Rounds::default(),
        alpha,
        beta: options.real("beta", alpha..=1000.0)?,
        gamma: options.real("gamma", 0.0..=1000.0)?,
    }))
}

impl WindowRule for Vegas {
    fn additive(&self) -> &AdditiveWindow {
        &self.window
    }

    fn additive_mut(&mut self) -> &mut AdditiveWindow {
        &mut self.window
    }

    fn acked(&mut self, event: &AckEvent, _siblings: &[PathView]) {
        let round = self.rounds.take(event);
        let window = &mut self.window;
        if window.congested(event) {
            window.cut(event.now, window.bytes() / 2, 2);
            return;
        }
        if !window.may_grow(event) {
            return;
        }
        let Some(round) = round else {
            if window.in_slow_start() {
                window.grow(event.acked_bytes);
            }
            return;
        };
        if round.samples <= 2 {
            // Too few to tell a queue from a delayed acknowledgement.
            window.grow(event.acked_bytes);
            return;
        }
        let (bytes, packet) = (window.bytes(), window.packet());
        let backlog = round.backlog(bytes, packet);
        if window.in_slow_start() {
            if backlog > self.gamma {
                let emptied = (bytes as f64 * round.thinning()) as u64 + packet;
                window.steer(bytes.min(emptied));
            } else {
                window.grow(event.acked_bytes);
            }
        } else if backlog > self.beta {
            window.steer(bytes.saturating_sub(packet));
        } else if backlog < self.alpha {
            window.steer(bytes + packet);
        }
    }
}
