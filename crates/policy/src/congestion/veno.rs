//! Veno: Reno that treats a loss without a queue as damage, not as congestion.

use crate::congestion::cwnd::{AdditiveCwnd, CwndRule};
use crate::congestion::delay::{Backlog, veno_cut};
use crate::congestion::{AckEvent, CongestionController};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::view::PathView;

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "veno",
    summary: "Reno that cuts by a fifth while fewer than beta packets wait, and grows half as fast above",
    source: "Fu and Liew 2003, §III",
    options: &[
        option("initial", "initial window, packets", "10"),
        option("beta", "packets in queues at which a loss counts as congestion", "3"),
        option(
            "increase",
            "growth with beta packets in queues: veno (half) or reno (whole)",
            "veno",
        ),
    ],
};

/// Veno. A congestion mark always counts as congestion, however short the queue.
#[derive(Clone, Debug)]
pub struct Veno {
    cwnd: AdditiveCwnd,
    backlog: Backlog,
    queued_growth: f64,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn CongestionController>, PolicyError> {
    let initial = options.integer("initial", 1..=1000)?;
    Ok(Box::new(Veno {
        cwnd: AdditiveCwnd::new(initial, options.packet_size()),
        backlog: Backlog::new(options.real("beta", 0.0..=1000.0)?),
        queued_growth: options.choice("increase", &[("veno", 0.5), ("reno", 1.0)])?,
    }))
}

impl CwndRule for Veno {
    fn additive(&self) -> &AdditiveCwnd {
        &self.cwnd
    }

    fn additive_mut(&mut self) -> &mut AdditiveCwnd {
        &mut self.cwnd
    }

    fn acked(&mut self, event: &AckEvent, _siblings: &[PathView]) {
        let cwnd = &mut self.cwnd;
        let queued = self.backlog.take(event, cwnd.bytes(), cwnd.packet());
        if cwnd.congested(event) {
            cwnd.cut(event.now, veno_cut(event, cwnd.bytes(), queued), 2);
        } else if cwnd.may_grow(event) {
            cwnd.grow_by(event.acked_bytes, if queued { self.queued_growth } else { 1.0 });
        }
    }
}
