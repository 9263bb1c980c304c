//! mVeno, as far as it is published: LIA's growth, and Veno's classification of losses.

use crate::congestion::coupling::linked_growth;
use crate::congestion::cwnd::{AdditiveCwnd, CwndRule};
use crate::congestion::delay::{Backlog, veno_cut};
use crate::congestion::{AckEvent, CongestionController};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::view::PathView;

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "mveno",
    summary: "coupled: LIA's growth, halved on a queue, and Veno's cuts; a substitute for mVeno",
    source: "derived from RFC 6356 §3 and Fu and Liew 2003, §III; mVeno's own coupling is not public",
    options: &[
        option("initial", "initial window, packets", "10"),
        option("beta", "packets in queues at which a loss counts as congestion", "3"),
    ],
};

/// A substitute for mVeno (Dong et al. 2018), of which no complete text is public. The cuts are
/// certainly Veno's: to four fifths while fewer than `beta` packets wait in the path's queues, else
/// to half. The coupling is our derivation: LIA's growth, halved from `beta` packets on, as Veno
/// halves Reno's.
#[derive(Clone, Debug)]
pub struct MultipathVeno {
    cwnd: AdditiveCwnd,
    backlog: Backlog,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn CongestionController>, PolicyError> {
    let initial = options.integer("initial", 1..=1000)?;
    Ok(Box::new(MultipathVeno {
        cwnd: AdditiveCwnd::new(initial, options.packet_size()),
        backlog: Backlog::new(options.real("beta", 0.0..=1000.0)?),
    }))
}

impl CwndRule for MultipathVeno {
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
        let cwnd = &mut self.cwnd;
        let queued = self.backlog.take(event, cwnd.bytes(), cwnd.packet());
        if cwnd.congested(event) {
            cwnd.cut(event.now, veno_cut(event, cwnd.bytes(), queued), 2);
        } else if cwnd.may_grow(event) {
            let growth = linked_growth(cwnd.bytes(), siblings);
            cwnd.grow_by(event.acked_bytes, if queued { growth / 2.0 } else { growth });
        }
    }
}
