//! LIA: paths of one connection grow together no faster than one TCP on the best of them.

use crate::congestion::coupling::linked_gain;
use crate::congestion::window::{AdditiveWindow, WindowRule};
use crate::congestion::{AckEvent, CongestionController};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::view::PathView;

/// What the registry says about it.
pub const ENTRY: Entry = Entry {
    axis: "congestion",
    name: "lia",
    summary: "coupled: growth linked over all paths, each path halves alone",
    source: "RFC 6356 §3",
    options: &[option("initial", "initial window, packets", "10")],
};

/// The linked-increases algorithm. With one path it is Reno.
#[derive(Clone, Debug)]
pub struct Lia {
    window: AdditiveWindow,
}

/// Makes it from its options.
pub fn build(
    options: &Options<'_>,
    packet_size: u64,
) -> Result<Box<dyn CongestionController>, PolicyError> {
    let initial = options.integer("initial", 1..=1000)?;
    Ok(Box::new(Lia { window: AdditiveWindow::new(initial, packet_size) }))
}

impl WindowRule for Lia {
    fn additive(&self) -> &AdditiveWindow {
        &self.window
    }

    fn additive_mut(&mut self) -> &mut AdditiveWindow {
        &mut self.window
    }

    fn acked(&mut self, event: &AckEvent, siblings: &[PathView]) {
        let window = &mut self.window;
        if window.congested(event) {
            window.cut(event.now, window.bytes() / 2, 2);
        } else if window.may_grow(event) {
            // Per acknowledged packet min(α/total, 1/w): in units of 1/w.
            let share = linked_gain(siblings) * window.bytes() as f64;
            window.grow_by(event.acked_bytes, share.min(1.0));
        }
    }
}
