//! LIA: the paths of a connection together grow no faster than one TCP on the best path.

use crate::congestion::coupling::linked_growth;
use crate::congestion::cwnd::{AdditiveCwnd, CwndRule};
use crate::congestion::{AckEvent, CongestionController};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::view::PathView;

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "lia",
    summary: "coupled: growth linked over all paths, each path halves alone",
    source: "RFC 6356 §3",
    options: &[option("initial", "initial window, packets", "10")],
};

/// The linked-increases algorithm. With one path it is Reno.
#[derive(Clone, Debug)]
pub struct Lia {
    cwnd: AdditiveCwnd,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn CongestionController>, PolicyError> {
    let initial = options.integer("initial", 1..=1000)?;
    Ok(Box::new(Lia { cwnd: AdditiveCwnd::new(initial, options.packet_size()) }))
}

impl CwndRule for Lia {
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
        if cwnd.congested(event) {
            cwnd.cut(event.now, cwnd.bytes() / 2, 2);
        } else if cwnd.may_grow(event) {
            cwnd.grow_by(event.acked_bytes, linked_growth(cwnd.bytes(), siblings));
        }
    }
}
